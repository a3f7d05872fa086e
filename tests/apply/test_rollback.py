"""The way back, step by step and with everything that can get in its way."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from disk_steps import Steps, flushed

from ortgpu_fix.apply import environment_lock, history, rollback
from ortgpu_fix.apply import state_folder as state
from ortgpu_fix.apply.environment_lock import hold_environment_lock
from ortgpu_fix.apply.journal import Begin
from ortgpu_fix.apply.journaled_change import Incoming, JournaledChange
from ortgpu_fix.apply.rollback import recover_interrupted, undo_last
from ortgpu_fix.apply.state_folder import Site, prepare_state_folder
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import STATE_FOLDER
from ortgpu_fix.uv import guard
from support.standin_wheels import state_of

BEGIN = Begin(plan="new 1", removed=("old",), installed=(("new", "1"),), present=())


class World:
    """An environment of a few files, and a change of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.purelib = folder / "lib" / "site-packages"
        (folder / "bin").mkdir(parents=True)
        (self.purelib / "old" / "inner").mkdir(parents=True)
        (self.purelib / "old" / "inner").chmod(0o750)
        (self.purelib / "old" / "a.py").write_text("a = 1\n")
        (self.purelib / "old" / "inner" / "b.so").write_text("machine code")
        (self.purelib / "old" / "link").symlink_to("a.py")
        (folder / "bin" / "tool").write_text("#!/bin/sh\n")
        (folder / "bin" / "tool").chmod(0o755)
        self.site = Site(
            purelib=str(self.purelib),
            platlib=str(self.purelib),
            scripts=str(folder / "bin"),
            prefix=str(folder),
        )
        self.before = state_of(folder)

    def old(self) -> list[str]:
        inner = self.purelib / "old"
        paths = [inner / "a.py", inner / "inner" / "b.so", inner / "link", self.folder / "bin/tool"]
        return [str(path) for path in paths]

    def new(self) -> list[Path]:
        return [self.purelib / "old" / "a.py", self.purelib / "new" / "c.py"]

    def change(self, *, killed: bool = False) -> JournaledChange:
        """Set everything aside and let other files come, or some of them; not committed."""
        prepare_state_folder(self.site)
        change = JournaledChange(self.site)
        change.begin(BEGIN)
        change.back_up(self.old())
        assert not (self.purelib / "old").exists()
        info = self.purelib / "new-1.dist-info"
        files = [*self.new(), info / "METADATA"]
        incoming = []
        for number, path in enumerate(files):
            source = self.site.state / f"new-{number}"
            source.write_text("new")
            incoming.append(Incoming(str(path), str(source), hashlib.sha256(b"new").hexdigest()))
        change.place(incoming, [str(info)])
        cache = self.purelib / "new" / "__pycache__"
        cache.mkdir()
        (cache / "c.cpython-311.pyc").write_text("")
        for source in self.site.state.glob("new-*"):
            source.unlink()
        if killed:  # between a copy from another filesystem and its last step
            (info / "METADATA").rename(info / "METADATA.ortgpu-fix.tmp")
        return change

    def state(self) -> Mapping[str, str]:
        return state_of(self.folder)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "venv")


@pytest.mark.parametrize("killed", [False, True])
def test_back_from_half_way(world: World, *, killed: bool) -> None:
    world.change(killed=killed)

    seen: list[object] = []
    (found,) = recover_interrupted(world.site, lambda: seen.append(world.state()))

    assert seen == [world.before]
    assert (found.state, found.begin) == ("open", BEGIN)
    assert world.state() == world.before
    assert not world.site.state.exists()
    assert recover_interrupted(world.site) == ()


def test_back_from_a_good_end(world: World) -> None:
    world.change().commit()
    assert recover_interrupted(world.site) == ()
    with pytest.raises(Error, match="undo-changed"):
        undo_last(world.site, [("new", "2")])

    seen: list[object] = []
    assert undo_last(world.site, [("new", "1")], lambda: seen.append(world.state())) == 0

    assert seen == [world.before]
    assert world.state() == world.before
    assert not world.site.state.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_back_is_on_the_disk_before_the_journal_goes(world: World, steps: Steps) -> None:
    change = world.change()
    change.commit()
    steps.clear()

    undo_last(world.site, [("new", "1")])

    journal = str(change.folder / "journal")
    assert steps[0] == ("flush", journal)  # that the roll back begins
    last = max(at for at, (step, _) in enumerate(steps) if step == "move")
    folders = {str(Path(path).parent) for path in world.old()}
    assert flushed(steps[last:]) == {*folders, str(change.folder)}
    assert steps[-1] == ("flush", str(change.folder))  # that the journal is gone


