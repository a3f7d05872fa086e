"""The target environment, with its real paths, and the facts of it that may be shared."""

from typing import NamedTuple

from packaging.utils import canonicalize_name

from .model import Architecture, Facts, Interpreter, Kind, OnnxRuntime, Package
from .redact import redact

MACHINES: dict[str, Architecture] = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
}
"""Our names of what operating systems and interpreters call a machine, in lower case."""
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
    """The content of the file INSTALLER: `pip`, `uv`, `conda`."""
    editable: bool = False
    provided: bool = False
    """True for the stand-in that this program installs."""
    missing: int = 0
    """How many shared libraries of an nvidia distribution are missing or replaced."""
    libraries: tuple[str, ...] = ()
    """The paths of the shared libraries of an nvidia distribution, from its folder."""

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
    """PEP 668; never true of a venv, as in pip."""
    pip_version: str | None
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

    @property
    def machine(self) -> Architecture | None:
        """The architecture of the interpreter; None where it is none that we know."""
        return MACHINES.get(self.platform.rpartition("-")[2].lower())

    def holds(self, installed: Installed) -> bool:
        """Tell whether a distribution is in this environment, and not in another on its path."""
        if self.kind == "user" or installed.editable:
            return True
        path = installed.metadata_path
        return any(
            path.startswith(folder) and path[len(folder) : len(folder) + 1] in {"/", "\\"}
            for folder in (self.purelib, self.platlib)
        )

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
