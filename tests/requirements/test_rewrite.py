"""Requirements files that are mended: the right line changes, and nothing else does."""

from __future__ import annotations

import copy
import json
import string
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

import synthetic
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.markers import marker_environment
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Row, plain
from ortgpu_fix.report.requirements import requirements_json, requirements_section
from ortgpu_fix.requirements.files import RewrittenFile, rewrite_files, write_rewritten
from ortgpu_fix.requirements.rewrite import Done, Edit, rewrite_requirements
from ortgpu_fix.requirements.rewrite_pyproject import dependencies, rewrite_pyproject, since

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MARKERS = marker_environment(synthetic.facts())
GOOD = "onnxruntime-gpu==1.26.0"


def requirements(text: str, **more: Any) -> str:
    return rewrite_requirements(text, "1.26.0", MARKERS, **more).text


def done(text: str) -> list[tuple[int, str]]:
    return [(edit.line, edit.done) for edit in rewrite_requirements(text, "1.26.0", MARKERS).edits]


LINES = {
    "onnxruntime": GOOD,
    "onnxruntime\n": f"{GOOD}\n",
    "onnxruntime>=1.17,!=1.20\r\n": f"{GOOD}\r\n",
    "  ONNXRuntime_GPU ~= 1.19 # fast\n": f"  {GOOD} # fast\n",
    "onnxruntime[extra] (>=1.2) ; python_version > '3'": "onnxruntime-gpu[extra]==1.26.0 ;"
    " python_version > '3'",
    "onnxruntime-gpu [cuda, cudnn]==1.19.2": "onnxruntime-gpu [cuda, cudnn]==1.26.0",
    "onnxruntime; sys_platform=='linux'  # a;b\n": f"{GOOD}; sys_platform=='linux'  # a;b\n",
    "onnxruntime \\\n>=1.17 \\\n ; os_name=='posix'\n": f"{GOOD} \\\n ; os_name=='posix'\n",
    "onnxruntime \\": f"{GOOD} \\",
    "onnxruntime \\\n": f"{GOOD} \\\n",
    "onnxruntime >=1.2 --config-settings=a=b\n": f"{GOOD} --config-settings=a=b\n",
    # What is none of ours, does not apply here or is right already stays.
    GOOD: GOOD,
    "onnxruntime==1.2 ; sys_platform == 'win32'\n": "onnxruntime==1.2 ; sys_platform == 'win32'\n",
    "onnxruntime-genai\nonnxruntime_extensions\nonnx\n": "onnxruntime-genai\n"
    "onnxruntime_extensions\nonnx\n",
    "# onnxruntime\n#onnxruntime \\\nnumpy\n": "# onnxruntime\n#onnxruntime \\\nnumpy\n",
    "-e ./onnxruntime\n--find-links onnxruntime\n": "-e ./onnxruntime\n--find-links onnxruntime\n",
    "onnxruntime what is this\n": "onnxruntime what is this\n",
    "onnxruntime @ https://example.invalid/o.whl\n": "onnxruntime @ https://example.invalid/o.whl\n",
    f"onnxruntime==1.2 --hash=sha256:{'0' * 64}\n": f"onnxruntime==1.2 --hash=sha256:{'0' * 64}\n",
    "": "",
}


@pytest.mark.parametrize("text", LINES)
def test_a_line_becomes_the_right_pin(text: str) -> None:
    assert requirements(text) == LINES[text]


def test_the_cpu_build_goes_where_the_gpu_build_is_named() -> None:
    text = "onnxruntime \\\n  >=1.17  # old\nnumpy\nonnxruntime-gpu\n"

    assert requirements(text) == f"# onnxruntime \\\n#   >=1.17  # old\nnumpy\n{GOOD}\n"
    assert done(text) == [(1, "commented"), (4, "replaced")]
    assert requirements("onnxruntime\n", gpu_elsewhere=True) == "# onnxruntime\n"


def test_lines_that_stay_say_why() -> None:
    assert done(f"onnxruntime\nnumpy==2 --hash=sha256:{'0' * 64}\n") == [(1, "hashes")]
    assert done("numpy\nonnxruntime @ https://example.invalid/o.whl\n") == [(2, "address")]


