"""Read JSON objects: leniently what a child printed, strictly what a user wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from ..errors import Cause, Error, cause

T = TypeVar("T")
C = TypeVar("C", bound=str)
Refuse = Callable[[str, Cause], Error]
"""Makes the Error for a key path (`gpus[0].name`; empty: the whole) and what is wrong there."""


def _of_type(value: object, kind: type[T]) -> T | None:
    """Return `value` where it is of this type, else None; true and false are no numbers."""
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    return cast("T", value) if right else None


def read_rows(stdout: str) -> Iterator[LenientObject]:
    """Yield the JSON objects in `stdout`, one a line; other lines are skipped.

    A process that was killed leaves half a line.
    """
    for line in stdout.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield LenientObject(value)


class Events:
    """What a child reported in its lines: JSON objects, each of which has its `event`."""

    def __init__(self, stdout: str) -> None:
        self._by_event: dict[str | None, list[LenientObject]] = {}
        for row in read_rows(stdout):
            self._by_event.setdefault(row.text("event"), []).append(row)

    def __contains__(self, event: str) -> bool:
        return event in self._by_event

    def all(self, event: str) -> Sequence[LenientObject]:
        """Return all events of this kind, in their order."""
        return self._by_event.get(event, ())

    def last(self, event: str) -> LenientObject:
        """Return the last event of this kind; an empty object where there was none."""
        return self._by_event.get(event, [LenientObject({})])[-1]


class LenientObject:
    """A JSON object; a value of another type than the method reads counts as absent."""

    def __init__(self, value: Mapping[str, object]) -> None:
        self._value = value

    def has(self, key: str) -> bool:
        """Return whether the key exists, whatever its value."""
        return key in self._value

    def text(self, key: str) -> str | None:
        """Return a text, or None."""
        return _of_type(self._value.get(key), str)

    def matching(self, key: str, form: re.Pattern[str]) -> str | None:
        """Return a text of this form, or None."""
        value = self.text(key)
        return value if value and form.fullmatch(value) else None

    def flag(self, key: str) -> bool:
        """Return whether the value is true."""
        return self._value.get(key) is True

    def integer(self, key: str) -> int | None:
        """Return a whole number, or None."""
        return _of_type(self._value.get(key), int)

    def number(self, key: str) -> float | None:
        """Return a number, or None."""
        value = self._value.get(key)
        return float(value) if isinstance(value, (int, float)) else None

    def values(self, key: str) -> list[object] | None:
        """Return a list, or None."""
        return _of_type(self._value.get(key), list)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list as texts, whatever is in it; an empty one where it is none."""
        return tuple(map(str, self.values(key) or ()))

    def rows(self, key: str) -> list[LenientObject]:
        """Return the elements of a list as objects: an empty one for each that is no object."""
        return [LenientObject(_of_type(row, dict) or {}) for row in self.values(key) or ()]

    def mapping(self, key: str) -> Mapping[str, object]:
        """Return an object, or an empty one."""
        return _of_type(self._value.get(key), dict) or {}

    def items(self) -> list[tuple[str, object]]:
        """Return every key and its value, in the order of the text."""
        return list(self._value.items())


