"""Storm an environment: signals in bursts, kills, full disks, and a user who does things meanwhile.

Real uv on stand-in wheels, in an environment on a small filesystem of its own. Each
round applies, and is met by one or two faults: a burst of signals (TERM, HUP, INT, KILL, STOP and
CONT) during the apply, the recovery or the undo; no block or no inode left from some instant on in
one of the three; a second ortgpu-fix or another installer at the same time; or, before the
recovery, a user who installs or upgrades with pip or uv (another build, another release, the same
release once more), deletes a folder, edits a file, writes one of fewer bytes or with the name of a
temporary one, or removes what was set aside.

Each round must end whole, that is exactly as before or as planned, or be refused with a list of
what differs and nothing moved. What a user wrote is never lost without a word. Exit codes are those
of the contract.

    python scripts/prove/storm.py --count 1242

The counts go into scripts/prove/results/; the exit code is 1 where a round ended otherwise.
Mounting needs root; without it no disk fills.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.apply import rollback, staging
from ortgpu_fix.apply.files_to_remove import distributions_here
from ortgpu_fix.apply.history import discard_undo_data, recorded_changes
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.utils.signals import signals_as_interrupt, signals_held
from prove.outcomes import write
from prove.transaction import Child
from support.local_index import LocalIndex
from support.standin_changes import (
    COMES,
    HAD,
    Case,
    apply_standins,
    compare,
    file_of,
    say_when_it_begins,
)
from support.standin_wheels import (
    clean_environment,
    find_uv,
    make_set,
    make_venv,
    state_of,
    without_notes,
)

BURST = ("TERM", "HUP", "INT", "KILL", "STOP")
"""After STOP comes CONT."""
USER = (
    *("uv-other", "uv-cpu", "uv-same", "uv-bystander", "pip-other", "pip-cpu", "pip-same"),
    *("delete", "append", "shorten", "notes", "delete-aside"),
)
"""What a user does: `other` upgrades, `cpu` installs the other build, `same` the same release."""
DISK = tuple(
    f"{kind} during {step}" for kind in ("disk", "inodes") for step in ("apply", "recovery", "undo")
)
TOGETHER = ("second-run", "second-installer", "second-installer-same")
PAUSE = 3.5
"""Seconds after which a user installs the same release once more; the environment is as old."""
REFUSED = {"undo-changed", "undo-impossible"}
Snapshot = Mapping[str, str]


def told(act: Callable[[], object], say: Callable[[str], None]) -> None:
    """Do `act` as the command line would, and `say` exit code and error code."""
    name, code, told_more = "", 0, ""
    with signals_as_interrupt():
        try:
            act()
        except Error as error:
            with signals_held():
                name, code = error.code, load_texts("en").error(error).exit_code
                told_more = str(error)
        except KeyboardInterrupt:
            code = 130
        except BaseException:  # noqa: BLE001 - that there is none is what is proved
            traceback.print_exc()
            name, code = "defect", 99
        with signals_held():
            say(json.dumps({"code": code, "error": name, "values": told_more}))
            os._exit(0)  # before the handlers are exchanged


class Ended:
    """How a process ended: its exit code, or the signal that ended it as a negative number."""

    def __init__(self, child: Child) -> None:
        lines, status = child.end()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        row: dict[str, Any] = rows[-1] if rows and status == 0 else {}
        self.code = int(row.get("code", status))
        self.error = str(row.get("error", ""))
        self.values = str(row.get("values", ""))


class Storm:
    """One environment, and one fault after the other."""

    def __init__(self, case: Case, disk: Path | None, seed: int) -> None:
        self.case, self.disk = case, disk
        self.chance = random.Random(seed)  # noqa: S311 - nobody guesses it
        self.wheels = Path(case.wheels)
        self.venv = make_venv(case.venv.folder, pip=False)
        self.venv.install(*(self.wheels / file_of(name) for name in HAD))
        (self.venv.folder / ".lock").unlink(missing_ok=True)
        self.target = self.venv.target()
        self.site = Site.of(self.target)
        self.template = Path(case.folder).parents[1] / "template"
        shutil.copytree(self.venv.folder, self.template, symlinks=True)
        self.before = state_of(self.venv.folder)
        time.sleep(PAUSE)
        self.counts: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.undo_seconds = 0.0
        child = Child(self.apply, case)
        child.said.readline()
        began, ended = time.monotonic(), Ended(child)
        assert ended.code == 0, ended.error  # noqa: S101
        self.seconds = time.monotonic() - began
        self.after = self.as_planned()
        self.reset()

    def as_planned(self) -> Snapshot:
        """Return the environment without what differs from one installation to the next."""
        return without_notes(self.venv.folder)

    def reset(self) -> None:
        """Make the environment anew, and uv's cache: what a user edits may be a link into it."""
        self.release()
        shutil.rmtree(Path(self.case.folder, "cache-of-uv"), ignore_errors=True)
        shutil.rmtree(self.venv.folder)
        shutil.copytree(self.template, self.venv.folder, symlinks=True)

    def apply(self, _: Case, say: Callable[[str], None]) -> None:
        """Apply, and `say` when the environment is about to be changed."""
        say_when_it_begins(say)
        vars(staging)["_need"] = lambda *_: None  # the disk is small, and that is the point

        told(lambda: apply_standins(self.case), say)

    def apply_too(self, _: Case, say: Callable[[str], None]) -> None:
        """Apply as a second run does: it looks first, and has nothing to do after the other one."""

        def apply_what_lacks() -> None:
            target = self.venv.target()
            if not {f"{each.key} {each.version}" for each in target.installed}.issuperset(COMES):
                apply_standins(self.case, target=target)

        told(apply_what_lacks, say)

    def recover(self, _: Case, say: Callable[[str], None]) -> None:
        """Put back what was interrupted."""
        told(lambda: rollback.recover_interrupted(self.site), say)

    def undo(self, _: Case, say: Callable[[str], None]) -> None:
        """Undo the last change."""
        told(self.undo_now, say)

    def undo_now(self, *, allow_changed: bool = False) -> None:
        """Undo in this process."""
        installed = distributions_here(self.venv.target(), self.site)
        rollback.undo_last(self.site, installed, allow_changed=allow_changed)

    def burst(self, child: Child, seconds: float, kinds: tuple[str, ...], where: str) -> None:
        """Send signals to `child`, the first after a part of `seconds`, more soon after it."""
        time.sleep(self.chance.random() * seconds)
        for kind in kinds:
            self.counts[kind] += 1
            self.counts[f"during {where}"] += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, getattr(signal, f"SIG{kind}"))
                if kind == "STOP":
                    time.sleep(self.chance.random() * 0.05)
                    os.kill(child.pid, signal.SIGCONT)
            if self.chance.random() < 0.7:  # noqa: PLR2004
                time.sleep(self.chance.random() ** 3 * 0.05)

    def signals(self) -> tuple[str, ...]:
        """Return one to five signals."""
        return tuple(self.chance.choice(BURST) for _ in range(self.chance.randint(1, 5)))

    def fill(self, fault: str) -> None:
        """Leave no block, or no inode, in the filesystem of the environment."""
        assert self.disk is not None  # noqa: S101
        kind = fault.partition(" ")[0]
        self.counts[kind] += 1
        self.counts[fault] += 1
        with contextlib.suppress(OSError):
            if kind == "disk":
                with (self.disk / "ballast").open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 14))
            else:
                (self.disk / "ballasts").mkdir()
                for number in range(1 << 20):
                    (self.disk / "ballasts" / str(number)).touch()

    def release(self) -> None:
        """Give the filesystem its room back."""
        if self.disk is not None:
            (self.disk / "ballast").unlink(missing_ok=True)
            shutil.rmtree(self.disk / "ballasts", ignore_errors=True)

    def user(self, kind: str) -> None:
        """Do what a user does, who need not succeed."""
        self.counts[f"user {kind}"] += 1
        tool, _, what = kind.partition("-")
        if tool not in {"uv", "pip"}:
            self.edit(kind)
            return
        name = {
            "other": "onnxruntime-gpu 1.31.1",
            "cpu": "onnxruntime 1.22.1",
            "same": COMES[0],
        }.get(what, "bystander 1.0")
        if what == "same" and self.is_open():
            time.sleep(PAUSE)  # only the time tells whose those files are
        self.install(tool, self.wheels / file_of(name), again=what == "same")

    def edit(self, kind: str) -> None:
        """Do to files what a user does."""
        shared = self.venv.site / "onnxruntime"
        if kind == "delete":
            shutil.rmtree(shared, ignore_errors=True)
        elif kind == "delete-aside":
            for folder in self.site.state.glob("*/aside"):
                shutil.rmtree(folder)
        elif kind == "notes":
            for folder in filter(Path.is_dir, (self.venv.site, shared)):
                (folder / "notes.tmp").write_text("a user's own")
        else:
            files = [path for path in shared.rglob("*.py") if path.is_file()]
            for path in self.chance.sample(files, min(1, len(files))):
                with path.open("a" if kind == "append" else "w") as file:
                    file.write("# edited by a user" if kind == "append" else "#")

    def is_open(self) -> bool:
        """Tell whether a change was killed before its end."""
        return any(change.state == "open" for change in recorded_changes(self.site))

    def is_committed(self) -> bool:
        """Tell whether a change came to its end, and was not undone."""
        return any(change.state == "committed" for change in recorded_changes(self.site))

    def install(self, tool: str, wheel: Path, *, again: bool = False) -> None:
        """Install a wheel with pip or uv, if they can."""
        python, flags = str(self.venv.python), ["--no-deps", "--no-index", "--quiet"]
        flags += ["--force-reinstall"] if again else []
        argv = [sys.executable, "-m", "pip", "--python", python, "install", *flags]
        if tool == "uv":
            argv = [find_uv(), "pip", "install", *flags, "--offline", "--no-config"]
            argv += ["--link-mode", "copy", "--python", python]
        subprocess.run(
            [*argv, str(wheel)], check=False, capture_output=True, env=clean_environment()
        )

    def round(self, fault: str) -> str:
        """Let one apply meet `fault`, and return how that ended."""
        child = Child(self.apply, self.case)
        child.said.readline()  # "now", or the end
        if fault.endswith(" during apply"):
            time.sleep(self.chance.random() * self.seconds)
            self.fill(fault)
        elif fault in TOGETHER:
            time.sleep(self.chance.random() * self.seconds)
            self.together(fault)
        elif fault in USER:
            kinds = self.chance.choice([("KILL",), self.signals(), ()])
            self.burst(child, self.seconds, kinds, "apply")
        elif fault.endswith("recovery"):
            self.burst(child, self.seconds, ("KILL",), "apply")
        elif not fault.endswith("undo"):
            self.burst(child, self.seconds, self.signals(), "apply")
        ended = Ended(child)
        assert ended.code != 99, fault  # noqa: S101, PLR2004
        now = state_of(self.venv.folder)
        if fault != "second-installer-same":
            self.check_code(ended, now)
        self.release()
        if fault == "recovery":
            child = Child(self.recover, self.case)
            self.burst(child, 0.1, self.signals(), "recovery")
            assert Ended(child).code != 99  # noqa: S101, PLR2004
        elif fault.endswith(" during recovery"):
            child = Child(self.recover, self.case)
            time.sleep(self.chance.random() * 0.1)
            self.fill(fault)
            self.full(Ended(child))
        user = fault if fault in USER else ""
        was = state_of(self.venv.folder)
        if user:
            self.user(user)
        return self.settle(was, user or fault)

    def together(self, fault: str) -> None:
        """Let another tool work on the environment at the same time."""
        self.counts[fault] += 1
        if fault == "second-run":
            ended = Ended(Child(self.apply_too, self.case))
            # The first may have come to its end by then: the second finds all as it should be.
            assert ended.code in {0, 2, 4}, ended.error  # noqa: S101
        else:
            same = fault == "second-installer-same"
            name = "onnxruntime-gpu 1.31.1" if same else "bystander 1.0"
            self.install("uv", self.wheels / file_of(name))

    def check_code(self, ended: Ended, now: Snapshot) -> None:
        """Hold the exit code against the environment."""
        self.ends[f"exit {ended.code}{' ' if ended.error else ''}{ended.error}"] += 1
        if ended.code in {2, 3, 4, 7}:
            compare(self.before, now, beside=True)
        assert ended.code in {0, 2, 4, 7, 130} or ended.code < 0, ended.values  # noqa: S101

    def settle(self, was: Snapshot, fault: str) -> str:
        """Recover, undo what was committed, and hold the environment against what it should be."""
        now = state_of(self.venv.folder)
        mine = {path for path, what in now.items() if was.get(path) != what}
        try:
            end = "put back" if rollback.recover_interrupted(self.site) else "before"
            if self.is_committed():
                end = self.undo_all(fault)
        except Error as error:
            return self.refused(error, now, fault)
        found = state_of(self.venv.folder)
        if end == "before":  # what a user deleted in an environment without a change is gone
            compare(now, found)
        for path in mine:
            kept = found.get(path) == now[path] or now[path].endswith("folder")
            assert kept or path == ".lock", f"{path} of a user is lost"  # noqa: S101
        if fault != "second-installer-same" and (end != "before" or fault not in USER):
            compare(self.before, found, beside=fault in {*USER, *TOGETHER}, but=mine)
        if mine or fault in {*USER, *TOGETHER}:
            self.reset()
        return end

    def full(self, ended: Ended) -> None:
        """Hold what a recovery or an undo on a full disk came to against what it may."""
        self.ends[f"full, exit {ended.code} {ended.error}".rstrip()] += 1
        assert ended.code in {0, 5, 7}, ended.values  # noqa: S101
        if ended.code == 7:  # noqa: PLR2004 - nothing was changed
            compare(self.after, self.as_planned())
        self.release()

    def undo_all(self, fault: str) -> str:
        """Undo, or let an undo be met by signals, or by a full disk, first."""
        if fault.endswith("undo"):
            child = Child(self.undo, self.case)
            if fault == "undo":
                self.burst(child, 0.2, self.signals(), "undo")
                assert Ended(child).code in {0, 130, -2, -9, -15, -1}  # noqa: S101
            else:
                time.sleep(self.chance.random() * 0.2)
                self.fill(fault)
                self.full(Ended(child))
            rollback.recover_interrupted(self.site)
            if not self.is_committed():
                return "undone"
        elif fault not in {*USER, *TOGETHER}:
            compare(self.after, self.as_planned())
        began = time.monotonic()
        self.undo_now()
        self.undo_seconds = max(self.undo_seconds, time.monotonic() - began)
        return "after, undone"

    def refused(self, error: Error, now: Snapshot, fault: str) -> str:
        """Nothing was moved, the differences are named, and what the user chooses is done."""
        assert error.code in REFUSED, error  # noqa: S101
        assert fault in {*USER, *TOGETHER}, f"{fault}: {error}"  # noqa: S101
        assert error.values.get("names") or error.values.get("paths")  # noqa: S101
        compare(now, state_of(self.venv.folder))
        if error.code == "undo-changed" and self.chance.random() < 0.5:  # noqa: PLR2004
            if not rollback.recover_interrupted(self.site, allow_changed=True):
                self.undo_now(allow_changed=True)
            if fault != "second-installer-same":
                compare(self.before, state_of(self.venv.folder), beside=True)
            end = "refused, then put back"
        else:
            discard_undo_data(self.site, allow_changed=True)
            compare(now, state_of(self.venv.folder))
            end = "refused, then kept"
        self.reset()
        return end


