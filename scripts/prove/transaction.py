"""Kill an apply, again and again, and see that the environment is whole every time.

Real uv on stand-in wheels from a local index, or with `--real DIR` the whole command
line on the real wheels, downloaded once into DIR. Each round begins an apply in a process group of
its own and kills that group: at a step of the transaction (before or after a line of the journal,
a rename, the removal of a folder), or at a random instant. Often the recovery is killed as well.
Afterwards a run of recovery must leave the environment exactly as it was, or, where the change
had been committed, as planned, and undo must then bring back what was.

    python scripts/prove/transaction.py --count 1000 --jobs 2
    python scripts/prove/transaction.py --count 20 --real /somewhere/wheels

The counts go into scripts/prove/results/.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix import __main__
from ortgpu_fix.apply import history, rollback
from ortgpu_fix.apply.apply_plan import Applied
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.cli.commands import apply as changing
from ortgpu_fix.facts.target import Target
from ortgpu_fix.utils.process import run
from ortgpu_fix.uv.program import Uv
from ortgpu_fix.verify import runner as verify
from ortgpu_fix.verify import verification
from prove.outcomes import known, write
from support.local_index import LocalIndex
from support.standin_changes import (
    HAD,
    Case,
    Steps,
    apply_standins,
    compare,
    file_of,
    say_when_it_begins,
    uv_of,
)
from support.standin_wheels import (
    clean_environment,
    find_uv,
    make_set,
    make_venv,
    state_of,
    without_notes,
)

REAL_HAD = ("onnxruntime==1.22.1",)
"""The CPU build, where the real wheels are to come."""


def real_argv(case: Case) -> list[str]:
    """Return the command line that applies the real wheels for the example machine."""
    argv = ["--facts", "example", "--apply", "--yes", "--python", str(case.venv.python)]
    return [*argv, "--offline", "--find-links", case.wheels]


def about(case: Case) -> str:
    """Return what a process that works on `case` is told."""
    return json.dumps(asdict(case))


def apply_case(case: Case, say: Callable[[str], None]) -> Applied | None:
    """Apply, and `say` when the environment is about to be changed, and at the end the steps.

    Returns what was done where the stand-ins are applied.
    """
    steps = Steps(case.kill_at)
    steps.hook()
    say_when_it_begins(say)
    applied = None
    if case.url:
        applied = apply_standins(case)
    else:

        def chosen(*_: object) -> Uv:
            return uv_of(case)

        vars(changing)["find_uv"] = chosen
        code = __main__.main(real_argv(case))
        assert code == 0, f"exit code {code}"  # noqa: S101
    say(json.dumps(steps.names))
    return applied


def recover_case(case: Case, say: Callable[[str], None]) -> None:
    """Recover."""
    steps = Steps(case.kill_at)
    steps.hook()
    rollback.recover_interrupted(Site.of(case.venv.target()))
    say(json.dumps(steps.names))


class Child:
    """A fork of this process, in a process group of its own, that works on a case."""

    def __init__(self, work: Callable[[Case, Callable[[str], None]], object], case: Case) -> None:
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.close(read)
            code = 1
            try:
                with open(os.devnull, "w") as nowhere:  # noqa: PTH123
                    os.dup2(nowhere.fileno(), 1)
                with os.fdopen(write, "w", buffering=1) as pipe:
                    work(case, lambda line: print(line, file=pipe))
                code = 0
            except BaseException:  # noqa: BLE001 - all that the parent is told is that it failed
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(write)
        self.said = os.fdopen(read)

    def end(self) -> tuple[list[str], int]:
        """Wait for the end; return what else was said, and the status."""
        with self.said:
            lines = self.said.read().splitlines()
        return lines, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Proof:
    """An environment that is changed and killed in, round after round."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.venv = make_venv(case.venv.folder, pip=False)
        if case.url:
            self.venv.install(*(Path(case.wheels, file_of(name)) for name in HAD))
        else:
            self.venv.install(*REAL_HAD, links=case.wheels)
        (self.venv.folder / ".lock").unlink(missing_ok=True)
        self.target: Target = self.venv.target()
        self.site = Site.of(self.target)
        self.before = state_of(self.venv.folder)
        child = Child(apply_case, case)
        child.said.readline()
        began, (lines, code) = time.monotonic(), child.end()
        assert code == 0, "the apply that nobody disturbs failed"  # noqa: S101
        self.seconds = time.monotonic() - began
        """How long the environment is being changed."""
        self.steps: list[str] = json.loads(lines[-1])
        self.after = without_notes(self.venv.folder)
        self.undo_seconds = 0.0
        """How long it took to put everything back, the longest of all."""
        self.recovery_seconds = 0.0
        """How long a recovery took until everything was back, the longest of all."""
        self.undo()

    def undo(self) -> None:
        """Take the change back; the environment must then be as it was."""
        began = time.monotonic()

        def restored() -> None:
            self.undo_seconds = max(self.undo_seconds, time.monotonic() - began)

        installed = [(one.key, one.version) for one in self.venv.target().installed]
        rollback.undo_last(self.site, installed, restored)
        compare(self.before, state_of(self.venv.folder))

    def round(self, *, step: int = 0, moment: float = 0.0, again: int = 0) -> str:
        """Kill one apply and return how it ended: `before` or `after`.

        At the step number `step`, or `moment` seconds after the environment was begun to be
        changed. With `again` the recovery is killed at that step of its own first.
        """
        child = Child(apply_case, replace(self.case, kill_at=step))
        if not step:
            child.said.readline()
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError):  # it was faster
                os.killpg(child.pid, signal.SIGKILL)
        assert child.end()[1] in {0, -signal.SIGKILL}, "it failed of itself"  # noqa: S101
        if again:
            code = Child(recover_case, replace(self.case, kill_at=again)).end()[1]
            assert code in {0, -signal.SIGKILL}, "the recovery failed of itself"  # noqa: S101
        began = time.monotonic()

        def restored() -> None:
            self.recovery_seconds = max(self.recovery_seconds, time.monotonic() - began)

        rollback.recover_interrupted(self.site, restored)
        if not history.recorded_changes(self.site):
            compare(self.before, state_of(self.venv.folder))
            return "before"
        compare(self.after, without_notes(self.venv.folder))
        if not self.case.url:
            self.verify()
        self.undo()
        return "after"

    def verify(self) -> None:
        """Run the real check; without a GPU it can say no more than that all libraries load."""
        found = verify.verify(self.target.executable, driver=None, runner=run, environ=os.environ)
        assert verification.verification_exit_code(found, elsewhere=True) == 0, found  # noqa: S101


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One kill; travels as JSON."""

    kind: str
    """`step` or `instant`."""
    share: float
    """Which of the steps, or when: from 0, the first, to 1, the last."""
    again: int
    """At which step of its own the recovery is killed first; 0: not at all."""


def rounds(count: int, seed: int) -> list[Round]:
    """Return `count` kills: half of them at steps that are spread evenly, half at any instant."""
    chance = random.Random(seed)  # noqa: S311 - nobody guesses it
    each = -(-count // 2)
    return [
        Round(
            kind=kind,
            share=number / each if kind == "step" else chance.random(),
            again=chance.randint(1, 40) if chance.random() < 1 / 3 else 0,
        )
        for number in range(each)
        for kind in ("step", "instant")
    ][:count]


def work(case: Case, todo: list[Round]) -> None:
    """Do the rounds one after the other, and print how each ended as JSON."""
    proof = Proof(case)
    for one in todo:
        if one.kind == "step":
            step = int(one.share * len(proof.steps)) + 1
            end, what = proof.round(step=step, again=one.again), proof.steps[step - 1]
        else:
            moment = one.share * proof.seconds
            end, what = proof.round(moment=moment, again=one.again), f"at {moment:.3f} s"
        told = {"kind": one.kind, "again": bool(one.again), "what": what}
        seconds = {
            "undo_seconds": round(proof.undo_seconds, 3),
            "recovery_seconds": round(proof.recovery_seconds, 3),
            "steps": len(proof.steps),
        }
        print(json.dumps({**told, "end": end, **seconds}), flush=True)


def prove(
    count: int, seed: int, *, jobs: int = 1, real: Path | None = None
) -> list[dict[str, Any]]:
    """Kill `count` times altogether, `jobs` at a time, and return how each ended."""
    todo = rounds(count, seed)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, wheels = "", real
        if wheels is None:
            wheels = folder / "wheels"
            make_set(wheels)
            url = stack.enter_context(LocalIndex(wheels)).url
        else:
            fetch(wheels, folder)

        each = -(-count // jobs)

        def start(job: int) -> list[dict[str, Any]]:
            own = folder / f"job-{job}"
            own.mkdir()
            case = Case(folder=str(own), wheels=str(wheels), url=url)
            mine = todo[job * each : (job + 1) * each]
            told = json.dumps([asdict(case), [asdict(one) for one in mine]])
            return list(worker(told, count))

        with ThreadPoolExecutor(jobs) as pool:
            return [row for rows in pool.map(start, range(jobs)) for row in rows]


def worker(told: str, count: int) -> Iterator[dict[str, Any]]:
    """Start a process that does rounds; give what it says of each. Raises where one went wrong."""
    argv = [sys.executable, __file__, "work"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment()
    ) as process:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(told)
        process.stdin.close()
        for line in process.stdout:
            row = json.loads(line)
            print(f"of {count}: {row['what']}, then {row['end']}", flush=True)
            yield row
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)


def fetch(wheels: Path, folder: Path) -> None:
    """Bring the real wheels into the folder `wheels`, where they are not there yet."""
    wheels.mkdir(parents=True, exist_ok=True)
    venv = make_venv(folder / "empty", pip=False)
    argv = [sys.executable, "-m", "ortgpu_fix", "--facts", "example", "--json"]
    argv += ["--python", str(venv.python)]
    planned = subprocess.run(argv, check=False, capture_output=True, text=True)
    plan = json.loads(planned.stdout)
    wanted = [f"{row['name']}=={row['version']}" for row in plan["install"]]
    wanted += [*plan["requires"], *REAL_HAD]
    for names in (wanted[:-1], wanted[-1:]):
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"]
        subprocess.run([*argv, "--dest", str(wheels), *names], check=True)


def summary(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Count the ends: `step, then before`."""
    return Counter(f"{row['kind']}, then {row['end']}" for row in rows)


