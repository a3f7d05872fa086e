"""What is reported of a session that is made: what it asked for, who made it, and what it got."""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH100, PTH120
from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
import weakref

from .reporting import HOOK, milliseconds, replace, said
from .standard_error import WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LOADER = os.sep + "_ortgpu_fix_libraries" + os.sep
"""In the path of what `--apply` installs: it passes on what others ask for."""
PLAIN = {"CPUExecutionProvider", "AzureExecutionProvider"}
MOST_FRAMES = 30
MAKING = threading.local()
"""The errors of the session that this thread makes: onnxruntime tries another one without CUDA."""


def frames(skipped: str) -> list[list[Any]]:
    """Return who called: file, line, function and module, of each file the innermost."""
    found: dict[str, list[Any]] = {}
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while frame is not None and len(found) < MOST_FRAMES:
        file = frame.f_code.co_filename
        ours = os.path.dirname(file) == HOOK or LOADER in file
        if not (ours or file.startswith((skipped, "<frozen")) or file in found):
            place = os.path.abspath(file) if file[:1] != "<" else file
            name = frame.f_code.co_name
            found[file] = [place, frame.f_lineno, name, frame.f_globals.get("__name__")]
        frame = frame.f_back
    return list(found.values())


def wants_more(asked: list[list[Any]] | None) -> bool:
    """Return whether more than the CPU is asked for."""
    return any(name not in PLAIN for name, _ in asked or ())


@contextlib.contextmanager
def reported(values: dict[str, Any], *, listen: bool) -> Iterator[dict[str, Any]]:
    """Report of the session that is made meanwhile its time, words and errors."""
    errors: list[str] = []
    MAKING.errors = errors
    begin = WORDS.begin() if listen else None
    start = time.perf_counter()
    try:
        yield values
    except Exception as error:
        values["error"] = said(error)
        raise
    finally:
        values["ms"] = milliseconds(time.perf_counter() - start)
        values["words"] = WORDS.end(begin)
        values["errors"] = errors


def got(session: Any) -> dict[str, Any]:
    """Return what a session got, and the options of its providers."""
    names = [str(name) for name in session.get_providers()]
    options = {}
    with contextlib.suppress(Exception):
        every = session.get_provider_options()
        options = {name: dict(every.get(name, {})) for name in names if name not in PLAIN}
    return {"got": names, "options": options}


def model_of(model: Any) -> dict[str, Any]:
    """Return the name of a model, or how long the bytes are that it was given as."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return {"model": None, "bytes": len(model)}
    return {"model": os.path.abspath(os.fsdecode(model))}


HELD: weakref.WeakKeyDictionary[Any, list[list[Any]] | None] = weakref.WeakKeyDictionary()
"""The providers, or the policy, that settings hold; the libraries do not return them."""


def holding(change: Callable[..., list[list[Any]] | None], original: Any) -> Any:
    """Return a function of settings that keeps what they hold after it."""

    def hold(self: Any, *given: Any, **named: Any) -> Any:
        result = original(self, *given, **named)
        with contextlib.suppress(Exception):
            HELD[self] = change(HELD.get(self) or [], *given)
        return result

    return hold


def hold(kind: Any, **changes: Callable[..., list[list[Any]] | None]) -> None:
    """Look at what settings hold: each function of theirs, and what they hold after it."""
    for name, change in changes.items():
        if hasattr(kind, name):
            replace(kind, name, functools.partial(holding, change))
