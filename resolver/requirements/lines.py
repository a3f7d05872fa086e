"""The lines of a requirements file, as pip understands them."""

from __future__ import annotations

import optparse
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from packaging.utils import NormalizedName, parse_wheel_filename

_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_IS_COMMENT = re.compile(r"\s*#")
_COMMENT = re.compile(r"(?:^|\s)#")
_OPTIONS = re.compile(r"[ \t]-")
_CODING = re.compile(r"coding[:=]\s*([-\w.]+)", re.ASCII)
_ASCII = bytes({*range(32, 127)} - {92}) + rb"\x41\u0041"
"""With what another encoding than one that has ASCII in it reads otherwise."""
_PLACE = re.compile(
    r"[^@]*://|[~./\\]|[A-Za-z]:\\|[^@;]*[/\\]|[^@;]*\.(?:whl|zip|tar\.gz)(?:\s*;|$)"
)


class _Options(optparse.OptionParser):
    """The options of a line that take a value, and those that take none: as pip has them.

    It takes a beginning of a name that no other one has, too. Source:
    https://pip.pypa.io/en/stable/reference/requirements-file-format/#supported-options
    """

    _VALUED = (
        *(("-r", "--requirement"), ("-c", "--constraint"), ("-e", "--editable")),
        *(("-i", "--index-url"), ("--extra-index-url",), ("-f", "--find-links")),
        *(("--no-binary",), ("--only-binary",), ("--trusted-host",), ("--use-feature",)),
    )
    _BARE = ("--no-index", "--prefer-binary", "--require-hashes", "--pre")

    def __init__(self) -> None:
        super().__init__(add_help_option=False)
        for names in self._VALUED:
            self.add_option(*names, action="append")
        for name in self._BARE:
            self.add_option(name, action="store_true")

    def error(self, msg: str) -> NoReturn:
        """Raise ValueError: pip refuses such a line, and so the file."""
        raise ValueError(msg)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, joined with those that continue it.

    A line ends where Python's `splitlines` ends it: also at a form feed or U+2028.
    """
    joined: list[str] = []
    for number, line in enumerate([*text.splitlines(keepends=True), ""], 1):
        joined.append(line)
        if _IS_COMMENT.match(line) or not _content(line).endswith("\\"):
            yield number - len(joined) + 1, "".join(joined)
            joined = []


def without_comment(line: str) -> str:
    """Return a logical line in one piece, without its comment.

    A word goes on where a line that ends within it is continued.
    """
    pieces = [
        f" {part}" if _IS_COMMENT.match(part) else part.strip("\\") if part[-1:] == "\\" else part
        for part in line.splitlines()
    ]
    return _COMMENT.split("".join(pieces), maxsplit=1)[0].strip()


def without_options(line: str) -> str:
    """Return a logical line in one piece, without its comment and the options of the line."""
    return _OPTIONS.split(without_comment(line), maxsplit=1)[0].strip()


def is_read_otherwise(text: str) -> bool:
    """Return whether pip reads `text` in another encoding than UTF-8, which a line of it names.

    It is one of the first two, as in PEP 263. One that has ASCII in it, as nearly all, names the
    same distributions.
    """
    for line in text.split("\n", 2)[:2]:
        named = _CODING.search(line) if line.startswith("#") else None
        if named is not None:
            try:
                return _ASCII.decode(named[1]) != _ASCII.decode()
            except (LookupError, ValueError):
                return True
    return False


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


def options_of(line: str) -> Mapping[str, list[str]]:
    """Return what the options of a line that begins with one are given: `requirement` and so on.

    Empty where pip refuses it.
    """
    text = without_comment(line)
    if not text.startswith("-"):
        return {}
    try:
        found, _ = _options().parse_args(shlex.split(text))
    except ValueError:  # also of a quote that does not end
        return {}
    return {name: given for name, given in vars(found).items() if isinstance(given, list)}


def files_named(text: str) -> list[tuple[str, bool]]:
    """Return the files that a requirements file includes, and whether as constraints.

    pip takes the first one that a line names.
    """
    found: list[tuple[str, bool]] = []
    for _, line in logical_lines(text):
        options = options_of(line)
        if options.get("requirement"):
            found.append((options["requirement"][0], False))
        elif options.get("constraint"):
            found.append((options["constraint"][0], True))
    return found


@cache
def _options() -> _Options:
    return _Options()


def _content(line: str) -> str:
    """Return a line without what ends it."""
    return line.splitlines()[0] if line else ""