class StrictObject:
    """A JSON object that knows its key path and which of its keys were read.

    A value that is missing or wrong raises the Error that `refuse` makes. In a `closed` object so
    does a key that was not read; where there is a list `ignored`, its path is added there instead.
    """

    def __init__(
        self,
        value: object,
        path: str = "",
        *,
        refuse: Refuse,
        closed: bool = True,
        ignored: list[str] | None = None,
    ) -> None:
        if not isinstance(value, dict):
            raise refuse(path, cause("must-be-object"))
        self._value = cast("dict[str, object]", value)
        self._path = path
        self._refuse = refuse
        self._closed = closed
        self._ignored = ignored
        self._read: set[str] = set()

    def read(self, make: Callable[[StrictObject], T]) -> T:
        """Return what `make` makes of this object."""
        result = make(self)
        if not self._closed:
            return result
        unknown = sorted(str(name) for name in self._value.keys() - self._read)
        if self._ignored is not None:
            self._ignored += map(self.key_path, unknown)
        elif unknown:
            raise self._refuse(self.key_path(unknown[0]), cause("key-unknown"))
        return result

    def key_path(self, name: str) -> str:
        """Return the path of the key `name` in the whole document: `gpus[0].name`."""
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        """Return whether the key exists."""
        self._read.add(name)
        return name in self._value

    def null(self, name: str, *, required: bool = False) -> bool:
        """Return whether `name` is null or absent; a `required` key must exist."""
        if not self.has(name) and required:
            raise self._refuse(self.key_path(name), cause("key-missing"))
        return self._value.get(name) is None

    def _get(self, name: str, kind: type[T], what: str) -> T | None:
        self._read.add(name)
        found = self._value.get(name)
        if type(found) is kind:  # the usual case, a million times in the facts of a fleet
            return found
        if found is None:
            return None
        raise self._refuse(self.key_path(name), cause(what))

    def _required(self, name: str, kind: type[T], what: str) -> T:
        found = self._get(name, kind, what)
        if found is None:
            raise self._refuse(self.key_path(name), cause("key-missing"))
        return found

    def text(self, name: str) -> str:
        """Return a required text."""
        return self._required(name, str, "must-be-text")

    def text_or_none(self, name: str) -> str | None:
        """Return a text, or None."""
        return self._get(name, str, "must-be-text-or-null")

    def integer(self, name: str) -> int:
        """Return a required whole number."""
        return self._required(name, int, "must-be-number")

    def integer_or_none(self, name: str) -> int | None:
        """Return a whole number, or None."""
        return self._get(name, int, "must-be-number-or-null")

    def flag(self, name: str, *, default: bool = False, required: bool = False) -> bool:
        """Return true or false; `default` where the key is absent and not `required`."""
        if required:
            return self._required(name, bool, "must-be-flag")
        value = self._get(name, bool, "must-be-flag")
        return default if value is None else value

    def flag_or_none(self, name: str) -> bool | None:
        """Return true, false, or None."""
        return self._get(name, bool, "must-be-flag-or-null")

    def choice(self, name: str, choices: tuple[C, ...]) -> C:
        """Return a required text that is one of `choices`."""
        value = self.text(name)
        if value not in choices:
            problem = cause("not-a-choice", value=repr(value), choices=", ".join(choices))
            raise self._refuse(self.key_path(name), problem)
        return value

    def matching(self, name: str, form: re.Pattern[str], *, required: bool = False) -> str | None:
        """Return a text of this form, or None where the key is absent and not `required`."""
        value = (self._required if required else self._get)(name, str, "must-be-text")
        if value is not None and not form.fullmatch(value):
            raise self._refuse(self.key_path(name), cause("not-such-number", value=repr(value)))
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty where the key is absent."""
        values = self._get(name, list, "must-be-texts") or []
        if not all(isinstance(value, str) for value in values):
            raise self._refuse(self.key_path(name), cause("must-be-texts"))
        return tuple(values)

    def strings(self, name: str) -> dict[str, str]:
        """Return an object of texts, empty where the key is absent."""
        values = self._get(name, dict, "must-be-text-table") or {}
        if not all(isinstance(value, str) for value in values.values()):
            raise self._refuse(self.key_path(name), cause("must-be-text-table"))
        return dict(values)

    def table(self, name: str, make: Callable[[StrictObject], T]) -> T:
        """Return what `make` makes of a required object."""
        value = self._required(name, dict, "must-be-object")
        return self._inner(value, self.key_path(name), make)

    def tables(
        self, name: str, make: Callable[[StrictObject], T], *, required: bool = True
    ) -> tuple[T, ...]:
        """Return what `make` makes of each object of a list."""
        rows = (self._required if required else self._get)(name, list, "must-be-list") or []
        path = self.key_path(name)
        return tuple(self._inner(row, f"{path}[{at}]", make) for at, row in enumerate(rows))

    def _inner(self, value: object, path: str, make: Callable[[StrictObject], T]) -> T:
        inner = StrictObject(
            value, path, refuse=self._refuse, closed=self._closed, ignored=self._ignored
        )
        return inner.read(make)
