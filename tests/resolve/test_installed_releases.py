"""The row that an installed release gets which the matrix does not hold."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.matrix.model import INSTALLED
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.unknown_releases import is_unknown_build, with_installed_releases

MATRIX = synthetic.matrix()
PROVIDER = {"links": ["libcublas.so.12", "libcudnn.so.9"], "sass": ["8.0"], "ptx": []}


@pytest.mark.parametrize(
    ("version", "like"),
    [("9.99.0", "9.28.0"), ("9.2.0", "9.1.0"), ("9.0.1", "9.1.0"), ("7.0", None)],
)
def test_which_release_it_is_taken_to_be_like(version: str, like: str | None) -> None:
    """The newest of its major that is not newer, else the oldest of it."""
    _, [unknown] = with_installed_releases(
        synthetic.facts(f"nvidia-cudnn-cu12 {version}"), MATRIX, PlanOptions()
    )

    assert unknown.like == (like and f"nvidia-cudnn-cu12 {like}")
    known = MATRIX.distributions["nvidia-cudnn-cu12"]
    turned = {known.name: known._replace(releases=known.releases[::-1])}
    other = MATRIX._replace(distributions={**MATRIX.distributions, **turned})
    facts = synthetic.facts(f"nvidia-cudnn-cu12 {version}")
    assert with_installed_releases(facts, other, PlanOptions())[1] == (
        unknown,
    )  # whatever their order


@pytest.mark.parametrize("provider", [{"sass": [], "ptx": []}, None])
def test_a_provider_without_readable_code_has_that_of_the_nearest(provider: object) -> None:
    build: dict[str, Any] = {"distribution": "onnxruntime-gpu", "version": "1.24.0", "cuda": "12.4"}
    build |= {"provider": provider and {**PROVIDER, "sass": [], "ptx": []}}
    facts = synthetic.facts("onnxruntime-gpu 1.24.0", onnxruntime=build)
    matrix, [unknown] = with_installed_releases(facts, MATRIX, PlanOptions())
    row, like = matrix.builds[0], next(b for b in MATRIX.builds if b.version == "1.23.0")

    assert unknown.like == "onnxruntime-gpu 1.23.0"
    assert (row.index_url, row.sass, row.ptx) == (INSTALLED, like.sass, like.ptx)
    assert [need.library for need in row.needs[:2]] == ["libcublas.so.12", "libcudnn.so.9"]
    assert row.preload_dlls is (like.preload_dlls if provider is None else False)


def test_a_provider_with_ptx_alone_has_its_own_code() -> None:
    build: dict[str, Any] = {"distribution": "onnxruntime-gpu", "version": "1.24.0", "cuda": "12.4"}
    build |= {"provider": {**PROVIDER, "sass": [], "ptx": ["7.0"]}}
    facts = synthetic.facts("onnxruntime-gpu 1.24.0", onnxruntime=build)
    row = with_installed_releases(facts, MATRIX, PlanOptions())[0].builds[0]

    assert (row.sass, row.ptx) == ((), ("7.0",))


@pytest.mark.parametrize(
    ("version", "cuda", "like"),
    [
        ("1.25.0", "12.8", "1.23.0"),
        ("1.20.0", "12.0", "1.23.0"),  # of a known CUDA the oldest
        ("1.17.0", None, None),
        ("1.40.0", "14.0", None),
    ],
)
def test_which_build_it_is_taken_to_be_like(
    version: str, cuda: str | None, like: str | None
) -> None:
    build = {"distribution": "onnxruntime-gpu", "version": version, "cuda": cuda}
    facts = synthetic.facts(f"onnxruntime-gpu {version}", onnxruntime={**build, "provider": None})
    matrix, [unknown] = with_installed_releases(facts, MATRIX, PlanOptions())

    assert unknown.like == (like and f"onnxruntime-gpu {like}")
    assert (matrix.builds[0].index_url == INSTALLED) is (like is not None)
    turned = MATRIX._replace(builds=MATRIX.builds[::-1])
    assert with_installed_releases(facts, turned, PlanOptions())[1] == (unknown,)


def test_what_the_metadata_of_an_own_build_say_wrongly_hinders_nothing() -> None:
    own = {"name": "onnxruntime-gpu", "version": "1.40.0", "requires": ["no requirement!"]}
    folder = {"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "12.8"}
    facts = synthetic.facts(own, onnxruntime=folder | {"provider": PROVIDER})
    made = resolve(facts, PlanOptions(), MATRIX)

    assert (made.release, made.requires) == ("1.40.0", ())


def test_a_build_for_another_platform_alone_is_not_known_here() -> None:
    folder = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
    arm = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.35"}

    def unknown(**machine: Any) -> bool:
        facts = synthetic.facts("onnxruntime-gpu 1.26.0", onnxruntime=folder, **machine)
        return is_unknown_build(facts, MATRIX)

    assert not unknown()
    assert unknown(platform=arm)
