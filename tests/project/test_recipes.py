"""What becomes of a project's files: few lines, in the user's own format, and the same again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ortgpu_fix.companions.build import LocalWheel
from ortgpu_fix.errors import Error
from ortgpu_fix.project.model import Project, Wanted
from ortgpu_fix.project.recipe import origin_of, project_changes

LINUX = "sys_platform == 'linux' and platform_machine == 'x86_64'"
OTHERS = "sys_platform != 'linux' or platform_machine != 'x86_64'"
REMARK = "# the wheels of gpu-wheels/ put onnxruntime on the NVIDIA GPU (written by ortgpu-fix)"


def wanted(release: str = "1.26.0", python: str = "3.10") -> Wanted:
    """Return what a plan of this release gives a project."""
    rows = [("onnxruntime", f"{release}+ortgpu"), ("ortgpu-fix-libraries", f"{release}+set1.2")]
    wheels = tuple(
        LocalWheel(name, version, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", b"")
        for name, version in rows
    )
    markers = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.11"}
    return Wanted(release, wheels, markers, python)


def changed(tool: str, *texts: str, release: str = "1.26.0", python: str = "3.10") -> list[str]:
    """Return the files of a project as they are to be."""
    names = ["pyproject.toml", "a/pyproject.toml", "b/pyproject.toml"]
    if tool == "pipenv":
        names = ["Pipfile"]
    if tool in {"requirements", "pip-tools"}:
        names = ["r.txt", "more.txt"]
    files = {Path("/p", name): text.encode() for name, text in zip(names, texts, strict=False)}
    project = Project(tool, Path("/p"), files)
    after = {row.path: row.after for row in project_changes(project, wanted(release, python))}
    return [after.get(path, content).decode() for path, content in files.items()]


def of_uv(dependencies: str, requires: str = ">=3.11") -> str:
    """Return a pyproject.toml as `uv init` writes it."""
    return f"""[project]
name = "app"
requires-python = "{requires}"
dependencies = [
{dependencies}
]
"""


SOURCES = f"""
[tool.uv.sources]
onnxruntime = {{path = "gpu-wheels/onnxruntime-1.26.0+ortgpu-py3-none-any.whl", marker = "{LINUX}"}}
{REMARK}
ortgpu-fix-libraries = {{path = "gpu-wheels/ortgpu_fix_libraries-1.26.0+set1.2-py3-none-any.whl"}}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('    "onnxruntime>=1.32.0",', '    "onnxruntime",'),
        ('    "onnxruntime>=1.20",', '    "onnxruntime>=1.20",'),
        ('    "onnxruntime==1.22.1", # why', '    "onnxruntime", # why'),
        ('    "onnxruntime (>=1.32.0,<2.0.0)",', '    "onnxruntime<2.0.0",'),
        ('    "onnxruntime-gpu>=1.31.1",', f'    "onnxruntime-gpu",\n    "onnxruntime; {LINUX}",'),
    ],
)
def test_uv_gets_one_more_requirement_and_two_sources(before: str, after: str) -> None:
    more = f'\n    "ortgpu-fix-libraries; {LINUX}",'
    [made] = changed("uv", of_uv(before))
    remark = " # why" if "# why" in after else ""
    lines = after.removesuffix(remark) + more
    assert made.replace(" # why", "") == of_uv(lines) + SOURCES
    assert made.count("# why") == before.count("# why")


def test_a_second_run_changes_nothing_and_an_upgrade_replaces_our_own_lines() -> None:
    once = changed("uv", of_uv('    "onnxruntime>=1.32.0",'))
    assert changed("uv", *once) == once
    assert changed("uv", *once, release="1.31.1") == [once[0].replace("1.26.0", "1.31.1")]


def test_a_project_for_more_pythons_gets_the_wheels_where_they_fit() -> None:
    [made] = changed("uv", of_uv('    "fastembed",', ">=3.8"))
    assert f"    \"onnxruntime; {LINUX} and python_version >= '3.10'\",\n" in made
    assert f"    \"ortgpu-fix-libraries; {LINUX} and python_version >= '3.10'\",\n" in made


def test_the_line_stays_in_the_group_or_extra_in_which_it_is() -> None:
    text = (
        '[project]\nname = "app"\ndependencies = ["numpy"]\n\n[project.optional-dependencies]\n'
        'ml = ["onnxruntime>=1.32"]\n\n[dependency-groups]\n'
        'dev = ["pytest", {include-group = "x"}]\nx = []\n'
    )
    [made] = changed("uv", text, python="3.8")
    assert 'dependencies = ["numpy"]\n' in made
    assert 'ml = ["onnxruntime", "ortgpu-fix-libraries; ' in made
    assert 'dev = ["pytest", {include-group = "x"}]\nx = []\n' in made


