"""What is known of a machine; parsers of what `probe` read.

Absent, unreadable and unknown differ: `driver` None is a machine without a driver, `Driver()` one
that is not known, `Driver.error` a driver that cannot be read; a None inside a value is not known.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from ..versions import numbers

GPU_BUILD, CPU_BUILD = "onnxruntime-gpu", "onnxruntime"
"""Two distributions that share one folder and overwrite one another."""
PLUGINS = "onnxruntime-ep-"
"""How the names of distributions with a provider as a plugin begin."""
OWN_ENVIRONMENT = "this program's own"
"""What `sources` says of an environment that nobody named."""
OLDEST = (3, 8)
"""The oldest Python that an environment may have; uv installs into nothing older."""
System = Literal["linux", "windows"]
Architecture = Literal["x86_64", "aarch64"]
Kind = Literal["venv", "conda", "user", "system"]
Owner = Literal[
    "uv",
    "pixi",
    "store",
    "embeddable",
    "pyenv-win",
    "pymanager",
    "python-org-user",
    "python-org-machine",
]
"""Where a Python that is no virtual environment came from."""
OPERATING_SYSTEM = "operating-system"
"""Whose a Python is with a mark of PEP 668 that names nobody."""
Keeper = Literal["conda", "pixi", "editable"]
"""Why this program does not remove a distribution: conda or pixi brought it, or it is the user's
own sources."""
ChangeState = Literal["kept", "changed", "stale", "unfinished"]
"""A change that can be undone, one whose packages were changed since, remains of one that cannot be
undone, and one that was interrupted."""
Unknown = Literal["driver", "gpus", "driver-and-gpus"]
"""What of a machine a plan depends on, and is not known."""
LIBC = re.compile(r"(glibc|musl) \d+(\.\d+)*")
"""How `Platform.libc` is written."""


def is_onnxruntime(name: str) -> bool:
    """Return whether the distribution `name` of a set is the one with the folder `onnxruntime`."""
    return name.startswith(("onnxruntime", "ort-")) and not name.startswith(PLUGINS)


class Platform(NamedTuple):
    """The operating system and what it runs in."""

    system: System
    machine: Architecture
    libc: str | None = None
    """`glibc 2.35`, `musl 1.2.4`; None on Windows, or not known."""
    distribution: str | None = None
    wsl: bool = False
    container: str | None = None
    jetson: str | None = None
    """The first line of /etc/nv_tegra_release where there is one."""

    @property
    def windows_driver(self) -> bool:
        """Return whether NVIDIA's driver is that of Windows, with its release: so in WSL, too.

        Source: https://docs.nvidia.com/cuda/wsl-user-guide/index.html.
        """
        return self.system == "windows" or self.wsl

    @property
    def key(self) -> str:
        """The platform as the matrix names it: `linux_x86_64`."""
        return f"{self.system}_{self.machine}"

    @property
    def name(self) -> str:
        """The platform as `--platform` names it: `linux-x86_64`, `windows`, `windows-arm64`."""
        if self.system == "windows":
            return "windows" if self.machine == "x86_64" else "windows-arm64"
        return f"{self.system}-{self.machine}"

    def is_of(self, name: str) -> bool:
        """Return whether this is `name`: `windows`, `linux`, `linux-aarch64`."""
        return name in {self.system, self.name}

    @property
    def c_library(self) -> tuple[str, tuple[int, ...]] | None:
        """The C library and its version: `("glibc", (2, 35))`; None on Windows, or not known."""
        if self.libc is None:
            return None
        kind, _, version = self.libc.partition(" ")
        return kind, numbers(version)


class Driver(NamedTuple):
    """The NVIDIA driver: its release (535.104.12) and the CUDA that it supports (12.2).

    One of which nothing is known, `Driver()`, may be any, or none.
    """

    version: str | None = None
    cuda: str | None = None
    error: str | None = None
    """Why it cannot be read or used: `version-mismatch: evidence`."""

    @property
    def error_code(self) -> str:
        """The stable code that `error` begins with: `version-mismatch`."""
        return (self.error or "").partition(":")[0]

    @property
    def error_evidence(self) -> str:
        """What `error` says after its code; all of it where a person wrote no code."""
        return re.sub(r"^[a-z0-9-]+: ", "", self.error or "")  # no address: `https://…`


class Gpu(NamedTuple):
    """A GPU; the memory in MiB."""

    name: str | None = None
    compute_capability: str | None = None
    memory_mib: int | None = None


class Toolkit(NamedTuple):
    """A CUDA toolkit on this machine."""

    version: str | None = None
    path: str | None = None


class Library(NamedTuple):
    """A shared library that the loader would find by this name."""

    name: str
    path: str | None = None
    version: str | None = None


class Interpreter(NamedTuple):
    """The target Python."""

    version: str
    implementation: str = "cpython"
    free_threaded: bool = False
    executable: str | None = None
    environment: Kind | None = None
    externally_managed: bool = False
    managed_by: Owner | None = None
    read_only: bool = False
    """This user cannot write to the folder of its packages."""
    autoload: bool | None = None
    """Its `.pth` files are read, so that a companion can load libraries for an unchanged
    application; None where that is not known, as in a file written by hand."""
    project: str | None = None
    """The tool that makes the environment: from its lock `uv`, `poetry`, `pdm`, `pixi`, from an
    environment.yml `conda`, or for one program `uv-tool`, `pipx`."""
    locked: str | None = None
    """The release of onnxruntime-gpu in that lock, or the receipt of `uv tool`; None: none."""
    shadow: str | None = None
    """The file that `import onnxruntime` takes in place of the environment's."""
    command: str | None = None
    """The program that PATH has in place of one of the environment's that use onnxruntime."""
    moved_from: str | None = None
    """The folder that a virtual environment was made in, where it lies elsewhere now."""
    change: ChangeState | None = None
    """The undo data of this program in the environment."""
    change_size: int = 0
    """The bytes of the undo data."""


