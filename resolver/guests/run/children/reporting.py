"""Report what this process has seen: lines of JSON, in a file for each process.

The file is opened for each line: a program may close every file that it did not open, and a number
would then be another file's. A session is reported at once, its runs at the first one, then at most
every half second, the last of them by a thread that waits so long, and at the end.

Every module here runs in the user's Python (3.8 and newer), with the standard library alone.
Nothing raises, and nothing is written to standard output.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH100, PTH110, PTH118, PTH120
from __future__ import annotations

import _thread
import contextlib
import functools
import json
import os
import sys
import threading
import time
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HOOK = os.path.dirname(os.path.abspath(__file__))
"""The folder of the modules here."""
FOLDER = os.path.dirname(HOOK)
"""Where the files are written."""
LAST: list[Callable[[], None]] = []
"""What reports at the end of a process, in turn."""
PAUSE = 0.5
"""Seconds between two reports of a session's runs."""
KEPT = 256
"""How many times are kept of a session's later runs, the latest."""
MOST_SHAPES = 10_000


class Process:
    """The file of this process, which differs after a fork."""

    file = ""
    token = ""
    number = 0

    @classmethod
    def begin(cls) -> None:
        """Choose a file for the process that runs now."""
        cls.token = f"{os.getpid()}-{os.urandom(4).hex()}"
        cls.file = os.path.join(FOLDER, f"events-{cls.token}.jsonl")
        cls.number = 0

    @classmethod
    def next_id(cls) -> str:
        """Return a name for a session that no other one has, in any process."""
        cls.number += 1
        return f"{cls.token}-{cls.number}"


def report(event: str, **values: Any) -> None:
    """Append one event to the file of this process; the first one also sees to the last."""
    with contextlib.suppress(Exception):
        new = not os.path.exists(Process.file)
        values.update(event=event, pid=os.getpid())
        line = json.dumps(values, default=str) + "\n"
        write(Process.file, line.encode())
        if new:
            at_the_end()


def write(name: str, data: bytes) -> None:
    """Append to a file of ours."""
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def at_the_end() -> None:
    """Report the last runs when this process ends; a child of multiprocessing skips `atexit`."""
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:
        multiprocessing.Finalize(None, report_last, exitpriority=-1000)


def report_last() -> None:
    """Report what is known at the end of a process."""
    for each in LAST:
        with contextlib.suppress(Exception):
            each()


def report_library(name: str, package: Any, module: Any, **more: Any) -> None:
    """Report a library: the version of its `package`, the file of its `module`."""
    report(
        "library",
        name=name,
        version=str(getattr(package, "__version__", "")),
        file=getattr(module, "__file__", None) or next(iter(module.__path__)),
        executable=sys.executable,
        archive=archive(),
        **more,
    )


def archive() -> str | None:
    """Return the archive that this Python runs, as shiv and zipapp make them; None without one."""
    found = getattr(getattr(sys.modules.get("__main__"), "__loader__", None), "archive", None)
    return None if found is None else os.path.abspath(found)


def said(error: BaseException) -> str:
    """Return an error as a line of a log has it."""
    return f"{type(error).__name__}: {error}"[:4000]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put a function round `owner.name`, which looks like it."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


class Runs:
    """How one session ran, in this process."""

    waiting = False
    """A thread is about to report on all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shapes: set[object] = set()
        self.inputs: dict[str, list[int]] = {}
        self.threads: set[int] = set()
        self.renew()

    def renew(self) -> None:
        """Begin to count: here, or in the child of a fork, whose parent reports its own."""
        self.lock = threading.Lock()
        self.count = self.reported = 0
        self.first: float | None = None
        self.fresh: list[float] = []
        self.later: list[float] = []
        self.due = 0.0
        self.threads.clear()

    def add(self, seconds: float | None, feed: Any, now: float) -> None:
        """Count one run; `feed` holds its inputs by name. None: nobody knows them, or its time."""
        shapes = None
        if feed is not None:
            shapes = tuple([shape(value) for value in feed.values()])
        with self.lock:
            new = shapes not in self.shapes
            if new and len(self.shapes) < MOST_SHAPES:
                self.shapes.add(shapes)
                if shapes and len(self.shapes) == 1:
                    self.inputs = {str(name): list(s) for name, s in zip(feed, shapes) if s}
            times = self.fresh if new else self.later
            if not self.count:
                self.first = seconds
            elif seconds is None:
                pass
            elif len(times) < KEPT:
                times.append(seconds)
            else:
                times[self.count % KEPT] = seconds
            self.count += 1
            self.threads.add(threading.get_ident())
        if now >= self.due:
            self.report()
        elif not Runs.waiting:
            Runs.waiting = True
            _thread.start_new_thread(report_later, ())

    def report(self) -> None:
        """Report how it ran so far, where that is more than was reported."""
        with self.lock:
            if self.count == self.reported:
                return
            self.reported = self.count
            self.due = time.perf_counter() + PAUSE
            values = {
                "runs": self.count,
                "first_ms": milliseconds(self.first),
                "fresh_ms": milliseconds(median(self.fresh)),
                "later_ms": milliseconds(median(self.later)),
                "shapes": len(self.shapes - {None}),
                "inputs": self.inputs,
                "threads": len(self.threads),
            }
        report("runs", id=self.name, **values)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.report()


RUNS: weakref.WeakSet[Runs] = weakref.WeakSet()


def report_runs() -> None:
    """Report how the sessions ran so far."""
    for runs in list(RUNS):
        runs.report()


def report_later() -> None:
    """Report how the sessions ran since, for a program that is killed while it waits."""
    time.sleep(PAUSE)
    Runs.waiting = False
    with contextlib.suppress(Exception):
        report_runs()


def renew_runs() -> None:
    """Begin to count anew in the child of a fork."""
    Runs.waiting = False
    for runs in list(RUNS):
        runs.renew()


def shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an input: of an array, or of a value of onnxruntime's."""
    found = getattr(value, "shape", None)
    if type(found) is tuple:
        return found
    return tuple(found()) if callable(found) else None


def milliseconds(seconds: float | None) -> float | None:
    """Return a time as it is reported."""
    return None if seconds is None else round(seconds * 1000, 4)


def median(times: list[float]) -> float | None:
    """Return the median."""
    return sorted(times)[len(times) // 2] if times else None


LAST.append(report_runs)
