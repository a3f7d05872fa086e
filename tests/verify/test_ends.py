"""How a process that did not come to its own end is told."""

from __future__ import annotations

import json

import pytest
from smoke_said import IMPORTED, NUMPY
from told import values_of

from ortgpu_fix.verify.verdict import judge
from ortgpu_fix.verify.verification import Verification

WATCHDOG = "Timeout (0:00:20)!\nThread 0x1 (most recent call first):\n"


@pytest.mark.parametrize(
    ("step", "log", "timed_out", "note"),
    [
        ("cuInit", WATCHDOG, False, "timed-out"),
        ("cuInit", "", True, "timed-out"),
        ("import onnxruntime", "", True, "timed-out"),
        ("import onnxruntime", WATCHDOG, False, None),
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
        ("a.py:69: UserWarning: no GPU\n  warnings.warn(\n" + DUMP, "a.py:69: UserWarning: no GPU"),
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


BUILT = {"event": "onnxruntime", "whole": True, "error": None}
NO_DRIVER = {"event": "driver", "library": None, "error": "libcuda.so.1: cannot open"}
LINKED = {"name": "libcublas.so.12", "error": None, "helped": None, "optional": False}


def ended(*events: dict[str, object], log: str, step: str = "inference") -> Verification:
    rows = (NO_DRIVER, BUILT, *events, {"event": "doing", "what": step})
    stdout = "\n".join(map(json.dumps, rows))
    return judge(stdout=stdout, stderr=log, returncode=-11, timed_out=False, driver=None)


@pytest.mark.parametrize("step", ["inference", "import onnxruntime"])
def test_numpy_2_is_to_blame_where_it_says_so_of_onnxruntime(step: str) -> None:
    """Of a build for the GPU too: no driver would help."""
    found = ended({"event": "needed", "cuda": "12"}, log=NUMPY.format(IMPORTED), step=step)

    assert (found.verdict, [row.code for row in found.notes]) == ("crashed", ["numpy-too-new"])
    assert values_of(found.notes[0]) == {"version": "2.2.6"}
    assert found.evidence[-2] == (
        f"{step}: ended by SIGSEGV; A module that was compiled using NumPy 1.x cannot be run in "
        "NumPy 2.2.6 as it may crash"
    )


@pytest.mark.parametrize(
    "log", [NUMPY.format("from torch._C import *"), f"{IMPORTED}\n", f"{IMPORTED}\n" + NUMPY]
)
def test_numpy_2_is_not_to_blame_for_what_it_says_of_another_module(log: str) -> None:
    found = ended({"event": "needed", "cuda": "12"}, log=log)

    assert (found.verdict, [row.code for row in found.notes]) == (
        *("no-driver", ["crash-without-driver"]),
    )


@pytest.mark.parametrize(
    ("needed", "verdict"),
    [
        ({"cuda": None, "libraries": []}, "crashed"),
        ({"cuda": "12", "libraries": []}, "no-driver"),
        ({"cuda": None, "libraries": [LINKED]}, "no-driver"),
    ],
)
def test_no_driver_explains_the_crash_of_a_build_for_the_gpu_alone(
    needed: dict[str, object], verdict: str
) -> None:
    found = ended({"event": "needed", **needed}, log="")

    assert found.verdict == verdict
    assert bool(found.notes) is (verdict == "no-driver")
    assert found.evidence[-1] == "inference: ended by SIGSEGV"


def test_a_crash_before_any_inference_is_not_put_down_to_the_driver() -> None:
    found = ended({"event": "needed", "cuda": "12"}, log="", step="preload_dlls")

    assert (found.verdict, found.notes) == ("crashed", ())
