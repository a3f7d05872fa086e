"""The journal: what is written is read again, and a torn line stands for nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.apply.journal import (
    Begin,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    begin_of,
    decode,
    emptied_of,
    encode,
    install_of,
    moves_of,
    state,
)
from ortgpu_fix.errors import Error

BEGIN = Begin(plan="x", removed=("a",), installed=(("b", "1"),), when="2026-11-21T10:00:00+00:00")
ASIDE = MovedFiles(moves=(("a/1", "000000-1"), ("a/2", "000001-2")))
MORE = MovedFiles(moves=(("a/3", "000002-3"),))
EMPTIED = RemovedFolders(folders=(("a/b", 0o755), ("a", 0o700)))
INSTALL = Install(
    created=("b/1",), whole=("b.dist-info",), standing=(), temporary=(), folders=("b.libs",)
)
ALL: tuple[Record, ...] = (
    BEGIN,
    ASIDE,
    MORE,
    EMPTIED,
    INSTALL,
    Mark(step="installed"),
    Mark(step="commit"),
    Mark(step="undo"),
)


def text(*records: Record) -> str:
    return "".join(encode(record) for record in records)


def test_every_record_comes_back() -> None:
    assert decode(text(*ALL)) == ALL


@given(st.lists(st.text(), max_size=4))
def test_any_path_comes_back(paths: list[str]) -> None:
    record = MovedFiles(moves=tuple((path, path) for path in paths))

    assert decode(text(BEGIN, record)) == (BEGIN, record)


def test_the_way_back_is_the_other_way_round() -> None:
    assert [path for path, _ in moves_of(ALL)] == ["a/3", "a/2", "a/1"]
    assert emptied_of(ALL) == (("a", 0o700), ("a/b", 0o755))
    assert begin_of(ALL) == BEGIN
    assert install_of(ALL) == INSTALL
    assert install_of((BEGIN,)) is None


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "nothing"), (1, "open"), (6, "open"), (7, "committed"), (8, "undoing")],
)
def test_how_far_a_change_has_come(count: int, expected: str) -> None:
    assert state(ALL[:count]) == expected


@given(st.integers(0, len(text(*ALL))))
def test_a_journal_that_ends_anywhere_is_what_was_written_by_then(end: int) -> None:
    """A cut never invents a record, and never loses one that was complete."""
    whole = text(*ALL)
    found = decode(whole[:end])

    assert found == ALL[: len(found)]
    assert all(len(text(*ALL[:count])) - 1 > end for count in range(len(found) + 1, len(ALL) + 1))


def test_a_torn_line_before_the_way_back_stands_for_nothing() -> None:
    torn = text(BEGIN) + encode(ASIDE)[:20] + text(Mark(step="undo"))

    assert decode(torn) == (BEGIN, Mark(step="undo"))


@pytest.mark.parametrize("torn", ["", encode(BEGIN)[:20]])
def test_a_change_that_could_not_even_begin(torn: str) -> None:
    assert decode(torn + text(Mark(step="undo"))) == ()


@pytest.mark.parametrize(
    "damaged",
    [
        text(BEGIN) + "\nrubbish\n" + text(INSTALL),
        text(ASIDE),
        text(BEGIN) + "\n[]\n" + text(INSTALL),
        text(BEGIN) + '\n{"step": "other"}\n' + text(INSTALL),
        text(BEGIN) + '\n{"step": "aside", "what": 1}\n' + text(INSTALL),
    ],
)
def test_damage_is_told_from_a_torn_line(damaged: str) -> None:
    with pytest.raises(Error, match="journal-damaged"):
        decode(damaged)
