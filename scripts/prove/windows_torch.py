r"""Beside a torch for Windows only onnxruntime-gpu comes, and it finds CUDA's libraries in torch's.

    python scripts/prove/windows_torch.py --work DIR [--only TEXT]

A Windows Python under Wine has the CPU-only package and torch 2.8.0+cu126. PyPI has no torch for
CUDA on Windows: a small stand-in gets the DLLs of NVIDIA's own wheels of CUDA 12.6.3 and cuDNN
9.10.2.21 in `torch\lib`, those that PyTorch's copy.bat copies, and loads them when it is imported,
as the real one does. `--apply` has no index, and a directory with the wheels of onnxruntime-gpu and
msvc-runtime alone. Then an unchanged script gets its provider loaded, the debug lines say from
where, `--check` finds that torch was trimmed, removed, or replaced by one of CUDA 13.

Needs what `windows.py` needs, a wheel in dist, and 8 GB. The dated result goes to
scripts/prove/results; the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.windows import CPU_BUILD, NUMPY, ROOT, SETS, TORCH_WHEEL, Proof, remove, text
from support.torch_index import make_torch
from support.windows_python import prove as run_cases

RELEASE, _, LOADED = SETS["12"]
TORCH = "2.8.0+cu126"
OF_TORCH = {
    "nvidia-cublas-cu12": "12.6.4.1",
    "nvidia-cuda-nvrtc-cu12": "12.6.85",
    "nvidia-cuda-runtime-cu12": "12.6.77",
    "nvidia-cudnn-cu12": "9.10.2.21",
    "nvidia-cufft-cu12": "11.3.0.4",
    "nvidia-curand-cu12": "10.3.7.77",
    "nvidia-nvjitlink-cu12": "12.6.85",
}
COPIED = re.compile(r"(cublas|cudart|cudnn|cufft|curand|nvrtc).*64_.*\.dll|nvJitLink_.*\.dll")
"""What copy.bat takes of them."""
IMPORT = """
import ctypes, os
from .version import __version__
os.add_dll_directory(lib := os.path.join(os.path.dirname(__file__), "lib"))
for name in sorted(os.listdir(lib)):
    if name.endswith(".dll"):
        ctypes.WinDLL(os.path.join(lib, name))
