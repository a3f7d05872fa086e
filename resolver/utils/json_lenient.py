"""Lines of JSON that a child printed, of which nothing is believed before it was looked at.

Whatever else stands there is passed over, because the child's libraries may print too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast


def read_rows(stdout: str) -> Iterator[LenientObject]:
    """Yield the JSON objects in `stdout`, one a line; a line that is none is passed over."""
    for line in stdout.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield LenientObject(cast("Mapping[str, object]", value))


class LenientObject:
    """A JSON object; what is not of the type that is asked for is not there."""

    def __init__(self, value: Mapping[str, object]) -> None:
        self._value = value

    def has(self, key: str) -> bool:
        """Tell whether the key is there, whatever its value."""
        return key in self._value

    def text(self, key: str) -> str | None:
        """Return a text, or None."""
        value = self._value.get(key)
        return value if isinstance(value, str) else None

    def matching(self, key: str, form: re.Pattern[str]) -> str | None:
        """Return a text of this form, or None."""
        value = self.text(key)
        return value if value and form.fullmatch(value) else None

    def flag(self, key: str) -> bool:
        """Tell whether the value is true."""
        return self._value.get(key) is True

    def integer(self, key: str) -> int | None:
        """Return a whole number, or None."""
        value = self._value.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, key: str) -> float | None:
        """Return a number, or None."""
        value = self._value.get(key)
        return float(value) if isinstance(value, (int, float)) else None

    def values(self, key: str) -> list[object] | None:
        """Return a list, or None."""
        value = self._value.get(key)
        return cast("list[object]", value) if isinstance(value, list) else None

    def rows(self, key: str) -> list[LenientObject]:
        """Return the objects of a list, an empty one for what is none; nothing where it is no list.

        So there are as many as the child counted.
        """
        rows = (row if isinstance(row, dict) else {} for row in self.values(key) or [])
        return [LenientObject(cast("Mapping[str, object]", row)) for row in rows]
