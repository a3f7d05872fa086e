"""Prove with real wheels that others that use CUDA are whole after an apply, and share one process.

    python scripts/prove/consumers.py [--work DIR] [--only tensorflow,jax12 …] [--cache DIR]
                                      [--results DIR]

Each environment is installed by uv as its users do it, planned for drivers of four CUDA releases,
mended for one of them, and looked at: every file of theirs and of NVIDIA's wheels that was there is
the same, pip finds nothing broken, their own installation wants nothing new, and in one process,
whoever is imported first, their libraries and those of the provider are loaded, each from one file.
Then the change is undone, and every file is as it was. There is no GPU: nothing is computed. Needs
Linux, uv and a network, and downloads about 15 GB. The dated result goes to scripts/prove/results/;
the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.autoload import COPIES, HERE, Prover, call, digest, finish, site_packages

PYTHON = "3.12"
DRIVERS = {"535.104.12": "CUDA 12.2", "570.86.15": "12.8", "580.95.05": "13.0", "610.10": "13.3"}


class Case(NamedTuple):
    """An environment."""

    requirements: tuple[str, ...]
    module: str
    """What an application imports beside onnxruntime; nothing where that is not here."""
    releases: tuple[str | None, ...]
    """Of onnxruntime-gpu for each of `DRIVERS`, worked out by hand; None: impossible."""
    driver: str = "580.95.05"
    """The driver of the plan that is done."""
    described: tuple[str, ...] = ()
    """Distributions whose wheels no package index has: their metadata alone is installed."""


OF_12 = ("1.26.0",) * 4
OF_13 = (None, None, "1.31.1", "1.31.1")
CASES = {
    "tensorflow": Case(
        ("tensorflow[and-cuda]==2.19.*", "onnxruntime==1.22.1", "numpy<2.2"), "tensorflow", OF_12
    ),
    "jax12": Case(("jax[cuda12]==0.6.*", "onnxruntime"), "jax", OF_12),
    "jax13": Case(("jax[cuda13]", "onnxruntime"), "jax", OF_13),
    "faster-whisper": Case(
        ("faster-whisper", "nvidia-cublas-cu12", "nvidia-cudnn-cu12==9.1.0.70"),
        "faster_whisper",
        OF_12,
    ),
    "cupy": Case(("cupy-cuda12x", "onnxruntime"), "cupy", OF_12),
    "genai-0.18": Case(("onnxruntime-genai-cuda==0.18.*",), "onnxruntime_genai", OF_13),
    "genai-0.14": Case(
        ("onnxruntime-genai-cuda==0.14.1", "onnxruntime-gpu==1.26.0"),
        "onnxruntime_genai",
        OF_12,
        "535.104.12",
    ),
    # For CUDA 11 and cuDNN 8, of which nothing is here.
    "paddle": Case(
        ("paddlepaddle-gpu", "onnxruntime", "setuptools"),
        "paddle",
        ("1.26.0", "1.26.0", "1.31.1", "1.31.1"),
    ),
}
TENSORRT = "10.13.2.6"
CASES["tensorrt"] = Case(
    # PyPI has the bindings, and of the libraries a placeholder that downloads them from elsewhere.
    (f"tensorrt-cu12-bindings=={TENSORRT}", "nvidia-cuda-runtime-cu12", "onnxruntime"),
    "",
    OF_12,
    described=(
        f"tensorrt_cu12=={TENSORRT}: tensorrt_cu12_libs=={TENSORRT}",
        f"tensorrt_cu12_libs=={TENSORRT}: nvidia-cuda-runtime-cu12",
    ),
)
TOGETHER = """
import ctypes, json, os, sys
for name in sys.argv[2].split(","):
    __import__(name)
import onnxruntime
onnxruntime.OrtDevice.make("cuda", 0)
capi = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
for name in ["shared", "cuda"]:
    ctypes.CDLL(os.path.join(capi, f"libonnxruntime_providers_{name}.so"))
for name in json.loads(sys.argv[1]):
    ctypes.CDLL(name)
