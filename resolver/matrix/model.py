"""The compatibility matrix: the tables of `data/` as frozen rows.

The tables are generated from the wheels themselves (`scripts/refresh_matrix.py`) or curated
with a source on every row; here they only get types, and `matrix_parse` makes them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from .torch import TorchTable


class LibraryNeed(NamedTuple):
    """A library that the CUDA provider of a build links, or loads by name later."""

    library: str
    """Soname or DLL name: `libcudnn.so.9`."""
    how: str
    """`links` or `loads`."""
    distribution: str | None
    """The nvidia distribution that brings it; None for the driver's own."""
    since: str | None
    """The oldest release of that distribution with every symbol that the provider takes."""


class BuildWheel(NamedTuple):
    """The wheel of a build for one Python."""

    python: str
    """The ABI tag: `cp311`, `cp313t`."""
    size: int
    sha256: str
    file: str
    requires: tuple[str, ...]


class Build(NamedTuple):
    """A release of onnxruntime-gpu for one platform: all its wheels share one provider."""

    version: str
    platform: str
    """`linux_x86_64`, `linux_aarch64`, `windows_x86_64`."""
    cuda: str
    """The toolkit release that built it: `12.8`."""
    cudnn: str
    """The major of cuDNN that it uses."""
    needs: tuple[LibraryNeed, ...]
    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    glibc: str | None
    preload_dlls: bool
    wheels: tuple[BuildWheel, ...]
    toolset: str | None = None
    """On Windows the version of the MSVC build tools that linked it: `14.40`."""


class Release(NamedTuple):
    """A release of an nvidia distribution, of numpy or msvc-runtime, for one platform."""

    name: str
    version: str
    platform: str
    python: str | None
    """The ABI tag; None where the wheel fits every Python."""
    glibc: str | None
    size: int
    sha256: str
    file: str
    requires: tuple[str, ...] = ()


class WheelLibraries(NamedTuple):
    """The libraries in some releases of an nvidia distribution."""

    platform: str
    versions: frozenset[str]
    libraries: Mapping[str, str]
    """Soname or DLL name to the path inside the wheel."""
    links: tuple[str, ...]
    loads: tuple[str, ...]


class Code(NamedTuple):
    """The GPU code in a range of releases of an nvidia distribution, both ends included."""

    platform: str
    first: str
    last: str
    sass: tuple[str, ...]
    ptx: tuple[str, ...]


class Distribution(NamedTuple):
    """An nvidia distribution, whole."""

    name: str
    cuda: str
    releases: tuple[Release, ...]
    contents: tuple[WheelLibraries, ...]
    code: tuple[Code, ...]


class ToolkitRelease(NamedTuple):
    """Which component versions belong to a CUDA toolkit release."""

    version: str
    components: Mapping[str, str]


class DriverFloor(NamedTuple):
    """The oldest driver for a CUDA major (floors), or the one a toolkit ships with (toolkits)."""

    cuda: str
    linux: str | None
    windows: str | None


class Limit(NamedTuple):
    """A distribution that breaks onnxruntime-gpu from some version on."""

    onnxruntime: str
    """The specifier of the releases that break: `<1.19`."""
    name: str
    requires: str
    """What they can live with: `<2`."""


class Matrix(NamedTuple):
    """Everything that is known."""

    date: str
    digest: str
    builds: tuple[Build, ...]
    gone: Mapping[str, str]
    """Releases of onnxruntime-gpu that left the index, to who saw them there."""
    distributions: Mapping[str, Distribution]
    toolkits: tuple[ToolkitRelease, ...]
    floors: tuple[DriverFloor, ...]
    toolkit_drivers: tuple[DriverFloor, ...]
    branches: Mapping[int, str]
    """Driver branch to the CUDA that it speaks."""
    numpy: tuple[Release, ...]
    owners: frozenset[str]
    """The distributions that own the folder `onnxruntime`."""
    shared: Mapping[str, tuple[str, ...]]
    """Folders that several distributions own."""
    limits: tuple[Limit, ...]
    providers: Mapping[tuple[str, str], str] = MappingProxyType({})
    """CUDA major and library name to the nvidia distribution that brings it: cuDNN's files are of
    one name for every CUDA."""
    msvc: tuple[Release, ...] = ()
    """The wheels of the Visual C++ runtime, for Windows."""
    modules: Mapping[str, str] = MappingProxyType({})
    """The texts of the modules that travel in a companion, by their names there."""
    torch: TorchTable = TorchTable()
    """Empty until `with_torch` adds it: it is large, and few plans are about torch."""


MSVC_RUNTIME = "msvc-runtime"
