"""The text of a lock, as whoever checks or compares it reads it: a file, or one of a commit."""

from __future__ import annotations

from pathlib import Path

from ..errors import Error, cause
from ..messages.sections import size
from ..utils.foreign_text import without_controls
from ..utils.process import run

GIT_SECONDS = 60
MOST_BYTES = 20_000_000
"""What is larger is no lock: that of a thousand distributions with twenty wheels each has six."""

NAME = "onnxruntime"
OURS = (NAME, "ortgpu-fix")
"""One of these is in every lock that concerns us: the second in the head of those that we wrote."""


def read_lock_text(file: str) -> str:
    """Return the text of a lock, which may come through a pipe, or is `REVISION:PATH` in git.

    Raises Error `lock-unreadable`. Source of that form: gitrevisions(7), `<rev>:<path>`. On
    Windows what begins with a drive is a file, whether it is there or not.
    """
    revision, _, path = file.partition(":")
    of_git = revision and path and revision[0] != "-" and not Path(file).drive
    if of_git and not Path(file).exists():
        return _of_commit(file)
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            large = cause("file-too-large", size=size(MOST_BYTES))
            raise Error("lock-unreadable", file=file, cause=large)
        return content.decode().replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise Error("lock-unreadable", file=file, cause=error.strerror or error) from error
    except ValueError as error:
        raise Error("lock-unreadable", file=file, cause=cause("text-not-utf8")) from error


def _of_commit(name: str) -> str:
    """Return a text as git holds it: nothing of the repository's configuration is run for that."""
    try:
        done = run(["git", "cat-file", "blob", name], timeout=GIT_SECONDS)
    except OSError as error:
        raise Error("lock-unreadable", file=name, cause=f"git: {error.strerror}") from error
    if done.returncode != 0:
        said = without_controls(done.stderr.strip().rpartition("\n")[2])
        raise Error("lock-unreadable", file=name, cause=said or f"git: {done.returncode}")
    return done.stdout.replace("\r\n", "\n").replace("\r", "\n")
