"""Error logs: which known failures stand in a text, and what fixes each.

In: any text (a log, a traceback, what a user pasted), whole or in pieces, and the table of
`failures.toml`; out: explanations, the root causes first, with what follows from them.

A row claims the text that it matched, so that a general row does not speak again where a
particular one did: the table's order is its precedence. A log may have any size: one piece of it
is looked at at a time. Every pattern has a piece of fixed text; `str.find` looks for that where its
words are among those of the piece. The regular expression sees only `REACH` characters around it,
and what differs in its digits alone from what it has seen so often, not at all.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..messages.catalog import Language
from .explanations import (
    MOST_EVIDENCE,
    Explanation,
    LogLine,
    RecognisedFailure,
    explanations,
)
from .failures import Failure, FailureTable, ProgramKind
from .lines import LineReader, ShownInLog
from .patterns import REACH, Novelty, Pattern, Words
from .wordings import LibraryName, Signal, asked

Span = tuple[int, int]

AROUND = 300
"""How much of a long line is shown on either side of what was recognised."""
AROUND_MESSAGE = 60
"""How much of it is shown to people."""
PASTED = 2_000_000
"""Up to this size lines that a terminal wrapped are joined again; nobody pastes more."""
IN_IMAGES = frozenset({"container", "image"})
"""The kinds of programs that run in an image."""
MOST_LINES = 3
"""The most lines that one message is put together from."""

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\))"
)
_TYPED = tuple(zip("“”„‘’‛´\u00a0", "\"\"\"'''' ", strict=True))
"""What web pages and word processors make of quotation marks and blanks."""
_CHINESE, _KANA = re.compile("[\u4e00-\u9fff]"), re.compile("[\u3040-\u30ff\uac00-\ud7af]")
LEAST_CHINESE = 4
"""So many Chinese characters, and none of Japanese or Korean, make a log one in Chinese."""
_ITEM = re.compile(r"[-*•] \S")
"""How an item of a list begins (uv puts `+` before packages): none goes on in the next."""
_FRAME = re.compile(r"\A(?:[\w.-]{1,60} +\| )?[\s│┃|]*")


class _View(NamedTuple):
    """A piece unchanged, or with its lines joined, and where each part of it stood."""

    text: str
    starts: Sequence[int] = ()
    origins: Sequence[int] = ()

    def place(self, start: int, end: int) -> Span | None:
        """Return where a match stands in the piece; None where joining made no difference."""
        if not self.starts:
            return start, end
        first, last = (bisect_right(self.starts, at) - 1 for at in (start, end - 1))
        if not 0 < last - first < MOST_LINES:
            return None
        starts, origins = self.starts, self.origins
        return origins[first] + start - starts[first], origins[last] + end - starts[last]


class Search:
    """A log that is read piece by piece."""

    def __init__(self, table: FailureTable) -> None:
        """Begin."""
        self.table = table
        self._reader = LineReader(table.source_lines)
        self._chinese = self._kana = 0
        self.origins: list[ProgramKind] = []
        self._excepted: set[str] = set()
        self.wanted = False
        """Whether it shows that a GPU was wanted."""
        self.python = False
        """Whether it shows that the program runs on Python's packages."""
        self._ours = False
        self._found: dict[tuple[str, str], list[RecognisedFailure]] = {}
        self._novelty = Novelty()
        self._words: Words | None = None
        """Those of the piece; None where its lines are joined."""
        self._places_of_piece: dict[tuple[str, int], list[Span]] = {}
        self._pieces = 0
        self._lines = 0
        self._failed: tuple[int, ...] = ()
        """Where the last error or warning stands."""
        self._used: tuple[int, ...] = ()
        """Where it shows last that a session has the GPU."""

    @property
    def shown(self) -> ShownInLog:
        """What the lines show of the program that printed them."""
        return self._reader.shown

    @property
    def release(self) -> str | None:
        """The version of onnxruntime that the lines show, but for its last number."""
        minor = {(version or "").rpartition(".")[0] for version in self.shown[:2]}
        return self.shown.newest if len(minor) == 1 else None

    @property
    def language(self) -> Language | None:
        """The language of what programs print: Chinese, or not known."""
        return "zh" if self._chinese >= LEAST_CHINESE and not self._kana else None

    @property
    def is_over(self) -> bool:
        """Whether a session has the GPU after all that failed."""
        return () < self._failed < self._used

    def feed(self, piece: str, *, joined: bool = False) -> None:
        """Look at the next piece; `joined`: also with its wrapped lines joined.

        A piece ends where a line ends, if it can.
        """
        self._places_of_piece = {}
        piece = self._cleaned(piece)
        self._words = None if joined else Words(piece)
        known = len(self._found)
        views = [_View(piece), *(_joined(piece) if joined else ())]
        signals = list(self._signals(views))
        claimed: list[Span] = []
        for failure in self.table.failures:
            mine: list[Span] = []
            for span, library, if_wanted in self._matches(failure, views, signals):
                if not _overlaps(span, claimed):
                    mine.append(span)
                    self._keep(piece, span, failure, library, if_wanted=if_wanted)
            if mine:
                claimed = sorted(claimed + mine)
        if joined:
            self._reader.feed(piece)
        if self._pieces == 0 or len(self._found) > known:
            self._look_for_origins(views[0])
        self._look_for_sessions(views[0])
        self._pieces += 1
        self._lines += piece.count("\n")

    def _cleaned(self, piece: str) -> str:
        """Return a piece without colours, with plain quotation marks; count Chinese characters."""
        if "\x1b" in piece:
            piece = _ESCAPE.sub("", piece)
        if "\\" in piece:  # a log of JSON lines, or the repr of an exception
            piece = piece.replace('\\"', '"').replace("\\'", "'")
        if not piece.isascii():
            for other, plain in _TYPED:
                piece = piece.replace(other, plain)
            self._chinese += len(_CHINESE.findall(piece))
            self._kana += len(_KANA.findall(piece))
        return piece

    def _signals(self, views: Sequence[_View]) -> Iterator[tuple[Span, Signal]]:
        """Yield what loaders, statuses and resolvers say; of two readings the more exact one."""
        taken: list[Span] = []
        for parser, make in self.table.parsers.rows:
            mine: list[Span] = []
            for span, match in self._places((parser,), views, again=True):
                signal = make(match)
                # another's line may have been joined with one that is not
                again = signal and signal.of_others and _overlaps(span, sorted(mine))
                if signal is not None and not (again or _overlaps(span, taken)):
                    mine.append(span)
                    yield span, signal
            if mine:
                taken = sorted(taken + mine)

    def _matches(
        self, failure: Failure, views: Sequence[_View], signals: Sequence[tuple[Span, Signal]]
    ) -> Iterator[tuple[Span, LibraryName | None, bool]]:
        for span, signal in signals:
            if any(asked(wanted, signal) for wanted in failure.signals):
                yield span, signal.library, False
            if any(asked(wanted, signal) for wanted in failure.signals_if_wanted):
                yield span, signal.library, True
        for patterns, if_wanted in ((failure.patterns, False), (failure.if_wanted, True)):
            for span, _ in self._places(patterns, views):
                yield span, None, if_wanted

    def _places(
        self, wanted: Sequence[Pattern], views: Sequence[_View], *, again: bool = False
    ) -> Iterator[tuple[Span, re.Match[str]]]:
        """Yield where one of these stands: in a line, or in lines of which none says it alone.

        `again`: also in lines of which one does: who asks for a library may stand above it.
        """
        alone: list[Span] = []
        for kind, view in enumerate(views):
            own = sorted(_lines(views[0].text, alone)) if kind and not again else []
            for each in wanted:
                for low, high in self._windows(each.anchor, kind, view):
                    for match in each.regex.finditer(view.text, low, high):
                        span = view.place(*match.span())
                        if span and not _overlaps(span, own):
                            alone += [] if kind else [span]
                            yield span, match

    def _windows(self, anchor: str, kind: int, view: _View) -> list[Span]:
        key = anchor, kind
        if key not in self._places_of_piece:
            known = self._words is None or self._words.may_hold(anchor)
            self._places_of_piece[key] = (
                self._novelty.windows(view.text, anchor, kind) if known else []
            )
        return self._places_of_piece[key]

    def _keep(
        self,
        piece: str,
        span: Span,
        failure: Failure,
        library: LibraryName | None,
        *,
        if_wanted: bool,
    ) -> None:
        place = self._pieces, *span
        if failure.severity != "info":
            self._failed = max(self._failed, place)
        kind = f"{failure.program}:{library.name if library else ''}:{if_wanted}"
        found = self._found.setdefault((failure.code, kind), [])
        if len(found) >= MOST_EVIDENCE and place > found[-1].place:
            return
        start, end = span
        if self._words is not None:  # a long log: what stands around it is looked at, and no more
            self._reader.feed(piece[max(0, start - REACH) : end + REACH])
        before = piece[max(0, start - AROUND) : start].rpartition("\n")[2]
        after = piece[end : end + AROUND].partition("\n")[0]
        line = " ".join(f"{before}{piece[start:end]}{after}".split())
        near = f"{_tail(before)}{piece[start:end]}{_head(after)}"
        message = " ".join(near.split())
        number = self._lines + piece.count("\n", 0, start) + 1
        said = LogLine(number, line, message)
        found.append(RecognisedFailure(place, said, failure, library, if_wanted))
        found.sort(key=lambda each: each.place)
        del found[MOST_EVIDENCE:]

    def _look_for_origins(self, view: _View) -> None:
        for origin in self.table.origins:
            if origin not in self.origins and self._holds(origin.traces, view):
                self.origins.append(origin)
            if self._holds(origin.unless, view):
                self._excepted.add(origin.code)
        self.wanted = self.wanted or self._holds(self.table.gpu_wanted, view)
        self._ours = self._ours or self._holds(self.table.ours, view)
        self.python = self.python or self._holds(self.table.python, view)

    def _look_for_sessions(self, view: _View) -> None:
        for each in self.table.gpu_used:
            places = [(self._pieces, *span) for span, _ in self._places((each,), [view])]
            self._used = max([self._used, *places])

    def _holds(self, patterns: Iterable[Pattern], view: _View) -> bool:
        return any(
            each.regex.search(view.text, low, high)
            for each in patterns
            for low, high in self._windows(each.anchor, -1, view)
        )

    def explanations(
        self,
        language: Language = "en",
        release: str | None = None,
        *,
        has_gpu: bool = False,
    ) -> tuple[Explanation, ...]:
        """Return what the log says, root causes first, errors before warnings.

        `release`: the onnxruntime-gpu of this machine, used where the log names none;
        `has_gpu`: whether the machine has a GPU, which is then wanted. What a program for CPUs
        prints as well is no more than information where nothing shows that a GPU was wanted; so is
        all where a session has the GPU after it.
        """
        wanted = self.wanted or has_gpu
        places = [each for places in self._found.values() for each in places]
        found = [
            each._replace(if_wanted=self.is_over or (each.if_wanted and not wanted))
            for each in places
        ]
        return explanations(
            found,
            self.table,
            self.origins,
            language,
            self.release or release,
            excepted=self._excepted,
            ours=self._ours,
            python=self.python,
            shown=self.shown,
        )

    def program(self, language: Language) -> str:
        """Return the kind of program whose log it is, if that has an environment of its own; or "".

        In a container or an image where Python's packages are shown, one can look at them.
        """
        own = (
            each.name[language]
            for each in self.origins
            if each.code not in self._excepted
            and (each.bundled or (each.code in IN_IMAGES and not self.python))
        )
        return next(own, "")

    def fix_label(self, found: Sequence[Explanation]) -> str:
        """Return the label of what a command does for the first of `found`, on no known machine.

        It has no origin, for then no command does anything.
        """
        if not self.python:
            return "mend-by-python"
        about = {self.table.by_code[each.code].about for each in found[:1]}
        besides = any(about & each.remedies.keys() for each in self.origins)
        return "mend-by-besides" if besides else "mend-by"


