"""What a whole environment requires, and what a change of it means.

One answer for plans, unlocks, refusals and locks: what is newly unmet and for whom, whose other
version could meet it, and what nobody needs any more. Requirements count as `pip check` counts
them, with the markers of the target, and behind extras too. Nobody records with which extras
something was installed: one is in force where another distribution asks for it, and where all that
it requires is installed, in versions that it allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from ..facts.markers import extras_named, is_in_force
from ..facts.model import CPU_BUILD, GPU_BUILD, Package
from ..facts.target import Installed
from ..plan.reasons import Named, RequirementLine
from ..versions import allows, requirement
from ..versions import version as parse_version

_Member = Installed | Package
"""A distribution of an environment."""
_NAME = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(\[)?")
"""The name at the begin of a requirement, and whether extras follow (PEP 508)."""


class Demand(NamedTuple):
    """What something requires of a distribution."""

    by: Named | RequirementLine
    specifier: SpecifierSet
    extra: str = ""
    """The extra of `by` through which it is required, or empty."""

    @property
    def distribution(self) -> str | None:
        """The canonical name of the distribution that requires it; None: the user's file does."""
        return self.by.name if isinstance(self.by, Named) else None

    def of(self, name: str) -> str:
        """Return it as a requirement of the distribution `name`, as metadata has it."""
        return f"{name}{self.specifier}{_behind(self.extra)}"


class UnmetRequirement(NamedTuple):
    """A requirement that no distribution meets."""

    by: str
    """The canonical name of the distribution that requires it."""
    version: str
    """Its version."""
    requirement: Requirement
    """Without the marker, which is true."""
    found: str | None
    """The version that is installed instead; None where there is none."""
    extra: str = ""
    """The extra of `by` through which it is required, or empty."""

    @property
    def text(self) -> str:
        """The requirement as metadata has it, with the extra that it stands behind."""
        return f"{self.requirement}{_behind(self.extra)}"

    def __str__(self) -> str:
        """Return `fastembed 0.9.1: onnxruntime>=1.17 (1.16.3)`."""
        return f"{self.by} {self.version}: {self.text}" + (f" ({self.found})" if self.found else "")


def _behind(extra: str) -> str:
    return f'; extra == "{extra}"' if extra else ""


class Consequences(NamedTuple):
    """What a change means for a whole environment."""

    unmet: tuple[UnmetRequirement, ...]
    """What nothing meets afterwards, and something met before."""
    movable: frozenset[str]
    """Canonical names of those whose other version could meet that: they require it."""
    needless: frozenset[str]
    """Canonical names of those that came along: needed before the change, and no more after it."""


class CameAlong(NamedTuple):
    """The distributions that may become needless, and who uses them without requiring them."""

    names: frozenset[str] = frozenset()
    used_before: frozenset[str] = frozenset()
    used_after: frozenset[str] = frozenset()


class Demands(Mapping[str, tuple[Demand, ...]]):
    """The requirements of an environment that count, by the canonical name of what is required."""

    def __init__(self, environment: Environment, counts: Callable[[Demand], bool]) -> None:
        """Take the environment, and what decides whether a requirement counts."""
        self._environment, self._counts = environment, counts
        self._found: dict[str, tuple[Demand, ...]] = {}

    def __getitem__(self, name: str) -> tuple[Demand, ...]:
        if name not in self._found:
            self._found[name] = tuple(filter(self._counts, self._environment.demanded(name)))
        if not self._found[name]:
            raise KeyError(name)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._environment.names() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_NOTHING = CameAlong()


class _Line(NamedTuple):
    """A requirement that nobody has parsed yet."""

    by: _Member
    text: str
    asks: bool
    """It asks for extras."""


_Index = Mapping[str, Sequence[_Line]]
"""Requirements by the canonical name of what is required."""


class _Part(NamedTuple):
    """The requirements of some distributions, and which of those are not here any more."""

    lines: _Index
    gone: frozenset[str] = frozenset()


