"""The target environment: what `inside.py` said of it, checked field by field.

Core. The last line of the child's output that is its answer goes in, a `Target` comes out: the one
value that says where this program works. Its paths are real ones; what goes into a facts file is
in `python_of`, `packages_of` and `onnxruntime_of`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, cast

from packaging.utils import canonicalize_name

from .errors import Error
from .facts import Facts, Interpreter, OnnxRuntime, Package
from .scrub import scrub

T = TypeVar("T")
Kind = Literal["venv", "conda", "user", "system"]
KINDS: tuple[Kind, ...] = ("venv", "conda", "user", "system")
OLDEST = (3, 8)
"""The oldest Python that an environment may have; uv installs into nothing older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A distribution that the target sees."""

    name: str
    """As its metadata spell it."""
    version: str
    metadata_path: str
    """Its dist-info or egg-info."""
    requires: tuple[str, ...] = ()
    installer: str | None = None
    """`pip`, `uv`, `conda`; what the file INSTALLER says."""
    direct_url: bool = False
    editable: bool = False
    provided: bool = False
    """True for the stand-in that this program installs."""
    missing: int = 0
    """How many shared libraries of an nvidia distribution are gone, or are another one's."""

    @property
    def key(self) -> str:
        """The canonical name (PEP 503)."""
        return canonicalize_name(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What is in the shared folder `onnxruntime`, whatever the distributions claim."""

    folder: str
    distribution: str | None = None
    version: str | None = None
    cuda: str | None = None
    importable: bool = False
    """False for a gutted folder: without `__init__.py` it imports as an empty namespace."""
    claimed: bool = False
    """An installed distribution has this name and version."""
    intact: bool = False
    """Importable, claimed, and every file as its wheel had it."""
    damaged: tuple[str, ...] = ()
    """The first 20 files that are missing or differ, relative to the folder above."""
    damaged_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The environment to work on."""

    executable: str
    version: str
    """`3.11.7`, `3.15.0a2`."""
    implementation: str
    free_threaded: bool
    abi: str
    """SOABI: `cpython-311-x86_64-linux-gnu`."""
    platform: str
    """`linux-x86_64`, `win-amd64`: what sysconfig says of the interpreter, not of the kernel."""
    bits: int
    prefix: str
    base_prefix: str
    purelib: str
    platlib: str
    scripts: str
    kind: Kind
    externally_managed: bool
    """PEP 668; never true of a venv, as pip sees it."""
    system_site: bool
    """A venv that sees the packages of its base interpreter."""
    uv_managed: bool
    """A venv that uv made."""
    pip_version: str | None
    pth: bool
    """`.pth` files are read: not by an embeddable Python whose `._pth` has no `import site`."""
    libc: str | None
    build: Build | None
    installed: tuple[Installed, ...]
    """In the order of sys.path: of two with one name the first is in use."""
    broken: tuple[str, ...]
    """Metadata folders without name or version, and what pip leaves behind (`~nnxruntime`)."""

    def find(self, name: str) -> Installed | None:
        """Return the distribution of this canonical name that is in use, or None."""
        return next((one for one in self.installed if one.key == name), None)


def read_target(stdout: str, interpreter: str) -> Target:
    """Read the answer of `inside.py`, whatever else was printed around it.

    `interpreter` is who was asked, for the message where the answer is none.

    Raises Error `python-garbage` where there is no answer or a field of it is wrong, and
    `python-too-old` where that Python is older than 3.8.
    """
    try:
        return _target(_answer(stdout))
    except _GarbageError as error:
        raise Error("python-garbage", path=interpreter, field=str(error)) from None


def _target(answer: Mapping[str, object]) -> Target:
    version = _get(answer, "version", str)
    executable = _get(answer, "executable", str)
    numbers = re.fullmatch(r"([0-9])\.([0-9]{1,3})\.[0-9]{1,3}((a|b|rc)[0-9]+)?", version)
    if numbers is None:
        raise _GarbageError("version")
    if (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise Error("python-too-old", path=executable, version=version)
    rows = [_mapping(row) for row in _get(answer, "installed", list)]
    kind = _get(answer, "environment", str)
    if kind not in KINDS:
        raise _GarbageError("environment")
    libc = _optional(answer, "libc", str)
    if libc is not None and not re.fullmatch(r"(glibc|musl) [0-9]+(\.[0-9]+)*", libc):
        raise _GarbageError("libc")
    build = _optional(answer, "onnxruntime", dict)
    return Target(
        executable=executable,
        version=version,
        implementation=_get(answer, "implementation", str),
        free_threaded=_get(answer, "free_threaded", bool),
        abi=_optional(answer, "abi", str) or "",
        platform=_get(answer, "platform", str),
        bits=_get(answer, "bits", int),
        prefix=_get(answer, "prefix", str),
        base_prefix=_get(answer, "base_prefix", str),
        purelib=_get(answer, "purelib", str),
        platlib=_get(answer, "platlib", str),
        scripts=_get(answer, "scripts", str),
        kind=kind,
        externally_managed=_get(answer, "externally_managed", bool),
        system_site=_get(answer, "system_site", bool),
        uv_managed=_get(answer, "uv_managed", bool),
        pip_version=_optional(answer, "pip", str),
        pth=_get(answer, "pth", bool),
        libc=libc,
        build=None if build is None else _build(build),
        installed=tuple(_installed(row) for row in rows if row.get("version") is not None),
        broken=tuple(_get(row, "path", str) for row in rows if row.get("version") is None),
    )


class _GarbageError(Exception):
    """The name of the field that is not as `inside.py` writes it."""


def _answer(stdout: str) -> Mapping[str, object]:
    """Return the last line that is the answer; a `.pth` file may print before and after it."""
    for line in reversed(stdout.splitlines()):
        if line.startswith('{"version": '):
            try:
                return _mapping(json.loads(line))
            except (ValueError, RecursionError):
                break
    raise _GarbageError("no answer")


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _GarbageError("no answer")
    return cast("dict[str, object]", value)


def _optional(table: Mapping[str, object], name: str, kind: type[T]) -> T | None:
    value = table.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _GarbageError(name)
    return value


def _get(table: Mapping[str, object], name: str, kind: type[T]) -> T:
    value = _optional(table, name, kind)
    if value is None:
        raise _GarbageError(name)
    return value


def _texts(table: Mapping[str, object], name: str) -> tuple[str, ...]:
    values = _optional(table, name, list) or []
    if not all(isinstance(value, str) for value in values):
        raise _GarbageError(name)
    return tuple(cast("list[str]", values))


def _installed(row: Mapping[str, object]) -> Installed:
    return Installed(
        name=_get(row, "name", str),
        version=_get(row, "version", str),
        metadata_path=_get(row, "path", str),
        requires=_texts(row, "requires"),
        installer=_optional(row, "installer", str),
        direct_url=_optional(row, "direct_url", bool) or False,
        editable=_optional(row, "editable", bool) or False,
        provided=_optional(row, "provided", bool) or False,
        missing=_optional(row, "missing", int) or 0,
    )


def _build(row: Mapping[str, object]) -> Build:
    return Build(
        folder=_get(row, "folder", str),
        distribution=_optional(row, "distribution", str),
        version=_optional(row, "version", str),
        cuda=_optional(row, "cuda", str),
        importable=_get(row, "importable", bool),
        claimed=_get(row, "claimed", bool),
        intact=_get(row, "intact", bool),
        damaged=_texts(row, "damaged"),
        damaged_count=_get(row, "damaged_count", int),
    )


def python_of(target: Target, home: str | None = None) -> Interpreter:
    """Return what a facts file says of the interpreter; `home` is written as `~`."""
    return Interpreter(
        version=target.version,
        implementation=target.implementation,
        free_threaded=target.free_threaded,
        executable=scrub(target.executable, home),
        environment=target.kind,
        externally_managed=target.externally_managed,
        autoload=target.pth,
    )


def packages_of(target: Target, home: str | None = None) -> tuple[Package, ...]:
    """Return the distributions in use, by name; no path and no token of theirs."""
    packages: dict[str, Package] = {}
    for one in target.installed:
        requires = tuple(scrub(line, home) for line in one.requires)
        packages.setdefault(
            one.key,
            Package(
                name=one.key,
                version=one.version,
                requires=requires,
                provided=one.provided,
                intact=one.missing == 0,
            ),
        )
    return tuple(packages[name] for name in sorted(packages))


def onnxruntime_of(target: Target) -> OnnxRuntime | None:
    """Return the build in the shared folder; None where the folder is not there or holds none."""
    build = target.build
    if build is None:
        return None
    return OnnxRuntime(
        distribution=build.distribution,
        version=build.version,
        cuda=build.cuda,
        intact=build.intact,
    )


def in_environment(facts: Facts, target: Target, home: str | None = None) -> Facts:
    """Return `facts` of a machine with the environment of `target` in the place of its own."""
    return replace(
        facts,
        python=python_of(target, home),
        packages=packages_of(target, home),
        onnxruntime=onnxruntime_of(target),
    )