def explain_log(
    log: str | Iterable[str],
    failures: FailureTable,
    language: Language = "en",
    *,
    release: str | None = None,
    has_gpu: bool = False,
) -> tuple[Explanation, ...]:
    """Return what a log says: root causes first, errors before warnings.

    A log in pieces is one that is too long to hold; one that is whole and short is also read with
    the lines joined that a terminal wrapped. Nothing is raised, whatever the text.
    """
    search = Search(failures)
    if isinstance(log, str):
        search.feed(log, joined=len(log) <= PASTED)
    else:
        for piece in log:
            search.feed(piece)
    return search.explanations(language, release, has_gpu=has_gpu)


def _lines(piece: str, spans: Iterable[Span]) -> list[Span]:
    """Return the whole lines in which `spans` stand."""
    found: list[Span] = []
    for start, end in sorted(spans):
        begin, stop = piece.rfind("\n", 0, start) + 1, piece.find("\n", end)
        found.append((begin, stop if stop >= 0 else len(piece)))
    return found


def _joined(piece: str) -> Iterator[_View]:
    """Yield the piece with wrapped lines joined.

    A terminal breaks a line anywhere, some programs break it at a space and frame it: the parts
    are joined without and with a space, and their frames fall away.
    """
    parts: list[str] = []
    origins: list[int] = []
    head = 0
    for line in piece.split("\n"):
        inside = _FRAME.sub("", line, count=1)
        if _ITEM.match(inside) and parts and _ITEM.match(parts[-1]):
            parts[-1] += "\n"
        parts.append(inside.rstrip(" \t\r│┃|"))
        origins.append(head + len(line) - len(inside))
        head += len(line) + 1
    for glue in ("", " "):
        starts = accumulate((len(part) + len(glue) for part in parts[:-1]), initial=0)
        yield _View(text=glue.join(parts), starts=tuple(starts), origins=origins)


def _overlaps(span: Span, claimed: Sequence[Span]) -> bool:
    """Whether a more particular row has spoken for a part of this text."""
    after = bisect_right(claimed, span)
    near = claimed[max(0, after - 1) : after + 1]
    return any(start < span[1] and span[0] < end for start, end in near)


def _tail(text: str) -> str:
    """Return the end of a text: what stands before a message, of whole words."""
    near = text[-AROUND_MESSAGE:]
    return text if near == text else f"…{near[near.find(' ') + 1 :]}"


def _head(text: str) -> str:
    """Return the beginning of a text: what stands after a message, of whole words."""
    near = text[:AROUND_MESSAGE]
    return text if near == text else f"{near.rpartition(' ')[0] or near}…"
