"""Apply, kill and undo on stand-in wheels; run by a Windows Python.

    python.exe scripts/prove/windows_rounds.py --count 50 FOLDER

Each round makes an environment, begins an apply in a process of its own and
ends something with TerminateProcess: the tool at a step of its transaction or at a random instant,
one process of uv, or both at once; a kill counts where it hit what was alive. Two seconds
later no process that was not there before may be alive, the tool apart. Then recovery must have
everything as it was, or as planned where the change had been committed, and undo must give back
what was. There are three more rounds: nothing happens; two runs begin at once, of which one
must be refused by name; a file is opened by another program when it is about to be set aside, and
everything must be put back. One JSON object a round, and one at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import itertools
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Container, Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.apply import apply_plan, before_change
from ortgpu_fix.apply.files_to_remove import installed_in_site
from ortgpu_fix.apply.history import recorded_changes
from ortgpu_fix.apply.rollback import recover_interrupted, undo_last
from ortgpu_fix.apply.state_folder import Site
from support.local_index import LocalIndex
from support.standin_changes import COMES, HAD, Case, Steps, apply_standins, compare
from support.standin_wheels import make_set, make_venv, without_notes

KILLS = ("at a step", "at an instant", "uv", "uv and tool")
NONE, TWO, OPEN = "none", "two at once", "a file in use"
PATIENCE = 2.0
"""Seconds after which no process of uv may be alive."""
LONGEST = 120
"""Seconds after which an apply ends itself and says where it stood."""


def main() -> int:
    """Run the rounds, or be the process that is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5, help="the kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", metavar="CASE")
    parser.add_argument("--slowly", action="store_true")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.begin:
        if options.open:
            open_when_checked()
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        begin(Case(**json.loads(options.begin)), options.folder, slowly=options.slowly)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "wheels").mkdir(exist_ok=True)
    wheels = make_set(options.folder / "wheels")
    template = make_venv(options.folder / "template", pip=False)
    template.install(*(wheels[name] for name in HAD))
    (template.folder / ".lock").unlink(missing_ok=True)
    secrets = random.Random(options.seed)  # noqa: S311 - which round is which
    bad = kills = number = 0
    with LocalIndex(options.folder / "wheels") as index:
        for number, kind in enumerate(
            itertools.chain((NONE, TWO, OPEN), itertools.cycle(KILLS)), 1
        ):
            case = Case(
                folder=str(options.folder / "round"),
                wheels=str(options.folder / "wheels"),
                url=index.url,
                kill_at=secrets.randint(1, 60) if kind == "at a step" else 0,
            )
            told = one_round(options.folder, case, kind, secrets)
            bad += bool(told["problems"])
            kills += bool(told["killed"])
            print(json.dumps({"round": number, "kind": kind, **told}), flush=True)
            if kills >= options.count:
                break
    print(json.dumps({"rounds": number, "kills": kills, "bad": bad}), flush=True)
    return 1 if bad else 0


def one_round(folder: Path, case: Case, kind: str, secrets: random.Random) -> dict[str, object]:
    """Begin, kill, recover, undo; return what was seen."""
    venv = case.venv
    _remove(venv.folder)
    shutil.copytree(folder / "template", venv.folder)
    venv.site.joinpath("onnxruntime", "__init__.py").chmod(stat.S_IREAD)  # Windows keeps such files
    before = without_notes(venv.folder)
    problems: list[str] = []
    told: dict[str, object] = {"problems": problems}
    library = str(venv.site.resolve())
    scripts, prefix = str(venv.python.parent.resolve()), str(venv.folder.resolve())
    site = Site(purelib=library, platlib=library, scripts=scripts, prefix=prefix)
    there = _processes()
    words = [sys.executable, __file__, str(folder), "--begin", json.dumps(asdict(case))]
    more = {TWO: ["--slowly"], OPEN: ["--open"]}.get(kind, [])
    verifies, met = folder / "verifies", folder / "met"
    for note in (verifies, met):
        note.unlink(missing_ok=True)
    started = time.monotonic()
    process = subprocess.Popen(words + more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if kind == TWO:
        _wait(process, verifies)
        # Not slowly: were it let in, it would wait for itself.
        second = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=2 * LONGEST
        )
        met.touch()
        other = second.stderr[-300:]
        if second.returncode == 0 or "environment-locked" not in other:
            problems.append(f"the second run: exit {second.returncode}, {other}")
    told["killed"] = _kill(process, kind, site.state / "engine.lock", secrets)
    if told["killed"] and (alive := _left_after(PATIENCE, there.keys() | {process.pid})):
        problems.append(f"alive after {PATIENCE} s: {', '.join(sorted(alive.values()))}")
    said = process.communicate(timeout=2 * LONGEST)[0]
    told |= {"seconds": round(time.monotonic() - started, 1), "exit": process.returncode}
    if kind == OPEN and b"apply-failed" not in said:
        problems.append(f"exit {process.returncode}, {said.decode(errors='replace')[-300:]}")
    elif kind != OPEN and not told["killed"] and process.returncode != 0:
        problems.append(said.decode(errors="replace")[-500:])
    try:
        told["recovered"] = bool(recover_interrupted(site))
        told["committed"] = any(one.state == "committed" for one in recorded_changes(site))
        if told["committed"]:
            target = venv.target()
            lacking = {name.split()[0] for name in COMES} - {one.key for one in target.installed}
            problems += [f"not as planned: no {name}" for name in sorted(lacking)]
            undo_last(site, installed_in_site(target, site))
        compare(before, without_notes(venv.folder))
    except Exception as error:  # noqa: BLE001 - a problem like the others
        problems.append(repr(error))
    left = {entry.name for entry in site.state.iterdir()} if site.state.exists() else set()
    allowed = set() if told.get("committed") else {"lock", "stage", "engine.lock"}
    problems += [f"left: {name}" for name in sorted(left - allowed)]
    return told


