"""Prove with real wheels that others that use CUDA are whole after an apply, and share one process.

    python scripts/prove/consumers.py [--work DIR] [--only tensorflow,jax12 …] [--cache DIR]
                                      [--results DIR]

Each environment is installed by uv as its users do it, planned for drivers of four CUDA releases,
mended for one of them, and looked at: every file of theirs and of NVIDIA's wheels that was there is
the same, pip finds nothing broken, their own installation wants nothing new, and in one process,
whoever is imported first, their libraries and those of the provider are loaded, each from one file.
Beside torch, `verify` itself must have said the same of both orders. Then the change is undone, and
every file is as it was.

And one environment without torch, where `--torch` asks for one and then for another: all that
they require comes by their own metadata, nothing installed is incompatible, and `undo` takes the
second back to the byte.

There is no GPU: nothing is computed, and a stand-in for the driver says so. Needs Linux, uv, gcc
and a network, and downloads about 20 GB. The dated result goes to scripts/prove/results/; the exit
code is 1 where something is not as it must be.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.apply import MACHINES, Workshop
from support.prover import (
    COPIES,
    Prover,
    Run,
    call,
    copies_of,
    files_of,
    selected,
    site_packages,
    twice,
)
from support.standin_wheels import find_uv

PYTHON = "3.12"
DRIVERS = {"535.104.12": "CUDA 12.2", "570.86.15": "12.8", "580.95.05": "13.0", "610.10": "13.3"}


class Case(NamedTuple):
    """An environment."""

    requirements: tuple[str, ...]
    module: str
    """What an application imports beside onnxruntime; nothing where that is not here."""
    releases: tuple[str | None, ...]
    """Of onnxruntime-gpu for each of `DRIVERS`, worked out by hand; None: none without a flag."""
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
for torch, row in {"2.10.0": OF_12, "2.11.0": OF_13, "2.14.0": OF_13}.items():
    CASES[f"torch-{torch}"] = Case((f"torch=={torch}",), "torch", row)
MOVES = ("2.11.0", "2.14.0")
"""The torch that is asked for, one after the other in one environment."""
MOVING = "chosen-torch"
SONAME = re.compile(r"(lib[\w-]+?)\.so(?:\.(\d+))?[.\d]*")
PROVIDER = "libonnxruntime_providers_cuda.so"
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


def prove(prover: Prover, name: str, case: Case) -> None:
    """Try one environment."""
    python = prover.environment(f"env-{name}", PYTHON)
    prover.install(python, *case.requirements, "pip")
    site = site_packages(python)
    for row in case.described:
        describe(site, row)
    plans = {driver: prover.tool(python, "--dry-run", driver=driver) for driver in DRIVERS}
    found = tuple(None if plan.get("needs") else selected(plan) for plan in plans.values())
    prover.say("plans", name, good=found == case.releases, releases=found)
    plan = plans[case.driver]
    before = files_of(site)
    applied = prover.tool(
        *(python, "--apply", "--yes"), driver=case.driver, LD_LIBRARY_PATH=prover.driver
    )
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
    uv: list[str | Path] = [find_uv(), "--no-config", "pip", *again, "--python", python]
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
        check=prover.check(python, case.driver),
    )
    # What none of the wheels here has, its user cannot load; cuDNN opens its own parts itself.
    here = {path.name for path in site.glob("nvidia/**/lib*.so*")}
    named = {need for row in applied["consumers"] for need in row["needs"]}
    needs = sorted(need for need in named & here if not need.startswith("libcudnn_"))
    orders = (f"{case.module},onnxruntime", f"onnxruntime,{case.module}") if case.module else ()
    for order in orders:
        driver = {"LD_LIBRARY_PATH": prover.driver}  # a stand-in: providers for CUDA 13 link it
        done = prover.run(python, TOGETHER + COPIES, json.dumps(needs), order, **driver)
        copies = copies_of(done)
        good = done.returncode == 0 and not twice(copies) and set(needs) <= set(copies)
        said = done.stderr.strip()[-200:] if not good else ""
        prover.say("together", f"{name}, {order}", good=good, libraries=sorted(copies), said=said)
    if case.module == "torch":
        say_torch(prover, name, applied["verification"], {str(site / path) for path in before})
    undone = prover.tool(python, "undo", "--yes")
    left = files_of(site)
    prover.say("undone", name, good=undone["exit"] == 0 and left == before, files=len(left))
    prover.drop(python)


def say_torch(prover: Prover, name: str, found: dict[str, Any], before: set[str]) -> None:
    """Hold what `verify` says of torch imported first and last; `before`: what came with torch.

    Every symbol was bound where all its models met the driver; a library of another CUDA major
    beside torch's own would be there twice.
    """
    failures = [line for line in found["evidence"] if "CUDA failure" in line]
    orders = {row["imported"]: row for row in found["torch"]["orders"]}
    wrong = [imported for imported, row in orders.items() if not is_right(row, before)]
    good = found["verdict"] == "no-gpu" and len(failures) == 3  # noqa: PLR2004 - models
    good = good and list(orders) == ["first", "last"] and not wrong
    verdict = found["verdict"]
    prover.say("verified", name, good=good, verdict=verdict, evidence=failures, wrong=wrong)


def is_right(row: dict[str, Any], before: set[str]) -> bool:
    """Tell whether a process had the provider, libraries of torch's, and none of them twice."""
    stems: dict[str, set[Path]] = {}
    for library in row["libraries"]:
        known = SONAME.fullmatch(library["name"])
        stem = known[1] if known else library["name"]
        stems.setdefault(stem, set()).add(Path(library["path"]).resolve())
    from_torch = {library["path"] for library in row["libraries"]} & before
    names = {library["name"] for library in row["libraries"]}
    once = all(len(paths) == 1 for paths in stems.values())
    return row["verdict"] == "no-gpu" and PROVIDER in names and bool(from_torch) and once


