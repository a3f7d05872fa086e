"""onnxruntime and torch in one process, from values: who is at fault, and what is told."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

from ortgpu_fix.plan.reasons import Reason, reason
from ortgpu_fix.verify.torch_verdict import combine, needs_torch_alone, needs_torch_check
from ortgpu_fix.verify.verification import (
    CheckedTorch,
    TorchResult,
    TorchRun,
    Verification,
    VerificationVerdict,
    verification_exit_code,
)

FINE = TorchRun(gpu="A10", product=0.0, convolution=0.0, error=None)
WORKS = TorchResult(error=None, unavailable=None, runs=(FINE,))
BROKEN = TorchResult(error="libc10.so: no", unavailable=None, runs=())
NO_GPU = TorchResult(error=None, unavailable="no driver", runs=())
IDLE = TorchResult(error=None, unavailable=None, runs=())
TWICE = Reason(code="library-twice", values=(("library", "libcudnn.so.9"),))


def seen(verdict: VerificationVerdict = "works", **more: Any) -> Verification:
    values: dict[str, Any] = {"build": CheckedTorch(version="2.10.0", cuda="12.8"), **more}
    return Verification(verdict=verdict, **values)


ALONE = seen(values=(("x", "y"),), evidence=("driver",), notes=(TWICE,))


def told(found: Verification) -> list[tuple[str, dict[str, str]]]:
    return [(note.code, values_of(note)) for note in found.notes]


@pytest.mark.parametrize(
    ("verdict", "checked"),
    [
        *(("works", True), ("no-gpu", True), ("no-driver", True), ("driver-too-old", True)),
        *(("cpu-fallback", False), ("crashed", False), ("library-missing", False)),
    ],
)
def test_torch_is_checked_where_onnxruntime_does_what_it_can(
    verdict: VerificationVerdict, *, checked: bool
) -> None:
    assert needs_torch_check(seen(verdict)) is checked
    assert not needs_torch_check(seen(verdict, build=None))


@pytest.mark.parametrize(
    ("both", "needed"),
    [
        (seen(torch=WORKS), False),
        (seen("crashed", torch=WORKS), True),
        (seen(torch=BROKEN), True),
        (seen(torch=NO_GPU), True),
        (seen(), False),
    ],
)
def test_torch_is_checked_alone_where_something_failed_beside_it(
    both: Verification, *, needed: bool
) -> None:
    fine = seen(torch=WORKS)

    assert needs_torch_alone(seen(), {"first": both, "last": fine}) is needed
    assert needs_torch_alone(seen(), {"first": fine, "last": both}) is needed


def test_where_both_work_the_rest_stays_as_it_was() -> None:
    found = combine(ALONE, {"first": seen(torch=WORKS), "last": seen(torch=WORKS)})

    assert (found.verdict, found.values) == ("works", ALONE.values)
    assert told(found) == [
        ("library-twice", {"library": "libcudnn.so.9"}),
        ("torch-works", {"version": "2.10.0"}),
    ]
    assert found.evidence == (
        "driver",
        "torch imported first: torch on A10: product off by 0.0, convolution by 0.0",
        "torch imported last: torch on A10: product off by 0.0, convolution by 0.0",
    )
    assert [order for order, _ in found.orders] == ["first", "last"]
    assert verification_exit_code(found) == 0


def test_a_conflict_names_the_order_and_what_failed() -> None:
    crashed = seen("crashed", evidence=("inference: SIGSEGV",), notes=(TWICE,))
    found = combine(
        ALONE, {"first": seen(torch=BROKEN), "last": crashed, "alone": seen(torch=WORKS)}
    )

    assert (found.verdict, found.values) == ("torch-conflict", (("version", "2.10.0"),))
    assert told(found) == [
        ("library-twice", {"library": "libcudnn.so.9"}),
        ("torch-first-fails", {"what": "torch cannot be imported: libc10.so: no"}),
        ("torch-last-fails", {"what": "onnxruntime: crashed (inference: SIGSEGV)"}),
    ]
    assert found.evidence[1:] == (
        "torch imported first: torch cannot be imported: libc10.so: no",
        "torch imported last: onnxruntime: crashed",
    )
    assert verification_exit_code(found) == 6


def test_what_a_library_that_is_there_twice_says_is_said_once() -> None:
    found = combine(
        seen(), {"first": seen(torch=WORKS, notes=(TWICE,)), "last": seen(notes=(TWICE,))}
    )

    assert [code for code, _ in told(found)] == ["torch-works", "library-twice"]


@pytest.mark.parametrize(
    ("alone", "defect"),
    [
        (seen(torch=BROKEN), "torch cannot be imported: libc10.so: no"),
        (seen(torch=NO_GPU), "torch uses no GPU: no driver"),
        (seen(torch=IDLE), "torch computed nothing"),
        (seen("crashed", evidence=("start", "import torch: SIGKILL")), "import torch: SIGKILL"),
        (seen("crashed"), "torch ended the process"),
    ],
)
def test_a_torch_that_is_broken_by_itself_is_no_conflict(alone: Verification, defect: str) -> None:
    orders = {"first": seen(torch=alone.torch), "last": seen(torch=WORKS), "alone": alone}
    found = combine(ALONE, orders)  # type: ignore[arg-type]

    assert found.verdict == "works"
    assert told(found)[1:] == [("torch-broken", {"version": "2.10.0", "what": defect})]


@pytest.mark.parametrize(
    ("first", "conflict"),
    [
        (seen("crashed", torch=WORKS), True),  # torch was imported, and onnxruntime failed
        (seen("crashed", torch=BROKEN), False),
        (seen("crashed"), False),
        (seen("works", torch=NO_GPU), False),
    ],
)
def test_beside_a_broken_torch_a_conflict_needs_one_that_was_imported(
    first: Verification, *, conflict: bool
) -> None:
    orders = {"first": first, "last": seen(torch=WORKS), "alone": seen(torch=NO_GPU)}

    found = combine(ALONE, orders)  # type: ignore[arg-type]

    assert (found.verdict == "torch-conflict") is conflict


def test_without_a_gpu_as_far_as_that_goes() -> None:
    alone = seen("no-gpu")
    found = combine(alone, {"first": seen("no-gpu", torch=NO_GPU), "last": seen("no-gpu")})

    assert (found.verdict, told(found)) == ("no-gpu", [("torch-loads", {"version": "2.10.0"})])
    assert verification_exit_code(found) == 6
    assert verification_exit_code(found, elsewhere=True) == 0
    crashed = combine(alone, {"first": seen("crashed"), "last": seen("no-gpu")})
    assert told(crashed) == [("torch-first-fails", {"what": "onnxruntime: crashed"})]


@pytest.mark.parametrize(
    ("evidence", "said"),
    [(("first", "SIGSEGV"), "SIGSEGV"), ((), "torch ended the process")],
)
def test_a_torch_that_ends_every_process(evidence: tuple[str, ...], said: str) -> None:
    """The last that was seen of it; where nothing was, that it is so."""
    ended = seen("crashed", evidence=evidence)
    found = combine(seen(), {"alone": ended, "first": ended, "last": ended})

    [note] = found.notes
    assert note == reason("torch-broken", version="2.10.0", what=said)
    assert found.verdict == "works"  # what is wrong is torch alone
