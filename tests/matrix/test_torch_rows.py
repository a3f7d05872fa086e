"""The rows of torch: what its parser makes of those on PyPI and on PyTorch's own index."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.matrix.torch import TorchBuild, TorchTable, parse

TOOLKITS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "12.8.1": (
        {
            "nvidia-cublas-cu12": "12.8.4.1",
            "nvidia-cuda-nvrtc-cu12": "12.8.93",
            "nvidia-cuda-runtime-cu12": "12.8.90",
        },
        {},
    ),
    "13.0.2": (
        {"nvidia-cublas": "13.1.0.3", "nvidia-cuda-nvrtc": "13.0.88", "nvidia-cuda-runtime": "13"},
        {"nvidia-cuda-nvrtc": ">=13.0.88,<14"},
    ),
}


def wheel(python: str) -> dict[str, Any]:
    return {"python": python, "size": 7, "sha256": f"of {python}", "file": f"torch-{python}.whl"}


def pypi(version: str = "2.9.0", **changed: Any) -> dict[str, Any]:
    return {
        "version": version,
        "platform": "linux_x86_64",
        "cuda": "12.8",
        "requires": ["nvidia-cublas-cu12==12.8.4.1", "nvidia-cudnn-cu12==9.10.2.21"],
        "sass": ["8.0"],
        "ptx": ["9.0"],
        "glibc": "2.28",
        "wheels": [wheel("cp311"), wheel("cp312")],
        **changed,
    }


def variant(*versions: str, **changed: Any) -> dict[str, Any]:
    return {
        "versions": list(versions) or ["2.9.0"],
        "platform": "linux_x86_64",
        "local": "cu128",
        "toolkit": "12.8.1",
        "cudnn": "9.10.2.21",
        "sass": ["7.5"],
        "ptx": [],
        "libraries": "required",
        **changed,
    }


def table(*rows: Any, variants: Any = (), companions: Any = ()) -> TorchTable:
    return parse({"torch": rows, "variant": variants, "companion": companions}, TOOLKITS)


def only(*rows: Any, variants: Any = ()) -> TorchBuild:
    return table(*rows, variants=variants).builds[-1 if variants else 0]


@pytest.mark.parametrize(
    ("requires", "cuda", "libraries", "cudnn"),
    [
        (["nvidia-cublas-cu12==12.8.4.1", "nvidia-cudnn-cu12==9.1"], "12.8", "required", "9.1"),
        (["nvidia-cudnn-cu12>=9.1", "nvidia-cublas-cu12==12.8.4.1"], "12.8", "required", None),
        (["nvidia-cudnn-cu12 is no requirement"], "12.8", "required", None),
        ([], "12.8", "inside", None),
        ([], None, None, None),
    ],
)
def test_where_its_libraries_are_and_which_cudnn(
    requires: list[str], cuda: str | None, libraries: str | None, cudnn: str | None
) -> None:
    build = only(pypi(requires=requires, cuda=cuda))

    assert (build.libraries, build.cudnn, build.pins) == (libraries, cudnn, tuple(requires))


@pytest.mark.parametrize(
    ("line", "pins"),
    [
        (
            "cuda-toolkit[nvrtc,cublas,cudart]==13.0.2",
            (
                *("nvidia-cublas==13.1.0.3", "nvidia-cuda-runtime==13"),
                "nvidia-cuda-nvrtc>=13.0.88,<14",
            ),
        ),
        ("cuda-toolkit[cufile,cublas]==13.0.2", ("nvidia-cublas==13.1.0.3",)),
        ("cuda-toolkit[cublas]==99", ()),
        ("not one!", ("not one!",)),
    ],
)
def test_the_extras_of_the_toolkit_are_its_parts(line: str, pins: tuple[str, ...]) -> None:
    assert sorted(only(pypi(requires=[line])).pins) == sorted(pins)


def test_a_build_on_the_own_index_requires_the_parts_of_its_toolkit() -> None:
    build = only(pypi(), variants=[variant(local="cu129")])

    assert (build.name, build.cuda, build.cudnn) == ("2.9.0+cu129", "12.9", "9.10.2.21")
    assert build.pins == (
        "nvidia-cublas-cu12==12.8.4.1",
        "nvidia-cuda-nvrtc-cu12==12.8.93",
        "nvidia-cuda-runtime-cu12==12.8.90",
        "nvidia-cudnn-cu12==9.10.2.21",
    )
    assert build.toolkit == TOOLKITS["12.8.1"][0]
    assert (build.sass, build.ptx, build.wheels) == (("7.5",), (), ())
    assert (build.glibc, build.platform) == ("2.28", "linux_x86_64")
    assert build.pythons == {"cp311", "cp312"}


def test_what_its_own_row_says_goes_before_the_toolkit_and_pypi() -> None:
    parts = {"nvidia-cublas-cu12": "12.8.3.14", "nvidia-nccl-cu12": "2.27"}
    build = only(pypi(), variants=[variant(local="cu129", parts=parts, glibc="2.17")])

    assert build.toolkit == {**TOOLKITS["12.8.1"][0], **parts}
    assert "nvidia-cublas-cu12==12.8.3.14" in build.pins
    assert build.glibc == "2.17"


@pytest.mark.parametrize(
    ("requires", "nvrtc"),
    [
        (["cuda-toolkit[nvrtc]==13.0.2"], "nvidia-cuda-nvrtc>=13.0.88,<14"),
        (["nvidia-cublas==13.1.0.3"], "nvidia-cuda-nvrtc==13.0.88"),
        (None, "nvidia-cuda-nvrtc==13.0.88"),
    ],
)
def test_a_range_of_the_toolkit_counts_where_torch_requires_the_toolkit(
    requires: list[str] | None, nvrtc: str
) -> None:
    alike = pypi(cuda="12.8", requires=requires)
    if requires is None:
        del alike["requires"]
    build = only(alike, variants=[variant(local="cu130", toolkit="13.0.2")])

    assert nvrtc in build.pins
    assert "nvidia-cublas==13.1.0.3" in build.pins
    assert "nvidia-cudnn-cu13==9.10.2.21" in build.pins


def test_a_variant_of_a_release_that_pypi_lacks_is_left_out() -> None:
    found = table(
        pypi("2.9.0"),
        pypi("2.9.0", platform="windows_x86_64"),
        pypi("2.8.0", platform="windows_x86_64"),
        variants=[variant("2.9.0", "2.8.0", "2.7.0", local="cu129")],
    )

    assert [build.name for build in found.of("linux_x86_64")] == ["2.9.0+cu128", "2.9.0+cu129"]
    assert len(found.of("windows_x86_64")) == 2
    assert found.of("linux_aarch64") == ()
