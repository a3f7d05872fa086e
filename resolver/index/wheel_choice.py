"""Choose the wanted wheel among the files of an index's project page."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ..errors import Error
from .page import IndexFile, without_credentials

_NEAREST = 3
"""How many versions below and above the wanted one an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelTarget:
    """What a wheel must fit."""

    python: str
    """`3.11.7`."""
    tags: tuple[Tag, ...]
    """The best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """A wheel of the wanted name that is not yanked."""

    file: IndexFile
    version: Version
    tags: frozenset[Tag]
    build: tuple[int, str] | tuple[()]
    rank: int | None
    """The position of its best tag among those that fit; None where none does."""


def find_exact(
    files: Sequence[IndexFile], name: str, version: str, fit: WheelTarget, page: str
) -> IndexFile:
    """Return the best wheel of exactly `version`, its local part included, of the page `page`.

    Raises Error `index-lacks-version` with the nearest versions for this Python and platform, and
    `index-lacks-build` where the index has the version for others only.
    """
    offers = list(_offers(files, name, fit))
    wanted = Version(version)
    same = [offer for offer in offers if offer.version == wanted]
    best = _best(same)
    if best is not None:
        return best.file
    url = without_credentials(page)
    if same:
        tags = sorted({str(tag) for offer in same for tag in offer.tags})
        raise Error(
            "index-lacks-build", name=name, version=version, url=url, offers=", ".join(tags)
        )
    available = sorted({offer.version for offer in offers if offer.rank is not None})
    nearest = ", ".join(map(str, _nearest(available, wanted)))
    raise Error("index-lacks-version", name=name, version=version, url=url, offers=nearest or "-")


def find_newest(
    files: Sequence[IndexFile], name: str, specifier: SpecifierSet, fit: WheelTarget
) -> IndexFile | None:
    """Return the best wheel of the newest version within `specifier`, or None."""
    early = bool(specifier.prereleases)
    offers = _offers(files, name, fit)
    best = _best(
        [offer for offer in offers if specifier.contains(offer.version, prereleases=early)]
    )
    return None if best is None else best.file


def _best(offers: Sequence[_Offer]) -> _Offer | None:
    fitting = [
        (offer.version, -offer.rank, offer.build, offer)
        for offer in offers
        if offer.rank is not None
    ]
    return max(fitting, key=lambda offer: offer[:3])[3] if fitting else None


def _offers(files: Sequence[IndexFile], name: str, fit: WheelTarget) -> Iterator[_Offer]:
    ranks = {tag: rank for rank, tag in enumerate(fit.tags)}
    for file in files:
        try:
            project, version, build, tags = parse_wheel_filename(file.name)
        except InvalidWheelFilename:
            continue
        if file.yanked or project != canonicalize_name(name):
            continue
        fitting = [ranks[tag] for tag in tags if tag in ranks]
        rank = min(fitting) if fitting and _allows(file.requires_python, fit.python) else None
        yield _Offer(file=file, version=version, tags=tags, build=build, rank=rank)


def _allows(requires_python: str | None, python: str) -> bool:
    """Return whether the page allows the file for this Python; an unreadable specifier does."""
    try:
        return SpecifierSet(requires_python or "").contains(python, prereleases=True)
    except InvalidSpecifier:
        return True


def _nearest(available: Sequence[Version], wanted: Version) -> list[Version]:
    """Return the other local versions of the wanted release, and the versions next to it."""
    at = bisect(available, wanted)
    nearest = {*available[max(at - _NEAREST, 0) : at + _NEAREST]}
    return sorted(nearest | {version for version in available if version.public == wanted.public})
