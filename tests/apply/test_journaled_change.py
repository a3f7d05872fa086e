"""A change step by step: what is in the journal, and what is where afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ortgpu_fix.apply.fingerprints import fingerprint
from ortgpu_fix.apply.journal import (
    Begin,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    Written,
    decode,
)
from ortgpu_fix.apply.set_aside import Incoming, JournaledChange, move, move_folder
from ortgpu_fix.apply.state_folder import Site

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of Unix")
BEGIN = Begin(plan="x", removed=(), installed=())


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


def test_a_change_has_the_next_number(site: Site) -> None:
    assert JournaledChange(site).number == 1
    for name in ("9", "10", "x", "lock"):
        (site.state / name).mkdir()

    made = JournaledChange(site)
    assert (made.number, made.folder, made.touched) == (11, site.state / "11", False)
    assert not made.folder.exists()


@pytest.mark.parametrize("files", [0, 3])
def test_room_for_the_way_back_is_kept_before_anything_is_changed(site: Site, files: int) -> None:
    made = JournaledChange(site)
    made.begin(BEGIN, files)

    assert (made.folder / "reserve").stat().st_size == 256 * 1024 + 256 * files
    assert {path.name for path in made.folder.iterdir()} == {"aside", "trash", "reserve", "journal"}
    assert decode((made.folder / "journal").read_text("utf-8")) == (BEGIN,)
    assert not made.touched


def test_what_is_set_aside_is_recorded_as_it_was(site: Site, change: JournaledChange) -> None:
    long = "n" * 100 + ".py"
    paths = [put(site, "a/b/one.py"), put(site, f"a/{long}"), put(site, "../../bin/tool")]
    Path(site.purelib, "a", "b").chmod(0o750)
    Path(site.purelib, "a").chmod(0o700)
    seen = tuple(filter(None, map(fingerprint, paths)))

    change.set_aside(paths)

    assert change.touched
    moved, emptied = records(change)
    assert moved == MovedFiles(
        moves=(
            ("a/b/one.py", "000000-one.py"),
            (f"a/{long}", f"000001-{long[-80:]}"),
            ("../../bin/tool", "000002-tool"),
        ),
        seen=seen,
    )
    assert emptied == RemovedFolders(
        folders=(("a/b", 0o750), ("a", 0o700)), names=("folder-000000", "folder-000001")
    )
    aside = change.folder / "aside"
    assert {path.name for path in aside.iterdir()} == {
        *("000000-one.py", f"000001-{long[-80:]}", "000002-tool"),
        *("folder-000000", "folder-000001"),
    }
    assert not Path(site.purelib, "a").exists()
    assert Path(site.scripts).is_dir()  # a root stays


def test_a_folder_in_which_something_is_left_stays(site: Site, change: JournaledChange) -> None:
    path = put(site, "a/b/one.py")
    put(site, "a/other.py")

    change.set_aside([path])

    _, emptied = records(change)
    assert isinstance(emptied, RemovedFolders)
    assert [name for name, _ in emptied.folders] == ["a/b"]
    assert Path(site.purelib, "a", "other.py").exists()


def test_where_no_folder_is_emptied_none_is_recorded(site: Site, change: JournaledChange) -> None:
    change.set_aside([put(site, "one.py")])
    assert [type(record) for record in records(change)] == [MovedFiles]


def test_a_folder_that_something_is_mounted_on_stays(
    site: Site, change: JournaledChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(site, "a/one.py")
    monkeypatch.setattr(os.path, "ismount", lambda name: str(name).endswith("/a"))

    change.set_aside([path])

    assert Path(site.purelib, "a").is_dir()


def test_what_comes_is_recorded_before_it_is_moved(site: Site, change: JournaledChange) -> None:
    Path(site.purelib, "there").mkdir()
    sources = [put(site, f".ortgpu-fix/stage/{at}", "new" * at) for at in (1, 2)]
    goals = [f"{site.purelib}/there/z.py", f"{site.purelib}/new/a.py"]
    seen = tuple(map(fingerprint, sources))
    coming = [Incoming(goal, source, "ab") for goal, source in zip(goals, sources, strict=True)]

    change.place(coming, [f"{site.purelib}/new"], [f"{site.purelib}/empty/inner"])

    assert records(change) == (
        Install(
            created=("new/a.py", "there/z.py"),
            whole=("new",),
            standing=("there",),
            folders=("empty/inner",),
            sizes=(6, 3),
            hashes=("ab", "ab"),
        ),
        Written(seen=(seen[1], seen[0])),
    )
    assert [Path(goal).read_text() for goal in goals] == ["new", "newnew"]
    assert Path(site.purelib, "empty", "inner").is_dir()
    assert not any(map(os.path.exists, sources))
    assert change.touched


def test_a_copy_with_another_time_is_recorded_once_more(
    site: Site, change: JournaledChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = put(site, ".ortgpu-fix/stage/1")

    def copy(one: str, other: str) -> None:
        move(one, other)
        os.utime(other, ns=(5, 5))

    monkeypatch.setattr("ortgpu_fix.apply.set_aside.move", copy)
    change.place([Incoming(f"{site.purelib}/a.py", source, "")], [])

    *_, first, second = records(change)
    assert isinstance(first, Written)
    assert second == Written(seen=(("file", 1, 5),))
    assert first != second


def test_the_end_of_a_change_is_recorded(change: JournaledChange) -> None:
    change.commit()
    assert records(change) == (Mark(step="commit"),)


def test_a_folder_on_another_filesystem_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    source, goal = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    monkeypatch.setattr(os, "rename", elsewhere)

    move_folder(str(source), str(goal))
    assert (source.exists(), goal.is_dir()) == (False, True)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(PermissionError):
        move_folder(str(goal), str(source))


def test_a_copy_keeps_mode_and_time_and_a_link_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def only_beside(one: str, other: str) -> None:
        if not one.endswith(".ortgpu-fix.tmp"):
            raise OSError(18, "Invalid cross-device link")
        real(one, other)

    monkeypatch.setattr(os, "replace", only_beside)
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0o640)
    os.utime(tmp_path / "a", ns=(10**18, 10**18))
    (tmp_path / "link").symlink_to("nowhere")

    move(str(tmp_path / "a"), str(tmp_path / "b"))
    move(str(tmp_path / "link"), str(tmp_path / "moved"))

    about = (tmp_path / "b").stat()
    assert (about.st_mode & 0o7777, about.st_mtime_ns) == (0o640, 10**18)
    assert (tmp_path / "moved").readlink() == Path("nowhere")
    assert {path.name for path in tmp_path.iterdir()} == {"b", "moved"}
