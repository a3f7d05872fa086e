"""Which recorded changes are kept, and which journals are believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ortgpu_fix.apply import rollback
from ortgpu_fix.apply.history import (
    change_folders,
    changed_since,
    delete_journal,
    discard_undo_data,
    history_summary,
    prune_history,
    read_journal,
    recorded_changes,
)
from ortgpu_fix.apply.journal import Begin, Mark, MovedFiles, Record, encode
from ortgpu_fix.apply.journaled_change import move
from ortgpu_fix.apply.rollback import (
    discard_stage,
    roll_back,
    undo_last,
)
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error

COMMIT, UNDO = Mark(step="commit"), Mark(step="undo")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    purelib = tmp_path / "lib"
    purelib.mkdir()
    folder = str(purelib)
    return Site(purelib=folder, platlib=folder, scripts=str(tmp_path / "bin"), prefix=str(tmp_path))


def begin(number: int) -> Begin:
    return Begin(plan=str(number), removed=(), installed=(("a", str(number)),), present=())


def moved(*moves: tuple[str, str]) -> MovedFiles:
    """Files of one byte that are set aside."""
    return MovedFiles(moves=moves, seen=(("file", 1, 0),) * len(moves))


def record(site: Site, number: int, *more: Record) -> Path:
    """Write the journal of a change, and a byte that it set aside."""
    folder = site.state / str(number)
    (folder / "aside").mkdir(parents=True)
    (folder / "aside" / "0").write_text("x")
    text = "".join(map(encode, (begin(number), *more)))
    (folder / "journal").write_text(text, encoding="utf-8")
    return folder


def kept(site: Site) -> list[int]:
    return [number for number, _ in change_folders(site)]


def test_the_newest_that_was_done_is_kept_and_what_is_unfinished(site: Site) -> None:
    record(site, 1, COMMIT)
    record(site, 2)
    record(site, 3, COMMIT)
    record(site, 4, COMMIT, UNDO)
    (site.state / "5").mkdir()  # it ended before its first record

    assert prune_history(site) == 0
    assert kept(site) == [4, 3, 2]


@pytest.mark.parametrize("killed_at", [1, 2])
@pytest.mark.parametrize("last", [(COMMIT,), ()])
def test_forgetting_that_is_killed_leaves_the_newest(
    site: Site, monkeypatch: pytest.MonkeyPatch, killed_at: int, last: tuple[Record, ...]
) -> None:
    """An older one would be undone beneath what came later."""
    for number, more in enumerate(((COMMIT,), (COMMIT,), last), start=1):
        record(site, number, *more)
    killed_after(killed_at, monkeypatch)

    with pytest.raises(KeyboardInterrupt):
        discard_undo_data(site, allow_changed=True)

    there = [row.number for row in recorded_changes(site) if row.begin is not None]
    assert there == [3, 2, 1][: 3 - killed_at]


def test_tidying_that_is_killed_leaves_no_gap(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the last change is undone, the one before it can be."""
    for number in (1, 2, 3):
        record(site, number, COMMIT)
    killed_after(1, monkeypatch)

    with pytest.raises(KeyboardInterrupt):
        prune_history(site)

    assert [row.number for row in recorded_changes(site) if row.begin is not None] == [3, 2]


