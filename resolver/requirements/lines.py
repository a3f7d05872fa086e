"""The lines of a requirements file, as pip understands them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from packaging.utils import NormalizedName, parse_wheel_filename

_FILE = re.compile(
    r"^[ \t]*(?:(?P<constraint>-c|--constraint)|-r|--requirement)(?:[ \t]+|=|(?<=-[cr]))"
    r"""("[^"\n]+"|'[^'\n]+'|(?:\\ |[^\s#])+)""",
    re.MULTILINE,
)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_OPTIONS_OR_COMMENT = re.compile(r"(?:^|[ \t])#|[ \t]--[a-z]")
_PLACE = re.compile(
    r"[^@]*://|[~./\\]|[A-Za-z]:\\|[^@;]*[/\\]|[^@;]*\.(?:whl|zip|tar\.gz)(?:\s*;|$)"
)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, joined with those that continue it."""
    joined: list[str] = []
    for number, line in enumerate([*re.split(r"(?<=\n)", text), ""], 1):
        joined.append(line)
        if re.match(r"\s*#", line) or not line.rstrip("\r\n").endswith("\\"):
            yield number - len(joined) + 1, "".join(joined)
            joined = []


def without_options(line: str) -> str:
    """Return a logical line in one piece, without its comment and the options of the line."""
    whole = re.sub(r"\\(\r?\n|$)", " ", line)
    return _OPTIONS_OR_COMMENT.split(whole)[0].strip()


def expand_variables(line: str, environ: Mapping[str, str]) -> str:
    """Return a line without options, with its variables replaced; empty where it is an option."""
    text = _VARIABLE.sub(lambda match: environ.get(match[1], match[0]), without_options(line))
    return "" if text.startswith("-") else text


def is_place(text: str) -> bool:
    """Return whether a line is an address or a path, without the name of a distribution."""
    return _PLACE.match(text) is not None


def wheel_at(address: str) -> tuple[NormalizedName, str] | None:
    """Return name and version of the wheel at an address or a path; None where it names none."""
    try:
        file = re.split(r"[/\\]", unquote(urlsplit(address).path))[-1]
        name, version, _, _ = parse_wheel_filename(file)
    except ValueError:  # no address, or that of no wheel
        return None
    return name, str(version)


def files_named(text: str) -> list[tuple[str, bool]]:
    """Return the files that a requirements file includes, and whether as constraints.

    pip splits the line as a shell does: a name with a blank stands in quotes, or has a backslash.
    """
    return [
        (match[2].strip("\"'").replace("\\ ", " "), match["constraint"] is not None)
        for match in _FILE.finditer(text)
    ]
