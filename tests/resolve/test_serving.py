"""What an installed set can serve, on the invented matrix: read off its rows by hand."""

from __future__ import annotations

import synthetic
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.matrix.torch import PypiWheel, TorchBuild, TorchTable
from ortgpu_fix.resolve.serving import Serving, serving

KNOWN = ("12.0", "5.2", "7.0", "7.5", "9.0", "10.0")
MATRIX = synthetic.matrix()


def of(*packages: str, matrix: Matrix = MATRIX, **more: object) -> Serving:
    return serving(synthetic.facts(*packages, **more), matrix, KNOWN)


def test_the_build_alone() -> None:
    """1.26 carries 6.0 to 9.0, and PTX 9.0, which newer GPUs compile."""
    assert of("onnxruntime-gpu 1.26.0") == Serving(
        release="1.26.0",
        cuda="12",
        driver="525.60.13",
        gpus=("7.0", "7.5", "9.0", "10.0", "12.0"),
        cudnn="9",
        size=300_000_000,
        consumers=(),
    )


def test_the_wheels_limit_the_gpus() -> None:
    """cuDNN 9.28 dropped 7.0, and has machine code for no 10.0; PTX counts for neither wheel."""
    found = of(
        "onnxruntime-gpu 1.26.0",
        "nvidia-cudnn-cu12 9.28.0",
        "nvidia-cublas-cu12 12.9.1",
        "nvidia-cudnn-cu13 0.1",
    )

    assert found.gpus == ("7.5", "9.0", "12.0")
    assert found.cudnn == "9.28.0"
    assert found.size == 500_000_000


def test_torch_counts_by_its_own_code_and_wheel() -> None:
    """It has a wheel of 5 bytes for 3.11, and machine code for 8.0 and 9.0."""
    torch = TorchBuild(
        version="2.7.1",
        local="cu128",
        platform="linux_x86_64",
        cuda="13.0",
        cudnn="9.1.0",
        sass=("9.0",),
        ptx=(),
        libraries="inside",
        pins=(),
        toolkit={},
        glibc=None,
        pythons=frozenset({"cp311"}),
        wheels=(
            PypiWheel("cp310", 3, "ab", "a.whl"),
            PypiWheel("cp311", 5, "ab", "b.whl"),
            PypiWheel("py3", 7, "ab", "c.whl"),
        ),
    )
    matrix = MATRIX._replace(torch=TorchTable(builds=(torch,)))
    installed = ("onnxruntime-gpu 1.26.0", "torch 2.7.1")
    found = of(*installed, matrix=matrix)

    assert found.gpus == ("9.0",)
    assert found.size == 300_000_005
    assert found.cuda == "13"
    assert of(*installed, matrix=matrix, python="3.12.0").size == 300_000_007
    without_code = torch._replace(sass=(), wheels=())
    plain = of(*installed, matrix=MATRIX._replace(torch=TorchTable(builds=(without_code,))))
    assert (len(plain.gpus), plain.size) == (5, 300_000_000)
