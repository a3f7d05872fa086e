"""The README says what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.cli import parser as cli
from ortgpu_fix.data_files import load_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(comment: str) -> str:
    """Return the text block under a comment of the README."""
    found = re.search(rf"<!-- {re.escape(comment)} -->\n```text\n(.*?)\n```", README, re.DOTALL)
    assert found is not None
    return found[1]


def output(*argv: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "ortgpu_fix", *argv],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"},
        check=False,
    ).stdout.rstrip()


def test_the_help_is_the_help() -> None:
    assert block("help") == output("--help")


def test_the_example_is_the_example() -> None:
    assert block("example: ortgpu-fix --facts example") == output("--facts", "example")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"scripts/[a-z_/]+\.py", README))))
def test_every_script_is_there(path: str) -> None:
    assert (ROOT / path).is_file()


def test_every_command_is_told() -> None:
    for command in cli.COMMANDS:
        assert f"`ortgpu-fix {command}" in README


def test_every_exit_code_is_told() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d) \|", README, re.MULTILINE)}

    assert told >= {row["exit"] for row in load_table("texts")["errors"].values()} | {0, 1, 3}


def test_the_gate_is_the_test_command() -> None:
    assert "python3 scripts/test.py" in README
    assert "python3 scripts/test.py" in (ROOT / ".ci/run").read_text()
