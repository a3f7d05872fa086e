"""File names that others choose stay in the folder that they are joined to."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.utils.deadline import within
from ortgpu_fix.utils.file_names import plain_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a-1-py3-none-any.whl", "a-1-py3-none-any.whl"),
        ("../../a.whl", "a.whl"),
        ("..\\..\\a.whl", "a.whl"),
        ("/etc/passwd", "passwd"),
        ("C:a.whl", ""),
        ("a.whl:stream", ""),
        ("..", ""),
        (".", ""),
        ("a/", ""),
        ("", ""),
        ("a\0.whl", ""),
        ("a\x1b[2J.whl", ""),
        ("a\x9b.whl", ""),
        ("x" * 256, ""),
        ("é" * 128, ""),
    ],
)
def test_a_name_is_that_of_a_file(text: str, name: str) -> None:
    assert plain_name(text) == name


@given(st.text())
def test_no_name_leaves_its_folder(text: str) -> None:
    name = plain_name(text)

    assert not name or (PurePosixPath("/a") / name).parent == PurePosixPath("/a")
    assert not name or (PureWindowsPath("C:/a") / name).parent == PureWindowsPath("C:/a")
    assert plain_name(name) == name


def test_a_call_has_a_limit(tmp_path: Path) -> None:
    import threading

    assert within(10, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 // 0)
    with pytest.raises(TimeoutError):
        within(0.05, threading.Event().wait)
    assert list(tmp_path.iterdir()) == []
