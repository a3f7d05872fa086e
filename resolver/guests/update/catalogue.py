"""Which of NVIDIA's wheels holds a library, and from which release on with what is needed.

That are the symbols which providers take from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...binaries.library_names import is_cuda_library
from .nvidia import DISTRIBUTIONS
from .spread import by_bisection, each

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .nvidia import ReadRelease
    from .onnxruntime import ReadBuild
    from .reader import Reader

WantedSymbols = dict[tuple[str, str], frozenset[str]]
"""(platform, library) to every symbol that some provider takes from it."""


class Catalogue:
    """NVIDIA's releases, asked by library name."""

    def __init__(
        self,
        reader: Reader,
        known: Mapping[str, list[ReadRelease]],
        wanted: WantedSymbols,
        threads: int,
    ) -> None:
        self._reader = reader
        self._known = known
        self._wanted = wanted
        places = [
            (distribution, platform, library)
            for platform, library in sorted(wanted)
            for distribution in sorted(known)
            if self._holding(distribution, platform, library)
        ]
        offers = each(self._offers, places, threads)
        self.exports = dict(zip(places, offers, strict=True))
        """(distribution, platform, library) to pairs of release and the wanted symbols it has."""

    def _holding(self, distribution: str, platform: str, library: str) -> list[ReadRelease]:
        return [
            release
            for release in self._known[distribution]
            if release.wheel.platform == platform and library in release.libraries
        ]

    def _offers(self, place: tuple[str, str, str]) -> list[tuple[str, frozenset[str]]]:
        distribution, platform, library = place
        wanted = self._wanted[platform, library]
        releases = self._holding(distribution, platform, library)

        def offered(release: ReadRelease) -> frozenset[str]:
            exports = self._reader.exports(release.wheel, release.libraries[library])
            return wanted & exports

        versions = [str(release.wheel.version) for release in releases]
        return list(zip(versions, by_bisection(releases, offered), strict=True))

    def provider(
        self, library: str, platform: str, major: str, symbols: frozenset[str]
    ) -> tuple[str, str] | None:
        """Return the distribution that holds a library, and its oldest release with `symbols`.

        None where no distribution of that CUDA major holds it, or none of its releases has all
        the symbols.
        """
        for distribution, cuda in DISTRIBUTIONS.items():
            if cuda != major:
                continue
            offers = self.exports.get((distribution, platform, library))
            if offers is None:
                holding = self._holding(distribution, platform, library)
                offers = [(str(release.wheel.version), frozenset()) for release in holding]
            for version, exported in offers:
                if symbols <= exported:
                    return distribution, version
        return None

    def real(self, distribution: str) -> list[ReadRelease]:
        """Return the releases of a distribution that hold libraries; empty where it has none."""
        return self._known.get(distribution, [])


def taken(build: ReadBuild, library: str) -> frozenset[str]:
    """Return the symbols that a build's provider takes from a CUDA library by linking."""
    return frozenset(build.library.imports.get(library, ()))


def wanted(builds: Sequence[ReadBuild]) -> WantedSymbols:
    """Return for each platform and CUDA library all symbols that some provider takes from it."""
    found: dict[tuple[str, str], set[str]] = {}
    for build in builds:
        for library, names in build.library.imports.items():
            if is_cuda_library(library):
                found.setdefault((build.platform, library), set()).update(names)
    return {place: frozenset(names) for place, names in found.items()}
