"""The text of a lock, as whoever checks or compares it reads it: a file, or one of a commit."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import Error, cause
from ...messages.sections import size
from ...requirements.lines import files_named, is_read_otherwise
from ...utils.child_environment import child_environment
from ...utils.foreign_text import without_controls
from ...utils.process import run
from ...utils.programs import find_program

GIT_SECONDS = 60
_GIT = (
    *("--no-replace-objects", "-c", "core.fsmonitor=", "-c", "safe.bareRepository=explicit"),
    *("cat-file", "blob"),
)
"""A bare repository in a folder of a checkout is not taken up."""
MOST_BYTES = 20_000_000
"""What is larger is no lock: that of a thousand distributions with twenty wheels each has six."""

NAME = "onnxruntime"
OURS = (NAME, "ortgpu-fix")
"""One of these is in every lock that concerns us: the second in the head of those that we wrote."""


def read_lock_text(file: str) -> str:
    """Return the text of a lock, which may come through a pipe, or is `REVISION:PATH` in git.

    Raises Error `lock-unreadable`. Source of that form: gitrevisions(7), `<rev>:<path>`.
    """
    text = _of_commit(file) if _is_of_git(file) else _of_file(file)
    if is_read_otherwise(text):
        raise Error("lock-unreadable", file=file, cause=cause("text-not-utf8"))
    return text


def _of_file(file: str) -> str:
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            large = cause("file-too-large", size=size(MOST_BYTES))
            raise Error("lock-unreadable", file=file, cause=large)
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise Error("lock-unreadable", file=file, cause=error.strerror or error) from error
    except ValueError as error:
        raise Error("lock-unreadable", file=file, cause=cause("text-not-utf8")) from error


def read_included(file: str, text: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the requirements files that `text` of `file` includes, and those that they include.

    As `Included` of the parser. Raises as `read_lock_text`.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    waiting = [(file, text)]
    while waiting:
        place, lines = waiting.pop()
        for name, limits in files_named(lines):
            if not (limits or "://" in name or (place, name) in found):
                inside = _beside(place, name)
                found[place, name] = inside, read_lock_text(inside)
                waiting.append(found[place, name])
    return found


def mentions(
    names: Iterable[str], text: str, included: Mapping[tuple[str, str], tuple[str, str]]
) -> bool:
    """Return whether one of `names` stands in `text`, or in what it has `included`."""
    texts = [text, *(inside for _, inside in included.values())]
    whole = [re.sub(r"\\\s", "", each).lower() for each in texts]  # a word may be continued
    return any(name in each for name in names for each in whole)


def _beside(file: str, name: str) -> str:
    """Return the file that `file` calls `name`, as it is called from here."""
    revision, colon, path = file.partition(":") if _is_of_git(file) else ("", "", file)
    return f"{revision}{colon}{os.path.normpath(Path(path).parent / name)}"


def _is_of_git(file: str) -> bool:
    """Return whether a name is `REVISION:PATH`: on Windows what begins with a drive is none."""
    revision, _, path = file.partition(":")
    of_git = revision and path and revision[0] != "-" and not Path(file).drive
    return bool(of_git) and not Path(file).exists()


def _of_commit(name: str) -> str:
    """Return a text as git holds it: nothing of the repository's configuration is run for that."""
    try:
        program = find_program("git", os.environ)
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        env = child_environment(os.environ, "git")
        done = run([program, *_GIT, name], timeout=GIT_SECONDS, env=env)
    except OSError as error:
        raise Error("lock-unreadable", file=name, cause=f"git: {error.strerror}") from error
    if done.returncode != 0:
        said = without_controls(done.stderr.strip().rpartition("\n")[2])
        raise Error("lock-unreadable", file=name, cause=said or f"git: {done.returncode}")
    return done.stdout.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
