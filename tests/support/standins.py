"""Stand-ins for the wheels of a plan, and the tables as if those were the real ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.plan.wheels import Wheel
from support.local_index import make_wheel

ABOUT = "package_name = '{}'\n__version__ = '{}'\n"


def make_standin(folder: Path, name: str, version: str, requires: Iterable[str] = ()) -> Path:
    """Write the stand-in of a wheel: a build of onnxruntime says which it is."""
    files: dict[str, str | bytes] = {}
    if name.startswith("onnxruntime") and "genai" not in name:  # that has a folder of its own
        files = {
            "onnxruntime/__init__.py": f"# {name}",
            "onnxruntime/capi/build_and_package_info.py": ABOUT.format(name, version),
        }
    elif name == "torch":
        digits = version.partition("+cu")[2] or "126"
        about = f"__version__ = '{version}'\ncuda = '{digits[:-1]}.{digits[-1]}'\n"
        files = {"torch/__init__.py": "", "torch/version.py": about}
    elif name == "fastembed":
        requires = ("onnxruntime>=1.17.0",)
    return make_wheel(folder, name, version, files=files, requires=requires)


def with_standins(matrix: Matrix, wheels: dict[tuple[str, str], Wheel]) -> Matrix:
    """Return the tables, in which stand-ins have the place of the wheels that they stand for."""

    def known(row: Any, name: str, version: str) -> Any:
        wheel = wheels.get((name, version))
        return row._replace(file=wheel.file, size=wheel.size, sha256=wheel.sha256) if wheel else row

    builds = tuple(
        one._replace(wheels=tuple(known(row, "onnxruntime-gpu", one.version) for row in one.wheels))
        for one in matrix.builds
    )
    distributions = {
        name: one._replace(releases=tuple(known(row, name, row.version) for row in one.releases))
        for name, one in matrix.distributions.items()
    }
    torch = matrix.torch._replace(
        builds=tuple(
            one._replace(wheels=tuple(known(row, "torch", one.version) for row in one.wheels))
            for one in matrix.torch.builds
        )
    )
    numpy = tuple(known(row, "numpy", row.version) for row in matrix.numpy)
    return matrix._replace(builds=builds, distributions=distributions, torch=torch, numpy=numpy)
