"""Start the user's program with our folder in front of PYTHONPATH; read what its Pythons report.

Shell. The folder is a temporary one; nothing else is written, and it is removed at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ...errors import Error
from ...utils.process import run_in_foreground
from .events import InferenceSession, ProgramSeen, StartedProgram, Unobserved, parse_events

SHOWN_WORDS = 4
"""Words of a Python that nobody looked into."""
_CHILDREN = Path(__file__).with_name("children")
_IGNORING = frozenset("IES")
"""Options with which a Python does not read PYTHONPATH, or no sitecustomize."""
_OPTION = re.compile("-(?=.)([^-cmQWX]*)([cmQWX]|-check-hash-based-pycs$)?(.*)")
"""Options of Python's: letters, one that takes the rest or the next word, and that rest."""


def watch_program(
    command: Sequence[str],
    environ: Mapping[str, str],
    show_session: Callable[[InferenceSession], None] | None = None,
    hear: Callable[[str], None] | None = None,
) -> tuple[int, ProgramSeen]:
    """Run `command` to its end, and return its exit status and what was seen of it.

    The status is negative for the signal that ended it. `show_session` is called with each session
    soon after it was made, `hear` with the lines of standard error. Interrupts go to the program,
    which decides what they do. Raises Error `program-not-started`.
    """
    if sys.platform == "win32":  # which looks beside our own Python before it reads the PATH
        command = (shutil.which(command[0], path=environ.get("PATH")) or command[0], *command[1:])
    with _folder() as folder:
        known: set[str] = set()

        def look() -> None:
            for session in _read(folder).sessions:
                if show_session is not None and session.id not in known:
                    known.add(session.id)
                    show_session(session)

        try:
            status = run_in_foreground(
                command,
                env=with_hook(environ, folder / "hook"),
                now_and_then=show_session and look,
                hear=hear,
            )
        except OSError as error:
            problem = error.strerror or error
            raise Error("program-not-started", program=command[0], problem=problem) from error
        look()
        _pass_on(folder)
        seen = _read(folder)
    return status, replace(seen, unobserved=_unobserved(command, seen.started, environ))


def with_hook(environ: Mapping[str, str], hook: Path) -> dict[str, str]:
    """Return the environment of a program whose Pythons read `hook` first."""
    before = environ.get("PYTHONPATH")
    places = [str(hook), before] if before else [str(hook)]
    return {**environ, "PYTHONPATH": os.pathsep.join(places)}


def _unobserved(
    command: Sequence[str], started: Sequence[StartedProgram], environ: Mapping[str, str]
) -> tuple[Unobserved, ...]:
    """Return the Pythons that did not read our folder: that of `command`, and what it started."""
    found = []
    for words, hooked in (StartedProgram(tuple(command), hooked=True), *started):
        python = python_of(words, environ)
        option = ignoring(python)
        if option or (python and not hooked):
            found.append(Unobserved(tuple(words[:SHOWN_WORDS]), option))
    return tuple(dict.fromkeys(found))


def python_of(command: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the words of `command` from its Python on; nothing where it is no Python's.

    Read from the command, and from the first line of a script that it names on the PATH of
    `environ`.
    """
    words = list(command)
    program = Path(shutil.which(words[0], path=environ.get("PATH")) or words[0])
    if not _is_python(program.name):
        try:
            with program.open("rb") as file:
                line = file.readline(400)
        except OSError:
            return []
        words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    while words and not _is_python(words[0]):  # `env -S`
        words = words[1:]
    return words


def ignoring(python: Sequence[str]) -> str:
    """Return the option with which a Python of these words ignores us: `-I`; empty without one."""
    options = iter(python[1:])
    for word in options:
        found = _OPTION.fullmatch(word)
        if found is None:
            break
        letters, taking, value = found.groups()
        if _IGNORING & set(letters):
            return word
        if taking in {"c", "m"}:
            break
        if taking and not value:
            next(options, "")
    return ""


def _is_python(word: str) -> bool:
    return word.replace("\\", "/").rpartition("/")[2].lower().startswith("python")


@contextmanager
def _folder() -> Iterator[Path]:
    try:
        folder = Path(tempfile.mkdtemp(prefix="ortgpu-fix-run-"))
    except OSError as problem:
        raise Error("program-not-started", program=sys.executable, problem=problem) from problem
    try:
        hook = folder / "hook"
        hook.mkdir()
        for file in _CHILDREN.glob("[!_]*.py"):
            (hook / file.name).write_bytes(file.read_bytes())
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> ProgramSeen:
    """Return what was reported so far."""

    def lines() -> Iterator[str]:
        for file in sorted(folder.glob("*.jsonl"), key=lambda each: each.stat().st_mtime_ns):
            yield from file.read_text("utf-8", "replace").splitlines()

    return parse_events(lines())


def _pass_on(folder: Path) -> None:
    """Write what a program that was killed could not write itself to standard error."""
    for file in sorted(folder.glob("words-*")):
        left = file.read_bytes()
        if left:
            sys.stderr.flush()
            os.write(2, left)
