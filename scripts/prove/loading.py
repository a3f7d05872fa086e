"""Prove by loading that the sets in the matrix are whole: every release from 1.16.3 on.

    python scripts/prove/loading.py [--work DIR] [--release 1.26.0 …] [--keep]

For each release of onnxruntime-gpu for Linux a fresh environment gets the set that the resolver
chooses, from the index, and a child process with LD_BIND_NOW asks for a CUDA session. If a CUDA
failure is all that it complains of, the provider was opened and every symbol of it and of all that
it links was bound. What it loads by name later is opened after it. Each library must come from the
environment's own wheels. The driver is the real 550 of Debian's non-free archive, unpacked below
DIR; where that cannot be had, a stub compiled with gcc, with which some releases crash. It can be
done in parts: a result of the same day keeps its other rows.

That this can fail is shown once for each CUDA major: a library taken away, and one of the same name
without the symbols, must both be named. Needs Linux, uv, gcc, a network and 12 GB below DIR. The
dated result goes to scripts/prove/results/; the exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import re
import shutil
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import Any

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.matrix.model import Build
from prove.autoload import MODEL, Prover, call, drop, message, site_packages
from prove.verify import debian_drivers
from support.pythons import find_python

FIRST = Version("1.16.3")
PLATFORM = "linux_x86_64"
PROVIDER = "libonnxruntime_providers_cuda.so"
PYTHONS = ("3.11", "3.12", "3.13", "3.10", "3.9", "3.8")
LOAD = """
import ctypes, json, os, sys
import onnxruntime
model, *later = sys.argv[1:]
said = None
try:
    onnxruntime.InferenceSession(model, providers=["CUDAExecutionProvider"])
except Exception as error:
    print(error, file=sys.stderr)
try:
    for name in later:
        ctypes.CDLL(name, os.RTLD_NOW)
except OSError as error:
    said = str(error)
paths = {line.split(None, 5)[-1].strip() for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps({"later": said, "mapped": sorted(paths)}))
"""


def load(prover: Prover, python: Path, build: Build) -> dict[str, Any]:
    """Open the provider in an environment; return what was said, and what is missing.

    The libraries that it links are found by LD_LIBRARY_PATH alone: nothing else helps.
    """
    site = site_packages(python)
    folders = sorted({str(path.parent) for path in (site / "nvidia").rglob("lib*.so*")})
    finished = prover.run(
        python,
        LOAD,
        MODEL,
        *(need.library for need in build.needs if need.how == "loads"),
        LD_LIBRARY_PATH=":".join([*folders, prover.driver]),
        LD_BIND_NOW="1",
    )
    unbound = re.search(r"undefined symbol: \w+", finished.stderr)
    said = unbound[0] if unbound else message(finished)
    if finished.returncode != 0:
        return {"said": said, "later": None, "missing": [PROVIDER]}
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    mapped = [Path(path) for path in answer["mapped"]]
    wanted = [PROVIDER, *(need.library for need in build.needs if need.distribution)]
    there = {path.name for path in mapped if site in path.parents}
    missing = [library for library in wanted if library not in there]
    return {"said": said, "later": answer["later"], "missing": missing}


def make(prover: Prover, build: Build) -> tuple[Path, list[str]]:
    """Install the set for a build into a fresh environment; return its interpreter and the set."""
    tags = {wheel.python for wheel in build.wheels}
    python = next(each for each in PYTHONS if f"cp{each.replace('.', '')}" in tags and find(each))
    plan = prover.plan(build.version, python)
    chosen = [f"{wheel.name}=={wheel.version}" for wheel in plan.selection]
    interpreter = prover.environment(f"env-{build.version}", python)
    prover.install(interpreter, "--link-mode", "hardlink", *chosen, *plan.requires)
    return interpreter, chosen


def find(version: str) -> bool:
    """Say whether there is such a Python here."""
    return find_python(version) is not None


def prove(prover: Prover, build: Build) -> Path:
    """Install and load one release; return its environment's interpreter."""
    begin = time.monotonic()
    python, chosen = make(prover, build)
    found = load(prover, python, build)
    loaded = found["said"].startswith("CUDA failure")
    prover.say(
        "release",
        build.version,
        good=loaded and not found["missing"] and not found["later"],
        cuda=build.cuda,
        python=site_packages(python).parent.name.removeprefix("python"),
        **found,
        packages=chosen,
        seconds=round(time.monotonic() - begin, 1),
    )
    return python


