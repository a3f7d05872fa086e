"""Which files need not be hashed again, and which do, whatever was done to hide it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ortgpu_fix.apply.hashed_files import (
    LARGE,
    NAME,
    has_content,
    identity,
    remember,
    unchanged_files,
)
from ortgpu_fix.utils.files import file_digest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="all are hashed there")
CONTENT = b"x" * (LARGE + 1)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Files:
    """A file of uv's cache with a link in an environment, which is remembered."""

    def __init__(self, folder: Path) -> None:
        self.kept = folder / "home" / "wheels"
        self.cached, self.path = folder / "cached.so", folder / "a.so"
        self.cached.write_bytes(CONTENT)
        self.path.hardlink_to(self.cached)

    def remember(self) -> None:
        remember(self.kept, {str(self.path): SHA256})

    @property
    def known(self) -> list[str]:
        found = unchanged_files(self.kept)
        assert found.keys() <= {identity(self.cached.stat())}
        return list(found.values())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_what_nobody_touched_is_known(files: Files) -> None:
    files.remember()

    about = files.path.stat()
    assert identity(about) == (about.st_dev, about.st_ino, len(CONTENT), about.st_mtime_ns)

    assert files.known == [SHA256]


def _copy_over(files: Files) -> None:
    other = files.path.with_name("older.so")
    other.write_bytes(b"y" * len(CONTENT))
    shutil.copystat(files.path, other)
    shutil.copyfile(other, files.path)
    shutil.copystat(other, files.path)  # `cp -p`


def _exchange(files: Files) -> None:
    before = files.path.stat()
    files.path.unlink()
    files.path.write_bytes(CONTENT)
    files.path.with_name("third.so").hardlink_to(files.path)
    os.utime(files.path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        _copy_over,
        _exchange,
        lambda files: files.path.with_name("b.so").hardlink_to(files.path),
        lambda files: files.cached.rename(files.cached.with_name("other")) and None,
        lambda files: files.cached.chmod(0o600),
        lambda files: os.utime(files.cached),
        lambda files: files.path.unlink(),
    ],
    ids=["copied over", "another", "linked", "renamed", "mode", "times", "gone"],
)
def test_what_was_touched_is_not_known(files: Files, change: Callable[[Files], None]) -> None:
    files.remember()

    change(files)

    assert unchanged_files(files.kept) == {}


def test_the_next_environment_is_remembered_in_the_place_of_the_first(files: Files) -> None:
    files.remember()
    first = files.path
    files.path = first.with_name("next.so")
    files.path.hardlink_to(first)

    files.remember()

    assert files.known == [SHA256]
    [row] = (files.kept / NAME).read_text().splitlines()
    assert json.loads(row)["path"] == str(files.path)


def test_what_another_change_remembered_stays(files: Files) -> None:
    files.remember()

    remember(files.kept, {})

    assert files.known == [SHA256]


def test_what_is_small_or_without_another_link_is_hashed_each_time(files: Files) -> None:
    small, alone = files.path.with_name("small"), files.path.with_name("alone")
    small.write_bytes(CONTENT[:-1])
    small.with_name("small too").hardlink_to(small)
    alone.write_bytes(CONTENT)

    paths = (small, alone, files.path.with_name("gone"))
    remember(files.kept, {str(path): SHA256 for path in paths} | {str(files.path): ""})

    assert files.known == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]\n",
        "{}\n",
        '{"path": "\\u0000", "seen": [1], "sha256": "a"}\n',
        '{"path": "/gone", "seen": [1], "sha256": "a"}\n',
        "\xff\xfe",
    ],
)
def test_what_is_no_row_is_none(files: Files, text: str) -> None:
    files.kept.mkdir(parents=True)
    (files.kept / NAME).write_text(text, encoding="latin-1")

    assert files.known == []
    files.remember()
    assert files.known == [SHA256]


@pytest.mark.parametrize("key", ["path", "seen", "sha256"])
def test_a_row_that_lacks_something_is_none(files: Files, key: str) -> None:
    files.remember()
    row = json.loads((files.kept / NAME).read_text())
    del row[key]

    (files.kept / NAME).write_text(json.dumps(row))

    assert files.known == []


def test_no_more_is_read_than_has_to_be(files: Files) -> None:
    files.remember()
    file = files.kept / "hashed.jsonl"
    row = file.read_text()

    file.write_text(f"{' ' * ((4 << 20) - len(row) - 1)}\n{row}")
    assert files.known == [SHA256]
    file.write_text(f"{' ' * ((4 << 20) - len(row) + 1)}\n{row}")  # without the last brace
    assert files.known == []


def test_a_pipe_and_a_link_in_its_place_are_left(files: Files, tmp_path: Path) -> None:
    files.kept.mkdir(parents=True)
    (tmp_path / "document").write_text("mine")
    (files.kept / NAME).symlink_to(tmp_path / "document")

    files.remember()

    assert (tmp_path / "document").read_text() == "mine"
    assert files.known == []
    (files.kept / NAME).unlink()
    os.mkfifo(files.kept / NAME)
    assert files.known == []


def test_where_nothing_can_be_kept_nothing_is_known(files: Files) -> None:
    remember(None, {str(files.path): SHA256})
    assert unchanged_files(None) == {}

    files.kept.parent.write_text("no folder")
    files.remember()
    assert files.known == []


@pytest.mark.parametrize("size", [LARGE, LARGE + 1])
def test_a_large_file_is_read_once_until_something_is_done_to_it(
    tmp_path: Path, hashed: list[Path], size: int
) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(b"x" * size)
    told = hashlib.sha256(b"x" * size).hexdigest()

    assert has_content(str(path), size, told)
    assert has_content(str(path), size, told)
    assert not has_content(str(path), size, "0" * 64)
    assert not has_content(str(path), size - 1, told)
    assert len(hashed) == (1 if size > LARGE else 3)
    before = path.stat()
    path.write_bytes(b"y" * size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not has_content(str(path), size, told)


def test_nothing_and_a_link_have_no_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * len("target"))
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "target").write_bytes(path.read_bytes())
    told = file_digest(path)

    assert has_content(str(path), 6, told)
    assert has_content(str(tmp_path / "link"), 6, told) is False
    assert has_content(str(tmp_path / "none"), 6, told) is False
