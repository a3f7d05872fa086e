"""Make records of JSON objects: a table of fields, each with what reads it."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from .json_reader import LenientObject, StrictObject

R = TypeVar("R", bound=NamedTuple)
T = TypeVar("T")
KeyReader = Callable[[StrictObject, str], object]
"""Reads the value of a key."""
_READERS: Mapping[object, KeyReader] = {
    str: StrictObject.text,
    int: StrictObject.integer,
    str | None: StrictObject.text_or_none,
    int | None: StrictObject.integer_or_none,
    bool | None: StrictObject.flag_or_none,
    tuple[str, ...]: StrictObject.texts,
    Mapping[str, str]: StrictObject.strings,
}


def record_reader(
    record: type[R], *first: str, **special: KeyReader
) -> Callable[[StrictObject], R]:
    """Return what makes a `record` of an object whose keys are the names of its fields.

    Each field is read by its reader in `special`, or by its type; true or false may be absent where
    the record has a default for it. Those named `first` are read, and refused, before the others.
    """
    names = dict.fromkeys((*first, *record.__annotations__))
    readers = [(name, special.get(name) or _key_reader(record, name)) for name in names]
    make: Callable[..., R] = record

    def read(table: StrictObject) -> R:
        return make(**{name: value(table, name) for name, value in readers})

    return read


def _key_reader(record: type[NamedTuple], name: str) -> KeyReader:
    hint: object = record.__annotations__[name]
    if hint is bool and name in record._field_defaults:
        default = record._field_defaults[name] is True
        return lambda table, key: table.flag(key, default=default)
    if hint is bool:
        return lambda table, key: table.flag(key, required=True)
    if get_origin(hint) is Literal:
        return lambda table, key: table.choice(key, get_args(hint))
    return _READERS[hint]


def one(make: Callable[[StrictObject], object]) -> KeyReader:
    """Return what reads a required object."""
    return lambda table, name: table.table(name, make)


def one_or_none(make: Callable[[StrictObject], object], *, required: bool = False) -> KeyReader:
    """Return what reads an object, or null; the key must be there where it is `required`."""
    return lambda table, name: (
        None if table.null(name, required=required) else table.table(name, make)
    )


def matching(form: re.Pattern[str]) -> KeyReader:
    """Return what reads a text of this form, or None where the key is absent."""
    return lambda table, name: table.matching(name, form)


def choice_or_none(choices: tuple[str, ...]) -> KeyReader:
    """Return what reads one of `choices`, or null."""
    return lambda table, name: None if table.null(name) else table.choice(name, choices)


_LENIENT: Mapping[object, Callable[[LenientObject, str], object]] = {
    "str": lambda row, key: row.text(key) or "",
    "str | None": LenientObject.text,
    "bool": LenientObject.flag,
    "int": lambda row, key: row.integer(key) or 0,
    "int | None": LenientObject.integer,
    "float": lambda row, key: row.number(key) or 0.0,
    "float | None": LenientObject.number,
    "tuple[str, ...]": LenientObject.texts,
}
"""By the type of a field, as it is written in a module whose annotations are not evaluated."""


def read_record(kind: type[T], row: LenientObject, **given: object) -> T:
    """Return a record `kind` with the fields `given`, and the others as the object has them.

    What is not there, or of another type, is None or empty.
    """
    found: Any = {
        name: _LENIENT[getattr(hint, "__forward_arg__", hint)](row, name)  # a named tuple wraps it
        for name, hint in kind.__annotations__.items()
        if name not in given
    }
    return kind(**found, **given)
