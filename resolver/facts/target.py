"""The target environment, with its real paths, and the facts of it that may be shared."""

import json
import re
from typing import Literal, NamedTuple, cast, get_args

from packaging.utils import canonicalize_name

from ..errors import Cause, Error, cause
from ..utils.json_reader import StrictObject
from ..utils.record_reader import choice_or_none, matching, one_or_none, record_reader
from .model import (
    LIBC,
    OLDEST,
    Architecture,
    Facts,
    Interpreter,
    Keeper,
    Kind,
    OnnxRuntime,
    Owner,
    Package,
)
from .redact import redact

_VERSION = re.compile(r"([0-9])\.([0-9]{1,3})\.[0-9]{1,3}((a|b|rc)[0-9]+)?")
MACHINES: dict[str, Architecture] = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
}
"""Our names of what operating systems and interpreters call a machine, in lower case."""

CONDA_TOOLS: tuple[Literal["conda", "pixi"], ...] = ("conda", "pixi")
"""What installs conda's packages: pixi into environments of its own, with the INSTALLER `conda`."""
STATE_FOLDER = ".ortgpu-fix"
"""The folder in site-packages in which this program keeps what undoes a change."""


class Installed(NamedTuple):
    """A distribution in the target environment."""

    name: str
    """As in its metadata."""
    version: str
    metadata_path: str
    """Its dist-info or egg-info."""
    requires: tuple[str, ...] = ()
    installer: str | None = None
    """The content of the file INSTALLER: `pip`, `uv`, `conda`; `pixi` for conda's in pixi's."""
    editable: bool = False
    local: bool = False
    """It was installed from a directory (PEP 610): the user's own sources."""
    provided: bool = False
    """True for the placeholder that this program installs."""
    missing: int = 0
    """How many shared libraries of an nvidia distribution are missing or replaced; of another that
    onnxruntime requires 1 where its module is gone."""
    libraries: tuple[str, ...] = ()
    """The paths of the shared libraries of an nvidia distribution, from its folder; on Windows of
    torch, too."""
    size: int = 0
    """The bytes of the files of an nvidia distribution."""
    requested: bool = False
    """The user asked pip for an nvidia distribution by name."""

    @property
    def removal_blocker(self) -> Keeper | None:
        """Why this program does not remove it; None: it does."""
        if self.editable:
            return "editable"
        return next((tool for tool in CONDA_TOOLS if tool == self.installer), None)

    @property
    def key(self) -> str:
        """The canonical name (PEP 503)."""
        return canonicalize_name(self.name)


class Target(NamedTuple):
    """The environment to work on."""

    executable: str
    version: str
    """`3.11.7`, `3.15.0a2`."""
    implementation: str
    free_threaded: bool
    platform: str
    """`linux-x86_64`, `win-amd64`: of the interpreter (sysconfig), not of the kernel."""
    bits: int
    prefix: str
    base_prefix: str
    purelib: str
    platlib: str
    scripts: str
    kind: Kind
    externally_managed: bool
    """PEP 668, or a Python of Windows that others share; never true of a venv, as in pip."""
    pth: bool
    """`.pth` files are read. An embeddable Python whose `._pth` has no `import site` does not."""
    libc: str | None
    build: OnnxRuntime | None
    """The build in the shared folder `onnxruntime`; None without that folder."""
    installed: tuple[Installed, ...]
    """In the order of sys.path: of two with one name the first is in use."""
    broken: tuple[str, ...]
    """Metadata folders without name or version, and remains of pip (`~nnxruntime`)."""
    user_site: str | None = None
    """The user's site folder, where it goes before the environment's own."""
    managed_by: Owner | None = None
    """Where it came from, as far as a file or the registry says."""
    read_only: bool = False
    """This user cannot write to `purelib`."""

    @property
    def machine(self) -> Architecture | None:
        """The architecture of the interpreter; None where it is none that we know."""
        return MACHINES.get(self.platform.rpartition("-")[2].lower())

    def holds(self, installed: Installed) -> bool:
        """Return whether a distribution is in this environment, and not in another on its path."""
        if self.kind == "user" or installed.editable:
            return True
        path = installed.metadata_path
        return any(
            path.startswith(folder) and path[len(folder) : len(folder) + 1] in {"/", "\\"}
            for folder in (self.purelib, self.platlib)
        )

    @property
    def in_use(self) -> tuple[Installed, ...]:
        """Return the distributions of which no other of the same name goes before."""
        return tuple({package.key: package for package in reversed(self.installed)}.values())[::-1]

    def find(self, name: str) -> Installed | None:
        """Return the distribution of this canonical name that is in use, or None."""
        return next((package for package in self.installed if package.key == name), None)


