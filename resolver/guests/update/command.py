"""`matrix --update`: read what the index has and the matrix lacks, and keep it."""

from __future__ import annotations

import datetime as dt
import json
import platform as machine
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...binaries.native import BinaryError
from ...cli import console
from ...cli.inputs import index_config_of
from ...cli.matrix_files import is_own_place, other_lines, readings_folder, user_file
from ...data_files import load_table
from ...errors import Error, cause
from ...evidence.wheels import PLATFORMS, EvidenceError
from ...facts.target import MACHINES
from ...index.client import Index, TransferStopped
from ...matrix.additions import additions_json, parse_additions
from ...messages.catalog import Language, load_texts
from ...messages.sections import size
from ...utils.files import FULL, write
from .guest import UpdateRequest
from .index_source import IndexSource
from .reader import ReadingCache
from .update import MatrixReader

_TABLES = ("onnxruntime", "nvidia", "toolkits", "torch", "plugins")
AddedTables = Mapping[str, Mapping[str, Sequence[Any]]]


def run(request: UpdateRequest, environ: Mapping[str, str], language: Language) -> int:
    """Read the index, and write the rows for this user or to `-o FILE`.

    Raises Error `platform-unsupported`, `matrix-update-failed`, `file-unwritable`, and what the
    index raises.
    """
    texts = load_texts(language)
    printed = request.output == "-"
    goal = Path(request.output) if request.output else user_file(environ)
    if goal is None:
        raise Error("usage", problem=cause("update-homeless"))
    if not request.output and not is_own_place(goal):
        raise Error("usage", problem=cause("update-not-own", file=goal))
    index = Index(index_config_of(request.sources, environ, None))
    lock = threading.Lock()

    def progress(text: str) -> None:
        with lock:
            wheel = next((word for word in text.split() if ".whl" in word), text).rstrip(":")
            read = size(source.bytes_received)
            console.print_notice(texts.label("matrix-reading", size=read, file=wheel))

    tables = {name: load_table(name) for name in _TABLES}
    platforms = PLATFORMS if request.all_platforms else (_platform(),)
    with tempfile.TemporaryDirectory() as nowhere:
        source = IndexSource(index, Path(nowhere))
        reader = MatrixReader(
            source,
            ReadingCache(readings_folder(environ) or Path(nowhere)),
            tables,
            platforms,
            index_url=request.ort_index_url,
            progress=progress,
        )
        read = reader.read_builds_of_index if request.ort_index_url else reader.read
        rows = _finished(read, index, source)
    source.check_found()
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    address = source.address(request.ort_index_url)
    document = additions_json(today, address, rows)
    text = json.dumps(document, separators=(",", ":")).encode()
    releases = parse_additions(text, goal).releases
    if printed:
        console.print_result(text.decode())
        return 0
    if releases:
        _make_folder(goal.parent)
        kept = [] if request.output else other_lines(goal, address)
        write(goal, b"\n".join([*kept, text]) + b"\n")
    if request.json:
        shown = {"schema": 1, "read": today, "index": address, "added": list(releases)}
        received = dict(sorted(source.received.items()))
        console.print_json(shown | {"file": str(goal) if releases else None, "received": received})
    elif releases:
        named = ", ".join(releases)
        console.print_result(
            texts.label("matrix-updated", index=address, date=today, file=goal, releases=named)
        )
    else:
        date = tables["onnxruntime"]["date"]
        console.print_result(texts.label("matrix-nothing-new", date=date))
    return 0


def _finished(read: Callable[[], AddedTables], index: Index, source: IndexSource) -> AddedTables:
    """Return what `read` returns; a failure, or Ctrl-C, ends every transfer at its next piece."""
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(read).result()
        except TransferStopped:
            if isinstance(source.failure, Error):
                raise source.failure from None
            raise
        except (EvidenceError, BinaryError) as error:
            raise Error("matrix-update-failed", cause=error) from error
        except OSError as error:
            if error.errno in FULL:
                raise Error("disk-full", folder=error.filename or "-") from error
            raise Error("matrix-update-failed", cause=error.strerror or error) from error
        finally:
            index.stop.set()


def _platform() -> str:
    """Return the platform of this machine in the matrix: `linux_x86_64`."""
    system = "windows" if sys.platform == "win32" else sys.platform
    name = f"{system}_{MACHINES.get(machine.machine().lower(), '')}"
    if name not in PLATFORMS:
        raise Error("platform-unsupported", system=system, machine=machine.machine())
    return name


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error("file-unwritable", file=folder, cause=error.strerror or error) from error
