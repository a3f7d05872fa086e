"""JSON objects, leniently read where a child printed them and strictly where a user wrote them."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, NamedTuple

import pytest

from ortgpu_fix.errors import Cause, Error, cause
from ortgpu_fix.utils.json_reader import Events, LenientObject, StrictObject, read_rows
from ortgpu_fix.utils.record_reader import read_record

ALL: dict[str, Any] = {
    "text": "x",
    "int": 3,
    "float": 2.5,
    "true": True,
    "false": False,
    "list": [1, {"a": 1}],
    "object": {"a": 1},
    "null": None,
}
LENIENT = LenientObject(ALL)


def test_rows_are_the_objects_that_stand_on_a_line() -> None:
    said = 'noise\n{"a": 1}\n[1]\n"x"\n{"a": \n{"a": 2}\n' + "[" * 99_999

    assert [row.integer("a") for row in read_rows(said)] == [1, 2]


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (LENIENT.text, {"text": "x"}),
        (LENIENT.integer, {"int": 3}),
        (LENIENT.number, {"int": 3.0, "float": 2.5, "true": 1.0, "false": 0.0}),
        (LENIENT.values, {"list": [1, {"a": 1}]}),
    ],
)
def test_a_value_of_another_type_counts_as_absent(read: Any, found: dict[str, Any]) -> None:
    assert {name: read(name) for name in (*ALL, "absent")} == dict.fromkeys(
        (*ALL, "absent")
    ) | found


def test_the_rest_of_what_a_lenient_object_tells() -> None:
    assert [name for name in (*ALL, "absent") if LENIENT.flag(name)] == ["true"]
    assert (LENIENT.has("null"), LENIENT.has("absent")) == (True, False)
    assert [row.items() for row in LENIENT.rows("list")] == [[], [("a", 1)]]
    assert (LENIENT.rows("text"), LENIENT.rows("absent")) == ([], [])
    assert LENIENT.mapping("object") == {"a": 1}
    assert (LENIENT.mapping("text"), LENIENT.mapping("absent")) == ({}, {})
    digits = re.compile("[0-9]+")
    numbers = LenientObject({"a": "12", "b": "12x", "c": "", "d": 12})
    assert [numbers.matching(name, digits) for name in "abcd"] == ["12", None, None, None]
    assert LENIENT.items() == list(ALL.items())


def refuse(key: str, problem: Cause) -> Error:
    return Error("facts-invalid", key=key, problem=problem)


def strict(value: object, **more: Any) -> StrictObject:
    return StrictObject(value, refuse=refuse, **more)


def refusal(read: Any) -> tuple[object, object]:
    with pytest.raises(Error) as caught:
        read()
    return caught.value.values["key"], caught.value.values["problem"]


DIGITS = re.compile("[0-9]+")


@pytest.mark.parametrize(
    ("method", "more", "right", "what"),
    [
        ("text", {}, {"text"}, "must-be-text"),
        ("text_or_none", {}, {"text", "null", "absent"}, "must-be-text-or-null"),
        ("integer", {}, {"int"}, "must-be-number"),
        ("integer_or_none", {}, {"int", "null", "absent"}, "must-be-number-or-null"),
        ("flag", {}, {"true", "false", "null", "absent"}, "must-be-flag"),
        ("flag", {"required": True}, {"true", "false"}, "must-be-flag"),
        ("flag_or_none", {}, {"true", "false", "null", "absent"}, "must-be-flag-or-null"),
        ("texts", {}, {"null", "absent"}, "must-be-texts"),
        ("strings", {}, {"null", "absent"}, "must-be-text-table"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_key(
    method: str, more: dict[str, Any], right: set[str], what: str
) -> None:
    def read(name: str) -> object:
        return getattr(strict(ALL), method)(name, **more)

    for name in right:
        read(name)
    for name in {*ALL, "absent"} - right:
        problem = cause("key-missing") if name in {"null", "absent"} else cause(what)
        assert refusal(partial(read, name)) == (name, problem)


def test_what_is_refused_says_what_it_should_be() -> None:
    read = strict({"choice": "z", "number": "1x", "texts": ["a", 1], "strings": {"a": 1}})

    assert refusal(lambda: read.choice("choice", ("x", "y"))) == (
        "choice",
        cause("not-a-choice", value="'z'", choices="x, y"),
    )
    assert refusal(lambda: read.matching("number", DIGITS)) == (
        "number",
        cause("not-such-number", value="'1x'"),
    )
    assert refusal(lambda: read.matching("absent", DIGITS, required=True)) == (
        "absent",
        cause("key-missing"),
    )
    assert refusal(lambda: read.null("absent", required=True)) == ("absent", cause("key-missing"))
    assert refusal(lambda: read.texts("texts")) == ("texts", cause("must-be-texts"))
    assert refusal(lambda: read.strings("strings")) == ("strings", cause("must-be-text-table"))
    assert refusal(lambda: strict([])) == ("", cause("must-be-object"))


def test_events_are_found_by_their_kind() -> None:
    rows = [{"event": "a", "n": 1}, {"n": 3}, {"event": "a", "n": 2}]
    told = Events("\n".join([*map(json.dumps, rows), '{"event": "b"']))

    assert "a" in told
    assert "b" not in told
    assert [row.integer("n") for row in told.all("a")] == [1, 2]
    assert told.last("a").integer("n") == 2
    assert told.all("b") == ()
    assert told.last("b").items() == []


class Record(NamedTuple):
    """One field of each type that a child tells."""

    text: str
    perhaps: str | None
    flag: bool
    number: int
    most: int | None
    ms: float
    share: float | None
    names: tuple[str, ...]
    given: object


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ({}, ("", None, False, 0, None, 0.0, None, ())),
        ({key: {} for key in Record._fields}, ("", None, False, 0, None, 0.0, None, ())),
        (
            dict(zip(Record._fields, ("a", "b", True, 3, 4, 1.5, 2.5, ["c", 7]), strict=False)),
            ("a", "b", True, 3, 4, 1.5, 2.5, ("c", "7")),
        ),
    ],
)
def test_a_record_has_what_was_told_and_nothing_else(
    told: dict[str, object], read: tuple[object, ...]
) -> None:
    assert read_record(Record, LenientObject(told), given=0) == Record._make((*read, 0))
