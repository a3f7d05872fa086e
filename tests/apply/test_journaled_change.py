"""A change step by step: what is in the journal, and what is where afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from disk_steps import Steps, flushed

from ortgpu_fix.apply import journaled_change
from ortgpu_fix.apply.journal import (
    Begin,
    Record,
    Written,
    decode,
)
from ortgpu_fix.apply.journaled_change import (
    Incoming,
    JournaledChange,
    move,
    sync_files,
)
from ortgpu_fix.apply.state_folder import Site

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of Unix")
BEGIN = Begin(plan="x", removed=(), installed=(), present=())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    purelib = tmp_path / "lib" / "site"
    purelib.mkdir(parents=True)
    (purelib / ".ortgpu-fix").mkdir()
    folder = str(purelib)
    return Site(purelib=folder, platlib=folder, scripts=str(tmp_path / "bin"), prefix=str(tmp_path))


@pytest.fixture
def change(site: Site) -> JournaledChange:
    made = JournaledChange(site)
    made.begin(BEGIN)
    return made


def put(site: Site, name: str, text: str = "x") -> str:
    path = Path(os.path.normpath(Path(site.purelib, name)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def records(change: JournaledChange) -> tuple[Record, ...]:
    return decode((change.folder / "journal").read_text("utf-8"))[1:]


def test_a_copy_with_another_time_is_recorded_once_more(
    site: Site, change: JournaledChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = put(site, ".ortgpu-fix/stage/1")

    def copy(one: str, other: str) -> None:
        move(one, other)
        os.utime(other, ns=(5, 5))

    monkeypatch.setattr("ortgpu_fix.apply.journaled_change.move", copy)
    change.place([Incoming(f"{site.purelib}/a.py", source, "")], [])

    *_, first, second = records(change)
    assert isinstance(first, Written)
    assert second == Written(seen=(("file", 1, 5),))
    assert first != second


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_every_step_is_on_the_disk_before_the_next(site: Site, steps: Steps) -> None:
    """What a power cut leaves is then always something that a roll back knows."""
    platlib = str(Path(site.prefix, "lib64", "site"))
    site = site._replace(platlib=platlib)
    gone, source = put(site, "a/b/one.py"), put(site, ".ortgpu-fix/stage/1")
    kept = str(Path(put(site, "a/other.py")).parent)
    change = JournaledChange(site)
    journal = str(change.folder / "journal")

    change.begin(BEGIN, 1)
    assert [*dict.fromkeys(path for _, path in steps)][-3:] == [
        journal,
        str(change.folder),
        str(site.state),
    ]
    assert flushed(steps) >= {str(change.folder / "reserve")}

    steps.clear()
    change.back_up([gone])
    moves = [at for at, (step, _) in enumerate(steps) if step == "move"]
    assert [steps[at][1] for at in moves] == [gone, f"{kept}/b"]
    assert steps[0] == ("flush", journal)
    assert flushed(steps[moves[0] : moves[1]]) == {journal}  # which names the folder, now
    assert flushed(steps[moves[1] :]) == {str(change.folder / "aside")}  # its own is gone

    steps.clear()
    Path(platlib).mkdir(parents=True)
    change.place([Incoming(f"{platlib}/new/inner/x.py", source, "")], [])
    at = steps.index(("move", source))
    assert flushed(steps[:at]) == {journal}
    assert flushed(steps[at:]) == {
        *(f"{platlib}/new/inner", f"{platlib}/new", platlib, site.purelib)
    }

    steps.clear()
    change.commit()
    assert flushed(steps) == {journal}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_all_files_that_come_are_flushed(site: Site, steps: Steps) -> None:
    paths = [put(site, f"{at}.py") for at in range(9)]

    sync_files(iter(paths))
    assert sorted(path for _, path in steps) == sorted(paths)

    with pytest.raises(FileNotFoundError):
        sync_files([*paths, f"{site.purelib}/not-there"])


def test_on_windows_a_file_that_is_looked_at_is_waited_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a virus scanner, for two seconds; elsewhere nothing is waited for."""
    real, now, refusals = os.replace, [0.0], [30]

    def replace(one: str, other: str) -> None:
        if refusals[0]:
            refusals[0] -= 1
            raise PermissionError(13, "in use", one)
        real(one, other)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(os, "replace", replace)
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(journaled_change, "time", clock)
    (tmp_path / "a").write_text("x")
    paths = str(tmp_path / "a"), str(tmp_path / "b")

    with pytest.raises(PermissionError):
        move(*paths)
    assert now == [0.0]
    monkeypatch.setattr(journaled_change, "sys", SimpleNamespace(platform="win32"))
    move(*paths)
    assert (tmp_path / "b").read_text() == "x"
    assert 1 < now[0] < 2
    (tmp_path / "a").write_text("y")
    refusals[0] = 1000
    with pytest.raises(PermissionError):
        move(*paths)
    assert 3 < now[0] < 4
