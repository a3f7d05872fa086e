"""The JSON Schemas of what `--json` prints, and a check that is stricter: no key may be unknown."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from referencing import Registry, Resource

from ortgpu_fix.data_files import DATA

KINDS = (
    "check",
    "diff",
    "error",
    "explain",
    "facts",
    "fleet",
    "libraries",
    "plan",
    "run",
    "verify",
)
SCHEMAS: dict[str, Any] = {
    kind: json.loads((DATA / f"{kind}.schema.json").read_text("utf-8")) for kind in KINDS
}


def strict(schema: Any) -> Any:
    """Return a schema that allows no other keys than those that it describes."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    return made | {"additionalProperties": False} if "required" in made else made


REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(strict(schema))) for schema in SCHEMAS.values()
)
VALIDATORS = {
    kind: jsonschema.Draft202012Validator(strict(schema), registry=REGISTRY)
    for kind, schema in SCHEMAS.items()
}


def kind_of(document: dict[str, Any]) -> str | None:
    """Tell which schema a document is for; None: there is none, as for `matrix` and `lock`."""
    tells = {
        "error": "error",
        "dropped": "diff",
        "explanations": "explain",
        "wheels": "libraries",
        "platform": "facts",
        "groups": "fleet",
        "selection": "plan",
        "processes": "run",
        "models": "verify",
    }
    if document.keys() == {"schema", "verdict"}:
        return "check"
    return next((kind for key, kind in tells.items() if key in document), None)


def check(document: Any, kind: str | None = None) -> None:
    """Raise jsonschema.ValidationError where a document does not fit the schema of its kind."""
    kind = kind or kind_of(document)
    if kind is not None:
        VALIDATORS[kind].validate(document)


def check_output(stdout: str) -> None:
    """Check what a command printed, where that is one JSON document."""
    if stdout.startswith("{"):
        check(json.loads(stdout))


def put(document: Any, place: list[Any], value: object) -> None:
    """Set the value at a path of keys and indexes of a document."""
    for key in place[:-1]:
        document = document[key]
    document[place[-1]] = value
