"""Records as the JSON that `verify` prints. A field has the name that it has there.

Core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..plan.reasons import Reason


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
