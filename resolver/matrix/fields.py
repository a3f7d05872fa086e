"""Rows of parsed TOML or JSON as named tuples: their fields are the table of what a row has.

A field's type says what its value must be; without its key it is the default, or None where the
type allows that; other keys are not looked at. A form (`Annotated[str, SHA256]`) is asked of rows
from outside alone: the shipped tables are held to their schemas when they are made.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from packaging.specifiers import SpecifierSet

from ..versions import requirement, version

R = TypeVar("R")
FieldReader = Callable[[Any], Any]
"""Makes the value of a field. Raises ValueError with its place in the row and what is wrong."""

LONGEST = 2_000
"""The most characters of a text that has no narrower form."""
LARGEST = 1 << 40
"""The most bytes of a wheel."""
_KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", bool: "true or false"}


def _matches(expression: str) -> Callable[[str], object]:
    return lambda text: re.fullmatch(expression, text, re.ASCII)


def _is_printable(text: str) -> bool:
    return 0 < len(text) <= LONGEST and text.isprintable()


def _is_version(text: str) -> bool:
    return _matches(r"[\w.+!-]{1,80}")(text) is not None and version(text) is not None


def _is_requirement(text: str) -> bool:
    """Return whether pip and uv would resolve it by an index, not by what it names itself."""
    wanted = requirement(text) if _is_printable(text) else None
    return wanted is not None and wanted.url is None


VERSION = Annotated[str, _is_version]
DOTTED = Annotated[str, _matches(r"\d{1,3}\.\d{1,3}")]
MAJOR = Annotated[str, _matches(r"\d{1,3}")]
TARGET = Annotated[str, _matches(r"\d{1,2}\.\d[af]?")]
PLATFORM = Annotated[str, _matches(r"(?:linux|windows)_(?:x86_64|aarch64)")]
PYTHON = Annotated[str, _matches(r"[a-z0-9_.]{1,40}")]
SHA256 = Annotated[str, _matches(r"(?:[0-9a-f]{64})?")]
"""Empty where an index gives none."""
FILE = Annotated[str, _matches(r"[A-Za-z0-9][\w.+!-]{0,250}\.whl")]
SIZE = Annotated[int, lambda size: 0 < size <= LARGEST]
HOW = Annotated[str, _matches(r"links|loads")]
NAME = Annotated[str, _matches(r"[A-Za-z0-9](?:[\w.-]{0,100}[A-Za-z0-9])?")]
LIBRARY = Annotated[str, _matches(r"[\w.+-]{1,200}")]
PROVIDER = Annotated[str, _matches(r"[A-Za-z]{1,60}ExecutionProvider")]
PATH = Annotated[str, _matches(r"(?!.*\.\.)[\w+-][\w./+-]{0,500}")]
TEXT = Annotated[str, _is_printable]
REQUIREMENT = Annotated[str, _is_requirement]
INDEX = Annotated[str, _matches(r"pypi|[a-z]{1,8}://[^\s\"'\\<>{}`$#\x00-\x1f\x7f-\x9f]{1,2000}")]


def row_reader(kind: type[R], *, forms: bool = False) -> Callable[[object], R]:
    """Return what makes a row of the NamedTuple `kind`, with its `forms` where they are asked for.

    It raises ValueError where a row does not fit: `wheels[0].size: is no whole number`.
    """
    named = cast("Any", kind)
    fields = [
        (
            name,
            _taken_as_they_are(hint),
            _reader(hint, forms=forms),
            named._field_defaults.get(name, _absent(hint)),
        )
        for name, hint in get_type_hints(kind, include_extras=forms).items()
    ]

    def read(row: object) -> R:
        if not isinstance(row, dict):
            raise ValueError(": is no table")  # noqa: TRY004 - of what was read, not of us
        values = []
        for name, kinds, value_of, default in fields:
            value = row.get(name, _MISSING)
            if value is _MISSING:
                if default is _MISSING:
                    raise ValueError(f".{name}: is missing")
                value = default
            elif type(value) not in kinds:
                try:
                    value = value_of(value)
                except ValueError as error:
                    raise ValueError(f".{name}{error}") from error
            values.append(value)
        made: R = named._make(values)
        return made

    return read


def read_rows(table: Mapping[str, Any], kind: str, read: Callable[[Any], R]) -> tuple[R, ...]:
    """Return the rows of a `kind` of a table.

    Raises ValueError with the key where one does not fit (`build[3].cuda: is no text`), KeyError
    and TypeError where there is no such list of tables.
    """
    return tuple(_each(read, table[kind], kind))


def _each(read: Callable[[Any], R], values: Sequence[Any], kind: str = "") -> list[R]:
    made: list[R] = []
    try:
        made.extend(map(read, values))
    except ValueError as error:
        raise ValueError(f"{kind}[{len(made)}]{error}") from error
    return made


_MISSING = object()


def _taken_as_they_are(hint: object) -> tuple[object, ...]:
    """Return the types of values that need no reader: there are thousands in the tables."""
    kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return kinds if {*kinds} <= {*_KINDS, type(None)} else ()


def _absent(hint: object) -> object:
    return None if type(None) in get_args(hint) else _MISSING


def _reader(hint: Any, *, forms: bool) -> FieldReader:  # noqa: ANN401 - any type
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        plain = _reader(args[0], forms=forms)
        return _with_form(plain, args[1]) if forms else plain
    if origin in {Union, UnionType}:
        inner = _reader(next(one for one in args if one is not type(None)), forms=forms)
        return lambda value: None if value is None else inner(value)
    if origin is Literal:
        return _with_form(_of_kind(str), args.__contains__)
    if origin in {tuple, frozenset}:
        return _list_of(origin, args[0], _reader(args[0], forms=forms))
    if origin is Mapping:
        return _mapping_of(*(_reader(one, forms=forms) for one in args))
    if hint in _KINDS:
        return _of_kind(hint)
    return _specifier if hint is SpecifierSet else row_reader(hint, forms=forms)


def _of_kind(kind: type) -> FieldReader:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise ValueError(f": is not {_KINDS[kind]}")
        return value

    return read


def _with_form(read: FieldReader, form: Callable[[Any], object]) -> FieldReader:
    def formed(value: object) -> object:
        if not form(read(value)):
            raise ValueError(f": cannot be {str(value)[:80]!r}")
        return value

    return formed


def _list_of(
    kind: Callable[[Sequence[Any]], Any],
    hint: object,
    read: FieldReader,
) -> FieldReader:
    def many(value: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise ValueError(": is no list")  # noqa: TRY004
        rows = cast("Sequence[object]", value)
        return kind(rows if {*map(type, rows)} == {hint} else _each(read, rows))

    return many


def _at(at: object, read: FieldReader, value: object) -> object:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"[{at}]{error}") from error


def _mapping_of(key: FieldReader, read: FieldReader) -> FieldReader:
    def pairs(value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError(": is no table")  # noqa: TRY004
        return {_at("a key", key, name): _at(name, read, one) for name, one in value.items()}

    return pairs


def _specifier(value: object) -> SpecifierSet:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise ValueError(": is no specifier")
    try:
        return SpecifierSet(value)
    except ValueError as error:
        raise ValueError(f": {error}") from error
