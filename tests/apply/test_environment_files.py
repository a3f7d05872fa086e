"""What a path is, and whether it is still what the journal recorded of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ortgpu_fix.apply.environment_files import fingerprint, is_same

SECOND = 1_000_000_000


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of Unix")
def test_a_path_is_what_it_is_itself(tmp_path: Path) -> None:
    """The size of a folder is its filesystem's affair: a copy has another."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    made = {name: fingerprint(str(tmp_path / name)) for name in ("file", "link", "folder", "pipe")}

    assert {name: found and found[:2] for name, found in made.items()} == {
        "file": ("file", 5),
        "link": ("link", 4),
        "folder": ("folder", 0),
        "pipe": ("special", 0),
    }
    for name, found in made.items():
        assert found is not None
        assert found[2] == (tmp_path / name).lstat().st_mtime_ns
    assert fingerprint(str(tmp_path / "nothing")) is None
    assert fingerprint(str(tmp_path / "file" / "below")) is None


@pytest.mark.parametrize(
    ("later", "same"),
    [(0, True), (2 * SECOND, True), (-2 * SECOND, True), (2 * SECOND + 1, False)],
)
def test_a_copy_on_fat_is_the_same_two_seconds_later(later: int, *, same: bool) -> None:
    """Source: FAT's times have a resolution of two seconds."""
    assert is_same(("file", 5, 100 * SECOND + later), ("file", 5, 100 * SECOND)) is same


@pytest.mark.parametrize("found", [None, ("file", 6, 0), ("link", 5, 0)])
def test_another_kind_or_size_is_another_file(found: tuple[str, int, int] | None) -> None:
    assert not is_same(found, ("file", 5, 0))