@pytest.mark.parametrize("link", [False, True])
def test_a_folder_in_the_place_of_a_file_goes_where_that_is_allowed(
    world: World, *, link: bool
) -> None:
    world.change().commit()
    place = world.folder / "bin" / "tool"
    if link:
        place.symlink_to(world.folder)
    else:
        (place / "inner").mkdir(parents=True)

    with pytest.raises(Error, match="undo-changed"):
        undo_last(world.site, [("new", "1")])
    undo_last(world.site, [("new", "1")], allow_changed=True)

    assert world.state() == world.before


def test_a_folder_comes_back_itself_not_one_like_it(world: World) -> None:
    """Its owner and its access lists are those that it had, whoever rolls back."""
    folders = [world.purelib / "old", world.purelib / "old" / "inner"]
    before = [folder.stat().st_ino for folder in folders]

    world.change()
    recover_interrupted(world.site)

    assert [folder.stat().st_ino for folder in folders] == before


def test_a_file_that_is_gone_before_it_is_set_aside(world: World) -> None:
    prepare_state_folder(world.site)
    change = JournaledChange(world.site)
    change.begin(BEGIN)

    change.back_up([*world.old(), str(world.purelib / "old" / "sub" / "gone.py")])
    assert not (world.purelib / "old").exists()
    (found,) = recover_interrupted(world.site)

    assert found.state == "open"
    assert world.state() == world.before


def test_across_filesystems(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def across(source: str, goal: str) -> None:
        if os.path.dirname(source) != os.path.dirname(goal):  # noqa: PTH120
            raise OSError(errno.EXDEV, "Invalid cross-device link", source)
        replace(source, goal)

    monkeypatch.setattr(os, "replace", across)

    world.change()
    recover_interrupted(world.site)

    assert world.state() == world.before


def test_an_engine_that_does_not_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    change = world.change()
    before = world.state()

    def endless(_: Path) -> None:
        raise TimeoutError("process 7 does not end")

    monkeypatch.setattr(guard, "wait_for_engine", endless)
    with pytest.raises(Error) as caught:
        rollback.roll_back(world.site, change.folder)

    assert caught.value.code == "restore-failed"
    assert caught.value.values["reason"] == "process 7 does not end"
    assert world.state() == before


def test_a_journal_that_does_not_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is back, and yet a later run would take it for unfinished: that is said."""
    world.change()
    sync = state.sync_folder

    def failing(path: Path | str) -> None:
        if STATE_FOLDER in str(path):
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    monkeypatch.setattr(history, "sync_folder", failing)
    with pytest.raises(Error, match="restore-failed"):
        recover_interrupted(world.site)
    assert world.state() == world.before


def test_an_undo_that_cannot_even_be_noted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.change().commit()
    after = world.state()

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(rollback, "append", failing)
    with pytest.raises(Error) as caught:
        undo_last(world.site, [("new", "1")])

    assert caught.value.code == "disk-failed"
    assert world.state() == after


def test_the_state_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = str(tmp_path / "file")
    site = Site(purelib=file, platlib=file, scripts=file, prefix=str(tmp_path))

    with pytest.raises(Error, match="environment-read-only"):
        prepare_state_folder(site)
    with pytest.raises(Error, match="environment-read-only"), hold_environment_lock(site):
        pass


def test_scripts_that_cannot_be_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def failing(path: str, flags: int, *mode: int) -> int:
        if Path(path).name == "bin" or Path(path).parent.name == "bin":
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(Error) as caught:
        prepare_state_folder(world.site)

    assert caught.value.values["folder"] == str(world.folder / "bin")
    assert world.state() == world.before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the file of the lock")
def test_a_lock_that_was_tidied_away_in_between(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_state_folder(world.site)
    try_lock = environment_lock._try_lock
    left = [True]

    def tidied(descriptor: int) -> bool:
        if left:
            left.clear()
            (world.site.state / "lock").unlink()
        return try_lock(descriptor)

    monkeypatch.setattr(environment_lock, "_try_lock", tidied)
    with hold_environment_lock(world.site):
        assert (world.site.state / "lock").exists()
        with pytest.raises(Error, match="environment-locked"), hold_environment_lock(world.site):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_child_of_a_dead_holder_is_waited_for(world: World) -> None:
    """Killed between starting a program and its begin: the child had the lock a moment longer."""
    prepare_state_folder(world.site)
    holder = os.fork()
    if holder == 0:
        with hold_environment_lock(world.site):
            if os.fork() == 0:
                time.sleep(0.4)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(holder, 0)

    with hold_environment_lock(world.site):
        pass


def test_paths_on_another_drive_stay_absolute(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_drive(*_: str) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(os.path, "relpath", other_drive)

    assert world.site.relative("D:/x") == "D:/x"
