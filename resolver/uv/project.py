"""What uv is asked to compile: a project that is made for one plan, and uv's settings for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import canonicalize_name

from ..errors import Error
from ..facts.target import Target
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.toml_writer import Rows, Value, inline, single, table
from ..versions import version as parsed
from .indexes import Indexes

_LOCK_HEAD = 'lock-version = "1.0"\ncreated-by = "ortgpu-fix"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be compiled: the wheels of a plan, and all that is required besides."""

    wheels: tuple[Wheel, ...]
    """Each is taken from its own index at its own version, and nothing else is asked of it."""
    unread: frozenset[str] = frozenset()
    """The names of those whose own requirements count, and only their metadata has them: torch."""
    behind: str | None = None
    """The index of one of them, which is asked for what the default one does not have: PyTorch's,
    for what its torch requires. A newer version there is never chosen."""
    requires: tuple[str, ...] = ()
    """Further requirements, of which uv chooses the versions."""
    within: tuple[str, ...] = ()
    """`name==version`, `name<3`: what has to hold for everything that is chosen."""
    preferred: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Versions that are kept where nothing requires another, by name."""
    python: tuple[str, ...] = ()
    """uv's options for the Python that it is for."""
    version: str
    """Of that Python: `3.11.7`."""
    tags: tuple[Tag, ...]
    """Those of the wheels that fit, the best first."""
    markers: Mapping[str, str] | None = None
    """The environment of markers where uv knows only a part of it."""
    target: Target | None = None
    """The environment whose installed distributions are to stay, where it is for one."""

    @property
    def names(self) -> str:
        """What is asked for, for people."""
        pinned = (f"{wheel.name}=={wheel.version}" for wheel in self.wheels)
        return ", ".join(self.requires or pinned)


def project_text(question: Question, indexes: Indexes, near: Collection[str]) -> str:
    """Return the pyproject.toml; the distributions `near` are in a folder of the user's."""
    pins = [f"{wheel.name}=={wheel.version}" for wheel in question.wheels]
    project: dict[str, Value] = {"name": "ortgpu-fix-plan", "version": "0"}
    project["dependencies"] = Rows([*pins, *question.requires])
    sources: dict[str, Value] = {
        wheel.name: {"index": indexes.name_of(wheel.index_url)}
        for wheel in question.wheels
        if wheel.name not in near
    }
    return "\n".join(
        [
            single("project", project),
            single("tool.uv.sources", sources),
            *(
                table("tool.uv.index", {"name": name, "url": url, "explicit": True})
                for name, url in indexes.explicit.items()
            ),
        ]
    )


def settings_text(question: Question, *, exclude_newer: str | None) -> str:
    """Return the uv.toml, which stands in for every one of the user's.

    What the wheels of the plan require is in the plan: uv reads nothing of them. A limit of dates
    is for what uv chooses, not for what is chosen.
    """
    known = [wheel for wheel in question.wheels if wheel.name not in question.unread]
    texts = [f"constraint-dependencies = [{', '.join(map(inline, question.within))}]\n"]
    if exclude_newer:
        texts.append(f"exclude-newer = {inline(exclude_newer)}\n")
        exempt: dict[str, Value] = {wheel.name: False for wheel in question.wheels}
        texts.append(single("exclude-newer-package", exempt) if exempt else "")
    texts += [
        table(
            "dependency-metadata",
            {"name": wheel.name, "version": wheel.version, "requires-dist": []},
        )
        for wheel in known
    ]
    return "\n".join(texts)


def preferred_text(preferred: Mapping[str, str]) -> str:
    """Return a lock with these versions: uv keeps those that it can."""
    tables = [
        table("packages", {"name": name, "version": version})
        for name, version in sorted(preferred.items())
        if parsed(version) is not None
    ]
    return "\n".join([_LOCK_HEAD, *tables])


def lock_text(pinned: Sequence[Pinned], default: str) -> str:
    """Return what is to be installed, as uv reads it (PEP 751): each file with its one hash.

    `default` is the address of the default index, by which uv's cache knows what comes from there.
    """
    tables = []
    for pin in pinned:
        wheel, index = pin.wheel, default if pin.wheel.index_url == PYPI else pin.wheel.index_url
        file: dict[str, Value] = {"name": wheel.file, "url": pin.url}
        file["hashes"] = {"sha256": wheel.sha256}
        package: dict[str, Value | None] = {"name": wheel.name, "version": wheel.version}
        package["index"] = index if "://" in index and not pin.url.startswith("file:") else None
        tables.append(table("packages", package | {"wheels": Rows([file])}))
    return "\n".join([_LOCK_HEAD, *tables])


def constraints(
    requires: Sequence[str], target: Target, movable: Collection[str] = ()
) -> tuple[str, ...]:
    """Return `name==version` for everything installed that `requires` allows as it is.

    `movable` names and versions that PEP 440 does not know are left out. Raises Error
    `requirements-impossible` where a line of `requires` is not a requirement.
    """
    wanted: dict[str, list[SpecifierSet]] = {}
    for line in requires:
        try:
            requirement = Requirement(line)
        except (InvalidRequirement, RecursionError) as error:
            raise Error("requirements-impossible", requires=line, said=str(error)) from error
        wanted.setdefault(canonicalize_name(requirement.name), []).append(requirement.specifier)
    pins = []
    for name, version in installed_versions(target).items():
        if name in movable or parsed(version) is None:
            continue
        if all(rule.contains(version, prereleases=True) for rule in wanted.get(name, [])):
            pins.append(f"{name}=={version}")
    return tuple(sorted(pins))


def installed_versions(target: Target) -> dict[str, str]:
    """Return the version of every installed distribution by its canonical name."""
    return {installed.key: installed.version for installed in target.in_use}