def killed_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this program end after it has removed so many journals."""
    left = [count]

    def dying(folder: Path) -> None:
        delete_journal(folder)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr("ortgpu_fix.apply.history.delete_journal", dying)


def test_forgetting_asks_first_where_something_is_unfinished(site: Site) -> None:
    assert discard_undo_data(site) == 0
    record(site, 1, COMMIT)
    record(site, 2)

    with pytest.raises(Error) as caught:
        discard_undo_data(site)
    assert (caught.value.code, caught.value.values) == (
        "unfinished-change",
        {"folder": site.prefix},
    )
    assert kept(site) == [2, 1]
    assert discard_undo_data(site, allow_changed=True) == 0
    assert kept(site) == []


def test_the_newest_change_tells_what_can_be_undone(site: Site) -> None:
    record(site, 1, COMMIT)
    record(site, 2, COMMIT)

    assert history_summary(site, [("a", "2")])[0] == "kept"
    assert history_summary(site, [("a", "1")])[0] == "changed"
    size = sum(path.lstat().st_size for path in site.state.rglob("*") if path.is_file())
    assert history_summary(site, [("a", "2")])[1] == size
    record(site, 3)
    assert history_summary(site, [("a", "2")]) == (
        "unfinished",
        size + 1 + len((site.state / "3" / "journal").read_bytes()),
    )


def test_a_journal_that_nobody_can_read_counts_as_unfinished(site: Site) -> None:
    record(site, 1, COMMIT).joinpath("journal").write_text("rubbish\n\n[]\n")

    assert history_summary(site, ()) == ("unfinished", 0)


def test_what_changed_since_is_what_is_another_version_now() -> None:
    change = Begin(
        plan="", removed=("gone",), installed=(("here", "1"), ("other", "2")), present=()
    )

    assert changed_since(change, [("here", "1"), ("other", "2"), ("more", "1")]) == ()
    assert changed_since(change, [("here", "1"), ("other", "3")]) == ("other",)
    assert changed_since(change, [("gone", "0"), ("here", "1")]) == ("gone", "other")


def test_a_journal_that_is_no_file_is_damaged_and_none_is_empty(site: Site) -> None:
    folder = record(site, 1)
    (folder / "journal").unlink()
    assert read_journal(site, folder) == ()

    (folder / "journal").mkdir()
    with pytest.raises(Error) as caught:
        read_journal(site, folder)
    assert (caught.value.code, caught.value.values) == ("journal-damaged", {"line": 0})


def test_twelve_differences_are_named(site: Site) -> None:
    folder = record(site, 1, moved(("a.py", "0")), COMMIT)
    names = [f"n{at:02}" for at in range(13)]

    with pytest.raises(Error) as caught:
        roll_back(site, folder, names=names)
    assert (caught.value.code, caught.value.values) == (
        "undo-changed",
        {"names": ", ".join(names[:12]) + ", … (+1)"},
    )
    assert (folder / "aside" / "0").exists()  # nothing was moved
    roll_back(site, folder, names=names, allow_changed=True)
    assert Path(site.purelib, "a.py").read_text() == "x"


def test_what_is_lost_is_named_and_nothing_is_moved(site: Site) -> None:
    folder = record(site, 1, moved(("a.py", "0"), ("b.py", "1")), COMMIT)

    for allowed in (False, True):
        with pytest.raises(Error) as caught:
            roll_back(site, folder, allow_changed=allowed)
        assert (caught.value.code, caught.value.values) == ("undo-impossible", {"paths": "b.py"})
    assert not Path(site.purelib, "a.py").exists()


def test_a_file_that_cannot_be_put_back_is_named_and_the_others_are(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = record(site, 1, moved(("a.py", "0"), ("b.py", "1"), ("c.py", "2")))
    for name in ("0", "1", "2"):
        (folder / "aside" / name).write_text("x")
        os.utime(folder / "aside" / name, (0, 0))
    real = move

    def refuse(source: str, goal: str) -> None:
        if goal.endswith(("a.py", "c.py")):
            raise PermissionError(13, "Permission denied", goal)
        real(source, goal)

    monkeypatch.setattr(rollback, "move", refuse)
    with pytest.raises(Error) as caught:
        roll_back(site, folder)

    assert caught.value.code == "restore-failed"
    values = {"path": f"{site.purelib}/c.py", "reason": "Permission denied", "count": 2}
    assert caught.value.values == values
    assert Path(site.purelib, "b.py").exists()
    assert (folder / "journal").exists()
    monkeypatch.setattr(rollback, "move", real)
    roll_back(site, folder)
    assert Path(site.purelib, "a.py").exists()
    assert not (folder / "journal").exists()


def test_only_what_was_done_can_be_undone(site: Site) -> None:
    with pytest.raises(Error, match="nothing-to-undo"):
        undo_last(site, ())
    record(site, 1)
    with pytest.raises(Error, match="nothing-to-undo"):
        undo_last(site, ())


def test_downloads_that_were_begun_are_discarded_and_weighed(site: Site) -> None:
    assert discard_stage(site) is None
    site.state.mkdir()
    assert discard_stage(site) is None
    (site.stage / "tree").mkdir(parents=True)
    (site.stage / "tree" / "half.so").write_bytes(bytes(1234))

    assert history_summary(site, ())[0] == "stale"
    assert discard_stage(site) == 1234
    assert not site.stage.exists()
    assert history_summary(site, ()) == (None, 0)
