"""The compatibility matrix: its rows, as `fields` reads them from the tables of `data/`.

`scripts/refresh_matrix.py` generates the tables from the wheels themselves, or they are curated
with a source on every row.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from packaging.specifiers import SpecifierSet

from ..versions import at_least
from .applications import Application
from .fields import (
    DOTTED,
    FILE,
    HOW,
    INDEX,
    LIBRARY,
    MAJOR,
    NAME,
    PATH,
    PLATFORM,
    PROVIDER,
    PYTHON,
    REQUIREMENT,
    SHA256,
    SIZE,
    TARGET,
    TEXT,
    VERSION,
)
from .torch import TorchTable

DEFAULT_INDEX = "pypi"
"""The index of a release that the user's default index has."""
INSTALLED = "installed"
"""The index of a release that is installed and that the matrix does not hold: none is known."""
IN_TORCH = "torch"
"""The index of a release whose libraries torch brings in its own directory: no wheel is needed."""


class LibraryNeed(NamedTuple):
    """A library that the CUDA provider of a build links, or loads by name later."""

    library: LIBRARY
    """Soname or DLL name: `libcudnn.so.9`."""
    how: HOW
    distribution: NAME | None
    """The nvidia distribution that contains it; None for the driver's own."""
    since: VERSION | None
    """The oldest release of that distribution with every symbol that the provider imports."""


class BuildWheel(NamedTuple):
    """The wheel of a build for one Python."""

    python: PYTHON
    """The ABI tag: `cp311`, `cp313t`."""
    size: SIZE
    sha256: SHA256
    file: FILE
    requires: tuple[REQUIREMENT, ...]


class PluginWheel(NamedTuple):
    """A wheel with an execution provider that onnxruntime registers."""

    name: NAME
    version: VERSION
    platform: PLATFORM
    glibc: DOTTED | None
    size: SIZE
    sha256: SHA256
    file: FILE
    provider: PROVIDER
    """`NvTensorRTRTXExecutionProvider`."""
    cuda: DOTTED
    """The release of the CUDA runtime that it brings, `12.9`; of the major that it links, `12.0`,
    where no name says more."""
    onnxruntime: SpecifierSet
    """The releases that it says it works with."""
    needs: tuple[LIBRARY, ...]
    """The CUDA libraries that it links and that are not in the wheel under that name."""
    sass: tuple[TARGET, ...]
    ptx: tuple[TARGET, ...]
    toolset: DOTTED | None = None
    """On Windows the version of the MSVC build tools that linked it: `14.44`."""
    capabilities: tuple[SpecifierSet, ...] = ()
    """The GPUs that its provider takes, by compute capability: one has to fit. Empty: it names
    none."""


class Build(NamedTuple):
    """A release of onnxruntime-gpu for one platform; all its wheels have the same provider."""

    version: VERSION
    platform: PLATFORM
    """`linux_x86_64`, `linux_aarch64`, `windows_x86_64`."""
    cuda: DOTTED
    """The release of the toolkit that it was built with: `12.8`."""
    cudnn: MAJOR
    """The major version of cuDNN."""
    needs: tuple[LibraryNeed, ...]
    sass: tuple[TARGET, ...]
    ptx: tuple[TARGET, ...]
    glibc: DOTTED | None
    preload_dlls: bool
    wheels: tuple[BuildWheel, ...]
    toolset: DOTTED | None = None
    """On Windows the version of the MSVC build tools that linked it: `14.40`."""
    index_url: INDEX = DEFAULT_INDEX
    requires: tuple[REQUIREMENT, ...] = ()
    """Of its wheels, but for those that say other."""
    partial: tuple[TARGET, ...] = ()
    """GPUs that some of the operators have machine code for."""
    cuda_source: TEXT = "?"
    """What says which toolkit it was built with."""
    tensorrt: LIBRARY | None = None
    """The library of TensorRT that its TensorRT provider links or loads: `libnvinfer.so.10`; None
    where it has no such provider, or the provider names none."""
    plugin: PluginWheel | None = None
    """What gives a plain onnxruntime the GPU; None: the build is onnxruntime-gpu."""


class Release(NamedTuple):
    """A release of an nvidia distribution, of numpy or msvc-runtime, for one platform."""

    name: NAME
    version: VERSION
    platform: PLATFORM
    python: PYTHON | None
    """The ABI tag; None where the wheel fits every Python."""
    glibc: DOTTED | None
    size: SIZE
    sha256: SHA256
    file: FILE
    requires: tuple[REQUIREMENT, ...] = ()
    index_url: INDEX = DEFAULT_INDEX


