"""An index that is a folder of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.index.folder import folder_page
from ortgpu_fix.index.pinning import files_in_folder

NAME = "numpy-2.2.6-py3-none-any.whl"


def test_the_files_of_a_folder_are_its_page(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    (found,) = folder_page(tmp_path.as_uri())
    assert (found.name, found.url) == (NAME, (tmp_path / NAME).as_uri())


def test_a_page_in_another_encoding_is_read_all_the_same(tmp_path: Path) -> None:
    page = f'<title>M\xfcnchen</title><a href="{NAME}">{NAME}</a>'
    (tmp_path / "index.html").write_bytes(page.encode("latin-1"))
    assert [file.name for file in folder_page(tmp_path.as_uri() + "/")] == [NAME]


@pytest.mark.parametrize(
    ("path", "reason"),
    [("none", "No such file or directory"), ("a%00b", "embedded null byte")],
)
def test_a_folder_that_cannot_be_opened_is_told_with_the_reason(
    path: str, reason: str, tmp_path: Path
) -> None:
    address = f"{tmp_path.as_uri()}/{path}"
    with pytest.raises(Error) as raised:
        folder_page(address)
    assert raised.value.code == "index-unreachable"
    assert raised.value.values == {"url": address, "reason": reason}


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of Unix")
def test_a_pipe_among_the_files_is_not_waited_for(tmp_path: Path) -> None:
    """It was hashed as a wheel of `--find-links`, for ever."""
    (tmp_path / NAME).touch()
    (tmp_path / "a-1-py3-none-any.whl").mkdir()
    for name in ("index.html", "b-1-py3-none-any.whl"):
        os.mkfifo(tmp_path / name)

    assert [file.name for file in folder_page(tmp_path.as_uri())] == [NAME]
    assert [file.name for file in files_in_folder(tmp_path)] == [NAME]
