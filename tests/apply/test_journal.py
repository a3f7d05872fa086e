"""The journal: what is written is read again, and a torn line stands for nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.apply.journal import (
    Begin,
    Fingerprint,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    Written,
    begin_of,
    decode,
    emptied_of,
    encode,
    install_of,
    moves_of,
    paths_of,
    state,
    written_of,
)
from ortgpu_fix.errors import Error

BEGIN = Begin(
    plan="x", removed=("a",), installed=(("b", "1"),), when="2026-11-21T10:00:00+00:00", present=()
)
ASIDE = MovedFiles(
    moves=(("a/1", "000000-1"), ("a/2", "000001-2")), seen=(("file", 3, 17), ("link", 1, 18))
)
MORE = MovedFiles(moves=(("a/3", "000002-3"),), seen=(("file", 0, 16),))
EMPTIED = RemovedFolders(folders=(("a/b", 0o755), ("a", 0o700)), names=("folder-0", "folder-1"))
INSTALL = Install(
    created=("b/1",),
    whole=("b.dist-info",),
    standing=("c",),
    folders=("b.libs",),
    sizes=(3,),
    hashes=("ab",),
)
WRITTEN = Written(seen=(("file", 3, 19), None))
ALL: tuple[Record, ...] = (
    BEGIN,
    ASIDE,
    MORE,
    EMPTIED,
    INSTALL,
    WRITTEN,
    Mark(step="commit"),
    Mark(step="undo"),
)


def text(*records: Record) -> str:
    return "".join(encode(record) for record in records)


def test_every_record_comes_back() -> None:
    assert decode(text(*ALL)) == ALL


@given(st.lists(st.text(), max_size=4))
def test_any_path_comes_back(paths: list[str]) -> None:
    paths = [path.replace("\0", "") for path in paths]
    seen: tuple[Fingerprint, ...] = (("file", 1, 2),) * len(paths)
    record = MovedFiles(moves=tuple((path, "name") for path in paths), seen=seen)

    assert decode(text(BEGIN, record)) == (BEGIN, record)


def test_the_way_back_is_the_other_way_round() -> None:
    assert moves_of(ALL) == (
        ("a/3", "000002-3", ("file", 0, 16)),
        ("a/2", "000001-2", ("link", 1, 18)),
        ("a/1", "000000-1", ("file", 3, 17)),
    )
    assert emptied_of(ALL) == (("a", 0o700, "folder-1"), ("a/b", 0o755, "folder-0"))
    assert written_of(ALL) == WRITTEN
    assert paths_of(ALL) == {"a/1", "a/2", "a/3", "a", "a/b", "b/1"} | {
        "b.dist-info",
        "b.libs",
        "c",
    }
    assert paths_of((BEGIN,)) == set()
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


@pytest.mark.parametrize("ends", [0, 1])
@pytest.mark.parametrize("first", [encode(ASIDE)[:20], encode(Mark(step="undo"))[:9]])
def test_the_mark_of_a_way_back_may_be_torn_more_than_once(first: str, ends: int) -> None:
    """Of two undos one was killed while it wrote it, and one had no room on the disk."""
    torn = text(BEGIN) + first + encode(Mark(step="undo"))[:12] + encode(Mark(step="undo"))[:7]

    assert decode(torn + text(Mark(step="undo")) * ends) == (BEGIN, *[Mark(step="undo")] * ends)
    with pytest.raises(Error, match="journal-damaged") as caught:
        decode(torn + text(ASIDE))
    assert caught.value.values == {"line": 6}


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
        text(BEGIN) + '\n{"step": "commit", "what": 1}\n' + text(INSTALL),
        text(BEGIN) + '\n{"step": ["aside"]}\n' + text(INSTALL),
        text(BEGIN) + '\n{"step": "aside"}\n' + text(INSTALL),
        text(BEGIN, replace(EMPTIED, names=("a",)), INSTALL),
        text(BEGIN) + "\n" + "[" * 9999 + "\n" + text(INSTALL),
    ],
)
def test_damage_is_told_from_a_torn_line(damaged: str) -> None:
    with pytest.raises(Error, match="journal-damaged"):
        decode(damaged)


def test_a_journal_of_a_newer_version_is_refused() -> None:
    newer = text(BEGIN, ASIDE).replace('"version": 1', '"version": 2')

    with pytest.raises(Error) as caught:
        decode(newer)

    assert (caught.value.code, caught.value.values["version"]) == ("journal-newer", 2)


def with_field(step: str, **fields: object) -> str:
    """Return a journal with one line of this step, its required fields as they should be."""
    required: dict[str, dict[str, object]] = {
        "begin": {
            "plan": "x",
            "removed": [],
            "installed": [],
            "when": "",
            "present": [],
            "packages": [],
            "version": 1,
        },
        "aside": {"moves": [["a", "b"]], "seen": [["file", 1, 2]]},
        "emptied": {"folders": [["a", 493]], "names": ["f"]},
        "install": {
            "created": ["a"],
            "whole": [],
            "standing": [],
            "folders": [],
            "sizes": [1],
            "hashes": [""],
        },
        "installed": {"seen": []},
    }
    line = json.dumps({"step": step, **required[step], **fields})
    return (text(BEGIN) if step != "begin" else "") + f"\n{line}\n" + text(Mark(step="commit"))


TEXTS: tuple[object, ...] = (None, 1, ["x"], "a\0b")
LISTS: tuple[object, ...] = (1, "x", [1], [None], [["x"]], ["a\0b"], {"x": 1})
NAMES: tuple[list[str], ...] = ([""], ["."], [".."], ["a/b"], ["a\\b"])


@pytest.mark.parametrize(
    ("step", "field", "values"),
    [
        ("begin", "plan", TEXTS),
        ("begin", "when", TEXTS),
        ("begin", "removed", LISTS),
        ("begin", "present", (*LISTS, {}, None)),
        ("begin", "installed", (*LISTS, [["a"]], [["a", 1]], [["a", "1", "2"]])),
        ("begin", "packages", (*LISTS, [["a", "1", "i"]], [["a", "1", "i", 0]])),
        (
            "aside",
            "moves",
            (*LISTS, [["a", 1]], *([["a", name] for name in names] for names in NAMES)),
        ),
        (
            "aside",
            "seen",
            (1, "x", [["file", 1]], [["file", "1", 1]], [["file", 1, None]], [[1, 1, 1]]),
        ),
        (
            "aside",
            "seen",
            ([["file", 1, True]], [["file", 1, 1.5]], [["file", 1, 1]] * 2, [None], []),
        ),
        ("emptied", "folders", (1, "x", [1], [["a"]], [["a", "b"]], [["a", True]], [[1, 1]])),
        ("emptied", "names", (*LISTS, *NAMES, ["a", "b"], [])),
        ("install", "created", LISTS),
        ("install", "whole", LISTS),
        ("install", "standing", LISTS),
        ("install", "folders", (*LISTS, [["a", 1]])),
        ("install", "temporary", ([],)),
        ("install", "sizes", (1, "x", ["1"], [None], [True], [1, 2], [])),
        ("install", "hashes", (*LISTS, ["ab", "cd"], [])),
        ("installed", "seen", (1, "x", [["file", 1]], [1])),
    ],
)
def test_a_field_of_another_shape_is_damage(
    step: str, field: str, values: tuple[object, ...]
) -> None:
    """Whoever wrote it, it names files to move and to delete."""
    assert decode(with_field(step))
    for value in values:
        with pytest.raises(Error, match="journal-damaged"):
            decode(with_field(step, **{field: value}))


def test_damage_is_named_with_its_line() -> None:
    with pytest.raises(Error) as caught:
        decode(text(BEGIN) + "rubbish\n" + text(INSTALL))
    assert caught.value.values["line"] == 3

    with pytest.raises(Error) as caught:
        decode(text(INSTALL, ASIDE))
    assert caught.value.values["line"] == 1


def test_what_has_come_is_what_was_recorded_last() -> None:
    later = Written(seen=(("file", 3, 20), None))

    assert written_of((*ALL[:6], later)) == later
    assert written_of(ALL[:5]) is None
