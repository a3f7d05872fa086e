"""Who opens a cuDNN that is not here: https://github.com/m-bain/whisperX/issues/865."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.errors import cause
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.matrix.parse import parse
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

CUBLAS, CUDNN = "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0"


def without_cudnn(made: Plan) -> list[dict[str, object]]:
    return [
        values_of(row) | {"way": dict(row.values)["way"]}
        for row in made.findings
        if row.code == "consumer-without-cudnn"
    ]


def older(*more: dict[str, Any], needs: str = "libcudnn_ops_infer.so.8") -> Matrix:
    """Return the invented matrix, in which `older` 1 opens cuDNN 8, and 3 what `more` say."""
    tables = synthetic.tables()
    row = synthetic.consumer("older", "1", "2", "12", "8") | {"needs": ["libcublas.so.12", needs]}
    tables["consumers"]["consumer"] += [row, *more]
    return parse(tables, "", {})


def newer(first: str, *needs: str, platform: str = synthetic.LINUX) -> dict[str, Any]:
    row = synthetic.consumer("older", first, "9", "12", None)
    return row | {"needs": list(needs), "platform": platform}


def judged(
    matrix: Matrix, *packages: Any, driver: str = "12.8", **machine: Any
) -> list[dict[str, object]]:
    facts = synthetic.facts("older 1.5", *packages, driver=driver, **machine)
    return without_cudnn(resolve(facts, PlanOptions(), matrix))


def test_who_opens_another_cudnn_than_is_here_is_told_with_what_to_install() -> None:
    first = newer("3", "libcublas.so.12", "libcudnn.so.9")
    made = judged(older(newer("4", "libcublas.so.12"), first), CUBLAS, CUDNN)

    told = {"by": "older 1.5", "cudnn": "8", "found": "9"}
    assert made == [told | {"way": cause("release-for-cudnn", wish="older>=3")}]
    none = [told | {"way": cause("no-release-for-cudnn")}]
    assert judged(older(), CUBLAS, CUDNN) == none
    assert judged(older(newer("3", "libcudnn.so.10")), CUBLAS, CUDNN) == none
    rows = newer("10", "libcudnn.so.9"), newer("9", "libcudnn.so.9")
    assert judged(older(*rows), CUBLAS, CUDNN)[0]["way"] == cause(
        "release-for-cudnn", wish="older>=9"
    )
    other = newer("3", "libcudnn.so.9", platform=synthetic.WINDOWS)
    assert judged(older(other), CUBLAS, CUDNN) == none
    assert judged(older(newer("1", "libcudnn.so.9")), CUBLAS, CUDNN) == none


def test_the_cudnn_that_the_plan_brings_counts() -> None:
    """Where no cuDNN was here before, the other one is the plan's own."""
    assert [row["found"] for row in judged(older(), CUBLAS)] == ["9"]


@pytest.mark.parametrize(
    "needs", ["libcublas.so.12", "libcudnn.so.9", "libcudnn_graph.so.9", "libcudnnx.so"]
)
def test_who_opens_none_or_the_one_that_is_here_is_not_told(needs: str) -> None:
    assert judged(older(needs=needs), CUBLAS, CUDNN) == []


def test_a_second_cudnn_serves_as_long_as_no_plan_removes_it() -> None:
    assert judged(older(), CUBLAS, CUDNN, "nvidia-cudnn-cu11 8.9.7", driver="11.0") == []
    assert len(judged(older(), CUBLAS, CUDNN, driver="11.0")) == 1


def test_a_cudnn_of_the_system_serves_as_well() -> None:
    library = {"name": "libcudnn.so.8", "path": "/usr/lib/libcudnn.so.8"}

    assert judged(older(), CUBLAS, CUDNN, libraries=[library]) == []


def test_where_no_cudnn_is_and_none_comes_nobody_opens_another() -> None:
    """The driver runs no set: nothing is planned."""
    assert judged(older(), CUBLAS, driver="11.0") == []


def test_who_finds_no_library_of_its_cuda_is_not_told() -> None:
    assert judged(older(), "nvidia-cublas-cu11 11.11.3") == []


def test_the_cudnn_in_a_torch_counts_where_no_plan_brings_one() -> None:
    facts = synthetic.facts(
        *("ctranslate2 4.4.0", "torch 2.4.0+cu121", "nvidia-cublas-cu12 12.1.3.1"),
        platform={"system": "windows", "machine": "x86_64", "libc": None},
        driver=None,
        gpus=(),
    )
    made = without_cudnn(resolve(facts, PlanOptions(), load_matrix()))

    assert [(row["cudnn"], row["found"]) for row in made] == [("8", "9")]


@pytest.mark.parametrize(
    ("release", "torch", "cudnn", "told"),
    [
        ("4.4.0", "2.4.0", "9.1.0.70", 1),
        ("4.5.0", "2.4.0", "9.1.0.70", 0),
        ("4.4.0", "2.3.1", "8.9.2.26", 0),
    ],
)
@pytest.mark.parametrize("system", ["linux", "windows"])
def test_ctranslate2_beside_the_cudnn_of_torch(
    system: str, release: str, torch: str, cudnn: str, told: int
) -> None:
    """torch brings wheels to Linux, and the libraries themselves to Windows."""
    wheels = [f"nvidia-cudnn-cu12 {cudnn}", "nvidia-cublas-cu12 12.1.3.1"]
    facts = synthetic.facts(
        *(f"ctranslate2 {release}", f"torch {torch}+cu121"),
        *(wheels if system == "linux" else wheels[1:]),
        platform={"system": system, "machine": "x86_64", "libc": None},
        driver="12.8",
    )
    made = without_cudnn(resolve(facts, PlanOptions(), load_matrix()))

    way = cause("release-for-cudnn", wish="ctranslate2>=4.5.0")
    row = {"by": f"ctranslate2 {release}", "cudnn": "8", "found": "9", "way": way}
    assert made == [row] * told


def test_a_cudnn_that_the_plan_removes_serves_nobody() -> None:
    """The wheels for CUDA 11 and 12 share a folder."""
    packages = ("ctranslate2 4.4.0", "nvidia-cudnn-cu11 8.9.6.50", "nvidia-cublas-cu12 12.9.1.4")
    facts = synthetic.facts(*packages, driver="12.8")

    made = resolve(facts, PlanOptions(), load_matrix())

    assert made.uninstall == ("nvidia-cudnn-cu11",)
    assert [(row["cudnn"], row["found"]) for row in without_cudnn(made)] == [("8", "9")]
