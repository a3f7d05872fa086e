"""What is read of a lock, line by line, and what is none."""

from __future__ import annotations

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.guests.machines.parse_lock import read_lock

ZERO, ONE = "0" * 64, "1" * 64


def pins(text: str) -> list[tuple[str, str, str]]:
    return [(pin.name, pin.version, pin.marker) for pin in read_lock(text, "lock").pins]


def hashes(text: str) -> list[list[tuple[str, int]]]:
    rows = [[(one.sha256, one.line) for one in pin.hashes] for pin in read_lock(text, "lock").pins]
    assert all(sha256 in {ZERO, ONE, "ab"} for row in rows for sha256, _ in row)
    return rows


@pytest.mark.parametrize(
    ("line", "pin"),
    [
        ("A.b==1.0", ("a-b", "1.0", "")),
        ("a===1.0", ("a", "1.0", "")),
        ("a==1.0,==1.0.0", None),
        ("a==1.*", None),
        ("a[x]==1.0 ; os_name == 'nt'", ("a", "1.0", 'os_name == "nt"')),
        (r"w\A.b-1.0.0-py3-none-any.whl ;  os_name == 'nt' ", ("a-b", "1.0.0", "os_name == 'nt'")),
        ("a @ https://x/a-1%2Bcpu-py3-none-any.whl#sha256=x#y", ("a", "1+cpu", "")),
        ("a @ https://x/a-1.tar.gz", None),
        ("a @ git+https://x/a", None),
        ("-e ./a-1-py3-none-any.whl", None),
        ("# a==1.0", None),
    ],
)
def test_a_line_pins_a_distribution_or_does_not(
    line: str, pin: tuple[str, str, str] | None
) -> None:
    assert pins(f"{line}\nlast==9\n") == [*([pin] if pin else []), ("last", "9", "")]


GROUPS = """[dependency-groups]
gpu = [{include-group = "x"}, "a==1"]
x = ["b==2"]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('dependencies = 3\n[project]\ndependencies = ["a==1"]\n', [("a", 3)]),
        (GROUPS, [("a", 2), ("b", 3)]),
        ('packages = [1]\n[project]\nname = "p"\ndependencies = ["a==1"]\n', [("a", 4)]),
        ('lock-version = 1\nproject = {dependencies = ["a==1"]}\n', [("a", 2)]),
    ],
)
def test_the_dependencies_of_a_project_and_of_its_groups(
    text: str, expected: list[tuple[str, int]]
) -> None:
    found = read_lock(text, "lock")

    assert found.format == "uv"
    assert [(pin.name, pin.line) for pin in found.pins] == expected


def test_the_requirements_that_a_dockerfile_prints() -> None:
    text = f"""
FROM python
RUN printf '%s\\n' \\
 'z==1 {"0" * 9}' \\
 > other.txt
RUN printf '%s\\n' \\
 'a==1 --hash=sha256:{ZERO}' \\
 'c==3 ; python_version < '"'"'3.9'"'"'' \\
 'never ends \\
 d==4 \\
 > requirements.txt
RUN b==2
"""

    found = read_lock(text, "lock")
    assert found.format == "dockerfile"
    assert [(pin.name, pin.line, pin.marker) for pin in found.pins] == [
        ("a", 7, ""),
        ("c", 8, 'python_version < "3.9"'),
        ("d", 10, ""),
    ]
    assert hashes(text) == [[(ZERO, 7)], [], []]


DEEP = 5000


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("# nothing\n", "it pins nothing"),
        ('lock-version = "1.0"\npackages = [3]\n', "AttributeError: "),
        ('lock-version = "1.0"\npackages = [{wheels = [{hashes = {}}]}]\n', "KeyError: 'sha256'"),
        ("project = 3\n", "AttributeError: "),
        (f"x = {'[' * DEEP}", "it pins nothing"),
        ("b==1\n./a-1-py3-none-any.whl ; no marker\n", "line 2: "),
        (f"./a-1-py3-none-any.whl ; {'(' * DEEP}os_name == 'x'{')' * DEEP}\n", "line 1: "),
    ],
)
def test_why_a_text_is_no_lock(text: str, cause: str) -> None:
    with pytest.raises(Error) as caught:
        read_lock(text, "my.lock")

    assert caught.value.code == "lock-unreadable"
    assert caught.value.values["file"] == "my.lock"
    said = str(caught.value.values["cause"])
    assert said.startswith(cause)
    assert len(said) > len(cause) or cause[-1] != " "  # it goes on to say what it is
    assert "\n" not in said


def test_a_marker_that_compares_nothing_installs_nothing() -> None:
    [pin] = read_lock("a==1 ; os_name ~= 'x'\n", "lock").pins

    assert pin.applies({"os_name": "posix", "extra": ""}) is False


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 100_000], ids=["endless", "deep"])
def test_what_python_cannot_make_a_value_of_is_no_lock(value: str) -> None:
    with pytest.raises(Error, match="it pins nothing"):
        read_lock(f"a = {value}\n", "lock")


UV_LOCK = """version = 1
[[package]]
name = "app"
version = "0.1"
source = { virtual = "." }
dependencies = [
    { name = "odd", marker = "no marker" },
    { name = "old", marker = "python_full_version < '3.12'" },
    { name = "fastembed" },
]
[package.optional-dependencies]
cpu = [{ name = "alone" }]

