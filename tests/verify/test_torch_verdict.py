"""onnxruntime and torch in one process: what is proven, and whose fault it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from told import values_of

from ortgpu_fix.verify.torch_verdict import Order, combine, needs_torch_alone, needs_torch_check
from ortgpu_fix.verify.verdict import judge
from ortgpu_fix.verify.verification import Verification, verification_exit_code

CUDA = "CUDAExecutionProvider"
NO_GPU = "CUDA failure 100: no CUDA-capable device is detected ; GPU=-1"
GONE = "RuntimeError: Found no NVIDIA driver on your system."
CARD = "NVIDIA A100 (8.0)"


def onnxruntime(error: str | None = None) -> list[dict[str, Any]]:
    build = {"file": "/env/onnxruntime/__init__.py", "version": "1.26.0", "cuda": "12.8"}
    nodes = [] if error else [{"op": "Conv", "provider": CUDA}]
    deviation = None if error else 0.0
    return [
        {"event": "onnxruntime", **build, "error": None, "whole": True},
        {"event": "doing", "what": "inference", "model": "conv"},
        {"event": "model", "name": "conv", "nodes": nodes, "deviation": deviation, "error": error},
    ]


def torch(
    *runs: dict[str, Any], error: str | None = None, unavailable: str | None = None
) -> list[dict[str, Any]]:
    rows = [{"event": "torch", "error": error, "unavailable": unavailable}]
    return rows + [{"event": "torch-run", "gpu": CARD, **run} for run in runs]


RIGHT = {"product": 0.0, "convolution": 1e-6, "error": None}
ON_GPU, NO_DEVICE = onnxruntime(), onnxruntime(NO_GPU)
WORKS, WITHOUT_GPU = torch(RIGHT), torch(unavailable=GONE)


def seen(
    *parts: list[dict[str, Any]],
    end: bool = True,
    returncode: int = 0,
    cuda: str | None = "12.8",
    libraries: tuple[str, ...] = (),
) -> Verification:
    rows = [{"event": "driver", "library": "libcuda.so.1", "cuda": "12.8", "init": 0}]
    rows += [{"event": "torch-found", "version": "2.10.0", "cuda": cuda}]
    rows += [row for part in parts for row in part]
    listed = [{"name": path.rpartition("/")[2], "path": path} for path in libraries]
    rows += [{"event": "loaded", "libraries": listed}]
    rows += [{"event": "end"}] if end else []
    stdout = "\n".join(json.dumps(row) for row in rows)
    return judge(stdout=stdout, stderr="", returncode=returncode, timed_out=False, driver=None)


def both(
    alone: Verification, first: Verification, last: Verification, own: Verification | None = None
) -> Verification:
    orders: dict[Order, Verification] = {"first": first, "last": last}
    assert needs_torch_alone(alone, orders) is (own is not None)
    if own is not None:
        orders["alone"] = own
    return combine(alone, orders)


def said(found: Verification) -> list[tuple[str, str | None]]:
    return [(note.code, values_of(note).get("what")) for note in found.notes]


@pytest.mark.parametrize(
    ("alone", "wanted"),
    [
        (seen(ON_GPU), True),
        (seen(NO_DEVICE), True),
        (seen(ON_GPU, cuda=None), False),
        (seen(onnxruntime("an error"), cuda="12.8"), False),
    ],
)
def test_torch_is_looked_at_where_it_is_for_cuda_and_onnxruntime_does_what_it_can(
    alone: Verification, *, wanted: bool
) -> None:
    assert needs_torch_check(alone) is wanted


def test_both_work_in_both_orders() -> None:
    found = both(seen(ON_GPU), seen(WORKS, ON_GPU), seen(ON_GPU, WORKS))

    assert (found.verdict, verification_exit_code(found)) == ("works", 0)
    assert said(found) == [("torch-works", None)]
    assert found.evidence[-1] == (
        f"torch imported last: torch on {CARD}: product off by 0.0, convolution by 1e-06"
    )


def test_without_a_gpu_as_far_as_that_goes() -> None:
    found = both(seen(NO_DEVICE), seen(WITHOUT_GPU, NO_DEVICE), seen(NO_DEVICE, WITHOUT_GPU))

    assert (found.verdict, verification_exit_code(found, elsewhere=True)) == ("no-gpu", 0)
    assert said(found) == [("torch-loads", None)]
    assert found.evidence[-1] == f"torch imported last: torch uses no GPU: {GONE}"


def test_onnxruntime_that_fails_once_torch_is_there() -> None:
    mixed = onnxruntime("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH")
    found = both(seen(ON_GPU), seen(WORKS, mixed), seen(ON_GPU, WORKS), seen(WORKS))

    assert (found.verdict, verification_exit_code(found, elsewhere=True)) == ("torch-conflict", 6)
    [(code, what)] = said(found)
    assert code == "torch-first-fails"
    assert what is not None
    assert what.startswith("onnxruntime: crashed (")


@pytest.mark.parametrize(
    ("product", "convolution", "said_of_it"),
    [
        (0.7, 0.0, "product off by 0.7, convolution by 0.0"),
        (0.0, 0.7, "product off by 0.0, convolution by 0.7"),
        (0.0, None, "product off by 0.0, convolution by None"),
    ],
)
def test_torch_that_fails_once_onnxruntime_is_there(
    product: float, convolution: float | None, said_of_it: str
) -> None:
    wrong = torch({"product": product, "convolution": convolution, "error": None})
    found = both(seen(ON_GPU), seen(WORKS, ON_GPU), seen(ON_GPU, wrong), seen(WORKS))

    assert found.verdict == "torch-conflict"
    assert said(found) == [("torch-last-fails", f"torch on {CARD}: {said_of_it}")]


def test_a_process_that_torch_ends_after_onnxruntime() -> None:
    importing = [{"event": "doing", "what": "import torch"}]
    crash = seen(ON_GPU, importing, end=False, returncode=-11)
    found = both(seen(ON_GPU), seen(WORKS, ON_GPU), crash, seen(WORKS))

    assert found.verdict == "torch-conflict"
    assert said(found) == [
        ("torch-last-fails", "onnxruntime: crashed (import torch: ended by SIGSEGV)")
    ]


BROKEN = torch(error="ImportError: libcusparseLt.so.0: cannot open shared object file")
NO_KERNEL = torch({"product": None, "convolution": None, "error": "no kernel image"})


@pytest.mark.parametrize(
    ("trouble", "what"),
    [
        (BROKEN, "torch cannot be imported: ImportError: libcusparseLt.so.0: cannot open"),
        (WITHOUT_GPU, f"torch uses no GPU: {GONE}"),
        (NO_KERNEL, f"torch on {CARD}: no kernel image"),
        (torch(), "torch computed nothing"),
    ],
)
def test_what_torch_cannot_do_by_itself_is_not_the_pair_s_fault(
    trouble: list[dict[str, Any]], what: str
) -> None:
    found = both(seen(ON_GPU), seen(trouble, ON_GPU), seen(ON_GPU, trouble), seen(trouble))

    assert (found.verdict, verification_exit_code(found)) == ("works", 0)
    [(code, words)] = said(found)
    assert code == "torch-broken"
    assert words is not None
    assert words.startswith(what)


def test_a_torch_that_ends_every_process_is_broken_by_itself() -> None:
    importing = [{"event": "doing", "what": "import torch"}]
    crash = seen(importing, end=False, returncode=-11)
    late = seen(ON_GPU, importing, end=False, returncode=-11)
    found = both(seen(ON_GPU), crash, late, crash)

    assert found.verdict == "works"
    assert said(found) == [("torch-broken", "import torch: ended by SIGSEGV")]


def test_a_torch_that_is_broken_and_disturbs_onnxruntime_besides() -> None:
    mixed = onnxruntime("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH")
    found = both(seen(ON_GPU), seen(NO_KERNEL, mixed), seen(ON_GPU, NO_KERNEL), seen(NO_KERNEL))

    assert found.verdict == "torch-conflict"
    assert [code for code, _ in said(found)] == ["torch-first-fails"]


def test_a_release_that_ends_its_process_where_no_driver_is_says_nothing_of_torch() -> None:
    """1.18 to 1.22 do, alone as beside torch: torch, imported after it, is never reached."""
    rows = [row for row in onnxruntime() if row["event"] != "model"]
    old = [{"event": "driver", "library": None, "cuda": None, "error": "libcuda.so.1: cannot"}]
    alone = seen(old, rows, end=False, returncode=-11)
    found = both(alone, seen(old, WITHOUT_GPU, rows, end=False, returncode=-11), alone)

    assert found.verdict == "no-driver"
    assert ("torch-loads", None) in said(found)
    assert "torch imported last: onnxruntime: no-driver" in found.evidence
