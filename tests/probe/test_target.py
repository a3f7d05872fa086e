"""Which interpreter is meant, and what is said of those that do not answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from environments import make_prefix

from ortgpu_fix.errors import Error
from ortgpu_fix.probe.background import describe_target, start_probe
from ortgpu_fix.probe.interpreter import find_interpreter
from ortgpu_fix.probe.machine import described_target, target_of
from ortgpu_fix.utils import process as run
from support.pythons import find_python


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def fails(interpreter: Path, code: str, *, seconds: float = 20) -> Error:
    with pytest.raises(Error) as caught:
        describe_target(interpreter, runner=run.run, environ=os.environ, seconds=seconds)

    assert caught.value.code == code
    return caught.value


def test_the_folder_of_an_environment(venv: Path, tmp_path: Path) -> None:
    assert find_interpreter(str(venv.parents[1]), {}, tmp_path) == venv
    assert find_interpreter("venv", {}, tmp_path) == venv


def test_a_name_on_the_path(tmp_path: Path) -> None:
    python = program(tmp_path / "python3.99", "#!/bin/sh\n")

    assert find_interpreter("python3.99", {"PATH": str(tmp_path)}, Path("/")) == python


def test_what_is_active_goes_before_what_lies_here(tmp_path: Path) -> None:
    for name in ("active", "conda", ".venv"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").touch()
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    active = {"VIRTUAL_ENV": str(tmp_path / "active")}
    conda = {"CONDA_PREFIX": str(tmp_path / "conda"), "CONDA_DEFAULT_ENV": "gpu"}
    base = {**conda, "CONDA_DEFAULT_ENV": "base"}

    def chosen(environ: dict[str, str]) -> str:
        return find_interpreter(None, environ, tmp_path).parents[1].name

    assert chosen(active | conda) == "active"
    assert chosen(conda) == "conda"
    assert chosen(base) == ".venv"
    assert chosen({"VIRTUAL_ENV": ""}) == ".venv"
    assert chosen({"CONDA_PREFIX": str(tmp_path / "conda")}) == "conda"
    (tmp_path / ".venv" / "pyvenv.cfg").unlink()
    assert chosen(base) == "conda"
    for folder in ("bin", "Scripts"):
        (tmp_path / ".venv" / folder).mkdir(exist_ok=True)
        (tmp_path / ".venv" / folder / "activate").touch()
        assert chosen(base) == ".venv"  # what is wrong with it is said
        (tmp_path / ".venv" / folder / "activate").unlink()


def test_a_venv_that_is_first_on_the_path_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So images have it; `uvx` puts its own before it, and that is passed over."""
    for name in ("image", "archive-v0/made", "system", ".venv"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").touch()
        (tmp_path / name / "pyvenv.cfg").touch()
    (tmp_path / "system" / "pyvenv.cfg").unlink()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "made"))

    def chosen(*first: str, **environ: str) -> Path:
        path = os.pathsep.join(["", "empty", *(f"{name}/bin" for name in first)])
        return find_interpreter(None, {"PATH": path, **environ}, tmp_path)

    image, here = tmp_path / "image" / "bin" / "python", tmp_path / ".venv" / "bin" / "python"
    assert chosen("image", "system") == image
    assert chosen("archive-v0/made", "image") == image
    assert chosen("system", "image") == here
    assert chosen("archive-v0/made") == here
    assert chosen("image", VIRTUAL_ENV=".venv") == here
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "system"))
    assert chosen("image") == here  # an application's environment has this program in it


def test_a_venv_in_the_current_folder_has_one_of_two_names(tmp_path: Path) -> None:
    for name in ("venv", ".venv"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").touch()
        (tmp_path / name / "pyvenv.cfg").touch()
        assert find_interpreter(None, {}, tmp_path).parents[1].name == name


def test_at_last_the_interpreter_that_runs_us(tmp_path: Path) -> None:
    assert find_interpreter(None, {}, tmp_path) == Path(sys.executable)


@pytest.mark.parametrize("python", ["nowhere", "nowhere/bin/python"])
def test_nothing_there(python: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match="python-not-found"):
        find_interpreter(python, {"PATH": "/nowhere"}, tmp_path)


def test_an_active_environment_that_is_gone(tmp_path: Path) -> None:
    """Not silently another one."""
    with pytest.raises(Error, match="python-not-found"):
        find_interpreter(None, {"VIRTUAL_ENV": str(tmp_path / "gone")}, tmp_path)


def test_a_folder_without_a_python(tmp_path: Path) -> None:
    with pytest.raises(Error, match="python-folder-empty"):
        find_interpreter(str(tmp_path), {}, tmp_path)


def test_an_environment_whose_python_was_removed(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/nowhere/python3.9")

    with pytest.raises(Error) as caught:
        find_interpreter(str(tmp_path / "venv"), {}, tmp_path)

    assert caught.value.code == "python-broken"
    assert str(caught.value.values["target"]) == "/nowhere/python3.9"


@pytest.mark.skipif(sys.platform == "win32", reason="there its launcher refuses to start")
def test_an_environment_without_its_configuration(venv: Path, tmp_path: Path) -> None:
    """Its Python starts, as the one below: that one is not what was named."""
    folder = venv.parents[1]
    assert target_of(str(folder), environ=os.environ, cwd=tmp_path, runner=run.run).kind == "venv"
    (folder / "pyvenv.cfg").unlink()

    for environ, name in (({}, "venv"), ({"VIRTUAL_ENV": "venv"}, None), ({}, str(venv))):
        with pytest.raises(Error) as caught:
            target_of(name, environ=os.environ | environ, cwd=tmp_path, runner=run.run)
        assert caught.value.code == "venv-without-config"
        assert caught.value.values == {"path": folder, "prefix": Path(sys.base_prefix)}
    with pytest.raises(Error, match="venv-without-config"):
        described_target(start_probe(str(folder), os.environ))
    (folder / "bin" / "activate").write_text("conda activate\n")
    assert target_of("venv", environ=os.environ, cwd=tmp_path, runner=run.run).kind != "venv"


def test_a_python_that_is_where_it_says_is_whole(tmp_path: Path) -> None:
    """As virtualenv made them before 20: without `pyvenv.cfg`."""
    python = make_prefix(tmp_path / "whole")
    (python.parent / "activate").write_text("VIRTUAL_ENV=/whole\n")
    (tmp_path / "link").symlink_to("whole")
    here = str(tmp_path / "link" / "bin" / python.name)

    target = target_of(here, environ=os.environ, cwd=tmp_path, runner=run.run)

    assert target.kind != "venv"


def test_a_program_that_hangs(tmp_path: Path) -> None:
    path = program(tmp_path / "python", "#!/bin/sh\nsleep 60\n")

    assert fails(path, "python-hangs", seconds=0.3).values["seconds"] == "0.3"


@pytest.mark.parametrize("said", ["hello", '{"version": "3.11.7"}'])
def test_a_program_that_is_no_python(tmp_path: Path, said: str) -> None:
    path = program(tmp_path / "python", f"#!/bin/sh\ncat > /dev/null\necho '{said}'\n")

    with pytest.raises(Error) as caught:
        target_of(str(path), environ=os.environ, cwd=tmp_path, runner=run.run)

    assert caught.value.code == "python-garbage"
    assert caught.value.values["path"] == str(path)


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_a_python_that_is_too_old(version: str, tmp_path: Path) -> None:
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine")

    with pytest.raises(Error) as caught:
        target_of(str(found), environ=os.environ, cwd=tmp_path, runner=run.run)

    assert caught.value.code == "python-too-old"
    assert str(caught.value.values["version"]).startswith(version)
