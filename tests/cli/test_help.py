"""The help, of the whole program and of each command, in both languages."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ortgpu_fix import __main__
from ortgpu_fix.cli import console
from ortgpu_fix.cli import parser as cli
from ortgpu_fix.cli.flags import FORMATS, SHELLS
from ortgpu_fix.cli.guests import FLAGS, NAMES, flags_of
from ortgpu_fix.cli.help import COLUMNS, HelpWords, full_help, short_help
from ortgpu_fix.data_files import load_table
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.sections import width

TABLE = load_table("help")
ENGLISH = HelpWords(TABLE, "en")
EXAMPLES = {
    (row.get("command", name), example)
    for rows in (TABLE["commands"], TABLE["more"])
    for name, row in rows.items()
    for example in row.get("examples", ())
}


def flags_in(said: str) -> list[str]:
    return re.findall(r"^  (?:-\w, )?--([a-z-]+)", said, re.MULTILINE)


def test_every_flag_has_its_words_and_its_commands() -> None:
    shown = {flag.name for command in NAMES for flag in ENGLISH.flags(command)}

    assert shown == set(TABLE["flags"]) == {flag.name for flag in FLAGS}
    assert set(TABLE["commands"]) == set(NAMES)


@pytest.mark.parametrize("command", NAMES)
def test_what_is_said_of_flags_is_of_flags_that_the_command_takes(command: str) -> None:
    row, taken = TABLE["commands"][command], {flag.name for flag in flags_of(command)}

    assert {*row["short"], *row.get("hides", ()), *row.get("flags", ())} <= taken
    assert set(row["short"]) <= {flag.name for flag in ENGLISH.flags(command)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_fits(language: Any) -> None:
    """Commands to paste and the line of usage stay whole."""
    words = HelpWords(TABLE, language, 60)
    for command in (None, *TABLE["commands"]):
        for said in (full_help(command, words), short_help(command, words)):
            lines = [line for line in said.splitlines() if "ortgpu-fix " not in line]

            assert [line for line in lines if width(line) > 60] == []


def test_every_example_can_be_given() -> None:
    for _, example in sorted(EXAMPLES):
        words = shlex.split(example.rpartition("| ")[2])

        assert words[0] == "ortgpu-fix"
        cli.parse(words[1:])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("command", [None, *TABLE["commands"]])
def test_the_short_help_fits_a_screen(language: Any, command: str | None) -> None:
    said = short_help(command, HelpWords(TABLE, language, 80))
    lines = said.splitlines()

    assert len(lines) <= 24
    assert lines[0].endswith(("]", "COMMAND ...")), "the usage"
    assert lines[-2].startswith(("Example: ortgpu-fix", "示例：ortgpu-fix"))
    assert "ortgpu-fix help" in lines[-1]
    assert {*flags_in(said)} == {*TABLE["commands"][command or "plan"]["short"]}


@pytest.mark.parametrize(
    ("argv", "begin", "has", "lacks"),
    [
        (["-h"], "usage: ortgpu-fix [OPTIONS]", "Commands", "Exit codes"),
        (["--help"], "usage: ortgpu-fix [OPTIONS]", "Exit codes", "--shape"),
        (["verify", "--help"], "usage: ortgpu-fix verify", "--bench", "--with-cpu"),
        (["--apply", "--help"], "usage: ortgpu-fix --apply", "do not ask", "with --apply"),
    ],
)
def test_each_has_its_own(
    argv: list[str], begin: str, has: str, lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(argv) == 0

    said = capsys.readouterr().out
    assert said.startswith(begin)
    assert has in said
    assert lacks not in said


@pytest.mark.parametrize(
    ("argv", "en", "zh"),
    [
        (["--drivr", "535"], "did you mean `--driver`?", "您是否想用 `--driver`"),
        (["verfy"], "did you mean `verify`?", "您是否想用 `verify`"),
        (["--gpu"], "`--gpu` needs a value", "`--gpu` 缺少值"),
        (["--apply=yes"], "`--apply` takes no value", "`--apply` 不接受值"),
        (["diff", "old", ""], "`diff` needs a value", "`diff` 缺少值"),
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


def test_a_value_that_is_empty_is_no_wish() -> None:
    """A variable of the shell that is not set: `--python "$APPVENV"` is not what is here."""
    for flag in (each for each in FLAGS if each.takes != "nothing"):
        command = next(name for name in NAMES if flag in flags_of(name))
        with pytest.raises(Error) as caught:
            cli.parse([command, flag.spellings[0], ""])
        problem = caught.value.values["problem"]
        assert isinstance(problem, Error)
        assert (problem.code, problem.values) == ("value-missing", {"flag": f"--{flag.name}"})


@pytest.mark.parametrize(("said", "wide"), [((0, 0), COLUMNS), ((60, 24), 60)])
def test_a_terminal_that_says_no_width_gets_that_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch, said: tuple[int, int], wide: int
) -> None:
    """As one over a serial line."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", mock.Mock(isatty=lambda: True))
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size(said))

    assert console.columns(COLUMNS) == wide


COMPLETED = [
    ("ortgpu-fix lock --format ", [*FORMATS]),
    ("ortgpu-fix explain help", ["help.txt"]),
    ("ortgpu-fix --json cache ", ["dir", "info", "purge"]),
    ("ortgpu-fix --find-links whe", ["wheels"]),
]


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_printed_for_each_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["--completions", shell]) == 0

    script = capsys.readouterr().out
    assert all(command in script for command in NAMES)
    assert "--torch-index-url" in script
    assert (
        shell == "bash" or "read only the log, and do not check this machine" in script
    )  # bash shows no words


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("typed", "offered"), COMPLETED)
def test_bash_completes(
    typed: str, offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "example.json").touch()
    (tmp_path / "help.txt").touch()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels.txt").touch()
    __main__.main(["--completions", "bash"])
    words = [*shlex.split(typed), *([""] if typed.endswith(" ") else [])]
    script = (
        capsys.readouterr().out
        + f"""
complete -p ortgpu-fix
COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
COMP_LINE={shlex.quote(typed)}; COMP_POINT=${{#COMP_LINE}}
_shtab_ortgpu_fix && printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.stdout.splitlines()[1:] == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("command", "words"),
    [("cache", "(dir info purge)"), ("explain", "_files")],
)
def test_zsh_completes_the_word_after_the_command(
    command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    __main__.main(["--completions", "zsh"])
    script = f"""compdef() {{ }}
eval {shlex.quote(capsys.readouterr().out)}
print -r -- "${{_shtab_ortgpu_fix_{command}_options[-1]}}"
"""
    done = subprocess.run(["zsh", "-fc", script], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"(*)::words:{words}\n", "")
