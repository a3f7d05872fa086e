"""The help, of the whole program and of each command, in both languages."""

from __future__ import annotations

import os
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
from ortgpu_fix.cli.flags import FORMATS, SHELLS, Flag
from ortgpu_fix.cli.guests import FLAGS, NAMES
from ortgpu_fix.cli.help import COLUMNS, GROUPS, help_text
from ortgpu_fix.data_files import load_table
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.sections import width

TABLE = load_table("help")
LONG = {flag.name for flag in FLAGS}


def test_every_flag_has_its_words_and_its_commands() -> None:
    of_commands = {flag for row in TABLE["commands"].values() for flag in row["flags"]}

    assert set(TABLE["flags"]) == LONG
    assert of_commands | set(TABLE["common"]["flags"]) == LONG
    assert set(TABLE["commands"]) == set(NAMES)


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

    for example in TABLE["commands"][command]["examples"]:
        assert f"\n  {example}\n" in said
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
        (["--zzz"], "Unrecognized argument `--zzz`", "无法识别 `--zzz`"),
        (["verfy"], "did you mean `verify`?", "您是否想用 `verify`"),
        (["diff", "a"], "`diff` requires `OLD NEW`", "`OLD NEW`"),
        (["diff", "a", "b", "c"], "Unrecognized argument `c`", "无法识别 `c`"),
        (["lock", "--format", "x"], "choose from requirements, pylock", "可选 requirements"),
        (["--gpu"], "`--gpu` needs a value", "`--gpu` 缺少值"),
        (["explain", ""], "`explain` needs a value", "`explain` 缺少值"),
        (["diff", "", "new"], "`diff` needs a value", "`diff` 缺少值"),
        (["diff", "old", ""], "`diff` needs a value", "`diff` 缺少值"),
        (["--json=1"], "`--json` takes no value", "`--json` 不接受值"),
        (["--forget"], "`--forget` requires `undo, matrix`", "`--forget` 需要 `undo, matrix`"),
        (["matrix", "0.1"], "onnxruntime-gpu 0.1 is not in the", "没有 onnxruntime-gpu 0.1"),
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


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.takes != "nothing"])
def test_a_value_that_is_empty_is_no_wish(flag: Flag) -> None:
    """A variable of the shell that is not set: `--python "$APPVENV"` is not what is here."""
    for spelling in flag.spellings:
        with pytest.raises(Error) as caught:
            cli.parse([spelling, ""])
        problem = caught.value.values["problem"]
        assert isinstance(problem, Error)
        assert (problem.code, problem.values) == ("value-missing", {"flag": f"--{flag.name}"})


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


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_whole_fits_a_screen_in_groups_by_job(language: Any) -> None:
    lines = help_text(None, TABLE, language, 80).splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ")]

    assert len(lines) <= 24
    usage = TABLE["headings"]["usage"][language]
    assert lines[0] == usage.format(usage="ortgpu-fix [COMMAND] [FLAGS]")
    assert f"  plan         {TABLE['commands']['plan']['brief'][language]}" in lines
    assert lines[-1] in TABLE["headings"]["more"][language]
    assert sorted(named) == sorted(NAMES)
    heads = [TABLE["headings"][group][language] for group in GROUPS]
    assert [line for line in lines if line in heads] == heads


@pytest.mark.parametrize("command", TABLE["commands"])
def test_a_flag_is_told_once(command: str) -> None:
    said = help_text(command, TABLE, "en").partition("\nflags:\n")[2].partition("\n\n")[0]
    told = [line.split()[0] for line in said.splitlines() if line.startswith("  -")]

    assert len(told) == len(set(told))
    assert "--json" in told


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("check", ["driver", "gpu", "no-autoload", "no-provide"]),
        ("explain", ["driver", "gpu", "platform"]),
        ("matrix", ["driver", "gpu"]),
    ],
)
def test_what_a_command_takes_is_told(command: str, flags: list[str]) -> None:
    said = help_text(command, TABLE, "en")

    assert [flag for flag in flags if f"\n  --{flag}" not in said] == []


@pytest.mark.parametrize(("command", "indent"), [("run", 2), ("apply", 4)])
def test_exit_codes_stand_in_a_column(command: str, indent: int) -> None:
    said = help_text(command, TABLE, "en")

    assert f"\n  2{' ' * indent}the command line" in said
    assert ("\n  130  interrupted (Ctrl-C)" in said) is (command == "apply")
    assert {4, 5, 130} <= {*TABLE["commands"]["plan"]["exits"]}  # it tells of --apply


@pytest.mark.parametrize("command", TABLE["commands"])
def test_a_command_has_its_own_exit_codes_alone(command: str) -> None:
    said = help_text(command, TABLE, "en").rpartition("exit codes:")[2]

    assert [int(line.split()[0]) for line in said.splitlines() if line] == (
        TABLE["commands"][command]["exits"]
    )
    assert 2 in TABLE["commands"][command]["exits"]  # a wrong command line


COMPLETED = [
    ("ortgpu-fix ve", ["verify"]),
    ("ortgpu-fix lock --form", ["--format"]),
    ("ortgpu-fix lock --format ", [*FORMATS]),
    ("ortgpu-fix --facts exa", ["example.json"]),
    ("ortgpu-fix explain exa", ["example.json"]),
    ("ortgpu-fix help ve", ["verify"]),
    ("ortgpu-fix help do", ["download"]),
    ("ortgpu-fix explain help", ["help.txt"]),
    ("ortgpu-fix --json cache ", ["dir", "info", "purge"]),
    ("ortgpu-fix --python exa", ["example.json"]),
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
        shell == "bash" or "use the log alone, without this machine" in script
    )  # bash shows no words


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_help_and_version_need_nothing_to_be_right(
    asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main([asked, "--driver", "580.65.06"]) == 0  # without `--gpu`
    assert "ortgpu-fix" in capsys.readouterr().out


def test_completions_of_another_shell_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--completions", "elvish"]) == 2
    assert "bash, zsh, fish, powershell" in capsys.readouterr().err


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


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("typed", "offered"), COMPLETED)
def test_fish_completes(
    typed: str, offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "example.json").touch()
    (tmp_path / "help.txt").touch()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels.txt").touch()
    __main__.main(["--completions", "fish"])
    script = capsys.readouterr().out + f"\ncomplete -C {shlex.quote(typed)}\n"
    env = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(
        ["fish", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )

    assert [line.partition("\t")[0].rstrip("/") for line in done.stdout.splitlines()] == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["help", ""], [*NAMES]),
        (["--json", "cache", ""], [*cli.CACHE]),
        (["explain", "help"], ["a file"]),
    ],
)
def test_zsh_completes_the_word_after_the_command(
    words: list[str], offered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    __main__.main(["--completions", "zsh"])
    function = capsys.readouterr().out.partition("# Custom Preamble")[2].partition("# End")[0]
    script = f"""{function}
compadd() {{ print -l -- "${{@[2,-1]}}" }}
_files() {{ print a file }}
words=(ortgpu-fix {shlex.join(words)}); CURRENT=$#words
_ortgpu_fix_file
"""
    done = subprocess.run(["zsh", "-fc", script], capture_output=True, text=True, check=False)

    assert (done.stdout.splitlines(), done.stderr) == (offered, "")