def test_a_line_that_only_pip_understands_is_told() -> None:
    text = "onnxruntime==${ORT}\nonnxruntime-gpu\n"

    assert requirements(text) == text.replace("onnxruntime-gpu", GOOD)
    assert done(text) == [(1, "odd"), (2, "replaced")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_line_is_told_on_one_line_before_and_after(end: str) -> None:
    text = (
        f"numpy{end}  onnxruntime \\{end}  >=1.17  # old{end}"
        f"onnxruntime-gpu \\{end}  ; os_name == 'posix'{end}onnxruntime @ https://x/o.whl{end}"
        f"{GOOD}{end}onnxruntime==${{X}}{end}onnxruntime-gpu @ https://x/o.whl{end}"
    )

    edits = rewrite_requirements(text, "1.26.0", MARKERS).edits

    assert edits == (
        Edit(
            line=2,
            before="onnxruntime >=1.17 # old",
            after="# onnxruntime # >=1.17 # old",
            done="commented",
        ),
        Edit(
            line=4,
            before="onnxruntime-gpu ; os_name == 'posix'",
            after=f"{GOOD} ; os_name == 'posix'",
            done="replaced",
        ),
        Edit(
            line=6,
            before="onnxruntime @ https://x/o.whl",
            after="# onnxruntime @ https://x/o.whl",
            done="commented",
        ),
        Edit(line=8, before="onnxruntime==${X}", after=None, done="odd"),
        Edit(line=9, before="onnxruntime-gpu @ https://x/o.whl", after=None, done="address"),
    )


def test_of_several_lines_those_that_apply_are_replaced() -> None:
    text = (
        "onnxruntime==1.18 ; python_version < '3.9'\n"
        "onnxruntime>=1.20 ; python_version >= '3.9'\n"
        "onnxruntime-gpu ; sys_platform == 'win32'\n"
    )

    assert requirements(text) == text.replace("onnxruntime>=1.20", GOOD)


others = st.sampled_from(
    [
        "numpy>=2  # two",
        "",
        "# onnxruntime would be nice",
        "--index-url https://example.invalid/onnxruntime",
        "fastembed ; python_version > '3'",
        "scipy \\\n  >=1",
        "onnxruntime-genai==0.5",
        "café",
        "\u2028odd\x0c",
        "\x85",
    ]
)
ours = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", " ", "\t"]),
        st.sampled_from(["onnxruntime", "OnnxRuntime", "onnxruntime"]),
        st.sampled_from(["", "[a]", " [a,b]"]),
        st.sampled_from(["", ">=1.17", " == 1.20.1", " \\\n ~=1.2", "<2, >1"]),
        st.sampled_from(["", " ", "  "]),
        st.sampled_from(["", "; python_version > '3'", " ; sys_platform == 'linux'"]),
        st.sampled_from(["", "  # why; not"]),
    ),
)
ends = st.sampled_from(["\n", "\r\n"])


@settings(max_examples=40)
@given(st.lists(others, max_size=5), ours, st.lists(others, max_size=5), ends)
def test_nothing_else_changes(before: list[str], line: str, after: list[str], end: str) -> None:
    head = "".join(f"{row}{end}" for row in before)
    tail = end + end.join(after)
    changed = requirements(head + line + tail)

    assert changed.startswith(head)
    assert changed.endswith(tail)
    middle = changed[len(head) : len(changed) - len(tail)]
    plain_text = middle.replace("\\\n", " ").partition("#")[0]
    wanted, was = Requirement(plain_text), Requirement(line.replace("\\\n", " ").partition("#")[0])
    assert (wanted.name, str(wanted.specifier)) == ("onnxruntime-gpu", "==1.26.0")
    assert (wanted.extras, wanted.marker) == (was.extras, was.marker)
    assert middle.partition("#")[2] == line.partition("#")[2]
    assert requirements(changed) == changed


# pyproject.toml


