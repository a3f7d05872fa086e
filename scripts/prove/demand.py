"""Prove with real wheels that libraries are loaded when CUDA is asked for, and not before.

    python scripts/prove/demand.py [--work DIR] [--release 1.26.0 …] [--results DIR]

Each release of onnxruntime-gpu from 1.11 on for which a Python is here gets a fresh environment
with the set that the resolver chooses and the companions. It is imported and runs a model on the
CPU, twenty times with the companion and twenty times without (`ORTGPU_FIX_AUTOLOAD=0`), by turns;
then it is asked for a CUDA session, and for a value on the GPU in a thread and in a fork. Looked at
are the libraries in the process, the processor time of the import, private memory, and whether the
import works with a limit of address space wherever it works without the companion. There is no GPU:
a session is refused by the driver, after its libraries were loaded. Needs Linux, uv and a network,
and downloads about 15 GB. The dated result goes to scripts/prove/results/; the exit code is 1 where
something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.versions import numbers
from prove.autoload import COPIES, HERE, MODEL, Prover, drop, finish, site_packages
from support.pythons import find_python

STARTS = 20
LIMITS_KB = (400_000, 600_000, 800_000, 1_200_000, 1_600_000)
MOST_MS, MOST_KB = 10.0, 5_000
LINKS_THE_RUNTIME = {"1.27.0"}
"""Its compiled module links libcudart.so.13: this one is in the process with or without us."""
ON_CPU = """
import json, re, resource, sys, time
def private():
    lines = open("/proc/self/status")
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
before = time.process_time()
import onnxruntime
spent = (time.process_time() - before) * 1000
kib = private()
onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
cuda = sorted({l.split()[-1] for l in open("/proc/self/maps") if re.search(r"/lib(cu|nv)", l)})
print(json.dumps({"ms": spent, "kib": kib, "libraries": cuda}))
"""
SESSION = """
import sys, onnxruntime
try:
    onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
except Exception as error:
    print(str(error)[:200], file=sys.stderr)
"""
VALUE = """
import os, threading, onnxruntime
def ask():
    onnxruntime.OrtDevice.make("cuda", 0)
child = os.fork()
if not child:
    ask()
    os._exit(0 if "libcublasLt" in open("/proc/self/maps").read() else 1)
