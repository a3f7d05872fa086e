"""A terminal of any size in which a program runs, as a person sees it. Needs Linux and pyte."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte
from rich.style import Style
from rich.text import Text

LINES = 500
"""More than any output has: nothing scrolls away."""
_COLOURS = {"brown": "yellow", "default": None}
"""pyte's names of colours that rich calls otherwise."""
_HEX = re.compile(r"[0-9a-f]{6}")


def run_in_terminal(
    argv: Sequence[str],
    *,
    columns: int,
    cwd: Path,
    env: Mapping[str, str],
    answers: Mapping[str, str] | None = None,
    seconds: float = 600,
) -> tuple[int, pyte.Screen]:
    """Run `argv` in a terminal of so many columns; return its exit code and what is on the screen.

    `answers`: what is typed when the first text appears. Raises TimeoutError after `seconds`.
    """
    program, terminal = pty.fork()
    if program == 0:
        os.chdir(cwd)
        os.execvpe(argv[0], list(argv), {**env, "TERM": env.get("TERM", "xterm-256color")})  # noqa: S606
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    screen = pyte.Screen(columns, LINES)
    screen.set_mode(pyte.modes.LNM)
    stream = pyte.ByteStream(screen)
    waiting = dict(answers or {})
    end = time.monotonic() + seconds
    with contextlib.suppress(OSError):  # EIO: the program has ended
        while select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            stream.feed(os.read(terminal, 65536))
            for asked in [each for each in waiting if each in "\n".join(screen.display)]:
                os.write(terminal, waiting.pop(asked).encode())
        os.kill(program, 9)
        raise TimeoutError(argv)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]), screen


def lines_of(screen: pyte.Screen) -> list[str]:
    """Return the lines on the screen, without those below the last that has something."""
    lines = [line.rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def as_text(screen: pyte.Screen) -> Text:
    """Return what is on the screen with its colours, for rich to draw."""
    text = Text()
    for number in range(len(lines_of(screen))):
        row = screen.buffer[number]
        for column in range(screen.columns):
            cell = row[column]
            colour = _COLOURS.get(cell.fg, cell.fg)
            if colour and _HEX.fullmatch(colour):
                colour = f"#{colour}"
            text.append(cell.data, Style(color=colour, bold=cell.bold))
        text.append("\n")
    return text
