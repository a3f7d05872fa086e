"""Prove that `--apply --write` changes a project so that its own tool makes the same environment.

    python scripts/prove/projects.py [--only uv,real-poetry] [--tools DIR] [--results DIR]

Each row is a project as its tool makes one, with onnxruntime and fastembed added by it. The command
that ends its plan is run; a second run changes nothing; the tool's own sync, run dry, has nothing
to do; `undo` brings every byte back. Then the environment is deleted and the tool makes it anew:
`--check` is 0. A package is added, the lock upgraded: `--check` is 0. And what the files mean for
a Mac is the CPU package. The wheels are small stand-ins of their names and versions, from an index
on this machine; `--tools` has the programs of the tools, else those on PATH are taken. The dated
result goes to scripts/prove/results/; the exit code is 1 where something is wrong. Needs Linux,
and the package index for numpy.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from prove.outcomes import RESULTS, write
from support.local_index import LocalIndex, make_wheel
from support.prover import call
from support.pythons import find_python
from support.standin_fleet import make_controller, make_stand_ins, stand_in_files
from support.standin_wheels import clean_environment, find_uv

MACHINE = ("--driver", "550.90.07", "--gpu", "RTX4090")
MAC = ("--python-platform", "aarch64-apple-darwin")
IGNORED = {".venv", ".git", "__pycache__"}
VENV = ".venv"
GPU_BUILD = "onnxruntime-gpu"
BASE = Path(sys.executable).resolve()
"""Of a virtual environment PDM and Pipenv take that itself."""
NUMPY = {"3.10": "numpy==2.2.6", "3.14": "numpy==2.3.5"} | dict.fromkeys(
    ("3.11", "3.12", "3.13"), "numpy==2.3.5"
)
"""By the Python that it is for: what the stand-in for onnxruntime computes with."""
PYPI = "https://pypi.org/simple/"
APPLICATION = """
import sys, onnxruntime
print("loaded", onnxruntime.__version__, flush=True)
onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
"""
"""An unchanged program."""
EITHER = """
import sys, numpy, onnxruntime
wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
session = onnxruntime.InferenceSession(sys.argv[1], providers=wanted)
image = numpy.arange(9, dtype=numpy.float32).reshape(1, 1, 3, 3)
print(session.get_providers(), session.run(None, {"input": image})[0].ravel().tolist())
"""
"""One that takes the CPU where there is no GPU."""
ON_CPU = "['CPUExecutionProvider'] [20.0, 44.0]"
NO_DRIVER = "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version"
"""What it meets where all libraries are loaded, and no driver is there."""
MODEL = Path(__file__).resolve().parents[2] / "data" / "start.onnx"
ORDINARY = {
    "flatbuffers": "25.2.10",
    "packaging": "25.0",
    "protobuf": "6.31.1",
    "coloredlogs": "15.0.1",
    "sympy": "1.14.0",
    "humanize": "4.9",
}
CPU = ("1.22.1", "1.31.0", "1.32.0")
"""Releases of onnxruntime that the index has; the last is newer than any onnxruntime-gpu."""
APPS = {
    "fastembed": ("0.9.1", ["onnxruntime>=1.17", "numpy"], []),
    "rembg": (
        "2.0.70",
        ["numpy", 'onnxruntime; extra == "cpu"', 'onnxruntime-gpu; extra == "gpu"'],
        ["cpu", "gpu"],
    ),
}


class Bench:
    """The index, the program that takes its stand-ins for the real wheels, and the tools."""

    def __init__(self, work: Path, index: str, controller: Path, tools: Path | None) -> None:
        self.work, self.index, self.program = work, index, controller
        environ = clean_environment()
        environ.pop("UV_NO_CONFIG", None)
        if tools:
            environ["PATH"] = f"{tools}{os.pathsep}{environ['PATH']}"
        home = work / "home"
        home.mkdir(parents=True, exist_ok=True)
        self.environ = environ | {
            "HOME": str(home),
            "UV_DEFAULT_INDEX": index,
            "UV_CACHE_DIR": str(work / "cache"),
            "PIP_INDEX_URL": index,
            "POETRY_VIRTUALENVS_IN_PROJECT": "true",
            "PDM_PYPI_URL": index,
            "PDM_CHECK_UPDATE": "0",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }

    def with_tool(self, wanted: str) -> Bench:
        """Return the same with another release of a tool, in an environment of its own."""
        if not wanted:
            return self
        other, place = copy.copy(self), self.work / wanted
        if not place.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            argv = [str(place / "bin/python"), "-m", "pip", "install", "-q", wanted]
            subprocess.run(argv, check=True)
        alone = self.work / f"{wanted} alone"  # its Python is none of the project's
        alone.mkdir(exist_ok=True)
        name = wanted.partition("==")[0]
        if not (alone / name).exists():
            (alone / name).symlink_to(place / "bin" / name)
        path = f"{alone}{os.pathsep}{self.environ['PATH']}"
        other.environ = self.environ | {"PATH": path}
        return other

    def forget(self) -> None:
        """Empty the caches of all tools."""
        for place in ("cache", "home/.cache"):
            shutil.rmtree(self.work / place, ignore_errors=True)

    def run(
        self, folder: Path, *words: str | Path, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool in `folder`."""
        return call(*words, environ=self.environ, cwd=folder, check=check)

    def ours(
        self, folder: Path, *words: str, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run this program in `folder`, for its environment."""
        argv: list[str | Path] = [self.program, "-m", "ortgpu_fix", *words]
        return self.run(folder, *argv, check=check)


def make_index(folder: Path) -> None:
    """Write the stand-ins of what people add, and of both kinds of onnxruntime."""
    for version in CPU:
        make_wheel(folder, "onnxruntime", version, files=stand_in_files("onnxruntime", version))
    for name, version in ORDINARY.items():
        make_wheel(folder, name, version)
    for name, (version, requires, extras) in APPS.items():
        make_wheel(folder, name, version, requires=requires, extras=extras)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    command += ["--only-binary", ":all:", "--python-version"]
    for python, numpy in NUMPY.items():
        subprocess.run([*command, python, numpy], check=True)
        subprocess.run([*command, python, "--platform", "macosx_11_0_arm64", numpy], check=True)


def teach(bench: Bench, wheels: Path) -> None:
    """Make stand-ins of all that plans for these projects install, and let the program know."""
    rows, ordinary = [], {}
    asked = [(python,) for python in NUMPY]
    for wish in (*asked, ("3.11", "--ort", "1.22.0")):  # the last is for a pin of 1.22.1
        planned = bench.ours(bench.work, "--json", *MACHINE, "--python", *wish)
        plan = json.loads(planned.stdout)
        rows += plan["install"]
        [release] = {row["version"] for row in plan["install"] if row["name"] == GPU_BUILD}
        ordinary[f"{GPU_BUILD} {release}"] = plan["requires"]
    make_stand_ins(bench.program, rows, wheels, ordinary)


def bytes_of(folder: Path) -> dict[str, str]:
    """Return every file of a project by its path, as a hash."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not IGNORED.intersection(path.relative_to(folder).parts)
    }


