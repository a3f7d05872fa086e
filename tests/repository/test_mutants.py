"""The script that looks whether the tests notice a change, on a program of ten lines."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("the mutated program runs in forks", allow_module_level=True)

from coverage import CoverageData

from prove import mutants
from support import mutation_tests
from support.mutations import ModuleMutations

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REVIEWED = mutants.REVIEWED
PROGRAM = '''"""What may be lifted."""


def may_lift(weight: int, *, strong: bool) -> bool:
    """Return whether it may."""
    if weight > 40:
        return False
    return weight <= 20 or strong
'''
TESTS = """
from ortgpu_fix.lift.limits import may_lift

def test_light():
    assert may_lift(20, strong=False)
    assert not may_lift(21, strong=False)

def test_heavy():
    assert may_lift(40, strong=True)
    assert not may_lift(41, strong=True)
"""


def changes(source: str) -> list[tuple[str, str]]:
    mutations = ModuleMutations(textwrap.dedent(source))
    made = [mutations.apply(mutation) for mutation in mutations.found]
    for one in made:
        compile(one.code, "mutant", "exec")
    return [(one.before, one.after) for one in made]


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a = b < 1\n", ["pass", "a = b <= 1", "a = b < 2"]),
        ("a = b in c\n", ["pass", "a = b not in c"]),
        ("a = b is None\n", ["pass", "a = b is not None"]),
        ("a = not b\n", ["pass", "a = b"]),
        ("a = b or c\n", ["pass", "a = b and c", "a = b", "a = c"]),
        ("a = (b or c) in d\n", ["a = (b or c) not in d", "a = (b and c) in d", "a = (b) in d",
                                 "a = (c) in d", "pass"]),
        ("a += b\n", ["pass", "a = b", "a -= b"]),
        ("a = b + 1\n", ["pass", "a = b - 1", "a = b + 2", "a = b", "a = 1"]),
        ("a = [b, c]\n", ["pass", "a = [c]", "a = [b, ]"]),
        ("a = b, c\n", ["pass", "a = c,", "a = b,"]),
        ("a = {b: c, d: e}\n", ["pass", "a = {d: e}", "a = {b: c, }"]),
        ("a = [b]\n", ["pass"]),
        ("a = b if c else d\n",
         ["pass", "a = b if (c) and False else d", "a = b if (c) or True else d"]),
        ("a(b for b in c if d)\n", ["pass", "a(b for b in c if True)", "a(b for b in c if False)"]),
        ("a(b)\n", ["pass"]),
        ("a(b, c=d)\n", ["pass", "a(b, )"]),
        ("a = b | c\n", ["pass", "a = b & c", "a = b", "a = c"]),
        ("a = B | None\n", ["a = B & None"]),
        ("for a in b:\n    c = d\n", ["pass", "pass"]),
        ("def a():\n    return\n", ["pass"]),
        ("class A:\n    b: int\n    c: int = d\n", ["pass"]),
        ("class A(Protocol):\n    def b(self) -> int: ...\n", []),
        ("raise a\n", ["pass"]),
        ("if a:\n    b()\n", ["if True:", "if False:", "pass"]),
        ("def a():\n    return b == c\n", ["pass", "return True", "return False", "return b != c"]),
        ("def a():\n    return b()\n", ["pass"]),
        ("a: int | None = True\n", ["pass", "a: int | None = False"]),
        ("def a(b: int | str = 3) -> None: ...\n", ["def a(b: int | str = 4) -> None: ..."]),
        ("a = Callable[[b, c], d | None]\n", []),
        ("a = b[c | d]\n", ["pass", "a = b[c & d]", "a = b[c]", "a = b[d]"]),
        ("if TYPE_CHECKING:\n    b()\n", []),
        ('if sys.platform == "win32":\n    b()\nelse:\n    c()\n', ["pass"]),
        ('if sys.platform == "win32":\n    b()\nelif c:\n    d = e\n',
         ["pass", "elif True:", "elif False:"]),
        ('if sys.platform != "win32":\n    b()\n', ["pass"]),
        ("if sys.version_info >= (3, 11):\n    b()\nelse:\n    c()\n", ["pass", "pass"]),
        ("a = not b if sys.platform != 'win32' else not c\n",
         ["pass", "a = b if sys.platform != 'win32' else not c",
          "a = not b if sys.platform != 'win32' else c"]),
        ('a = b + 1 if sys.platform == "win32" else not c\n',
         ["pass", 'a = b + 1 if sys.platform == "win32" else c']),
        ("@a(1)\ndef b(): ...\n", []),
        ("from a import b, c\n", []),
        ('"""A text."""\na = "b"\n', ["pass"]),
    ],
)  # fmt: skip
def test_what_is_changed_of_a_line(source: str, after: list[str]) -> None:
    """Every change gives a program that can be compiled."""
    assert sorted(one for _, one in changes(source)) == sorted(after)


def test_a_change_of_a_statement_of_several_lines_names_its_first() -> None:
    found = ModuleMutations("a(\n    b,\n    c < d,\n)\n").found

    assert [(mutation.first, mutation.line) for mutation in found] == [(1, 1), (1, 3)]


def test_each_line_has_its_turn_before_any_has_a_second() -> None:
    drawn = mutants.line_by_line(mutants.mutants_of("versions.py"))
    lines = [mutant.mutation.line for mutant in drawn]

    assert len(drawn) == len(mutants.mutants_of("versions.py"))
    first = lines[: len(set(lines))]
    assert len(set(first)) == len(first) < len(lines)


class Project:
    """A program and its tests, with what a run of them measured, and git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in {
            "resolver/__init__.py": "",
            "resolver/lift/__init__.py": "",
            "resolver/lift/limits.py": PROGRAM,
            "data/__init__.py": "",
            "tests/lift/test_limits.py": TESTS,
            "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["slow", "online"]\n',
        }.items():
            self.write(name, text)
        self.measure(range(1, 12))
        self.git("init", "-q", "-b", "main")
        self.commit()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def measure(self, lines: range) -> None:
        folder = self.root / ".mutants"
        folder.mkdir(exist_ok=True)
        data = CoverageData(str(folder / "coverage"))
        cases = ""
        for name in ("test_light", "test_heavy"):
            data.set_context(f"tests/lift/test_limits.py::{name}|run")
            data.add_lines({str(self.root / "resolver/lift/limits.py"): list(lines)})
            cases += f'<testcase classname="tests.lift.test_limits" name="{name}" time="0.01"/>'
        data.write()
        (folder / "tests.xml").write_text(
            f"<testsuites><testsuite>{cases}</testsuite></testsuites>"
        )

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", self.root, *who, *words], check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "resolver")
        self.git("commit", "-qm", "a step")

    def plant(self, line: str) -> None:
        """Put a line before the last."""
        rows = PROGRAM.splitlines(keepends=True)
        self.write("resolver/lift/limits.py", "".join([*rows[:-1], f"    {line}\n", rows[-1]]))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for module in (mutants, mutation_tests):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "RESOLVER", tmp_path / "resolver")
    monkeypatch.setattr(mutation_tests, "MEASURED", tmp_path / ".mutants")
    monkeypatch.setattr(mutation_tests, "CONTEXTS", tmp_path / ".mutants/coverage")
    monkeypatch.setattr(mutants, "REVIEWED", tmp_path / "mutants.toml")
    (tmp_path / "mutants.toml").touch()
    return Project(tmp_path)


