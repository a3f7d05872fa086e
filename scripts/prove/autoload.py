"""Prove with real wheels that unchanged applications find the libraries, and that it stays so.

    python scripts/prove/autoload.py [--work DIR] [--only releases,windows,torch,dependents,startup]
                                     [--release 1.26.0 …] [--keep]

For each release a fresh environment gets the set that the resolver chooses, and is asked for a CUDA
session by a script of two lines before and after the companions are installed: without a driver,
and with the real user-mode driver 550 of Debian's non-free archive, or a stand-in for one. The
wheels for Windows are unpacked, and their import tables read. Then torch before and after
onnxruntime, the packages that require `onnxruntime` by name with pip and with uv, and what the
companion costs at every start of Python. Needs Linux, uv, gcc, a network and about 15 GB. The dated
result goes to scripts/prove/results/; the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pefile
from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.companions import build as companion_wheels
from ortgpu_fix.companions import contents as companions
from ortgpu_fix.companions.library_list import libraries
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.parsers import parse_dll_version
from ortgpu_fix.matrix import load as data_files
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.utils.process import install_environment
from ortgpu_fix.versions import numbers
from prove.verify import debian_drivers
from support.pythons import find_python

HERE = Path(__file__).parent
STUB = HERE.parents[1] / "tests" / "stubs_verify" / "libcuda.c"
MODEL = HERE.parents[1] / "data" / "conv.onnx"
PYENV = Path.home() / ".pyenv" / "versions"

RELEASES = {
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
TORCH = {"2.10.0": "1.26.0", "2.14.0": "1.31.1"}
CRASHING = {"1.18.1", "1.19.2", "1.20.2"}
"""They want more of a driver than the stand-in has."""
NEED_A_DRIVER = {"libcuda.so.1", "libcudnn_engines_runtime_compiled.so.9"}
"""What cannot be loaded where there is none; 1.20 links the second, which links the first."""
DEPENDENTS = ("chromadb", "insightface", "magika", "fastembed")

APPLICATION = """
import sys
import onnxruntime
onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
"""
COPIES = """
import json, re
found = {}
for line in open("/proc/self/maps"):
    path = line.split(None, 5)[-1].strip()
    name = path.rpartition("/")[2]
    if path.startswith("/") and re.match(r"lib(cu|nv)\\w+(-\\w+)?\\.so", name):
        found.setdefault(re.sub(r"-[0-9a-f]{8}", "", name), set()).add(path)
