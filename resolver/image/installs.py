"""What the RUN of a Dockerfile installs into Python, as far as its words tell."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..facts.model import CPU_BUILD, GPU_BUILD
from ..versions import requirement
from .dockerfile import Instruction

_PROGRAM = re.compile(
    r"(?:[^-]\S*/|/)?(?:(pip)3?(?:\.\d+)?|(uv|poetry|pdm|pixi|pipenv|rye|conda|mamba|micromamba"
    r"|apt|apt-get|dnf|microdnf|tdnf|yum|zypper|apk))"
)
_OTHER = re.compile(
    r"uv (?:sync|add)|poetry (?:install|add)|pdm (?:install|sync|add)|pixi install"
    r"|pipenv (?:install|sync)|rye (?:sync|add)|(?:conda|mamba|micromamba) (?:install|create|env)"
)
_SYSTEM = re.compile(r"(?:apt|apt-get|dnf|microdnf|tdnf|yum|zypper) (?:install|in)|apk add")
_CUDA = re.compile(r"(?:nvidia-)?(?:lib)?cu(?:da|dnn|blas)|\S*\.(?:deb|rpm)$")
_UNREAD = re.compile(
    r"(?:(?:\|\||&&|then|else|do|sudo|\w+=\S*) )*(?:(?:\S*/)?"
    r"(?:(?:ba|da|z|a)?sh (?:-\S+ )*[^-\s]|pip-sync |dpkg (?:-i|--install) |rpm -\w*[iU])"
    r"|\S+\.(?:sh|run)(?: |$))|.*cu(?:da|dnn|blas)[^\s/]{0,50}\.(?:deb|rpm|run|tar|tgz|txz|zip)\b"
)
"""What installs that which no word tells: a script, a file of CUDA's."""
_PLACE = re.compile(r"(?<!\S)(\S+?)/bin/(?:pip|python)[\d.]*(?: |$)")
_BEFORE_LETTER = re.compile(r"\A-[UIqvn]+(?=[a-zA-Z])")
_ANEW = re.compile(r"-I|--(?:ignore-installed|force-reinstall|reinstall)")
_LIST = re.compile(r"(-r|--group(?==|$))=?|--requirements?(?:-from-script)?(?:=|$)")
_INDEX = re.compile(r"(?:-i|--(?:extra-|default-)?index(?:-url)?)(?:=|$)")
_LIKE_PYPI = re.compile(
    r"\$|(?!.*(?:onnxruntime|/ort-|jetson)).*(?:pypi|download\.pytorch)", re.IGNORECASE
)
"""Mirrors, torch's index, and what a variable names. Microsoft's feeds have builds of their own:
https://onnxruntime.ai/docs/install/."""
_TAKES_VALUE = frozenset(
    {
        *("-b", "-C", "-c", "-f", "-o", "-P", "-p", "-t", "--abi", "--all-releases"),
        *("--allow-insecure-host", "--build-constraint", "--build-constraints", "--cache-dir"),
        *("--cert", "--client-cert", "--color", "--config-file", "--config-setting"),
        *("--config-settings", "--config-settings-package", "--constraint", "--constraints"),
        *("--default-timeout", "--directory", "--exclude-newer", "--exclude-newer-package"),
        *("--excludes", "--exists-action", "--extra", "--find-links", "--fork-strategy"),
        *("--global-option", "--implementation", "--index-strategy", "--install-option"),
        *("--keyring-provider", "--link-mode", "--log", "--log-file", "--no-binary"),
        *("--no-build-isolation-package", "--no-build-package", "--no-editable-package"),
        *("--no-sources-package", "--only-binary", "--only-final", "--output-format"),
        *("--overrides", "--override", "--platform", "--prefix", "--prerelease"),
        *("--prerelease-package", "--progress-bar", "--project", "--proxy", "--python"),
        *("--python-platform", "--python-version", "--refresh-package", "--reinstall-package"),
        *("--report", "--resolution", "--resume-retries", "--retries", "--root"),
        *("--root-user-action", "--source-dir", "--src", "--target", "--timeout"),
        *("--torch-backend", "--trusted-host", "--upgrade-group", "--upgrade-package"),
        *("--upgrade-strategy", "--uploaded-prior-to", "--use-deprecated", "--use-feature"),
    }
)
"""Of pip and uv, as their `install --help` has them, and older ones."""
_SHELL = re.compile(r"(?:\S*/)?(?:(?:ba|da|z|a)?sh|su)")
_SCRIPT = re.compile(r"-[a-z]*c")
_FLAGS = re.compile(r"\A(?:--\S+\s+)+")
_WORD = r"""(?:\$\([^()'"]*\)|'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;|&()'"\\<>])+"""
_TOKEN = re.compile(
    rf"\s+|(?P<comment>\#[^\n]*)|(?:\d*|&)[<>]+[&|]?\s*(?:{_WORD})?|(?P<separator>[;|&()]+)"
    rf"|(?P<word>{_WORD})|(?P<rest>.+)",
    re.DOTALL,
)
"""A redirection has no name: it is left out."""
_Command = list[tuple[int, str]]
"""The words, with their lines."""


