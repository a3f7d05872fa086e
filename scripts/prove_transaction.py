"""Kill an apply, again and again, and see that the environment is whole every time.

Real uv and real pip on stand-in wheels from a local index. Each round begins an apply in a process
group of its own and kills that group: at a step of the transaction (before or after a line of the
journal, a rename, the removal of a folder), or at a random instant. Often the recovery is killed
as well. Afterwards a run of `recover` must leave the environment exactly as it was, or, where the
change had been committed, as planned, and `undo` must then bring back what was.

    python scripts/prove_transaction.py --count 1000
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
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_index import LocalIndex
from standins import Venv, as_plan, clean_environment, find_uv, make_set, make_venv, state_of

from ortgpu_fix import engine_guard, kept, restore, state, switch, transaction
from ortgpu_fix.apply import Allowed, apply
from ortgpu_fix.engine_pip import Pip
from ortgpu_fix.engine_uv import Uv
from ortgpu_fix.index import Index
from ortgpu_fix.run import run
from ortgpu_fix.sources import Sources
from ortgpu_fix.state import Site

HAD = ("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42", "nvidia-curand-cu12 12.9.2.10")
COMES = ("onnxruntime-gpu 1.26.0", "nvidia-cudnn-cu12 9.28.0.42", "nvidia-cublas-cu12 12.9.2.10")
GOES = ("onnxruntime", "nvidia-cudnn-cu13")


class Steps:
    """Counts the steps of a transaction, and kills this process group at one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self.kill_at = kill_at
        self.names: list[str] = []

    def tick(self, name: str) -> None:
        """Note a step."""
        self.count += 1
        self.names.append(name)
        if self.count == self.kill_at:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with a step before it and one after it."""

        def stepped(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            self.tick(f"before {name}")
            result = function(*args, **options)
            self.tick(f"after {name}")
            return result

        return stepped

    def hook(self) -> None:
        """Step at everything by which a transaction changes the disk."""
        append = self.around("journal", transaction.append)
        move = self.around("move", transaction.move)
        remove_tree = self.around("remove", state.remove_tree)
        retire = self.around("retire", kept.retire)
        for module in (transaction, restore, switch):
            vars(module)["append"] = append
        for module in (transaction, restore):
            vars(module)["move"] = move
        for module in (kept, switch):
            vars(module)["remove_tree"] = remove_tree
        for module in (kept, restore):
            vars(module)["retire"] = retire
        vars(os)["rmdir"] = self.around("rmdir", os.rmdir)
        vars(engine_guard)["wait"] = self.around("wait", engine_guard.wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a child needs to know; travels as JSON."""

    venv: str
    wheels: str
    url: str
    engine: str
    kill_at: int = 0


def child_apply(case: Case) -> None:
    """Apply, in a child; prints when the environment is about to be changed, and the steps."""
    venv = Venv(folder=Path(case.venv))
    target = venv.target()
    environ = clean_environment()
    pip = Pip(
        command=(target.executable, "-I", "-m", "pip"), version="0", environ=environ, runner=run
    )
    uv = Uv(program=find_uv(), version="0", environ=environ, runner=run)
    wheels = {path.name: path for path in Path(case.wheels).iterdir()}
    install = [wheels[file_of(name)] for name in COMES]

    def progress(code: str, /, **_: object) -> None:
        if code == "set-aside":
            print("now", flush=True)

    steps = Steps(case.kill_at)
    steps.hook()
    apply(
        as_plan(install, GOES),
        target,
        index=Index(Sources(index_url=case.url, origin="flag")),
        engine=uv if case.engine == "uv" else pip,
        verify=lambda: (True, ""),
        progress=progress,
        allowed=Allowed(conflicts=True),
    )
    print(json.dumps(steps.names), flush=True)


def child_recover(case: Case) -> None:
    """Recover, in a child."""
    site = Site.of(Venv(folder=Path(case.venv)).target())
    steps = Steps(case.kill_at)
    steps.hook()
    restore.recover(site)
    print(json.dumps(steps.names), flush=True)


def file_of(name: str) -> str:
    """Return the file name of a stand-in wheel."""
    return f"{name.replace('-', '_').replace(' ', '-')}-py3-none-any.whl"


def about(case: Case) -> str:
    """Return what a child is told."""
    return json.dumps({name: getattr(case, name) for name in Case.__slots__})


