"""What the libraries of a program are planned from that is not Python."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.facts.model import GPU_BUILD, OnnxRuntime, Package, Provider
from ortgpu_fix.guests.libraries.planning import (
    library_wheels,
    machine_of,
    matrix_for,
    nearest_version,
    with_carried,
)
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
CUDA_12 = Provider(links=("libcublas.so.12", "libcurand.so.10"), names=("libcudnn.so.9",))


@pytest.mark.parametrize(
    ("version", "links", "cuda", "said"),
    [
        ("1.22.0", ("libcurand.so.10", "libcublasLt.so.12"), "12", "1.22.0"),
        (None, ("cublas64_13.dll",), "13", "0"),
        (None, ("libother.so.1",), None, "0"),
    ],
)
def test_what_a_program_carries_is_what_is_installed(
    version: str | None, links: tuple[str, ...], cuda: str | None, said: str
) -> None:
    provider = Provider(links=links)
    facts = with_carried(machine_of(synthetic.facts()), version, provider)

    assert facts.packages == (Package(name=GPU_BUILD, version=said),)
    assert facts.onnxruntime == OnnxRuntime(
        distribution=GPU_BUILD, version=said, cuda=cuda, provider=provider
    )


@pytest.mark.parametrize(
    ("wish", "cuda", "nearest"),
    [
        ("1.26.0", None, None),
        ("1.26.2", None, "1.26.0"),
        ("1.25.0", "12", "1.23.0"),
        ("1.31.0", "11", "1.18.0"),
        ("1.17.0", "11", None),
    ],
)
def test_a_version_that_pypi_lacks_is_taken_as_its_neighbour(
    wish: str, cuda: str | None, nearest: str | None
) -> None:
    assert nearest_version(wish, MATRIX, "linux_x86_64", cuda) == nearest


def test_what_a_carried_library_links_is_planned_whatever_its_version() -> None:
    matrix = matrix_for(MATRIX, carried=True)
    facts = with_carried(machine_of(synthetic.facts(driver="12.8")), None, CUDA_12)
    plan = resolve(facts, PlanOptions(onnxruntime="==0"), matrix)

    names = [row.name for row in library_wheels(plan, matrix)]
    assert names == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12"]
