"""Documents in which one value is missing or odd, and outputs as a reader accepted them last."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from documents import put

RECORDINGS = Path(__file__).parents[1] / "recordings"
RECORD = bool(os.environ.get("ORTGPU_FIX_RECORD"))
"""What is recorded is written anew, where a change is wanted; what git shows is to be read."""
ODD: tuple[Any, ...] = (None, 3, -1.5, True, "", "x", "7.5", [], {}, [None, 2, "y"], {"x": 1})


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[list[Any]]:
    """Yield the path of every value; in lists those of the first alone."""
    rows = enumerate(value[:1]) if isinstance(value, list) else value.items()
    for key, inner in rows:
        yield [*at, key]
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*at, key))


def odd(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield `document` with each value left out and with each odd one, and what was done to it."""
    for place in places(document):
        for value in ODD:
            changed = copy.deepcopy(document)
            put(changed, place, value)
            yield f"{place} = {value!r}", changed
        changed = inner = copy.deepcopy(document)
        for key in place[:-1]:
            inner = inner[key]
        del inner[place[-1]]
        yield f"{place} left out", changed
        if isinstance(inner, dict):
            inner["unheard-of"] = 1
            yield f"{place} left out, another there", changed


def difference(before: str, after: str) -> str:
    """Return where `after` begins to differ."""
    pairs = enumerate(zip(before, after, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), len(before))
    return f"…{after[max(0, at - 40) : at + 60]}"


def check_recorded(name: str, lines: Iterable[str]) -> None:
    """Assert that `lines` are those in `tests/recordings`."""
    found = "".join(f"{line}\n" for line in lines)
    file = RECORDINGS / name
    if RECORD:
        file.write_text(found, encoding="utf-8")

    assert found == file.read_text("utf-8")