PROJECT = """\
# a comment with "onnxruntime>=1.17"
[project]
name = "app"
dependencies = [
  "numpy>=2",   # keep me
  "onnxruntime>=1.17",  # and me: "onnxruntime>=1.17"
]

[project.optional-dependencies]
fast = ['onnxruntime >=1.20 ; python_version > "3"']

[dependency-groups]
dev = ["onnx\\u0072untime", {include-group = "test"}]
test = ["onnxruntime @ https://example.invalid/o.whl", "onnxruntime ; sys_platform == 'win32'"]

[tool.uv]
override-dependencies = ["onnxruntime>=1.17"]
dev-dependencies = ["onnxruntime>=1.17"]

[tool.other]
note = \"""
onnxruntime>=1.17
\"""
"""


def test_a_project_is_mended_where_its_requirements_stand() -> None:
    made = rewrite_pyproject(PROJECT, "1.26.0", MARKERS)

    assert made.text == (
        PROJECT.replace('  "onnxruntime>=1.17",', f'  "{GOOD}",')
        .replace("'onnxruntime >=1.20 ;", f"'{GOOD} ;")
        .replace('"onnx\\u0072untime"', f'"{GOOD}"')
        .replace('dev-dependencies = ["onnxruntime>=1.17"]', f'dev-dependencies = ["{GOOD}"]')
    )
    assert [(edit.line, edit.done) for edit in made.edits] == [
        (6, "replaced"),
        (10, "replaced"),
        (13, "replaced"),
        (14, "address"),
        (18, "replaced"),
    ]


def test_each_string_of_a_project_is_told_before_and_after() -> None:
    text = f"""
[project]
dependencies = ["what is this", "{GOOD}", 'onnxruntime-gpu[a]<1']
optional-dependencies = {{cpu = ["onnxruntime>=1.17"]}}
[tool.pdm]
dev-dependencies = {{gpu = ["onnxruntime-gpu"]}}
[dependency-groups]
one = ["onnxruntime-gpu @ https://x/o.whl"]
"""
    edits = rewrite_pyproject(text, "1.26.0", MARKERS).edits

    assert edits == (
        Edit(
            line=3,
            before="onnxruntime-gpu[a]<1",
            after="onnxruntime-gpu[a]==1.26.0",
            done="replaced",
        ),
        Edit(line=4, before="onnxruntime>=1.17", after=None, done="other"),
        Edit(line=6, before="onnxruntime-gpu", after=GOOD, done="replaced"),
        Edit(line=8, before="onnxruntime-gpu @ https://x/o.whl", after=None, done="address"),
    )
    assert dependencies(text) == ("what is this", GOOD, "onnxruntime-gpu[a]<1")
    assert dependencies('[project]\ndependencies = ["a", 3, "b"]\n') == ("a", "b")


@pytest.mark.parametrize(
    ("table", "more"),
    [
        ("[project]", "dependencies = "),
        ("[tool.uv]", "dev-dependencies = "),
        ("[project.optional-dependencies]", "gpu = "),
        ("[dependency-groups]", "gpu = "),
        ("[tool.pdm.dev-dependencies]", "gpu = "),
        ("[tool.poetry.dependencies]", None),
        ("[tool.poetry.dev-dependencies]", None),
        ("[tool.poetry.group.gpu.dependencies]", None),
    ],
)
def test_every_table_of_requirements_is_mended_and_its_line_is_told(
    table: str, more: str | None
) -> None:
    """Those of the project, of its extras and groups, of uv, PDM and poetry."""
    before, after = ('onnxruntime = "^1"', 'onnxruntime-gpu = "1.26.0"')
    if more is not None:
        before, after = (f'{more}["numpy", "{name}"]' for name in ("onnxruntime", GOOD))
    text = f"\n# the first line is empty\n{table}\n{before}\n"

    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert made.text == text.replace(before, after)
    assert [(edit.line, edit.done) for edit in made.edits] == [(4, "replaced")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('\n\n[project]\ndependencies = ["onnxruntime @ https://example.invalid/o.whl"]\n', 4),
        ("\n\n[tool.poetry.dependencies.onnxruntime]\nversion = '^1'\n", 3),
        ('\n\ntool.poetry = {dependencies = {"onnx\\u0072untime" = "^1"}}\n', 1),  # not to be found
    ],
)
def test_the_line_of_what_stays_is_told_where_it_can_be_found(text: str, line: int) -> None:
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert made.text == text
    assert [edit.line for edit in made.edits] == [line]


