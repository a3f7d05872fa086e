"""The project's own tools: what the plan tells them to do, done by the real ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from environments import require_ensurepip
from told import values_of

import synthetic
from ortgpu_fix.cli.machine import with_surroundings
from ortgpu_fix.facts.target import Target
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from support import standin_wheels
from support.standin_wheels import Venv, make_venv

SCRIPT = Path(__file__).parents[2] / "scripts/prove/projects.py"


@pytest.mark.parametrize(
    ("lock", "tool"),
    [("uv.lock", "uv"), ("Pipfile.lock", "pipenv"), ("x", None)],
)
def test_the_lock_beside_an_environment_names_its_tool(
    tmp_path: Path, lock: str, tool: str | None
) -> None:
    (tmp_path / lock).touch()
    venv: Venv = make_venv(tmp_path / ".venv", pip=False)
    found = with_surroundings(synthetic.facts(), venv.target(), {})

    assert found.python.project == tool


@pytest.mark.parametrize("lock", ["uv.lock", "x"])
def test_what_a_tool_wrote_into_the_environment_of_one_program_names_it(
    tmp_path: Path, lock: str
) -> None:
    """Whatever lies in the folder of all such environments."""
    venv: Venv = make_venv(tmp_path / "tools" / "app", pip=False)
    (tmp_path / "tools" / "app" / "uv-receipt.toml").write_text(
        '    { name = "onnxruntime-gpu", specifier = "==1.26.0" },\n'
    )
    (tmp_path / "tools" / lock).touch()
    python = with_surroundings(synthetic.facts(), venv.target(), {}).python

    assert (python.project, python.locked) == ("uv-tool", "1.26.0")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ('[[package]]\nname = "onnxruntime-gpu"\nversion = "1.26.0"\nsource = {}\n', "1.26.0"),
        ('[[package]]\nname = "onnxruntime"\nversion = "1.26.0"\n', None),
    ],
)
def test_the_release_in_a_lock_is_a_fact(tmp_path: Path, text: str, release: str | None) -> None:
    (tmp_path / "uv.lock").write_text(text)
    venv: Venv = make_venv(tmp_path / ".venv", pip=False)

    assert with_surroundings(synthetic.facts(), venv.target(), {}).python.locked == release
    conda = venv.target()._replace(kind="conda")
    assert with_surroundings(synthetic.facts(), conda, {}).python.locked is None


def test_an_environment_that_pipenv_keeps_elsewhere_names_its_project(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    lock = '{"default": {"onnxruntime-gpu": {"version": "==1.26.0"}}}'
    (tmp_path / "app/Pipfile.lock").write_text(lock)
    venv = make_venv(tmp_path / "virtualenvs/app-1234", pip=False)
    (tmp_path / "virtualenvs/app-1234/.project").write_text(f"{tmp_path / 'app'}\n")
    python = with_surroundings(synthetic.facts(), venv.target(), {}).python

    assert (python.project, python.locked) == ("pipenv", "1.26.0")


def test_a_conda_environment_that_a_file_here_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pixi says so itself, in the environment; what a venv has beside it makes none of conda's."""
    venv = make_venv(tmp_path / "envs" / "app", pip=False).target()
    conda = venv._replace(kind="conda")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environment.yml").write_text("name: app\n")

    def project(target: Target) -> str | None:
        return with_surroundings(synthetic.facts(), target, {}).python.project

    assert (project(conda), project(venv)) == ("conda", None)
    assert project(conda._replace(managed_by="pixi")) == "pixi"
    (tmp_path / "environment.yml").write_text("name: other\n")
    assert project(conda) is None


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.parametrize("kind", ["uv", "requirements"])
def test_a_project_that_was_changed_makes_the_same_environment_again(
    tmp_path: Path, kind: str
) -> None:
    require_ensurepip()
    command = [sys.executable, str(SCRIPT), "--only", kind, "--results", str(tmp_path)]
    finished = subprocess.run(
        command, env=standin_wheels.clean_environment(), capture_output=True, text=True, check=False
    )

    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_a_copy_below_the_environment_stays_and_is_named() -> None:
    below = {"name": "onnxruntime", "version": "1.22.0", "outside": True}
    cudnn = {"name": "nvidia-cudnn-cu13", "version": "9.28.0.42", "outside": True}
    made = resolve(synthetic.facts(below, cudnn), PlanOptions(), synthetic.matrix())
    codes = [row.code for row in made.findings]

    assert (made.verdict, made.uninstall) == ("fixable", ())
    assert "onnxruntime-gpu" in {wheel.name for wheel in made.install}
    assert "copy-outside" in codes
    assert "cpu-build-installed" not in codes


def test_a_copy_in_the_user_s_site_goes_before_the_environment() -> None:
    """What it has itself is not imported first then."""
    below = {"name": "onnxruntime", "version": "1.22.0", "outside": True}
    facts = synthetic.facts(below)
    python = facts.python._replace(shadow="~/site-packages/onnxruntime/__init__.py")
    made = resolve(facts._replace(python=python), PlanOptions(), synthetic.matrix())
    codes = {row.code for row in made.findings}

    assert "onnxruntime-shadowed" in codes
    assert not codes & {"copy-outside", "cpu-build-installed"}


def test_who_loses_an_ordinary_requirement_is_named() -> None:
    """uv chooses the version later, and any that onnxruntime-gpu takes is too new for the app."""
    app = {"name": "app", "version": "1.0", "requires": ["protobuf<4"]}
    facts = synthetic.facts("protobuf 3.20.3", app, driver="13.0")
    options = PlanOptions(onnxruntime="==1.31.1", conflicts=True)

    [found] = [
        row
        for row in resolve(facts, options, load_matrix()).findings
        if row.code == "would-conflict"
    ]

    assert values_of(found)["by"] == "app 1.0 (protobuf<4)"
