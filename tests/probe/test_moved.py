"""An environment that lies elsewhere than where it was made: made and moved for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from environments import own_base

from ortgpu_fix.facts.target import Target
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.probe.mistaken import find_old_place
from ortgpu_fix.utils.process import run

MAKERS = {
    "venv": [str(own_base()), "-m", "venv", "--without-pip"],
    "uv": [sys.executable, "-m", "uv", "venv", "-q", "--offline", "--python", str(own_base())],
    "uv, relocatable": [
        *(sys.executable, "-m", "uv", "venv", "-q", "--offline", "--relocatable"),
        *("--python", str(own_base())),
    ],
}


def target(folder: Path) -> Target:
    return target_of(str(folder), environ=os.environ, cwd=Path.cwd(), runner=run)


def made(maker: str, folder: Path) -> Path:
    subprocess.run([*MAKERS[maker], str(folder)], check=True)
    return folder


@pytest.mark.parametrize("maker", MAKERS)
def test_a_moved_environment_is_known_by_what_made_it(maker: str, tmp_path: Path) -> None:
    old = made(maker, tmp_path / "old place")
    there = find_old_place(target(old))
    shutil.move(old, tmp_path / "new")

    assert there is None
    assert find_old_place(target(tmp_path / "new")) == (
        None if "relocatable" in maker else str(old)
    )


def test_a_link_to_an_environment_is_no_other_place(tmp_path: Path) -> None:
    old = made("venv", tmp_path / "old")
    (tmp_path / "link").symlink_to(old)

    assert find_old_place(target(tmp_path / "link")) is None


@pytest.mark.parametrize(
    "line",
    ["", "VIRTUAL_ENV=$(cygpath -u /x)", "VIRTUAL_ENV=here"],
)
def test_what_names_no_folder_tells_nothing(line: str, tmp_path: Path) -> None:
    here = target(made("venv", tmp_path / "env"))
    Path(here.scripts, "activate").write_text(f"{line}\n", "utf-8")

    assert find_old_place(here) is None
