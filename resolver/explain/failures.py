"""The table of known failures: the rows of `failures.toml`.

In: the parsed TOML; out: frozen rows, the most particular first, ready to be searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, TypeVar, get_args

from ..messages.catalog import LANGUAGES
from ..plan.reasons import Severity

T = TypeVar("T")

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
SHORTEST = 6
"""The least fixed text that is quick to look for."""

_LITERAL = re.compile(r"\\([^A-Za-z0-9])")
_VARYING = re.compile(
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)[?*+]?|\[[^\]]*\]|\\[A-Za-z]|.[?*{]|\{[^}]*\}|[.^$+?{}]"
)
_PRIVATE = 0xE000
"""Where Unicode has room: an escaped character stands there while its expression is taken apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A regular expression, and fixed text without which it cannot match."""

    regex: re.Pattern[str]
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedLibrary:
    """A shared library by its file name, and the wheel that brings it."""

    regex: re.Pattern[str]
    distribution: str
    name: str | None
    """The whole name, where a log may show only a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A row of `failures.toml`."""

    code: str
    severity: Severity
    generic: bool
    """Said only where nothing more particular explains an error."""
    patterns: tuple[Pattern, ...]
    captures: tuple[str, ...]
    cause: Mapping[str, str]
    remedy: Mapping[str, str]
    commands: tuple[str, ...]
    fixable: bool
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureTable:
    """`failures.toml`, the most particular row first."""

    failures: tuple[Failure, ...]
    libraries: tuple[LoggedLibrary, ...]


def parse_failures(table: Mapping[str, Any]) -> FailureTable:
    """Make the table from the parsed TOML file.

    Raises ValueError with the path of the key where a row does not fit.
    """
    return FailureTable(
        failures=_rows(table, "failure", _failure), libraries=_rows(table, "library", _library)
    )


def _rows(
    table: Mapping[str, Any], name: str, make: Callable[[Mapping[str, Any]], T]
) -> tuple[T, ...]:
    made: list[T] = []
    try:
        made.extend(make(row) for row in table[name])
    except KeyError as error:
        raise ValueError(f"{name}[{len(made)}].{error.args[0]}: missing") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{name}[{len(made)}]: {error}") from error
    return tuple(made)


def _library(row: Mapping[str, Any]) -> LoggedLibrary:
    return LoggedLibrary(
        regex=_regex("pattern", row["pattern"]),
        distribution=row["distribution"],
        name=row.get("name"),
    )


def _failure(row: Mapping[str, Any]) -> Failure:
    if row["severity"] not in SEVERITIES:
        raise ValueError(f"severity: {row['severity']!r} is not known")
    captures = tuple(row.get("captures", ()))
    for key, language in ((key, language) for key in ("cause", "remedy") for language in LANGUAGES):
        names = {name for _, name, _, _ in Formatter().parse(row[key][language]) if name}
        if not names <= set(captures):
            raise ValueError(f"{key}.{language}: not captured: {', '.join(sorted(names))}")
    return Failure(
        code=row["code"],
        severity=row["severity"],
        generic=row.get("generic", False),
        patterns=tuple(
            _pattern(f"match[{number}]", source, captures)
            for number, source in enumerate(row["match"])
        ),
        captures=captures,
        cause=row["cause"],
        remedy=row["remedy"],
        commands=tuple(row["commands"]),
        fixable=row["fixable"],
        sources=tuple(row["sources"]),
    )


def _pattern(key: str, source: str, captures: tuple[str, ...]) -> Pattern:
    """Make a pattern; its anchor is the longest text outside of groups, classes and quantifiers."""
    regex = _regex(key, source)
    if captures and "library" not in regex.groupindex:
        raise ValueError(f"{key}: no group named library")
    plain = _LITERAL.sub(lambda found: chr(_PRIVATE + ord(found[1])), source)
    fixed = _VARYING.split(plain)
    anchor = "".join(
        chr(ord(char) - _PRIVATE) if ord(char) >= _PRIVATE else char for char in max(fixed, key=len)
    )
    if len(anchor) < SHORTEST or any("|" in text for text in fixed):
        raise ValueError(f"{key}: fixed text is needed, and alternatives only in a group")
    return Pattern(regex=regex, anchor=anchor)


def _regex(key: str, source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise ValueError(f"{key}: {error}") from error
