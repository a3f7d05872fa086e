"""Prove with real wheels that every release loads with its set, by itself, and when it is asked.

    python scripts/prove/loading.py [--work DIR] [--only 1.26.0,1.31.1 …] [--cache DIR] [--keep]
                                    [--parts silence]

Each release of onnxruntime-gpu from 1.11 on for which a Python is here gets a fresh environment
with the set that the resolver chooses, from the index. Then:

- **The set is whole**: a child process with LD_BIND_NOW asks for a CUDA session. If a CUDA failure
  is all that it complains of, the provider was opened and every symbol of it and of all that it
  links was bound. What it loads by name later is opened after it. Each library must come from the
  environment's own wheels. From 1.16.3 on. That this can fail is shown once for each CUDA major: a
  library taken away, and one of the same name without the symbols, must both be named.
- **Unchanged applications find it**: a script of two lines is run before and after the companions
  are installed, without a driver and with one; the list's order is held against what the libraries
  link; with the official helper no library is there twice; pip takes the companions away again.
- **Loaded when CUDA is asked for, and not before**: it is imported and runs a model on the CPU,
  twenty times with the companion and twenty times without (`ORTGPU_FIX_AUTOLOAD=0`), by turns; then
  it is asked for a CUDA session, and for a value on the GPU in a thread and in a fork. Looked at
  are the libraries in the process, the processor time of the import, private memory, and whether
  the import works with a limit of address space wherever it works without the companion.
- **The small set is whole, too**: the one of `--prefer small`, which for CUDA 11 is the newest. Not
  only what the provider loads: each library of each of its wheels is opened in the process of the
  session, every symbol bound. From 1.16.3 on.
- **Silent while the set is whole**: whoever asks for providers, for CUDA with a driver that knows
  no GPU and without one, or for the CPU, hears nothing of the loader. With one library taken away
  they do.

`--parts` names what to do: release, small, application, demand, silence; all of it without.

The driver is the real 550 of Debian's non-free archive, unpacked below DIR; where that cannot be
had, a stub compiled with gcc, with which some releases crash. Needs Linux, uv, gcc, a network and
12 GB below DIR. The dated result goes to scripts/prove/results/; the exit code is 1 where something
is wrong.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.companions import contents as companions
from ortgpu_fix.companions.library_list import libraries
from ortgpu_fix.matrix.model import Build
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.versions import numbers
from prove.verify import debian_drivers
from support.prover import (
    COPIES,
    MODEL,
    Prover,
    Run,
    call,
    copies_of,
    message,
    site_packages,
    twice,
)
from support.pythons import find_python

PLATFORM = "linux_x86_64"
FIRST, FIRST_BOUND = (1, 11), (1, 16, 3)
PROVIDER = "libonnxruntime_providers_cuda.so"
PYTHONS = ("3.11", "3.12", "3.13", "3.10", "3.9", "3.8")
SAMPLE = {
    "1.14.1": "3.8",
    "1.16.3": "3.10",
    "1.18.1": "3.10",
    "1.19.2": "3.9",
    "1.20.2": "3.10",
    "1.22.0": "3.11",
    "1.23.2": "3.12",
    "1.26.0": "3.13",
    "1.27.0": "3.12",
    "1.28.0": "3.11",
    "1.31.1": "3.13",
}
"""The releases with which applications are tried, each with another Python where it is here."""
CRASHING = {"1.18.1", "1.19.2", "1.20.2"}
"""They want more of a driver than the stand-in has."""
NEED_A_DRIVER = {"libcuda.so.1", "libcudnn_engines_runtime_compiled.so.9"}
"""What cannot be loaded where there is none; 1.20 links the second, which links the first."""
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
    print(error, file=sys.stderr)
"""
QUESTIONS = {
    "providers": "import onnxruntime; onnxruntime.get_available_providers()",
    "device": "import onnxruntime; onnxruntime.get_device()",
    "CUDA": SESSION,
    "default": SESSION.replace(', providers=["CUDAExecutionProvider"]', ""),
    "CPU": SESSION.replace("CUDA", "CPU"),
}
"""What an application may ask; releases from 1.9 on refuse to choose for it."""
SPEAKS = "ortgpu-fix:"
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


