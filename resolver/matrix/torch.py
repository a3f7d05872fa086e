"""The rows of torch in the matrix, and their parser.

A build is a release for one CUDA on one platform. PyPI has one build of each release, whose row
comes from its wheels. PyTorch's own index has all of them, a folder for each CUDA; their rows come
from documents.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from packaging.specifiers import SpecifierSet

from ..versions import allows, newest_first, requirement
from .fields import (
    DOTTED,
    FILE,
    NAME,
    PLATFORM,
    PYTHON,
    REQUIREMENT,
    SHA256,
    SIZE,
    TARGET,
    VERSION,
    read_rows,
    row_reader,
)

INDEX = "https://download.pytorch.org/whl"
"""PyTorch's own index: a folder for each CUDA, `cu128`."""
TORCH = "torch"
DOMAIN_LIBRARIES = ("torchaudio", "torchvision")
"""They are built against one release of torch, and are upgraded with it."""
TomlTable = Mapping[str, Any]
"""A table or a row of a parsed TOML file."""


class PypiWheel(NamedTuple):
    """A wheel on PyPI."""

    python: PYTHON
    """Its ABI tag; `py3` where it fits every Python."""
    size: SIZE
    sha256: SHA256
    file: FILE


class PypiRow(NamedTuple):
    """A row `[[torch]]`: the build of a release on PyPI, read from its wheels."""

    version: VERSION
    platform: PLATFORM
    wheels: tuple[PypiWheel, ...]
    cuda: DOTTED | None = None
    sass: tuple[TARGET, ...] = ()
    ptx: tuple[TARGET, ...] = ()
    glibc: DOTTED | None = None
    requires: tuple[REQUIREMENT, ...] = ()


class DocumentedRow(NamedTuple):
    """A row `[[variant]]`: builds of some releases on PyTorch's own index, known from documents."""

    versions: tuple[VERSION, ...]
    local: str
    platform: PLATFORM
    toolkit: VERSION
    sass: tuple[TARGET, ...]
    ptx: tuple[TARGET, ...]
    cudnn: VERSION | None = None
    parts: Mapping[NAME, VERSION] = MappingProxyType({})
    glibc: DOTTED | None = None
    libraries: Literal["required", "inside"] | None = None


class TorchBuild(NamedTuple):
    """A release of torch for one CUDA, on one platform."""

    version: str
    """The release: `2.7.1`."""
    local: str
    """`cu128`; `cpu` where it has no CUDA."""
    platform: str
    cuda: str | None
    """`12.8`; None where it has no CUDA."""
    cudnn: str | None
    """The version of cuDNN that it was built with; None: not known."""
    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    libraries: Literal["required", "inside"] | None
    """Whether it requires NVIDIA's wheels or has the libraries in `torch/lib`."""
    pins: tuple[str, ...]
    """Its requirements on NVIDIA's wheels, as far as the matrix knows those."""
    toolkit: Mapping[str, str]
    """The versions of the toolkit's parts that it was built with, by distribution."""
    glibc: str | None
    pythons: frozenset[str]
    """ABI tags that have a wheel."""
    wheels: tuple[PypiWheel, ...] = ()
    """Those on PyPI; none where only PyTorch's own index has the build."""

    @property
    def name(self) -> str:
        """Return the release and the CUDA: `2.7.1+cu128`."""
        return f"{self.version}+{self.local}"

    @property
    def carried(self) -> Mapping[str, str]:
        """Return the versions of NVIDIA's distributions whose libraries are in `torch/lib`."""
        if self.libraries != "inside":
            return {}
        suffix = f"cu{self.cuda.partition('.')[0]}" if self.cuda else ""
        return {**self.toolkit, **({f"nvidia-cudnn-{suffix}": self.cudnn} if self.cudnn else {})}


class DomainLibrary(NamedTuple):
    """A release of torchvision or torchaudio, with its wheels on PyPI."""

    name: NAME
    version: VERSION
    platform: PLATFORM
    torch: SpecifierSet
    """What it requires of torch."""
    wheels: tuple[PypiWheel, ...]


class TorchTable(NamedTuple):
    """The builds of torch and its domain libraries; empty where no plan needs them."""

    builds: tuple[TorchBuild, ...] = ()
    companions: tuple[DomainLibrary, ...] = ()

    def of(self, platform: str) -> tuple[TorchBuild, ...]:
        """Return the builds for a platform (`linux_x86_64`), the oldest release first."""
        return tuple(build for build in self.builds if build.platform == platform)


