"""The facts and the matrix from which the libraries of a program are planned that is not Python.

Core. The rules are those of every plan; only what is Python's alone has no say here.
"""

from __future__ import annotations

import re

from ...facts.model import GPU_BUILD, Facts, Interpreter, OnnxRuntime, Package, Provider
from ...facts.wheel_tags import abi
from ...matrix.model import Matrix
from ...plan.model import Plan
from ...plan.wheels import Wheel
from ...versions import at_least, major, numbers

PYTHON = "3.12"
"""Of no meaning: the wheels of NVIDIA's libraries are for every Python."""
_ANOTHER = "cp38"
_MAJOR = re.compile(r"(?:lib)?(?:cudart|cublas|cublasLt)(?:\.so\.|64_)(\d{2})")


def machine_of(facts: Facts) -> Facts:
    """Return `facts` of the machine alone: what lies on it is not the program's to rely on."""
    return facts._replace(
        python=Interpreter(version=PYTHON, environment="venv"),
        packages=(),
        toolkits=(),
        libraries=(),
        onnxruntime=None,
        environment={},
    )


def with_carried(facts: Facts, version: str | None, provider: Provider) -> Facts:
    """Return `facts` with the onnxruntime that the program carries as the installed one.

    `version`: None where nothing says it; its provider says what it links.
    """
    majors = [found[1] for name in provider.links if (found := _MAJOR.match(name))]
    cuda = majors[0] if majors else None
    return facts._replace(
        packages=(Package(name=GPU_BUILD, version=version or "0"),),
        onnxruntime=OnnxRuntime(
            distribution=GPU_BUILD, version=version or "0", cuda=cuda, provider=provider
        ),
    )


def matrix_for(matrix: Matrix, *, carried: bool) -> Matrix:
    """Return `matrix` as it holds for programs: its builds need no Python, and no libc of a wheel.

    With `carried`, no build of the matrix is the one that is there: its own library is read.
    """
    tag = _ANOTHER if carried else abi(PYTHON, free_threaded=False)
    builds = tuple(
        build._replace(
            glibc=None, wheels=tuple(row._replace(python=tag) for row in build.wheels[-1:])
        )
        for build in matrix.builds
    )
    return matrix._replace(builds=builds)


def nearest_version(wish: str, matrix: Matrix, platform: str, cuda: str | None) -> str | None:
    """Return the version that stands for `wish`, which programs have and PyPI does not.

    It is one of the same minor version, whose libraries are the same; for a `cuda` major that PyPI
    has of older versions alone, the newest of those. None: `wish` is there, or nothing is like it.
    """
    versions = [
        build.version
        for build in matrix.builds
        if build.platform == platform and cuda in {None, major(build.cuda)}
    ]
    if wish in versions or not numbers(wish):
        return None
    minor = [each for each in versions if numbers(each)[:2] == numbers(wish)[:2]]
    older = [each for each in versions if cuda and at_least(wish, each)]
    nearest = [each for each in minor if at_least(wish, each)] or minor[-1:] or older
    return max(nearest, key=numbers, default=None)


def library_wheels(plan: Plan, matrix: Matrix) -> tuple[Wheel, ...]:
    """Return the wheels of NVIDIA's libraries in a plan."""
    return tuple(wheel for wheel in plan.selection if wheel.name in matrix.distributions)
