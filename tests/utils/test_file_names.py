"""File names that others choose stay in the folder that they are joined to."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.utils.foreign_text import plain_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a-1-py3-none-any.whl", "a-1-py3-none-any.whl"),
        ("../../a.whl", "a.whl"),
        ("..\\..\\a.whl", "a.whl"),
        ("C:a.whl", ""),
        ("..", ""),
        ("", ""),
        ("a\0.whl", ""),
        ("a\x9b.whl", ""),
        ("x" * 256, ""),
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