class Kind:
    """A kind of project: how its tool makes it, syncs it, and what it means for a Mac."""

    tool: str = ""
    """Which release of its tool makes it, `uv==0.5.31`; empty: the one that is there."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name = bench.with_tool(self.tool), name
        self.folder = bench.work / name
        self.venv = self.folder / VENV
        self.flags: tuple[str, ...] = ()
        self.where: tuple[str, ...] = ()
        self.has_dry_sync = True

    @property
    def python(self) -> Path:
        """Return the Python of the environment."""
        return self.venv / "bin" / "python"

    def ours(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run this program for the project's environment."""
        return self.bench.ours(self.folder, *words, *self.where)

    def do(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the project."""
        return self.bench.run(self.folder, *words, check=check)

    def make(self) -> None:
        """Make the project and its environment."""
        raise NotImplementedError

    def make_anew(self) -> None:
        """Delete the environment and all that was downloaded, and let the tool make it again."""
        shutil.rmtree(self.venv)
        self.bench.forget()
        self.sync()

    def sync(self) -> None:
        """Make the environment as the files say."""
        raise NotImplementedError

    def to_sync(self) -> list[str]:
        """Return what the tool's sync, run dry, would do."""
        raise NotImplementedError

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        raise NotImplementedError

    def on_a_mac(self) -> str:
        """Return the line of onnxruntime that a Mac gets."""
        raise NotImplementedError


class UvProject(Kind):
    """As `uv init` and `uv add` make it."""

    added: tuple[str, ...] = ("onnxruntime", "fastembed")

    def make(self) -> None:
        """Make the project and its environment."""
        self.do_above("uv", "init", "--quiet", self.name)
        self.do("uv", "add", "--quiet", *self.added)

    def do_above(self, *words: str) -> None:
        """Run a command in the directory of the project."""
        self.bench.run(self.folder.parent, *words)

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do("uv", "sync", "--quiet", "--locked")

    def to_sync(self) -> list[str]:
        """Return what the tool's sync, run dry, would do."""
        said = self.do("uv", "sync", "--dry-run").stderr
        steps = [line for line in said.splitlines() if line.startswith((" + ", " - "))]
        # The project itself is made again after each change of pyproject.toml.
        return [line for line in steps if "file://" not in line or ".whl" in line]

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        self.do("uv", "add", "--quiet", "humanize")
        self.do("uv", "lock", "--quiet", "--upgrade")
        self.do("uv", "sync", "--quiet")

    def on_a_mac(self) -> str:
        """Return the line of onnxruntime that a Mac gets."""
        self.do("uv", "export", "-q", "--no-hashes", "--no-emit-project", "-o", "all.txt")
        # `uv export` names all machines: what a Mac takes of it is resolved for one.
        done = self.do("uv", "pip", "compile", "-q", "--no-annotate", *MAC, "all.txt")
        (self.folder / "all.txt").unlink()
        return next((row for row in done.stdout.splitlines() if row.startswith("onnxruntime")), "")


class UvPin(UvProject):
    """With an exact pin that no onnxruntime-gpu has."""

    added = ("onnxruntime==1.22.1", "fastembed")


class UvRembg(UvProject):
    """With the GPU package asked for by an extra of another."""

    added = ("rembg[gpu]", "fastembed")

    def on_a_mac(self) -> str:
        """Return nothing: who asks for that extra asks for what no Mac has."""
        return ""


class UvPython(UvProject):
    """For one Python alone; its name ends with it."""

    bound = "=={}.*"

    def make(self) -> None:
        """Make the project and its environment."""
        version = self.name.rpartition("-")[2]
        python = find_python(version)
        if python is None:
            raise LookupError(version)
        self.do_above("uv", "init", "--quiet", "--python", str(python), self.name)
        path = self.folder / "pyproject.toml"
        text = path.read_text("utf-8")
        line = next(row for row in text.splitlines() if row.startswith("requires-python"))
        bound = f'requires-python = "{self.bound.format(version)}"'
        path.write_text(text.replace(line, bound), "utf-8")
        self.do("uv", "add", "--quiet", *self.added)


class UvWide(UvPython):
    """For all Pythons of today, in an environment of one of them."""

    bound = ">=3.10"


class OldUv(UvProject):
    """With a uv of January 2025."""

    tool = "uv==0.5.31"


class OlderUv(UvProject):
    """With a uv of January 2026."""

    tool = "uv==0.9.30"


class UvWorkspace(UvProject):
    """A member of a workspace requires onnxruntime, and is synced."""

    def make(self) -> None:
        """Make the project and its environment."""
        self.do_above("uv", "init", "--quiet", self.name)
        self.do("uv", "init", "--quiet", "--lib", "packages/inner")
        self.do("uv", "add", "--quiet", "--package", "inner", *self.added)
        self.do("uv", "add", "--quiet", "inner")

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do("uv", "sync", "--quiet", "--locked")


class PoetryProject(Kind):
    """As `poetry init` and `poetry add` make it."""

    def make(self) -> None:
        """Make the project and its environment."""
        self.folder.mkdir()
        self.do("poetry", "init", "-n", "--name", "app", "--python", ">=3.11")
        text = (self.folder / "pyproject.toml").read_text("utf-8")
        (self.folder / "pyproject.toml").write_text(
            text.replace("[build-system]", "[tool.poetry]\npackage-mode = false\n\n[build-system]")
        )
        self.do("poetry", "source", "add", "--priority=primary", "here", self.bench.index)
        self.do("poetry", "add", "-n", "--no-ansi", "onnxruntime", "fastembed")

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do("poetry", "sync", "-n", "--no-ansi")

    def to_sync(self) -> list[str]:
        """Return what the tool's sync, run dry, would do."""
        said = self.do("poetry", "sync", "--dry-run", "--no-ansi").stdout
        rows = [row for row in said.splitlines() if row.strip().startswith("- ")]
        return [row for row in rows if "Skipped" not in row]

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        self.do("poetry", "add", "-n", "--no-ansi", "humanize")
        self.do("poetry", "update", "-n", "--no-ansi")

    def on_a_mac(self) -> str:
        """Return the line of onnxruntime that a Mac gets."""
        lock = (self.folder / "poetry.lock").read_text("utf-8")
        wanted = [part for part in lock.split("[[package]]") if 'name = "onnxruntime"\n' in part]
        of_mac = next(part for part in wanted if "+ortgpu" not in part)
        return f"onnxruntime=={of_mac.split('version = ')[1].splitlines()[0].strip(chr(34))}"


class PoetryElsewhere(PoetryProject):
    """With the environment where Poetry keeps it by itself."""

    def make(self) -> None:
        """Make the project and its environment."""
        self.bench.environ["POETRY_VIRTUALENVS_IN_PROJECT"] = "false"
        super().make()
        self.venv = Path(self.do("poetry", "env", "info", "-p").stdout.strip())
        self.where = ("--python", str(self.venv))


class Poetry1(PoetryProject):
    """As Poetry 1.8 makes it, with its own table of dependencies."""

    tool = "poetry==1.8.5"

    def make(self) -> None:
        """Make the project and its environment."""
        self.folder.mkdir()
        self.do("poetry", "init", "-n", "--name", "app", "--python", ">=3.11")
        path = self.folder / "pyproject.toml"
        text = path.read_text("utf-8")
        path.write_text(text.replace("[tool.poetry]\n", "[tool.poetry]\npackage-mode = false\n"))
        self.do("poetry", "source", "add", "--priority=primary", "here", self.bench.index)
        self.do("poetry", "add", "-n", "--no-ansi", "onnxruntime", "fastembed")

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do("poetry", "install", "-n", "--no-ansi", "--sync")

    def to_sync(self) -> list[str]:
        """Return what the tool's sync, run dry, would do."""
        said = self.do("poetry", "install", "--sync", "--dry-run", "--no-ansi").stdout
        rows = [row for row in said.splitlines() if row.strip().startswith("- ")]
        # What it made the environment with it removes at the next sync.
        return [row for row in rows if "Skipped" not in row and "Removing setuptools" not in row]


class PdmProject(Kind):
    """As `pdm init` and `pdm add` make it."""

    def make(self) -> None:
        """Make the project and its environment."""
        self.folder.mkdir()
        self.do("pdm", "init", "-q", "-n", "--python", BASE)
        self.do("pdm", "add", "-q", "onnxruntime", "fastembed")

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do("pdm", "sync", "-q", "--clean")

    def to_sync(self) -> list[str]:
        """Return what the tool's sync, run dry, would do."""
        said = self.do("pdm", "sync", "--clean", "--dry-run").stdout
        return [row for row in said.splitlines() if row.strip().startswith("- ")]

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        self.do("pdm", "add", "-q", "humanize")
        self.do("pdm", "update", "-q")

    def on_a_mac(self) -> str:
        """Return nothing: PDM locks one candidate for all systems, and the plan says so."""
        return ""


class PipenvProject(Kind):
    """As `pipenv install` makes it, with the environment where Pipenv keeps it."""

    def make(self) -> None:
        """Make the project and its environment."""
        self.folder.mkdir()
        self.do("pipenv", "install", "-q", "--python", BASE, "onnxruntime", "fastembed")
        self.venv = Path(self.do("pipenv", "--venv").stdout.strip())
        self.where = ("--python", str(self.venv))

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do("pipenv", "sync", "-q", "--python", BASE)

    def to_sync(self) -> list[str]:
        """Return what the tool's sync does, which has no dry run: nothing may change."""
        before = bytes_of(self.venv)
        self.do("pipenv", "sync", "-q")
        after, left = bytes_of(self.venv), self.do("pipenv", "clean", "--dry-run").stdout.split()
        return left + [name for name in after if before.get(name) != after[name]]

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        self.do("pipenv", "install", "-q", "humanize")
        self.do("pipenv", "update", "-q")

    def on_a_mac(self) -> str:
        """Return nothing: Pipenv locks for one system, and the plan says so."""
        return ""


class Requirements(Kind):
    """A requirements file that pip installs, or uv."""

    by_uv = False
    lines = "# what the service needs\nfastembed\n"

    def make(self) -> None:
        """Make the project and its environment."""
        self.folder.mkdir()
        (self.folder / "requirements.txt").write_text(self.lines)
        self.flags = ("-r", "requirements.txt")
        self.has_dry_sync = False
        self.sync()

    def sync(self) -> None:
        """Make the environment as the files say."""
        self.do(sys.executable, "-m", "venv", "--clear", VENV)
        self.install("-r", "requirements.txt")

    def install(self, *words: str) -> None:
        """Install into the environment."""
        if self.by_uv:
            self.do("uv", "pip", "install", "-q", *words)
        else:
            self.do(self.python, "-m", "pip", "install", "-q", *words)

    def to_sync(self) -> list[str]:
        """Return what the tool's sync, run dry, would do."""
        return []

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        with (self.folder / "requirements.txt").open("a") as file:
            file.write("humanize\n")
        self.install("-U", "-r", "requirements.txt")

    def on_a_mac(self) -> str:
        """Return the line of onnxruntime that a Mac gets."""
        done = self.do("uv", "pip", "compile", "-q", "--no-annotate", *MAC, "requirements.txt")
        return next((row for row in done.stdout.splitlines() if row.startswith("onnxruntime")), "")


class PinnedRequirements(Requirements):
    """With an exact pin that no onnxruntime-gpu has, which stays as it is."""

    lines = "onnxruntime==1.22.1\nfastembed\n"


class PipTools(Requirements):
    """A file that a person writes, and the one that pip-compile makes of it."""

    def make(self) -> None:
        """Make the project and its environment."""
        self.folder.mkdir()
        (self.folder / "requirements.in").write_text("# what the service needs\nfastembed\n")
        self.do("pip-compile", "-q", "requirements.in")
        self.flags = ("-r", "requirements.txt")
        self.has_dry_sync = False
        self.sync()

    def grow(self) -> None:
        """Add a package, and upgrade the lock."""
        with (self.folder / "requirements.in").open("a") as file:
            file.write("humanize\n")
        self.do("pip-compile", "-q", "--upgrade", "requirements.in")
        self.install("-r", "requirements.txt")

    def on_a_mac(self) -> str:
        """Return the line of onnxruntime that a Mac gets: it compiles for itself."""
        done = self.do("uv", "pip", "compile", "-q", "--no-annotate", *MAC, "requirements.in")
        return next((row for row in done.stdout.splitlines() if row.startswith("onnxruntime")), "")


class RequirementsByUv(Requirements):
    """The same, installed by uv."""

    by_uv = True


KINDS: dict[str, type[Kind]] = {
    "uv": UvProject,
    "uv-pin": UvPin,
    "uv-rembg": UvRembg,
    "uv-workspace": UvWorkspace,
    "uv-0.5": OldUv,
    "uv-0.9": OlderUv,
    "requirements": Requirements,
    "requirements-pin": PinnedRequirements,
    "requirements-uv": RequirementsByUv,
    "pip-tools": PipTools,
    "poetry": PoetryProject,
    "poetry-elsewhere": PoetryElsewhere,
    "poetry-1": Poetry1,
    "pdm": PdmProject,
    "pipenv": PipenvProject,
    **{f"uv-only-{python}": UvPython for python in NUMPY},
    "uv-wide-3.11": UvWide,
}
REAL = ("uv", "poetry", "pdm", "pipenv", "requirements", "pip-tools")
"""Which of them are made with PyPI's own wheels, too."""
ROWS = (*KINDS, *(f"real-{name}" for name in REAL))


def steps(kind: Kind) -> Iterator[tuple[str, object, object]]:
    """Do all of it; yield what is looked at, what it is, and what it must be."""
    folder = kind.folder
    kind.make()
    before = bytes_of(folder)
    yield "plan", kind.ours(*MACHINE, *kind.flags).returncode, 1
    write_it = ("--apply", "--write", "--yes", *kind.flags, *MACHINE)
    yield "apply", said(kind.ours(*write_it)), (0, "")
    yield "check", kind.ours("--check", *MACHINE).returncode, 0
    if kind.has_dry_sync:
        yield "sync has nothing to do", kind.to_sync(), []
    first = bytes_of(folder)
    yield "changed", first != before, True
    yield "again", kind.ours(*write_it).returncode, 0
    yield "again, the files", bytes_of(folder) == first, True
    yield "undo", said(kind.ours("undo", "--yes")), (0, "")
    yield "undo, the files", bytes_of(folder) == before, True
    yield "apply again", kind.ours(*write_it).returncode, 0
    kind.make_anew()
    yield "made anew", kind.ours("--check", *MACHINE).returncode, 0
    yield "which build", build_there(kind), "onnxruntime-gpu"
    kind.grow()
    yield "grown and upgraded", kind.ours("--check", *MACHINE).returncode, 0
    yield "on a Mac", "+ortgpu" in kind.on_a_mac() or "-gpu" in kind.on_a_mac(), False


def real_steps(kind: Kind) -> Iterator[tuple[str, object, object]]:
    """Do what real wheels are for, and yield the same."""
    kind.make()
    yield "plan", kind.ours(*MACHINE, *kind.flags).returncode, 1
    write_it = ("--apply", "--write", "--yes", *kind.flags, *MACHINE)
    yield "apply", said(kind.ours(*write_it)), (0, "")
    yield "check", kind.ours("--check", *MACHINE).returncode, 0
    kind.make_anew()
    yield "made anew", kind.ours("--check", *MACHINE).returncode, 0
    yield "which build", build_there(kind), "onnxruntime-gpu"
    done = kind.do(kind.python, "-c", APPLICATION, MODEL, check=False)
    met = (done.stdout + done.stderr).partition("CUDA failure")[2].partition(";")[0].rstrip()
    yield "the program met", f"CUDA failure{met}", NO_DRIVER
    done = kind.do(kind.python, "-c", EITHER, MODEL, check=False)
    yield "without a GPU", done.stdout.strip().rpartition("\n")[2], ON_CPU
    shutil.rmtree(kind.venv)
    kind.bench.forget()


def said(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """Return the exit code, and the last words where that is not 0."""
    return done.returncode, done.stderr[-800:] if done.returncode else ""


def build_there(kind: Kind) -> str:
    """Return the distribution whose files `import onnxruntime` takes."""
    code = "from onnxruntime.capi.build_and_package_info import package_name as it; print(it)"
    return kind.do(kind.python, "-c", code).stdout.strip()


def look(kind: Kind, row: dict[str, Any]) -> None:
    """Do all of a kind, and put what came of it into `row`."""
    real = kind.name.startswith("real-")
    try:
        for step, what, wanted in (real_steps if real else steps)(kind):
            row[step] = what
            if what != wanted:
                row["wrong"].append(step)
                print(f"     {kind.name}: {step}: {what}", flush=True)
    except LookupError as error:
        row["not run"] = f"there is no Python {error.args[0]} on this machine"
    except SystemExit as error:  # a tool failed that may not
        row["wrong"].append(str(error)[-1200:])


def prove(name: str, bench: Bench) -> dict[str, Any]:
    """Return what became of the row `name`; its directory is empty afterwards."""
    began = time.monotonic()
    row: dict[str, Any] = {"kind": name, "wrong": []}
    look(KINDS[name.removeprefix("real-")](bench, name), row)
    row["seconds"] = round(time.monotonic() - began)
    how = "FAIL" if row["wrong"] else "--  " if "not run" in row else "ok  "
    print(f"{how} {name}, {row['seconds']} s: {', '.join(row['wrong'])}", flush=True)
    shutil.rmtree(bench.work)
    return row


def main() -> int:
    """Do all of it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(ROWS), help="rows, with commas")
    parser.add_argument("--tools", type=Path, help="the directory of their programs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, help="the directory to work in")
    parser.add_argument(
        "--jobs", type=int, default=1, help="how many rows with stand-ins at a time"
    )
    options = parser.parse_args()
    asked = options.only.split(",")
    with tempfile.TemporaryDirectory(prefix="prove-projects-", dir=options.work) as temporary:
        work = Path(temporary).resolve()
        wheels = work / "index"
        make_index(wheels)
        controller = make_controller(work / "program", Path(sys.executable))
        tools = options.tools or Path(find_uv()).parent
        pool, one = ThreadPoolExecutor(options.jobs), ThreadPoolExecutor(1)  # for the disk's sake
        with LocalIndex(wheels) as index, pool, one:

            def bench(name: str) -> Bench:
                if name.startswith("real-"):
                    return Bench(work / name, PYPI, Path(sys.executable), tools)
                return Bench(work / name, index.url, controller, tools)

            teach(bench("first"), wheels)
            running = [
                (one if name.startswith("real-") else pool).submit(prove, name, bench(name))
                for name in asked
            ]
            rows: list[dict[str, Any]] = []
            for each in as_completed(running):  # what ends early leaves what it has
                rows = sorted([*rows, each.result()], key=lambda row: asked.index(row["kind"]))
                done = {row["kind"] for row in rows if "not run" not in row}
                left = [name for name in ROWS if name not in done]
                write("projects", {"not_run": left, "rows": rows}, options.results)
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
