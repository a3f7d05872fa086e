"""Who holds the lock of an environment, what it says of itself, and what it leaves."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from ortgpu_fix.apply import environment_lock
from ortgpu_fix.apply.environment_lock import hold_environment_lock
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error


@pytest.fixture
def site(tmp_path: Path) -> Site:
    purelib = tmp_path / "lib" / "site-packages"
    purelib.mkdir(parents=True)
    folder = str(purelib)
    return Site(purelib=folder, platlib=folder, scripts=str(tmp_path / "bin"), prefix=str(tmp_path))


def test_a_holder_says_who_it_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without folders, and without what else was asked for: others may read it."""
    monkeypatch.setattr(sys, "argv", ["/home/me/bin/ortgpu-fix", "--apply", "--index", "secret"])
    site.state.mkdir()
    (site.state / "lock").write_text("what an earlier one wrote, which was longer " * 9)

    with hold_environment_lock(site):
        said = json.loads((site.state / "lock").read_text())

    assert said == {"pid": os.getpid(), "command": "ortgpu-fix --apply"}


def test_who_comes_second_is_told_at_once_who_is_first(site: Site) -> None:
    began = time.monotonic()
    with hold_environment_lock(site):
        with pytest.raises(Error) as caught, hold_environment_lock(site):
            pass
        assert (site.state / "lock").exists()

    assert caught.value.code == "environment-locked"
    assert caught.value.values["pid"] == os.getpid()
    assert str(caught.value.values["command"])
    assert time.monotonic() - began < environment_lock.PATIENCE


@pytest.mark.parametrize(
    "text",
    ["[1]", '{"pid": "no number"}', f'{{"pid": {10**20}}}'],
)
def test_a_lock_whose_holder_is_not_known_is_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """It died, and a child of it may have the lock for a moment."""
    monkeypatch.setattr(environment_lock, "PATIENCE", 0.05)
    with hold_environment_lock(site):
        (site.state / "lock").write_text(text)
        began = time.monotonic()
        with pytest.raises(Error) as caught, hold_environment_lock(site):
            pass

    assert time.monotonic() - began >= 0.05
    known = json.loads(text) if text.startswith('{"') else {}
    assert caught.value.values == {"pid": known.get("pid", "?"), "command": "?"}


def test_nothing_is_left_of_a_run_that_changed_nothing(site: Site) -> None:
    with hold_environment_lock(site):
        (site.state / "engine.lock").touch()
        (site.state / "stage" / "uv" / "compile" / "installed").mkdir(parents=True)
        (site.state / "stage" / "tree").mkdir()
        (site.state / "stage" / "tree" / "half.py").touch()

    assert not site.state.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="its lock is another")
def test_an_engine_that_just_ends_leaves_nothing_behind(site: Site) -> None:
    """Whoever started it was killed: what it still writes comes before all is removed."""
    import fcntl

    def end(engine: int) -> None:
        (site.stage / "tree").mkdir(parents=True)
        os.close(engine)

    with hold_environment_lock(site):
        engine = os.open(site.engine_lock, os.O_RDWR | os.O_CREAT)
        fcntl.flock(engine, fcntl.LOCK_EX)
        writing = threading.Timer(0.3, end, [engine])
        writing.start()
    writing.join()

    assert not site.state.exists()


def test_a_change_that_can_be_undone_stays(site: Site) -> None:
    with hold_environment_lock(site):
        (site.state / "1").mkdir()

    assert (site.state / "1").is_dir()
    with hold_environment_lock(site):  # whoever comes next gets it
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="its lock is another")
def test_a_process_without_an_input_lets_go_of_the_lock_as_well(site: Site) -> None:
    """A service may have closed it: the next file that it opens has the number 0."""
    kept = os.dup(0)
    os.close(0)
    try:
        with hold_environment_lock(site):
            os.fstat(0)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    finally:
        os.dup2(kept, 0)
        os.close(kept)
