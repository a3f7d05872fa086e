"""What a set of requirements reaches, by the metadata of what was chosen for them.

pip judges environment markers by the Python that runs it, even where it resolves for another
platform: for a Windows machine it leaves out, on Linux, what is required on Windows alone. Reading
its answer again with the markers of the machine says what is too much in it, and what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..versions import requirement


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementClosure:
    """What requirements come down to."""

    names: frozenset[str]
    """Canonical names of what is known and reached."""
    missing: tuple[str, ...]
    """Requirements of what is not known, without markers."""


def follow_requirements(
    requires: Iterable[str], known: Mapping[str, Sequence[str]], markers: Mapping[str, str]
) -> RequirementClosure:
    """Follow `requires` through `known`: the `Requires-Dist` lines of each distribution.

    `markers` is the environment that they are judged by.
    """
    waiting = [wanted for line in requires if (wanted := requirement(line))]
    seen: set[tuple[str, str]] = set()
    missing: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name not in known:
            missing.add(_bare(wanted))
            continue
        for extra in ("", *sorted(wanted.extras)):
            if (name, extra) not in seen:
                seen.add((name, extra))
                waiting += _in_force(known[name], markers, extra)
    return RequirementClosure(
        names=frozenset(name for name, _ in seen), missing=tuple(sorted(missing))
    )


def _in_force(lines: Iterable[str], markers: Mapping[str, str], extra: str) -> list[Requirement]:
    found = [wanted for line in lines if (wanted := requirement(line))]
    return [wanted for wanted in found if is_in_force(wanted, markers, extra)]


def _bare(wanted: Requirement) -> str:
    extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
    return f"{wanted.name}{extras}{wanted.specifier}"