Parts = Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]
"""Toolkit release to the versions of its parts, by distribution, and to what it requires of those
that it does not pin."""


_PYPI_ROW, _DOCUMENTED_ROW = row_reader(PypiRow), row_reader(DocumentedRow)
_DOMAIN_LIBRARY = row_reader(DomainLibrary)


def parse(table: TomlTable, toolkits: Parts) -> TorchTable:
    """Return the rows of the parsed `torch.toml`, with the parts of each toolkit release.

    Raises ValueError, KeyError or TypeError where a row does not fit.
    """
    rows = read_rows(table, "torch", _PYPI_ROW)
    on_pypi = {(row.version, row.platform): row for row in rows}
    builds = [_from_wheels(row, toolkits) for row in rows]
    for documented in read_rows(table, "variant", _DOCUMENTED_ROW):
        builds += [
            _from_documents(documented, on_pypi[version, documented.platform], toolkits)
            for version in documented.versions
            if (version, documented.platform) in on_pypi
        ]
    builds.sort(key=lambda build: (newest_first(build.version), build.local))  # PyPI's stay first
    return TorchTable(tuple(builds), read_rows(table, "companion", _DOMAIN_LIBRARY))


def _from_wheels(row: PypiRow, toolkits: Parts) -> TorchBuild:
    """Return the build on PyPI. Its requirements on NVIDIA's wheels show its cuDNN."""
    pins = tuple(_expanded(row.requires, toolkits))
    return TorchBuild(
        version=row.version,
        local=f"cu{row.cuda.replace('.', '')}" if row.cuda else "cpu",
        platform=row.platform,
        cuda=row.cuda,
        cudnn=next((_pinned(line) for line in pins if line.startswith("nvidia-cudnn")), None),
        sass=row.sass,
        ptx=row.ptx,
        libraries="required" if pins else "inside" if row.cuda else None,
        pins=pins,
        toolkit={},
        glibc=row.glibc,
        pythons=frozenset(wheel.python for wheel in row.wheels),
        wheels=row.wheels,
    )


def _from_documents(row: DocumentedRow, alike: PypiRow, toolkits: Parts) -> TorchBuild:
    """Return a build on PyTorch's own index; `alike` is PyPI's of that release and platform.

    It has wheels for the same Pythons, and requires the parts of its toolkit.
    """
    versions, ranges = toolkits.get(row.toolkit, ({}, {}))
    parts = {**versions, **row.parts}
    digits = row.local.removeprefix("cu")
    through = any(line.startswith("cuda-toolkit") for line in alike.requires)
    pins = [
        f"{name}{ranges[name]}" if through and name in ranges else f"{name}=={version}"
        for name, version in sorted(parts.items())
    ]
    pins += [f"nvidia-cudnn-cu{digits[:-1]}=={row.cudnn}"] if row.cudnn else []
    return TorchBuild(
        version=alike.version,
        local=row.local,
        platform=row.platform,
        cuda=f"{digits[:-1]}.{digits[-1]}",
        cudnn=row.cudnn,
        sass=row.sass,
        ptx=row.ptx,
        libraries=row.libraries,
        pins=tuple(pins) if row.libraries == "required" else (),
        toolkit=parts,
        glibc=row.glibc or alike.glibc,
        pythons=frozenset(wheel.python for wheel in alike.wheels),
    )


_EXTRAS = {"cudart": "cuda-runtime", "nvrtc": "cuda-nvrtc"}
"""Extras of `cuda-toolkit` that are not named like the distribution that they require."""


def _expanded(lines: tuple[str, ...], toolkits: Parts) -> Iterator[str]:
    """Yield the requirements on NVIDIA's wheels, with those of `cuda-toolkit[…]` expanded."""
    for line in lines:
        wanted = requirement(line)
        if wanted is None or wanted.name != "cuda-toolkit":
            yield line
            continue
        parts, ranges = next(
            (parts for version, parts in toolkits.items() if allows(wanted.specifier, version)),
            ({}, {}),
        )
        for extra in sorted(wanted.extras):
            name = f"nvidia-{_EXTRAS.get(extra, extra)}"
            if name in parts:
                yield f"{name}{ranges.get(name, f'=={parts[name]}')}"


def _pinned(line: str) -> str | None:
    """Return the version of an exact requirement."""
    wanted = requirement(line)
    specifiers = list(wanted.specifier) if wanted else []
    return specifiers[0].version if specifiers and specifiers[0].operator == "==" else None
