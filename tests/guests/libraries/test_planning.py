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


def test_of_the_machine_what_lies_on_it_is_not_relied_on() -> None:
    facts = machine_of(synthetic.facts("onnxruntime-gpu 1.26.0", "torch 2.7.1"))

    assert (facts.packages, facts.libraries, facts.toolkits) == ((), (), ())
    assert facts.onnxruntime is None
    assert facts.driver == synthetic.facts().driver


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


@pytest.mark.parametrize(("carried", "tag"), [(False, "cp312"), (True, "cp38")])
def test_a_build_needs_no_python_and_no_libc(*, carried: bool, tag: str) -> None:
    builds = matrix_for(MATRIX, carried=carried).builds

    assert {(build.glibc, len(build.wheels)) for build in builds} == {(None, 1)}
    assert {build.wheels[0].python for build in builds} == {tag}


@pytest.mark.parametrize(
    ("wish", "cuda", "nearest"),
    [
        ("1.26.0", None, None),
        ("", None, None),
        ("1.26.2", None, "1.26.0"),
        ("1.25.0", None, None),
        ("1.25.0", "12", "1.23.0"),
        ("1.31.0", "11", "1.18.0"),
        ("1.17.0", "11", None),
    ],
)
def test_a_version_that_pypi_lacks_is_taken_as_its_neighbour(
    wish: str, cuda: str | None, nearest: str | None
) -> None:
    assert nearest_version(wish, MATRIX, "linux_x86_64", cuda) == nearest


def test_where_the_minor_version_began_later_its_first_is_taken() -> None:
    builds = tuple(
        build._replace(version="1.23.2") if build.version == "1.23.0" else build
        for build in MATRIX.builds
    )
    newer = MATRIX._replace(builds=builds)

    assert nearest_version("1.23.1", newer, "linux_x86_64", None) == "1.23.2"


@pytest.mark.parametrize(
    ("wish", "wheels"),
    [
        ("==1.26.0", [("nvidia-cublas-cu12", "12.8.4"), ("nvidia-cudnn-cu12", "9.28.0")]),
        ("==1.18.0", [("nvidia-cublas-cu11", "11.11.3"), ("nvidia-cudnn-cu11", "8.9.6")]),
    ],
)
def test_the_wheels_are_those_of_the_plan(wish: str, wheels: list[tuple[str, str]]) -> None:
    matrix = matrix_for(MATRIX, carried=False)
    options = PlanOptions(onnxruntime=wish)
    plan = resolve(machine_of(synthetic.facts(driver="12.8")), options, matrix)

    assert [(row.name, row.version) for row in library_wheels(plan, matrix)] == wheels


def test_what_a_carried_library_links_is_planned_whatever_its_version() -> None:
    matrix = matrix_for(MATRIX, carried=True)
    facts = with_carried(machine_of(synthetic.facts(driver="12.8")), None, CUDA_12)
    plan = resolve(facts, PlanOptions(onnxruntime="==0"), matrix)

    names = [row.name for row in library_wheels(plan, matrix)]
    assert names == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12"]
