"""A file is written whole or not at all, with the permissions that it should have."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.utils.files import (
    check_place,
    disk_error,
    file_digest,
    hash_of,
    read_bounded,
    write,
)


@pytest.fixture
def umask() -> Iterator[int]:
    """A umask that is nobody's, meanwhile."""
    before = os.umask(0o037)
    yield 0o037
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_file_has_the_permissions_of_the_umask_which_stays(
    tmp_path: Path, umask: int
) -> None:
    write(tmp_path / "new", "é\n")

    assert (tmp_path / "new").read_bytes() == b"\xc3\xa9\n"
    assert mode(tmp_path / "new") == 0o666 & ~umask
    assert os.umask(umask) == umask
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_file_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("before, and longer")
    (tmp_path / "there").chmod(0o462)
    (tmp_path / "link").symlink_to("there")

    write(tmp_path / "link", b"after")

    assert (tmp_path / "there").read_bytes() == b"after"
    assert mode(tmp_path / "there") == 0o462
    assert (tmp_path / "link").is_symlink()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    for path, content, why in (
        (tmp_path / "folder", b"", "Is a directory"),
        (tmp_path / "none" / "file", b"", "No such file or directory"),
        (tmp_path / "file", "\udce9", cause("path-no-text")),
    ):
        with pytest.raises(Error) as caught:
            write(path, content)
        assert caught.value.code == "file-unwritable"
        assert caught.value.values == {"file": path, "cause": why}

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert [*(tmp_path / "folder").iterdir()] == []


def test_whether_there_is_a_place_is_known_before_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("before")
    (tmp_path / "gone").symlink_to("goal")
    (tmp_path / "lost").symlink_to("none/goal")
    device = Path(os.devnull)
    for fine in (tmp_path / "there", tmp_path / "new", tmp_path / "gone", device):
        check_place(fine)
    for path, why in (
        (tmp_path, "Is a directory"),
        (tmp_path / "none" / "file", "No such file or directory"),
        (tmp_path / "lost", "No such file or directory"),
    ):
        with pytest.raises(Error) as caught:
            check_place(path)
        assert caught.value.code == "file-unwritable"
        assert caught.value.values == {"file": path, "cause": why}

    assert sorted(path.name for path in tmp_path.iterdir()) == ["gone", "lost", "there"]
    assert (tmp_path / "there").read_text() == "before"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_without_room_is_full(number: int) -> None:
    error = disk_error(OSError(number, os.strerror(number)), Path("/a/b"))

    assert (error.code, error.values) == ("disk-full", {"folder": "/a"})


def test_the_hash_of_a_file_is_that_of_all_of_it(tmp_path: Path) -> None:
    content = b"ab" * (3 << 19)
    (tmp_path / "file").write_bytes(content)
    more = hash_of(tmp_path / "file")
    more.update(b"d")

    assert file_digest(tmp_path / "file") == hashlib.sha256(content).hexdigest()
    assert more.hexdigest() == hashlib.sha256(content + b"d").hexdigest()


needs_pipes = pytest.mark.skipif(sys.platform == "win32", reason="named pipes of Unix")


@needs_pipes
def test_a_pipe_stays_one_and_gets_what_is_written(tmp_path: Path) -> None:
    """`-o /dev/null`, by root, made a regular file of the device for the whole machine."""
    content, got = bytes(300_000), bytearray()  # more than a pipe holds
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)

    def read() -> None:
        got.extend(pipe.read_bytes())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while reader.is_alive():
        try:
            write(tmp_path / "link", content)
            break
        except Error as error:  # its reader has not opened it yet
            assert error.values["cause"] == "No such device or address"  # noqa: PT017
    reader.join(10)

    assert bytes(got) == content
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


@needs_pipes
def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(Error) as caught:
        write(tmp_path / "pipe", "text")

    assert caught.value.code == "file-unwritable"
    assert caught.value.values["cause"] == "No such device or address"


@needs_pipes
def test_a_descriptor_is_written_to(tmp_path: Path) -> None:
    """`-o /dev/stdout` said that there is no such file."""
    out, into = os.pipe()
    (tmp_path / "stdout").symlink_to(f"/dev/fd/{into}")

    write(tmp_path / "stdout", "text")
    os.close(into)

    with os.fdopen(out) as read:
        assert read.read() == "text"


def test_a_file_that_is_too_large_is_read_no_further(tmp_path: Path) -> None:
    """`--facts /dev/zero` took all the memory that there was."""
    file = tmp_path / "zeros"
    file.touch()
    os.truncate(file, 20_000_000)
    assert len(read_bounded(file)) == 20_000_000
    os.truncate(file, 20_000_001)

    with pytest.raises(OSError, match="File too large") as caught:
        read_bounded(file)

    assert caught.value.errno == errno.EFBIG


@pytest.mark.skipif(sys.platform == "win32", reason="owners of Unix")
@pytest.mark.parametrize("allowed", [True, False])
def test_a_file_stays_that_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, allowed: bool
) -> None:
    """`sudo ortgpu-fix --apply --write` gave it to root."""
    given: list[tuple[int, int]] = []

    def chown(_: str, user: int, group: int, *, follow_symlinks: bool) -> None:
        assert not follow_symlinks
        given.append((user, group))
        if not allowed:
            raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "chown", chown)
    write(tmp_path / "new", "x")
    assert given == []
    (tmp_path / "new").chmod(0o640)
    there = (tmp_path / "new").stat()
    write(tmp_path / "new", "y")

    assert given == [(there.st_uid, there.st_gid)]
    assert (tmp_path / "new").read_text() == "y"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
