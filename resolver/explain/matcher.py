"""Error logs: which known failures stand in a text, and what mends each.

In: any text (a log, a traceback, what a user pasted) and the table of `failures.toml`; out:
explanations, the worst first. A row claims the text that it matched, so that a general row does
not speak again where a particular one did: the table's order is its precedence.

A log may have 50 MB. Every pattern has a piece of fixed text; `str.find` looks for that, and the
regular expression sees only `REACH` characters around it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ..messages.catalog import Language
from ..plan.reasons import Severity
from .failures import (
    SEVERITIES,
    Failure,
    FailureTable,
    LoggedLibrary,
    Pattern,
)

Span = tuple[int, int]
Values = Mapping[str, str]

REACH = 1_000
"""How far from its fixed text a pattern can see."""
AROUND = 300
"""How much of a long line is shown on either side of what was recognised."""
PASTED = 2_000_000
"""Up to this size lines that a terminal wrapped are joined again; nobody pastes more."""
MOST_LINES = 3
"""The most lines that one message is put together from."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\))")
_QUOTED = re.compile(r"""\\(["'])""")
_FRAME = re.compile(r"(?:[\w.-]{1,60} +\| )?[\s│┃|]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One failure that stands in a log."""

    code: str
    severity: Severity
    line: str
    """The text that was recognised."""
    line_number: int
    cause: str
    remedy: str
    commands: tuple[str, ...]
    fixable: bool
    """True where `ortgpu-fix --apply` can mend it."""
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """A log as it is, or with its lines joined, and where each piece of it stood in the log."""

    text: str
    starts: Sequence[int] = ()
    origins: Sequence[int] = ()
    windows: dict[str, list[Span]] = field(default_factory=dict[str, "list[Span]"])
    """What a pattern may see around each place of a fixed text, once asked."""

    def matches(self, pattern: Pattern) -> Iterator[tuple[Span, re.Match[str]]]:
        """Yield what `pattern` matches, and where that stands in the log."""
        find = pattern.regex.finditer
        for low, high in self._windows(pattern.anchor):
            for match in find(self.text, low, high):
                span = self._place(*match.span())
                if span:
                    yield span, match

    def _windows(self, anchor: str) -> list[Span]:
        if anchor not in self.windows:
            text, windows = self.text, self.windows.setdefault(anchor, [])
            at = text.find(anchor)
            while at >= 0:
                reach = at + len(anchor) + REACH
                low = text.rfind("\n", max(0, at - REACH), at) + 1 or max(0, at - REACH)
                high = text.find("\n", at, reach)
                high = min(reach, len(text)) if high < 0 else high
                windows.append((low, high))
                at = text.find(anchor, high)
        return self.windows[anchor]

    def _place(self, start: int, end: int) -> Span | None:
        """Return where a match stands in the log; None where joining lines made no difference."""
        if not self.starts:
            return start, end
        first, last = (bisect_right(self.starts, at) - 1 for at in (start, end - 1))
        if not 0 < last - first < MOST_LINES:
            return None
        starts, origins = self.starts, self.origins
        return origins[first] + start - starts[first], origins[last] + end - starts[last]


def explain_log(
    log: str, failures: FailureTable, language: Language = "en"
) -> tuple[Explanation, ...]:
    """Return what the log tells, errors first and each kind in the order of the log.

    A code stands once, at its first place; once for each library where it names one. Nothing is
    raised, whatever the text.
    """
    if "\x1b" in log:
        log = _ESCAPE.sub("", log)
    if "\\" in log:  # a log of JSON lines, or the repr of an exception
        log = _QUOTED.sub(r"\1", log)
    views = tuple(_views(log))
    known: dict[str, Values | None] = {"": {}}
    claimed: list[Span] = []
    found: dict[tuple[str, str], tuple[Span, Failure, Values]] = {}
    for row in failures.failures:
        mine: list[Span] = []
        for view, pattern in ((view, pattern) for view in views for pattern in row.patterns):
            for span, match in view.matches(pattern):
                name = match["library"] if row.captures else ""
                if name not in known:
                    known[name] = _values(name, failures.libraries)
                values = known[name]
                if values is None or _overlaps(span, claimed):
                    continue
                mine.append(span)
                key = row.code, values.get("library", "")
                if key not in found or span < found[key][0]:
                    found[key] = span, row, values
        if mine:
            claimed = sorted(claimed + mine)
    explained = any(row.severity == "error" and not row.generic for _, row, _ in found.values())
    kept = [entry for entry in found.values() if not (explained and entry[1].generic)]
    kept.sort(key=lambda entry: (SEVERITIES.index(entry[1].severity), entry[0]))
    return tuple(_explanation(log, span, row, values, language) for span, row, values in kept)


def _views(log: str) -> Iterator[_View]:
    """Yield the log; and, where it is short, the log with wrapped lines joined.

    A terminal breaks a line anywhere, some programs break it at a space and frame it: the pieces
    are joined without and with a space, and their frames fall away.
    """
    yield _View(text=log)
    if len(log) > PASTED:
        return
    pieces, origins, head = [], [], 0
    for line in log.split("\n"):
        frame = _FRAME.match(line)
        skip = frame.end() if frame else 0
        pieces.append(line[skip:].rstrip(" \t\r│┃|"))
        origins.append(head + skip)
        head += len(line) + 1
    for glue in ("", " "):
        starts = accumulate((len(piece) + len(glue) for piece in pieces[:-1]), initial=0)
        yield _View(text=glue.join(pieces), starts=tuple(starts), origins=origins)


def _overlaps(span: Span, claimed: Sequence[Span]) -> bool:
    """Whether a more particular row has spoken for a part of this text."""
    after = bisect_right(claimed, span)
    near = claimed[max(0, after - 1) : after + 1]
    return any(start < span[1] and span[0] < end for start, end in near)


def _values(library: str, libraries: tuple[LoggedLibrary, ...]) -> Values | None:
    """Return what the placeholders stand for; None where the library is not a known one."""
    for known in libraries:
        if known.regex.fullmatch(library):
            return {"library": known.name or library, "distribution": known.distribution}
    return None


def _explanation(
    log: str, span: Span, row: Failure, values: Values, language: Language
) -> Explanation:
    start, end = span
    low = log.rfind("\n", max(0, start - AROUND), start) + 1 or max(0, start - AROUND)
    high = log.find("\n", end, end + AROUND)
    line = log[low : high if high >= 0 else end + AROUND]
    return Explanation(
        code=row.code,
        severity=row.severity,
        line=" ".join(line.split()),
        line_number=log.count("\n", 0, start) + 1,
        cause=row.cause[language].format_map(values),
        remedy=row.remedy[language].format_map(values),
        commands=row.commands,
        fixable=row.fixable,
        sources=row.sources,
    )
