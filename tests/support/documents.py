"""The JSON Schema of `verify`, and a check that is stricter: no key may be unknown to it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from ortgpu_fix.data_files import DATA

SCHEMA: dict[str, Any] = json.loads((DATA / "verify.schema.json").read_text("utf-8"))


def strict(schema: Any) -> Any:
    """Return a schema that allows no other keys than those that it describes."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    return made | {"additionalProperties": False} if "required" in made else made


VALIDATOR = jsonschema.Draft202012Validator(strict(SCHEMA))


def check(document: Any) -> None:
    """Raise jsonschema.ValidationError where a document of `verify --json` does not fit."""
    VALIDATOR.validate(document)
