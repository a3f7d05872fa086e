"""The JSON of facts, which `facts` writes and `--facts` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from packaging.utils import canonicalize_name

from .. import __version__
from ..errors import Error
from ..utils.json_reader import StrictObject
from ..versions import newest_first
from .model import (
    CPU_BUILD,
    GPU_BUILD,
    LIBC,
    Architecture,
    ChangeState,
    Driver,
    Facts,
    Gpu,
    Interpreter,
    Kind,
    Library,
    OnnxRuntime,
    Package,
    Platform,
    Provider,
    System,
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
        name for name in ("locked", "shadow", "command", "moved_from") if python[name] is None
    }
    document["python"] = {name: python[name] for name in python if name not in absent}
    return document


def _lean(package: Package) -> dict[str, object]:
    """Return `package` without the values that are the default: there can be hundreds."""
    defaults = package._field_defaults
    row = as_table(package).items()
    return {name: value for name, value in row if value not in (defaults.get(name), [])}


def from_json(document: object, ignored: list[str] | None = None) -> Facts:
    """Read the document that `to_json` writes, or one written by hand.

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
    """Tell whether a newer program than this one wrote a document: `ortgpu-fix 0.4.0`."""
    name, _, release = written_by.partition(" ")
    return name == PROGRAM and newest_first(release) > newest_first(__version__)


def _invalid(key: str, problem: str) -> Error:
    return Error("facts-invalid", key=key or "the document", problem=problem)


def _facts(table: StrictObject) -> Facts:
    table.text_or_none("written_by")
    schema = table.integer("schema")
    if schema != SCHEMA:
        raise _invalid("schema", f"is {schema}, and this program reads {SCHEMA}")
    packages = table.tables("packages", _package)
    if not table.has("onnxruntime"):
        build = _claimed_build(packages)
    else:
        build = None if table.null("onnxruntime") else table.table("onnxruntime", read_onnxruntime)
    return Facts(
        platform=table.table("platform", _platform),
        driver=None if table.null("driver", required=True) else table.table("driver", _driver),
        gpus=None if table.null("gpus", required=True) else table.tables("gpus", _gpu),
        python=table.table("python", _interpreter),
        packages=packages,
        toolkits=table.tables("toolkits", _toolkit, required=False),
        libraries=table.tables("libraries", _library, required=False),
        onnxruntime=build,
        environment=table.strings("environment"),
        sources=table.strings("sources"),
    )


def _claimed_build(packages: tuple[Package, ...]) -> OnnxRuntime | None:
    """Return the build that the packages of a hand-written file claim.

    Of both builds the CPU build is returned: a plan that expects the worse is right in both cases.
    """
    claims = {package.name: package for package in packages if not package.provided}
    for name in (CPU_BUILD, GPU_BUILD):
        if name in claims:
            return OnnxRuntime(distribution=name, version=claims[name].version)
    return None


def _platform(table: StrictObject) -> Platform:
    return Platform(
        system=table.choice("system", get_args(System)),
        machine=table.choice("machine", get_args(Architecture)),
        libc=table.matching("libc", LIBC),
        distribution=table.text_or_none("distribution"),
        wsl=table.flag("wsl"),
        container=table.text_or_none("container"),
        jetson=table.text_or_none("jetson"),
    )


def _driver(table: StrictObject) -> Driver:
    return Driver(
        version=table.matching("version", _NUMBERS),
        cuda=table.matching("cuda", _NUMBERS),
        error=table.text_or_none("error"),
    )


def _gpu(table: StrictObject) -> Gpu:
    return Gpu(
        name=table.text_or_none("name"),
        compute_capability=table.matching("compute_capability", _CAPABILITY),
        memory_mib=table.integer_or_none("memory_mib"),
    )


def _toolkit(table: StrictObject) -> Toolkit:
    return Toolkit(version=table.text_or_none("version"), path=table.text_or_none("path"))


def _library(table: StrictObject) -> Library:
    return Library(
        name=table.text("name"),
        path=table.text_or_none("path"),
        version=table.text_or_none("version"),
    )


def _interpreter(table: StrictObject) -> Interpreter:
    kind = None if table.null("environment") else table.choice("environment", get_args(Kind))
    return Interpreter(
        version=table.matching("version", _PYTHON, required=True) or "",
        implementation=(table.text_or_none("implementation") or "cpython").lower(),
        free_threaded=table.flag("free_threaded"),
        executable=table.text_or_none("executable"),
        environment=kind,
        externally_managed=table.flag("externally_managed"),
        autoload=table.flag_or_none("autoload"),
        project=table.text_or_none("project"),
        locked=table.text_or_none("locked"),
        shadow=table.text_or_none("shadow"),
        command=table.text_or_none("command"),
        moved_from=table.text_or_none("moved_from"),
        change=None if table.null("change") else table.choice("change", get_args(ChangeState)),
        change_size=table.integer_or_none("change_size") or 0,
    )


def _package(table: StrictObject) -> Package:
    return Package(
        name=canonicalize_name(table.text("name")),
        version=table.text("version"),
        requires=table.texts("requires"),
        provided=table.flag("provided"),
        intact=table.flag("intact", default=True),
        libraries=table.texts("libraries"),
        outside=table.flag("outside"),
    )


def read_onnxruntime(table: StrictObject, *, required: bool = False) -> OnnxRuntime:
    """Read the build in the shared folder; `required`: `intact` must be given."""
    return OnnxRuntime(
        distribution=table.text_or_none("distribution"),
        version=table.text_or_none("version"),
        cuda=table.text_or_none("cuda"),
        intact=table.flag("intact", default=True, required=required),
        provider=None if table.null("provider") else table.table("provider", _provider),
    )


def _provider(table: StrictObject) -> Provider:
    return Provider(
        links=table.texts("links"),
        names=table.texts("names"),
        sass=_targets(table, "sass"),
        ptx=_targets(table, "ptx"),
        toolset=table.text_or_none("toolset"),
        preload_dlls=table.flag("preload_dlls"),
    )


def _targets(table: StrictObject, name: str) -> tuple[str, ...]:
    """Return targets of GPU code: `9.0`, `9.0a`, `12.0f`."""
    texts = table.texts(name)
    if not all(_TARGET.fullmatch(text) for text in texts):
        raise _invalid(f"onnxruntime.provider.{name}", "is no list of targets such as 9.0a")
    return texts


_NUMBERS = re.compile(r"\d{1,5}(\.\d{1,5}){0,3}")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_TARGET = re.compile(r"\d{1,2}\.\d[af]?")
_PYTHON = re.compile(r"\d\.\d{1,3}(\.\d{1,3})?([abc]|rc)?\d*\+?")
