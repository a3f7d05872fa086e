"""Prove the main job: mend real broken environments with real wheels and real uv.

    python scripts/prove/apply.py [--only SUBSTRING …] [--work DIR] [--keep]

For each CUDA major every broken state is tried on one Python, and one state on each other: a fresh
environment is made, the state is planted, and `ortgpu-fix --facts MACHINE --apply --yes` is run as
a user would, from an environment of its own. Then: the release is the one expected, no CPU build is
left, the verification found every library (there is no GPU here), a second run says healthy and
changes no file, and `undo` brings back what was planted, to the time of every file. Wheels come
from the index, once, into a cache of uv's below DIR.

Each outcome goes into scripts/prove/results/ at once, so that a run can be done in parts.

Needs uv, gcc, a network, and about 20 GB below DIR. The exit code is 1 where a case is not as
expected.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import record, recorded
from support.prover import ROOT, Prover, call
from support.pythons import find_python

STATES = ("cpu", "both", "gutted", "newest")
EVERY_STATE = "3.11"
"""The Python on which each is tried."""


@dataclass(frozen=True)
class Machine:
    """A machine to plan for, and what must be chosen on it, by Python."""

    driver: str
    cuda: str
    expected: dict[str, str]


# Read off the wheels on the index by hand: the newest release of the CUDA major for each Python.
MACHINES = {
    "11": Machine(
        driver="470.256.02",
        cuda="11.4",
        expected=dict.fromkeys(("3.8", "3.9", "3.10", "3.11", "3.12"), "1.18.1"),
    ),
    "12": Machine(
        driver="535.104.12",
        cuda="12.2",
        expected={
            "3.8": "1.19.2",
            "3.9": "1.19.2",
            "3.10": "1.23.2",
            "3.11": "1.26.0",
            "3.12": "1.26.0",
            "3.13": "1.26.0",
        },
    ),
    "13": Machine(
        driver="580.65.06",
        cuda="13.0",
        expected=dict.fromkeys(("3.11", "3.12", "3.13"), "1.31.1"),
    ),
}
CPU_BUILD = {"3.8": "1.19.2", "3.9": "1.19.2"}
NEWEST = {"3.8": "1.19.2", "3.9": "1.19.2", "3.10": "1.23.2"}


@dataclass(frozen=True)
class Case:
    """One environment to mend."""

    cuda: str
    python: str
    state: str

    @property
    def name(self) -> str:
        """For people, and for `--only`."""
        return f"cuda{self.cuda}-py{self.python}-{self.state}"


@dataclass
class Outcome:
    """How a case went."""

    name: str
    release: str = ""
    verdict: str = ""
    seconds: float = 0.0
    undo_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def cases() -> Iterator[Case]:
    """Give every case: all states on one Python, and one of them, by turns, on each other."""
    for cuda, machine in MACHINES.items():
        for python, state in zip(machine.expected, itertools.cycle(STATES)):
            for each in STATES if python == EVERY_STATE else (state,):
                yield Case(cuda=cuda, python=python, state=each)


class Workshop(Prover):
    """The folder where environments are made and mended, and the program as users have it."""

    def __init__(self, work: Path) -> None:
        super().__init__(work, keep=False)
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        self.program = self.environment("tool", here)
        """The interpreter that has ortgpu-fix."""
        self.install(self.program, ROOT)

    def facts(self, machine: Machine) -> Path:
        """Write the facts of `machine` and return the file."""
        document = {
            "schema": 1,
            "platform": {"system": "linux", "machine": platform.machine(), "libc": "glibc 2.35"},
            "driver": {"version": machine.driver, "cuda": machine.cuda},
            "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}],
            "python": {"version": "3.11.0"},
            "packages": [],
        }
        path = self.work / f"machine-{machine.cuda}.json"
        path.write_text(json.dumps(document))
        return path

    def ortgpu_fix(
        self,
        target: Path,
        *words: str,
        machine: Machine | None = None,
        temporary: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the program on `target` as a user would; return what it printed.

        `machine` is what is planned for, `temporary` the folder for temporary files.
        """
        environ = dict(self.environ)
        if machine is MACHINES["13"]:  # many of the older releases crash with the stand-in
            environ["LD_LIBRARY_PATH"] = self.driver
        if temporary is not None:
            environ["TMPDIR"] = str(temporary)
        facts = ["--facts", str(self.facts(machine))] if machine is not None else []
        argv: list[str | Path] = [self.program, "-m", "ortgpu_fix", *words, "--json", *facts]
        return call(*argv, "--python", target, environ=environ, check=False)

    def plant(self, case: Case, python: Path) -> Path:
        """Make the broken environment of `case` and return its interpreter."""
        self.uv("venv", "--clear", "--python", python, self.work / case.name)
        target = self.work / case.name / "bin" / "python"
        cpu = f"onnxruntime=={CPU_BUILD.get(case.python, '1.22.1')}"
        newest = f"onnxruntime-gpu=={NEWEST.get(case.python, '1.31.1')}"
        self.install(target, cpu if case.state == "cpu" else newest)
        if case.state in {"both", "gutted"}:
            self.install(target, "--no-deps", cpu)
        if case.state == "gutted":
            self.uv("pip", "uninstall", "--python", target, "onnxruntime")
        return target

    def mend(self, case: Case, python: Path) -> Outcome:
        """Mend the environment of `case`, look at it, and say how it went."""
        outcome = Outcome(name=case.name)
        target = self.plant(case, python)
        planted = digest(target.parents[1])
        temporary = self.work / f"{case.name}-temporary"
        temporary.mkdir()
        run = partial(self.ortgpu_fix, target, temporary=temporary)
        apply = partial(run, "--apply", "--yes", machine=MACHINES[case.cuda])
        started = time.monotonic()
        done = apply()
        outcome.seconds = round(time.monotonic() - started, 1)
        if done.returncode != 0:
            outcome.problems.append(f"exit {done.returncode}: {done.stdout[-600:]}{done.stderr}")
            return outcome
        applied = json.loads(done.stdout)
        outcome.verdict = applied["verification"]["verdict"]
        rows = {row["name"]: row["version"] for row in applied["selection"]["packages"]}
        outcome.release = rows["onnxruntime-gpu"]
        self._judge(case, outcome, target, rows)
        before = digest(target.parents[1])
        again = apply()
        if again.returncode != 0 or json.loads(again.stdout)["verdict"] != "healthy":
            outcome.problems.append(f"second run: {again.stdout[-300:]}{again.stderr}")
        if digest(target.parents[1]) != before:
            outcome.problems.append("the second run changed a file")
        started = time.monotonic()
        undone = run("undo", "--yes")
        outcome.undo_seconds = round(time.monotonic() - started, 2)
        if undone.returncode != 0:
            outcome.problems.append(f"undo: exit {undone.returncode}: {undone.stdout}")
        if digest(target.parents[1]) != planted:
            outcome.problems.append("undo did not bring back what was")
        if any(temporary.iterdir()):
            outcome.problems.append("something stays in the folder for temporary files")
        shutil.rmtree(temporary)
        return outcome

    def _judge(self, case: Case, outcome: Outcome, target: Path, rows: dict[str, str]) -> None:
        expected = MACHINES[case.cuda].expected[case.python]
        if outcome.release != expected:
            outcome.problems.append(f"expected {expected}")
        accepted = {"no-gpu"} if case.cuda == "13" else {"no-driver", "no-gpu"}
        if outcome.verdict not in accepted:
            outcome.problems.append(f"verdict {outcome.verdict}")
        listed = self.uv("pip", "list", "--format", "json", "--python", target)
        installed = {row["name"]: row["version"] for row in json.loads(listed)}
        stand_in = next(target.parents[1].rglob("ORTGPU_FIX_PROVIDED"), None)
        if "onnxruntime" in installed and stand_in is None:
            outcome.problems.append("the CPU build is still there")
        differing = {
            name: installed.get(name)
            for name, version in rows.items()
            if installed.get(name) != version
        }
        if differing:
            outcome.problems.append(f"installed otherwise: {differing}")
        prefix = f"nvidia-cudnn-cu{case.cuda}"
        if not any(name.startswith(prefix) for name in installed):
            outcome.problems.append(f"{prefix} is missing")
        if case.cuda == "11" and not installed["numpy"].startswith("1."):
            outcome.problems.append(f"numpy {installed['numpy']}")