"""
MACHINE = ("--driver", "566.36", "--gpu", "8.6")
QUIET = {"PYTHONDONTWRITEBYTECODE": "1", "ORTGPU_FIX_DEBUG": "1"}
TRIES = 5
LINE = re.compile(r"ortgpu-fix: loaded (\S.*?)\r*\n")


class BesideTorch:
    """An environment with torch, and the directory of the two wheels."""

    def __init__(self, work: Path) -> None:
        self.proof, self.folder = Proof(work), work / "环境 with spaces"
        self.near, self.dlls = work / "two-wheels", work / "dlls"
        self._download(self.near, f"onnxruntime-gpu=={RELEASE}", "msvc-runtime")
        self._download(work / "nvidia", *(f"{name}=={OF_TORCH[name]}" for name in OF_TORCH))
        self.dlls.mkdir(exist_ok=True)
        for wheel in (work / "nvidia").glob("*.whl"):
            with zipfile.ZipFile(wheel) as file:
                for member in file.namelist():
                    name = member.rpartition("/")[2]
                    if COPIED.fullmatch(name) and not (self.dlls / name).exists():
                        (self.dlls / name).write_bytes(file.read(member))

    @staticmethod
    def _download(folder: Path, *requirements: str) -> None:
        words = ("-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir")
        for_windows = ("--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:")
        if not folder.exists():
            told: list[str | Path] = [
                sys.executable,
                *words,
                *for_windows,
                "-d",
                folder,
                *requirements,
            ]
            subprocess.run(told, check=True)

    @property
    def site(self) -> Path:
        """The site-packages of the environment."""
        return self.folder / "Lib" / "site-packages"

    def install(self, version: str, dlls: Path | None) -> None:
        """Put a torch there, in the place of another one."""
        self.uninstall()
        wheel = make_torch(self.proof.work, "torch", version, tag=TORCH_WHEEL)
        with zipfile.ZipFile(wheel) as file:
            file.extractall(self.site)
        (self.site / "torch" / "__init__.py").write_text(IMPORT)
        for dll in dlls.iterdir() if dlls else ():
            (self.site / "torch" / "lib" / dll.name).hardlink_to(dll)

    def uninstall(self) -> None:
        """Take torch away."""
        for path in (self.site / "torch", *self.site.glob("torch-*.dist-info")):
            shutil.rmtree(path, ignore_errors=True)

    def fix(self, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
        """Run the program for this environment; again where Wine was too slow to answer."""
        done = self.proof.fix(*words, "--python", self.folder)
        for _ in range(TRIES):
            if b"did not answer within" in done.stdout + done.stderr:
                done = self.proof.fix(*words, "--python", self.folder)
        return done

    def plan(self) -> dict[str, Any]:
        """Return the plan."""
        document: dict[str, Any] = json.loads(self.fix("--json", *MACHINE).stdout)
        return document

    def health(self) -> int:
        """Return what the loader's own check says."""
        python = self.folder / "Scripts" / "python.exe"
        words = ("-m", "_ortgpu_fix_libraries")
        return self.proof.wine.run(python, *words, environ=QUIET).returncode

    def applied(self, about: dict[str, Any]) -> Iterator[str]:
        """Fix it from two wheels, and run an unchanged script."""
        remove(self.folder)
        python = self.proof.wine.venv(self.folder, NUMPY, CPU_BUILD)
        self.install(TORCH, self.dlls)
        near: list[str | Path] = ["--offline", "--find-links", self.near]
        done = self.fix("--apply", "--yes", "--json", *MACHINE, *near)
        if done.returncode != 0:
            yield f"apply: exit {done.returncode}, {text(done)[-600:]}"
            return
        about["installed"] = [row["file"] for row in json.loads(done.stdout)["install"]]
        about["of torch"] = len(list(self.dlls.iterdir()))
        if there := [path.name for path in self.site.glob("nvidia*")]:
            yield f"wheels of NVIDIA: {there}"
        model = ROOT / "data" / "matmul.onnx"
        for first in ("", "import torch\n"):
            script = self.proof.script.with_name("script.py")
            script.write_text(first + self.proof.script.read_text())
            said = text(self.proof.wine.run(python, script, model, environ=QUIET))
            if not re.search(LOADED, said):
                yield f"an unchanged script, {first!r}: {said[-400:]}"
            paths = [path.replace("\\", "/") for path in LINE.findall(said)]
            mine = [path for path in paths if re.search("/(cu|nv)[^/]*$", path)]
            mine = [path.rpartition("site-packages/")[2] for path in mine]
            about["loaded, torch first" if first else "loaded"] = mine
            if any(not path.startswith("torch/lib/") for path in mine) or bool(mine) == bool(first):
                yield f"loaded, {first!r}: {mine}"
        yield from self._states(healthy=True, what="after the apply")

    def _states(self, *, healthy: bool, what: str) -> Iterator[str]:
        code, health = self.fix("--check", *MACHINE).returncode, self.health()
        if code not in ({0} if healthy else {1, 3}) or health != (not healthy):
            yield f"{what}: --check ends with {code}, the loader's own with {health}"

    def trimmed(self, about: dict[str, Any]) -> Iterator[str]:
        """Take one DLL away: its wheel is planned."""
        (self.site / "torch" / "lib" / "cufft64_11.dll").unlink(missing_ok=True)
        yield from self._states(healthy=False, what="without cuFFT")
        about["plan"] = names = [row["name"] for row in self.plan()["install"]]
        if names != ["nvidia-cufft-cu12"]:
            yield f"the plan installs {names}"

    def removed(self, about: dict[str, Any]) -> Iterator[str]:
        """Take torch away: all wheels are planned."""
        self.uninstall()
        yield from self._states(healthy=False, what="without torch")
        about["plan"] = names = [row["name"] for row in self.plan()["install"]]
        if names != [name for name in OF_TORCH if "curand" not in name]:
            yield f"the plan installs {names}"

    def another(self, about: dict[str, Any]) -> Iterator[str]:
        """Put a torch for CUDA 13 there: nothing is shared with what is built for 12."""
        self.install("2.9.1+cu130", None)
        yield from self._states(healthy=False, what="beside CUDA 13")
        made = self.plan()
        about["verdict"] = made["verdict"]
        [row] = [row for row in made["rejected"] if row["version"] == RELEASE]
        codes = [why["code"] for why in row["reasons"]]
        if codes != ["torch-other-cuda"]:
            yield f"{made['verdict']}: {codes}"


def main() -> int:
    """Run the cases and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", help="the cases that have this in their name")
    options = parser.parse_args()
    work = options.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    beside = BesideTorch(work)
    cases = {
        "an apply, from two wheels": beside.applied,
        "torch without cuFFT": beside.trimmed,
        "torch removed": beside.removed,
        "torch of CUDA 13": beside.another,
    }
    about: dict[str, dict[str, Any]] = {name: {} for name in cases}
    runs = {name: partial(case, about[name]) for name, case in cases.items()}
    return run_cases("windows-torch", beside.proof.wine, runs, options.only, about)


if __name__ == "__main__":
    sys.exit(main())