def gate(budget: float = 100) -> int:
    return mutants.main(["--recent", f"--budget={budget}"])


@pytest.mark.slow
@pytest.mark.alone
def test_a_planted_line_that_no_test_looks_at_fails(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.plant("if weight == 33: return True")

    assert gate() == 1

    said = capfd.readouterr().out
    survived = said.partition("no fast test notices:")[2]
    assert "lift/limits.py:8: if weight == 33: return True -> if False: return True" in survived
    assert "if weight != 33" not in survived  # the tests of 20 and 41 see that
    project.write(
        "mutants.toml",
        "".join(
            f'[[equivalent]]\nmodule = "lift/limits.py"\nbefore = "{before}"\nafter = "{after}"\n'
            'reason = "nobody has such a thing"\n'
            for row in survived.strip().splitlines()
            for before, _, after in [row.partition(": ")[2].partition(" -> ")]
        ),
    )
    assert gate() == 0
    assert "nobody has such a thing" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.alone
def test_a_planted_line_that_the_tests_look_at_passes(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("resolver/lift/limits.py", PROGRAM.replace("weight > 40", "not weight <= 40"))

    assert gate() == 0
    said = capfd.readouterr().out
    assert "survived" not in said
    assert "tests/lift/test_limits.py::test_heavy" in said


@pytest.mark.slow
@pytest.mark.alone
def test_a_program_that_hangs_is_noticed_and_what_there_is_no_time_for_is_said(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation_tests, "START", 3)
    project.plant("while weight < 0: weight += 1")  # `while weight < 1` has no end for 0
    project.write(
        "tests/lift/test_limits.py",
        TESTS.replace("def test_light():", "def test_light():\n    may_lift(0, strong=True)")
        + "    assert may_lift(-3, strong=False)\n",
    )

    began = time.monotonic()
    gate()
    assert "timeout" in capfd.readouterr().out

    assert gate(budget=0.001) == 0
    assert "not judged" in capfd.readouterr().out
    assert time.monotonic() - began < 60


@pytest.mark.slow
@pytest.mark.alone
def test_a_test_that_fails_without_the_mutation_does_not_count(project: Project) -> None:
    project.write("tests/lift/test_limits.py", TESTS + "    assert False\n")
    project.write("resolver/lift/limits.py", PROGRAM.replace("> 40", "> 39"))

    assert gate() == 1


def test_what_is_new_is_found_in_any_clone(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = "lift/limits.py"
    assert mutants.recent_lines() == []  # one commit, and nothing before it
    project.plant("weight += 0")
    assert mutants.recent_lines() == [{limits: {8}}]
    project.commit()
    assert mutants.recent_lines() == [{limits: {8}}]
    project.write("resolver/lift/other.py", "A = 1\n")
    project.commit()
    assert mutants.recent_lines() == [{"lift/other.py": {1}}, {limits: {8}}]

    # A branch: what it has beyond the main one, and what is not committed.
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.write("resolver/lift/other.py", "A = 1\nB = 2\n")
    project.commit()
    project.plant("weight += 1")
    assert mutants.recent_lines() == [{limits: {8}}, {"lift/other.py": {2}}]
    project.write("mutants.toml", "start = 2090-01-01T00:00:00Z\n")
    assert mutants.recent_lines() == [{limits: {8}}]
    project.write("mutants.toml", "start = 2000-01-01T00:00:00Z\n")
    assert mutants.recent_lines() == [{limits: {8}}, {"lift/other.py": {2}}]

    # What moved is not new, neither in a file of another name, nor in another file.
    project.git("add", "resolver")
    project.git("commit", "-qm", "all")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.git("mv", "resolver/lift/limits.py", "resolver/lift/bounds.py")
    moved = "\n".join(f"WEIGHT_OF_CRATE_{number} = {number}" for number in range(5)) + "\n"
    project.write("resolver/lift/other.py", "A = 1\nB = 2\n" + moved)
    project.commit()
    assert mutants.recent_lines() == [{"lift/other.py": {3, 4, 5, 6, 7}}]
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.write("resolver/lift/other.py", "A = 1\nB = 2\n")
    project.write("resolver/lift/crates.py", "C = 3\n" + moved)
    project.commit()
    assert mutants.recent_lines() == [{"lift/crates.py": {1}}]
    last = mutants._git("rev-parse", "HEAD")
    project.write("resolver/lift/other.py", "A = 1\nB = 3\n")
    project.commit()
    (tmp_path / ".git-blame-ignore-revs").write_text(f"# only moves\n{last}\n")
    assert mutants.recent_lines() == [{"lift/other.py": {2}}]
    (tmp_path / ".git-blame-ignore-revs").unlink()
    project.git("reset", "-q", "--hard", "HEAD~4")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD~1")

    for depth in ("1", "2"):
        clone = tmp_path / f"shallow-{depth}"
        words = ["--depth", depth, f"file://{tmp_path}", clone]
        subprocess.run(["git", "clone", "-q", *words], check=True)
        monkeypatch.setattr(mutants, "ROOT", clone)
        assert mutants.recent_lines() == ([] if depth == "1" else [{"lift/other.py": {2}}])
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "no-clone")
    assert mutants.recent_lines() == []


def test_nothing_is_judged_without_a_measured_run(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.plant("weight += 0")
    (project.root / ".mutants/coverage").unlink()

    assert gate() == 0
    assert "no mutation is judged" in capfd.readouterr().out


def test_what_was_reviewed_is_still_there() -> None:
    """A row for a line that is gone is a row too many."""
    rows = tomllib.loads(REVIEWED.read_text("utf-8")).get("equivalent", [])
    for row in rows:
        text = (mutation_tests.RESOLVER / row["module"]).read_text("utf-8")
        lines = {line.strip() for line in text.splitlines()}
        assert set(row["before"].split("\n")) <= lines, row
        assert row["reason"].endswith(".")