def digest(folder: Path) -> str:
    """Return a hash over all files, modes and links of `folder`, compiled ones and ours apart."""
    summed = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".pyc" or {"__pycache__", ".ortgpu-fix"} & set(path.parts):
            continue
        info = path.lstat()
        kind = str(path.readlink()) if path.is_symlink() else "folder"
        if path.is_file() and not path.is_symlink():
            kind = f"{info.st_size} {info.st_mtime_ns}"
        summed.update(f"{path} {info.st_mode} {kind}\n".encode())
    return summed.hexdigest()


def main() -> int:
    """Run the cases, print a line for each, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="SUBSTRING")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (2)")
    parser.add_argument("--rest", action="store_true", help="leave out what passed today")
    arguments = parser.parse_args()
    names = [case.name for case in cases()]
    folder = arguments.work or Path(tempfile.mkdtemp(prefix="prove-apply-"))
    shop = Workshop(folder)
    shop.environ["UV_CACHE_DIR"] = str(folder / "cache")
    chosen = [
        case
        for case in cases()
        if not arguments.only or any(part in case.name for part in arguments.only)
    ]
    if arguments.rest:
        passed = {name for name, row in recorded("apply").items() if not row["problems"]}
        chosen = [case for case in chosen if case.name not in passed]
    found = {case.python: find_python(case.python) for case in chosen}
    pythons = {version: path for version, path in found.items() if path is not None}
    skipped = [f"{case.name}: not on this machine" for case in chosen if case.python not in pythons]
    present = [case for case in chosen if case.python in pythons]
    writing = threading.Lock()

    def work(case: Case) -> Outcome:
        outcome = shop.mend(case, pythons[case.python])
        print(
            f"{outcome.name:26} {outcome.release:8} {outcome.verdict:10} {outcome.seconds:6} s "
            f"{'; '.join(outcome.problems) or 'ok'}",
            flush=True,
        )
        if not arguments.keep:
            shutil.rmtree(folder / case.name, ignore_errors=True)
        with writing:
            record("apply", asdict(outcome), names, cases=len(names))
        return outcome

    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(work, present))
    failed = [outcome for outcome in outcomes if outcome.problems]
    print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    if not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