class Environment:
    """The distributions of an environment, and what each requires.

    A requirement is parsed when somebody asks for its name: a plan asks for few of the thousands
    that an environment has.
    """

    def __init__(
        self,
        members: Iterable[_Member],
        markers: Mapping[str, str],
        lines: Sequence[RequirementLine] = (),
    ) -> None:
        """Take the distributions that are in use, and lines of the user's own files.

        `markers` is the environment of PEP 508 markers.
        """
        self._members = tuple(reversed([*members]))
        self.installed: Mapping[str, _Member] = {member.key: member for member in self._members}
        self.markers = markers
        self._lines = lines
        self._found: tuple[_Part, ...] | None = None
        self._before: Environment = self
        self._demands: dict[str, tuple[Demand, ...]] = {}
        self._complete: dict[tuple[str, str], bool] = {}
        self._asked: dict[tuple[str, str], bool] = {}

    def on(self, markers: Mapping[str, str], lines: Sequence[RequirementLine]) -> Environment:
        """Return the same distributions with other markers and lines."""
        return self._like(self.installed, self._parts, markers, lines)

    def changed(self, leaving: Collection[str], coming: Iterable[_Member]) -> Environment:
        """Return the environment without those named, and with `coming` in the place of others.

        The extras of what stays are in force as they were before.
        """
        new = {package.key: package for package in coming}
        gone = frozenset((*leaving, *new))
        staying = {name: package for name, package in self.installed.items() if name not in gone}
        parts = [_Part(part.lines, part.gone | gone) for part in self._parts]
        parts += [_Part(_index_of(new.values()))] if new else []
        other = self._like({**staying, **new}, tuple(parts), self.markers, self._lines)
        other._before = self._before  # noqa: SLF001 - of another one of these
        return other

    def _like(
        self,
        installed: Mapping[str, _Member],
        parts: tuple[_Part, ...],
        markers: Mapping[str, str],
        lines: Sequence[RequirementLine],
    ) -> Environment:
        other = Environment((), markers, lines)
        other.installed, other._found = installed, parts
        return other

    @property
    def _parts(self) -> tuple[_Part, ...]:
        if self._found is None:
            self._found = (_Part(_index_of(self._members)),)
        return self._found

    def _lines_about(self, name: str) -> Iterator[_Line]:
        for part in self._parts:
            for line in part.lines.get(name, ()):
                if line.by.key not in part.gone:
                    yield line

    def _required(self) -> dict[str, None]:
        return dict.fromkeys(name for part in self._parts for name in part.lines)

    def version(self, name: str) -> str | None:
        """Return the version that requirements of `name` are compared with; None: there is none.

        The GPU build meets what the CPU build meets: both have the same modules.
        """
        found = self.installed.get(name)
        if found is None and name == CPU_BUILD:
            found = self.installed.get(GPU_BUILD)
        return found.version if found else None

    def names(self) -> list[str]:
        """Return the canonical names of all that is required."""
        of_user = (canonicalize_name(wanted.name) for _, wanted in self._of_user)
        return [
            name for name in dict.fromkeys((*self._required(), *of_user)) if self.demanded(name)
        ]

    def demanded(self, name: str) -> tuple[Demand, ...]:
        """Return what is required of the distribution of this canonical name."""
        if name not in self._demands:
            of_members = (
                Demand(Named(line.by.key, line.by.version), wanted.specifier, extra)
                for line, wanted, extra in self._wanting(name)
            )
            of_user = (
                Demand(line, wanted.specifier)
                for line, wanted in self._of_user
                if canonicalize_name(wanted.name) == name
            )
            self._demands[name] = (*of_members, *of_user)
        return self._demands[name]

    def unmet(self, names: Iterable[str] | None = None) -> tuple[UnmetRequirement, ...]:
        """Return every requirement of a distribution that none meets, sorted; or those of `names`.

        One that is not PEP 508 is passed over, and a version that is not PEP 440 meets everything.
        """
        found: list[UnmetRequirement] = []
        for name in self._required() if names is None else names:
            version = self.version(name)
            for line, wanted, extra in self._wanting(name):
                if version is None or not _meets(version, wanted.specifier):
                    bare = Requirement(line.text)
                    bare.marker = None
                    by = line.by
                    found.append(UnmetRequirement(by.key, by.version, bare, version, extra))
        return tuple(sorted(found, key=lambda one: (f"{one.by} {one.version}", one.text)))

    def needed(self, names: Collection[str], used: Collection[str]) -> frozenset[str]:
        """Return which of `names` are needed: what is `used`, and what somebody requires.

        Those of `names` that nobody needs do not count as somebody.
        """
        by = {name: {demand.distribution for demand in self.demanded(name)} for name in names}
        found = {name for name in names if name in used or by[name].difference(by)}
        before = 0
        while before != len(found):
            before = len(found)
            found |= {name for name in names if by[name] & found}
        return frozenset(found)

    @cached_property
    def _of_user(self) -> tuple[tuple[RequirementLine, Requirement], ...]:
        parsed = ((line, requirement(line.text)) for line in self._lines)
        return tuple((line, one) for line, one in parsed if one and self._holds(one, ""))

    def _holds(self, wanted: Requirement, extra: str) -> bool:
        return is_in_force(wanted, self.markers, extra)

    def _wanting(self, name: str) -> Iterator[tuple[_Line, Requirement, str]]:
        """Yield the requirements of `name` in force, each with the extra that it stands behind."""
        for line in self._lines_about(name):
            wanted = requirement(line.text)
            if wanted is None:
                continue
            extras = ("",) if self._holds(wanted, "") else extras_named(line.text)
            for extra in extras:
                if not extra or (self._holds(wanted, extra) and self._has_extra(line.by, extra)):
                    yield line, wanted, extra
                    break

    def _has_extra(self, by: _Member, extra: str) -> bool:
        """Return whether an extra of a distribution is in force."""
        return self._before._is_complete(by, extra) or self._is_asked(by.key, extra)  # noqa: SLF001

    def _is_complete(self, by: _Member, extra: str) -> bool:
        """Return whether all that an extra requires is installed, in versions that it allows."""
        key = by.key, extra
        if key not in self._complete:
            self._complete[key] = True  # of two that ask for one another each has what it asks for
            lines = [text for text in by.requires if extra in extras_named(text)]
            found = False
            for text in sorted(lines, key=lambda text: required_name(text)[0] in self.installed):
                wanted = requirement(text)
                if wanted and self._holds(wanted, extra) and not self._holds(wanted, ""):
                    found = self._has(wanted)
                    if not found:  # most extras are not in force, and end here at the first line
                        break
            self._complete[key] = found
        return self._complete[key]

    def _has(self, wanted: Requirement) -> bool:
        """Return whether a requirement is met, with the extras that it asks for."""
        name = canonicalize_name(wanted.name)
        version, member = self.version(name), self.installed.get(name)
        if version is None or not allows(wanted.specifier, version):
            return False
        return member is None or all(self._is_complete(member, each) for each in wanted.extras)

    def _is_asked(self, name: str, extra: str) -> bool:
        """Return whether somebody asks for an extra of a distribution: `cuda-toolkit[cublas]`.

        Who asks behind an extra of its own counts where that one is asked for: a chain, which ends
        at somebody who asks as it is installed.
        """
        key = name, canonicalize_name(extra)
        if key not in self._asked:
            seen = [key]
            for each in seen:
                askers = [*self._asking(*each)]
                self._asked[key] = None in askers
                if self._asked[key]:
                    break
                seen += [one for one in dict.fromkeys(askers) if one and one not in seen]
        return self._asked[key]

    def _asking(
        self, name: str, extra: NormalizedName
    ) -> Iterator[tuple[str, NormalizedName] | None]:
        """Yield the extras behind which this one is asked for; None: somebody does so already."""
        for line in self._lines_about(name):
            wanted = requirement(line.text) if line.asks else None
            if wanted is None or extra not in map(canonicalize_name, wanted.extras):
                continue
            if self._holds(wanted, ""):
                yield None
            for behind in extras_named(line.text):
                if self._holds(wanted, behind):
                    complete = self._before._is_complete(line.by, behind)  # noqa: SLF001
                    yield None if complete else (line.by.key, canonicalize_name(behind))