def move(prover: Prover) -> None:
    """Ask for one torch and then for another, and take the second back."""
    shop = Workshop(prover.work / "shop")
    python = prover.environment(MOVING, "3.11")
    site = site_packages(python)
    states: list[dict[str, str]] = []
    for release in MOVES:
        wish = ("--torch", release, "--apply", "--yes")
        done = shop.ortgpu_fix(python, *wish, machine=MACHINES["13"])
        applied = json.loads(done.stdout)
        verification = applied["verification"]
        notes = [note["code"] for note in verification["notes"]]
        rows = {row["name"]: row["version"] for row in applied["selection"]["packages"]}
        check = call(
            *(find_uv(), "--no-config", "pip", "check", "--python", python),
            environ=prover.environ,
            check=False,
        )
        prover.say(
            "chosen",
            f"torch {release}",
            good=done.returncode == 0
            and (verification["verdict"], notes) == ("no-gpu", ["torch-loads"])
            and rows["torch"] == release
            and check.returncode == 0,
            release=rows["onnxruntime-gpu"],
            verdict=verification["verdict"],
            notes=notes,
            check=check.stderr.strip()[-600:],
        )
        states.append(files_of(site))
    undone = prover.tool(python, "undo", "--yes")
    good = undone["exit"] == 0 and files_of(site) == states[0]
    prover.say("undone", MOVING, good=good, files=len(states[0]))
    prover.drop(python)


def describe(site: Path, row: str) -> None:
    """Install the metadata of a distribution: `name==version: what it requires`."""
    wanted, _, requires = row.partition(": ")
    name, _, version = wanted.partition("==")
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (folder / "METADATA").write_text("\n".join([*lines, f"Requires-Dist: {requires}", ""]))
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")


def main() -> int:
    """Try every environment; return the exit code."""
    run = Run(__doc__, "consumers")
    for name, case in CASES.items():
        if run.wants(name):
            prove(run.prover, name, case)
            run.forget_downloads()
    if run.wants(MOVING):
        move(run.prover)
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
