"""Stand-ins for the real wheels: small, and sharing files in the same ways.

Both builds of onnxruntime own one folder, both cuDNN distributions another, all of `nvidia-*`
one `__init__.py`; some carry console scripts. Also the digest that tells two states of an
environment apart.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import parse_wheel_filename

from ortgpu_fix.facts.target import STATE_FOLDER, Target
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils.process import run
from support.local_index import make_wheel

WINDOWS = sys.platform == "win32"
COMMON: dict[str, str | bytes] = {
    "onnxruntime/__init__.py": "import onnxruntime.capi\n",
    "onnxruntime/capi/__init__.py": "",
    "onnxruntime/capi/_pybind_state.py": "x = 1\n",
    "onnxruntime/capi/onnxruntime_pybind11_state.so": b"\x7fELF" * 5000,
    "onnxruntime/tools/check.py": "y = 2\n",
}


def make_set(folder: Path) -> dict[str, Path]:
    """Write the stand-in wheels into `folder` and return them by `name version`."""
    wheels: dict[str, Path] = {}

    def add(name: str, version: str, **options: object) -> None:
        wheels[f"{name} {version}"] = make_wheel(folder, name, version, **options)  # type: ignore[arg-type]

    def ort(name: str, version: str, **files: str | bytes) -> dict[str, str | bytes]:
        about = f"package_name = '{name}'\n__version__ = '{version}'\n"
        return {**COMMON, "onnxruntime/capi/build_and_package_info.py": about, **files}

    test = {"onnxruntime_test": "onnxruntime.tools.check:main"}
    needs = ["flatbuffers", "packaging", "protobuf>=4"]
    add("onnxruntime", "1.22.1", files=ort("onnxruntime", "1.22.1"), requires=needs, scripts=test)
    for version in ("1.26.0", "1.31.1"):
        provider: dict[str, str | bytes] = {
            "onnxruntime/capi/libonnxruntime_providers_cuda.so": os.urandom(200_000),
            "onnxruntime_gpu.libs/": "",  # releases up to 1.19 have this folder, and nothing in it
        }
        add(
            "onnxruntime-gpu",
            version,
            files={**ort("onnxruntime-gpu", version), **provider},
            requires=needs,
            scripts=test,
        )
    for cuda in ("12", "13"):
        add(
            f"nvidia-cudnn-cu{cuda}",
            "9.28.0.42",
            files={
                "nvidia/__init__.py": "",
                "nvidia/cudnn/__init__.py": "",
                "nvidia/cudnn/lib/libcudnn.so.9": f"cudnn for {cuda}".encode() * 5000,
            },
        )
    for name in ("nvidia-cublas-cu12", "nvidia-curand-cu12"):
        short = name.split("-")[1]
        add(
            name,
            "12.9.2.10",
            files={"nvidia/__init__.py": "", f"nvidia/{short}/lib/lib{short}.so.12": b"x" * 9000},
        )
    add("flatbuffers", "25.9.23", files={"flatbuffers/__init__.py": ""})
    add("packaging", "25.0", files={"packaging/__init__.py": ""})
    add("protobuf", "6.33.0", files={"google/protobuf/__init__.py": ""})
    add("fastembed", "0.9.1", files={"fastembed.py": ""}, requires=["onnxruntime>=1.17"])
    add("bystander", "1.0", files={"bystander/__init__.py": "z = 3\n"}, requires=["protobuf<6"])
    return wheels


def as_wheel(path: Path) -> Wheel:
    """Return what the matrix would say of the wheel at `path`."""
    name, version, _, _ = parse_wheel_filename(path.name)
    data = path.read_bytes()
    return Wheel(
        name=name,
        version=str(version),
        index_url="pypi",
        file=path.name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def as_plan(
    install: Iterable[Path], uninstall: Iterable[str] = (), requires: Iterable[str] = ()
) -> Plan:
    """Return a plan that does this, and says nothing else."""
    nothing: dict[str, Any] = dict.fromkeys(Plan._fields, ())
    return Plan(
        **nothing
        | {
            "verdict": "fixable",
            "cuda": "12",
            "uninstall": tuple(uninstall),
            "install": tuple(as_wheel(path) for path in install),
            "requires": tuple(requires),
            "matrix_date": "2026-11-21",
            "matrix_digest": "sha256:0",
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Venv:
    """A real virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if WINDOWS else "bin/python")

    @property
    def site(self) -> Path:
        """Its site-packages."""
        return next(
            self.folder.glob("Lib/site-packages" if WINDOWS else "lib/python*/site-packages")
        )

    def target(self) -> Target:
        """Return what the program sees of it."""
        return target_of(str(self.python), environ=os.environ, cwd=Path(), runner=run)

    def install(self, *wheels: Path | str, links: str | None = None) -> None:
        """Put wheels in, in this order, with uv, as a user may have done.

        With `links`, a folder, names with their versions are meant, and what they require too.
        """
        more = ["--no-deps"] if links is None else ["--no-index", "--find-links", links]
        for wheel in wheels:
            command = [find_uv(), "pip", "install", "-q", "--offline", "--no-config", *more]
            command += ["--link-mode", "copy", "--python", str(self.python), str(wheel)]
            subprocess.run(command, check=True, env=clean_environment())


def find_uv() -> str:
    """Return the uv that is beside this interpreter, or on the PATH."""
    beside = Path(sys.executable).with_name("uv.exe" if WINDOWS else "uv")
    return str(beside) if beside.is_file() else "uv"


def clean_environment() -> dict[str, str]:
    """Return the environment without settings and configuration files of pip and uv."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "PYTHON", "UV_", "VIRTUAL_ENV"))
    }
    return clean | {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def make_venv(folder: Path, *, pip: bool) -> Venv:
    """Make a virtual environment of the Python that runs this, with pip or without."""
    base = getattr(sys, "_base_executable", sys.executable)
    options = [] if pip else ["--without-pip"]
    subprocess.run([base, "-m", "venv", *options, str(folder)], check=True)
    return Venv(folder=folder)


def state_of(folder: Path, *, times: bool = True) -> Mapping[str, str]:
    """Return every file, folder and link under `folder` with its mode and content, by its path.

    With `times` also when each file was changed. The state folder of the program is left out.
    """
    found: dict[str, str] = {}
    for inner, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != STATE_FOLDER)
        for name in [*names, *folders]:
            path = Path(inner, name)
            relative = str(path.relative_to(folder))
            about = path.lstat()
            if path.is_symlink():
                what = f"link to {path.readlink()}"
            elif stat.S_ISDIR(about.st_mode):
                what = "folder"
            else:
                what = hashlib.sha256(path.read_bytes()).hexdigest()
                what += f" {about.st_mtime_ns}" if times else ""
            found[relative] = f"{oct(about.st_mode)} {what}"
    return found


def without_notes(folder: Path) -> dict[str, str]:
    """Return `state_of` without times, and without what uv and bytecode note of a file's time.

    uv notes it of a file that it was given, and not of one from an index.
    """
    noted = ("dist-info/RECORD", ".pyc")
    found = state_of(folder, times=False)
    return {
        path: "" if path.endswith(noted) else what
        for path, what in found.items()
        if not path.endswith("uv_cache.json")
    }
