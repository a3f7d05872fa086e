"""What a person sees in a real terminal: nothing is cut or lost, however narrow it is."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("terminals are made for Linux", allow_module_level=True)

from support.terminal import lines_of, run_in_terminal

HERE = str(Path(sys.executable).with_name("ortgpu-fix"))
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
LOG = "error.log"
COMMANDS = {
    "plan": (["--facts", "example"], 1),
    "explain": (["explain", "--facts", "example", LOG], 0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("terminal")
    (made / LOG).write_text("libcublasLt.so.12: cannot open shared object file\n")
    return made


def words(lines: list[str]) -> str:
    """Return what is said, wherever lines break."""
    return "".join("".join(lines).split())


@functools.cache
def piped(name: str, folder: Path, language: str) -> str:
    arguments, _ = COMMANDS[name]
    env = ENVIRONMENT | {"LANG": language}
    done = subprocess.run([HERE, *arguments], cwd=folder, env=env, capture_output=True, check=False)
    assert b"\x1b" not in done.stdout + done.stderr
    return words((done.stdout + done.stderr).decode().splitlines())


@pytest.mark.parametrize(
    ("name", "language"), [*((name, "C.UTF-8") for name in COMMANDS), ("plan", "zh_CN.UTF-8")]
)
def test_a_terminal_shows_what_a_pipe_gets(folder: Path, name: str, language: str) -> None:
    arguments, code = COMMANDS[name]
    env = ENVIRONMENT | {"LANG": language}

    ended, screen = run_in_terminal([HERE, *arguments], columns=60, cwd=folder, env=env)

    assert ended == code
    assert words(lines_of(screen)) == piped(name, folder, language)
