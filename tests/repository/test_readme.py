"""The README says what is so."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.cli.guests import NAMES
from ortgpu_fix.data_files import load_table

ROOT = Path(__file__).parents[2]
LANGUAGES = {"README.md": "C.UTF-8", "README.zh-CN.md": "zh_CN.UTF-8"}
READMES = {name: (ROOT / name).read_text(encoding="utf-8") for name in LANGUAGES}
README = READMES["README.md"]
GUIDES = README + "".join(
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("CONTRIBUTING.md", "resolver/README.md", "data/README.md")
)


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
    assert len(READMES[name].splitlines()) <= 150


@pytest.mark.parametrize("name", READMES)
def test_what_it_points_to_is_there(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", READMES[name]):
        assert (ROOT / target).is_file(), target


def test_both_say_the_same() -> None:
    """The same commands, flags, tables and links, whatever their order in a sentence."""

    def held(text: str) -> list[str]:
        text = re.sub(r"```text\n.*?```|\]\(README.*?\)", "", text, flags=re.DOTALL)
        return sorted(re.findall(r"`[^`\n]+`|^#+|^\| |\]\([^)]*\)", text, re.MULTILINE))

    assert held(READMES["README.zh-CN.md"]) == held(README)


def test_every_command_is_told() -> None:
    for command in NAMES:
        assert all(f"`ortgpu-fix {command}" in text for text in READMES.values())


def test_every_exit_code_is_told() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d) \|", README, re.MULTILINE)}

    told.add(130)  # of Ctrl-C in every shell; the help tells it
    assert told >= {row["exit"] for row in load_table("texts")["errors"].values()} | {0, 1, 3}


def test_the_gate_is_the_test_command() -> None:
    assert "python3 scripts/test.py" in README
    assert "python3 scripts/test.py" in (ROOT / ".ci/run").read_text()