class PipInstall(NamedTuple):
    """A requirement that pip was given."""

    line: int
    wanted: Requirement
    depends: bool = False
    """On a condition of the shell."""
    foreign: bool = False
    """From an index that has builds of its own."""
    place: str = ""
    """The folder of the environment; empty: the command names none."""
    gutted: int | None = None
    """The line that removed the other build, and with it the files that both share."""


class Installs(NamedTuple):
    """What the instructions install."""

    packages: dict[str, PipInstall]
    """By canonical name, in their order; what was removed again is not there."""
    elsewhere: tuple[tuple[int, str], ...]
    """Lines that install what only a file, the index or the shell names, with those words."""


def installs_of(instructions: Iterable[Instruction]) -> Installs:
    """Return what the RUN instructions install."""
    packages: dict[str, PipInstall] = {}
    elsewhere: list[tuple[int, str]] = []
    for row in instructions:
        condition: _Command = []
        for command in _commands(row) if row.word == "RUN" else ():
            if isinstance(command, tuple):
                elsewhere.append(command)
                continue
            line, first = command[0]
            condition = command if first in {"if", "case"} else condition
            condition = [] if first in {"fi", "esac"} else condition
            on = condition or (command if first in {"||", "&&"} else [])
            for said, given in _actions(command):
                if said == "pip uninstall":
                    _remove(given, packages, sure=not on)
                elif said in {"pip install", "pip sync"}:
                    files, place = said == "pip sync", _place(command)
                    _add(given, packages, elsewhere, files=files, depends=bool(on), place=place)
                elif _OTHER.fullmatch(said):
                    elsewhere.append((line, said))
                elif _SYSTEM.fullmatch(said) and (cuda := [*filter(_CUDA.match, _words(given))]):
                    elsewhere.append((line, " ".join([said, *cuda])))
                else:
                    continue
                elsewhere += [(on[0][0], " ".join(_words(on)))] if on else []
    return Installs(packages, tuple(dict.fromkeys(elsewhere)))


def _words(command: _Command) -> list[str]:
    return [word for _, word in command]


def _actions(command: _Command) -> Iterator[tuple[str, _Command]]:
    """Yield each program with its action, `uv sync`, and the words after that."""
    for at, (_, word) in enumerate(command):
        if word in {"echo", "printf"}:
            return
        if match := _PROGRAM.fullmatch(word):
            begin = at + 1
            while begin < len(command) and command[begin][1].startswith(("-", "$")):
                begin += 2 if command[begin][1] in _TAKES_VALUE else 1
            for _, action in command[begin : begin + 1]:
                yield f"{match[1] or match[2]} {action}", command[begin + 1 :]