def plant(prover: Prover, build: Build, python: Path) -> None:
    """Take a library away, then put an empty one of its name there: both must be noticed."""
    need = next(need for need in build.needs if need.library.startswith("libcublas.so"))
    (real,) = (site_packages(python) / "nvidia").rglob(need.library)
    aside = real.with_name("aside")
    real.rename(aside)
    found = load(prover, python, build)
    prover.say(
        "planted: a library is missing",
        build.version,
        good=found["said"] == f"missing {need.library}" and need.library in found["missing"],
        **found,
    )
    script = prover.work / "versions"
    script.write_text(f"{need.library} {{ *; }};\n")  # as NVIDIA's own carries
    options = [f"-Wl,-soname,{need.library}", f"-Wl,--version-script={script}"]
    call("gcc", "-shared", *options, "-o", real, "-x", "c", "/dev/null")
    found = load(prover, python, build)
    prover.say(
        "planted: a library without its symbols",
        build.version,
        good=found["said"].startswith("undefined symbol: cublas"),
        **found,
    )
    aside.replace(real)


def builds(prover: Prover, chosen: list[str] | None) -> list[Build]:
    """Return the builds to prove, the oldest first."""
    found = [
        build
        for build in prover.matrix.builds
        if build.platform == PLATFORM
        and Version(build.version) >= FIRST
        and (not chosen or build.version in chosen)
    ]
    return sorted(found, key=lambda build: Version(build.version))


def main() -> int:
    """Prove each release, and that the proof can fail; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--work", type=Path, help="folder for environments")
    parser.add_argument("--release", action="append", help="only this one")
    parser.add_argument("--keep", action="store_true", help="leave the environments")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-loading-"))
    prover = Prover(work, keep=options.keep)
    prover.environ["UV_CACHE_DIR"] = str(work / "cache")
    prover.driver = next(iter(debian_drivers(work / "apt", ["550"]).values()), prover.driver)
    for _, group in groupby(builds(prover, options.release), key=major):
        *rest, last = group
        for build in rest:
            drop(prover, prove(prover, build))
        python = prove(prover, last)
        plant(prover, last, python)
        drop(prover, python)
        if not options.keep:  # what the next CUDA major does not share
            shutil.rmtree(work / "cache", ignore_errors=True)
    write(prover, options.results)
    if not options.keep and options.work is None:
        shutil.rmtree(work)
    return 0 if all(row["good"] for row in prover.rows) else 1


def major(build: Build) -> str:
    """Return the CUDA major of a build."""
    return build.cuda.partition(".")[0]


def write(prover: Prover, folder: Path) -> None:
    """Write the dated result, one row a line; what other parts of today said stays."""
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    folder.mkdir(exist_ok=True)
    target = folder / f"loading-{today}.json"
    rows = json.loads(target.read_text("utf-8"))["rows"] if target.exists() else []
    known = {(row["part"], row["subject"]): row for row in [*rows, *prover.rows]}
    kept = sorted(known.values(), key=lambda row: (Version(row["subject"]), row["part"][::-1]))
    system = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}, no GPU"
    driver = "stub" if prover.driver == str(prover.stub) else "550, real"
    facts = {"date": today, "machine": system, "matrix": prover.matrix.date, "driver": driver}
    head = json.dumps(facts)[:-1]
    lines = ",\n".join(json.dumps(row) for row in kept)
    text = f'{head}, "rows": [\n{lines}\n]}}\n'.replace(str(prover.work), "…")
    target.write_text(text, "utf-8")
    bad = sum(not row["good"] for row in kept)
    print(f"{len(kept)} rows, {bad} not as they must be: {target}")


if __name__ == "__main__":
    sys.exit(main())
