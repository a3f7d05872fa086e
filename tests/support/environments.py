"""Real Python environments with small stand-in distributions that have a true RECORD."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from support.pythons import find_python
from support.standin_wheels import find_uv

REAL_WHEELS = (
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which(find_uv()) is None, reason="needs uv, on Linux"
    ),
    pytest.mark.skipif(find_python("3.11") is None, reason="needs Python 3.11"),
)
"""The marks of tests that install PyPI's wheels for Python 3.11 with uv."""
NEEDS_GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def require_ensurepip() -> None:
    """Leave the test out where no environment with pip can be made, as on a bare Debian."""
    if importlib.util.find_spec("ensurepip") is None:
        pytest.skip("this Python has no ensurepip: `apt install python3-venv`")


def own_base() -> Path:
    """Return the interpreter below the environment that runs the tests."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return Path(sys.base_prefix) / "bin" / version


def path_without_ours() -> str:
    """Return PATH without the environment that runs the tests, which would be an active one."""
    ours = Path(sys.executable).parent
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder) != ours)


def make_venv(python: Path, folder: Path, *options: str) -> Path:
    """Make a venv without pip and return its interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", *options, folder], check=True)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def make_prefix(folder: Path) -> Path:
    """Make a Python of its own, no venv, whose library is links to ours; return its interpreter."""
    if "posix_local" in sysconfig.get_scheme_names():
        pytest.skip("the Python of Debian has its packages elsewhere, wherever it lies")
    base = own_base()
    library = Path(os.__file__).parent
    own = folder / "lib" / base.name
    (own / "site-packages").mkdir(parents=True)
    (folder / "bin").mkdir()
    for path in library.iterdir():
        if path.name not in {"site-packages", "EXTERNALLY-MANAGED", "__pycache__"}:
            (own / path.name).symlink_to(path)
    return Path(shutil.copy2(base.resolve(), folder / "bin" / base.name))


def site_packages(interpreter: Path) -> Path:
    """Return the site-packages folder of a venv."""
    names = "Lib/site-packages" if sys.platform == "win32" else "lib/python*/site-packages"
    return next(interpreter.parents[1].glob(names))


def put(
    site: Path,
    name: str,
    version: str,
    *,
    requires: Iterable[str] = (),
    files: Mapping[str, bytes] | None = None,
    extra: Mapping[str, str] | None = None,
    installer: str = "pip",
) -> Path:
    """Put a distribution there as pip would and return its dist-info folder."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    head += "".join(f"Requires-Dist: {line}\n" for line in requires)
    contents = dict(files or {})
    contents[f"{info.name}/METADATA"] = f"{head}\nName: not this one\n".encode()
    contents[f"{info.name}/INSTALLER"] = f"{installer}\n".encode()
    contents |= {f"{info.name}/{path}": text.encode() for path, text in (extra or {}).items()}
    record = ""
    for path, content in contents.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    (info / "RECORD").write_text(f"{record}{info.name}/RECORD,,\n")
    return info


def put_onnxruntime(
    site: Path,
    name: str = "onnxruntime-gpu",
    version: str = "1.26.0",
    cuda: str | None = "12.8",
    *,
    described: bool = True,
) -> Path:
    """Put a stand-in for a build of onnxruntime there: the files by which builds are told apart.

    Releases up to 1.18 are not all `described`: nothing in their folder says what it is.
    """
    about = f"package_name = '{name}'\n__version__ = '{version}'\n"
    about += f'cuda_version = "{cuda}"\n' if cuda else ""
    files = {
        "onnxruntime/__init__.py": b"raise SystemExit('imported')\n",
        "onnxruntime/capi/build_and_package_info.py": about.encode(),
        "onnxruntime/capi/onnxruntime_pybind11_state.so": f"{name} {version}".encode() * 30_000,
    }
    if not described:
        del files["onnxruntime/capi/build_and_package_info.py"]
    if name == "onnxruntime-gpu":
        files["onnxruntime/capi/libonnxruntime_providers_cuda.so"] = b"cuda" * 100_000
    return put(site, name, version, requires=["numpy>=1.21.6", "flatbuffers"], files=files)