def _place(command: _Command) -> str:
    match = _PLACE.search(" ".join(_words(command)))
    return match[1] if match else ""


def _remove(words: _Command, packages: dict[str, PipInstall], *, sure: bool) -> None:
    for line, word in words:
        name = canonicalize_name(word)
        gone, gpu = packages.pop(name, None), packages.get(GPU_BUILD)
        if gone and gpu and name == CPU_BUILD and gone.place == gpu.place and sure:
            packages[GPU_BUILD] = gpu._replace(gutted=line)


def _add(
    words: _Command,
    packages: dict[str, PipInstall],
    elsewhere: list[tuple[int, str]],
    *,
    files: bool,
    depends: bool,
    place: str,
) -> None:
    rows = [*_given(words, files=files)]
    others = [(line, given) for line, given in rows if isinstance(given, str)]
    foreign = any(said.startswith("--index-url") for _, said in others)
    elsewhere += others
    anew = any(_ANEW.match(word) for word in _words(words))
    for line, given in rows:
        if isinstance(given, Requirement):
            name = canonicalize_name(given.name)
            new = PipInstall(line, given, depends, foreign, place)
            old = packages.pop(name, new)
            if old.wanted.specifier == given.specifier and old.place == place and not anew:
                new = new._replace(gutted=old.gutted)  # pip has nothing to do
            packages[name] = new


def _given(words: _Command, *, files: bool) -> Iterator[tuple[int, str | Requirement]]:
    """Yield what pip is given to install: requirements, and the words that name other things.

    `files`: all that is given is the name of a file.
    """
    waiting = iter(words)
    for line, said in waiting:
        word = _BEFORE_LETTER.sub("-", said)
        if match := _LIST.match(word):
            named = word[match.end() :] or next(waiting, (line, ""))[1]
            yield line, f"{match[1] or '-r'} {named}"
        elif match := _INDEX.match(word):
            named = word[match.end() :] or next(waiting, (line, ""))[1]
            if not _LIKE_PYPI.match(named):
                yield line, f"--index-url {named}"
        elif word in _TAKES_VALUE:
            next(waiting, None)
        elif word in {"-e", "--editable"}:
            yield line, f"-e {next(waiting, (line, ''))[1]}"
        elif not word.startswith("-"):
            wanted = None if files else requirement(word)
            yield line, word if wanted is None or wanted.url else wanted


def _commands(row: Instruction) -> Iterator[_Command | tuple[int, str]]:
    """Yield the commands of a RUN, and with its line what cannot be read."""
    text = _FLAGS.sub("", row.text)
    line = row.line + row.text.count("\n") - text.count("\n")
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        yield from _shell(text, line)
    else:
        if isinstance(listed, list) and listed:
            yield from _inside([(line, str(word)) for word in listed])


def _inside(command: _Command) -> Iterator[_Command | tuple[int, str]]:
    """Yield a command, or those of the script that it gives to a shell."""
    shell = next((at for at, row in enumerate(command) if _SHELL.fullmatch(row[1])), len(command))
    options = [at for at in range(shell, len(command) - 1) if _SCRIPT.fullmatch(command[at][1])]
    if options:
        line, script = command[options[0] + 1]
        yield from _shell(script, line)
    elif _UNREAD.match(text := " ".join(_words(command))):
        yield command[0][0], text
    elif command:
        yield command


def _shell(text: str, line: int) -> Iterator[_Command | tuple[int, str]]:
    command: _Command = []
    for token in _TOKEN.finditer(text):
        if token["word"]:
            command.append((line, " ".join(shlex.split(token[0]))))
        elif token["rest"]:  # a quote that does not end
            yield line, token[0].partition("\n")[0]
        elif token["comment"] or token["separator"]:
            yield from _inside(command)
            tested = token[0] == "&&" and command and command[0][1] in {"[", "[[", "test", "&&"}
            command = [(line, token[0])] if tested or token[0] == "||" else []
        line += token[0].count("\n")
    yield from _inside(command)