class WheelLibraries(NamedTuple):
    """The libraries in some releases of an nvidia distribution."""

    platform: PLATFORM
    versions: frozenset[VERSION]
    libraries: Mapping[LIBRARY, PATH]
    """Soname or DLL name to the path inside the wheel."""
    links: tuple[LIBRARY, ...] = ()
    loads: tuple[LIBRARY, ...] = ()


class Code(NamedTuple):
    """The GPU code in a range of releases of an nvidia distribution, both ends included."""

    platform: PLATFORM
    first: VERSION
    last: VERSION
    sass: tuple[TARGET, ...]
    ptx: tuple[TARGET, ...]


class Floors(NamedTuple):
    """What was read of a range of releases, both ends included, beside what they link."""

    name: NAME
    platform: PLATFORM
    first: VERSION
    last: VERSION
    needs: Mapping[NAME, VERSION]
    """By distribution: its oldest release with every symbol that these take, where that is not the
    oldest of all."""
    targets: tuple[TARGET, ...] = ()
    """Of a compiler (NVRTC, nvJitLink): the compute capabilities that it compiles for."""


Ranged = TypeVar("Ranged", Code, Floors)


class Distribution(NamedTuple):
    """An nvidia distribution."""

    name: NAME
    cuda: MAJOR
    releases: tuple[Release, ...]
    contents: tuple[WheelLibraries, ...] = ()
    code: tuple[Code, ...] = ()


class ToolkitRelease(NamedTuple):
    """Which component versions belong to a CUDA toolkit release."""

    version: VERSION
    components: Mapping[NAME, VERSION]
    ranges: Mapping[NAME, TEXT] = MappingProxyType({})
    """What the toolkit requires of a component where that is a range: `>=13.0.88,<14`."""


class DriverFloor(NamedTuple):
    """The oldest driver for a CUDA major (floors), or the driver of a toolkit (toolkits)."""

    cuda: str
    linux: str | None
    windows: str | None


class LastBranch(NamedTuple):
    """The last driver branch that runs the GPUs below a compute capability."""

    below: str
    branch: int


class FirstBranch(NamedTuple):
    """The first driver branch that runs the GPUs of a compute capability and above."""

    capability: str
    branch: int


class ForwardCompatibility(NamedTuple):
    """A package with a newer driver library, for data-centre GPUs on Linux."""

    package: str
    """`cuda-compat-13-0`."""
    cuda: str
    """The CUDA that its library speaks: `13.0`."""
    branches: tuple[int, ...]
    """The driver branches that it works with."""


class Limit(NamedTuple):
    """A distribution that breaks onnxruntime-gpu from some version on."""

    onnxruntime: str
    """The specifier of the releases that break: `<1.19`."""
    name: str
    requires: str
    """The versions of the distribution that they support: `<2`."""


class Defect(NamedTuple):
    """Releases of nvidia distributions that are known to be wrong."""

    names: tuple[str, ...]
    versions: SpecifierSet
    beside: Mapping[str, SpecifierSet] = MappingProxyType({})
    """The distributions, and their versions, with one of which alone they are wrong."""


class ConsumerRow(NamedTuple):
    """What a range of releases of a distribution, both ends included, needs of CUDA's libraries."""

    name: str
    platform: str
    first: str
    last: str
    cuda: str | None
    """The CUDA major; None: none, or several."""
    cudnn: str | None
    """The cuDNN major."""
    needs: tuple[str, ...]
    """The libraries that it links or loads and does not contain; empty: it does not use CUDA."""


class AddedRows(NamedTuple):
    """What `matrix --update` added to the shipped matrix."""

    read: str
    """The day on which the index was read; the hashes are those that it gave then."""
    index_url: str
    releases: tuple[str, ...]
    """`onnxruntime-gpu 1.32.0`."""
    alone: bool = False
    """They come from that index and from no other: it has builds that the default one lacks."""


class Plugin(NamedTuple):
    """An execution provider that comes as a distribution beside onnxruntime."""

    provider: str
    """`NvTensorRTRTXExecutionProvider`."""
    cuda: str
    """The CUDA major of its libraries."""
    sass: tuple[str, ...] = ()
    """The GPUs that it runs on, where its libraries are in the wheel; else empty."""
    ptx: tuple[str, ...] = ()


class TensorrtLibraries(NamedTuple):
    """A distribution with TensorRT's libraries, by its documents: nobody read its wheels."""

    name: NAME
    cuda: MAJOR
    """Of the builds that it is for."""
    version: VERSION
    platforms: tuple[PLATFORM, ...]
    capability: TARGET
    """The oldest GPU that it supports: `7.5`."""
    glibc: DOTTED


class OtherBuild(NamedTuple):
    """A build of onnxruntime with a CUDA provider and a name of its own, as its wheel says."""

    name: NAME
    version: VERSION
    platform: PLATFORM
    cuda: str
    links: tuple[str, ...]
    """The CUDA libraries that its provider links."""
    sass: tuple[TARGET, ...]
    ptx: tuple[TARGET, ...]