"""


def files_of(site: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below; bytecode and this program's own folder left out."""
    return {
        path.relative_to(site).as_posix(): digest(path)
        for path in sorted(site.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and ".ortgpu-fix" not in path.parts
    }


def tool(prover: Prover, python: Path, *words: str, driver: str = "") -> dict[str, Any]:
    """Run this program for `python`, and return what it prints as JSON with its exit code."""
    machine = ["--driver", driver, "--gpu", "8.0"] if driver else []
    argv = [sys.executable, "-m", "ortgpu_fix", *words, "--json", "--python", str(python)]
    done = call(*argv, *machine, environ=prover.environ, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return {**document, "exit": done.returncode}


def selected(plan: dict[str, Any]) -> str | None:
    """Return the release of onnxruntime-gpu in a plan."""
    rows = plan["selection"]["packages"] if plan["selection"] else []
    return next((row["version"] for row in rows if row["name"] == "onnxruntime-gpu"), None)


def prove(prover: Prover, name: str, case: Case) -> None:
    """Try one environment."""
    python = prover.environment(f"env-{name}", PYTHON)
    prover.install(python, *case.requirements, "pip")
    site = site_packages(python)
    for row in case.described:
        describe(site, row)
    plans = {driver: tool(prover, python, "--dry-run", driver=driver) for driver in DRIVERS}
    found = tuple(map(selected, plans.values()))
    prover.say("plans", name, good=found == case.releases, releases=found)
    plan = plans[case.driver]
    before = files_of(site)
    applied = tool(prover, python, "--apply", "--yes", driver=case.driver)
    after = files_of(site)
    replaced = {*plan["uninstall"], *(row["name"] for row in plan["install"])}
    moved = sorted({row for row in replaced if row.startswith("nvidia-")})
    changed = sorted(
        path
        for path, content in before.items()
        if not path.startswith("onnxruntime/")
        and not path.startswith(("onnxruntime-", "onnxruntime_gpu-"))
        and after.get(path) != content
    )
    prover.say(
        "applied", name, good=applied["exit"] == 0 and not changed, changed=changed, wheels=moved
    )
    checked = call(python, "-m", "pip", "check", environ=prover.environ, check=False)
    theirs = [row for row in case.requirements if not row.startswith("onnxruntime==")]
    again: list[str | Path] = ["install", "--dry-run", *theirs]
    uv: list[str | Path] = ["uv", "--no-config", "pip", *again, "--python", python]
    wanted = call(*uv, environ=prover.environ)
    pip = call(python, "-m", "pip", *again, environ=prover.environ, check=False)
    prover.say(
        "kept",
        name,
        good=checked.returncode == pip.returncode == 0
        and "Would make no changes" in wanted.stderr
        and "Would install" not in pip.stdout,
        pip=checked.stdout.strip(),
        pip_would=pip.stdout.partition("Would install")[2].strip(),
        uv=wanted.stderr.strip().splitlines()[-1],
        check=tool_check(prover, python, case.driver),
    )
    # What none of the wheels here has, its user cannot load; cuDNN opens its own parts itself.
    here = {path.name for path in site.glob("nvidia/**/lib*.so*")}
    named = {need for row in applied["consumers"] for need in row["needs"]}
    needs = sorted(need for need in named & here if not need.startswith("libcudnn_"))
    orders = (f"{case.module},onnxruntime", f"onnxruntime,{case.module}") if case.module else ()
    for order in orders:
        driver = {"LD_LIBRARY_PATH": prover.driver}  # a stand-in: providers for CUDA 13 link it
        done = prover.run(python, TOGETHER + COPIES, json.dumps(needs), order, **driver)
        copies = json.loads(done.stdout.strip().rpartition("\n")[2] or "{}")
        twice = {library: paths for library, paths in copies.items() if len(paths) > 1}
        good = done.returncode == 0 and not twice and set(needs) <= set(copies)
        said = done.stderr.strip()[-200:] if not good else ""
        prover.say("together", f"{name}, {order}", good=good, libraries=sorted(copies), said=said)
    undone = tool(prover, python, "undo", "--yes")
    left = files_of(site)
    prover.say("undone", name, good=undone["exit"] == 0 and left == before, files=len(left))
    if not prover.keep:
        shutil.rmtree(python.parents[1])
        if Path(prover.environ["UV_CACHE_DIR"]).is_relative_to(prover.work):
            shutil.rmtree(prover.environ["UV_CACHE_DIR"], ignore_errors=True)


def describe(site: Path, row: str) -> None:
    """Install the metadata of a distribution: `name==version: what it requires`."""
    wanted, _, requires = row.partition(": ")
    name, _, version = wanted.partition("==")
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (folder / "METADATA").write_text("\n".join([*lines, f"Requires-Dist: {requires}", ""]))
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")


def tool_check(prover: Prover, python: Path, driver: str) -> int:
    """Return the exit code of `--check`."""
    argv = [sys.executable, "-m", "ortgpu_fix", "--check", "--python", str(python)]
    argv += ["--driver", driver, "--gpu", "8.0"]
    return call(*argv, environ=prover.environ, check=False).returncode


def main() -> int:
    """Try every environment; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, help="folder for environments")
    parser.add_argument("--only", default=",".join(CASES), help="environments, with commas")
    parser.add_argument("--cache", type=Path, help="uv's cache, to download once for several runs")
    parser.add_argument("--keep", action="store_true", help="leave the environments")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-consumers-"))
    prover = Prover(work, keep=options.keep)
    # Gigabytes that nobody else needs, unless a cache is named.
    prover.environ["UV_CACHE_DIR"] = str(options.cache or work / "cache")
    begin = time.monotonic()
    for name in options.only.split(","):
        prove(prover, name, CASES[name])
    return finish(prover, "consumers", options, begin)


if __name__ == "__main__":
    sys.exit(main())
