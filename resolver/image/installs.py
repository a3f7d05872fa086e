"""What the RUN of a Dockerfile installs into Python, as far as its words tell."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..versions import requirement
from .dockerfile import Instruction

_PIP = re.compile(r"(?:\S*/)?pip3?(?:\.\d+)?")
_LIST = re.compile(r"(?:-r|--requirements?)(?:=|$)")
_OTHER = re.compile(
    r"(?:\S*/)?(?:uv (?:sync|add)|poetry (?:install|add)|pdm (?:install|sync|add)|pixi install"
    r"|pipenv (?:install|sync)|(?:conda|mamba|micromamba) (?:install|create|env)) ?"
)
_TAKES_VALUE = frozenset(
    {
        *("-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"),
        *("-t", "--target", "--prefix", "--root", "--python", "-p", "--python-version"),
        *("--platform", "--no-binary", "--only-binary", "--timeout", "--retries"),
        *("--trusted-host", "--cache-dir", "--index", "--default-index", "--torch-backend"),
        *("--progress-bar", "--python-platform", "--link-mode", "--no-build-isolation-package"),
    }
)
_SEPARATORS = frozenset(";|&()")


class PipInstall(NamedTuple):
    """A requirement that pip was given."""

    line: int
    wanted: Requirement


class Installs(NamedTuple):
    """What the instructions install."""

    packages: dict[str, PipInstall]
    """By canonical name, in their order; what was removed again is not there."""
    elsewhere: tuple[tuple[int, str], ...]
    """Lines that install what only a file or the index names, with those words."""


def installs_of(instructions: Iterable[Instruction]) -> Installs:
    """Return what the RUN instructions install."""
    packages: dict[str, PipInstall] = {}
    elsewhere: list[tuple[int, str]] = []
    for row in instructions:
        for command in _commands(row) if row.word == "RUN" else ():
            words = [word for _, word in command]
            if other := _OTHER.match(" ".join(words[:2]) + " "):
                elsewhere.append((command[0][0], other[0].strip()))
            at = next((at for at, word in enumerate(words) if _PIP.fullmatch(word)), len(words))
            action = words[at + 1 : at + 2]
            if action == ["uninstall"]:
                for word in words[at + 2 :]:
                    packages.pop(canonicalize_name(word), None)
            elif action in (["install"], ["sync"]):
                for line, given in _given(command[at + 2 :], files=action == ["sync"]):
                    if isinstance(given, str):
                        elsewhere.append((line, given))
                    else:
                        name = canonicalize_name(given.name)
                        packages.pop(name, None)
                        packages[name] = PipInstall(line, given)
    return Installs(packages, tuple(elsewhere))


def _given(
    words: Sequence[tuple[int, str]], *, files: bool
) -> Iterator[tuple[int, str | Requirement]]:
    """Yield what pip is given to install: requirements, and the words that name other things.

    `files`: all that is given is the name of a file.
    """
    waiting = iter(words)
    for line, word in waiting:
        if match := _LIST.match(word):
            named = word[match.end() :] or next(waiting, (line, ""))[1]
            yield line, f"-r {named}"
        elif word in _TAKES_VALUE:
            next(waiting, None)
        elif word in {"-e", "--editable"}:
            yield line, f"-e {next(waiting, (line, ''))[1]}"
        elif not word.startswith("-"):
            wanted = None if files else requirement(word)
            yield line, word if wanted is None or wanted.url else wanted


def _commands(row: Instruction) -> Iterator[list[tuple[int, str]]]:
    """Yield the commands of a RUN, each a list of words with their lines."""
    try:
        listed = json.loads(row.text)
    except (ValueError, RecursionError):
        yield from _shell(row)
    else:
        if isinstance(listed, list) and listed:
            yield [(row.line, str(word)) for word in listed]


def _shell(row: Instruction) -> Iterator[list[tuple[int, str]]]:
    reader = shlex.shlex(row.text, posix=True, punctuation_chars="".join(_SEPARATORS))
    reader.whitespace_split, reader.commenters = True, ""
    command: list[tuple[int, str]] = []
    try:
        for word in reader:
            if {*word} <= _SEPARATORS:
                yield from [command] if command else []
                command = []
            else:
                command.append((row.line + reader.lineno - 1, word))
    except ValueError:  # a quote that does not end
        return
    yield from [command] if command else []
