"""The target environment: the one value that says where this program works.

`inside_answer` makes it. Its paths are real ones; what goes into a facts file is in
`python_of` and `packages_of`.
"""

from typing import NamedTuple

from packaging.utils import canonicalize_name

from .model import Facts, Interpreter, Kind, OnnxRuntime, Package
from .redact import redact


class Installed(NamedTuple):
    """A distribution that the target sees."""

    name: str
    """As its metadata spell it."""
    version: str
    metadata_path: str
    """Its dist-info or egg-info."""
    requires: tuple[str, ...] = ()
    installer: str | None = None
    """`pip`, `uv`, `conda`; what the file INSTALLER says."""
    editable: bool = False
    provided: bool = False
    """True for the stand-in that this program installs."""
    missing: int = 0
    """How many shared libraries of an nvidia distribution are gone, or are another one's."""

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
    pip_version: str | None
    pth: bool
    """`.pth` files are read: not by an embeddable Python whose `._pth` has no `import site`."""
    libc: str | None
    build: OnnxRuntime | None
    """What is in the shared folder `onnxruntime`; None where there is no such folder."""
    installed: tuple[Installed, ...]
    """In the order of sys.path: of two with one name the first is in use."""
    broken: tuple[str, ...]
    """Metadata folders without name or version, and what pip leaves behind (`~nnxruntime`)."""

    def find(self, name: str) -> Installed | None:
        """Return the distribution of this canonical name that is in use, or None."""
        return next((one for one in self.installed if one.key == name), None)


def python_of(target: Target, home: str | None = None) -> Interpreter:
    """Return what a facts file says of the interpreter; `home` is written as `~`."""
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
    """Return the distributions in use, by name; no path and no token of theirs."""
    packages: dict[str, Package] = {}
    for one in target.installed:
        requires = tuple(redact(line, home) for line in one.requires)
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


def in_environment(facts: Facts, target: Target, home: str | None = None) -> Facts:
    """Return `facts` of a machine with the environment of `target` in the place of its own."""
    return facts._replace(
        python=python_of(target, home),
        packages=packages_of(target, home),
        onnxruntime=target.build,
    )