def start(mode: str, case: Case) -> subprocess.Popen[str]:
    """Start a child in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, __file__, mode, about(case)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


class Proof:
    """An environment that is changed and killed in, round after round."""

    def __init__(self, folder: Path, engine: str, wheels: dict[str, Path], url: str) -> None:
        self.engine = engine
        self.venv = make_venv(folder / f"venv-{engine}", pip=engine == "pip")
        self.venv.install(*(wheels[name] for name in HAD))
        (self.venv.folder / ".lock").unlink(missing_ok=True)
        self.site = Site.of(self.venv.target())
        self.before = state_of(self.venv.folder)
        self._options = {
            "venv": str(self.venv.folder),
            "wheels": str(next(iter(wheels.values())).parent),
            "url": url,
            "engine": engine,
        }
        child = start("apply", self.case())
        assert child.stdout is not None  # noqa: S101
        child.stdout.readline()
        began, printed = time.monotonic(), child.communicate()[0]
        self.seconds = time.monotonic() - began
        """How long an environment is being changed."""
        self.steps: list[str] = json.loads(printed)
        self.after = self.planned()
        self.undo()

    def case(self, kill_at: int = 0) -> Case:
        """Return what a child needs to know."""
        return Case(**self._options, kill_at=kill_at)

    def planned(self) -> dict[str, str]:
        """Return the state now, without what uv notes of the time when a wheel was written."""
        noted = ("uv_cache.json", "dist-info/RECORD")
        state_now = state_of(self.venv.folder, times=False)
        return {path: "" if path.endswith(noted) else what for path, what in state_now.items()}

    def undo(self) -> None:
        """Take the change back; the environment must then be as it was."""
        installed = [(one.key, one.version) for one in self.venv.target().installed]
        restore.undo(self.site, installed)
        self.compare(self.before, state_of(self.venv.folder))

    def compare(self, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
        """Raise AssertionError with the paths that differ."""
        keys = expected.keys() | found.keys()
        odd = {key: (expected.get(key), found.get(key)) for key in keys}
        odd = {key: both for key, both in odd.items() if both[0] != both[1]}
        assert not odd, json.dumps(odd, indent=1)[:2000]  # noqa: S101

    def round(self, *, step: int = 0, moment: float = 0.0, again: int = 0) -> str:
        """Kill one apply and return how it ended: `before` or `after`.

        At the step number `step`, or `moment` seconds after the environment was begun to be
        changed. With `again` the recovery is killed at that step of its own first.
        """
        child = start("apply", self.case(step))
        assert child.stdout is not None  # noqa: S101
        if not step:
            child.stdout.readline()
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError):  # it was faster
                os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        assert child.returncode in {0, -signal.SIGKILL}, "it failed of itself"  # noqa: S101
        if again:
            start("recover", self.case(again)).communicate()
        restore.recover(self.site)
        if not kept.changes(self.site):
            self.compare(self.before, state_of(self.venv.folder))
            return "before"
        self.compare(self.after, self.planned())
        self.undo()
        return "after"


def prove(count: int, engines: list[str], seed: int) -> Counter[str]:
    """Kill `count` times altogether and return how often each end was met."""
    random.seed(seed)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels = make_set(folder / "wheels")
        with LocalIndex(folder / "wheels") as index:
            proofs = [Proof(folder, engine, wheels, index.url) for engine in engines]
            for number in range(count):
                proof = proofs[number % len(proofs)]
                again = random.randint(1, 40) if random.random() < 1 / 3 else 0  # noqa: S311
                half = number // len(proofs)
                if half % 2:
                    stride = max(1, len(proof.steps) * 2 * len(proofs) // count)
                    step = half // 2 * stride % len(proof.steps) + 1
                    end, what = proof.round(step=step, again=again), proof.steps[step - 1]
                else:
                    moment = random.uniform(0, proof.seconds)  # noqa: S311
                    end, what = proof.round(moment=moment, again=again), f"{moment:.3f} s"
                ends[f"{proof.engine}, {end}"] += 1
                print(f"{number + 1}/{count} {proof.engine}: {what}, then {end}", flush=True)
    return ends


def main() -> None:
    """Run as the header says, or as a child."""
    if sys.argv[1:2] == ["apply"]:
        child_apply(Case(**json.loads(sys.argv[2])))
        return
    if sys.argv[1:2] == ["recover"]:
        child_recover(Case(**json.loads(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--engine", choices=["uv", "pip"], action="append")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.monotonic()
    ends = prove(arguments.count, arguments.engine or ["uv", "pip"], arguments.seed)
    total = sum(ends.values())
    print(
        f"killed {total} times in {time.monotonic() - began:.0f} s, whole every time: {dict(ends)}"
    )


if __name__ == "__main__":
    main()
