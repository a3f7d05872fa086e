"""What the proofs with real wheels have in common: environments, this program in them, and rows."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ortgpu_fix.companions import build as companion_wheels
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix import load as data_files
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.utils.files import file_digest
from prove.outcomes import RESULTS, known, write
from support.pythons import find_python
from support.standin_wheels import clean_environment, find_uv

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "tests" / "stubs_verify" / "libcuda.c"
MODEL = ROOT / "data" / "conv.onnx"
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
"""Code that prints the CUDA libraries of its process as JSON, each with its files."""


class Prover:
    """The matrix, a folder, and the rows of the result."""

    def __init__(self, work: Path, *, keep: bool) -> None:
        self.work = work
        self.keep = keep
        self.matrix: Matrix = data_files.load_matrix()
        self.modules = data_files.companion_modules()
        self.environ = clean_environment()
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
        self, release: str, python: str, system: str = "linux", *, small: bool = False
    ) -> Plan:
        """Return the resolver's plan for this release on a recent driver and two GPUs."""
        document = {
            "schema": 1,
            "platform": {"system": system, "machine": "x86_64"},
            "driver": {"version": "610.10", "cuda": "13.3"},
            "gpus": [{"compute_capability": "7.5"}, {"compute_capability": "8.6"}],
            "python": {"version": f"{python}.0"},
            "packages": [],
        }
        options = PlanOptions(onnxruntime=f"=={release}", small=small)
        return resolve(facts_json.from_json(document), options, self.matrix)

    def environment(self, name: str, python: str) -> Path:
        """Make an environment and return its interpreter."""
        folder = self.work / name
        self.uv("venv", "--clear", "--python", find_python(python) or python, str(folder))
        return folder / "bin" / "python"

    def uv(self, *words: str | Path) -> str:
        """Run uv without anyone's configuration."""
        return call(find_uv(), "--quiet", "--no-config", *words, environ=self.environ).stdout

    def install(self, python: Path, *requirements: str | Path) -> None:
        """Install with uv."""
        self.uv("pip", "install", "--python", python, *requirements)

    def companions(self, python: Path, selection: tuple[Wheel, ...]) -> None:
        """Install the companions of a selection."""
        folder = self.work / "wheels"
        folder.mkdir(exist_ok=True)
        paths = []
        for wheel in companion_wheels.build_companions(
            selection, self.matrix, "linux_x86_64", self.modules
        ):
            paths.append(folder / wheel.file)
            paths[-1].write_bytes(wheel.content)
        self.uv("pip", "install", "--no-deps", "--compile-bytecode", "--python", python, *paths)

    def run(
        self, python: Path, code: str, *words: str | Path, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run code there, with nothing of this process's environment that could help."""
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
        return call(python, "-c", code, *words, environ=kept | environ, check=False)

    def tool(self, python: Path, *words: str, driver: str = "", **environ: str) -> dict[str, Any]:
        """Run this program for `python`, and return what it prints as JSON with its exit code."""
        machine = ["--driver", driver, "--gpu", "8.0"] if driver else []
        argv = [sys.executable, "-m", "ortgpu_fix", *words, "--json", "--python", str(python)]
        done = call(*argv, *machine, environ=self.environ | environ, check=False)
        document: dict[str, Any] = json.loads(done.stdout)
        return {**document, "exit": done.returncode}

    def check(self, python: Path, driver: str) -> int:
        """Return the exit code of `--check`."""
        argv = [sys.executable, "-m", "ortgpu_fix", "--check", "--python", str(python)]
        argv += ["--driver", driver, "--gpu", "8.0"]
        return call(*argv, environ=self.environ, check=False).returncode

    def drop(self, python: Path) -> None:
        """Remove an environment that is not needed any more."""
        if not self.keep:
            shutil.rmtree(python.parents[1])


class Run:
    """A run of a proof from the command line: its flags, its Prover, its dated result."""

    def __init__(self, about: str | None, name: str, **more: str) -> None:
        """Read the command line; `more` are flags of this proof with their help.

        `about`: the docstring of the proof, which is called `name`.
        """
        parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
        parser.add_argument("--work", type=Path, help="folder for environments")
        parser.add_argument("--only", default="", help="those whose names hold one, with commas")
        parser.add_argument("--cache", help="uv's cache, to download once for several runs")
        parser.add_argument("--keep", action="store_true", help="leave the environments")
        parser.add_argument("--results", type=Path, default=RESULTS)
        for flag, text in more.items():
            parser.add_argument(f"--{flag.replace('_', '-')}", help=text)
        self.options = parser.parse_args()
        self.name, self.begin = name, time.monotonic()
        self.left_out: list[str] = []
        work = self.options.work or Path(tempfile.mkdtemp(prefix=f"prove-{name}-"))
        self.prover = Prover(work, keep=self.options.keep)
        # Gigabytes that nobody else needs, unless a cache is named.
        self.prover.environ["UV_CACHE_DIR"] = self.options.cache or str(work / "cache")

    def wants(self, name: str) -> bool:
        """Tell whether what is called `name` is to be done."""
        wanted = any(part in name for part in self.options.only.split(","))
        if not wanted:
            self.left_out.append(name)
        return wanted

    def forget_downloads(self) -> None:
        """Remove what was downloaded for this run alone."""
        if not (self.options.keep or self.options.cache):
            shutil.rmtree(self.prover.environ["UV_CACHE_DIR"], ignore_errors=True)

    def finish(self, **about: object) -> int:
        """Write the dated result, `about` at its head, and return the exit code.

        What others of this day's rows say of what was not done now stays. A folder that nobody
        named goes, unless it is to stay.
        """
        earlier = known(self.name, self.options.results).get("rows", ())
        done = {(row["part"], row["subject"]) for row in self.prover.rows}
        kept = [row for row in earlier if (row["part"], row["subject"]) not in done]
        rows = [*kept, *self._without_paths()]
        subjects = {row["subject"] for row in rows}
        left = [name for name in self.left_out if not any(name in each for each in subjects)]
        document = {**about, "not_run": left, "rows": rows}
        target = write(self.name, document, self.options.results)
        wrong = [row for row in self.prover.rows if not row["good"]]
        seconds = time.monotonic() - self.begin
        print(f"{len(self.prover.rows)} rows, {len(wrong)} wrong, {seconds:.0f} s: {target}")
        if not self.options.keep and self.options.work is None:
            shutil.rmtree(self.prover.work)
        return 1 if wrong else 0

    def _without_paths(self) -> Iterator[dict[str, Any]]:
        for row in self.prover.rows:
            text = json.dumps(row).replace(str(self.prover.work), "…")
            yield json.loads(text.replace(str(Path.home()), "~"))


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


def copies_of(finished: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """Return the CUDA libraries that a process with `COPIES` had, each with its files."""
    found: dict[str, list[str]] = json.loads(finished.stdout.strip().rpartition("\n")[2] or "{}")
    return found


def twice(copies: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the libraries that a process had from more than one file."""
    return {name: paths for name, paths in copies.items() if len(paths) > 1}


def message(finished: subprocess.CompletedProcess[str]) -> str:
    """Return how a session went, in a few words."""
    text = finished.stdout + finished.stderr
    missing = re.search(r"(lib[\w.]+): cannot open shared object file", text)
    if missing:
        return f"missing {missing[1]}"
    for pattern in (r"CUDA failure \d+: [\w ,-]+", "Failed to create CUDAExecutionProvider"):
        found = re.search(pattern, text)
        if found:
            return found[0]
    if finished.returncode < 0:
        return f"signal {-finished.returncode}"
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else f"exit code {finished.returncode}, nothing said"


def files_of(site: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below; bytecode and this program's own folder left out."""
    return {
        path.relative_to(site).as_posix(): file_digest(path)
        for path in sorted(site.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and ".ortgpu-fix" not in path.parts
    }


def selected(plan: dict[str, Any]) -> str | None:
    """Return the release of onnxruntime-gpu in a plan."""
    rows = plan["selection"]["packages"] if plan["selection"] else []
    return next((row["version"] for row in rows if row["name"] == "onnxruntime-gpu"), None)


def build_of(python: Path) -> dict[str, Any]:
    """Return what is in the folder onnxruntime."""
    site = site_packages(python)
    provider = site / "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    info = (site / "onnxruntime/capi/build_and_package_info.py").read_text()
    found = re.search(r"package_name = '([^']+)'", info)
    native = next((site / "onnxruntime/capi").glob("onnxruntime_pybind11_state*.so"))
    return {
        "package": found[1] if found else None,
        "provider": file_digest(provider) if provider.is_file() else None,
        "native": file_digest(native),
    }
