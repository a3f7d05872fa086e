"""A uv or PDM project in which another distribution requires onnxruntime leaves that out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.requirements.files import rewrite_files, write_rewritten
from ortgpu_fix.requirements.overrides import OVERRIDE, exclude_cpu_build
from ortgpu_fix.requirements.workspace import find_root

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEAD = '[project]\nname = "app"\nversion = "1"\n'
PIN = "onnxruntime-gpu==1.26.0"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + 'dependencies = ["fastembed"]\n',
        HEAD + "dependencies = []",
        HEAD + 'dependencies = [\n    "fastembed",  # vectors\n]\n',
        HEAD + '\n[tool.uv]\noverride-dependencies = ["numpy<2"]\n',
        HEAD + "\n[tool.uv] # of this project\npackage = false\n",
        HEAD + '\n[tool.uv]\npackage = false\n\n[tool.uv.sources]\nx = { path = "x" }\n',
        '[tool.ruff]\n# dependencies = [\n[project]\nname = "app"\nversion = "1"\n',
    ],
)
def test_both_lines_are_added_and_nothing_else_changes(text: str) -> None:
    new = exclude_cpu_build(text, "1.26.0", "uv")
    before, after = tomllib.loads(text), tomllib.loads(new.text)
    lines = new.text.splitlines()

    assert after["project"].pop("dependencies")[0] == PIN
    assert after["tool"]["uv"].pop("override-dependencies")[0] == OVERRIDE
    before["project"].pop("dependencies", None)
    before.setdefault("tool", {}).setdefault("uv", {}).pop("override-dependencies", None)
    assert after == before
    assert all(
        edit.done == "added" and str(edit.after) in lines[edit.line - 1] for edit in new.edits
    )
    assert [line for line in text.splitlines() if "#" in line] == [
        line for line in lines if "#" in line
    ]
    assert exclude_cpu_build(new.text, "1.26.0", "uv").edits == ()


UV = f'[tool.uv]\noverride-dependencies = ["{OVERRIDE}"]\n'
PROJECT = ("[project] dependencies", PIN)
OVERRIDES = ("[tool.uv] override-dependencies", OVERRIDE)
OTHER = '[tool.x]\ndependencies = ["x"]\n'


@pytest.mark.parametrize(
    ("text", "expected", "edits"),
    [
        ("\n[project]\n", f'\n[project]\ndependencies = ["{PIN}"]\n\n{UV}', [3, 6]),
        (HEAD[:-1], f'[project]\ndependencies = ["{PIN}"]\n{HEAD[10:]}\n{UV}', [2, 7]),
        (
            f"{HEAD}dependencies = []\n\n{UV[:-2]}, 'numpy<2']",
            f"{HEAD}dependencies = [\"{PIN}\"]\n\n{UV[:-2]}, 'numpy<2']",
            [4, None],
        ),
        (
            f"{HEAD}dependencies = [3, 'what is this', 'onnxruntime']\n\n{UV}",
            f"{HEAD}dependencies = [\"{PIN}\", 3, 'what is this', 'onnxruntime']\n\n{UV}",
            [4, None],
        ),
        (
            f'{OTHER}{HEAD}dependencies = ["onnxruntime-gpu[cuda]"]\n',
            f'{OTHER}{HEAD}dependencies = ["onnxruntime-gpu[cuda]"]\n\n{UV}',
            [None, 9],
        ),
        (
            f'{OTHER}{HEAD}dependencies = [ \n    "x",\n]\n{UV}# "{PIN}"\n',
            f'{OTHER}{HEAD}dependencies = [\n    "{PIN}", \n    "x",\n]\n{UV}# "{PIN}"\n',
            [7, None],
        ),
        (
            f'{HEAD}dependencies = ["{PIN}"]\n[tool.uv.sources]\nx = {{ path = "x" }}\n',
            f'{HEAD}dependencies = ["{PIN}"]\n[tool.uv.sources]\nx = {{ path = "x" }}\n\n{UV}',
            [None, 9],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_is_added_where(text: str, expected: str, edits: list[int | None], end: str) -> None:
    """With the line ends of the file, and never in a list of the same name elsewhere."""
    new = exclude_cpu_build(text.replace("\n", end), "1.26.0", "uv")

    rows = zip(edits, (PROJECT, OVERRIDES), strict=True)
    assert new.text == expected.replace("\n", end)
    assert [(edit.line, edit.before, edit.after) for edit in new.edits] == [
        (line, *row) for line, row in rows if line is not None
    ]


@pytest.mark.parametrize(
    "text",
    [
        'project = { name = "app", version = "1" }\n',
        f'{HEAD}"dependencies" = ["x"]\n\n[tool.uv]\noverride-dependencies = ["onnxruntime<1"]\n',
    ],
)
def test_what_is_written_oddly_is_left_and_told(text: str) -> None:
    new = exclude_cpu_build(text, "1.26.0", "uv")

    assert [edit.done for edit in new.edits if edit.after is None] == ["odd"]
    assert (new.edits[0].line, new.edits[0].before) == (1, "[project] dependencies")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + 'dependencies = ["fastembed"]\n',
        HEAD + '\n[tool.pdm.resolution]\nexcludes = [\n    "x",\n]\n',
        HEAD + "\n[tool.pdm]\ndistribution = false\n",
    ],
)
def test_a_project_of_pdm_excludes_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    (tmp_path / "pdm.lock").touch()
    write_rewritten(rewrite_files([str(file)], "1.26.0", {}, transitive=True))
    before, after = tomllib.loads(text), tomllib.loads(file.read_text())

    assert after["project"].pop("dependencies")[0] == PIN
    assert after["tool"]["pdm"]["resolution"].pop("excludes")[0] == "onnxruntime"
    before["project"].pop("dependencies", None)
    before.setdefault("tool", {}).setdefault("pdm", {}).setdefault("resolution", {}).pop(
        "excludes", None
    )
    assert after == before
    assert rewrite_files([str(file)], "1.26.0", {}, transitive=True) == ()


@pytest.mark.parametrize(
    ("tool", "excluded"),
    [("uv", "onnxruntime; python_version < '3.11'"), ("pdm", "onnxruntime")],
)
@pytest.mark.parametrize("allowed", [">=3.9", ">=3.11"])
def test_an_older_python_that_the_project_allows_keeps_the_cpu_build(
    tmp_path: Path, tool: str, excluded: str, allowed: str
) -> None:
    """Where its tool can say so; a lock that requires the GPU build there cannot be made."""
    file = tmp_path / "pyproject.toml"
    file.write_text(f'{HEAD}requires-python = "{allowed}"\n')
    (tmp_path / f"{tool}.lock").touch()
    files = rewrite_files([str(file)], "1.26.0", {}, transitive=True, python="3.11")
    marker, wanted = ("; python_version >= '3.11'", excluded) if "9" in allowed else ("", None)
    [required, left_out] = [edit.after for edit in files[0].edits]

    assert required == f"{PIN}{marker}"
    assert left_out == (wanted or {"uv": OVERRIDE, "pdm": "onnxruntime"}[tool])
    write_rewritten(files)
    assert rewrite_files([str(file)], "1.26.0", {}, transitive=True, python="3.11") == ()


def test_a_project_of_poetry_is_left(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(HEAD + '\n[tool.poetry]\nname = "app"\n')
    (tmp_path / "poetry.lock").touch()

    [left] = rewrite_files([str(file)], "1.26.0", {}, transitive=True)
    assert [edit.done for edit in left.edits] == ["absent"]
    assert left.before == left.after


@pytest.mark.parametrize("by", ["lock", "table", None])
def test_only_a_project_of_uv_is_edited(tmp_path: Path, by: str | None) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(HEAD + ("\n[tool.uv]\npackage = false\n" if by == "table" else ""))
    if by == "lock":
        (tmp_path / "uv.lock").touch()

    [left] = rewrite_files([str(file)], "1.26.0", {})
    assert [edit.done for edit in left.edits] == ["absent"]
    write_rewritten(rewrite_files([str(file)], "1.26.0", {}, transitive=True))
    assert (OVERRIDE in file.read_text()) == (by is not None)


ROOT = '[tool.uv.workspace]\nmembers = ["./packages/*", 3, ""]\nexclude = ["packages/old"]\n'


def workspace(tmp_path: Path, name: str = "packages/a") -> tuple[Path, Path]:
    """Write a workspace and a project in it; return both files."""
    member = tmp_path / name / "pyproject.toml"
    member.parent.mkdir(parents=True)
    member.write_text(f'{HEAD}requires-python = ">=3.11"\n')
    root = tmp_path / "pyproject.toml"
    root.write_text(ROOT)
    return root, member


def test_a_member_of_a_workspace_gets_the_pin_and_its_root_the_override(tmp_path: Path) -> None:
    """uv ignores the override of a member. A root that is no project is made none."""
    root, member = workspace(tmp_path)
    files = rewrite_files([str(member), str(root)], "1.26.0", {}, transitive=True, python="3.11")
    write_rewritten(files)

    assert [(file.path, edit.after) for file in files for edit in file.edits] == [
        (member, PIN),
        (root, "onnxruntime; python_version < '3.11'"),
    ]
    assert "override" not in member.read_text()
    assert "[project]" not in root.read_text()
    assert rewrite_files([str(member)], "1.26.0", {}, transitive=True) == ()


def test_a_root_that_is_not_named_is_told_and_left(tmp_path: Path) -> None:
    root, member = workspace(tmp_path)
    root.write_text(text := f'{HEAD}requires-python = ">=3.9"\n{ROOT}')
    files = rewrite_files([str(member)], "1.26.0", {}, transitive=True, python="3.11")

    assert [(file.path, edit.after, edit.done) for file in files for edit in file.edits] == [
        (member, PIN, "added"),
        (root, None, "root"),
    ]
    before = "[tool.uv] override-dependencies: onnxruntime; python_version < '3.11'"
    assert files[1].edits[0].before == before
    write_rewritten(files)
    assert root.read_text() == text
    assert rewrite_files([str(member)], "1.26.0", {}) == ()


@pytest.mark.parametrize("name", ["packages/old", "other", "packages/a/b", "x/packages/a"])
def test_what_is_no_member_of_the_workspace_above_it_is_a_project_of_its_own(
    tmp_path: Path, name: str
) -> None:
    _, member = workspace(tmp_path, name)

    assert find_root(member) is None


@pytest.mark.parametrize("root", [b"[[", b"\xff", b'[project]\nname = "x"\n'])
def test_a_folder_above_that_is_no_workspace(tmp_path: Path, root: bytes) -> None:
    above, member = workspace(tmp_path)
    (tmp_path / "packages/pyproject.toml").mkdir()
    assert find_root(member) == above
    above.write_bytes(root)

    assert find_root(member) is None


@pytest.mark.slow
@pytest.mark.online
def test_uv_then_locks_the_gpu_build_alone(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    python = "{}.{}".format(*sys.version_info)
    file.write_text(
        f'{HEAD}requires-python = "=={python}.*"\ndependencies = ["fastembed"]\n\n[tool.uv]\n'
        "environments = [\"sys_platform == 'linux' and platform_machine == 'x86_64'\"]\n"
    )
    write_rewritten(rewrite_files([str(file)], "1.26.0", {}, transitive=True))
    uv = shutil.which("uv") or "uv"
    command = [uv, "lock", "--no-config", "--quiet", "--python", sys.executable]
    subprocess.run(command, cwd=tmp_path, check=True)

    names = [row["name"] for row in tomllib.loads((tmp_path / "uv.lock").read_text())["package"]]
    assert "onnxruntime-gpu" in names
    assert "onnxruntime" not in names