def test_a_requirement_that_is_no_text_is_none() -> None:
    assert dependencies('[project]\ndependencies = [3, "numpy", ["scipy"]]\n') == ("numpy",)


def test_a_project_that_is_right_stays_as_it_is() -> None:
    text = f'[project]\ndependencies = ["{GOOD}", "numpy"]\n'
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert (made.text, made.edits) == (text, ())


def test_a_project_with_an_extra_for_each_build_keeps_both() -> None:
    text = '[project]\noptional-dependencies = {cpu = ["onnxruntime"], gpu = ["onnxruntime-gpu"]}\n'
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert made.text == text.replace("onnxruntime-gpu", GOOD)
    assert [edit.done for edit in made.edits] == ["other", "replaced"]


OTHER = '[tool.other]\nonnxruntime = "^1"\nonnxruntime-gpu = "1"\n'
POETRY = [
    (
        '[tool.poetry.dependencies]\nonnxruntime = "^1.17"  # c\n',
        '[tool.poetry.dependencies]\nonnxruntime-gpu = "1.26.0"  # c\n',
    ),
    (
        "[tool.poetry.group.g.dependencies]\n'onnxruntime' = {version = '^1', extras = []}",
        '[tool.poetry.group.g.dependencies]\nonnxruntime-gpu = {version = "1.26.0", extras = []}',
    ),
    (
        '[tool.poetry.dev-dependencies]\nonnxruntime-gpu = "1.26.0"\n',
        '[tool.poetry.dev-dependencies]\nonnxruntime-gpu = "1.26.0"\n',
    ),
    (
        f'{OTHER}[tool.poetry.dependencies]\nnumpy = "2"\nonnxruntime = "^1"\n',
        f'{OTHER}[tool.poetry.dependencies]\nnumpy = "2"\nonnxruntime-gpu = "1.26.0"\n',
    ),
]


@pytest.mark.parametrize(("text", "wanted"), POETRY)
def test_poetry_s_own_notation(text: str, wanted: str) -> None:
    made = rewrite_pyproject(f"\n{text}", "1.26.0", MARKERS)
    lines = zip(text.splitlines(), wanted.splitlines(), strict=True)

    assert made.text == f"\n{wanted}"
    assert made.edits == tuple(
        Edit(line=number, before=before, after=after, done="replaced")
        for number, (before, after) in enumerate(lines, 2)
        if before != after
    )


@pytest.mark.parametrize(
    ("allowed", "older"),
    [
        *((">=3.9", True), ("<4,>=3.10", True), ("~=3.9", True), (">=3.10.99", True), ("", True)),
        *((">=3.11", False), ("==3.11.*", False), (">3.11", False), (">=3.11,!=3.11.2", False)),
    ],
)
def test_whether_a_project_allows_an_older_python(allowed: str, *, older: bool) -> None:
    wanted = "3.11" if older else None

    assert since(f"[project]\nrequires-python = '{allowed}'\n", "3.11") == wanted
    assert since(f"[tool.poetry.dependencies]\npython = '{allowed}'\n", "3.11") == wanted


@pytest.mark.parametrize(
    ("allowed", "older"),
    [
        *(("^3.9", True), ("~3.10", True), ("^ 3.9", True), ("^3.11 || ~3.10", True)),
        *(("==3.9.*|^3.11", True), ("^3.11", False), ("~3.11", False), ("3.11.*", False)),
    ],
)
def test_poetry_s_notation_of_pythons(allowed: str, *, older: bool) -> None:
    text = f'[tool.poetry.dependencies]\npython = "{allowed}"\n'

    assert since(text, "3.11") == ("3.11" if older else None)
    assert since(f'[project]\nrequires-python = ">=3.11"\n{text}', "3.11") is None


def test_a_project_that_names_no_python_allows_all() -> None:
    assert since('[project]\nname = "app"\n', "3.11") == "3.11"
    assert since("", "3.0") is None


