"""The onnxruntime that a program imports in place of the environment's: as its own Python does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from environments import make_prefix, make_venv, own_base, put, put_onnxruntime, site_packages
from other_user import closed, with_others

from ortgpu_fix.facts.target import Target, packages_of
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.probe.mistaken import find_other_command, find_shadow
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


@with_others
def test_a_place_that_this_user_may_not_look_into_is_passed_over(
    target: Target, tmp_path: Path
) -> None:
    """Its Python passes over it, too. `sudo -u` starts a program in root's folder."""
    (tmp_path / "onnxruntime.py").touch()
    with closed(tmp_path):
        assert find_shadow(target, {"PYTHONPATH": str(tmp_path)}, tmp_path) is None
    assert find_shadow(target, {"PYTHONPATH": str(tmp_path)}, Path("/")) is not None


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


def user_folder(home: Path) -> Path:
    folder = home / ".local" / "lib" / own_base().name / "site-packages"
    folder.mkdir(parents=True)
    return folder


def test_the_users_own_folder_goes_before_a_python_that_is_no_venv(tmp_path: Path) -> None:
    python = make_prefix(tmp_path / "prefix")
    put_onnxruntime(site_packages(python), "onnxruntime-gpu", "1.26.0")
    put_onnxruntime(user_folder(tmp_path), "onnxruntime", "1.22.1")
    environ = {**os.environ, "HOME": str(tmp_path)}
    (tmp_path / "empty").mkdir()
    found = target_of(str(python), environ=environ, cwd=tmp_path, runner=run)
    outside = {row.name: row.outside for row in packages_of(found)}

    assert outside == {"onnxruntime": True, "onnxruntime-gpu": False}
    assert same(found, environ, tmp_path / "empty") == "__init__.py"
    assert same(found, {**environ, "PYTHONNOUSERSITE": "1"}, tmp_path / "empty") is None


def test_a_venv_goes_before_its_base_and_the_users_own_folder(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "prefix")
    put_onnxruntime(site_packages(base), "onnxruntime", "1.22.1")
    python = make_venv(base, tmp_path / "venv", "--system-site-packages")
    user_folder(tmp_path)
    environ = {**os.environ, "HOME": str(tmp_path)}
    (tmp_path / "empty").mkdir()
    below = target_of(str(python), environ=environ, cwd=tmp_path, runner=run)
    put_onnxruntime(site_packages(python), "onnxruntime-gpu", "1.26.0")
    found = target_of(str(python), environ=environ, cwd=tmp_path, runner=run)
    outside = {row.name: row.outside for row in packages_of(found)}

    assert [(row.name, row.outside) for row in packages_of(below)] == [("onnxruntime", True)]
    assert outside == {"onnxruntime": True, "onnxruntime-gpu": False}
    assert found.build is not None
    assert (found.build.distribution, found.user_site) == ("onnxruntime-gpu", None)
    assert same(found, environ, tmp_path / "empty") is None


def command_in(folder: Path, name: str = "rembg") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_the_program_that_path_has_before_the_environments_own(
    target: Target, tmp_path: Path
) -> None:
    info = put(
        Path(target.purelib),
        "rembg",
        "2.0.85",
        requires=["onnxruntime>=1.20; extra == 'cpu'"],
        extra={"entry_points.txt": "[console_scripts]\nrembg = rembg.cli:main\n\n[other]\nx = y\n"},
    )
    put(Path(target.purelib), "tools", "1", requires=["onnxruntime-tools", "onnx"])
    target = target_of(target.executable, environ=os.environ, cwd=tmp_path, runner=run)
    own, other = Path(target.scripts), command_in(tmp_path / "other")
    mine = command_in(own)
    before, after = (os.pathsep.join(map(str, row)) for row in ((other.parent, own), (own, other)))

    assert find_other_command(target, {"PATH": before}) == other
    assert find_other_command(target, {"PATH": after}) is None
    assert find_other_command(target, {"PATH": str(other.parent)}) is None  # not the active one
    assert find_other_command(target, {}) is None
    mine.unlink()
    assert find_other_command(target, {"PATH": before}) is None
    shutil.rmtree(info)
