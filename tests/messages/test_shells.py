"""Commands that are printed arrive as they are meant, in each shell that they are printed for."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows_shells import NotOneCommandError, cmd, powershell, split_as_c_does

from ortgpu_fix.messages.shells import PROGRAM, TypedCommand, pasted_commands

VARIABLES = {"PATH": "C:\\Windows", "HOME": "C:\\Users\\me", "A": "expanded"}
NASTY = " \"&^%!'`,;()@$#~*?[]{}<>|=+-.\\/:“”„‘’‚‛aA1é路"


def arrive(words: list[str]) -> None:
    """Assert that each line gives a program these words, in the shells that it is for."""
    for shell, text in pasted_commands(words, "windows"):
        if shell != "PowerShell":
            assert cmd(text, VARIABLES) == words
        if shell != "cmd":
            quotes = any('"' in word for word in words)  # before 7.3 no text passes one
            for since_7_3 in (True,) if quotes else (True, False):
                got = powershell(text, VARIABLES, since_7_3=since_7_3)
                # A folder may get one separator more at its end: it is the same folder.
                ends = [word.rstrip("\\") for word in words]
                assert [word.rstrip("\\") for word in got] == ends


@pytest.mark.parametrize(
    "value",
    [
        "<1.26",
        "C:\\a b\\",
        "Z:\\",
        "C:\\%PATH%\\x",
        'a"&b"%PATH%"',
        "C:\\$HOME\\x",
        "C:\\it's",
        "C:\\it’s",
        "C:\\a`b",
        "@file",
        "-v:1.2",
        "",
    ],
)
def test_a_value_arrives_in_both_shells_of_windows(value: str) -> None:
    arrive(["ortgpu-fix", "--ort", value, "--apply"])


@given(st.lists(st.text(st.sampled_from(NASTY), max_size=8), max_size=4))
def test_any_words_arrive_in_both_shells_of_windows(words: list[str]) -> None:
    arrive(["ortgpu-fix", *words])


@given(st.text(st.sampled_from(NASTY), min_size=1, max_size=8))
def test_a_program_with_an_odd_path_is_started(program: str) -> None:
    arrive([program, "--apply"])


def test_one_text_serves_both_shells_but_where_one_of_them_expands_it() -> None:
    [(shell, text)] = pasted_commands(["ortgpu-fix", "--ort", "<1.26", "--apply"], "windows")

    assert (shell, text) == (None, 'ortgpu-fix --ort "<1.26" --apply')
    assert [row.shell for row in pasted_commands(["x", "100%"], "windows")] == ["cmd", "PowerShell"]


def test_a_command_in_a_sentence_has_what_its_text_adds_for_each_shell() -> None:
    """`{command} --apply` was two commands, and only the second one applied."""
    odd = TypedCommand(("x", "--python", "C:\\$a"), "windows")

    assert f"{PROGRAM} and {PROGRAM:--torch match}" == "`ortgpu-fix` and `ortgpu-fix --torch match`"
    assert f"{odd:--apply}" == (
        "`x --python \"C:\\$a\" --apply` (cmd), `x --python 'C:\\$a' --apply` (PowerShell)"
    )
    assert f"{TypedCommand(('x', chr(27) + '[31ma b'))}" == "`x 'a b'`"


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_on_other_systems_it_is_a_line_for_sh(words: list[str]) -> None:
    [(shell, text)] = pasted_commands(words, "linux")

    assert (shell, shlex.split(text)) == (None, words)


def test_zsh_takes_no_word_for_the_path_of_a_program() -> None:
    """`=NAME` is one there, so `==1.31.1` would end in "=1.31.1 not found"."""
    [(_, text)] = pasted_commands(["x", "--ort", "==1.31.1", "--a=b"], "linux")

    assert text == "x --ort '==1.31.1' --a=b"


def test_the_parsers_of_this_test_refuse_what_they_must() -> None:
    assert split_as_c_does('a "b c" d\\\\"e f" \\"g') == ["a", "b c", "d\\e f", '"g']
    for line in ("x --ort <1.26", "x a&b", "x a|b"):
        with pytest.raises(NotOneCommandError):
            cmd(line, {})
    for line in ("x --ort <1.26", "x a;b", "x (a)", "x @a", "'x y' a", "x -a.b", "x 'a"):
        with pytest.raises(NotOneCommandError):
            powershell(line, {}, since_7_3=True)
    assert cmd('x %A% "%A%" %B%', {"A": "v"}) == ["x", "v", "v", "%B%"]
    assert powershell('x "$A" \'$A\' "`$A"', {"A": "v"}, since_7_3=True) == ["x", "v", "$A", "$A"]