@contextlib.contextmanager
def small_disk(folder: Path, kind: str, inodes: int) -> Iterator[Path | None]:
    """Mount a filesystem of 96 MB and `inodes` at `folder`; None where that is not possible."""
    folder.mkdir()
    if kind == "ext4" and shutil.which("mkfs.ext4"):
        image = folder.with_name("image")
        with image.open("wb") as file:
            file.truncate(96 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-N", str(inodes), image], check=True)
        argv = ["mount", "-o", "loop", str(image), str(folder)]
    else:
        options = f"size=96m,nr_inodes={inodes}"
        argv = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(argv, check=False, capture_output=True)
    except OSError:
        yield None
        return
    if done.returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def faults(count: int, seed: int, *, disk: bool) -> list[str]:
    """Return `count` faults; a sixty-ninth part is the least that one of them has."""
    kinds = [*(DISK if disk else ()), *[*USER, *TOGETHER] * 3]
    kinds += ["recovery", "undo", "signals"] * 6
    chance = random.Random(seed)  # noqa: S311 - nobody guesses it
    rows = kinds * (count // len(kinds)) + chance.sample(kinds, count % len(kinds))
    chance.shuffle(rows)
    return rows


def prove(count: int, seed: int, *, filesystem: str = "tmpfs", say: bool = True) -> dict[str, Any]:
    """Storm `count` times; return the counts, and what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_set(folder / "wheels")
        with (
            LocalIndex(folder / "wheels") as server,
            small_disk(folder / "disk", filesystem, 1500) as disk,
        ):
            inside = folder / "disk" / "environments"
            inside.mkdir()
            case = Case(folder=str(inside), wheels=str(folder / "wheels"), url=server.url)
            storm = Storm(replace(case), disk, seed)
            began = time.monotonic()
            rounds: Counter[str] = Counter()
            wrong: list[dict[str, Any]] = []
            for number, fault in enumerate(faults(count, seed, disk=disk is not None), start=1):
                try:
                    end = storm.round(fault)
                except AssertionError as error:
                    end = "wrong"
                    wrong.append({"round": number, "fault": fault, "said": str(error)[:800]})
                    storm.reset()
                rounds[f"{fault}: {end}"] += 1
                if say:
                    print(f"{number} of {count}: {fault}, then {end}", flush=True)
            return {
                "rounds": count,
                "whole_or_refused": sum(rounds.values()) - len(wrong),
                "wrong": wrong,
                "filesystem": filesystem if disk is not None else None,
                "faults": dict(sorted(storm.counts.items())),
                "exits": dict(sorted(storm.ends.items())),
                "ends": dict(sorted(rounds.items())),
                "undo_seconds": round(storm.undo_seconds, 3),
                "seconds": round(time.monotonic() - began),
                "seed": seed,
            }


def main() -> int:
    """Run as the header says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1242)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="parts at a time, of two (1)")
    given = parser.parse_args()
    parts = [("tmpfs", 0.5), ("ext4", 0.5)]
    with ProcessPoolExecutor(given.jobs) as pool:
        begun = [
            pool.submit(
                prove,
                int(given.count * share),
                given.seed + at,
                filesystem=filesystem,
            )
            for at, (filesystem, share) in enumerate(parts)
        ]
        rows = [each.result() for each in begun]
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["faults"])
    document = {
        "rounds": sum(row["rounds"] for row in rows),
        "whole_or_refused": sum(row["whole_or_refused"] for row in rows),
        "faults": dict(sorted(total.items())),
        "parts": rows,
    }
    write("storm", document)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
