"""Environment markers: the shortest that distinguish the machines of a lock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..facts.markers import marker_environment
from ..facts.model import Facts

_AXES = ("sys_platform", "platform_machine", "python_version")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MarkerPlace:
    """The system and Python of a machine, in the values of PEP 508 markers."""

    sys_platform: str
    platform_machine: str
    python_version: str


def marker_place(facts: Facts) -> MarkerPlace:
    """Return the place of the machine of `facts`."""
    environment = marker_environment(facts)
    return MarkerPlace(**{axis: environment[axis] for axis in _AXES})


def marker_for(
    chosen: Collection[MarkerPlace],
    everywhere: Collection[MarkerPlace],
    since: str | None = None,
) -> str:
    """Return the shortest marker that holds in `chosen` and nowhere else in `everywhere`.

    Empty where it always holds; with `since` never on an older Python than that.
    """
    others = set(everywhere) - set(chosen)
    subsets = (axes for count in range(len(_AXES) + 1) for axes in combinations(_AXES, count))
    axes = next(axes for axes in subsets if not _values(axes, chosen) & _values(axes, others))
    values = _values(axes, chosen)
    text = _text(axes, values)
    if since is None or _AXES[-1] in axes:
        return text
    term = f"({text})" if len(values) > 1 else text
    return " and ".join(filter(None, (term, f"python_version >= '{since}'")))


def _values(axes: Sequence[str], places: Collection[MarkerPlace]) -> set[tuple[str, ...]]:
    return {tuple(getattr(place, axis) for axis in axes) for place in places}


def full_marker(place: MarkerPlace) -> str:
    """Return the marker that names every value of `place`."""
    return _text(_AXES, _values(_AXES, [place]))


def _text(axes: Sequence[str], values: Collection[tuple[str, ...]]) -> str:
    terms = [" and ".join(map("{} == '{}'".format, axes, value)) for value in sorted(values)]
    if len(terms) == 1 or len(axes) == 1:
        return " or ".join(terms)
    return " or ".join(f"({term})" for term in terms)