class Provider(NamedTuple):
    """What the CUDA provider of an installed onnxruntime, or of a plugin, says of itself."""

    links: tuple[str, ...] = ()
    """The CUDA libraries that it links; none where the build has no CUDA provider."""
    names: tuple[str, ...] = ()
    """The other CUDA libraries whose names it holds: some of them it loads later."""
    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    toolset: str | None = None
    """On Windows the version of the MSVC build tools that linked it."""
    preload_dlls: bool = False


class Package(NamedTuple):
    """An installed distribution; `name` is canonical (PEP 503)."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    provided: bool = False
    """True for the placeholder that this program installs."""
    intact: bool = True
    """False where files that it lists are missing."""
    libraries: tuple[str, ...] = ()
    """The paths of its shared libraries, from the folder that it is installed in: of NVIDIA's
    releases that the matrix does not hold, and of torch on Windows."""
    outside: bool = False
    """In a folder that the environment reads and does not own: the base Python's, the user's."""
    held: Keeper | None = None
    local: bool = False
    """It is the user's own sources: a directory of that machine."""
    provider: Provider | None = None
    """Of a plugin of onnxruntime whose libraries are not known; None: none, or not readable."""
    size: int = 0
    """The bytes of its files: of NVIDIA's; 0: not known."""
    requested: bool = False
    """The user asked pip for it by name: of NVIDIA's. uv marks all that it installs so."""

    @property
    def key(self) -> str:
        """The canonical name, as `Installed` has it."""
        return self.name

    @property
    def removal_blocker(self) -> Keeper | None:
        """Why this program does not remove it; facts files call it `held`."""
        return self.held


class OnnxRuntime(NamedTuple):
    """The build whose files are in the shared folder `onnxruntime`."""

    distribution: str | None = None
    version: str | None = None
    cuda: str | None = None
    intact: bool = True
    provider: Provider | None = None
    """Read where the matrix does not hold this build; None: not read, or not readable."""


class Facts(NamedTuple):
    """What a plan is made from, beside the matrix and the options."""

    platform: Platform
    driver: Driver | None
    gpus: tuple[Gpu, ...] | None
    python: Interpreter
    packages: tuple[Package, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()
    libraries: tuple[Library, ...] = ()
    onnxruntime: OnnxRuntime | None = None
    environment: Mapping[str, str] = MappingProxyType({})
    sources: Mapping[str, str] = MappingProxyType({})
    """The source of a fact: `{"driver.cuda": "libcuda", "gpus": "nvml"}`."""

    @property
    def unknown(self) -> Unknown | None:
        """What a plan depends on and is not known of the machine; None: all of it is.

        A machine that is known to have no driver, or no GPU, has no use for the other one; a driver
        that cannot be read is known to be there.
        """
        if self.driver is None or self.driver.error is not None or self.gpus == ():
            return None
        driver, gpus = self.driver == Driver(), self.gpus is None
        if driver and gpus:
            return "driver-and-gpus"
        return "driver" if driver else "gpus" if gpus else None

    def package(self, name: str) -> Package | None:
        """Return the installed distribution of this canonical name, or None."""
        for package in self.packages:  # half the time of a generator, and asked thousands of times
            if package.name == name:
                return package
        return None


TEXT = "text, line"
"""How the value of `sources` begins for a fact that an output in a text shows."""
PACKAGE_FILES = "packages.files"
"""The key of `sources` that is there where nobody looked: that the files of the packages are there,
and no others, is assumed."""
OTHER_PACKAGES = "packages.others"
"""The key of `sources` that is there where nothing lists what is installed: that there are no other
packages than those named is assumed."""
EXPECTED_PLATFORM = "platform.expected"
"""The key of `sources` that says which system the driver's release, or a GPU, is of: `windows`,
`linux`, `linux-aarch64`."""
LIBRARIES_SEARCHED = "libraries"
"""The key of `sources` that says that the list of libraries is complete."""
