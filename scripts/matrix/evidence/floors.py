"""`data/floors.toml`: what releases take of each other, as the oldest releases that have it.

A symbol that a library names is one that it links or asks for by name. It counts where some release
of another distribution exports it. NVRTC and nvJitLink compile for the GPUs that they name.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ortgpu_fix.binaries.library_names import PROVIDER
from ortgpu_fix.evidence.wheels import EvidenceError
from ortgpu_fix.guests.update import nvidia
from ortgpu_fix.guests.update.spread import by_bisection, each
from ortgpu_fix.utils.toml_writer import Value, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ortgpu_fix.evidence.wheels import IndexWheel
    from ortgpu_fix.guests.update.nvidia import ReadRelease
    from ortgpu_fix.guests.update.onnxruntime import ReadBuild
    from ortgpu_fix.guests.update.reader import Reader

PLATFORMS = ("linux_x86_64",)
"""Those that were read; on others `--prefer small` takes the usual wheels."""
MAJORS = ("12", "13")
"""The CUDA majors that were read."""
COMPILERS = ("cuda-nvrtc", "nvjitlink")
_APART = re.compile(r"nvblas|nvrtc-builtins|\.alt\.")
"""Libraries that nobody loads by these names: for Fortran, of NVRTC itself, and its other build."""
_COMPUTE = re.compile(rb"compute_\d{2,3}(?=\0)")


class _Read(NamedTuple):
    """A release on one platform."""

    name: str
    version: str
    cuda: str
    wheel: IndexWheel
    libraries: tuple[str, ...]
    """Paths in the wheel."""
    offering: tuple[str, ...]
    """The paths of those that others name: of cuDNN one, which hands on to its other parts."""


class _Offer(NamedTuple):
    """What a release exports."""

    release: _Read
    symbols: frozenset[str]


_Facts = tuple[dict[str, str], tuple[str, ...]]
"""The oldest releases that are needed of others, and the GPUs that are compiled for."""


def tables(
    reader: Reader, known: dict[str, list[ReadRelease]], builds: Sequence[ReadBuild], threads: int
) -> list[str]:
    """Return the `[[floor]]` tables: equal neighbours share one."""
    rows = (
        row
        for platform in PLATFORMS
        for row in _rows_of(
            platform,
            reader,
            {
                name: _read(name, known[name], builds, platform)
                for name in sorted(known)
                if nvidia.DISTRIBUTIONS[name] in MAJORS
            },
            [
                _provider(build)
                for build in builds
                if build.platform == platform and build.major in MAJORS
            ],
            threads,
        )
    )
    return [table("floor", row) for row in rows]


def _rows_of(
    platform: str,
    reader: Reader,
    read: dict[str, list[_Read]],
    providers: list[_Read],
    threads: int,
) -> Iterator[dict[str, Value]]:
    offers = {name: _offers(reader, releases, threads) for name, releases in read.items()}

    def facts(one: _Read) -> _Facts:
        others = [rows for name, rows in offers.items() if name != one.name]
        others = [rows for rows in others if rows and rows[0].release.cuda == one.cuda]
        return _needs(reader, one, others, threads), _targets(reader, one)

    for releases in (providers, *read.values()):
        pairs = zip(by_bisection(releases, facts), releases, strict=True)
        for (needs, targets), run in groupby(pairs, key=lambda pair: pair[0]):
            members = [one for _, one in run]
            row: dict[str, Value] = {
                "name": members[0].name,
                "platform": platform,
                "first": members[0].version,
                "last": members[-1].version,
                "needs": dict(needs),
            }
            yield row | ({"targets": list(targets)} if targets else {})


def _read(
    name: str, releases: Sequence[ReadRelease], builds: Sequence[ReadBuild], platform: str
) -> list[_Read]:
    """Return the releases with a library that a build names: cuDNN 8 for CUDA 12 serves none.

    All of them where the builds name none: others name it (nvJitLink).
    """
    named = {text for build in builds for text in (*build.library.links, *build.library.mentions)}
    used = [one for one in releases if named & one.libraries.keys()] or releases
    read = []
    for one in used:
        if one.wheel.platform == platform:
            paths = {name: path for name, path in one.libraries.items() if not _APART.search(name)}
            offering = [
                path
                for library, path in paths.items()
                if library in named and not library.startswith("libcudnn_")
            ]
            read.append(
                _Read(
                    name,
                    str(one.wheel.version),
                    nvidia.DISTRIBUTIONS[name],
                    one.wheel,
                    (*paths.values(),),
                    (*(offering or paths.values()),),
                )
            )
    return read


def _provider(build: ReadBuild) -> _Read:
    wheel, contents = build.wheels[0]
    paths = tuple(filter(PROVIDER.fullmatch, contents.members))
    return _Read("onnxruntime-gpu", build.version, build.major, wheel, paths, ())


def _offers(reader: Reader, releases: Sequence[_Read], threads: int) -> list[_Offer]:
    def offer(one: _Read) -> _Offer:
        exports = (reader.exports(one.wheel, path) for path in one.offering)
        return _Offer(one, frozenset().union(*exports))

    return each(offer, releases, threads)


def _needs(
    reader: Reader, one: _Read, others: Sequence[Sequence[_Offer]], threads: int
) -> dict[str, str]:
    """Return the oldest release of each other distribution with every symbol that it exports.

    Left out are those of which the oldest known has them.
    """
    named = each(lambda path: reader.symbols(one.wheel, path), one.libraries, threads)
    symbols = frozenset().union(*named)
    needs = {}
    for offers in others:
        wanted = symbols & frozenset().union(*(offer.symbols for offer in offers))
        having = [offer.release for offer in offers if wanted <= offer.symbols]
        newest = [offer.release for offer in offers][len(offers) - len(having) :]
        if not having or having != newest:
            raise EvidenceError(
                f"{one.wheel.file}: not every newer {offers[0].release.name} has "
                f"what it takes of one"
            )
        if having[0] != offers[0].release:
            needs[having[0].name] = having[0].version
    return needs


def _targets(reader: Reader, one: _Read) -> tuple[str, ...]:
    """Return the GPUs that a compiler compiles for, as compute capabilities."""
    if nvidia.component(one.name) not in COMPILERS:
        return ()
    texts = [
        text for path in one.libraries for text in reader.texts_in(one.wheel, [path], _COMPUTE)
    ]
    numbers = sorted({int(text.removeprefix("compute_")) for text in texts})
    return tuple(f"{number // 10}.{number % 10}" for number in numbers)