def test_a_line_for_other_machines_and_one_with_an_address_stay() -> None:
    rows = (
        "    \"onnxruntime>=1.32; sys_platform == 'darwin'\",\n"
        '    "onnxruntime @ https://example.org/onnxruntime-1.0-py3-none-any.whl",'
    )
    [made] = changed("uv", of_uv(rows))
    assert rows in made
    assert f'    "onnxruntime; {LINUX}",\n' in made


def test_in_a_workspace_the_member_has_the_line_and_the_root_the_sources() -> None:
    root = '[project]\nname = "r"\ndependencies = ["a"]\n\n[tool.uv.workspace]\nmembers = ["*"]\n'
    member = '[project]\nname = "a"\ndependencies = ["onnxruntime>=1.32"]\n'
    other = '[project]\nname = "b"\ndependencies = []\n'
    made = changed("uv", root, member, other, python="3.8")
    assert 'dependencies = ["a"]\n' in made[0]
    assert "[tool.uv.sources]\n" in made[0]
    assert 'dependencies = ["onnxruntime", "ortgpu-fix-libraries; ' in made[1]
    assert "sources" not in made[1]
    assert made[2] == other


POETRY = f"""onnxruntime = [
    {{path = "gpu-wheels/onnxruntime-1.26.0+ortgpu-py3-none-any.whl", markers = "{LINUX}"}},
    {{version = "VERSION", markers = "{OTHERS}"}},
]"""
POETRY_LIBRARIES = (
    f"{REMARK}\nortgpu-fix-libraries = "
    '{path = "gpu-wheels/ortgpu_fix_libraries-1.26.0+set1.2-py3-none-any.whl", '
    f'markers = "{LINUX}"}}\n'
)


def test_poetry_1_keeps_the_version_for_machines_without_the_wheels() -> None:
    text = (
        '[tool.poetry]\nname = "app"\n\n[tool.poetry.dependencies]\npython = "^3.10"\n'
        'onnxruntime = "^1.32"  # ours\nonnxruntime-gpu = "^1.31"\nfastembed = "*"\n\n'
        "[build-system]\nrequires = []\n"
    )
    [made] = changed("poetry", text)
    wanted_text = text.replace(
        'onnxruntime = "^1.32"', POETRY.replace("VERSION", "^1.32,!=1.26.0+ortgpu")
    )
    wanted_text = wanted_text.replace('"^1.31"', '"*"')
    wanted_text = wanted_text.replace(
        'fastembed = "*"\n\n', f'fastembed = "*"\n{POETRY_LIBRARIES}\n'
    )
    assert made == wanted_text
    assert changed("poetry", made) == [made]
    [newer] = changed("poetry", made, release="1.31.1")
    assert newer == made.replace("1.26.0", "1.31.1")


def test_poetry_2_has_the_requirements_in_the_project_and_their_sources_in_its_table() -> None:
    text = of_uv('    "onnxruntime (>=1.32.0,<2.0.0)",\n    "fastembed",') + "\n[build-system]\n"
    [made] = changed("poetry", text)
    assert f'    "onnxruntime<2.0.0",\n    "ortgpu-fix-libraries; {LINUX}",\n' in made
    both = POETRY.replace("VERSION", "!=1.26.0+ortgpu")
    assert f"[tool.poetry.dependencies]\n{both}\n{POETRY_LIBRARIES}" in made
    assert changed("poetry", made) == [made]


def test_poetry_keeps_the_group_in_which_the_dependency_is() -> None:
    text = (
        '[tool.poetry.dependencies]\npython = ">=3.10"\n\n[tool.poetry.group.ml.dependencies]\n'
        'onnxruntime = {version = "1.20.*", extras = []}\n'
    )
    [made] = changed("poetry", text)
    assert made.startswith('[tool.poetry.dependencies]\npython = ">=3.10"\n\n[tool.poetry.group')
    assert '{version = "1.20.*,!=1.26.0+ortgpu", markers' in made


def test_poetry_takes_the_placeholder_for_no_way_of_a_version_elsewhere() -> None:
    text = '[tool.poetry.dependencies]\npython = ">=3.10"\nonnxruntime = "^1.20 || ^2.0"\n'
    [made] = changed("poetry", text)
    assert '{version = "^1.20,!=1.26.0+ortgpu || ^2.0,!=1.26.0+ortgpu", markers' in made
    assert changed("poetry", made) == [made]


