"""Wheels that are kept for other environments: checked, bounded, and never needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from ortgpu_fix.index import kept_wheels
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download_all
from ortgpu_fix.index.kept_wheels import keep, take_kept, trim
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.progress import silent
from support.local_index import LocalIndex, make_wheel


@pytest.fixture
def served(tmp_path: Path) -> tuple[LocalIndex, Wheel]:
    path = make_wheel(tmp_path / "served", "a", "1.0")
    data = path.read_bytes()
    wheel = Wheel(
        name="a",
        version="1.0",
        index_url="pypi",
        file=path.name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    return LocalIndex(tmp_path / "served"), wheel


def bring(server: LocalIndex, wheel: Wheel, into: Path, kept: Path, **more: bool) -> list[str]:
    """Download into a new folder; return what the index was asked for."""
    server.behaviour.requests.clear()
    sources = IndexConfig(index_url=server.url, origin="flag", kept=kept, **more)  # type: ignore[arg-type]
    (path,) = download_all(Index(sources, Limits(pauses=(0.01,))), [wheel], into, silent)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == wheel.sha256
    assert sorted(into.iterdir()) == [path]
    return [line for line in server.behaviour.requests if "/files/" in line]


def test_nothing_is_fetched_twice(served: tuple[LocalIndex, Wheel], tmp_path: Path) -> None:
    server, wheel = served
    with server:
        assert len(bring(server, wheel, tmp_path / "one", tmp_path / "kept")) == 1
        os.utime(tmp_path / "kept" / wheel.file, (1, 1))
        assert bring(server, wheel, tmp_path / "two", tmp_path / "kept") == []
        assert bring(server, wheel, tmp_path / "three", tmp_path / "kept", offline=True) == []
    assert (tmp_path / "kept" / wheel.file).stat().st_mtime > 1  # it was used
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [wheel.file]


def test_one_that_somebody_damaged_is_fetched_again(
    served: tuple[LocalIndex, Wheel], tmp_path: Path
) -> None:
    server, wheel = served
    with server:
        bring(server, wheel, tmp_path / "one", tmp_path / "kept")
        (tmp_path / "kept" / wheel.file).unlink()
        (tmp_path / "kept" / wheel.file).write_bytes(b"damaged")
        assert len(bring(server, wheel, tmp_path / "two", tmp_path / "kept")) == 1
        assert bring(server, wheel, tmp_path / "three", tmp_path / "kept") == []


def test_it_is_not_needed(served: tuple[LocalIndex, Wheel], tmp_path: Path) -> None:
    server, wheel = served
    (tmp_path / "kept").write_text("no folder")
    with server:
        assert len(bring(server, wheel, tmp_path / "one", tmp_path / "kept")) == 1


def test_it_is_copied_where_it_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError("another filesystem")

    monkeypatch.setattr(os, "link", refused)
    (tmp_path / "a.whl").write_text("a")

    keep(tmp_path / "kept", tmp_path / "a.whl")
    assert take_kept(tmp_path / "kept", "a.whl", tmp_path / "again.whl")

    assert (tmp_path / "again.whl").read_text() == "a"
    assert (tmp_path / "again.whl").stat().st_nlink == 1
    assert not take_kept(tmp_path / "kept", "b.whl", tmp_path / "b.whl")

    def full(_: Path, path: Path) -> None:
        path.write_text("the first piece")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    assert not take_kept(tmp_path / "kept", "a.whl", tmp_path / "part.whl")
    assert not (tmp_path / "part.whl").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the owners of Unix")
def test_under_sudo_nothing_is_left_in_another_s_folder_nor_linked_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    for name in ("a.whl", "kept/b.whl"):
        (tmp_path / name).write_text("x")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)

    keep(tmp_path / "kept", tmp_path / "a.whl")
    assert take_kept(tmp_path / "kept", "b.whl", tmp_path / "b.whl")

    assert not (tmp_path / "kept" / "a.whl").exists()
    assert (tmp_path / "b.whl").stat().st_nlink == 1


def test_what_was_not_used_for_the_longest_time_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, name in enumerate(("c.whl", "a.whl", "b.whl", "other.txt")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (at, at))

    trim(tmp_path, 200)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.whl", "b.whl", "other.txt"]

    trim(tmp_path, 199)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.whl", "other.txt"]

    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "d.whl").write_bytes(bytes(100))
    monkeypatch.setattr(kept_wheels, "MOST", 100)
    keep(tmp_path, tmp_path / "new" / "d.whl")
    assert sorted(path.name for path in tmp_path.glob("*.whl")) == ["d.whl"]


def test_what_is_kept_is_bounded_to_ten_gibibytes() -> None:
    assert kept_wheels.MOST == 10 * 1024**3


def test_what_is_kept_already_stays(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    for at, name in enumerate(("a.whl", "b.whl", "again/a.whl")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(at))
        keep(folder, path)

    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "a.whl": "0",
        "b.whl": "1",
    }


def test_a_kept_wheel_takes_the_place_of_a_file_and_not_of_its_other_names(tmp_path: Path) -> None:
    """What is there may be a link: whoever else has the file keeps it as it is."""
    for name in ("kept.whl", "theirs"):
        (tmp_path / name).write_text(name)
    (tmp_path / "path").hardlink_to(tmp_path / "theirs")

    assert take_kept(tmp_path, "kept.whl", tmp_path / "path")

    assert (tmp_path / "path").read_text() == "kept.whl"
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_as_many_go_as_must_whoever_else_removes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, name in enumerate(("a.whl", "b.whl", "c.whl", "d.whl")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (at, at))
    unlink = Path.unlink

    def twice(path: Path, *, missing_ok: bool = False) -> None:
        unlink(path)  # as another run does in the same moment
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", twice)
    trim(tmp_path, 100)

    assert [path.name for path in tmp_path.iterdir()] == ["d.whl"]


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of Unix")
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_file_in_the_place_of_a_kept_wheel_is_not_taken(
    served: tuple[LocalIndex, Wheel], tmp_path: Path, kind: str
) -> None:
    """A pipe was linked into the environment, and waited for as it was hashed."""
    server, wheel = served
    planted = tmp_path / "kept" / wheel.file
    planted.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(planted)
    else:
        planted.symlink_to(tmp_path / "served" / wheel.file)
    with server:
        assert len(bring(server, wheel, tmp_path / "into", tmp_path / "kept")) == 1

    assert not (tmp_path / "into" / wheel.file).is_symlink()
