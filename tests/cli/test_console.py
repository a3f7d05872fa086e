"""Reports on a terminal: in colour unless the user says otherwise, and nothing is cut."""

from __future__ import annotations

import io
import re
import sys

import pytest

from ortgpu_fix.cli.console import print_sections
from ortgpu_fix.messages.sections import Row, Section

PATH = "/opt/" + "a-long-folder/" * 6 + "libcudnn.so.9"
COMMAND = "ortgpu-fix --python " + "x" * 60 + " --apply"
REPORT = [
    Section(heading="Libraries", rows=(Row(head="libcudnn.so.9", text=PATH, style="red"),)),
    Section(
        rows=(
            Row(text="This sentence is too long for a line of sixty columns, so it goes on."),
            Row(text=COMMAND, style="bold", unwrapped=True),
        )
    ),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, **environ: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "60", **environ}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    print_sections(REPORT)
    return stream.getvalue()


def test_a_path_is_never_cut_and_a_command_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, Terminal())

    assert "\x1b[" in said
    assert COMMAND in said
    letters = "".join(said.replace("\x1b[31m", "").replace("\x1b[0m", "").split())
    assert PATH in letters


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}])
def test_a_terminal_gets_lines_of_its_width_without_spaces_at_their_ends(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    said = re.sub(r"\x1b\[[0-9;]*m", "", shown(monkeypatch, Terminal(), **environ))

    assert [line for line in said.splitlines() if line != line.rstrip()] == []
    assert said.splitlines()[-3:] == [
        "This sentence is too long for a line of sixty columns, so it",
        "goes on.",
        COMMAND,
    ]


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escapes_where_nobody_wants_them(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    assert "\x1b" not in shown(monkeypatch, Terminal(), **environ)


def test_a_pipe_gets_colour_on_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in shown(monkeypatch, io.StringIO())
    assert "\x1b" in shown(monkeypatch, io.StringIO(), FORCE_COLOR="1")
    assert "\x1b" not in shown(monkeypatch, io.StringIO(), FORCE_COLOR="1", NO_COLOR="1")
