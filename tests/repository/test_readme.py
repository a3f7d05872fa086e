"""The README says what is so."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.data_files import load_table

ROOT = Path(__file__).parents[2]
LANGUAGES = {"README.md": "C.UTF-8", "README.zh-CN.md": "zh_CN.UTF-8"}
READMES = {name: (ROOT / name).read_text(encoding="utf-8") for name in LANGUAGES}
README = READMES["README.md"]
DOCS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "data" / "docs").rglob("*.md"))
}
DEVELOPERS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("CONTRIBUTING.md", "resolver/README.md", "data/README.md")
}
GUIDES = "".join([README, *DOCS.values(), *DEVELOPERS.values()])


def output(*argv: str, language: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "ortgpu_fix", *argv],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONUTF8": "1", "LANG": language},
        check=False,
    ).stdout.rstrip()


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_example_is_the_example(name: str) -> None:
    found = re.search(
        r"<!-- example: ortgpu-fix --facts example -->\n```text\n(.*?)\n```",
        READMES[name],
        re.DOTALL,
    )

    assert found is not None
    assert found[1] == output("--facts", "example", language=LANGUAGES[name])


def test_the_tour_is_what_the_program_does() -> None:
    ran = doctest.testfile(str(ROOT / "CONTRIBUTING.md"), module_relative=False, encoding="utf-8")

    assert ran.attempted > 20
    assert ran.failed == 0


@pytest.mark.parametrize("path", sorted(set(re.findall(r"scripts/[a-z_/]+\.py", GUIDES))))
def test_every_script_is_there(path: str) -> None:
    assert (ROOT / path).is_file()


def test_every_proof_is_told() -> None:
    scripts = (ROOT / "scripts" / "prove").glob("*.py")
    proofs = {path.name for path in scripts if "__main__" in path.read_text("utf-8")}

    assert {name for name in proofs if f"scripts/prove/{name}" not in GUIDES} == set()


@pytest.mark.parametrize("name", READMES)
def test_it_is_short(name: str) -> None:
    assert len(READMES[name].splitlines()) <= 90


@pytest.mark.parametrize(("name", "text"), {**READMES, **DOCS, **DEVELOPERS}.items())
def test_what_it_points_to_is_there(name: str, text: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        assert "//" in target or (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", READMES)
def test_every_page_of_the_documentation_is_linked(name: str) -> None:
    linked = set(re.findall(r"\]\((data/docs/[^)#]+)", READMES[name]))
    within = {
        (ROOT / page).parent.joinpath(target).resolve().relative_to(ROOT).as_posix()
        for page, text in DOCS.items()
        for target in re.findall(r"\]\(([^):#]+\.md)", text)
    }

    assert DOCS.keys() - linked - within == set()


def test_both_say_the_same() -> None:
    """The same commands, flags, tables and links, whatever their order in a sentence."""

    def held(text: str) -> list[str]:
        text = re.sub(r"```text\n.*?```|\]\(README.*?\)", "", text, flags=re.DOTALL)
        return sorted(re.findall(r"`[^`\n]+`|^#+|^\| |\]\([^)]*\)", text, re.MULTILINE))

    assert held(READMES["README.zh-CN.md"]) == held(README)


def test_every_exit_code_is_described() -> None:
    page = DOCS["data/docs/reference/exit-codes.md"]
    described = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}

    assert described >= {row["exit"] for row in load_table("texts")["errors"].values()} | {0, 1, 3}


def test_the_gate_is_the_test_command() -> None:
    assert "python3 scripts/test.py" in README
    assert "python3 scripts/test.py" in (ROOT / ".ci/run").read_text()
