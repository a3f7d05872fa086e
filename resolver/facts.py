"""Facts: what is known of a machine and of a Python environment, and their JSON.

Core. `facts` writes this document and `--facts` reads it; its shape is a promise to users.
Absent, unreadable and unknown stay three different things: `driver` None is a machine without a
driver, `Driver.error` one that cannot be read, a None inside a value that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from packaging.utils import canonicalize_name

from .json_table import JsonTable, invalid

SCHEMA = 1
GPU_BUILD, CPU_BUILD = "onnxruntime-gpu", "onnxruntime"
"""The two distributions that everybody mixes: they share one folder, and overwrite one another."""
System = Literal["linux", "windows"]
Machine = Literal["x86_64", "aarch64"]
Kind = Literal["venv", "conda", "user", "system"]
Change = Literal["kept", "stale", "unfinished"]
"""A change that can be undone, what is left of one that cannot, one that never came to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The operating system and what it runs in."""

    system: System
    machine: Machine
    libc: str | None = None
    """`glibc 2.35`, `musl 1.2.4`; None on Windows, or not known."""
    distribution: str | None = None
    wsl: bool = False
    container: str | None = None
    jetson: str | None = None
    """The first line of /etc/nv_tegra_release where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The NVIDIA driver: its release (535.104.12) and the CUDA that it speaks (12.2)."""

    version: str | None = None
    cuda: str | None = None
    error: str | None = None
    """It is there and cannot be read or used, and why: `version-mismatch: what was seen`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU."""

    name: str | None = None
    compute_capability: str | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A CUDA toolkit on this machine."""

    version: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A shared library that the loader would find by this name."""

    name: str
    path: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The target Python."""

    version: str
    implementation: str = "cpython"
    free_threaded: bool = False
    executable: str | None = None
    environment: Kind | None = None
    externally_managed: bool = False
    autoload: bool | None = None
    """Its `.pth` files are read, so that a companion can load libraries for an unchanged
    application; None where that is not known, as in a file written by hand."""
    project: str | None = None
    """The tool whose lock the environment is made from, and made again: `uv`, `poetry`, `pdm`."""
    change: Change | None = None
    """What this program left in the environment; None where there is nothing of it."""
    change_size: int = 0
    """Bytes that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An installed distribution; `name` is canonical (PEP 503)."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    provided: bool = False
    """True for the stand-in that this program installs."""
    intact: bool = True
    """False where files that it lists are gone: another distribution's removal took them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxRuntime:
    """The build that is really in the shared folder `onnxruntime`."""

    distribution: str | None = None
    version: str | None = None
    cuda: str | None = None
    intact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a plan is made from, next to the matrix and the wishes."""

    platform: Platform
    driver: Driver | None
    gpus: tuple[Gpu, ...] | None
    python: Interpreter
    packages: tuple[Package, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()
    libraries: tuple[Library, ...] = ()
    onnxruntime: OnnxRuntime | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where a fact came from: `{"driver.cuda": "libcuda", "gpus": "nvml"}`."""

    def package(self, name: str) -> Package | None:
        """Return the installed distribution of this canonical name, or None."""
        return next((package for package in self.packages if package.name == name), None)


def to_json(facts: Facts) -> dict[str, object]:
    """Return the document of `facts`, ready for `json.dumps`; `from_json` reads it back."""
    document: dict[str, object] = {"schema": SCHEMA, **asdict(facts)}
    document["packages"] = [_lean(package) for package in facts.packages]
    if facts.python.change is None:
        python = asdict(facts.python)
        document["python"] = {name: python[name] for name in python if "change" not in name}
    for name, value in document.items():
        if isinstance(value, tuple):
            document[name] = list(value)
    return document


def _lean(package: Package) -> dict[str, object]:
    """Return `package` without what is empty or false: there can be hundreds."""
    row: dict[str, object] = {"name": package.name, "version": package.version}
    if package.requires:
        row["requires"] = list(package.requires)
    if package.provided:
        row["provided"] = True
    if not package.intact:
        row["intact"] = False
    return row


def from_json(document: object) -> Facts:
    """Read the document that `to_json` writes, or one written by hand.

    Raises Error `facts-invalid` with the path of the key (`gpus[0].compute_capability`) and what is
    wrong there: missing, unknown, of another type, or with an impossible value.
    """
    return JsonTable(document).read(_facts)


def _facts(table: JsonTable) -> Facts:
    schema = table.integer("schema")
    if schema != SCHEMA:
        raise invalid("schema", f"is {schema}, and this program reads {SCHEMA}")
    packages = table.tables("packages", _package)
    if not table.has("onnxruntime"):
        build = _claimed_build(packages)
    else:
        build = None if table.null("onnxruntime") else table.table("onnxruntime", _onnxruntime)
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
    """Return what a hand-written file leaves out: the build that its packages claim.

    Where both builds are listed the CPU build is taken: pip unpacks it last as often as not, and a
    plan that expects the worse is right in both cases.
    """
    claims = {package.name: package for package in packages if not package.provided}
    for name in (CPU_BUILD, GPU_BUILD):
        if name in claims:
            return OnnxRuntime(distribution=name, version=claims[name].version)
    return None


def _platform(table: JsonTable) -> Platform:
    return Platform(
        system=table.choice("system", get_args(System)),
        machine=table.choice("machine", get_args(Machine)),
        libc=table.matching("libc", LIBC),
        distribution=table.text_or_none("distribution"),
        wsl=table.flag("wsl"),
        container=table.text_or_none("container"),
        jetson=table.text_or_none("jetson"),
    )


def _driver(table: JsonTable) -> Driver:
    return Driver(
        version=table.matching("version", _NUMBERS),
        cuda=table.matching("cuda", _NUMBERS),
        error=table.text_or_none("error"),
    )


def _gpu(table: JsonTable) -> Gpu:
    return Gpu(
        name=table.text_or_none("name"),
        compute_capability=table.matching("compute_capability", _CAPABILITY),
        memory_mib=table.integer_or_none("memory_mib"),
    )


def _toolkit(table: JsonTable) -> Toolkit:
    return Toolkit(version=table.text_or_none("version"), path=table.text_or_none("path"))


def _library(table: JsonTable) -> Library:
    return Library(
        name=table.text("name"),
        path=table.text_or_none("path"),
        version=table.text_or_none("version"),
    )


def _interpreter(table: JsonTable) -> Interpreter:
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
        change=None if table.null("change") else table.choice("change", get_args(Change)),
        change_size=table.integer_or_none("change_size") or 0,
    )


def _package(table: JsonTable) -> Package:
    return Package(
        name=canonicalize_name(table.text("name")),
        version=table.text("version"),
        requires=table.texts("requires"),
        provided=table.flag("provided"),
        intact=table.flag("intact", default=True),
    )


def _onnxruntime(table: JsonTable) -> OnnxRuntime:
    return OnnxRuntime(
        distribution=table.text_or_none("distribution"),
        version=table.text_or_none("version"),
        cuda=table.text_or_none("cuda"),
        intact=table.flag("intact", default=True),
    )


LIBC = re.compile(r"(glibc|musl) \d+(\.\d+)*")
_NUMBERS = re.compile(r"\d{1,5}(\.\d{1,5}){0,3}")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_PYTHON = re.compile(r"\d\.\d{1,3}(\.\d{1,3})?([abc]|rc)?\d*\+?")
