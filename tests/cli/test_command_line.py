"""The command that a plan ends with is the whole command."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from ortgpu_fix import __main__
from ortgpu_fix.cli import described
from ortgpu_fix.cli.command_line import command_line
from ortgpu_fix.cli.commands import apply, verify
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import OWN_ENVIRONMENT
from ortgpu_fix.probe import interpreter

FLAGS = (
    "--python 'a venv' --driver 535.104.12 --gpu 8.0 --ignore-gpu 6.1 --ignore-gpu 7.0"
    " --ort '<1.27' --cuda 12 --torch match --requirement r.txt --no-autoload --no-provide"
    " --allow conda --offline --find-links wheels --index-url https://packages.example/simple"
    " --matrix more.toml"
)


def test_it_has_every_flag_that_was_given() -> None:
    arguments = parse(shlex.split(FLAGS)).options

    assert command_line(arguments, "--apply") == f"ortgpu-fix {FLAGS} --apply"


def test_it_leaves_out_passwords_and_what_is_not_wanted() -> None:
    arguments = parse(
        ["--facts", "f", "--index-url", "https://user:secret@packages.example/x?t=1"]
    ).options

    assert command_line(arguments, "--apply", leaving=frozenset({"facts"})) == (
        "ortgpu-fix --index-url https://packages.example/x --apply"
    )


def test_what_was_asked_for_and_cannot_be_is_told_as_that(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert __main__.main(["--facts", "example", "--ort", "1.31.0"]) == 3

    first, *_ = capsys.readouterr().out.splitlines()
    assert first == (
        "No onnxruntime-gpu matches `--ort 1.31.0` and works with the driver, GPU and Python below"
    )


@pytest.mark.parametrize(
    ("line", "told", "code"),
    [
        ("onnxruntime-gpu>=1.30", "r.txt requires onnxruntime-gpu>=1.30", 3),
        ("onnxruntime-gpu<1.20; python_version >= '3.8'", "1.19.2", 1),
    ],
)
def test_a_line_of_a_requirements_file_is_named_with_its_file_and_can_be_changed(
    line: str, told: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It read `onnxruntime-gpu<1.20 requires onnxruntime-gpu<1.20`, and named no way out."""
    (tmp_path / "r.txt").write_text(line)

    assert __main__.main(["--facts", "example", "-r", f"{tmp_path}/r.txt"]) == code

    said = capsys.readouterr().out
    assert told in said
    requirement = line.partition(";")[0]
    assert f"onnxruntime-gpu 1.26.0 a change to `{requirement}" in " ".join(said.split())


@pytest.mark.parametrize("mark", ["pipx_metadata.json", "archive-v0/x/pyvenv.cfg"])
def test_the_programs_private_environment_is_never_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    """`uvx` makes one in uv's cache, and leaves no mark in it."""
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).touch()
    prefix = tmp_path / "archive-v0" / "x" if "archive" in mark else tmp_path
    monkeypatch.setattr(interpreter.sys, "prefix", str(prefix))  # type: ignore[attr-defined]

    with pytest.raises(Error) as caught:
        interpreter.find_interpreter(None, {}, tmp_path)

    assert caught.value.code == "own-environment"


OF_THE_PROGRAM = {
    "ortgpu_fix": ["pip-api>=0.0.34", "rich>=13.7; python_version >= '3.8'"],
    "pip_api": ["pip", "typing-extensions_A.b"],
    "typing_extensions.a_B": [],
    "rich": ["Pygments<3,>=2", "ipywidgets<9; extra == 'jupyter'"],
    "pygments": [],
    "pip": [],
    "setuptools": [],
    "wheel": [],
    "uv": [],
    "pkg_resources": [],  # of Debian's older venvs
    "PyYAML": [],
    "PySocks": [],
}
OF_AN_APPLICATION: list[dict[str, list[str]]] = [
    {"flask": []},
    {"ipywidgets": []},  # of an extra that nobody asked for
    {"pip_api": ["pip"], "typer": ["rich"]},
]