class Feed(NamedTuple):
    """An index of Microsoft's with builds of onnxruntime-gpu for another CUDA major than PyPI's."""

    cuda: str
    url: str
    first: VERSION
    """The oldest release that it is known to have."""
    platforms: tuple[PLATFORM, ...]


class CondaBuild(NamedTuple):
    """A build of onnxruntime with CUDA on conda-forge, for a platform that has none on PyPI."""

    platform: PLATFORM
    cuda: str
    """The CUDA major that the driver has."""
    version: VERSION
    build: str
    """How the build string ends: `cuda129`."""
    capability: DOTTED
    """The oldest GPU that it has code for."""


class Matrix(NamedTuple):
    """The compatibility matrix."""

    date: str
    digest: str
    builds: tuple[Build, ...]
    gone: Mapping[str, str]
    """Releases of onnxruntime-gpu that were deleted from the index, and the source for that."""
    distributions: Mapping[str, Distribution]
    toolkits: tuple[ToolkitRelease, ...]
    floors: tuple[DriverFloor, ...]
    toolkit_drivers: tuple[DriverFloor, ...]
    branches: Mapping[int, str]
    """Driver branch to the newest CUDA that it supports."""
    numpy: tuple[Release, ...]
    owners: frozenset[str]
    """The distributions that own the folder `onnxruntime`."""
    shared: Mapping[str, tuple[str, ...]]
    """Folders that several distributions own."""
    limits: tuple[Limit, ...]
    providers: Mapping[tuple[str, str], str] = MappingProxyType({})
    """CUDA major and library name to the nvidia distribution: cuDNN's files have the same names for
    every CUDA."""
    msvc: tuple[Release, ...] = ()
    """The wheels of the Visual C++ runtime, for Windows."""
    modules: Mapping[str, str] = MappingProxyType({})
    """The texts of the modules in a companion, by their names."""
    last_branches: tuple[LastBranch, ...] = ()
    """The oldest GPUs first."""
    first_branches: tuple[FirstBranch, ...] = ()
    forward: tuple[ForwardCompatibility, ...] = ()
    """The oldest CUDA first."""
    data_center: frozenset[str] = frozenset()
    """The names of GPUs for data centres."""
    own_providers: Mapping[str, str] = MappingProxyType({})
    """By other builds of onnxruntime: the execution provider that is removed with them."""
    plugin_since: Mapping[str, str] = MappingProxyType({})
    """By other builds of onnxruntime: the first release that is a plugin in a folder of its own."""
    training: frozenset[str] = frozenset()
    """The builds of onnxruntime with the training API."""
    other_builds: tuple[OtherBuild, ...] = ()
    plugins: Mapping[str, Plugin] = MappingProxyType({})
    """By distribution: the execution providers that come beside onnxruntime."""
    plugin_wheels: tuple[PluginWheel, ...] = ()
    onnxruntime: tuple[Release, ...] = ()
    """The wheels of the plain onnxruntime that plugins are registered in."""
    tensorrt: tuple[TensorrtLibraries, ...] = ()
    defects: tuple[Defect, ...] = ()
    read: Mapping[str, tuple[Floors, ...]] = MappingProxyType({})
    """By distribution, onnxruntime-gpu too: what was read of its releases."""
    consumers: Mapping[str, tuple[ConsumerRow, ...]] = MappingProxyType({})
    """By distribution: what others that use CUDA need of its libraries."""
    applications: Mapping[str, tuple[Application, ...]] = MappingProxyType({})
    """By distribution: how it asks for the GPU."""
    added: tuple[AddedRows, ...] = ()
    feeds: tuple[Feed, ...] = ()
    conda_builds: tuple[CondaBuild, ...] = ()
    torch: TorchTable = TorchTable()
    """Empty until `with_torch` adds it: it is large, and few plans need it."""

    def builds_of(self, version: str, platforms: Collection[str]) -> list[Build]:
        """Return the builds of a version for these platforms."""
        return [
            build
            for build in self.builds
            if build.version == version and build.platform in platforms
        ]


MSVC_RUNTIME = "msvc-runtime"


def libraries_of(distribution: Distribution, release: Release) -> WheelLibraries | None:
    """Return the libraries in `release`, or None where the matrix does not know them."""
    for row in distribution.contents:
        if row.platform == release.platform and release.version in row.versions:
            return row
    return None


def row_of(rows: Iterable[Ranged], release: Release | Build) -> Ranged | None:
    """Return the row whose range of releases has `release`; None where none has."""
    for row in rows:
        covered = at_least(release.version, row.first) and at_least(row.last, release.version)
        if row.platform == release.platform and covered:
            return row
    return None
