"""The onnxruntime that a program imports in place of the environment's: as its own Python does."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from environments import make_venv, own_base, put_onnxruntime, site_packages

from ortgpu_fix.facts.target import Target
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.probe.shadow import find_shadow
from ortgpu_fix.utils.process import run


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    python = make_venv(own_base(), tmp_path_factory.mktemp("venv"))
    put_onnxruntime(site_packages(python), "onnxruntime-gpu", "1.26.0")
    return target_of(str(python), environ=os.environ, cwd=Path.cwd(), runner=run)


def imported(target: Target, environ: dict[str, str], cwd: Path) -> Path:
    """Return what the interpreter itself would import; nothing is."""
    code = "import importlib.util; print(importlib.util.find_spec('onnxruntime').origin)"
    done = subprocess.run(
        [target.executable, "-c", code],
        env=environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip())


def same(target: Target, environ: dict[str, str], cwd: Path) -> str | None:
    """Return what is found, having asked the interpreter too; None: the environment's own."""
    found = find_shadow(target, environ, cwd)
    taken = imported(target, environ, cwd)
    own = taken == Path(target.purelib) / "onnxruntime" / "__init__.py"
    assert own if found is None else found.resolve() == taken.resolve()
    return None if found is None else found.name


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("onnxruntime.py", "onnxruntime.py"),
        ("onnxruntime/__init__.py", "__init__.py"),
        (f"onnxruntime{EXTENSION_SUFFIXES[0]}", f"onnxruntime{EXTENSION_SUFFIXES[0]}"),
        ("onnxruntime/notes.txt", None),
        ("onnxruntime.txt", None),
        ("onnxruntime_tools.py", None),
    ],
)
@pytest.mark.parametrize("place", ["cwd", "first", "second"])
def test_a_file_before_the_environment(
    target: Target, tmp_path: Path, file: str, found: str | None, place: str
) -> None:
    folders = {name: tmp_path / name for name in ("cwd", "first", "second")}
    for folder in folders.values():
        folder.mkdir()
    path = folders[place] / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    entries = os.pathsep.join(["", str(folders["first"]), "../second", "/nowhere"])

    assert same(target, {"PYTHONPATH": entries}, folders["cwd"]) == found


def test_nothing_is_before_it(target: Target, tmp_path: Path) -> None:
    assert same(target, {}, tmp_path) is None
    assert same(target, {"PYTHONPATH": ""}, tmp_path) is None


def test_what_comes_after_the_environment_is_no_matter(target: Target, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").touch()
    entries = os.pathsep.join([target.purelib, str(tmp_path)])
    (tmp_path / "empty").mkdir()

    assert same(target, {"PYTHONPATH": entries}, tmp_path / "empty") is None
    assert find_shadow(target, {}, Path(target.purelib)) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH is new in 3.11")
def test_a_safe_path_leaves_the_current_folder_out(target: Target, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").touch()

    assert same(target, {"PYTHONSAFEPATH": "1"}, tmp_path) is None
    assert same(target, {}, tmp_path) == "onnxruntime.py"
