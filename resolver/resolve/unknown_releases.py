"""Installed releases that the matrix does not hold: newer ones, private builds, deleted ones.

Each is added to the matrix of its machine as a row of its own, so that every rule judges it like
any other. The row says what was read of it: file names, metadata, its own CUDA provider. The rest
is as in the nearest release of the same line that the matrix holds. No index is known to have it,
so it is kept or replaced, and never installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..binaries.library_names import DRIVER
from ..facts.model import GPU_BUILD, Facts, Package, Provider
from ..facts.wheel_tags import abi
from ..matrix.model import (
    INSTALLED,
    Build,
    BuildWheel,
    Distribution,
    LibraryNeed,
    Matrix,
    Plugin,
    PluginWheel,
    Release,
    ToolkitRelease,
    WheelLibraries,
    libraries_of,
    row_of,
)
from ..matrix.torch import TORCH
from ..versions import at_least, major, newest_first, numbers
from .onnxruntime_installed import InstalledOnnxRuntime, find_onnxruntime, with_installed_owners
from .options import PlanOptions

_CUDNN = re.compile(r"(?:lib)?cudnn(?:\.so\.|64_)(\d+)")
_MAJOR_IN_NAME = re.compile(r"(?:libcudart\.so\.|libcublas\.so\.|cudart64_|cublas64_)(\d{2})")


class UnknownRelease(NamedTuple):
    """An installed release that the matrix does not hold."""

    name: str
    version: str
    like: str | None
    """The release that it is taken to be like where it was not read; None: there is none."""


def is_unknown(package: Package, matrix: Matrix, platform: str) -> bool:
    """Return whether `package` is an NVIDIA distribution of a release that the matrix lacks."""
    distribution = matrix.distributions.get(package.name)
    return distribution is not None and not any(
        release.version == package.version and release.platform == platform
        for release in distribution.releases
    )


def without_known_files(facts: Facts, matrix: Matrix) -> tuple[Package, ...]:
    """Return the packages of `facts`, with libraries only where the matrix lacks the release.

    And those of torch, which may have been trimmed.
    """
    platform = facts.platform.key
    return tuple(
        package
        if package.name == TORCH or is_unknown(package, matrix, platform)
        else package._replace(libraries=())
        for package in facts.packages
    )


def is_unknown_build(facts: Facts, matrix: Matrix) -> bool:
    """Return whether the installed onnxruntime-gpu is a build that the matrix lacks.

    It is another release, or one for another CUDA major under a number of PyPI's; where its
    provider was read, also one for a Python that PyPI has no wheel for.
    """
    package, folder = facts.package(GPU_BUILD), facts.onnxruntime
    if package is None or folder is None:
        return False
    platform, tag = _place(facts)
    # Facts written by hand may name a Python that the release was never made for.
    read = folder.provider is not None
    return not any(
        build.version == package.version
        and build.platform == platform
        and (not read or any(wheel.python == tag for wheel in build.wheels))
        and is_same_major(build.cuda, folder.cuda)
        for build in matrix.builds
    )


def with_installed_releases(
    facts: Facts, matrix: Matrix, options: PlanOptions
) -> tuple[Matrix, tuple[UnknownRelease, ...]]:
    """Return `matrix` with a row for each installed release that it lacks, and those releases.

    What provides the GPU in place of onnxruntime-gpu is one of them.
    """
    matrix = with_installed_owners(facts, matrix)
    platform, _ = _place(facts)
    unknown: list[UnknownRelease] = []
    distributions = dict(matrix.distributions)
    providers = dict(matrix.providers)
    for package in sorted(facts.packages, key=lambda package: package.name):
        if not package.intact or not is_unknown(package, matrix, platform):
            continue
        known = matrix.distributions[package.name]
        like = nearest_release(package.version, known, platform)
        added = _with_release(known, package, platform, like)
        distributions[package.name] = added
        for library in added.contents[0].libraries if added.contents else ():
            providers.setdefault((known.cuda, library), package.name)
        unknown.append(
            UnknownRelease(package.name, package.version, like and f"{like.name} {like.version}")
        )
    matrix = matrix._replace(distributions=distributions, providers=providers)
    installed = find_onnxruntime(facts, matrix, options)
    if installed and (installed.package.name != GPU_BUILD or is_unknown_build(facts, matrix)):
        return _with_build(installed, facts, matrix, unknown)
    return matrix, tuple(unknown)


def _place(facts: Facts) -> tuple[str, str]:
    """Return the platform of the matrix and the ABI tag of the target."""
    python = facts.python
    tag = abi(python.version, free_threaded=python.free_threaded)
    return facts.platform.key, tag


def is_same_major(known: str, installed: str | None) -> bool:
    """Return whether a build for the CUDA `known` may be one that says `installed` (or None)."""
    return numbers(installed or "")[:1] in {(), numbers(known)[:1]}


def nearest_release(text: str, known: Distribution, platform: str) -> Release | None:
    """Return the newest release of the same major that is not newer, else the oldest of it."""
    line = [
        release
        for release in known.releases
        if release.platform == platform and major(release.version) == major(text)
    ]
    line.sort(key=lambda release: newest_first(release.version))
    oldest = line[0] if line else None
    return next((release for release in reversed(line) if at_least(text, release.version)), oldest)


def _with_release(
    known: Distribution, package: Package, platform: str, like: Release | None
) -> Distribution:
    release = Release(
        name=package.name,
        version=package.version,
        platform=platform,
        python=None,
        glibc=None,
        size=0,
        sha256="",
        file="",
        requires=package.requires or (like.requires if like else ()),
        index_url=INSTALLED,
    )
    contents = libraries_of(known, like) if like else None
    if package.libraries:
        contents = WheelLibraries(
            platform=platform,
            versions=frozenset({package.version}),
            libraries={path.rpartition("/")[2]: path for path in package.libraries},
            links=contents.links if contents else (),
            loads=contents.loads if contents else (),
        )
    elif contents is not None:
        contents = contents._replace(versions=frozenset({package.version}))
    code = row_of(known.code, release) or (row_of(known.code, like) if like else None)
    return known._replace(
        releases=(*known.releases, release),
        contents=(contents, *known.contents) if contents else known.contents,
        code=(code._replace(first=release.version, last=release.version), *known.code)
        if code
        else known.code,
    )


def _with_build(
    installed: InstalledOnnxRuntime, facts: Facts, matrix: Matrix, unknown: Iterable[UnknownRelease]
) -> tuple[Matrix, tuple[UnknownRelease, ...]]:
    """Add the installed build, where it is whole and alone in its folder."""
    package, provider, row = installed.package, installed.provider, installed.row
    packed = installed.plugin and _wheel_of(installed.plugin, facts, matrix)
    cuda = packed.cuda if packed else row.cuda if row else _cuda_of(installed)
    like = _nearest_build(package.version, cuda, matrix, _place(facts)[0])
    if installed.like != package.version and (row is None or not row.sass):
        named = installed.plugin or package
        taken = like and f"{GPU_BUILD} {like.version}"
        taken = f"{package.name} {installed.like}" if installed.like else taken
        unknown = (*unknown, UnknownRelease(named.name, named.version, taken))
    complete = package.name != GPU_BUILD or _is_complete(facts, package, matrix)
    if not complete or (like is None and provider is None):
        return matrix, tuple(unknown)
    build = _build(installed, cuda or "", like, facts, matrix)
    toolkits = matrix.toolkits
    if not any(_serves(toolkit, build.cuda) for toolkit in toolkits):
        toolkits = (*toolkits, ToolkitRelease(version=build.cuda, components={}))
    return matrix._replace(builds=(build, *matrix.builds), toolkits=toolkits), tuple(unknown)


def _wheel_of(plugin: Package, facts: Facts, matrix: Matrix) -> PluginWheel | None:
    """Return the wheel of this plugin that the matrix holds for this platform, the last one."""
    place = plugin.name, facts.platform.key
    wheels = (wheel for wheel in matrix.plugin_wheels if (wheel.name, wheel.platform) == place)
    return next(wheels, None)


def _is_complete(facts: Facts, package: Package, matrix: Matrix) -> bool:
    folder = facts.onnxruntime
    others = [
        other
        for other in facts.packages
        if other.name in matrix.owners and other.name != GPU_BUILD and not other.provided
    ]
    return (
        not others
        and folder is not None
        and folder.intact
        and folder.distribution in {None, GPU_BUILD}
        and folder.version in {None, package.version}
        and (folder.provider is None or bool(folder.provider.links))
    )


def _serves(toolkit: ToolkitRelease, cuda: str) -> bool:
    built, release = numbers(cuda)[:2], numbers(toolkit.version)
    return release[:1] == built[:1] and release >= built


def _cuda_of(installed: InstalledOnnxRuntime) -> str | None:
    """Return the CUDA of the build: what it says, or the major in the names that it links."""
    if installed.cuda is not None and numbers(installed.cuda):
        return installed.cuda
    links = installed.provider.links if installed.provider else ()
    return next((found[1] for name in links if (found := _MAJOR_IN_NAME.match(name))), None)


def _nearest_build(text: str, cuda: str | None, matrix: Matrix, platform: str) -> Build | None:
    """Return the newest build that is not newer; of a known CUDA major else the oldest of it."""
    line = [
        build
        for build in matrix.builds
        if build.platform == platform and (cuda is None or major(build.cuda) == major(cuda))
    ]
    line.sort(key=lambda build: newest_first(build.version))
    oldest = line[0] if line and cuda is not None else None
    return next((build for build in reversed(line) if at_least(text, build.version)), oldest)


def _build(
    installed: InstalledOnnxRuntime, cuda: str, like: Build | None, facts: Facts, matrix: Matrix
) -> Build:
    platform, tag = _place(facts)
    package, provider, row = installed.package, installed.provider, installed.row
    source = provider or like
    assert source is not None  # noqa: S101 - `_with_build` has seen one
    cuda = cuda if "." in cuda else like.cuda if like else f"{cuda}.0"
    known = row if row is not None and row.sass else None
    if provider is None and known:  # it brings what it needs, or most of it
        packed = _wheel_of(installed.plugin, facts, matrix) if installed.plugin else None
        provider = Provider(links=packed.needs if packed else ())
    needs = like.needs if like else ()
    code: Provider | Build | Plugin | None = known or like
    if provider is not None:
        needs = tuple(_needs(provider, cuda, needs, facts, matrix))
        code = provider if provider.sass or provider.ptx else code
    cudnn = (found[1] for need in needs if (found := _CUDNN.match(need.library)))
    requires = package.requires
    if not requires and like and package.name == GPU_BUILD:
        requires = like.wheels[-1].requires
    wheel = BuildWheel(python=tag, size=0, sha256="", file="", requires=requires)
    return Build(
        version=package.version,
        platform=platform,
        cuda=cuda,
        cudnn=next(cudnn, like.cudnn if like and not known else ""),
        needs=needs,
        sass=code.sass if code else (),
        ptx=code.ptx if code else (),
        glibc=None,
        preload_dlls=source.preload_dlls,
        wheels=(wheel,),
        toolset=source.toolset,
        index_url=INSTALLED,
    )


def _needs(
    provider: Provider, cuda: str, known: Iterable[LibraryNeed], facts: Facts, matrix: Matrix
) -> Iterator[LibraryNeed]:
    """Yield what the provider links, and what it loads: of the names in it those of its CUDA.

    The wheels that are installed may hold libraries that no wheel of the matrix has.
    """
    since = {need.library: need.since for need in known}
    installed = {
        path.rpartition("/")[2]: package.name
        for package in facts.packages
        for path in package.libraries
        if package.name in matrix.distributions
    }
    for how, names in (("links", provider.links), ("loads", provider.names)):
        for library in names:
            holder = matrix.providers.get((major(cuda), library)) or installed.get(library)
            if how == "links" or library in DRIVER or holder is not None:
                yield LibraryNeed(
                    library=library, how=how, distribution=holder, since=since.get(library)
                )
