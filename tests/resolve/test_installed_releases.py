"""The row that an installed release gets which the matrix does not hold."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.matrix.model import INSTALLED, Build, Matrix
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.unknown_releases import is_unknown_build, with_installed_releases

MATRIX = synthetic.matrix()
PROVIDER = {"links": ["libcublas.so.12", "libcudnn.so.9"], "sass": ["8.0"], "ptx": []}


def seen(
    version: str = "1.40.0", cuda: str | None = "12.8", *others: Any, **more: Any
) -> tuple[Matrix, Build | None]:
    """Return the matrix with an installed onnxruntime-gpu in it, and its row."""
    provider = {**PROVIDER, **more.pop("provider", {})}
    build = {"distribution": "onnxruntime-gpu", "version": version, "cuda": cuda, **more}
    facts = synthetic.facts(
        f"onnxruntime-gpu {version}", *others, onnxruntime={**build, "provider": provider}
    )
    matrix, _ = with_installed_releases(facts, MATRIX, PlanOptions())
    row = matrix.builds[0]
    return matrix, row if row.index_url == INSTALLED else None


@pytest.mark.parametrize(
    ("cuda", "added"),
    [("12.8", False), ("12.10", True)],
)
def test_a_build_for_a_toolkit_that_is_not_known_brings_it(cuda: str, *, added: bool) -> None:
    matrix, _ = seen("1.40.0", cuda)
    new = [row for row in matrix.toolkits if row not in MATRIX.toolkits]

    assert [(row.version, dict(row.components)) for row in new] == ([(cuda, {})] if added else [])


def test_a_wheel_of_nvidia_brings_what_is_seen_in_it() -> None:
    libraries = ["nvidia/cudnn/lib/libcudnn.so.10", "nvidia/cudnn/lib/libcudnn_new.so.10"]
    wheel = {"name": "nvidia-cudnn-cu12", "version": "10.0.0", "libraries": libraries}
    matrix, [unknown] = with_installed_releases(synthetic.facts(wheel), MATRIX, PlanOptions())
    known = matrix.distributions["nvidia-cudnn-cu12"]

    assert (unknown.version, unknown.like) == ("10.0.0", None)  # no release of that major
    assert known.releases[-1].version == "10.0.0"
    assert known.contents[0].libraries == {
        "libcudnn.so.10": libraries[0],
        "libcudnn_new.so.10": libraries[1],
    }
    assert matrix.providers["12", "libcudnn_new.so.10"] == "nvidia-cudnn-cu12"
    shipped = MATRIX.distributions["nvidia-cudnn-cu12"]
    assert (known.releases[:-1], known.contents[1:]) == (shipped.releases, shipped.contents)
    assert known.code == shipped.code
    assert matrix.providers["12", "libcudnn.so.9"] == MATRIX.providers["12", "libcudnn.so.9"]


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


def test_an_own_build_that_works_is_kept_though_a_newer_release_works_too() -> None:
    folder = {"distribution": "onnxruntime-gpu", "version": "1.24.0", "cuda": "12.4"}
    facts = synthetic.facts("onnxruntime-gpu 1.24.0", onnxruntime=folder | {"provider": PROVIDER})

    assert resolve(facts, PlanOptions(), MATRIX).release == "1.24.0"
    assert resolve(facts, PlanOptions(latest=True), MATRIX).release == "1.26.0"
