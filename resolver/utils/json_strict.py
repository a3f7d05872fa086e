"""JSON objects, read key by key: an error names the path of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar, cast

from ..errors import Error

T = TypeVar("T")
C = TypeVar("C", bound=str)


def invalid(key: str, problem: str) -> Error:
    """Return the Error `facts-invalid` for the key path `key`."""
    return Error("facts-invalid", key=key or "the document", problem=problem)


Refuse = Callable[[str, str], Error]
"""Makes the Error for a key path (`gpus[0].name`; empty: the whole) and what is wrong there."""


def as_table(record: NamedTuple) -> dict[str, object]:
    """Return a record as a JSON object, ready for `json.dumps`, with all the records in it."""
    return {name: _plain(value) for name, value in record._asdict().items()}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        # json.dumps writes a named tuple as a list, without its names.
        if hasattr(value, "_fields"):
            return as_table(cast("NamedTuple", value))
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value


class StrictObject:
    """A JSON object that knows its key path and which of its keys were asked for.

    Whatever is not as it must be raises the Error that `refuse` makes. Keys that nobody asks for
    are wrong too where the table is `closed`.
    """

    def __init__(
        self, value: object, path: str = "", *, refuse: Refuse = invalid, closed: bool = True
    ) -> None:
        if not isinstance(value, dict):
            raise refuse(path, "must be an object")
        self._value = cast("dict[str, object]", value)
        self._path = path
        self._refuse = refuse
        self._closed = closed
        self._asked: set[str] = set()

    def read(self, make: Callable[[StrictObject], T]) -> T:
        """Return what `make` makes of this object."""
        made = make(self)
        unknown = sorted(str(name) for name in self._value.keys() - self._asked)
        if self._closed and unknown:
            raise self._refuse(self._key(unknown[0]), "is not a key of this document")
        return made

    def _key(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        """Tell whether the key is there."""
        self._asked.add(name)
        return name in self._value

    def null(self, name: str, *, required: bool = False) -> bool:
        """Tell whether `name` is null or absent; where it is `required` it must be there."""
        if not self.has(name) and required:
            raise self._refuse(self._key(name), "is missing")
        return self._value.get(name) is None

    def _get(self, name: str, kind: type[T], what: str, *, required: bool) -> T | None:
        self._asked.add(name)
        value = self._value.get(name)
        if value is None:
            if required:
                raise self._refuse(self._key(name), "is missing")
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._refuse(self._key(name), f"must be {what}")
        return value

    def text(self, name: str) -> str:
        """Return a text that must be there."""
        return self._get(name, str, "a text", required=True) or ""

    def text_or_none(self, name: str) -> str | None:
        """Return a text, or None."""
        return self._get(name, str, "a text or null", required=False)

    def integer(self, name: str) -> int:
        """Return a whole number that must be there."""
        return self._get(name, int, "a whole number", required=True) or 0

    def integer_or_none(self, name: str) -> int | None:
        """Return a whole number, or None."""
        return self._get(name, int, "a whole number or null", required=False)

    def flag(self, name: str, *, default: bool = False, required: bool = False) -> bool:
        """Return true or false; `default` where it is not there and need not be."""
        value = self._get(name, bool, "true or false", required=required)
        return default if value is None else value

    def flag_or_none(self, name: str) -> bool | None:
        """Return true, false, or None."""
        return self._get(name, bool, "true, false or null", required=False)

    def choice(self, name: str, choices: tuple[C, ...]) -> C:
        """Return a text that is one of `choices`."""
        value = self.text(name)
        found = next((one for one in choices if one == value), None)
        if found is None:
            said = f"is {value!r}, must be one of {', '.join(choices)}"
            raise self._refuse(self._key(name), said)
        return found

    def matching(self, name: str, form: re.Pattern[str], *, required: bool = False) -> str | None:
        """Return a text of this form, or None where it need not be there."""
        value = self._get(name, str, "a text", required=required)
        if value is not None and not form.fullmatch(value):
            raise self._refuse(self._key(name), f"is {value!r}, which is no such number")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty where there is none."""
        values = self._get(name, list, "a list of texts", required=False) or []
        if not all(isinstance(value, str) for value in values):
            raise self._refuse(self._key(name), "must be a list of texts")
        return tuple(cast("list[str]", values))

    def strings(self, name: str) -> dict[str, str]:
        """Return an object of texts, empty where there is none."""
        values = self._get(name, dict, "an object of texts", required=False) or {}
        if not all(isinstance(value, str) for value in values.values()):
            raise self._refuse(self._key(name), "must be an object of texts")
        return dict(cast("dict[str, str]", values))

    def table(self, name: str, make: Callable[[StrictObject], T]) -> T:
        """Return what `make` makes of an object that must be there."""
        if self.null(name):
            raise self._refuse(self._key(name), "is missing")
        return self._inner(self._value[name], self._key(name), make)

    def tables(
        self, name: str, make: Callable[[StrictObject], T], *, required: bool = True
    ) -> tuple[T, ...]:
        """Return what `make` makes of each object of a list."""
        rows = self._get(name, list, "a list", required=required) or []
        path = self._key(name)
        return tuple(self._inner(row, f"{path}[{at}]", make) for at, row in enumerate(rows))

    def _inner(self, value: object, path: str, make: Callable[[StrictObject], T]) -> T:
        return StrictObject(value, path, refuse=self._refuse, closed=self._closed).read(make)
