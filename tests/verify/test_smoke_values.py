"""What the smoke test said, as values: what counts as right, and each line of the evidence."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.verify.smoke_output import NeededLibrary, SmokeResult, parse_smoke_output
from ortgpu_fix.verify.verification import GPU, ModelRun, PlacedNode, TorchResult, TorchRun

CPU = "CPUExecutionProvider"
NOTHING = parse_smoke_output("", "")


def placed(nodes: tuple[tuple[str, str], ...]) -> tuple[PlacedNode, ...]:
    return tuple(PlacedNode(*node) for node in nodes)


@pytest.mark.parametrize(
    ("nodes", "on_gpu"),
    [
        ((("Conv", GPU),), True),
        ((("Conv", GPU), ("MemcpyToHost", CPU)), True),
        ((("Conv", GPU), ("Relu", CPU)), False),
        ((("Conv", CPU),), False),
        ((("MemcpyToHost", GPU),), False),
        ((), False),
    ],
)
def test_a_model_ran_on_the_gpu_where_every_node_but_the_copies_did(
    nodes: tuple[tuple[str, str], ...], *, on_gpu: bool
) -> None:
    assert ModelRun(name="conv", nodes=placed(nodes)).ran_on(GPU) is on_gpu


def test_a_model_that_ran_is_told_with_its_nodes_and_its_times() -> None:
    nodes = placed((("Conv", GPU), ("Relu", CPU)))
    run = ModelRun(
        name="conv",
        gpu="A10 (8.6)",
        nodes=placed(nodes),
        deviation=0.5,
        first_ms=12.0,
        second_ms=0.2,
    )

    assert run.lines() == [
        f"conv on A10 (8.6): Conv on {GPU}, Relu on {CPU}; off by 0.5; 12.0 ms, then 0.2 ms"
    ]
    assert ModelRun(name="fft").label == "fft"


def test_of_an_error_what_cuda_says_is_told_else_its_beginning() -> None:
    cuda = "RuntimeError: x.cc:12 CUDA failure 35: driver is insufficient ; GPU=0 ; hostname=b"
    long = "".join(f"{number:03}," for number in range(200))

    assert ModelRun(name="fft", error=cuda).lines() == [
        "fft: CUDA failure 35: driver is insufficient"
    ]
    assert ModelRun(name="fft", error=long).lines() == [f"fft: {long[:400]}"]
    assert ModelRun(name="fft").lines() == []


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
        ("nvml.dll", "not found", True),
        ("nvapi64.dll", "not found", True),
        ("libx.so", "libx.so: cannot open shared object file", False),
    ],
)
def test_whether_a_library_lacks_the_driver(name: str, error: str | None, *, driver: bool) -> None:
    assert NeededLibrary(name=name, error=error, helped=False, optional=False).driver is driver


@pytest.mark.parametrize(
    ("product", "convolution", "error", "right"),
    [
        (0.0, 1e-3, None, True),
        (1e-3, 0.0, None, True),
        (1.1e-3, 0.0, None, False),
        (0.0, 1.1e-3, None, False),
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


def test_torch_is_told_for_each_gpu() -> None:
    runs = (
        TorchRun(gpu="A10", product=0.1, convolution=0.2, error=None),
        TorchRun(gpu="T4", product=None, convolution=None, error="no kernel"),
    )

    assert TorchResult(error=None, unavailable=None, runs=runs).lines() == [
        "torch on A10: product off by 0.1, convolution by 0.2",
        "torch on T4: no kernel",
    ]
    assert TorchResult(error=None, unavailable="no driver", runs=runs).lines() == [
        "torch uses no GPU: no driver"
    ]
    assert TorchResult(error="libc10.so", unavailable="x", runs=runs).lines() == [
        "torch cannot be imported: libc10.so"
    ]


def result(**values: Any) -> SmokeResult:
    whole = {name: getattr(NOTHING, name) for name in SmokeResult.__slots__}
    return SmokeResult(**{**whole, **values})


def needed(
    name: str, error: str | None = "x", *, helped: bool = False, optional: bool = False
) -> NeededLibrary:
    return NeededLibrary(name=name, error=error, helped=helped, optional=optional)


def test_what_is_absent_is_what_is_required_and_not_the_driver_s() -> None:
    rows = (
        needed("libcudnn.so.9"),
        needed("libcufft.so.11", optional=True),
        needed("libcuda.so.1"),
        needed("libcublas.so.12", None, helped=True),
    )
    found = result(needed=rows)

    assert [row.name for row in found.absent] == ["libcudnn.so.9"]
    assert found.helped == ("libcublas.so.12",)
    assert found.lines() == ["libcudnn.so.9: x", "libcufft.so.11: x", "libcuda.so.1: x"]


def test_every_step_has_its_line() -> None:
    torch = TorchResult(error="gone", unavailable=None, runs=())
    found = result(
        version="1.26.0",
        origin="/x/__init__.py",
        driver_library="/usr/lib/libcuda.so.1",
        driver_cuda="12.4",
        driver_init=0,
        visible="",
        preload_error="no such option",
        needed=(needed("libcudnn.so.9"),),
        models=(ModelRun(name="conv", error="no"), ModelRun(name="fft", error="neither")),
        torch=torch,
    )

    assert found.lines() == [
        "onnxruntime 1.26.0 from /x/__init__.py",
        "driver: /usr/lib/libcuda.so.1, CUDA 12.4, cuInit 0",
        "CUDA_VISIBLE_DEVICES=''",
        "preload_dlls: no such option",
        "libcudnn.so.9: x",
        "conv: no",
        "fft: neither",
        "torch cannot be imported: gone",
    ]
    failed = result(version="1.26.0", import_error="no", driver_library="l", driver_error="late")
    assert failed.lines() == ["onnxruntime cannot be imported: no", "driver: late"]
    assert NOTHING.lines() == []