[[package]]
name = "alone"
version = "1"
[[package]]
name = "odd"
version = "1"
[[package]]
name = "old"
version = "1"
dependencies = [{ name = "onnxruntime", marker = "sys_platform == 'linux'" }]
[[package]]
name = "fastembed"
version = "1"
dependencies = [
    { name = "onnxruntime", marker = "sys_platform == 'win32'" },
    { name = "fastembed" },
]
[[package]]
name = "onnxruntime"
version = "1.26.0"
dependencies = [{ name = "numpy" }, { name = "sympy", marker = "os_name == 'nt'" }]
[[package]]
name = "numpy"
version = "2"
[[package]]
name = "sympy"
version = "1"
"""


def test_what_is_installed_whatever_extras_are_asked_for() -> None:
    wanted = {pin.name: pin.wanted for pin in read_lock(UV_LOCK, "uv.lock").pins}

    assert wanted == {
        "app": (),
        "alone": None,  # an extra alone brings it
        "odd": None,
        "old": ("python_full_version < '3.12'",),
        "fastembed": (),
        "onnxruntime": ("sys_platform == 'win32'",),  # of two ways the shorter
        "numpy": ("sys_platform == 'win32'",),
        "sympy": ("sys_platform == 'win32'", "os_name == 'nt'"),
    }


@pytest.mark.parametrize(
    ("row", "sure"),
    [
        ('groups = ["main", "dev"]\noptional = false', True),
        ('groups = ["default"]', True),
        ('groups = ["main"]\noptional = true', False),
        ('groups = ["dev"]', False),
        ("optional = false", False),
    ],
)
def test_the_groups_of_poetry_and_pdm(row: str, *, sure: bool) -> None:
    [pin] = read_lock(f'[[package]]\nname = "a"\nversion = "1"\n{row}\n', "poetry.lock").pins

    assert pin.is_sure({}) == sure


def test_a_wheel_without_code_is_no_build() -> None:
    name = "onnxruntime-1.26.0-py3-none-any.whl"
    built = "onnxruntime-1.26.0-cp311-cp311-win_amd64.whl"
    package = 'name = "onnxruntime"\nversion = "1.26.0"\n'
    pylock = f'lock-version = "1.0"\n[[packages]]\n{package}'
    project = f'[[package]]\n{package}groups = ["main"]\n'
    texts = [
        "https://x.example/{0}\n",
        "onnxruntime @ file:///w/{0}\n",
        pylock + 'wheels = [{{url = "https://x.example/{0}", hashes = {{sha256 = "a"}}}}]\n',
        pylock + 'wheels = [{{path = "./{0}", hashes = {{sha256 = "a"}}}}]\n',
        project + 'files = [{{file = "{0}", hash = "sha256:a"}}]\n',
        project + 'wheels = [{{filename = "{0}"}}]\n',
    ]
    for text in texts:
        assert [pin.is_sure({}) for pin in read_lock(text.format(name), "lock").pins] == [False]
        assert [pin.is_sure({}) for pin in read_lock(text.format(built), "lock").pins] == [True]


def test_the_hashes_of_a_pylock_are_those_of_its_sources_too() -> None:
    """`uv export` writes an sdist alone where no wheel is: that was "no valid sha256"."""
    row = '[[packages]]\nname = "{0}"\nversion = "1"\n{0} = {{hashes = {{sha256 = "{1}"}}}}\n'
    text = 'lock-version = "1.0"\n' + row.format("sdist", ZERO) + row.format("archive", "1" * 64)

    assert hashes(text) == [[(ZERO, 5)], [("1" * 64, 9)]]


def test_a_hash_is_the_same_in_capitals_and_none_in_a_comment() -> None:
    loud = "A" * 64
    pylock = (
        'lock-version = "1.0"\n[[packages]]\nname = "A"\nversion = "1"\n'
        "marker = \"os_name > 'a'\"\n"
        f'wheels = [{{url = "https://x.example/a.whl", hashes = {{sha256 = "{loud}"}}}}]\n'
        '[[packages]]\nname = "here"\ndirectory = {path = "."}\n'
    )
    lines = f"a==1 ; os_name > 'a' --hash=sha256:{loud}  # --hash=sha256:{ZERO}\n"
    for text in (pylock, lines):
        [pin] = read_lock(text, "lock").pins
        assert pin.marker.replace('"', "'") == "os_name > 'a'"
        assert [one.sha256 for one in pin.hashes] == [loud.lower()]


def test_what_is_included_stands_on_the_line_that_includes_it() -> None:
    included = {
        ("r.txt", "a b.txt"): ("a b.txt", f"\n\na==1 --hash=sha256:{ZERO}\n-r r.txt\n-r c.txt\n"),
        ("a b.txt", "r.txt"): ("r.txt", "-r 'a b.txt'\n"),
        ("a b.txt", "c.txt"): ("c.txt", "c==1\n"),
    }
    text = "\n-r 'a b.txt'\nd==1\n"
    pins = read_lock(text, "r.txt", included).pins

    assert [(pin.name, pin.line) for pin in pins] == [("a", 2), ("c", 2), ("d", 3)]
    assert [entry.line for entry in pins[0].hashes] == [2]
    assert len(included) == 3
    assert [pin.name for pin in read_lock(text, "r.txt").pins] == ["d"]


@pytest.mark.parametrize("break_", ["\f", "\x85", "\r"])
def test_a_line_ends_where_pip_ends_it(break_: str) -> None:
    """The CPU build stood behind one of them, and the lock was said to work."""
    assert pins(f"a==1{break_}onnxruntime==1.22.1\n# why{break_}b==2\n") == [
        ("a", "1", ""),
        ("onnxruntime", "1.22.1", ""),
        ("b", "2", ""),
    ]


@pytest.mark.parametrize(
    "line", ["--requirem more.txt", "-i https://x.example -rmore.txt", "--pre --req=more.txt"]
)
def test_a_file_is_included_as_pip_reads_its_option(line: str) -> None:
    taken = {} if "--req=" in line else {"b": "2"}  # which is --require-hashes, too
    found = read_lock(f"a==1\n{line}\n", "lock", {("lock", "more.txt"): ("more.txt", "b==2\n")})

    assert {pin.name: pin.version for pin in found.pins} == {"a": "1", **taken}


@pytest.mark.parametrize(
    ("line", "name", "version"),
    [
        ("onnxruntime", "onnxruntime", ""),
        ("onnxruntime==1.22.*", "onnxruntime", "==1.22.*"),
        ("onnxruntime @ git+https://x.example/y", "onnxruntime", ""),
        ("git+https://x.example/microsoft/onnxruntime.git@v1.22.1", "onnxruntime", ""),
        ("-e git+https://x.example/onnxruntime/", "onnxruntime", ""),
    ],
)
def test_what_is_not_pinned_exactly_is_named(line: str, name: str, version: str) -> None:
    found = read_lock(f"a==1\n{line}\n", "lock")

    assert [pin.name for pin in found.pins] == ["a"]
    assert [(pin.name, pin.version) for pin in found.loose] == [(name, version)]


def test_what_is_no_lock_is_unreadable() -> None:
    for text in ("", 'lock-version = "1.0"\npackages = [{version = "1"}]\n', 'project = "x"\n'):
        with pytest.raises(Error, match="lock-unreadable"):
            read_lock(text, "lock.txt")