def load(prover: Prover, python: Path, build: Build, *more: Path) -> dict[str, Any]:
    """Open the provider in an environment; return what was said, and what is missing.

    The libraries that it links are found by LD_LIBRARY_PATH alone: nothing else helps. `more`:
    libraries that are opened after those that it loads by name.
    """
    site = site_packages(python)
    folders = sorted({str(path.parent) for path in (site / "nvidia").rglob("lib*.so*")})
    finished = prover.run(
        python,
        LOAD,
        MODEL,
        *(need.library for need in build.needs if need.how == "loads"),
        *more,
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


def make(prover: Prover, build: Build, *, small: bool = False) -> tuple[Path, tuple[Wheel, ...]]:
    """Install the set for a build into a fresh environment; return its interpreter and the set."""
    version = python_for(build)
    assert version is not None, build.version  # noqa: S101
    plan = prover.plan(build.version, version, small=small)
    python = prover.environment(f"env-{build.version}{'-small' * small}", version)
    chosen = [f"{wheel.name}=={wheel.version}" for wheel in plan.selection]
    prover.install(python, "--link-mode", "hardlink", *chosen, *plan.requires, "pip")
    return python, plan.selection


def python_for(build: Build) -> str | None:
    """Return the Python to try a build with, None where it has no wheel for one that is here."""
    tags = {wheel.python for wheel in build.wheels}
    versions = (*filter(None, [SAMPLE.get(build.version)]), *PYTHONS)
    able = [each for each in versions if f"cp{each.replace('.', '')}" in tags and find_python(each)]
    if not able or build.version in SAMPLE:
        return next(iter(able), None)
    return able[sum(numbers(build.version)) % len(able)]  # each has its turn


def prove_release(prover: Prover, build: Build, python: Path, chosen: tuple[Wheel, ...]) -> None:
    """Load one release with its set."""
    if numbers(build.version) < FIRST_BOUND:
        return
    found = load(prover, python, build)
    loaded = found["said"].startswith("CUDA failure")
    prover.say(
        "release",
        build.version,
        good=loaded and not found["missing"] and not found["later"],
        cuda=build.cuda,
        python=python_of(python),
        **found,
        packages=[f"{wheel.name}=={wheel.version}" for wheel in chosen],
    )


def prove_small(prover: Prover, build: Build, python: Path, newest: tuple[Wheel, ...]) -> None:
    """Load the small set, and every library of its wheels."""
    if numbers(build.version) < FIRST_BOUND:
        return
    chosen = prover.plan(build.version, python_of(python), small=True).selection
    small = python if chosen == newest else make(prover, build, small=True)[0]
    every = sorted((site_packages(small) / "nvidia").rglob("lib*.so*"))
    found = load(prover, small, build, *every)
    prover.say(
        "small",
        build.version,
        good=found["said"].startswith("CUDA failure") and not (found["missing"] or found["later"]),
        cuda=build.cuda,
        python=python_of(python),
        **found,
        libraries=len(every),
        megabytes=round(sum(wheel.size for wheel in chosen) / 1e6),
        megabytes_newest=round(sum(wheel.size for wheel in newest) / 1e6),
        packages=[f"{wheel.name}=={wheel.version}" for wheel in chosen],
    )
    if small != python:
        prover.drop(small)


def python_of(python: Path) -> str:
    """Return the version of an environment's Python."""
    return site_packages(python).parent.name.removeprefix("python")


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


def prove_application(
    prover: Prover, build: Build, python: Path, chosen: tuple[Wheel, ...]
) -> None:
    """Ask for a session before and after the companions come; they go as they came."""
    before = message(prover.run(python, SESSION, MODEL))
    tree = set(site_packages(python).rglob("*"))
    prover.companions(python, chosen)
    alone = message(prover.run(python, SESSION, MODEL))
    driven = message(prover.run(python, SESSION, MODEL, LD_LIBRARY_PATH=prover.driver))
    real = prover.driver != str(prover.stub)
    expected = driven.startswith("CUDA failure") or (
        build.version in CRASHING and driven == "signal 11" and not real
    )
    unfound = re.match(r"missing lib(cu|nv)", alone)
    prover.say(
        "application",
        build.version,
        good=not before.startswith("CUDA failure")
        and expected
        and (not unfound or alone.removeprefix("missing ") in NEED_A_DRIVER),
        before=before,
        without_driver=alone,
        with_driver=driven,
    )
    prove_order(prover, build, python, chosen)
    prove_copies(prover, build, python)
    pip = (python, "-m", "pip", "uninstall", "-q", "-y")
    call(*pip, companions.LIBRARIES, companions.PLACEHOLDER, environ=prover.environ)
    more = map(str, set(site_packages(python).rglob("*")) - tree)
    left = sorted(path for path in more if "__pycache__" not in path or "ortgpu" in path)
    prover.say("uninstall", build.version, good=not left, left=left)


def prove_order(prover: Prover, build: Build, python: Path, chosen: tuple[Wheel, ...]) -> None:
    """Hold the order of the list against what the libraries really link."""
    entries = libraries(chosen, prover.matrix, PLATFORM)
    names = [Path(entry.path).name for entry in entries]
    wrong = []
    for at, entry in enumerate(entries):
        with (site_packages(python) / entry.path).open("rb") as file:
            dynamic: Any = ELFFile(file).get_section_by_name(".dynamic")
            needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
        wrong += [f"{names[at]} before {name}" for name in needed if name in names[at:]]
    prover.say("order", build.version, good=not wrong and bool(names), libraries=names, wrong=wrong)


def prove_copies(prover: Prover, build: Build, python: Path) -> None:
    """Call the official helper, open everything by name, and look for what is there twice."""
    names = [need.library for need in build.needs if need.distribution]
    code = "import ctypes, onnxruntime as o\no.OrtDevice.make('cuda', 0)\n"
    code += "if hasattr(o, 'preload_dlls'): o.preload_dlls()\n"
    code += f"for name in {names}: ctypes.CDLL(name)\n" + COPIES
    finished = prover.run(python, code, LD_LIBRARY_PATH=prover.driver)
    copies = copies_of(finished)
    said = finished.stdout.strip().rpartition("\n")[0]
    prover.say(
        "preload",
        build.version,
        good=finished.returncode == 0 and not twice(copies),
        libraries=len(copies),
        twice=twice(copies),
        said=said,
    )


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


def prove_demand(prover: Prover, build: Build, python: Path, chosen: tuple[Wheel, ...]) -> None:
    """Hold what the companions load, when, and what that costs, against running without them."""
    prover.companions(python, chosen)
    costs: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for _turn in range(STARTS):
        for on in (False, True):
            costs[on].append(on_cpu(prover, python, build.version, on=on))
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
    limits = {on: limited(prover, python, build.version, on=on) for on in (True, False)}
    prover.say(
        "on the CPU",
        build.version,
        good=added["ms"] <= MOST_MS
        and added["kib"] <= MOST_KB
        and len(loaded) == (build.version in LINKS_THE_RUNTIME)
        and limits[True] == limits[False],
        added_ms=added["ms"],
        added_kib=added["kib"],
        loaded=loaded,
        limits_kb=limits[True],
    )
    for part, code in (("session", SESSION), ("thread and fork", VALUE)):
        done = prover.run(python, code + COPIES, MODEL)
        if done.returncode < 0:
            # Some releases crash without a driver, whoever loads their libraries.
            folders = sorted(
                {str(path.parent) for path in site_packages(python).glob("nvidia/**/lib*.so*")}
            )
            given = {"ORTGPU_FIX_AUTOLOAD": "0", "LD_LIBRARY_PATH": ":".join(folders)}
            same = prover.run(python, code, MODEL, **given).returncode == done.returncode
            prover.say(
                part, build.version, good=same, crashed=done.returncode, also_without_us=same
            )
            continue
        copies = copies_of(done)
        others = twice(copies) | {
            name: paths for name, paths in copies.items() if "/nvidia/" not in paths[0]
        }
        needed = ("libcublas", "libcudnn", "libcudart")
        good = not others and all(any(name.startswith(one) for name in copies) for one in needed)
        prover.say(part, build.version, good=good, libraries=sorted(copies), others=others)
    given = switch(python, build.version, on=False)
    done = prover.run(python, VALUE.replace("assert ", "") + COPIES, **given)
    off = copies_of(done)
    alone = done.returncode == 0 and len(off) == (build.version in LINKS_THE_RUNTIME)
    prover.say("switched off", build.version, good=alone, libraries=sorted(off))


def prove_silence(prover: Prover, build: Build, python: Path, chosen: tuple[Wheel, ...]) -> None:
    """Ask whatever an application asks: nothing is said while the set is whole."""
    prover.companions(python, chosen)

    def heard(**environ: str) -> dict[str, str]:
        said = {
            name: prover.run(python, code, MODEL, **environ).stderr
            for name, code in QUESTIONS.items()
        }
        return {name: text for name, text in said.items() if SPEAKS in text}

    spoken = heard() | heard(LD_LIBRARY_PATH=prover.driver)
    library = next((site_packages(python) / "nvidia").rglob("libcufft.so.*"))
    aside = library.rename(library.with_name("aside"))
    lost = heard()
    aside.rename(library)
    good = not spoken and "CPU" not in lost and "CUDA" in lost
    values = {"python": python_of(python), "spoken": spoken, "without_cufft": sorted(lost)}
    prover.say("silence", build.version, good=good, **values)


def builds(prover: Prover) -> list[Build]:
    """Return the builds to prove, the oldest first."""
    found = (
        build
        for build in prover.matrix.builds
        if build.platform == PLATFORM and numbers(build.version) >= FIRST and python_for(build)
    )
    return sorted(found, key=lambda build: numbers(build.version))


def major(build: Build) -> str:
    """Return the CUDA major of a build."""
    return build.cuda.partition(".")[0]


PARTS = {
    "release": prove_release,
    "small": prove_small,
    "application": prove_application,
    "demand": prove_demand,
    "silence": prove_silence,
}


def main() -> int:
    """Prove each release, and that the proof can fail; return the exit code."""
    run = Run(__doc__, "loading", parts="what to do, with commas; all without")
    prover, parts = run.prover, run.options.parts
    real = debian_drivers(prover.work / "apt", ["550"])
    prover.driver = next(iter(real.values()), prover.driver)
    chosen = [build for build in builds(prover) if run.wants(build.version)]
    groups = [list(group) for _, group in groupby(chosen, key=major)]
    for group in groups:
        for build in group:
            python, wheels = make(prover, build)
            for part, function in PARTS.items():
                if part in (parts or part) and (part != "application" or build.version in SAMPLE):
                    function(prover, build, python, wheels)
                    if part == "release" and build is group[-1]:
                        plant(prover, build, python)
            prover.drop(python)
        run.forget_downloads()  # what the next CUDA major does not share
    driver = "550, real" if real else "stub"
    return run.finish(matrix=prover.matrix.date, driver=driver)


if __name__ == "__main__":
    sys.exit(main())
