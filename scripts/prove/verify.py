"""Prove the verdicts of `verify` with real releases and NVIDIA's real driver libraries.

    python scripts/prove/verify.py [--work DIR] [--only 1.26.0,1.31.1 …] [--keep]

For each release a fresh environment with its CUDA and cuDNN wheels is made from the index, and
checked without a driver, with the user-mode drivers that Debian's non-free archives carry (real
version check, no GPU: CUDA failure 100 where the driver suffices, 35 where it does not), and with a
stub that answers as a newer driver, or a broken one, would. Nothing is installed on the machine:
packages are unpacked below DIR. Needs uv, gcc, apt-get, dpkg, a network, and about 4 GB; takes ten
minutes. The dated result goes to scripts/prove/results/; the exit code is 1 where a cell is not as
expected.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.utils.process import run as run_process
from ortgpu_fix.verify.runner import verify
from ortgpu_fix.verify.verification import Verification
from support.debian_archive import DebianArchive, command
from support.prover import STUB, Run
from support.pythons import find_python

CUDA_11 = (
    "nvidia-cublas-cu11==11.11.3.6",
    "nvidia-cuda-runtime-cu11==11.8.89",
    "nvidia-cufft-cu11==10.9.0.58",
    "nvidia-curand-cu11==10.3.0.86",
    "nvidia-cuda-nvrtc-cu11==11.8.89",
    "nvidia-cudnn-cu11==8.9.6.50",
    "numpy<2",
)
CUDA_12 = (
    "nvidia-cublas-cu12==12.8.*",
    "nvidia-cuda-runtime-cu12==12.8.*",
    "nvidia-cufft-cu12==11.3.*",
    "nvidia-curand-cu12==10.3.9.*",
    "nvidia-cuda-nvrtc-cu12==12.8.*",
    "nvidia-cudnn-cu12==9.*",
)
CUDA_13 = (
    "nvidia-cublas==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cufft==12.0.*",
    "nvidia-curand==10.4.0.*",
    "nvidia-cuda-nvrtc==13.0.*",
    "nvidia-cudnn-cu13==9.*",
)
RELEASES: dict[str, tuple[str, int]] = {
    "1.11.1": ("3.8", 11),
    "1.14.1": ("3.8", 11),
    "1.16.3": ("3.10", 11),
    "1.18.1": ("3.10", 11),
    "1.19.2": ("3.9", 12),
    "1.20.2": ("3.10", 12),
    "1.22.0": ("3.11", 12),
    "1.23.2": ("3.12", 12),
    "1.26.0": ("3.13", 12),
    "1.27.0": ("3.12", 13),
    "1.28.0": ("3.11", 13),
    "1.31.1": ("3.13", 13),
}
"""Release, to the Python that runs it here and the CUDA major that it is built for."""
WHEELS = {11: CUDA_11, 12: CUDA_12, 13: CUDA_13}
FLOOR = {11: 450, 12: 525, 13: 580}
"""The first driver branch that runs a CUDA major (minor-version compatibility)."""

DEBIAN = {
    "418": ("libnvidia-tesla-418-cuda1", "libnvidia-tesla-418-fatbinaryloader"),
    "450": ("libnvidia-tesla-450-cuda1",),
    "460": ("libnvidia-tesla-460-cuda1",),
    "470": ("libcuda1/bullseye",),
    "525": ("libnvidia-tesla-cuda1",),
    "535": ("libcuda1/bookworm",),
    "550": ("libcuda1/trixie",),
    "555": ("libcuda1/experimental",),
}
SUITES = ("bullseye", "bookworm", "trixie", "experimental")
STUBS = {"580 (stub)": (13000, 100), "610 (stub)": (13030, 100)}
BROKEN = {802: "802 (stub)", 803: "803 (stub)", 804: "804 (stub)", 999: "999 (stub)"}


def main() -> int:
    """Do all of it; return the exit code."""
    run = Run(__doc__, "verify")
    prover = run.prover
    drivers = {"none": ""} | debian_drivers(prover.work / "apt")
    drivers |= stub_drivers(prover.work / "stubs")
    for release, (python, major) in RELEASES.items():
        if not run.wants(release):
            continue
        if find_python(python) is None:
            prover.say("skipped", release, good=True, release=release, python=python)
            continue
        made = prover.environment(f"env-{release}", python)
        prover.install(made, f"onnxruntime-gpu=={release}", *WHEELS[major])
        for driver, folder in drivers.items():
            row = check(made, folder) | {"release": release, "python": python, "cuda": major}
            wanted = expected(major, driver)
            right = row["verdict"] == wanted
            row |= {"driver": driver, "expected": wanted, "as_expected": right}
            prover.say("cell", f"{release}, {driver}", good=right, **row)
        prover.drop(made)
    return run.finish()


def expected(major: int, driver: str) -> str:
    """Return the verdict that a cell must have."""
    if driver == "none":
        return "no-driver"
    branch = int(driver[:3])
    if branch in BROKEN:
        return "no-gpu"
    if "(stub)" not in driver and branch < FLOOR[major]:
        return "driver-too-old"
    return "no-gpu"


def check(python: Path, folder: str) -> dict[str, Any]:
    """Return what `verify` says, with help and without, where the driver lies in `folder`."""
    environ = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    if folder:
        environ["LD_LIBRARY_PATH"] = folder
    begin = time.monotonic()
    helped = verify(python, driver=None, runner=run_process, environ=environ)
    seconds = time.monotonic() - begin
    plain = verify(python, driver=None, runner=run_process, environ=environ, plain=True)
    return {
        "verdict": helped.verdict,
        "notes": [note.code for note in helped.notes],
        "evidence": brief(helped),
        "helped": list(helped.helped),
        "plain": plain.verdict,
        "seconds": round(seconds, 2),
    }


def brief(verification: Verification) -> list[str]:
    """Return the evidence, each line once and short."""
    lines = (re.sub(r"^(conv|matmul|fft): ", "", line) for line in verification.evidence[1:])
    return list(dict.fromkeys(line[:200] for line in lines))


def debian_drivers(folder: Path, branches: Collection[str] = DEBIAN) -> dict[str, str]:
    """Unpack the real drivers; return the folder of each by its full release number."""
    archive = DebianArchive(folder, SUITES, "non-free")
    if not archive.can_be_had:
        print("Debian's drivers cannot be had here: skipped", file=sys.stderr)
        return {}
    found: dict[str, str] = {}
    for branch in branches:
        found |= dict(libraries(archive.unpack(DEBIAN[branch], folder / branch)))
    return found


def libraries(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the release and the search path of the driver below `root`."""
    folders = {str(file.parent) for file in root.rglob("lib*.so.*")}
    for file in root.rglob("libcuda.so.*.*"):
        yield file.name.removeprefix("libcuda.so."), ":".join(sorted(folders, reverse=True))


def stub_drivers(folder: Path) -> dict[str, str]:
    """Compile the stand-ins; return the folder of each."""
    found: dict[str, str] = {}
    kinds = STUBS | {name: (13000, code) for code, name in BROKEN.items()}
    for name, (speaks, answer) in kinds.items():
        place = folder / name.partition(" ")[0]
        place.mkdir(parents=True, exist_ok=True)
        options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", f"-DSPEAKS={speaks}"]
        options += [f"-DINIT={answer}", "-o", str(place / "libcuda.so.1"), str(STUB)]
        if command("gcc", *options):
            found[name] = str(place)
    return found


if __name__ == "__main__":
    sys.exit(main())