def consequences(
    before: Environment,
    leaving: Collection[str],
    coming: Iterable[_Member],
    along: CameAlong = _NOTHING,
) -> Consequences:
    """Return what it means that `leaving` (canonical names) go and `coming` come, or take a place.

    `along` names what may become needless.
    """
    new = {package.key: package for package in coming}
    after = before.changed(leaving, new.values())
    own = {required_name(text)[0] for member in new.values() for text in member.requires}
    names = {*leaving, *new, *own} | ({CPU_BUILD} if GPU_BUILD in {*leaving, *new} else set())
    known = {(one.by, one.text) for one in before.unmet(names)}
    unmet = tuple(one for one in after.unmet(names) if (one.by, one.text) not in known)
    held = {
        name for name, package in before.installed.items() if package.removal_blocker == "editable"
    }
    came = along.names & before.installed.keys()
    stay = came.difference(leaving, new)
    needless = before.needed(came, along.used_before) & stay
    return Consequences(
        unmet=unmet,
        movable=frozenset(one.by for one in unmet).difference(new, held),
        needless=needless - after.needed(stay, along.used_after),
    )


def _meets(version: str, specifier: SpecifierSet) -> bool:
    number = parse_version(version)
    return number is None or specifier.contains(number, prereleases=True)


def _index_of(members: Iterable[_Member]) -> _Index:
    """Return the requirements of `members`, by the canonical name of what is required."""
    lines: dict[str, list[_Line]] = {}
    for by in members:
        for text in by.requires:
            name, asks = required_name(text)
            lines.setdefault(name, []).append(_Line(by, text, asks))
    return lines


@lru_cache(maxsize=65536)
def required_name(text: str) -> tuple[str, bool]:
    """Return the canonical name at the begin of a requirement, and whether it asks for extras."""
    begin = _NAME.match(text)
    return (canonicalize_name(begin[1]), bool(begin[2])) if begin else ("", False)
