"""Choose the nvidia wheels that serve one release on several machines at once.

Core. The rules for each wheel are those of `components`; here every machine has to agree, and the
versions are the same on every platform, as far as the platforms have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .components import Component, follows, ladder, refusal_of
from .matrix import Build, Distribution, Release, ToolkitRelease
from .situation import Situation
from .versions import allows, newest_first, numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The machines of one platform, and the release's build for it."""

    build: Build
    here: tuple[Situation, ...]
    """One for each machine that differs; never empty."""


Chosen = Mapping[str, tuple[Component, ...]]
"""The wheels, by platform."""


def choose_together(places: Sequence[Place]) -> Chosen | None:
    """Return one set of wheels for all `places`, or None where no set serves every machine.

    A version may differ between platforms only where none serves both.
    """
    strictest = max(places, key=lambda place: numbers(place.build.cuda)[:2])
    for toolkit in ladder(strictest.build, strictest.here[0]):
        found = _from_toolkit(toolkit, places)
        if found is not None:
            return found
    if len(places) == 1:
        return None
    apart = [choose_together([place]) for place in places]
    return (
        {platform: wheels for one in apart if one for platform, wheels in one.items()}
        if all(apart)
        else None
    )


_Picks = dict[str, Release]
"""What one platform takes, by distribution."""


def _from_toolkit(toolkit: ToolkitRelease, places: Sequence[Place]) -> Chosen | None:
    held: dict[str, str | None] = {}  # None: the platforms have no version in common
    while True:
        picked: dict[str, _Picks] = {}
        for place in places:
            picks = _pick_all(toolkit, place, held)
            if picks is None:
                return None
            picked[place.build.platform] = picks
        apart = next((name for name in _differing(picked.values()) if name not in held), None)
        if apart is None:
            return {
                platform: tuple(
                    Component(release=picks[name], installed=False) for name in sorted(picks)
                )
                for platform, picks in picked.items()
            }
        held[apart] = _common(apart, toolkit, places, picked)


def _differing(picked: Iterable[_Picks]) -> list[str]:
    """Return the distributions of which the platforms take different versions."""
    versions: dict[str, set[str]] = {}
    for picks in picked:
        for name, release in picks.items():
            versions.setdefault(name, set()).add(release.version)
    return sorted(name for name, found in versions.items() if len(found) > 1)


def _common(
    name: str, toolkit: ToolkitRelease, places: Sequence[Place], picked: Mapping[str, _Picks]
) -> str | None:
    """Return the version that serves every platform that takes `name`: one that is picked, if any.

    What one of them picked is the toolkit's own; otherwise the newest that all can take.
    """
    concerned = [place for place in places if name in picked[place.build.platform]]
    able = [
        {row.version for row in _serving(name, toolkit, place, held=None, any_of_toolkit=False)}
        for place in concerned
    ]
    shared = set.intersection(*able)
    taken = {picked[place.build.platform][name].version for place in concerned} & shared
    return max(taken or shared, key=newest_first, default=None)


def _pick_all(
    toolkit: ToolkitRelease, place: Place, held: Mapping[str, str | None]
) -> _Picks | None:
    """Return what `place` takes of every distribution that it needs; None where one fails."""
    picks: _Picks = {}
    known = place.here[0].matrix.distributions
    waiting = sorted({need.distribution for need in place.build.needs if need.distribution})
    while waiting:
        name = waiting.pop(0)
        if name in picks or name not in known:
            continue
        release = next(_serving(name, toolkit, place, held=held.get(name)), None)
        if release is None:
            return None
        picks[name] = release
        waiting.extend(follows(release, known[name], place.here[0]))
    return picks


def _serving(
    name: str,
    toolkit: ToolkitRelease,
    place: Place,
    *,
    held: str | None,
    any_of_toolkit: bool = True,
) -> Iterator[Release]:
    """Yield the releases of `name` that serve every machine of `place`, newest first.

    `held` is the one version that counts, where it is given. Without it, a distribution of the
    toolkit is taken in the toolkit's version, unless something that stays pins it, or
    `any_of_toolkit` is False.
    """
    distribution = place.here[0].matrix.distributions[name]
    rows = [row for row in distribution.releases if row.platform == place.build.platform]
    allowed = [row for row in rows if _allowed(row, place)]
    wanted = toolkit.components.get(name)
    if held is not None:
        wanted = held
    elif not any_of_toolkit or len(allowed) < len(rows):
        wanted = None
    for row in sorted(allowed, key=lambda row: newest_first(row.version), reverse=True):
        if (wanted is None or row.version == wanted) and _serves(row, distribution, place):
            yield row


def _allowed(row: Release, place: Place) -> bool:
    return all(
        allows(demand.specifier, row.version)
        for here in place.here
        for demand in here.demanded(row.name)
    )


def _serves(row: Release, distribution: Distribution, place: Place) -> bool:
    return all(refusal_of(row, distribution, place.build, here) is None for here in place.here)
