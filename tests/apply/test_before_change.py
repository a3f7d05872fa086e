"""Processes that have libraries mapped which are about to leave."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ortgpu_fix.apply import before_change
from ortgpu_fix.apply.before_change import check_files_movable, processes_using
from ortgpu_fix.errors import Error

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")


def test_we_ourselves_do_not_count(tmp_path: Path) -> None:
    library = tmp_path / "own.so"
    library.write_bytes(b"x" * 5000)
    with library.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert processes_using([str(library)]) == ()


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    assert processes_using(["/a.so"], tmp_path / "none") == ()
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "maps").write_text("0-1 r--p 0 0:0 0 /\nshort /\n")
    (tmp_path / "self").mkdir()
    assert processes_using(["/a.so"], tmp_path) == ()


def test_a_process_with_a_name_of_any_bytes_is_named(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "maps").write_bytes(b"7f-80 r-xp 0 08:01 4  /v/a \xff.so\n")
    (tmp_path / "42" / "comm").write_bytes(b"app \xff\n")
    name = os.fsdecode(b"/v/a \xff.so")

    assert processes_using([name, "/v/a.txt"], tmp_path) == ("app \ufffd (42)",)
    assert processes_using(["/v/a.txt", "/v/b.so"], tmp_path) == ()


def test_on_windows_a_file_that_cannot_be_moved_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the system only its name is simulated."""
    monkeypatch.setattr(before_change, "sys", SimpleNamespace(platform="win32"))
    (tmp_path / "a.dll").touch()
    missing = str(tmp_path / "b.dll")

    check_files_movable([str(tmp_path / "a.dll")])
    with pytest.raises(Error, match="files-in-use") as caught:
        check_files_movable([str(tmp_path / "a.dll"), missing])
    assert caught.value.values["path"] == missing


def test_linux_moves_everything(tmp_path: Path) -> None:
    check_files_movable([os.fspath(tmp_path / "no such file")])
