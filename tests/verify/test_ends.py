"""How a process that did not come to its own end is told."""

from __future__ import annotations

import json

import pytest
from told import values_of

from ortgpu_fix.verify.verdict import describe_end, judge, last_words

WATCHDOG = "Timeout (0:00:20)!\nThread 0x1 (most recent call first):\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (-11, "SIGSEGV"),
        (-9, "SIGKILL"),
        (-999, "signal 999"),
        (0, "exit code 0"),
        (1, "exit code 1"),
        (2**31 - 1, "exit code 2147483647"),
        (2**31, "exit code 0x80000000"),  # Windows writes its own in hexadecimal
        (0xC0000005, "exit code 0xc0000005"),
    ],
)
def test_an_end(code: int, said: str) -> None:
    assert describe_end(code) == said


@pytest.mark.parametrize(
    ("step", "log", "timed_out", "note"),
    [
        ("cuInit", WATCHDOG, False, "timed-out"),  # its own watchdog ends a driver that hangs
        ("cuInit", "", True, "timed-out"),
        ("import onnxruntime", "", True, "timed-out"),
        ("cuInit", "", False, None),
        ("import onnxruntime", WATCHDOG, False, None),  # a program may print what it likes
        ("cuInit", "a Timeout (0:00:20)", False, None),
    ],
)
def test_a_time_limit(step: str, log: str, *, timed_out: bool, note: str | None) -> None:
    doing = json.dumps({"event": "doing", "what": step})
    found = judge(stdout=doing, stderr=log, returncode=1, timed_out=timed_out, driver=None)

    assert found.verdict == "crashed"
    assert [(row.code, values_of(row)) for row in found.notes] == (
        [(note, {"step": step})] if note else []
    )
    assert any(f"{step}: ended by exit code 1" in line for line in found.evidence) is not bool(note)


DUMP = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1:\n  File a.py, line 3\n"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (
            "Traceback:\n  File a\nModuleNotFoundError: No module named 'numpy'\n\n",
            "ModuleNotFound",
        ),
        ("terminate called\n  what():  \x1b[31mno \x07room\x1b[m\n" + DUMP, "what():  no room"),
        (DUMP, "Fatal Python error: Segmentation fault"),
        ("no\n2026 [I:onnxruntime:Default, a.cc:1 b] chatter\n", "no"),
        ("x" * 500, "x" * 400),
    ],
)
def test_the_last_line_of_a_child_that_ended_is_shown(log: str, line: str) -> None:
    doing = json.dumps({"event": "doing", "what": "import onnxruntime"})
    found = judge(stdout=doing, stderr=log, returncode=-11, timed_out=False, driver=None)

    assert found.evidence[-2] == "import onnxruntime: ended by SIGSEGV"
    assert found.evidence[-1].startswith(f"it printed last: {line}")
    assert len(found.evidence[-1]) <= 400 + len("it printed last: ")
    assert found.evidence[-1].isprintable()


def test_what_the_console_alone_says_of_an_import_that_failed_is_shown() -> None:
    """numpy's own words: onnxruntime says that numpy failed, and no more."""
    build = {"event": "onnxruntime", "whole": False, "error": "ImportError: import numpy failed"}
    log = "ImportError: /lib/libnpymath.so: undefined symbol: crealf\n"

    found = judge(stdout=json.dumps(build), stderr=log, returncode=0, timed_out=False, driver=None)

    assert found.verdict == "crashed"
    assert found.evidence[-1] == f"it printed last: {log.strip()}"


def test_a_silent_child_has_no_last_line() -> None:
    assert last_words("\n \n") == []