assert os.waitpid(child, 0)[1] == 0
thread = threading.Thread(target=ask)
thread.start()
thread.join()
"""


def releases(prover: Prover) -> dict[str, str]:
    """Return the releases, and for each a Python that is here: `{"1.26.0": "3.12"}`."""
    found: dict[str, str] = {}
    for build in prover.matrix.builds:
        if build.platform == "linux_x86_64" and numbers(build.version) >= (1, 11):
            pythons = {wheel.python for wheel in build.wheels}
            here = [f"3.{minor}" for minor in range(8, 16) if pythons & {f"cp3{minor}"}]
            able = next(filter(find_python, reversed(here)), None)
            if able is not None:
                found[build.version] = able
    return dict(sorted(found.items(), key=lambda row: numbers(row[0])))


def switch(python: Path, release: str, *, on: bool) -> dict[str, str]:
    """Return the variables that turn loading on or off; off, what is linked is given otherwise."""
    if on:
        return {}
    runtime = site_packages(python).glob("nvidia/**/libcudart.so.*")
    folders = ":".join(str(path.parent) for path in runtime) if release in LINKS_THE_RUNTIME else ""
    return {"ORTGPU_FIX_AUTOLOAD": "0", "LD_LIBRARY_PATH": folders}


def on_cpu(prover: Prover, python: Path, release: str, *, on: bool) -> dict[str, Any]:
    """Return what an import and a session on the CPU cost."""
    finished = prover.run(python, ON_CPU, MODEL, **switch(python, release, on=on))
    answer: dict[str, Any] = json.loads(finished.stdout.strip().rpartition("\n")[2])
    return answer


def limited(prover: Prover, python: Path, release: str, *, on: bool) -> list[int]:
    """Return the limits of address space, in kB, under which the import works."""
    given = switch(python, release, on=on)
    code = "import resource, sys; limit = int(sys.argv[1]) * 1024\n"
    code += "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); import onnxruntime"
    return [
        limit
        for limit in LIMITS_KB
        if prover.run(python, code, str(limit), **given).returncode == 0
    ]


def copies_of(finished: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """Return the CUDA libraries that a process had, each with its files."""
    found: dict[str, list[str]] = json.loads(finished.stdout.strip().rpartition("\n")[2] or "{}")
    return found


def prove(prover: Prover, release: str, version: str) -> None:
    """Try one release."""
    plan = prover.plan(release, version)
    python = prover.environment(f"env-{release}", version)
    wanted = (f"{wheel.name}=={wheel.version}" for wheel in plan.selection)
    prover.install(python, *wanted, *plan.requires)
    prover.companions(python, plan.selection)
    site = site_packages(python)
    costs: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for _turn in range(STARTS):
        for on in (False, True):
            costs[on].append(on_cpu(prover, python, release, on=on))
    pairs = [
        (with_it["ms"], without["ms"])
        for with_it, without in zip(costs[True], costs[False], strict=True)
    ]
    # Others make it slower, and a lucky moment faster: what is ours shows in both of these.
    fastest = min(row[0] for row in pairs) - min(row[1] for row in pairs)
    beside = statistics.median(with_it - without for with_it, without in pairs)
    kib = (statistics.median(row["kib"] for row in costs[turn]) for turn in (True, False))
    added = {"ms": round(min(fastest, beside), 2), "kib": round(next(kib) - next(kib), 2)}
    loaded = sorted({path for row in costs[True] for path in row["libraries"]})
    limits = {on: limited(prover, python, release, on=on) for on in (True, False)}
    prover.say(
        "on the CPU",
        release,
        good=added["ms"] <= MOST_MS
        and added["kib"] <= MOST_KB
        and len(loaded) == (release in LINKS_THE_RUNTIME)
        and limits[True] == limits[False],
        python=version,
        added_ms=added["ms"],
        added_kib=added["kib"],
        loaded=loaded,
        limits_kb=limits[True],
    )
    for part, code in (("session", SESSION), ("thread and fork", VALUE)):
        done = prover.run(python, code + COPIES, MODEL)
        if done.returncode < 0:
            # Some releases crash without a driver, whoever loads their libraries.
            folders = sorted({str(path.parent) for path in site.glob("nvidia/**/lib*.so*")})
            given = {"ORTGPU_FIX_AUTOLOAD": "0", "LD_LIBRARY_PATH": ":".join(folders)}
            same = prover.run(python, code, MODEL, **given).returncode == done.returncode
            prover.say(part, release, good=same, crashed=done.returncode, also_without_us=same)
            continue
        copies = copies_of(done)
        others = {
            name: paths
            for name, paths in copies.items()
            if len(paths) > 1 or "/nvidia/" not in paths[0]
        }
        needed = {
            name for name in copies if name.startswith(("libcublas", "libcudnn", "libcudart"))
        }
        good = not others and len(needed) >= 3  # noqa: PLR2004 - one of each at least
        prover.say(part, release, good=good, libraries=sorted(copies), others=others)
    given = switch(python, release, on=False)
    done = prover.run(python, VALUE.replace("assert ", "") + COPIES, **given)
    off = copies_of(done)
    alone = done.returncode == 0 and len(off) == (release in LINKS_THE_RUNTIME)
    prover.say("switched off", release, good=alone, libraries=sorted(off))
    drop(prover, python)


def main() -> int:
    """Try every release; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, help="folder for environments")
    parser.add_argument("--release", action="append", help="only this one")
    parser.add_argument("--keep", action="store_true", help="leave the environments")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-demand-"))
    prover = Prover(work, keep=options.keep)
    prover.environ["UV_CACHE_DIR"] = str(work / "cache")  # gigabytes that nobody else needs
    begin = time.monotonic()
    for release, version in releases(prover).items():
        if not options.release or release in options.release:
            prove(prover, release, version)
    return finish(prover, "demand", options, begin)


if __name__ == "__main__":
    sys.exit(main())
