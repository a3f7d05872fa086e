"""A project in a plan: its lines as a diff, what comes with them, and why nothing changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.project.model import FileChange, Project
from ortgpu_fix.report.project import project_json, project_section

ROOT = Path("/p")
CHANGES = (
    FileChange(ROOT / "pyproject.toml", b'a\nx = ["old"]\n', b'a\nx = ["new"]\n'),
    FileChange(ROOT / "gpu-wheels/a-1-py3-none-any.whl", None, b"wheel"),
    FileChange(Path("/other/r.txt"), None, b"numpy\n"),
)


def rows(tool: str, problem: Error | None = None) -> list[str]:
    made = project_section(Project(tool, ROOT, {}), CHANGES, load_texts("en"), problem)
    return [str(made.heading), *(str(row.text) for row in made.rows)]


def test_the_lines_that_go_and_come_are_shown_and_nothing_of_a_wheel() -> None:
    assert rows("uv") == [
        "Project (uv): these lines change",
        "pyproject.toml",
        '- x = ["old"]',
        '+ x = ["new"]',
        "gpu-wheels/a-1-py3-none-any.whl",
        "/other/r.txt",
        "+ numpy",
    ]


@pytest.mark.parametrize(("tool", "name"), [("pdm", "PDM"), ("pipenv", "Pipenv")])
def test_it_is_said_whose_lock_is_for_one_system(tool: str, name: str) -> None:
    assert rows(tool)[-1].startswith(f"{name} locks one onnxruntime for all systems")


def test_why_a_project_cannot_be_changed_is_said() -> None:
    heading, said, hint = rows("requirements", Error("project-hashes"))
    assert heading == "Project (requirements): `--apply --write` cannot change it"
    assert said.startswith("The requirements file uses hashes")
    assert "ortgpu-fix lock" in hint


@pytest.mark.parametrize("written", [True, False])
def test_programs_get_the_same(*, written: bool) -> None:
    assert project_json(Project("uv", ROOT, {}), CHANGES[:2], written=written) == {
        "tool": "uv",
        "root": "/p",
        "written": written,
        "files": [
            {"file": "pyproject.toml", "diff": ['- x = ["old"]', '+ x = ["new"]']},
            {"file": "gpu-wheels/a-1-py3-none-any.whl", "diff": []},
        ],
    }