def record(rows: Sequence[Mapping[str, Any]], kind: str, seconds: float, seed: int) -> None:
    """Write the counts to today's file, beside those of the other kind of wheels."""
    counts = {
        "killed": len(rows),
        "whole": len(rows),
        "recovery_killed_too": sum(row["again"] for row in rows),
        "ends": dict(sorted(summary(rows).items())),
        "steps": max(row["steps"] for row in rows),
        "undo_seconds": max(row["undo_seconds"] for row in rows),
        "recovery_seconds": max(row["recovery_seconds"] for row in rows),
        "seconds": round(seconds),
        "seed": seed,
        "uv": uv_version(),
    }
    write("transaction", {**known("transaction"), kind: counts})


def uv_version() -> str:
    """Return the version of uv."""
    uv = subprocess.run([find_uv(), "--version"], check=True, capture_output=True, text=True)
    return uv.stdout.split()[1]


def main() -> None:
    """Run as the header says, or as a process that does rounds."""
    if sys.argv[1:2] == ["work"]:
        case, todo = json.load(sys.stdin)
        work(Case(**case), [Round(**one) for one in todo])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="kills at a time (1)")
    parser.add_argument("--real", type=Path, metavar="DIR", help="a folder for the real wheels")
    given = parser.parse_args()
    began = time.monotonic()
    rows = prove(given.count, given.seed, jobs=given.jobs, real=given.real)
    seconds = time.monotonic() - began
    print(f"killed {len(rows)} times in {seconds:.0f} s, whole every time: {dict(summary(rows))}")
    record(rows, "real" if given.real else "stand-ins", seconds, given.seed)


if __name__ == "__main__":
    main()
