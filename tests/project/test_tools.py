"""The tool of a project locks a mirror of it, and nothing of the project changes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.project.model import FileChange, Project
from ortgpu_fix.project.tools import Locked, Tool, find_tool, lock_project, names_of
from ortgpu_fix.utils.process import Finished, run
from support.local_index import make_wheel
from support.standin_wheels import clean_environment, find_uv

UV_LINES = """[project]
name = "app"
version = "0"
requires-python = ">=3.8"
dependencies = ["onnxruntime", "near"]

[tool.uv.sources]
onnxruntime = { path = "gpu-wheels/onnxruntime-1.0+x-py3-none-any.whl" }
near = { path = "../near", editable = true }
"""
NEAR = '[project]\nname = "near"\nversion = "0"\nrequires-python = ">=3.8"\n'


def project_of(folder: Path) -> tuple[Project, list[FileChange]]:
    """Return a uv project without requirements, and what is to change there."""
    root = folder / "app"
    (folder / "near").mkdir(parents=True)
    (folder / "near/pyproject.toml").write_text(NEAR)
    root.mkdir()
    path = root / "pyproject.toml"
    path.write_text('[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.8"\n')
    wheel = make_wheel(folder / "made", "onnxruntime", "1.0+x").read_bytes()
    changes = [
        FileChange(path, path.read_bytes(), UV_LINES.encode()),
        FileChange(root / "gpu-wheels/onnxruntime-1.0+x-py3-none-any.whl", None, wheel),
    ]
    return Project("uv", root, {path: path.read_bytes()}, root / "uv.lock"), changes


def uv_of(project: Project, folder: Path) -> Tool:
    """Return the real uv, which asks nobody."""
    environ = clean_environment() | {"UV_CACHE_DIR": str(folder / "cache")}
    environ["PATH"] = f"{Path(find_uv()).parent}{os.pathsep}{environ['PATH']}"
    return find_tool(project, folder / ".venv", environ, run, "", offline=True)


def test_uv_locks_with_a_neighbour_and_the_project_is_as_it_was(tmp_path: Path) -> None:
    project, changes = project_of(tmp_path / "work")
    tool = uv_of(project, tmp_path)
    made = lock_project(tool, project, changes, {"near"})
    assert made.changes[:-1] == tuple(changes)
    lock = made.changes[-1]
    assert (lock.path, lock.before) == (project.root / "uv.lock", None)
    assert b'source = { path = "gpu-wheels/onnxruntime-1.0+x-py3-none-any.whl" }' in lock.after
    assert b'source = { editable = "../near" }' in lock.after
    assert made.more == ("+ onnxruntime",)
    assert [path.name for path in project.root.iterdir()] == ["pyproject.toml"]


def test_what_cannot_be_locked_is_told_in_the_words_of_the_tool(tmp_path: Path) -> None:
    project, changes = project_of(tmp_path / "work")
    changes[0] = changes[0]._replace(after=UV_LINES.replace("../near", "../far").encode())
    with pytest.raises(Error) as caught:
        lock_project(uv_of(project, tmp_path), project, changes, ())
    assert caught.value.code == "project-lock-failed"
    assert "far" in str(caught.value.values["said"])


def test_without_a_lock_there_is_nothing_more_to_change(tmp_path: Path) -> None:
    project, changes = project_of(tmp_path)
    assert lock_project(None, project, changes, ()).changes == tuple(changes)


def test_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    project, _ = project_of(tmp_path)
    for other in (project, project._replace(tool="poetry")):
        with pytest.raises(Error) as caught:
            find_tool(other, tmp_path, {"PATH": str(tmp_path)}, run, "", offline=False)
        assert caught.value.code == "project-tool-missing"


PDM_SAYS = """STATUS: Resolving packages from lockfile...
Packages to add:
  - flatbuffers 25.2.10
Packages to update:
  - numpy 2.2.6 -> 2.4.0
"""
POETRY_SAYS = """Installing dependencies from lock file

Package operations: 1 install, 1 update, 1 removal, 1 skipped

  - Installing flatbuffers (25.2.10)
  - Updating numpy (2.2.6 -> 2.4.0)
  - Removing ruff (0.1)
  - Installing packaging (25.0): Skipped for the following reason: Already installed
