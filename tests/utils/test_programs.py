"""A program that we start by ourselves is never one of the folder where we happen to be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ortgpu_fix.utils.programs import find_program


def put(file: Path) -> str:
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    file.chmod(0o755)
    return str(file)


def path_of(*folders: object) -> dict[str, str]:
    return {"PATH": os.pathsep.join(map(str, folders))}


@pytest.mark.skipif(sys.platform == "win32", reason="any file is a program there")
def test_the_first_folder_that_has_a_program_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()  # no file
    put(tmp_path / "one" / "git")
    (tmp_path / "one" / "git").chmod(0o644)  # no program
    second = put(tmp_path / "two" / "git")
    put(tmp_path / "three" / "git")
    more = put(tmp_path / "four" / "smi")

    folders = (tmp_path, tmp_path / "one", tmp_path / "two", tmp_path / "three")
    assert find_program("git", path_of(*folders)) == second
    assert find_program("smi", path_of(*folders)) is None
    assert find_program("smi", path_of(*folders), str(tmp_path / "four")) == more
    assert find_program("sh", {}) is not None, "without PATH the system's own folders"


@pytest.mark.parametrize("folder", ["", ".", "bin"])
def test_a_folder_that_depends_on_where_we_are_is_none(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "bin" / "git")
    put(tmp_path / "git")
    monkeypatch.chdir(tmp_path)

    assert find_program("git", path_of("/nowhere", folder)) is None


def test_on_windows_it_is_not_looked_for_beside_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shutil.which` takes the one of the current folder there, before all of PATH."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "git.exe")
    found = put(tmp_path / "bin" / "git.exe")

    environ = path_of(tmp_path / "bin") | {"PATHEXT": ".bat;.exe"}
    assert find_program("git", environ) == found
    assert find_program("git.exe", environ) == found
    assert find_program("git", path_of("/nowhere")) is None
