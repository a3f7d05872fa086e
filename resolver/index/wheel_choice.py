"""Which file of an index's project page is the wheel that is wanted.

In come the files of a page, the wanted version, the tags that fit, the best first, and the
Python; out comes the file, or the Error that says what the page offers instead.
"""

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
"""How many versions below and above the wanted one are worth naming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelTarget:
    """What a wheel must fit."""

    python: str
    """`3.11.7`."""
    tags: tuple[Tag, ...]
    """The best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """A wheel of the page, of the wanted name, that nobody took back."""

    file: IndexFile
    version: Version
    tags: frozenset[Tag]
    build: tuple[int, str] | tuple[()]
    rank: int | None
    """Where its best tag stands among those that fit; None where none does."""


def find_exact(
    files: Sequence[IndexFile], name: str, version: str, fit: WheelTarget, page: str
) -> IndexFile:
    """Return the best wheel of exactly `version`, its local part included, of the page `page`.

    Raises Error `index-lacks-version` where the index does not have it, with the versions that it
    has for this Python and platform and that are nearest, and `index-lacks-build` where it has it
    for others alone.
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
    there = sorted({offer.version for offer in offers if offer.rank is not None})
    nearest = ", ".join(str(one) for one in _nearest(there, wanted))
    raise Error("index-lacks-version", name=name, version=version, url=url, offers=nearest or "-")


def find_newest(
    files: Sequence[IndexFile], name: str, specifier: SpecifierSet, fit: WheelTarget
) -> IndexFile | None:
    """Return the best wheel of the newest version within `specifier`, or None."""
    early = bool(specifier.prereleases)
    best = _best(
        [
            offer
            for offer in _offers(files, name, fit)
            if specifier.contains(offer.version, prereleases=early)
        ]
    )
    return None if best is None else best.file


def _best(offers: Sequence[_Offer]) -> _Offer | None:
    fits = [
        (offer.version, -offer.rank, offer.build, offer)
        for offer in offers
        if offer.rank is not None
    ]
    return max(fits, key=lambda row: row[:3])[3] if fits else None


def _offers(files: Sequence[IndexFile], name: str, fit: WheelTarget) -> Iterator[_Offer]:
    ranks = {tag: rank for rank, tag in enumerate(fit.tags)}
    for file in files:
        try:
            found, version, build, tags = parse_wheel_filename(file.name)
        except InvalidWheelFilename:
            continue
        if file.yanked or found != canonicalize_name(name):
            continue
        fits = [ranks[tag] for tag in tags if tag in ranks]
        rank = min(fits) if fits and _allows(file.requires_python, fit.python) else None
        yield _Offer(file=file, version=version, tags=tags, build=build, rank=rank)


def _allows(requires_python: str | None, python: str) -> bool:
    """Tell whether the page says that this Python can use the file; what is unreadable allows."""
    try:
        return SpecifierSet(requires_python or "").contains(python, prereleases=True)
    except InvalidSpecifier:
        return True


def _nearest(there: Sequence[Version], wanted: Version) -> list[Version]:
    """Return the variants of the wanted release, and the versions right below and above it."""
    at = bisect(there, wanted)
    near = {*there[max(at - _NEAREST, 0) : at + _NEAREST]}
    near |= {one for one in there if one.public == wanted.public}
    return sorted(near)