PIPFILE = """[[source]]
url = "https://pypi.org/simple"
name = "pypi"

[packages]
fastembed = "*"
ONNXRUNTIME

[dev-packages]
pytest = "*"

[requires]
python_version = "3.11"
"""
LOADER = "ortgpu_fix_libraries-1.26.0+set1.2-py3-none-any.whl"
PIPENV = f"""onnxruntime = {{path = "gpu-wheels/onnxruntime-1.26.0+ortgpu-py3-none-any.whl"}}
{REMARK}
ortgpu-fix-libraries = {{path = "gpu-wheels/{LOADER}"}}"""


@pytest.mark.parametrize(
    "line", ['onnxruntime = "*"', 'onnxruntime = {version = "*", index = "pypi"}']
)
def test_a_pipfile_gets_both_wheels_by_their_paths(line: str) -> None:
    [made] = changed("pipenv", PIPFILE.replace("ONNXRUNTIME", line))
    assert made == PIPFILE.replace("ONNXRUNTIME", PIPENV)
    assert changed("pipenv", made) == [made]
    assert changed("pipenv", made, release="1.31.1") == [made.replace("1.26.0", "1.31.1")]


def test_pipenv_keeps_the_category_in_which_onnxruntime_is() -> None:
    text = PIPFILE.replace("ONNXRUNTIME\n", "").replace('pytest = "*"', 'onnxruntime = "==1.26.0"')
    [made] = changed("pipenv", text)
    assert made == text.replace('onnxruntime = "==1.26.0"', PIPENV)

    ours = 'ortgpu-fix-libraries = {path = "gpu-wheels/old.whl"}'
    [moved] = changed("pipenv", text.replace('fastembed = "*"', ours))
    assert moved == made.replace('fastembed = "*"\n', "")


def test_a_pipfile_without_onnxruntime_gets_it_and_no_gpu_package_that_disagrees() -> None:
    text = PIPFILE.replace("ONNXRUNTIME", 'onnxruntime-gpu = "==1.31.1"')
    [made] = changed("pipenv", text)
    assert made == PIPFILE.replace("ONNXRUNTIME", f'onnxruntime-gpu = "*"\n{PIPENV}')
    assert "[packages]\nonnxruntime = {path" in changed("pipenv", "")[0]


PDM = "file:///${PROJECT_ROOT}/gpu-wheels"


def test_pdm_gets_the_loader_by_its_address_and_the_placeholder_for_everybody() -> None:
    loader = f"ortgpu-fix-libraries @ {PDM}/ortgpu_fix_libraries-1.26.0+set1.2-py3-none-any.whl"
    text = of_uv('    "onnxruntime>=1.32.0",\n    "other @ https://a.b/onnxruntime-1-any.whl",')
    [made] = changed("pdm", text)
    lines = f'    "onnxruntime",\n    "{loader} ; {LINUX}",\n'
    assert made == of_uv(f'{lines}    "other @ https://a.b/onnxruntime-1-any.whl",') + (
        f"\n[tool.pdm.resolution.overrides]\n{REMARK}\n"
        f'onnxruntime = "{PDM}/onnxruntime-1.26.0+ortgpu-py3-none-any.whl"\n'
    )
    assert changed("pdm", made) == [made]
    assert changed("pdm", made, release="1.31.1") == [made.replace("1.26.0", "1.31.1")]


@pytest.mark.parametrize(("wish", "stays"), [("1.26.0", True), ("==1.26.0", True), ("x y", False)])
def test_poetry_keeps_a_version_of_the_gpu_package_that_the_plan_meets(
    wish: str,
    stays: bool,  # noqa: FBT001
) -> None:
    text = f'[tool.poetry.dependencies]\npython = ">=3.10"\nonnxruntime-gpu = "{wish}"\n'
    assert (f'onnxruntime-gpu = "{wish}"' in changed("poetry", text)[0]) is stays


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("uv", '[tool.uv.sources]\nonnxruntime = {index = "mine"}\n'),
        ("uv", '[tool.uv.sources]\nonnxruntime = [{git = "https://x"}]\n'),
        ("poetry", '[tool.poetry.dependencies]\nonnxruntime = {path = "../onnxruntime"}\n'),
        ("pdm", '[tool.pdm.resolution.overrides]\nonnxruntime = "1.32.0"\n'),
        ("pipenv", '[packages]\nonnxruntime = {git = "https://x"}\n'),
    ],
)
def test_a_source_of_the_users_own_is_not_replaced(tool: str, text: str) -> None:
    with pytest.raises(Error) as caught:
        changed(tool, text)
    assert caught.value.code == "project-own-source"