def _wait(process: subprocess.Popen[bytes], path: Path) -> None:
    end = time.monotonic() + 2 * LONGEST
    while process.poll() is None and not path.exists():
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(process.args, 2 * LONGEST)
        time.sleep(0.01)


def _kill(
    process: subprocess.Popen[bytes], kind: str, lock: Path, secrets: random.Random
) -> list[str]:
    """End what this kind of round ends; return the names of what was alive."""
    if kind == "at a step":
        return ["tool"] if process.wait(2 * LONGEST) == signal.SIGTERM else []
    if kind == "at an instant":
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(secrets.uniform(0.3, 6.0))
            return []
        process.kill()
        return ["tool"]
    killed: list[str] = []
    if kind in KILLS:
        _wait(process, lock)
        time.sleep(secrets.uniform(0, 0.8))
        with contextlib.suppress(OSError, ValueError):
            family = _family(int(lock.read_text(encoding="ascii")))
            chosen = secrets.choice(sorted(family)) if family else 0
            if kind == "uv and tool":
                process.kill()
                killed.append("tool")
            os.kill(chosen, signal.SIGTERM)
            killed.append(family[chosen])
    if kind == "uv":
        process.wait(2 * LONGEST)  # it puts back what uv did
    return killed


def _left_after(seconds: float, others: Container[int]) -> dict[int, str]:
    """Return the processes besides `others` that are there in `seconds`, none where they end."""
    deadline = time.monotonic() + seconds
    while True:
        alive = {pid: name for pid, (_, name) in _processes().items() if pid not in others}
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.01)


def begin(case: Case, folder: Path, *, slowly: bool) -> None:
    """Apply, and end at the step of the case; `slowly`: when another run has met it."""

    def verify() -> tuple[bool, str]:
        (folder / "verifies").touch()
        while slowly and not (folder / "met").exists():
            time.sleep(0.05)
        return True, ""

    Steps(case.kill_at).hook()
    apply_standins(case, verify)


def open_when_checked() -> None:
    """Open a file that leaves, as another program would, when it was seen that none is open."""
    inner = before_change.check_files_movable

    def check(paths: Sequence[str]) -> None:
        inner(paths)
        os.open(paths[-1], os.O_RDONLY)  # which nobody can move then

    setattr(apply_plan, "check_files_movable", check)  # noqa: B010 - where it is called


def _remove(folder: Path) -> None:
    def again(remove: object, path: str, _error: object) -> None:
        Path(path).chmod(stat.S_IWRITE)
        remove(path)  # type: ignore[operator]

    if folder.exists():
        shutil.rmtree(folder, onerror=again)


class _Entry(ctypes.Structure):
    """PROCESSENTRY32 of tlhelp32.h."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("usage", ctypes.c_uint32),
        ("pid", ctypes.c_uint32),
        ("heap", ctypes.c_size_t),
        ("module", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("parent", ctypes.c_uint32),
        ("priority", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("file", ctypes.c_char * 260),
    )


def _processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the program of every process that runs a Python or uv."""
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    snapshot = ctypes.c_void_p(kernel.CreateToolhelp32Snapshot(2, 0))
    entry = _Entry(size=ctypes.sizeof(_Entry))
    found = {}
    more = kernel.Process32First(snapshot, ctypes.byref(entry))
    while more:
        name = entry.file.decode(errors="replace").lower()
        if name.startswith(("python", "uv")):
            found[entry.pid] = entry.parent, name
        more = kernel.Process32Next(snapshot, ctypes.byref(entry))
    kernel.CloseHandle(snapshot)
    return found


def _family(process: int) -> dict[int, str]:
    """Return `process`, the processes that it has started, those that they have, and so on."""
    there = _processes()
    found = {process: there[process][1]} if process in there else {}
    new = set(found)
    while new:
        new = {pid for pid, (parent, _) in there.items() if parent in new} - found.keys()
        found |= {pid: there[pid][1] for pid in new}
    return found


if __name__ == "__main__":
    sys.exit(main())
