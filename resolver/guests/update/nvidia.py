"""NVIDIA's wheels: their libraries and GPU code, and which belong to a release of the toolkit."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from ...binaries import gpu_targets, library_names
from ...evidence.metadata import all_requirements, requirements
from ...evidence.wheels import PLATFORMS, IndexWheel
from .spread import by_bisection, each

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.version import Version

    from .reader import Reader

COMPONENTS = ("cublas", "cuda-nvrtc", "cuda-runtime", "cufft", "curand", "nvjitlink")
"""The parts of a toolkit that onnxruntime or torch use."""
DISTRIBUTIONS = {
    f"nvidia-{component}{suffix}": major
    for major, suffix in (("11", "-cu11"), ("12", "-cu12"), ("13", ""))
    for component in COMPONENTS
    if (component, major) != ("nvjitlink", "11")  # there was none before CUDA 12
} | {f"nvidia-cudnn-cu{major}": major for major in ("11", "12", "13")}
"""Distribution to CUDA major. CUDA 13's wheels lost the suffix; cuDNN's kept it."""

JUDGED = {
    "cudnn": ((r"cudnn_ops(_infer)?", r"cudnn_cnn(_infer)?"), False),
    "cublas": ((r"cublas", r"cublasLt"), False),
    "cufft": ((r"cufft",), True),
    "curand": ((r"curand",), True),
}
"""Which libraries decide what GPUs a component supports, and whether PTX counts.

The first is compiled from sources that serve every GPU alike (pooling, softmax and tensor
operations in cuDNN; BLAS levels 1 and 2 in cuBLAS) and decides by `gpu_targets.supported`. The
others hold kernels picked by hand; they must have machine code for a GPU, or it is left out. PTX
does not count for cuDNN and cuBLAS: NVIDIA's support of a GPU begins with machine code for it.
"""
_FOR_32_BITS = re.compile(r"32_\d+\.dll\Z")
CodeTargets = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRelease:
    """One wheel of a component."""

    wheel: IndexWheel
    size: int
    """Of the wheel, in bytes."""
    requires: tuple[str, ...]
    """Requires-Dist, as written."""
    libraries: dict[str, str]
    """SONAME or DLL name to path inside the wheel."""


def releases(reader: Reader, distribution: str, threads: int) -> list[ReadRelease]:
    """Return the final releases of a distribution that hold libraries, oldest first.

    Of several wheels for one platform the one an installer prefers today: the highest build
    number, then the newest glibc.
    """
    chosen: dict[tuple[str, str], IndexWheel] = {}
    for wheel in reader.wheels(distribution):
        key = (str(wheel.version), wheel.platform)
        if wheel.version.is_prerelease or wheel.platform not in PLATFORMS:
            continue
        if key not in chosen or _preference(wheel) > _preference(chosen[key]):
            chosen[key] = wheel
    wheels = sorted(
        chosen.values(), key=lambda wheel: (wheel.version, PLATFORMS.index(wheel.platform))
    )

    def make(wheel: IndexWheel) -> ReadRelease:
        contents = reader.contents(wheel)
        return ReadRelease(
            wheel=wheel,
            size=contents.size,
            requires=tuple(requirements(contents.metadata)),
            libraries={
                posixpath.basename(path): path
                for path in sorted(contents.members)
                if (path.endswith(".dll") or ".so." in posixpath.basename(path))
                and not _FOR_32_BITS.search(path)
            },
        )

    return [release for release in each(make, wheels, threads) if release.libraries]


def _preference(wheel: IndexWheel) -> tuple[int, tuple[int, ...]]:
    parts = wheel.file.split("-")
    build = int(re.match(r"\d+", parts[2])[0]) if len(parts) == 6 else 0  # type: ignore[index]  # noqa: PLR2004
    return build, tuple(map(int, (wheel.glibc or "0").split(".")))


def component(distribution: str) -> str:
    """Return `cudnn` for `nvidia-cudnn-cu12`, `cuda-runtime` for `nvidia-cuda-runtime`."""
    return re.sub(r"-cu\d+\Z", "", distribution.removeprefix("nvidia-"))


def gpu_code(
    reader: Reader, distribution: str, release: ReadRelease, threads: int = 1
) -> CodeTargets:
    """Return the targets (machine code, PTX) that the judged libraries of a wheel support."""
    patterns, with_ptx = JUDGED[component(distribution)]
    paths = [
        path
        for pattern in patterns
        for name, path in release.libraries.items()
        if re.fullmatch(pattern, library_names.stem(name))
    ]
    judged = each(lambda path: reader.library(release.wheel, path), paths, threads)
    if not judged:
        return (), ()
    sass, ptx = gpu_targets.supported(judged[0].groups, with_ptx=with_ptx)
    return tuple(
        target
        for target in sass
        if all(
            gpu_targets.covers(tuple(library.sass), gpu_targets.parse(target).capability)
            for library in judged[1:]
        )
    ), ptx


def external_uses(
    reader: Reader, members: Sequence[ReadRelease], threads: int = 1
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return for each release what its libraries link and load from outside it (CUDA only).

    The releases must hold the same libraries: each of them is followed by itself.
    """
    own = set(members[0].libraries)
    name = members[0].wheel.file.partition("-")[0].replace("_", "-")
    major = DISTRIBUTIONS.get(name)
    links: list[set[str]] = [set() for _ in members]
    mentions: list[set[str]] = [set() for _ in members]

    def uses_of(library: str) -> list[tuple[set[str], set[str]]]:
        def used(release: ReadRelease) -> tuple[set[str], set[str]]:
            linked, mentioned = reader.uses(release.wheel, release.libraries[library])
            return _outside(linked, own), _outside(library_names.named(mentioned, major), own)

        return by_bisection(members, used)

    for facts in each(uses_of, sorted(own), threads):
        for at, (linked, mentioned) in enumerate(facts):
            links[at] |= linked
            mentions[at] |= mentioned
    return [
        (tuple(sorted(linked)), tuple(sorted(mentioned - linked)))
        for linked, mentioned in zip(links, mentions, strict=True)
    ]