def python_of(target: Target, home: str | None = None) -> Interpreter:
    """Return the interpreter for a facts file; `home` is written as `~`."""
    return Interpreter(
        version=target.version,
        implementation=target.implementation,
        free_threaded=target.free_threaded,
        executable=redact(target.executable, home),
        environment=target.kind,
        externally_managed=target.externally_managed,
        managed_by=target.managed_by,
        read_only=target.read_only,
        autoload=target.pth,
    )


def packages_of(target: Target, home: str | None = None) -> tuple[Package, ...]:
    """Return the distributions in use, sorted by name, without paths and tokens."""
    packages = {
        installed.key: Package(
            name=installed.key,
            version=installed.version,
            requires=tuple(redact(line, home) for line in installed.requires),
            provided=installed.provided,
            intact=installed.missing == 0,
            libraries=installed.libraries,
            outside=not target.holds(installed),
            held=installed.removal_blocker,
            local=installed.local,
            size=installed.size,
            requested=installed.requested,
        )
        for installed in reversed(target.installed)  # the first of a name is in use
    }
    return tuple(packages[name] for name in sorted(packages))


def in_environment(facts: Facts, target: Target, home: str | None = None) -> Facts:
    """Return the `facts` of a machine with the environment of `target`."""
    return facts._replace(
        python=python_of(target, home),
        packages=packages_of(target, home),
        onnxruntime=target.build,
    )


def last_json_line(stdout: str) -> str:
    """Return the last line that is a reply, or an empty text."""
    lines = (line for line in reversed(stdout.splitlines()) if line.startswith('{"version": '))
    return next(lines, "")


def parse_target(stdout: str, interpreter: str) -> Target:
    """Read the reply of `interpreter` in `stdout`, which `describe_target` printed there.

    Other lines are skipped: a `.pth` file of the target may print too.
    Raises Error `python-garbage` (no reply, or a wrong field) and `python-too-old` (below 3.8).
    """

    def garbage(field: str, _problem: Cause) -> Error:
        return Error("python-garbage", path=interpreter, field=field or "no answer")

    try:
        reply = json.loads(last_json_line(stdout))
    except (ValueError, RecursionError):
        raise garbage("", cause("page-not-json")) from None
    return StrictObject(reply, refuse=garbage, closed=False).read(_reply)


def _reply(reply: StrictObject) -> Target:
    version = reply.matching("version", _VERSION, required=True) or ""
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) < OLDEST:
        raise Error("python-too-old", path=reply.text("executable"), version=version)
    target = _read_target(reply)
    distributions = cast("tuple[Installed | str, ...]", target.installed)
    installed = (
        distribution for distribution in distributions if isinstance(distribution, Installed)
    )
    return target._replace(
        installed=tuple(
            package._replace(installer="pixi")
            if (package.installer, target.managed_by) == ("conda", "pixi")
            else package
            for package in installed
        ),
        broken=tuple(
            distribution for distribution in distributions if isinstance(distribution, str)
        ),
    )


def _distribution(distribution: StrictObject) -> Installed | str:
    """Return a distribution, or the metadata path of one without a version."""
    path = distribution.text("path")
    return path if distribution.null("version") else _read_installed(distribution)


_read_installed = record_reader(
    Installed,
    metadata_path=lambda distribution, _: distribution.text("path"),
    missing=lambda distribution, key: distribution.integer_or_none(key) or 0,
    size=lambda distribution, key: distribution.integer_or_none(key) or 0,
)
_read_build = record_reader(
    OnnxRuntime,
    intact=lambda build, key: build.flag(key, required=True),
    provider=lambda *_: None,
)
_read_target = record_reader(
    Target,
    "version",
    "executable",
    "installed",
    kind=lambda reply, _: reply.choice("environment", get_args(Kind)),
    libc=matching(LIBC),
    managed_by=choice_or_none(get_args(Owner)),
    build=lambda reply, _: one_or_none(_read_build)(reply, "onnxruntime"),
    installed=lambda reply, key: reply.tables(key, _distribution),
    broken=lambda *_: (),
)
