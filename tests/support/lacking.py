"""An environment that is right for the example machine, but for one ordinary requirement."""

from __future__ import annotations

import subprocess
from pathlib import Path

from packaging.requirements import Requirement

from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from support.local_index import make_wheel
from support.standin_wheels import Venv, clean_environment, find_uv


def install_all_but(lacks: str, venv: Venv, folder: Path) -> None:
    """Install empty wheels of all that the plan for the example machine has, but for `lacks`.

    The wheels are made in `folder`.
    """
    about = "package_name = 'onnxruntime-gpu'\n__version__ = '1.26.0'\n"
    files = {"onnxruntime/__init__.py": "", "onnxruntime/capi/build_and_package_info.py": about}
    example = from_json(example_machine())._replace(packages=(), onnxruntime=None)
    version = ".".join(venv.target().version.split(".")[:2])
    python = example.python._replace(version=f"{version}.0")
    made = resolve(example._replace(python=python), PlanOptions(), load_matrix())
    rows = [(wheel.name, wheel.version) for wheel in made.selection]
    rows += [(Requirement(line).name, "99") for line in made.requires]
    for name, number in rows:
        own = files if name == "onnxruntime-gpu" else {}
        requires = [lacks] if name == "onnxruntime-gpu" else []
        make_wheel(folder, name, number, files=own, requires=requires)
    wheels = [path for path in folder.iterdir() if lacks not in path.name]
    argv = [find_uv(), "pip", "install", "-q", "--offline", "--no-config", "--no-deps"]
    argv += ["--link-mode", "copy", "--python", str(venv.python), *map(str, wheels)]
    subprocess.run(argv, check=True, env=clean_environment())