LIMIT = "python_version >= '3.11'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"onnxruntime>=1.17"', f'"{GOOD}; {LIMIT}"'),
        ("'onnxruntime'", f'"{GOOD}; {LIMIT}"'),
        (f'"{GOOD}"', f'"{GOOD}; {LIMIT}"'),
        (f'"{GOOD}; {LIMIT}"', f'"{GOOD}; {LIMIT}"'),
        (
            "\"onnxruntime ; sys_platform == 'linux' or os_name == 'nt'\"",
            f"\"{GOOD}; (sys_platform == 'linux' or os_name == 'nt') and {LIMIT}\"",
        ),
    ],
)
def test_a_pin_is_for_the_pythons_that_it_fits(before: str, after: str) -> None:
    """uv, Poetry and PDM refused to lock: the project allows an older one."""
    made = rewrite_pyproject(f"[project]\ndependencies = [{before}]\n", "1.26.0", MARKERS, "3.11")

    assert made.text == f"[project]\ndependencies = [{after}]\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"^1.17"', '{ version = "1.26.0", python = ">=3.11" }'),
        ('{version = "^1", extras = []}', '{version = "1.26.0", python = ">=3.11", extras = []}'),
        (
            '{python = ">=3.12", version = "1.26.0"}',
            '{python = ">=3.12", version = "1.26.0"}',
        ),
    ],
)
def test_a_pin_of_poetry_is_for_the_pythons_that_it_fits(before: str, after: str) -> None:
    head = "[tool.poetry.dependencies]\nonnxruntime-gpu = "
    made = rewrite_pyproject(f"{head}{before}\n", "1.26.0", MARKERS, "3.11")

    assert made.text == f"{head}{after}\n"
    assert len(made.edits) == (before != after)


def test_what_an_extra_of_poetry_names_keeps_its_name() -> None:
    """The extra would install nothing more; poetry itself refuses such a project."""
    text = (
        "[tool.poetry.dependencies]\n"
        'onnxruntime = { version = "^1.17", optional = true }\n'
        '[tool.poetry.extras]\nml = ["OnnxRuntime", "numpy"]\n'
    )
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert made.text == text
    assert [(edit.line, edit.done) for edit in made.edits] == [(2, "odd")]
    named = text.replace("onnxruntime =", "onnxruntime-gpu =")
    named = named.replace("OnnxRuntime", "onnxruntime-gpu")
    assert 'version = "1.26.0"' in rewrite_pyproject(named, "1.26.0", MARKERS).text


def test_each_line_that_stays_is_told_by_its_number() -> None:
    text = (
        "# onnxruntime for all\n[project]\n"
        'dependencies = [\n  "numpy",\n  "onnxruntime>=1.17",\n]\n'
        '[project.optional-dependencies]\ngpu = ["onnxruntime-gpu"]\ncpu = ["onnxruntime>=1.17"]\n'
        "[dependency-groups]\n"
        'dev = ["onnxruntime @ https://example.invalid/o.whl", "onnxruntime"]\n'
        '[tool.poetry.dependencies]\nonnxruntime = [{ version = "*" }]\n'
    )
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert [(edit.line, edit.done) for edit in made.edits] == [
        (5, "other"),
        (8, "replaced"),
        (9, "other"),
        (11, "other"),
        (11, "other"),
        (13, "other"),
    ]


def test_of_both_in_poetry_s_notation_the_cpu_build_stays() -> None:
    text = '[tool.poetry.dependencies]\nonnxruntime = "^1.17"\nonnxruntime-gpu = "*"\n'
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert made.text == text.replace('"*"', '"1.26.0"')
    assert [edit.done for edit in made.edits] == ["other", "replaced"]


@pytest.mark.parametrize(
    "text",
    [
        '[tool.poetry.dependencies.onnxruntime]\nversion = "^1.17"\n',
        '[tool.poetry.dependencies]\nonnxruntime = [{version = "^1", python = "3.9"}]\n',
        '[project]\ndependencies = [\n"""onnxruntime>=1.17""",\n]\n',
    ],
)
def test_what_is_written_oddly_is_left_and_told(text: str) -> None:
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert made.text == text
    assert [edit.done for edit in made.edits] == ["odd"]


