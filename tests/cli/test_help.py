"""The help, of the whole program and of each command, in both languages."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any
from unittest import mock

import pytest

from ortgpu_fix import __main__
from ortgpu_fix.cli import console
from ortgpu_fix.cli import parser as cli
from ortgpu_fix.cli.flags import FLAGS
from ortgpu_fix.cli.help import COLUMNS, help_text
from ortgpu_fix.data_files import load_table
from ortgpu_fix.messages.sections import width

TABLE = load_table("help")
LONG = {flag.name for flag in FLAGS}


def test_every_flag_has_its_words_and_its_commands() -> None:
    of_commands = {flag for row in TABLE["commands"].values() for flag in row["flags"]}

    assert set(TABLE["flags"]) == LONG
    assert of_commands | set(TABLE["common"]["flags"]) == LONG
    assert set(TABLE["commands"]) == set(cli.COMMANDS)


@pytest.mark.parametrize("columns", [60, 80, COLUMNS])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("command", [None, *TABLE["commands"]])
def test_it_fits(language: Any, command: str | None, columns: int) -> None:
    """Commands to paste and the line of usage stay whole."""
    said = help_text(command, TABLE, language, columns)
    lines = [line for line in said.splitlines() if "ortgpu-fix " not in line]

    assert [line for line in lines if width(line) > columns] == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("command", TABLE["commands"])
def test_nothing_is_lost_where_lines_break(language: Any, command: str) -> None:
    said = help_text(command, TABLE, language, 60)

    for text in TABLE["commands"][command]["details"]:
        assert "".join(text[language].split()) in "".join(said.split())


@pytest.mark.parametrize(
    "example", [each for row in TABLE["commands"].values() for each in row["examples"]]
)
def test_every_example_can_be_given(example: str) -> None:
    words = shlex.split(example.rpartition("| ")[2])

    assert words[0] == "ortgpu-fix"
    cli.parse(words[1:])


@pytest.mark.parametrize("argv", [["verify", "--help"], ["-h", "verify"]])
def test_a_command_has_its_own(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(argv) == 0

    said = capsys.readouterr().out
    assert said.startswith("usage: ortgpu-fix verify")
    assert "--bench" in said
    assert "--with-cpu" not in said


@pytest.mark.parametrize(
    ("argv", "en", "zh"),
    [
        (["--drivr", "535"], "did you mean `--driver`?", "您是否想用 `--driver`"),
        (["--zzz"], "`--zzz` is not known here", "无法识别 `--zzz`"),
        (["verfy"], "did you mean `verify`?", "您是否想用 `verify`"),
        (["explain", "a", "b"], "`b` is not known here", "无法识别 `b`"),
        (["lock", "--format", "x"], "takes requirements, pylock", "可用的值为 requirements"),
        (["--gpu"], "`--gpu` needs a value", "`--gpu` 缺少值"),
        (["--forget"], "`--forget` goes with `undo, matrix`", "需要与 `undo, matrix` 一起使用"),
        (["matrix", "0.1"], "holds no onnxruntime-gpu 0.1", "没有 onnxruntime-gpu 0.1"),
    ],
)
def test_a_wrong_command_line_is_told_in_both_languages(
    argv: list[str],
    en: str,
    zh: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for language, said in (("en", en), ("zh", zh)):
        monkeypatch.setenv("ORTGPU_FIX_LANG", language)
        assert __main__.main(argv) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "wide"), [((0, 0), COLUMNS), ((60, 24), 60), ((300, 24), COLUMNS)]
)
def test_a_terminal_that_says_no_width_gets_that_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch, said: tuple[int, int], wide: int
) -> None:
    """As one over a serial line."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", mock.Mock(isatty=lambda: True))
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size(said))

    assert console.columns(COLUMNS) == wide