"""


def asked_of(
    name: str, version: str, says: str, folder: Path, *, locked: bool
) -> tuple[Locked, list[list[str]]]:
    """Lock a project by a tool that only says something; return that, and what it was asked."""
    asked: list[list[str]] = []

    def runner(argv: Sequence[str], **how: Any) -> Finished:
        asked.append([*argv[1:]])
        if argv[1] in {"lock", "update"}:
            Path(how["folder"], f"{name}.lock").write_text("new")
        assert how["env"]["VIRTUAL_ENV"] == str(folder / ".venv")
        assert "FORCE_COLOR" not in how["env"]
        return Finished(tuple(argv), 0, f"{version})" if argv[1] == "--version" else says, "")

    project, changes = project_of(folder / "work")
    project = project._replace(tool=name, lock=project.root / f"{name}.lock")
    if locked:
        (project.root / f"{name}.lock").write_text("old")
    (folder / name).touch(mode=0o755)
    environ = {"PATH": str(folder), "FORCE_COLOR": "1"}
    tool = find_tool(project, folder / ".venv", environ, runner, "", offline=False)
    return lock_project(tool, project, changes, names_of(["flatbuffers>=2"])), asked


@pytest.mark.parametrize(
    ("version", "lock", "sync"),
    [("1.8.5", ["lock", "--no-update"], ["install", "--sync"]), ("2.5.1", ["lock"], ["sync"])],
)
def test_poetry_says_what_its_sync_would_do_besides(
    version: str, lock: list[str], sync: list[str], tmp_path: Path
) -> None:
    """The words are those of Poetry, which is not there in every test."""
    said = f"Poetry (version {version}"
    made, asked = asked_of("poetry", said, POETRY_SAYS, tmp_path, locked=False)
    assert made.more == ("Updating numpy", "Removing ruff")
    assert made.changes[-1].after == b"new"
    assert asked == [["--version"], lock, [*sync, "--dry-run"]]


@pytest.mark.parametrize("locked", [False, True])
def test_pdm_moves_nothing_else_in_a_lock_that_is_there(tmp_path: Path, *, locked: bool) -> None:
    """The words are those of PDM, which is not there in every test."""
    made, asked = asked_of("pdm", "PDM, version 2.29.3", PDM_SAYS, tmp_path, locked=locked)
    assert made.more == ("numpy",)
    again = ["update", "--no-sync", "onnxruntime", "ortgpu-fix-libraries"]
    assert asked == [["--version"], again if locked else ["lock"], ["sync", "--dry-run"]]


@pytest.mark.parametrize(
    "head",
    [
        "pip-compile requirements.in",
        "uv pip compile requirements.in --emit-find-links -i https://b.c -o requirements.txt",
    ],
)
def test_what_pip_compile_made_is_compiled_again_and_finds_the_wheels(
    tmp_path: Path, head: str
) -> None:
    project, changes = project_of(tmp_path / "work")
    path, lock = project.root / "requirements.in", project.root / "requirements.txt"
    path.write_text("")
    lock.write_text(f"#\n#    {head}\n#\n--index-url https://a.b/simple\n")
    after = b"--no-index\n--find-links gpu-wheels\nonnxruntime==1.0+x\n"
    files = [FileChange(path, b"", after), changes[1]]
    (project.root / "pyproject.toml").unlink()  # `uv sync` is for projects that have one
    project = Project("pip-tools", project.root, {path: b""}, lock)
    made = lock_project(uv_of(project, tmp_path), project, files, ())
    rows = made.changes[-1].after.decode().splitlines()
    assert made.changes[-1].path == lock
    assert "--find-links gpu-wheels" in rows
    assert "onnxruntime==1.0+x" in rows
    assert ("--index-url https://a.b/simple" in rows[1]) is ("https://b.c" not in head)


def pipfile_lock(**versions: str) -> str:
    """Return a lock of Pipenv."""
    rows = {name: {"hashes": [], "version": f"=={version}"} for name, version in versions.items()}
    rows["onnxruntime"] = {"path": "gpu-wheels/onnxruntime-1.0+x-py3-none-any.whl"}
    return json.dumps({"_meta": {"pipfile-spec": 6}, "default": rows, "develop": {}})


@pytest.mark.parametrize("before", [None, "odd", pipfile_lock(numpy="2.2.6", flatbuffers="2.0")])
def test_pipenv_locks_our_two_anew_and_what_moves_besides_is_told(
    before: str | None, tmp_path: Path
) -> None:
    """Pipenv keeps what its lock has of an entry that now has a path, and has no dry sync."""
    project, changes = project_of(tmp_path / "work")
    lock = project.root / "Pipfile.lock"
    project = project._replace(tool="pipenv", lock=lock)
    if before is not None:
        lock.write_text(before)
    (tmp_path / "pipenv").touch(mode=0o755)
    after = pipfile_lock(numpy="2.4.0", flatbuffers="25.0")
    seen: list[str] = []

    def runner(argv: Sequence[str], **how: Any) -> Finished:
        found = Path(how["folder"], "Pipfile.lock")
        if argv[1] == "--version":
            return Finished(tuple(argv), 0, "pipenv, version 2026.10.3", "")
        seen.append(" ".join(argv[1:]))
        seen.extend([found.read_text()] if found.is_file() else [])
        found.write_text(after)
        return Finished(tuple(argv), 0, "", "")

    environ = {"PATH": str(tmp_path)}
    tool = find_tool(project, tmp_path / ".venv", environ, runner, "", offline=False)
    made = lock_project(tool, project, changes, {"flatbuffers"})

    assert made.changes[-1] == FileChange(
        lock, None if before is None else before.encode(), after.encode()
    )
    assert seen[0] == ("lock" if before is None else "upgrade --dev")
    if before is None or before == "odd":
        assert made.more == ()
        assert seen[1:] == ([before] if before else [])
    else:
        assert made.more == ("numpy 2.4.0",)
        assert json.loads(seen[1])["default"].keys() == {"numpy", "flatbuffers"}
