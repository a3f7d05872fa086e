"""The lines of a requirements file, as pip understands them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_FILE = re.compile(
    r"^[ \t]*(?:(?P<constraint>-c|--constraint)|-r|--requirement)(?:[ \t]+|=|(?<=-[cr]))([^\s#]+)",
    re.MULTILINE,
)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_OWN_OPTIONS_OR_COMMENT = re.compile(r"(?:^|[ \t])#|[ \t]--[a-z]")
_PLACE = re.compile(
    r"[^@]*://|[~./\\]|[A-Za-z]:\\|[^@;]*[/\\]|[^@;]*\.(?:whl|zip|tar\.gz)(?:\s*;|$)"
)
"""What is installed from an address or a path, without a name before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedFile:
    """A file that a requirements file names."""

    name: str
    """As it is written there."""
    constraint: bool
    """It limits what is installed, and asks for nothing."""


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, joined with those that continue it."""
    joined, start = "", 1
    for number, line in enumerate(re.split(r"(?<=\n)", text), 1):
        start = start if joined else number
        joined += line
        comment = re.match(r"\s*#", line)
        if comment or not line.rstrip("\r\n").endswith("\\"):
            yield start, joined
            joined = ""
    if joined:
        yield start, joined


def without_options(line: str) -> str:
    """Return a line in one piece, without its comment and the options that are its own."""
    whole = re.sub(r"\\(\r?\n|$)", " ", line)
    return _OWN_OPTIONS_OR_COMMENT.split(whole, maxsplit=1)[0].strip()


def expand_variables(line: str, environ: Mapping[str, str]) -> str:
    """Return a line without options, its variables put in as pip does; empty for an option."""
    text = _VARIABLE.sub(lambda found: environ.get(found[1], found[0]), without_options(line))
    return "" if text.startswith("-") else text


def is_place(text: str) -> bool:
    """Tell whether a line's text is an address or a path, and no name of a distribution."""
    return _PLACE.match(text) is not None


def files_named(text: str) -> tuple[IncludedFile, ...]:
    """Return the requirements and constraints files that a requirements file names."""
    return tuple(
        IncludedFile(name=found[2], constraint=found["constraint"] is not None)
        for found in _FILE.finditer(text)
    )