@pytest.mark.parametrize("more", [{}, *OF_AN_APPLICATION])
def test_no_apply_fills_a_virtual_environment_of_this_program_alone(
    tmp_path: Path, more: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, requires in {**OF_THE_PROGRAM, **more}.items():
        info = tmp_path / "lib/python3.11/site-packages" / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        lines = [f"Name: {name}", *(f"Requires-Dist: {line}" for line in requires)]
        if name != "wheel":  # an uninstall that was killed
            (info / "METADATA").write_text("\n".join([*lines, "", "Requires-Dist: flask", ""]))
    monkeypatch.setattr(interpreter.sys, "prefix", str(tmp_path))  # type: ignore[attr-defined]
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    here = Path.cwd()
    assert not interpreter.is_alone({}, here)  # no virtual environment: a Python of an image

    for shown, alone in (("true", False), ("false", not more)):
        (tmp_path / "pyvenv.cfg").write_text(f"home = /\ninclude-system-site-packages = {shown}\n")
        assert interpreter.is_alone({}, here) == alone
        assert not interpreter.is_alone({"VIRTUAL_ENV": "/app"}, here)
        # Plans promise nothing that is refused, and no lock is held against what is ours alone.
        nowhere = (["plan"], ["facts"], ["lock"], ["download", "-d", "x"], ["lock", "--check", "x"])
        for words, new in (*((words, alone) for words in nowhere), (["check"], False)):
            assert described.describes_environment(parse(words).machine, {}, here) == new
    (tmp_path / "uv-receipt.toml").touch()
    assert not interpreter.is_alone({}, here)  # which plans refuse, too
    (tmp_path / "uv-receipt.toml").unlink()
    if not more:
        with pytest.raises(Error) as caught:
            apply.run(parse(["apply", "--driver", "580.95.05", "--gpu", "8.0"]).request, {}, "en")
        assert caught.value.code == "own-environment"
        assert caught.value.values == {"path": str(tmp_path)}
        with pytest.raises(Error) as caught:
            verify.run(parse(["verify"]).request, {}, "en")
        assert (caught.value.code, caught.value.values) == (
            *("own-environment", {"path": str(tmp_path)}),
        )
        with pytest.raises(Error, match="python-not-found"):
            verify.run(parse(["verify", "--python", str(tmp_path / "none")]).request, {}, "en")
        named = parse(["apply", "--python", str(tmp_path / "none"), "--yes"]).request
        with pytest.raises(Error, match="python-not-found"):
            apply.run(named, {}, "en")


def test_a_venv_that_is_first_on_the_path_is_active_as_images_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv, other = tmp_path / "own", tmp_path / "other"
    for folder in (venv, other):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch(mode=0o755)
    (venv / "pyvenv.cfg").touch()
    (tmp_path / "link").symlink_to(venv)
    monkeypatch.setattr(interpreter.sys, "prefix", str(venv))  # type: ignore[attr-defined]

    for first, alone in ((venv, False), (tmp_path / "link", False), (other, True)):
        path = f"{first / 'bin'}{os.pathsep}{venv / 'bin'}"
        assert interpreter.is_alone({"PATH": path}, tmp_path) == alone

    monkeypatch.chdir(other)
    (other / "python").touch(mode=0o755)
    for path, alone in ((".", True), ("bin", True), ("../own/bin", False), ("../link/bin", False)):
        assert interpreter.is_alone({"PATH": path}, other) == alone
    monkeypatch.chdir(venv / "bin")
    assert not interpreter.is_alone({"PATH": "."}, venv / "bin")


def test_who_named_the_environment_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = tmp_path / ".venv"
    assert interpreter.chosen_by(None, {}, tmp_path) == OWN_ENVIRONMENT
    venv.mkdir()
    (venv / "pyvenv.cfg").touch()
    assert interpreter.chosen_by(None, {}, tmp_path) == ".venv"
    conda = {"CONDA_DEFAULT_ENV": "x", "CONDA_PREFIX": "/x"}
    assert interpreter.chosen_by(None, conda, tmp_path) == "CONDA_PREFIX"
    assert interpreter.chosen_by(None, conda | {"CONDA_DEFAULT_ENV": "base"}, tmp_path) == ".venv"
    (venv / "bin").mkdir()
    (venv / "bin" / "python").touch()
    monkeypatch.setattr(interpreter.sys, "prefix", "/cache/archive-v0/x")  # type: ignore[attr-defined]
    assert interpreter.chosen_by(None, {"PATH": str(venv / "bin")}, tmp_path) == "PATH"
    assert interpreter.chosen_by(None, conda | {"VIRTUAL_ENV": "/v"}, tmp_path) == "VIRTUAL_ENV"
    assert interpreter.chosen_by("p", {"VIRTUAL_ENV": "/v"}, tmp_path) == "--python"
