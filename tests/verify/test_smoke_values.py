"""What the smoke test said, as values: what counts as right, and each line of the evidence."""

from __future__ import annotations

import pytest

from ortgpu_fix.verify.smoke_output import NeededLibrary
from ortgpu_fix.verify.verification import TorchResult, TorchRun


@pytest.mark.parametrize(
    ("name", "error", "driver"),
    [
        ("libcuda.so.1", "libcuda.so.1: cannot open shared object file", True),
        ("libcuda.so.1", None, False),
        ("libx.so", "libcuda.so.1: cannot open shared object file", True),
        ("libx.so", "libnvidia-ml.so.1: cannot open shared object file", True),
        ("libx.so", "libx.so: undefined symbol: cuGetProcAddress_v2", True),
        ("libx.so", "libx.so: undefined symbol: other", False),
        ("nvcuda.dll", "not found", True),
        ("libx.so", "libx.so: cannot open shared object file", False),
    ],
)
def test_whether_a_library_lacks_the_driver(name: str, error: str | None, *, driver: bool) -> None:
    assert NeededLibrary(name=name, error=error, helped=False, optional=False).driver is driver


@pytest.mark.parametrize(
    ("product", "convolution", "error", "right"),
    [
        (0.0, 1e-3, None, True),
        (1.1e-3, 0.0, None, False),
        (None, 0.0, None, False),
        (0.0, None, None, False),
        (0.0, 0.0, "no", False),
    ],
)
def test_torch_is_right_where_both_results_are(
    product: float | None, convolution: float | None, error: str | None, *, right: bool
) -> None:
    run = TorchRun(gpu="A10", product=product, convolution=convolution, error=error)
    fine = TorchRun(gpu="T4", product=0.0, convolution=0.0, error=None)

    assert run.correct is right
    assert TorchResult(error=None, unavailable=None, runs=(fine, run)).works is right
    assert not TorchResult(error=None, unavailable=None, runs=()).works