@pytest.mark.parametrize("text", ["", "project = 1\n", "[project]\ndependencies = 3\n"])
def test_a_project_without_requirements(text: str) -> None:
    assert rewrite_pyproject(text, "1.26.0", MARKERS).edits == ()
    assert dependencies(text) == ()


words = st.text(string.printable + "é\u2028", max_size=12)
strings = st.one_of(
    words, st.sampled_from(["numpy", "onnxruntime>=1.17", "a ; python_version > '3'"])
)


@settings(max_examples=40)
@given(st.lists(strings, max_size=4), st.lists(strings, max_size=4), words, ends)
def test_a_project_parses_to_the_same_apart_from_the_pin(
    before: list[str], after: list[str], note: str, end: str
) -> None:
    rows = [*before, "onnxruntime>=1.17", *after]
    comment = "".join(each for each in note if each.isprintable())
    lines = [f"# {comment}", "[project]", "dependencies = ["]
    lines += [f"  {json.dumps(row)},  # {comment}" for row in rows]
    text = end.join([*lines, "]", "[tool.x]", f"note = {json.dumps(note)}", ""])
    expected = copy.deepcopy(tomllib.loads(text))
    expected["project"]["dependencies"] = [
        GOOD if row.startswith("onnxruntime") else row for row in rows
    ]
    made = rewrite_pyproject(text, "1.26.0", MARKERS)

    assert tomllib.loads(made.text) == expected
    assert made.text.count("# " + comment) == text.count("# " + comment)
    assert rewrite_pyproject(made.text, "1.26.0", MARKERS).edits == ()


# Files.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[tool.hatch.envs.default]\ndependencies = ["onnxruntime"]\n', True),
        ('[tool.pixi.pypi-dependencies]\nonnxruntime = "*"\n', True),
        ('[project]\ndynamic = ["dependencies"]\ndependencies = ["numpy", "what is"]\n', True),
        (f'[project]\ndependencies = ["numpy", "{GOOD}"]\n', False),
        ("[project]\ndependencies = [\"OnnxRuntime; sys_platform == 'darwin'\"]\n", False),
        ('[tool.poetry.dependencies]\nonnxruntime-gpu = "1.26.0"\n', False),
    ],
)
def test_a_project_that_names_no_onnxruntime_is_told(
    tmp_path: Path, text: str, *, told: bool
) -> None:
    """Nothing was said: it looked as if it was written."""
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    files = rewrite_files([str(file)], "1.26.0", MARKERS)

    absent = Edit(line=1, before="onnxruntime", after=None, done="absent")
    assert [edit for row in files for edit in row.edits] == ([absent] if told else [])
    write_rewritten(files)
    assert file.read_text() == text


