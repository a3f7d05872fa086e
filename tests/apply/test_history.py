"""What the diagnosis says of the changes that can be undone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ortgpu_fix.apply.history import changed_since, history_summary
from ortgpu_fix.apply.journal import Begin
from ortgpu_fix.apply.journaled_change import Incoming, JournaledChange, sync_files
from ortgpu_fix.apply.state_folder import Site, prepare_state_folder


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = str(tmp_path)
    return Site(purelib=folder, platlib=folder, scripts=folder, prefix=folder)


def test_nothing_is_known_where_nothing_was_done(site: Site) -> None:
    assert history_summary(site, ()) == (None, 0)


def test_an_empty_state_folder_is_nothing(site: Site) -> None:
    """A run that was killed after its first step leaves one."""
    site.state.mkdir()

    assert history_summary(site, ()) == (None, 0)


def test_what_a_killed_run_had_staged_is_reported(site: Site) -> None:
    prepare_state_folder(site)
    site.stage.mkdir()
    (site.stage / "half.whl").write_bytes(bytes(100_000))

    state, size = history_summary(site, ())

    assert state == "stale"
    assert size >= 100_000


def test_a_change_can_be_undone_until_its_distributions_change(site: Site) -> None:
    prepare_state_folder(site)
    change = JournaledChange(site)
    change.begin(Begin(plan="b 1", removed=("a",), installed=(("b", "1"),), present=()))
    assert history_summary(site, [("b", "1")])[0] == "unfinished"
    change.commit()

    assert history_summary(site, [("b", "1"), ("c", "1")])[0] == "kept"
    for now in ([("b", "2")], [], [("a", "1"), ("b", "1")]):
        assert history_summary(site, now)[0] == "changed"
    begin = Begin(plan="", removed=("a", "z"), installed=(("b", "1"), ("c", "1")), present=())
    assert changed_since(begin, [("z", "3"), ("c", "2"), ("b", "1")]) == ("c", "z")


def test_the_newest_change_is_the_one_that_counts(site: Site) -> None:
    prepare_state_folder(site)
    for version in ("1", "2"):
        change = JournaledChange(site)
        change.begin(Begin(plan="", removed=(), installed=(("b", version),), present=()))
        change.commit()

    assert history_summary(site, [("b", "2")])[0] == "kept"
    assert history_summary(site, [("b", "1")])[0] == "changed"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names open files by /proc")
def test_what_comes_is_on_the_disk_before_the_journal_says_so(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then the folders with their names, and those with the names of these."""
    prepare_state_folder(site)
    change = JournaledChange(site)
    change.begin(Begin(plan="", removed=(), installed=(), present=()))
    file = tmp_path / "a" / "b" / "c.py"
    source = tmp_path / "source.py"
    source.touch()
    flushed: list[str] = []

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", fsync)
    sync_files([str(source)])
    change.place([Incoming(str(file), str(source), "")], [])

    journal = str(change.folder / "journal")
    assert flushed[:3] == [str(source), journal, journal]
    assert set(flushed[3:]) == {str(path) for path in (*file.parents[:2], tmp_path)}


def test_a_disk_that_does_not_take_what_comes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").touch()

    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input/output"):
        sync_files([str(tmp_path / "a.py")])
