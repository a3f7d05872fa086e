"""The JSON of facts, which `facts` writes and `--facts` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from packaging.utils import canonicalize_name

from .. import __version__
from ..errors import Cause, Error, cause
from ..utils.json_reader import StrictObject
from ..utils.record_reader import choice_or_none, matching, one, one_or_none, record_reader
from ..versions import newest_first
from .model import (
    CPU_BUILD,
    GPU_BUILD,
    LIBC,
    ChangeState,
    Driver,
    Facts,
    Gpu,
    Interpreter,
    Keeper,
    Kind,
    Library,
    OnnxRuntime,
    Owner,
    Package,
    Platform,
    Provider,
    Toolkit,
)

SCHEMA = 1
PROGRAM = "ortgpu-fix"
WRITTEN_BY = f"{PROGRAM} {__version__}"
"""The value of `written_by` in the documents of this program."""


def as_table(record: NamedTuple) -> dict[str, object]:
    """Return a record as a JSON object, ready for `json.dumps`, with all the records in it."""
    return {name: _plain(value) for name, value in record._asdict().items()}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        # json.dumps writes a named tuple as a list, without its names.
        if hasattr(value, "_fields"):
            return as_table(cast("NamedTuple", value))
        return [_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {name: _plain(element) for name, element in value.items()}
    return value


def to_json(facts: Facts) -> dict[str, object]:
    """Return the document of `facts`, ready for `json.dumps`; `from_json` reads it back."""
    document: dict[str, object] = {"schema": SCHEMA, **as_table(facts)}
    document["packages"] = [_lean(package) for package in facts.packages]
    if facts.onnxruntime is not None and facts.onnxruntime.provider is None:
        build = as_table(facts.onnxruntime)
        document["onnxruntime"] = {name: build[name] for name in build if name != "provider"}
    python = as_table(facts.python)
    absent = {"change", "change_size"} if facts.python.change is None else set[str]()
    absent |= {
        name
        for name in (
            "managed_by",
            "read_only",
            "locked",
            "shadow",
            "command",
            "moved_from",
        )
        if python[name] in {None, False}
    }
    document["python"] = {name: python[name] for name in python if name not in absent}
    return document


def _lean(package: Package) -> dict[str, object]:
    """Return `package` without the values that are the default: there can be hundreds."""
    defaults = package._field_defaults
    table = as_table(package).items()
    return {name: value for name, value in table if value not in (defaults.get(name), [])}


def from_json(document: object, ignored: list[str] | None = None) -> Facts:
    """Read the document that `to_json` writes, or one written by hand.

    A driver or GPUs that are not in it are not known; a driver that is null is not there.

    Keys that this program does not know are refused, unless a newer one wrote the document: then
    their paths are added to `ignored`.

    Raises Error `facts-invalid` with the path of the key (`gpus[0].compute_capability`) and what is
    wrong there: missing, unknown, of another type, or with an impossible value.
    """
    ignored = [] if ignored is None else ignored
    written_by = document.get("written_by") if isinstance(document, dict) else None
    newer = isinstance(written_by, str) and _is_newer(written_by)
    return StrictObject(document, refuse=_invalid, ignored=ignored if newer else None).read(_facts)


def _is_newer(written_by: str) -> bool:
    """Return whether a newer program than this one wrote a document: `ortgpu-fix 0.4.0`."""
    name, _, release = written_by.partition(" ")
    return name == PROGRAM and newest_first(release) > newest_first(__version__)


def _invalid(key: str, problem: Cause) -> Error:
    return Error("facts-invalid", key=key or cause("whole-document"), problem=problem)


def _facts(table: StrictObject) -> Facts:
    table.text_or_none("written_by")
    schema = table.integer("schema")
    if schema != SCHEMA:
        raise _invalid("schema", cause("schema-other", found=schema, known=SCHEMA))
    build_named = table.has("onnxruntime")
    facts = _read_facts(table)
    return facts if build_named else facts._replace(onnxruntime=_claimed_build(facts.packages))


def _claimed_build(packages: tuple[Package, ...]) -> OnnxRuntime | None:
    """Return the build that the packages of a hand-written file claim.

    Of both builds the CPU build is returned: a plan that expects the worse is right in both cases.
    """
    claims = {package.name: package for package in packages if not package.provided}
    for name in (CPU_BUILD, GPU_BUILD):
        if name in claims:
            return OnnxRuntime(distribution=name, version=claims[name].version)
    return None


def _targets(table: StrictObject, name: str) -> tuple[str, ...]:
    """Return targets of GPU code: `9.0`, `9.0a`, `12.0f`."""
    texts = table.texts(name)
    if not all(_TARGET.fullmatch(text) for text in texts):
        raise _invalid(table.key_path(name), cause("no-gpu-targets"))
    return texts


def _libc(table: StrictObject, name: str) -> str | None:
    """Return the C library; a version alone, in a file written by hand, is that of glibc."""
    text = table.matching(name, _LIBC)
    return f"glibc {text}" if text and text[0].isdigit() else text


_NUMBERS = re.compile(r"\d{1,5}(\.\d{1,5}){0,3}")
_LIBC = re.compile(rf"{LIBC.pattern}|\d+(\.\d+)*")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_TARGET = re.compile(r"\d{1,2}\.\d[af]?")
_PYTHON = re.compile(r"\d\.\d{1,3}(\.\d{1,3})?([abc]|rc)?\d{0,3}\+?")

_read_gpu = record_reader(Gpu, compute_capability=matching(_CAPABILITY))
_read_toolkit = record_reader(Toolkit)
_read_library = record_reader(Library)
_read_provider = one_or_none(record_reader(Provider, sass=_targets, ptx=_targets))
_read_package = record_reader(
    Package,
    name=lambda table, key: canonicalize_name(table.text(key)),
    held=choice_or_none(get_args(Keeper)),
    provider=_read_provider,
    size=lambda table, key: table.integer_or_none(key) or 0,
)
read_onnxruntime = record_reader(OnnxRuntime, provider=_read_provider)
"""Reads the build in the shared folder."""
_read_driver = one_or_none(
    record_reader(Driver, version=matching(_NUMBERS), cuda=matching(_NUMBERS))
)
_read_interpreter = record_reader(
    Interpreter,
    "environment",
    version=lambda table, key: table.matching(key, _PYTHON, required=True),
    implementation=lambda table, key: (table.text_or_none(key) or "cpython").lower(),
    environment=choice_or_none(get_args(Kind)),
    managed_by=choice_or_none(get_args(Owner)),
    change=choice_or_none(get_args(ChangeState)),
    change_size=lambda table, key: table.integer_or_none(key) or 0,
)
_read_facts = record_reader(
    Facts,
    "packages",
    "onnxruntime",
    platform=one(record_reader(Platform, libc=_libc)),
    driver=lambda table, key: _read_driver(table, key) if table.has(key) else Driver(),
    gpus=lambda table, key: None if table.null(key) else table.tables(key, _read_gpu),
    python=one(_read_interpreter),
    packages=lambda table, key: table.tables(key, _read_package),
    toolkits=lambda table, key: table.tables(key, _read_toolkit, required=False),
    libraries=lambda table, key: table.tables(key, _read_library, required=False),
    onnxruntime=one_or_none(read_onnxruntime),
)