def _outside(libraries: Iterable[str], own: set[str]) -> set[str]:
    return {name for name in libraries if library_names.is_cuda_library(name)} - own


def release_row(release: ReadRelease) -> dict[str, Any]:
    """Return the row of a release in `releases`."""
    row: dict[str, Any] = {
        "version": str(release.wheel.version),
        "platform": release.wheel.platform,
    }
    if release.wheel.glibc:
        row["glibc"] = release.wheel.glibc
    row |= {
        "size": release.size,
        "sha256": release.wheel.sha256,
        "file": release.wheel.file,
    }
    if release.requires:
        row["requires"] = list(release.requires)
    return row


def toolkits(reader: Reader, known: dict[str, list[ReadRelease]]) -> list[dict[str, Any]]:
    """Return a row `[[toolkit]]` for each release of the `cuda-toolkit` metapackage."""
    wheels: dict[Version, IndexWheel] = {}
    for wheel in reader.wheels("cuda-toolkit"):
        if not wheel.version.is_prerelease:
            wheels.setdefault(wheel.version, wheel)
    return [_toolkit(reader, wheels[version], known) for version in sorted(wheels)]


def _toolkit(
    reader: Reader, wheel: IndexWheel, known: dict[str, list[ReadRelease]]
) -> dict[str, Any]:
    components: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    ranges: dict[str, str] = {}
    for line in sorted(set(all_requirements(reader.contents(wheel).metadata))):
        requirement = Requirement(line)
        if component(requirement.name) not in COMPONENTS or requirement.name not in known:
            continue
        fitting = [
            release
            for release in known[requirement.name]
            if requirement.specifier.contains(release.wheel.version)
        ]
        if not fitting:
            missing[requirement.name] = list(PLATFORMS)
            continue
        if not any(spec.operator == "==" for spec in requirement.specifier):
            ranges[requirement.name] = str(requirement.specifier)
        # A few pins are ranges (nvJitLink from 12.8.2 on): a newer toolkit's is not this one's.
        own = [one for one in fitting if one.wheel.version.release[:2] == wheel.version.release[:2]]
        newest = max(release.wheel.version for release in own or fitting)
        components[requirement.name] = str(newest)
        platforms = {r.wheel.platform for r in fitting if r.wheel.version == newest}
        usual = {r.wheel.platform for r in known[requirement.name]}
        lacking = [name for name in PLATFORMS if name in usual - platforms]
        if lacking:
            missing[requirement.name] = lacking
    row: dict[str, Any] = {"version": str(wheel.version), "source": f"{wheel.file} METADATA"}
    row["components"] = dict(sorted(components.items()))
    row |= {"ranges": dict(sorted(ranges.items()))} if ranges else {}
    return row | ({"missing": dict(sorted(missing.items()))} if missing else {})
