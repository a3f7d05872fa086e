"""The row that an installed release gets which the matrix does not hold."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.matrix.model import INSTALLED, Build, Matrix
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.unknown_releases import is_unknown_build, with_installed_releases
from synthetic import LINUX

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
    ("cuda", "links", "found"),
    [
        ("12.8", (), "12.8"),
        ("12.10", (), "12.10"),
        ("13.2", ("libcublas.so.12",), "13.2"),  # what it says goes before what it links
        (None, ("libcudart.so.13",), "13.0"),  # as the newest of that major
        ("unknown", ("libcublas.so.12",), "12.8"),
        (None, ("libcublas.so.99",), "99.0"),
    ],
)
def test_the_cuda_of_a_build(cuda: str | None, links: tuple[str, ...], found: str) -> None:
    names = [*(links or PROVIDER["links"])]
    _, row = seen("1.40.0", cuda, provider={"links": names})

    assert row is not None
    assert row.cuda == found


@pytest.mark.parametrize(
    ("cuda", "added"),
    [
        ("12.8", False),  # 12.8.1 serves it
        ("13.0.90", False),  # 13.0.2 is of the same release
        ("12.1", False),  # a newer one of that major does
        ("12.10", True),  # none of the older, nor one of another major
        ("14.0", True),
    ],
)
def test_a_build_for_a_toolkit_that_is_not_known_brings_it(cuda: str, *, added: bool) -> None:
    matrix, _ = seen("1.40.0", cuda)
    new = [row for row in matrix.toolkits if row not in MATRIX.toolkits]

    assert [(row.version, dict(row.components)) for row in new] == ([(cuda, {})] if added else [])


@pytest.mark.parametrize(
    ("more", "whole"),
    [
        ({}, True),
        ({"intact": False}, False),
        ({"distribution": "onnxruntime"}, False),
        ({"distribution": None}, True),
        ({"version": "1.39.0"}, False),
        ({"version": None}, True),
    ],
)
def test_only_what_is_whole_is_a_build(more: dict[str, Any], *, whole: bool) -> None:
    build = {"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "12.8", **more}
    facts = synthetic.facts("onnxruntime-gpu 1.40.0", onnxruntime={**build, "provider": PROVIDER})
    matrix, [unknown] = with_installed_releases(facts, MATRIX, PlanOptions())

    assert (matrix.builds[0].index_url == INSTALLED) is whole
    assert (unknown.name, unknown.version) == ("onnxruntime-gpu", "1.40.0")


@pytest.mark.parametrize(
    ("other", "whole"),
    [
        ("onnxruntime 1.22.0", False),
        ({"name": "onnxruntime", "version": "1.40.0", "provided": True}, True),
        ("nvidia-cudnn-cu12 9.28.0", True),
    ],
)
def test_beside_another_build_it_is_not_alone_in_its_folder(other: Any, *, whole: bool) -> None:
    _, row = seen("1.40.0", "12.8", other)

    assert (row is not None) is whole


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
    [
        ("9.99.0", "9.28.0"),
        ("9.2.0", "9.1.0"),
        ("9.0.1", "9.1.0"),
        ("8.9.9", "8.9.7"),
        ("7.0", None),
    ],
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


def test_what_a_provider_loads_counts_where_a_wheel_has_it() -> None:
    """It names libraries of every CUDA that its source knows."""
    wheel = {
        "name": "nvidia-cudnn-cu12",
        "version": "9.99.0",
        "libraries": ["nvidia/cudnn/lib/libcudnn_engines.so.9"],
    }
    other = {"name": "torch", "version": "2.9.0", "libraries": ["torch/lib/libcudart.so.11"]}
    names = ["libcudnn_engines.so.9", "libcudart.so.11", "libcuda.so.1"]
    _, row = seen("1.40.0", "12.8", wheel, other, provider={"names": names})

    assert row is not None
    assert [(need.library, need.how, need.distribution) for need in row.needs] == [
        ("libcublas.so.12", "links", "nvidia-cublas-cu12"),
        ("libcudnn.so.9", "links", "nvidia-cudnn-cu12"),
        ("libcudnn_engines.so.9", "loads", "nvidia-cudnn-cu12"),
        ("libcuda.so.1", "loads", None),
    ]


def test_a_library_that_no_wheel_of_the_matrix_has_is_held_by_the_one_that_has_it_here() -> None:
    libraries = ["nvidia/cudnn/lib/libextra.so.1", "nvidia/cudnn/lib/libcudnn.so.9"]
    wheel = {"name": "nvidia-cudnn-cu12", "version": "9.28.0", "libraries": libraries}
    _, row = seen("1.40.0", "12.8", wheel, provider={"names": ["libextra.so.1", "libno.so.1"]})

    assert row is not None
    assert [(need.library, need.distribution) for need in row.needs if need.how == "loads"] == [
        ("libextra.so.1", "nvidia-cudnn-cu12")
    ]


def test_the_row_of_a_build_says_what_was_read_and_else_what_the_nearest_has() -> None:
    read = {"sass": ["9.0"], "ptx": ["9.0"], "preload_dlls": False, "toolset": "14.44"}
    _, row = seen("1.24.0", "12.4", provider=read)
    like = next(build for build in MATRIX.builds if build.version == "1.23.0")

    assert row is not None
    assert (row.version, row.platform, row.cuda, row.cudnn) == ("1.24.0", LINUX, "12.4", "9")
    assert (row.sass, row.ptx, row.glibc, row.toolset) == (("9.0",), ("9.0",), None, "14.44")
    assert (row.preload_dlls, like.preload_dlls) == (False, True)
    [wheel] = row.wheels
    assert (wheel.python, wheel.requires) == ("cp311", like.wheels[-1].requires)
    assert [need.since for need in row.needs] == ["12.2.0", "9.0.0"]


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


def test_a_provider_without_readable_code_that_is_like_no_other_has_none() -> None:
    build: dict[str, Any] = {"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "14.0"}
    build |= {"provider": {**PROVIDER, "sass": [], "ptx": []}}
    facts = synthetic.facts("onnxruntime-gpu 1.40.0", onnxruntime=build)
    matrix, [unknown] = with_installed_releases(facts, MATRIX, PlanOptions())
    row = matrix.builds[0]

    assert unknown.like is None
    assert (row.version, row.index_url, row.sass, row.ptx) == ("1.40.0", INSTALLED, (), ())


@pytest.mark.parametrize(
    ("version", "cuda", "like"),
    [
        ("1.25.0", "12.8", "1.23.0"),
        ("1.25.0", None, "1.23.0"),
        ("1.20.0", "12.0", "1.23.0"),  # of a known CUDA the oldest
        ("1.17.0", None, None),
        ("1.40.0", "11.8", "1.18.0"),
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


def test_a_build_that_is_like_no_other_has_what_was_read_alone() -> None:
    names = {"links": ["libcublas.so.14", "libcudnn.so.10"], "sass": [], "ptx": ["12.0"]}
    _, row = seen("1.40.0", "14.1", provider=names)

    assert row is not None
    assert (row.cuda, row.cudnn, row.sass, row.ptx) == ("14.1", "10", (), ("12.0",))
    assert [(need.library, need.distribution, need.since) for need in row.needs] == [
        *(("libcublas.so.14", None, None), ("libcudnn.so.10", None, None)),
    ]
    assert [wheel.requires for wheel in row.wheels] == [()]


def test_a_provider_that_links_nothing_is_none() -> None:
    _, row = seen("1.40.0", "12.8", provider={"links": []})

    assert row is None


@pytest.mark.parametrize(
    ("python", "cuda", "read", "unknown"),
    [
        ("3.11.7", "12.8", True, False),
        ("3.13.0", "12.8", True, True),  # PyPI has no wheel of it for this Python
        ("3.13.0", "12.8", False, False),
        ("3.11.7", "13.0", True, True),  # another build under a number of PyPI's
        ("3.11.7", None, True, False),
    ],
)
def test_a_build_of_a_known_number_may_be_another(
    python: str, cuda: str | None, *, read: bool, unknown: bool
) -> None:
    build = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": cuda}
    facts = synthetic.facts(
        "onnxruntime-gpu 1.26.0",
        python=python,
        onnxruntime={**build, "provider": PROVIDER if read else None},
    )

    assert is_unknown_build(facts, MATRIX) is unknown


def test_wheels_of_nvidia_are_judged_by_what_the_nearest_of_their_major_has() -> None:
    newer = {"name": "nvidia-cudnn-cu12", "version": "9.99.0", "requires": ["nvidia-cublas-cu12>1"]}
    facts = synthetic.facts(newer, "nvidia-cublas-cu12 12.9.9")
    matrix, unknown = with_installed_releases(facts, MATRIX, PlanOptions())
    cudnn, cublas = (matrix.distributions[row.name] for row in reversed(unknown))

    assert [(row.name, row.like) for row in unknown] == [
        ("nvidia-cublas-cu12", "nvidia-cublas-cu12 12.9.1"),
        ("nvidia-cudnn-cu12", "nvidia-cudnn-cu12 9.28.0"),
    ]
    assert cudnn.releases[-1].requires == ("nvidia-cublas-cu12>1",)
    assert (cudnn.releases[-1].index_url, cudnn.releases[-1].platform) == (INSTALLED, LINUX)
    assert cudnn.contents[0].versions == {"9.99.0"}
    assert "libcudnn.so.9" in cudnn.contents[0].libraries
    assert cudnn.code[0].sass == ("7.5", "8.0", "8.6", "9.0", "12.0")
    assert (cudnn.code[0].first, cudnn.code[0].last) == ("9.99.0", "9.99.0")
    assert cublas.code[0].first == "12.9.9"


def test_what_the_metadata_of_an_own_build_say_wrongly_hinders_nothing() -> None:
    own = {"name": "onnxruntime-gpu", "version": "1.40.0", "requires": ["no requirement!"]}
    folder = {"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "12.8"}
    facts = synthetic.facts(own, onnxruntime=folder | {"provider": PROVIDER})
    made = resolve(facts, PlanOptions(), MATRIX)

    assert (made.release, made.requires) == ("1.40.0", ())


def test_all_that_is_not_known_is_named() -> None:
    packages = ("onnxruntime-gpu 1.40.0", "nvidia-cudnn-cu12 9.99.0")
    folder = {"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "12.8"}
    _, unknown = with_installed_releases(
        synthetic.facts(*packages, onnxruntime=folder), MATRIX, PlanOptions()
    )

    assert [row.name for row in unknown] == ["nvidia-cudnn-cu12", "onnxruntime-gpu"]


def test_a_build_for_another_platform_alone_is_not_known_here() -> None:
    folder = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
    arm = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.35"}

    def unknown(**machine: Any) -> bool:
        facts = synthetic.facts("onnxruntime-gpu 1.26.0", onnxruntime=folder, **machine)
        return is_unknown_build(facts, MATRIX)

    assert not unknown()
    assert unknown(platform=arm)


def test_a_damaged_wheel_and_one_of_another_platform_are_no_new_release() -> None:
    damaged = {"name": "nvidia-cudnn-cu12", "version": "9.99.0", "intact": False}

    assert with_installed_releases(synthetic.facts(damaged), MATRIX, PlanOptions()) == (MATRIX, ())
    known = synthetic.facts("nvidia-cudnn-cu12 9.28.0", "requests 2.0")
    assert with_installed_releases(known, MATRIX, PlanOptions()) == (MATRIX, ())


def test_an_own_build_that_works_is_kept_though_a_newer_release_works_too() -> None:
    folder = {"distribution": "onnxruntime-gpu", "version": "1.24.0", "cuda": "12.4"}
    facts = synthetic.facts("onnxruntime-gpu 1.24.0", onnxruntime=folder | {"provider": PROVIDER})

    assert resolve(facts, PlanOptions(), MATRIX).release == "1.24.0"
    assert resolve(facts, PlanOptions(latest=True), MATRIX).release == "1.26.0"
