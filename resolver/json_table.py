"""A JSON object that is read key by key, and says by its path what is wrong with it.

Core.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar, cast

from .errors import Error

T = TypeVar("T")


def invalid(key: str, problem: str) -> Error:
    """Return the Error `facts-invalid` for the key path `key`."""
    return Error("facts-invalid", key=key or "the document", problem=problem)


class JsonTable:
    """A JSON object that knows its key path and which of its keys were asked for."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise invalid(path, "must be an object")
        self._value = cast("dict[str, object]", value)
        self._path = path
        self._asked: set[str] = set()

    def _key(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        """Tell whether the key is there."""
        self._asked.add(name)
        return name in self._value

    def null(self, name: str) -> bool:
        """Tell whether `name` is null, or absent where the file may stay short."""
        if name in {"driver", "gpus"} and not self.has(name):
            raise invalid(self._key(name), "is missing")
        self._asked.add(name)
        return self._value.get(name) is None

    def _get(self, name: str, kind: type[T], what: str, *, required: bool) -> T | None:
        self._asked.add(name)
        value = self._value.get(name)
        if value is None:
            if required:
                raise invalid(self._key(name), "is missing")
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise invalid(self._key(name), f"must be {what}")
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

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false; `default` where it is not there."""
        value = self._get(name, bool, "true or false", required=False)
        return default if value is None else value

    def flag_or_none(self, name: str) -> bool | None:
        """Return true, false, or None."""
        return self._get(name, bool, "true, false or null", required=False)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return a text that is one of `choices`."""
        value = self.text(name)
        if value not in choices:
            raise invalid(self._key(name), f"is {value!r}, must be one of {', '.join(choices)}")
        return value

    def matching(self, name: str, form: re.Pattern[str], *, required: bool = False) -> str | None:
        """Return a text of this form, or None where it need not be there."""
        value = self._get(name, str, "a text", required=required)
        if value is not None and not form.fullmatch(value):
            raise invalid(self._key(name), f"is {value!r}, which is no such number")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty where there is none."""
        values = self._get(name, list, "a list of texts", required=False) or []
        if not all(isinstance(value, str) for value in values):
            raise invalid(self._key(name), "must be a list of texts")
        return tuple(cast("list[str]", values))

    def strings(self, name: str) -> dict[str, str]:
        """Return an object of texts, empty where there is none."""
        values = self._get(name, dict, "an object of texts", required=False) or {}
        if not all(isinstance(value, str) for value in values.values()):
            raise invalid(self._key(name), "must be an object of texts")
        return dict(cast("dict[str, str]", values))

    def table(self, name: str) -> JsonTable:
        """Return an object that must be there."""
        self._asked.add(name)
        if self._value.get(name) is None:
            raise invalid(self._key(name), "is missing")
        return JsonTable(self._value[name], self._key(name))

    def tables(
        self, name: str, read: Callable[[JsonTable], T], *, required: bool = True
    ) -> tuple[T, ...]:
        """Return what `read` makes of each object of a list."""
        rows = self._get(name, list, "a list", required=required) or []
        path = self._key(name)
        return tuple(read(JsonTable(row, f"{path}[{at}]")) for at, row in enumerate(rows))

    def refuse_unknown(self) -> None:
        """Refuse the keys that nobody asked for."""
        unknown = sorted(str(name) for name in self._value.keys() - self._asked)
        if unknown:
            raise invalid(self._key(unknown[0]), "is not a key of this document")