print(json.dumps({name: sorted(paths) for name, paths in found.items()}))
"""


class Prover:
    """What all parts need: the matrix, a folder, and the rows of the result."""

    def __init__(self, work: Path, *, keep: bool) -> None:
        self.work = work
        self.keep = keep
        self.matrix: Matrix = data_files.load_matrix()
        self.modules = data_files.companion_modules()
        self.environ = install_environment(os.environ)
        self.rows: list[dict[str, Any]] = []
        self.stub = work / "stub"
        self.stub.mkdir(parents=True, exist_ok=True)
        options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-DSPEAKS=13030", "-DINIT=100"]
        call("gcc", *options, "-o", self.stub / "libcuda.so.1", STUB)
        self.driver = str(self.stub)

    def say(self, part: str, subject: str, *, good: bool, **values: object) -> None:
        """Keep a row, and print it."""
        self.rows.append({"part": part, "subject": subject, "good": good, **values})
        text = " ".join(f"{name}={value}" for name, value in values.items())
        print(f"{'ok  ' if good else 'FAIL'} {part} {subject}: {text[:300]}", flush=True)

    def plan(
        self,
        release: str,
        python: str,
        system: str = "linux",
        packages: list[dict[str, object]] | None = None,
    ) -> Plan:
        """Return the resolver's plan for this release on a recent driver and two GPUs."""
        document = machine(python, system, packages or [])
        options = PlanOptions(onnxruntime=f"=={release}")
        return resolve(facts_json.from_json(document), options, self.matrix)

    def environment(self, name: str, python: str) -> Path:
        """Make an environment and return its interpreter."""
        folder = self.work / name
        self.uv("venv", "--clear", "--python", find_python(python) or python, str(folder))
        return folder / "bin" / "python"

    def uv(self, *words: str | Path) -> str:
        """Run uv without anyone's configuration."""
        return call("uv", "--quiet", "--no-config", *words, environ=self.environ).stdout

    def install(self, python: Path, *requirements: str | Path) -> None:
        """Install with uv."""
        self.uv("pip", "install", "--python", python, *requirements)

    def companions(self, python: Path, selection: tuple[Wheel, ...]) -> list[Path]:
        """Install the companions of a selection, and return their files."""
        folder = self.work / "wheels"
        folder.mkdir(exist_ok=True)
        paths = []
        for wheel in companion_wheels.build_companions(
            selection, self.matrix, "linux_x86_64", self.modules
        ):
            paths.append(folder / wheel.file)
            paths[-1].write_bytes(wheel.content)
        self.uv("pip", "install", "--no-deps", "--compile-bytecode", "--python", python, *paths)
        return paths

    def run(
        self, python: Path, code: str, *words: str | Path, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run code there, with nothing of this process's environment that could help."""
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
        return call(python, "-c", code, *words, environ=kept | environ, check=False)


def machine(python: str, system: str, packages: list[dict[str, object]]) -> dict[str, Any]:
    """Return the facts of a machine with a recent driver and two GPUs."""
    return {
        "schema": 1,
        "platform": {"system": system, "machine": "x86_64"},
        "driver": {"version": "610.10", "cuda": "13.3"},
        "gpus": [{"compute_capability": "7.5"}, {"compute_capability": "8.6"}],
        "python": {"version": f"{python}.0"},
        "packages": packages,
    }


def call(
    *words: str | Path,
    environ: dict[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program; where it must not fail, show what it said and end."""
    finished = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and finished.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{finished.stdout}{finished.stderr}")
    return finished


def site_packages(python: Path) -> Path:
    """Return the folder that everything is installed in."""
    return next((python.parents[1] / "lib").glob("python*/site-packages"))


def message(finished: subprocess.CompletedProcess[str]) -> str:
    """Return how a session went, in a few words."""
    text = finished.stdout + finished.stderr
    missing = re.search(r"(lib[\w.]+): cannot open shared object file", text)
    if missing:
        return f"missing {missing[1]}"
    failure = re.search(r"CUDA failure \d+: [\w ,-]+", text)
    if failure:
        return failure[0]
    refused = re.search(r"Failed to create CUDAExecutionProvider", text)
    if refused:
        return refused[0]
    if finished.returncode < 0:
        return f"signal {-finished.returncode}"
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else f"exit code {finished.returncode}, nothing said"


def prove_releases(prover: Prover, chosen: list[str]) -> None:
    """Ask each release for a session before and after."""
    real = debian_drivers(prover.work / "apt")
    prover.driver = next((real[name] for name in real if name.startswith("550.")), prover.driver)
    for release in chosen:
        if find_python(RELEASES[release]) is None:
            prover.say("release", release, good=True, skipped=f"no Python {RELEASES[release]} here")
            continue
        plan = prover.plan(release, RELEASES[release])
        python = prover.environment(f"env-{release}", RELEASES[release])
        prover.install(
            python,
            *(f"{wheel.name}=={wheel.version}" for wheel in plan.selection),
            *plan.requires,
            "pip",
        )
        site = site_packages(python)
        before = message(prover.run(python, APPLICATION, MODEL))
        tree = files_of(site)
        prover.companions(python, plan.selection)
        alone = message(prover.run(python, APPLICATION, MODEL))
        driven = message(prover.run(python, APPLICATION, MODEL, LD_LIBRARY_PATH=prover.driver))
        expected = driven.startswith("CUDA failure") or (
            release in CRASHING and driven == "signal 11" and prover.driver == str(prover.stub)
        )
        unfound = re.match(r"missing lib(cu|nv)", alone)
        prover.say(
            "release",
            release,
            good=not before.startswith("CUDA failure")
            and expected
            and (not unfound or alone.removeprefix("missing ") in NEED_A_DRIVER),
            python=RELEASES[release],
            before=before,
            without_driver=alone,
            with_driver=driven,
            driver="stand-in" if prover.driver == str(prover.stub) else "550, real",
        )
        prove_order(prover, release, site, plan)
        prove_copies(prover, release, python)
        call(python, "-m", "pip", "uninstall", "-y", companions.LIBRARIES, companions.STAND_IN)
        left = sorted(files_of(site) - tree)
        prover.say("uninstall", release, good=not left, left=left)
        drop(prover, python)


def files_of(site: Path) -> set[str]:
    """Return every file and folder below, bytecode of other packages left out."""
    found = (path.relative_to(site).as_posix() for path in site.rglob("*"))
    return {path for path in found if "__pycache__" not in path or "ortgpu" in path}


def drop(prover: Prover, python: Path) -> None:
    """Remove an environment that is not needed any more."""
    if not prover.keep:
        shutil.rmtree(python.parents[1])


def prove_order(prover: Prover, release: str, site: Path, plan: Plan) -> None:
    """Hold the order of the list against what the libraries really link."""
    entries = libraries(plan.selection, prover.matrix, "linux_x86_64")
    names = [Path(entry.path).name for entry in entries]
    wrong = []
    for at, entry in enumerate(entries):
        with (site / entry.path).open("rb") as file:
            dynamic: Any = ELFFile(file).get_section_by_name(".dynamic")
            needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
        wrong += [f"{names[at]} before {name}" for name in needed if name in names[at:]]
    prover.say("order", release, good=not wrong and bool(names), libraries=names, wrong=wrong)


def prove_copies(prover: Prover, release: str, python: Path) -> None:
    """Call the official helper, open everything by name, and look for what is there twice."""
    names = [
        need.library
        for build in prover.matrix.builds
        if (build.version, build.platform) == (release, "linux_x86_64")
        for need in build.needs
        if need.distribution
    ]
    code = "import ctypes, onnxruntime as o\no.OrtDevice.make('cuda', 0)\n"
    code += "if hasattr(o, 'preload_dlls'): o.preload_dlls()\n"
    code += f"for name in {names}: ctypes.CDLL(name)\n" + COPIES
    finished = prover.run(python, code, LD_LIBRARY_PATH=prover.driver)
    said, _, last = finished.stdout.strip().rpartition("\n")
    copies = json.loads(last)
    twice = {name: paths for name, paths in copies.items() if len(paths) > 1}
    prover.say("preload", release, good=not twice, libraries=len(copies), twice=twice, said=said)


def prove_windows(prover: Prover, _: list[str]) -> None:
    """Hold list and order against the import tables of Windows' DLLs. They are not run."""
    for release in ("1.18.1", "1.26.0", "1.31.1"):
        python = RELEASES[release]
        plan = prover.plan(release, python, "windows")
        target = prover.work / f"windows-{release}"
        prover.uv(
            *("pip", "install", "--no-deps", "--only-binary", ":all:", "--target", target),
            *("--python-platform", "x86_64-pc-windows-msvc", "--python-version", python),
            *(f"{wheel.name}=={wheel.version}" for wheel in plan.selection),
        )
        entries = libraries(plan.selection, prover.matrix, "windows_x86_64")
        # uv puts what belongs beside python.exe into the target, two folders below where it goes.
        paths = {
            Path(entry.path).name.lower(): target / entry.path.removeprefix("../../")
            for entry in entries
        }
        names = list(paths)
        missing = [name for name, path in paths.items() if not path.is_file()]
        wrong = []
        for at, name in enumerate(names):
            if name not in missing:
                later = set(imports(paths[name])) & set(names[at:])
                wrong += [f"{name} before {other}" for other in sorted(later)]
        provider = imports(target / "onnxruntime/capi/onnxruntime_providers_cuda.dll")
        wanted = [
            name
            for name in provider
            if re.match(r"cu(?!da\.)|nv(?!cuda)|msvcp|vcruntime|concrt", name)
        ]
        unlisted = sorted(set(wanted) - set(names))
        toolset = next(
            build.toolset or ""
            for build in prover.matrix.builds
            if (build.version, build.platform) == (release, "windows_x86_64")
        )
        runtime = parse_dll_version(paths["msvcp140.dll"].read_bytes()) or ""
        prover.say(
            "windows",
            release,
            good=not (missing or wrong or unlisted) and numbers(runtime)[:2] >= numbers(toolset),
            toolset=toolset,
            runtime=runtime,
            libraries=names,
            missing=missing,
            wrong=wrong,
            provider_imports=provider,
            unlisted=unlisted,
        )
        if not prover.keep:
            shutil.rmtree(target)


def imports(path: Path) -> list[str]:
    """Return the DLLs that one imports, in lower case."""
    with pefile.PE(str(path), fast_load=True) as file:
        directories: Any = pefile.DIRECTORY_ENTRY
        file.parse_data_directories(
            [
                directories["IMAGE_DIRECTORY_ENTRY_IMPORT"],
                directories["IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT"],
            ]
        )
        found = [
            *getattr(file, "DIRECTORY_ENTRY_IMPORT", []),
            *getattr(file, "DIRECTORY_ENTRY_DELAY_IMPORT", []),
        ]
        return [entry.dll.decode().lower() for entry in found]


def prove_torch(prover: Prover, _: list[str]) -> None:
    """Import torch before and after, with the plan that keeps it."""
    for torch, release in TORCH.items():
        python = prover.environment(f"env-torch-{torch}", "3.12")
        prover.install(python, f"torch=={torch}", "numpy")
        listed = json.loads(prover.uv("pip", "list", "--format", "json", "--python", python))
        packages: list[dict[str, object]] = [
            row | {"requires": requirements(python, row["name"])} for row in listed
        ]
        plan = prover.plan(release, "3.12", packages=packages)
        wanted = [f"{wheel.name}=={wheel.version}" for wheel in plan.selection]
        prover.install(python, *wanted, *plan.requires)
        prover.companions(python, plan.selection)
        for order in (("torch", "onnxruntime"), ("onnxruntime", "torch")):
            code = "".join(f"import {name}\n" for name in order)
            code += "onnxruntime.OrtDevice.make('cuda', 0)\n" + COPIES
            finished = prover.run(python, code)
            copies = json.loads(finished.stdout.strip().rpartition("\n")[2])
            twice = {name: paths for name, paths in copies.items() if len(paths) > 1}
            prover.say(
                "torch",
                f"{torch} and {release}, {' then '.join(order)}",
                good=not twice and bool(copies) and finished.returncode == 0,
                libraries=sorted(copies),
                twice=twice,
                said=finished.stderr[-300:],
            )
        drop(prover, python)


def requirements(python: Path, name: str) -> list[str]:
    """Return the requirements of an installed distribution."""
    stem = re.sub(r"[-_.]+", "_", name).lower()
    for folder in site_packages(python).glob("*.dist-info"):
        if re.sub(r"[-_.]+", "_", folder.name.rpartition("-")[0]).lower() == stem:
            text = (folder / "METADATA").read_text("utf-8", "replace")
            return re.findall(r"(?m)^Requires-Dist: (.*)$", text)
    return []


def prove_dependents(prover: Prover, _: list[str]) -> None:
    """Install what requires `onnxruntime` by name, and look whether the GPU build stays."""
    release = "1.26.0"
    version = next((one for one in ("3.12", "3.11", "3.13", "3.14") if find_python(one)), "3.12")
    for engine in ("pip", "uv"):
        python = prover.environment(f"env-dependents-{engine}", version)
        plan = prover.plan(release, version)
        wanted = [f"{wheel.name}=={wheel.version}" for wheel in plan.selection]
        prover.install(python, *wanted, *plan.requires, "pip")
        prover.companions(python, plan.selection)
        before = build_of(python)
        pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check"]
        environ = prover.environ
        if engine == "pip":
            prefer = ["--prefer-binary", *DEPENDENTS]
            call(*pip, "install", "-q", *prefer, environ=environ)
        else:
            prover.install(python, *DEPENDENTS)
        checks = {
            "pip check": call(*pip, "check", check=False, environ=environ).stdout.strip(),
            "uv pip check": call(
                *("uv", "--no-config", "pip", "check", "--python", python),
                environ=environ,
                check=False,
            ).stderr.strip(),
        }
        versions = {
            row["name"]: row["version"]
            for row in json.loads(prover.uv("pip", "list", "--format", "json", "--python", python))
        }
        code, findings, milliseconds = checked(prover, python)
        got = {name: versions.get(name) for name in (*DEPENDENTS, "onnxruntime", "onnxruntime-gpu")}
        prover.say(
            "dependents",
            engine,
            good=build_of(python) == before
            and None not in got.values()
            and "No broken requirements" in checks["pip check"]
            and "All installed packages are compatible" in checks["uv pip check"]
            and code == 0,
            check=code,
            check_ms=milliseconds,
            installed=got,
            provider=before["provider"],
            **checks,
        )
        if engine == "pip":
            call(*pip, "install", "-q", "-U", "onnxruntime", environ=environ)
            now = build_of(python)
            code, findings, milliseconds = checked(prover, python)
            prover.say(
                "dependents",
                "pip install -U onnxruntime",
                good=now["package"] == "onnxruntime"
                and not now["provided"]
                and code == 1
                and "cpu-build-installed" in findings,
                before=before["package"],
                after=now["package"],
                check=code,
                check_ms=milliseconds,
                findings=findings,
            )
            fix = [sys.executable, "-m", "ortgpu_fix", "--apply", "--yes"]
            facts_file = prover.work / "machine.json"
            call(*fix, "--facts", facts_file, "--python", python, environ=environ, check=False)
            code, findings, milliseconds = checked(prover, python)
            prover.say(
                "dependents",
                "and mended again",
                good=code == 0 and build_of(python) == before,
                check=code,
                findings=findings,
                provider=build_of(python)["provider"],
            )
        drop(prover, python)


def checked(prover: Prover, python: Path) -> tuple[int, list[str], int]:
    """Return the exit code of `--check`, what the plan finds, and the median of five in ms."""
    facts_file = prover.work / "machine.json"
    facts_file.write_text(json.dumps(machine("3.12", "linux", [])))
    words: tuple[str | Path, ...] = ("--facts", facts_file, "--python", python)
    tool = [sys.executable, "-m", "ortgpu_fix"]
    times = []
    code = -1
    for _ in range(5):
        begin = time.monotonic()
        code = call(*tool, "--check", *words, environ=prover.environ, check=False).returncode
        times.append(time.monotonic() - begin)
    said = call(*tool, "--json", *words, environ=prover.environ, check=False).stdout
    findings = [row["code"] for row in json.loads(said)["findings"]]
    return code, findings, round(statistics.median(times) * 1000)


def build_of(python: Path) -> dict[str, Any]:
    """Return what is in the folder onnxruntime."""
    site = site_packages(python)
    provider = site / "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    info = (site / "onnxruntime/capi/build_and_package_info.py").read_text()
    found = re.search(r"package_name = '([^']+)'", info)
    native = next((site / "onnxruntime/capi").glob("onnxruntime_pybind11_state*.so"))
    return {
        "package": found[1] if found else None,
        "provider": digest(provider) if provider.is_file() else None,
        "native": digest(native),
        "provided": any(site.glob(f"onnxruntime-*.dist-info/{companion_wheels.MARKER}")),
    }


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def prove_startup(prover: Prover, _: list[str]) -> None:
    """Measure a start of Python with and without the companion, by turns."""
    plan = prover.plan("1.26.0", "3.12")
    for version in filter(find_python, ("3.8", "3.10", "3.12", "3.13")):
        python = prover.environment(f"env-startup-{version}", version)
        prover.companions(python, plan.selection)
        site = site_packages(python)
        states = ("without", "an empty .pth file", "with", "with, not compiled")
        times: dict[str, list[float]] = {state: [] for state in states}
        for _turn in range(200):
            (site / "ortgpu_fix_libraries.pth").rename(site / "off")
            times["without"].append(start(python))
            (site / "empty.pth").touch()
            times["an empty .pth file"].append(start(python))
            (site / "empty.pth").unlink()
            (site / "off").rename(site / "ortgpu_fix_libraries.pth")
            times["with"].append(start(python))
            cache = site / "_ortgpu_fix_libraries" / "__pycache__"
            cache.rename(cache.with_name("away"))
            times["with, not compiled"].append(start(python))
            cache.with_name("away").rename(cache)
        medians = {name: round(statistics.median(values), 2) for name, values in times.items()}
        added = round(min(times["with"]) - min(times["without"]), 2)
        prover.say(
            "startup",
            version,
            good=added < 1,
            added_ms=added,
            median_ms=medians,
            least_ms={name: round(min(values), 2) for name, values in times.items()},
            load=os.getloadavg()[0],
        )
        drop(prover, python)


def start(python: Path) -> float:
    """Return the processor time of `python -c pass` in milliseconds."""
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    child = os.posix_spawn(python, [str(python), "-c", "pass"], environ)
    used = os.wait4(child, 0)[2]
    return (used.ru_utime + used.ru_stime) * 1000


PARTS: dict[str, Callable[[Prover, list[str]], None]] = {
    "releases": prove_releases,
    "windows": prove_windows,
    "torch": prove_torch,
    "dependents": prove_dependents,
    "startup": prove_startup,
}


def cleaned(rows: list[dict[str, Any]], work: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows without the paths of this machine."""
    for row in rows:
        text = json.dumps(row).replace(str(work), "…").replace(str(Path.home()), "~")
        yield json.loads(text)


def earlier(file: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that this day's file has of what was not done now."""
    if not file.is_file():
        return []
    done = {(row["part"], row["subject"]) for row in rows}
    kept: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["rows"]
    return [row for row in kept if (row["part"], row["subject"]) not in done]


def finish(prover: Prover, name: str, options: argparse.Namespace, begin: float) -> int:
    """Write the dated result into `options.results`, and return the exit code.

    `begin` is the clock's at the start. A folder that nobody named goes, unless it is to stay.
    """
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    options.results.mkdir(exist_ok=True)
    target = options.results / f"{name}-{today}.json"
    here = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}, no GPU"
    rows = [*earlier(target, prover.rows), *cleaned(prover.rows, prover.work)]
    document = {"date": today, "machine": here, "rows": rows}
    target.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    wrong = [row for row in prover.rows if not row["good"]]
    seconds = time.monotonic() - begin
    print(f"{len(prover.rows)} rows, {len(wrong)} wrong, {seconds:.0f} s: {target}")
    if not options.keep and options.work is None:
        shutil.rmtree(prover.work)
    return 1 if wrong else 0


def main() -> int:
    """Do all of it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, help="folder for environments")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    parser.add_argument("--release", action="append", choices=RELEASES, help="only this one")
    parser.add_argument("--keep", action="store_true", help="leave the environments")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-autoload-"))
    prover = Prover(work, keep=options.keep)
    begin = time.monotonic()
    for part in options.only.split(","):
        PARTS[part](prover, options.release or list(RELEASES))
    return finish(prover, "autoload", options, begin)


if __name__ == "__main__":
    sys.exit(main())
