"""The wheels of a plan: their names, and the rows and the index that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import synthetic
from ortgpu_fix.matrix.model import AddedRows, BuildWheel
from ortgpu_fix.plan.wheels import (
    PYPI,
    Wheel,
    oldest_python,
    on_pypi,
    read_hashes,
    rows_of,
    short_name,
    wheel_on,
)

FEED = "https://feed.example/simple"
MIRROR = "https://mirror.example/simple"


@dataclass
class Rows:
    """What was read, by its releases."""

    releases: tuple[str, ...]
    index_url: str = MIRROR
    alone: bool = False

    def read(self) -> AddedRows:
        return AddedRows("2026-11-22", self.index_url, self.releases, self.alone)


def wheel(name: str = "onnxruntime-gpu", version: str = "1.32.0", index: str = PYPI) -> Wheel:
    return Wheel(name, version, index, "", 0, "")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("nvidia-cublas-cu12", "cublas"),
        ("nvidia-cublas", "cublas"),
        ("nvidia-cuda-nvrtc-cu13", "cuda-nvrtc"),
        ("nvidia-cu12", "cu12"),
        ("onnxruntime-gpu", "onnxruntime-gpu"),
        ("my-nvidia-cublas-cu12", "my-nvidia-cublas-cu12"),
    ],
)
def test_the_short_name_of_a_distribution(name: str, short: str) -> None:
    assert short_name(name) == short


def test_a_wheel_has_the_file_of_its_row_and_none_without() -> None:
    row = BuildWheel("cp312", 5, "aa", "a.whl", ())

    assert tuple(on_pypi("a", "1", row)) == ("a", "1", PYPI, "a.whl", 5, "aa")
    assert tuple(on_pypi("a", "1", None)) == ("a", "1", PYPI, "", 0, "")
    assert tuple(wheel_on(FEED, "a", "1", row)) == ("a", "1", FEED, "a.whl", 5, "aa")


@pytest.mark.parametrize(
    ("index", "rows", "holds"),
    [
        (PYPI, Rows(("onnxruntime-gpu 1.32.0",)), True),
        (PYPI, Rows(("onnxruntime-gpu 1.32.0",), alone=True), False),
        (MIRROR, Rows(("onnxruntime-gpu 1.32.0",)), False),
        (FEED, Rows(("onnxruntime-gpu 1.32.0",), FEED, alone=True), True),
        (FEED, Rows(("onnxruntime-gpu 1.32.0",), MIRROR, alone=True), False),
        (PYPI, Rows(("onnxruntime-gpu 1.32.1", "onnxruntime 1.32.0")), False),
        (PYPI, Rows(()), False),
    ],
)
def test_which_rows_hold_a_wheel(index: str, rows: Rows, *, holds: bool) -> None:
    read = rows.read()

    assert (rows_of(wheel(index=index), [read]) is read) is holds
    assert rows_of(wheel(index=index), []) is None


def test_of_two_that_hold_it_the_first_is_told() -> None:
    other = Rows(("numpy 2",)).read()
    first, second = (Rows(("onnxruntime-gpu 1.32.0",), index).read() for index in (MIRROR, FEED))

    assert rows_of(wheel(), [other, first, second]) is first


def test_the_wheels_whose_hash_was_read_are_told_by_what_was_read() -> None:
    first = Rows(("onnxruntime-gpu 1.32.0", "nvidia-cublas-cu12 12.9")).read()
    second = Rows(("onnxruntime-gpu 1.32.0",), FEED, alone=True).read()
    third = Rows(("numpy 3",)).read()
    here, feed = wheel(), wheel(index=FEED)
    cublas, shipped = wheel("nvidia-cublas-cu12", "12.9"), wheel("numpy", "2")

    found = read_hashes([shipped, here, feed, cublas], iter([first, second, third]))

    assert found == ((first, (here, cublas)), (second, (feed,)))
    assert read_hashes([here], ()) == ()
    assert read_hashes([], [first]) == ()


ANY = "nvidia_cublas_cu12-12.8.4-py3-none-any.whl"


@pytest.mark.parametrize(
    ("pythons", "files", "oldest"),
    [
        ([["cp313t", "cp311", "cp312"]], [ANY], "3.11"),
        ([["cp38", "cp310"]], [], "3.8"),
        ([["cp38", "cp310"], ["cp39", "cp310"]], [ANY], "3.9"),
        ([["cp38", "cp310"]], [ANY, "numpy-2.2.6-cp312-cp312-win_amd64.whl"], "3.12"),
        ([["cp38", "cp310"]], [""], "3.12"),
        ([["py3"]], [], "3.0"),
        ([], [ANY], "3.12"),
    ],
)
def test_the_oldest_python_that_all_wheels_fit(
    pythons: Sequence[Sequence[str]], files: Sequence[str], oldest: str
) -> None:
    [build] = (row for row in synthetic.matrix().builds if row.version == "1.26.0")
    builds = [
        build._replace(wheels=tuple(BuildWheel(python, 5, "aa", "a.whl", ()) for python in row))
        for row in pythons
    ]
    wheels = [wheel()._replace(file="onnxruntime_gpu-1.26.0-cp312-cp312-win_amd64.whl")]
    wheels += [wheel("x", "1")._replace(file=file) for file in files]

    assert oldest_python(builds, wheels, "3.12") == oldest
