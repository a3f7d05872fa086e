"""What both scripts need: their answers, their end, the driver's GPUs, errors, profiles.

Part of the scripts `smoke` and `measure`: run by the target's interpreter (3.8 or newer), with the
standard library.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import faulthandler
import json
import os
import re
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from . import libraries

if sys.platform == "win32":
    import msvcrt

WEDGED = 60.0
"""Seconds that the driver may take to start."""
_answers: list[TextIO] = []
_EVENT = re.compile(r'^(\s*\{"cat" : .*?"name" :")(.*)(","args" : )', re.DOTALL)
"""An event of a profile as onnxruntime writes it. Of a node's name 1.26 escapes nothing, 1.31 all:
a quote, a backslash or a control character in it breaks the whole."""


def answer_apart() -> None:
    """Let only answers go to standard output: what the target's code prints goes to the other."""
    _answers.append(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)


def report(event: str, **values: object) -> None:
    """Print one answer at once, for the process may crash right after."""
    print(
        json.dumps(dict(values, event=event)),
        file=_answers[0] if _answers else sys.stdout,
        flush=True,
    )


def start(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Return the arguments, with those that both scripts have; a crash will leave a dump."""
    faulthandler.enable()
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--lifeline", action="store_true")
    options = parser.parse_args(arguments)
    begin(options.scratch, lifeline=options.lifeline)
    return options


def begin(scratch: Path, *, lifeline: bool) -> None:
    """Make `scratch`; with `lifeline` remove it and end as soon as the starter is gone.

    The starter holds the other end of standard input. Not read through `sys.stdin`: a thread that
    waits in it makes Python crash at its end. On Windows not read at all: while a read waits,
    whatever else asks about standard input does too, as the C runtime of a library does when it is
    loaded (GetFileType). There it is looked at now and then.
    """
    scratch.mkdir(mode=0o700, exist_ok=True)
    if not lifeline:
        return
    # The caller may be killed while Python ends.
    atexit.register(shutil.rmtree, str(scratch), ignore_errors=True)

    def wait() -> None:
        if sys.platform == "win32":
            standard_input = ctypes.c_void_p(msvcrt.get_osfhandle(0))
            while ctypes.windll.kernel32.PeekNamedPipe(standard_input, None, 0, None, None, None):
                time.sleep(0.1)
        else:
            while os.read(0, 1):
                pass
        for _ in range(5):  # a profile that is written meanwhile
            shutil.rmtree(str(scratch), ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def driver() -> dict[str, Any]:
    """Return the replies of the driver's library, and its GPUs."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    answer: dict[str, Any] = {"library": None, "cuda": None, "init": None, "gpus": []}
    version = ctypes.c_int(0)
    try:
        library = ctypes.CDLL(name)
        status = library.cuDriverGetVersion(ctypes.byref(version))
        report("doing", what="cuInit")
        faulthandler.dump_traceback_later(WEDGED, exit=True)
        answer["init"] = library.cuInit(0)
        if answer["init"] == 0:
            answer["gpus"] = gpus(library)
        faulthandler.cancel_dump_traceback_later()
    except (OSError, AttributeError) as error:
        return dict(answer, error=str(error))
    stem = name.partition(".")[0] + "."
    paths = (path for path in libraries.mapped() if Path(path).name.lower().startswith(stem))
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return dict(answer, library=next(paths, name), cuda=None if status else cuda, error=None)


def gpus(library: ctypes.CDLL) -> list[dict[str, Any]]:
    """Return the GPUs that this process may use, in the order that onnxruntime counts them."""
    rows = []
    number, device = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDeviceGetCount(ctypes.byref(number))
    for index in range(number.value):
        name = ctypes.create_string_buffer(256)
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        library.cuDeviceGet(ctypes.byref(device), index)
        library.cuDeviceGetName(name, len(name), device)
        library.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        library.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        capability = f"{major.value}.{minor.value}"
        rows.append({"index": index, "name": name.value.decode(), "capability": capability})
    return rows


def chosen(machine: list[dict[str, Any]], ignored: list[str]) -> list[tuple[str | None, int]]:
    """Return one GPU of each kind, by name and index; None and 0 where there is none."""
    kinds: dict[str, int] = {}
    for gpu in machine:
        if gpu["capability"] not in ignored:
            kinds.setdefault(f"{gpu['name']} ({gpu['capability']})", gpu["index"])
    return list(kinds.items()) or [(None, 0)]


def preload(onnxruntime: ModuleType) -> None:
    """Call `preload_dlls` where it exists, as documented for NVIDIA's wheels."""
    if hasattr(onnxruntime, "preload_dlls"):
        report("doing", what="preload_dlls")
        try:
            onnxruntime.preload_dlls(directory="")
            report("preloaded", error=None)
        except Exception as error:  # noqa: BLE001 - an answer like every other
            report("preloaded", error=short(error))


def short(error: BaseException) -> str:
    """Return the error as one line."""
    return " ".join("".join(traceback.format_exception_only(type(error), error)).split())


def milliseconds(begin: float, digits: int = 4) -> float:
    """Return the time since `begin`."""
    return round((time.perf_counter() - begin) * 1000, digits)


def read_profile(file: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the events of a profile, and how many nodes have a name that breaks its JSON.

    Where one does, or pretends to be more events, each event is read by itself, with its name as it
    stands: they begin with the number of this process, which no model knows. What cannot be read
    even so is left out. Raises ValueError where no name is to blame.
    """
    text = file.read_text("utf-8", "replace")
    found = read_events(text)
    process = re.search(r'"pid" ?: ?(\d+)', text)
    if isinstance(found, list) and all(
        isinstance(row, dict) and row.get("pid") == (process and int(process[1])) for row in found
    ):
        return found, 0
    begin = rf',\s*(?=\{{"cat" : "\w+","pid" :{process and process[1]},)'
    events, broken = [], set()
    for part in re.split(begin, text.strip().lstrip("[").rstrip("]")):
        event = read_events(part)
        if event is None:
            event = read_events(_EVENT.sub(lambda row: row[1] + quoted(row[2]) + row[3], part))
            broken |= {bare_name(event)} if event else set()
        events += [event] if event else []
    if not broken:
        raise ValueError("no profile")
    return events, len(broken)


def read_events(text: str) -> Any:  # noqa: ANN401
    """Return what the JSON `text` holds; None where it is none, or an event has a key twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if "cat" in made and len(made) < len(pairs):
            raise ValueError(pairs)
        return made

    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text, object_pairs_hook=once)
    return None


def bare_name(event: dict[str, Any]) -> str:
    """Return the name of a node, of which a profile says several things in each run."""
    return re.sub(r"_(kernel_time|fence_\w+)$", "", event["name"])


def quoted(name: str) -> str:
    """Return a name as it stands in JSON."""
    return json.dumps(name, ensure_ascii=False)[1:-1]
