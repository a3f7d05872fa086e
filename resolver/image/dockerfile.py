"""Reads the text of a Dockerfile: its stages, and the instructions of which the last one is made.

Nothing is run: what a shell would compute is left as it is written.
Source: https://docs.docker.com/reference/dockerfile/
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_ESCAPE = re.compile(r"\s*#\s*escape\s*=\s*`", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})")
_HERE_DOCUMENT = re.compile(
    r"(?P<run>(?:^|[;&|]\s*)(?:--\S+\s+)*(?:(?:[^\s;&|]*/)?(?:ba|da|z|a)?sh(?:\s+-\S+)*\s+)?)?"
    r"<<-?\s*(['\"]?)(?P<end>\w+)\2"
)
"""It is run where a shell reads it, or no command."""
_FROM = re.compile(r"(?:--platform=(\S+)\s+|--\S+\s+)*(\S+)(?:\s+as\s+(\S+))?", re.IGNORECASE)
_COPIED = re.compile(r"--from=(\S+)")
_OF_CUDA = re.compile(r"(?:/|lib)cu(?:da|dnn|blas)")


class Instruction(NamedTuple):
    """An instruction; a line break stands where its text has one."""

    line: int
    """From 1."""
    word: str
    """`RUN`."""
    text: str


class Stage(NamedTuple):
    """What begins with a FROM."""

    line: int
    base: str
    """An image, or the name of a stage."""
    name: str
    """Empty: it has none."""
    instructions: tuple[Instruction, ...]
    platform: str = ""
    """`linux/arm64`; empty: that of whoever builds it."""


def read_dockerfile(text: str) -> tuple[Stage, ...]:
    """Return the stages of a Dockerfile, with the values that its ARG and ENV give to variables."""
    stages: list[Stage] = []
    values: dict[str, str] = {}
    for row in _instructions(text):
        said = row.text if row.word == "RUN" else _filled(row.text, values)
        if row.word == "FROM" and (match := _FROM.match(said)):
            platform, base, name = match.groups("")
            stages.append(Stage(row.line, base, name.lower(), (), platform))
        elif stages:
            kept = (*stages[-1].instructions, row._replace(text=said))
            stages[-1] = stages[-1]._replace(instructions=kept)
        if row.word in {"ARG", "ENV"}:
            values |= assigned(said)
    return tuple(stages)


def based_on(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the last stage after those that it is built on; the image is of the first's base."""
    chain: list[Stage] = []
    for stage in reversed(stages):
        if not chain or stage.name == chain[0].base.lower():
            chain.insert(0, stage)
    return tuple(chain)


def taken_from(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages whose files can be in the image, in their order."""
    wanted = {id(stage) for stage in based_on(stages)}
    for number, stage in reversed(list(enumerate(stages))):
        names = {stage.name, str(number)}
        if any(names & _sources(later) for later in stages if id(later) in wanted):
            wanted.add(id(stage))
    return tuple(stage for stage in stages if id(stage) in wanted)


def copied_from_elsewhere(stages: Sequence[Stage]) -> Iterator[tuple[int, str]]:
    """Yield the COPYs that bring what no instruction names: from another image, or CUDA."""
    own = {name for number, stage in enumerate(stages) for name in (stage.name, str(number))}
    for row in (row for stage in taken_from(stages) for row in stage.instructions):
        source = _COPIED.search(row.text) if row.word == "COPY" else None
        words = row.text.split()
        if not source or "/bin/" in f"{words[-1]}/":
            continue
        if source[1].lower() not in own or _OF_CUDA.search(row.text):
            yield row.line, " ".join(["COPY", *words])


def _sources(stage: Stage) -> set[str]:
    copied = {
        name.lower()
        for row in stage.instructions
        if row.word == "COPY"
        for name in _COPIED.findall(row.text)
    }
    return {stage.base.lower(), *copied}


def assigned(text: str) -> dict[str, str]:
    """Return the variables of an ENV or an ARG: `A=1 B="2 3"`, or `A 1`."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that does not end
        return {}
    if len(words) > 1 and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its variables; those without a value stay."""

    def value(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2]) or match[3] or match[0]

    return _VARIABLE.sub(value, text)


def _instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions; a line that goes on ends with a space and a line break."""
    lines = text.splitlines()
    escape = "`" if lines and _ESCAPE.match(lines[0]) else "\\"
    at = 0
    while at < len(lines):
        start, parts, going_on = at, [], True
        while going_on and at < len(lines):
            line = lines[at].strip()
            blank = not line or line.startswith("#")
            parts.append("" if blank else line.removesuffix(escape))
            going_on = (blank and at > start) or (not blank and line.endswith(escape))
            at += 1
        word, _, said = " \n".join(parts).partition(" ")
        for match in [*_HERE_DOCUMENT.finditer(said)]:
            said += " ;"
            while at < len(lines) and lines[at].strip() != match["end"]:
                line = "" if match["run"] is None else lines[at].strip()
                said += f" \n{line.removesuffix(escape)}"
                said += "" if line.endswith(escape) else " ;"
                at += 1
            at += 1
        if word:
            yield Instruction(start + 1, word.upper(), said.strip(" "))
