"""TOML that is written is read again, and looks as a person would write it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ortgpu_fix.utils.toml_writer import Rows, Value, document, inline, single, table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_a_document_to_the_letter() -> None:
    rows = Rows(["a", {"b": 1}])
    made = document(
        "made by x\n\n  then: y",
        {"version": "1.0", "a b": True},
        [
            table("package", {"name": "n", "none": None, "rows": rows}),
            single("tool", {"on": False}),
        ],
    )

    assert made == (
        '# made by x\n#\n#   then: y\nversion = "1.0"\n"a b" = true\n\n'
        '[[package]]\nname = "n"\nrows = [\n    "a",\n    { b = 1 },\n]\n\n'
        "[tool]\non = false\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ('"\\\n\t', '"\\"\\\\\\n\\t"'),
        ("\x7f é", '"\\u007f é"'),
        (True, "true"),
        (17, "17"),
        ([], "[]"),
        (["a", 1], '["a", 1]'),
        ({}, "{}"),
        ({"a": {"b.c": []}}, '{ a = { "b.c" = [] } }'),
    ],
)
def test_a_value_on_one_line(value: Value, text: str) -> None:
    read: dict[str, Any] = tomllib.loads(f"value = {inline(value)}")

    assert inline(value) == text
    assert read["value"] == value
