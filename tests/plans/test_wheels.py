"""The wheels of a plan: their names, and the rows and the index that they come from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import synthetic
from ortgpu_fix.matrix.model import BuildWheel
from ortgpu_fix.plan.wheels import (
    PYPI,
    Wheel,
    oldest_python,
)


def wheel(name: str = "onnxruntime-gpu", version: str = "1.32.0", index: str = PYPI) -> Wheel:
    return Wheel(name, version, index, "", 0, "")


ANY = "nvidia_cublas_cu12-12.8.4-py3-none-any.whl"


@pytest.mark.parametrize(
    ("pythons", "files", "oldest"),
    [
        ([["cp313t", "cp311", "cp312"]], [ANY], "3.11"),
        ([["cp38", "cp310"], ["cp39", "cp310"]], [ANY], "3.9"),
        ([["cp38", "cp310"]], [ANY, "numpy-2.2.6-cp312-cp312-win_amd64.whl"], "3.12"),
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
