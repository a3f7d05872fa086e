"""Environment markers: as few words as tell the machines of a lock apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations

from ..facts.markers import marker_environment
from ..facts.model import Facts

_AXES = ("sys_platform", "platform_machine", "python_version")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MarkerPlace:
    """What of a machine and its Python a marker can ask; the values are those of PEP 508."""

    sys_platform: str
    platform_machine: str
    python_version: str


def marker_place(facts: Facts) -> MarkerPlace:
    """Return where the machine of `facts` is."""
    environment = marker_environment(facts)
    return MarkerPlace(**{axis: environment[axis] for axis in _AXES})


def marker_for(chosen: Collection[MarkerPlace], everywhere: Collection[MarkerPlace]) -> str:
    """Return the marker that holds in `chosen` and nowhere else in `everywhere`; empty: always.

    It asks no more than it must: where the platform alone tells, nothing of the Python is said.
    """
    others = set(everywhere) - set(chosen)
    subsets = (
        axes for count in range(len(_AXES) + 1) for axes in combinations(range(len(_AXES)), count)
    )
    axes = next(one for one in subsets if not _seen(one, chosen) & _seen(one, others))
    return _text([_AXES[axis] for axis in axes], _seen(axes, chosen))


def _seen(axes: Sequence[int], places: Collection[MarkerPlace]) -> set[tuple[str, ...]]:
    """Return what is left of `places` where only `axes` are looked at."""
    return {tuple(astuple(place)[axis] for axis in axes) for place in places}


def full_marker(place: MarkerPlace) -> str:
    """Return the marker that names everything of `place`."""
    return _text(list(_AXES), {astuple(place)})


def _text(axes: list[str], rows: Collection[tuple[str, ...]]) -> str:
    if not axes:
        return ""
    every = [
        " and ".join(f"{axis} == '{value}'" for axis, value in zip(axes, row, strict=True))
        for row in sorted(rows)
    ]
    if len(every) == 1 or len(axes) == 1:
        return " or ".join(every)
    return " or ".join(f"({one})" for one in every)