FITS = f"{LINUX} and python_version >= '3.10'"
BLOCK = f"""{REMARK}
--find-links gpu-wheels
onnxruntime==1.26.0+ortgpu ; {FITS}
ortgpu-fix-libraries==1.26.0+set1.2 ; {FITS}
"""
FOR_OTHERS = 'sys_platform != "linux" or platform_machine != "x86_64" or python_version < "3.10"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fastembed", "fastembed\n"),
        ("onnxruntime>=1.17\n", "onnxruntime>=1.17\n"),
        ("onnxruntime==1.22.1  # fast\n", f"onnxruntime==1.22.1 ; {FOR_OTHERS}  # fast\n"),
        (
            "onnxruntime==1.22.1 ; python_version > '3.8'\n",
            f'onnxruntime==1.22.1 ; python_version > "3.8" and ({FOR_OTHERS})\n',
        ),
        ("onnxruntime-gpu[cuda]==1.20.1\n", "onnxruntime-gpu[cuda]==1.26.0\n"),
        ("-r other.txt\nhttps://example.org/a.zip\n", "-r other.txt\nhttps://example.org/a.zip\n"),
    ],
)
def test_a_requirements_file_gets_the_wheels_and_everything_else_stays(
    before: str, after: str
) -> None:
    [made] = changed("requirements", before)
    assert made == after + BLOCK
    assert changed("requirements", made) == [made]
    assert changed("requirements", made, release="1.31.1") == [made.replace("1.26.0", "1.31.1")]


def test_the_lines_of_the_wheels_stay_where_they_were_put_and_end_as_the_others() -> None:
    [made] = changed("requirements", "fastembed\r\n")
    assert made == ("fastembed\n" + BLOCK).replace("\n", "\r\n")
    [later] = changed("requirements", made + "numpy\r\n", release="1.31.1")
    assert later.endswith(f"+set1.2 ; {FITS}\r\nnumpy\r\n")


def test_a_second_file_gets_no_wheels_and_loses_what_they_do_not_meet() -> None:
    made = changed("requirements", "-c more.txt\n", "onnxruntime==1.32.0\n")
    assert made[1] == f"onnxruntime==1.32.0 ; {FOR_OTHERS}\n"


def refused(make: Callable[[], object]) -> str:
    """Return the code of the error."""
    with pytest.raises(Error) as caught:
        make()
    return caught.value.code


def test_what_cannot_be_edited_is_refused() -> None:
    hashed = "numpy==1.0 --hash=sha256:00\n"
    assert refused(lambda: changed("requirements", hashed)) == "project-hashes"
    assert refused(lambda: changed("uv", "[project\n")) == "requirements-unreadable"
    bad = Project("uv", Path("/p"), {Path("/p/pyproject.toml"): b"\xff"})
    assert refused(lambda: project_changes(bad, wanted())) == "requirements-unreadable"
    below = Project("requirements", Path("/p"), {Path("/p/in/r.txt"): b""})
    assert refused(lambda: project_changes(below, wanted())) == "project-odd"


def test_of_a_tool_that_is_only_named_no_file_changes() -> None:
    project = Project("pixi", Path("/p"), {Path("/p/pyproject.toml"): b""})
    assert project_changes(project, wanted()) == ()


def test_where_a_wheel_is_from_is_noted_as_the_tool_notes_it() -> None:
    path = Path("/p/gpu-wheels/a-1+b-py3-none-any.whl")
    plain = b'{"url": "file:///p/gpu-wheels/a-1+b-py3-none-any.whl", "archive_info": {}}'
    assert {origin_of(tool, path, b"") for tool in ("uv", "poetry", "requirements")} == {plain}
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert origin_of("pdm", path, b"").decode() == (
        '{"url": "file:///p/gpu-wheels/a-1%2Bb-py3-none-any.whl", '
        f'"archive_info": {{"hash": "sha256={empty}"}}}}'
    )


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("uv", 'tool.uv.dev = 1\ntool.a.b = 1\n[project]\nname = "a"\n'),
        ("uv", 'tool = {uv = {}}\n[project]\nname = "a"\n'),
        ("uv", '[project]\nname = "a"\ndependencies = "numpy"\n'),
        (
            "uv",
            '[project]\nname = "a"\n[project.optional-dependencies]\nx = "numpy"\n[tool]\nuv = 1\n',
        ),
        ("pdm", '[tool.pdm]\nresolution = "x"\n'),
    ],
)
def test_what_cannot_be_edited_so_that_it_is_read_as_it_is_stays(tool: str, text: str) -> None:
    assert refused(lambda: changed(tool, text)) == "project-odd"