def test_files_keep_their_encoding_and_what_they_include_is_mended(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    top = b"\xef\xbb\xbfonnxruntime>=1.17  # caf\xc3\xa9 \xff\r\n-r sub/more.txt\r\n-r https://x/y.txt\n"
    (tmp_path / "top.txt").write_bytes(top)
    wide = "numpy\n-r ../top.txt\n".encode("utf-16")
    (tmp_path / "sub/more.txt").write_bytes(wide)
    files = rewrite_files([str(tmp_path / "top.txt")], "1.26.0", MARKERS)

    assert write_rewritten(files) == {}
    assert (tmp_path / "top.txt").read_bytes() == top.replace(b"onnxruntime>=1.17", GOOD.encode())
    assert (tmp_path / "sub/more.txt").read_bytes() == wide
    [row] = requirements_json(files)
    assert row["after"] == f"{GOOD} # café ?"


def test_a_wide_file_is_mended_in_its_encoding(tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    file.write_bytes("onnxruntime\nnumpy\n".encode("utf-16"))
    write_rewritten(rewrite_files([str(file)], "1.26.0", MARKERS))

    assert file.read_bytes() == f"{GOOD}\nnumpy\n".encode("utf-16")


def test_files_that_are_read_together_name_the_gpu_build_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("onnxruntime\n-r b.txt\n")
    (tmp_path / "b.txt").write_text("onnxruntime-gpu\n")
    write_rewritten(rewrite_files([str(tmp_path / "a.txt")], "1.26.0", MARKERS))

    assert (tmp_path / "a.txt").read_text() == "# onnxruntime\n-r b.txt\n"
    assert (tmp_path / "b.txt").read_text() == f"{GOOD}\n"


def test_a_constraint_follows_and_takes_no_line_away(tmp_path: Path) -> None:
    """It asks for nothing: were the line commented out, nothing would."""
    (tmp_path / "r.txt").write_text("-c c.txt\nonnxruntime\n")
    (tmp_path / "c.txt").write_text("onnxruntime-gpu==1.18.0  # as in production\nnumpy<2\n")
    write_rewritten(rewrite_files([str(tmp_path / "r.txt")], "1.26.0", MARKERS))

    assert (tmp_path / "r.txt").read_text() == f"-c c.txt\n{GOOD}\n"
    assert (tmp_path / "c.txt").read_text() == f"{GOOD}  # as in production\nnumpy<2\n"


def test_where_the_gpu_build_is_required_a_constraint_on_the_cpu_build_becomes_one_on_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "r.txt").write_text("-c c.txt\nonnxruntime-gpu\n")
    (tmp_path / "c.txt").write_text("onnxruntime<1.20\n")
    write_rewritten(rewrite_files([str(tmp_path / "r.txt")], "1.26.0", MARKERS))

    assert (tmp_path / "r.txt").read_text() == f"-c c.txt\n{GOOD}\n"
    assert (tmp_path / "c.txt").read_text() == f"{GOOD}\n"


def test_a_file_that_is_changed_meanwhile_is_left(tmp_path: Path) -> None:
    one, two = tmp_path / "a.txt", tmp_path / "pyproject.toml"
    one.write_text("onnxruntime\n")
    two.write_text('[project]\ndependencies = ["onnxruntime"]\n')
    files = rewrite_files([str(one), str(two)], "1.26.0", MARKERS)
    two.write_text("# mine\n")

    unwritten = write_rewritten(files)

    assert [(path, error.code) for path, error in unwritten.items()] == [(two, "file-changed")]
    assert one.read_text() == f"{GOOD}\n"
    assert two.read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [("r.txt", None), ("p.toml", None), ("p.toml", b"[[["), ("p.toml", b"\xff")],
)
def test_a_file_that_cannot_be_read(name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(Error, match="requirements-unreadable"):
        rewrite_files([str(tmp_path / name)], "1.26.0", MARKERS)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_becomes_of_each_line_is_told(language: Any) -> None:
    stays: tuple[Done, ...] = ("hashes", "address", "other", "odd", "root", "absent")
    replaced = Edit(line=1, before="a", after="b", done="replaced")
    staying = tuple(Edit(line=2, before="c", after=None, done=why) for why in stays)
    file = RewrittenFile(
        path=Path("r.txt"), edits=(staying[0], replaced, *staying[1:]), before=b"", after=b""
    )
    texts = load_texts(language)

    told = requirements_section([file], texts, written=False)
    written = requirements_section([file], texts, written=True)
    unchanged = requirements_section([replace(file, edits=staying)], texts, written=False)

    heads = [texts.label("mend-line", file="r.txt", line=line) for line in (1, 2)]
    kept, *rest = [
        Row(head=heads[1], text=f"c  ({texts.label(f'mend-{why}')})", style="yellow")
        for why in stays
    ]
    rows = (kept, Row(head=heads[0], text="a  →  b"), *rest)
    hint = Row(text=texts.label("mend-write"), style="dim")
    assert (told.heading, told.rows) == (texts.label("mend-should"), (*rows, hint))
    assert (written.heading, written.rows) == (texts.label("mend-written"), rows)
    assert (unchanged.heading, unchanged.rows) == (texts.label("mend-should"), (kept, *rest))
    assert plain([told]).count("--apply --write") == 1
    assert requirements_json([file])[:2] == [
        {"file": "r.txt", "line": 2, "before": "c", "after": None, "done": "hashes"},
        {"file": "r.txt", "line": 1, "before": "a", "after": "b", "done": "replaced"},
    ]
