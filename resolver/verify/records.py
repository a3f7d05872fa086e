"""Records from the JSON that a child prints, and as the JSON that `verify` prints.

Core. A field has the name that it has in the JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from ..plan.reasons import Reason
from ..utils.json_reader import LenientObject

T = TypeVar("T")
_READERS: Mapping[object, Callable[[LenientObject, str], object]] = {
    "str": lambda row, key: row.text(key) or "",
    "str | None": LenientObject.text,
    "bool": LenientObject.flag,
    "int | None": LenientObject.integer,
    "float": lambda row, key: row.number(key) or 0.0,
    "float | None": LenientObject.number,
}
"""By the type of a field, as it is written there."""


def read_record(kind: type[T], row: LenientObject, **given: object) -> T:
    """Return a dataclass `kind` with the fields `given`, and the others as the object has them.

    What is not there, or of another type, is None or empty.
    """
    found: Any = {
        field.name: _READERS[field.type](row, field.name)
        for field in fields(kind)  # type: ignore[arg-type]
        if field.name not in given
    }
    return kind(**found, **given)


def to_json(value: object) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return a record, and all that is in it, as JSON has it."""
    if isinstance(value, Reason):
        return {"code": value.code, "values": dict(value.values)}
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(each) for each in value]
    return value


def chosen_json(record: object, *names: str) -> dict[str, object]:
    """Return some fields of a record as JSON has them, in this order."""
    return {name: to_json(getattr(record, name)) for name in names}
