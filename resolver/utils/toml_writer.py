"""Write TOML, as much of it as this project needs: the same bytes for the same values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""DEL, C1, what ends a line for some, and what turns the direction of text."""
Value = str | bool | int | Sequence["Value"] | Mapping[str, "Value"]


class Rows(list[Value]):
    """A list whose elements stand on lines of their own."""


def document(header: str, top: Mapping[str, Value], tables: Sequence[str]) -> str:
    """Return a document: the header as comment, top-level keys, then ready tables."""
    comment = "".join(f"# {line}".rstrip() + "\n" for line in header.splitlines())
    keys = "".join(f"{_key(name)} = {inline(value)}\n" for name, value in top.items())
    return comment + keys + "".join(f"\n{text}" for text in tables)


def table(name: str, keys: Mapping[str, Value | None]) -> str:
    """Return one element of an array of tables, keys in the given order; None is left out."""
    return "\n".join([f"[[{name}]]", *_lines(keys)]) + "\n"


def single(name: str, keys: Mapping[str, Value | None]) -> str:
    """Return a table that stands alone, keys in the given order; None is left out."""
    return "\n".join([f"[{name}]", *_lines(keys)]) + "\n"


def _lines(keys: Mapping[str, Value | None]) -> Iterator[str]:
    for key, value in keys.items():
        if isinstance(value, Rows):
            yield f"{_key(key)} = ["
            yield from (f"    {inline(row)}," for row in value)
            yield "]"
        elif value is not None:
            yield f"{_key(key)} = {inline(value)}"


def inline(value: Value) -> str:
    """Return a value on one line."""
    if isinstance(value, (str, int)):
        return _scalar(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {inline(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return "[" + ", ".join(inline(item) for item in value) + "]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _scalar(name)


def _scalar(value: str | int) -> str:
    """Write it as JSON does; TOML must escape DEL, and what cannot be seen should not be there."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
