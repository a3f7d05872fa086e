"""The machine that a pasted text tells of, chosen from all that its lines say.

What a program printed counts before what a person wrote, and that before what a path shows. Of two
printed answers the first is taken, with what stands in its own table; of two that people wrote
neither is. Unknown is not wrong: what is left out is named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from packaging.utils import canonicalize_version

from ..facts.document import from_json
from ..facts.gpu_names import gpus_like, has_arm_processor, product_name
from ..facts.model import (
    CPU_BUILD,
    GPU_BUILD,
    OTHER_PACKAGES,
    PACKAGE_FILES,
    TEXT,
    Driver,
    Facts,
    Gpu,
)
from .reader import PRINTED, MachineReader, Seen

NEEDED = ("system", "driver", "gpus", "python")
"""What a plan has to know."""
SHOWN = 8
"""How many packages are told of in a line."""
SOURCE = f"{TEXT} {{line}}"
ASSUMED = "assumed"
"""The sources of a fact that the text tells, and of one that it does not."""
LIST = 6
"""From how many packages on it is a list of what is installed, not what somebody asked for."""
_CUT = re.compile(r"\.\.\.$|…$")


class Told(NamedTuple):
    """A fact that the text tells, and its line."""

    fact: str
    value: str
    line: int


class Contradiction(NamedTuple):
    """A fact of which the text tells two things."""

    fact: str
    values: tuple[str, ...]
    lines: tuple[int, ...]
    taken: bool
    """True where the first is taken, false where the fact is left out."""
    package: str | None = None
    """The package, where the fact is one's version."""


class ToldMachine(NamedTuple):
    """What a text tells of a machine."""

    told: tuple[Told, ...]
    contradictions: tuple[Contradiction, ...]
    document: Mapping[str, Any]
    """The document of `facts`, with what is assumed where nothing is told."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """What a plan has to know and the text does not tell."""
        told = {each.fact for each in self.told}
        return tuple(fact for fact in NEEDED if fact not in told)

    @property
    def facts(self) -> Facts:
        """The machine as a plan takes it."""
        return from_json(self.document)


def is_another(machine: ToldMachine, here: Facts) -> bool:
    """Tell whether a text's machine differs from `here` in a fact that it tells of."""
    told, unknown = machine.facts, machine.unknown
    differs = {
        "system": told.platform.key != here.platform.key,
        "driver": not _is_of(cast("Driver", told.driver), here.driver),  # it has one, if unknown
        "gpus": [gpu.compute_capability for gpu in told.gpus or ()]
        != [gpu.compute_capability for gpu in here.gpus or ()],
    }
    return any(different for fact, different in differs.items() if fact not in unknown)


def _is_of(told: Driver, here: Driver | None) -> bool:
    """Tell whether a driver is the one that a text tells: its release, branch, or CUDA alone."""
    if told.version is None:
        return here is not None and told.cuda == here.cuda
    return f"{here and here.version}.".startswith(f"{told.version}.")


class _Choice:
    """Chooses, and keeps what was told and what contradicts it."""

    def __init__(self, seen: Sequence[Seen], table: Mapping[str, Any]) -> None:
        self.table = table
        self.told: list[Told] = []
        self.contradictions: list[Contradiction] = []
        self.by_fact: dict[str, list[Seen]] = defaultdict(list)
        for each in seen:
            self.by_fact[each.fact].append(each)

    def best(self, fact: str) -> list[Seen]:
        """Return what is surest of a fact, in the order of the text."""
        seen = self.by_fact[fact]
        top = max((each.weight for each in seen), default=0)
        return [each for each in seen if each.weight == top]

    def one(
        self, fact: str, seen: Sequence[Seen], keys: Sequence[str], package: str | None = None
    ) -> Seen | None:
        """Return the one that is taken: `keys` are equal where two say the same."""
        if not seen:
            return None
        first = dict(zip(reversed(keys), reversed(seen), strict=True))
        if len(first) == 1:
            return seen[0]
        several = sorted(first.values(), key=lambda each: each.line)[:3]
        taken = seen[0].weight == PRINTED
        values = tuple(each.value for each in several)
        lines = tuple(each.line for each in several)
        self.contradictions.append(Contradiction(fact, values, lines, taken, package))
        return seen[0] if taken else None

    def tell(self, fact: str, value: str, line: int) -> None:
        self.told.append(Told(fact, value, line))


def told_machine(reader: MachineReader, gpus: Mapping[str, Any], python: str) -> ToldMachine:
    """Return the machine that a text tells of.

    `gpus` is the parsed `gpus.toml`; `python` is the version that is assumed where none is told.
    """
    choice = _Choice(reader.seen, gpus)
    driver, cuda = _driver(choice)
    cards = _gpus(choice)
    version = _python(choice)
    platform = _platform(choice, driver, cards)
    packages = _packages(choice, gpu_build=reader.gpu_build_named, nuget=reader.nuget)
    order = (*NEEDED, "packages")
    told = tuple(sorted(choice.told, key=lambda each: order.index(each.fact)))
    known = {each.fact: SOURCE.format(line=each.line) for each in told}
    sources = {fact: known.get(fact, ASSUMED) for fact in ("driver", "gpus", "python")}
    sources["platform"] = known.get("system", ASSUMED)
    sources[PACKAGE_FILES] = ASSUMED
    if "packages" in known:
        sources["packages"] = known["packages"]
    if sum(each.weight == PRINTED for each in choice.by_fact["package"]) < LIST:
        sources[OTHER_PACKAGES] = ASSUMED
    document = {
        "schema": 1,
        "platform": platform,
        "driver": {"version": driver, "cuda": cuda},
        "gpus": [card._asdict() for card in cards] if cards else None,
        "python": {"version": version or python, "environment": "venv"},
        "packages": [{"name": name, "version": found} for name, found in packages.items()],
        "sources": sources,
    }
    return ToldMachine(told, tuple(choice.contradictions), document)


def _driver(choice: _Choice) -> tuple[str | None, str | None]:
    seen = choice.best("driver")
    taken = choice.one("driver", seen, [each.value for each in seen])
    if not seen:
        shown = choice.best("cuda")
        alone = choice.one("driver", shown, [each.value for each in shown])
        if alone is not None:
            choice.tell("driver", f"CUDA {alone.value}", alone.line)
        return None, alone.value if alone else None
    if taken is None:
        return None, None
    beside = next((each.value for each in choice.by_fact["cuda"] if each.line == taken.line), None)
    told = {each.value for each in choice.best("cuda")}
    cuda = beside or (told.pop() if len(told) == 1 else None)
    choice.tell("driver", f"{taken.value} (CUDA {cuda})" if cuda else taken.value, taken.line)
    return taken.value, cuda


def _gpus(choice: _Choice) -> tuple[Gpu, ...]:
    cards = [(each, _gpu(each.value, choice.table)) for each in choice.best("gpu")]
    known = [(each, card) for each, card in cards if card is not None]
    if not known or (len(known) < len(cards) and cards[0][0].weight == PRINTED):
        return ()
    if known[0][0].weight == PRINTED:
        block = known[0][0].block
        same = [row for row in known if row[0].block == block]
    else:
        seen = [each for each, _ in known]
        keys = [str(card.compute_capability) for _, card in known]
        taken = choice.one("gpus", seen, keys)
        same = [row for row in known if row[0] is taken]
    if same:
        names = ", ".join(str(card.name) for _, card in same)
        choice.tell("gpus", names, same[0][0].line)
    return tuple(card for _, card in same)


def _gpu(name: str, table: Mapping[str, Any]) -> Gpu | None:
    """Return the GPU of a name; None where it may be of two compute capabilities, or is none.

    nvidia-smi cuts long names: `NVIDIA GeForce RTX 3060 ...`.
    """
    begin = _CUT.sub("", name).strip()
    found = gpus_like(table, begin)
    if not found and begin != name:
        wanted = product_name(begin)
        found = {
            family["compute_capability"]: family["names"]
            for family in table["family"]
            if any(product_name(each).startswith(wanted) for each in family["names"])
        }
    return Gpu(name=begin, compute_capability=next(iter(found))) if len(found) == 1 else None


def _python(choice: _Choice) -> str | None:
    seen = choice.best("python")
    minors = [".".join(each.value.split(".")[:2]) for each in seen]
    taken = choice.one("python", seen, minors)
    if taken is None:
        return None
    minor = minors[seen.index(taken)]
    full = max(
        (each for each, its in zip(seen, minors, strict=True) if its == minor),
        key=lambda each: (each.value.count("."), -each.line),
    )
    choice.tell("python", full.value, full.line)
    return full.value


def _platform(choice: _Choice, driver: str | None, cards: Sequence[Gpu]) -> dict[str, object]:
    seen = choice.best("system")
    names = {each.value for each in seen}
    told = (each for each in choice.by_fact["system"] if each.value == "wsl")
    wsl = sorted(told, key=lambda each: each not in seen)
    system: str | None = None
    line = seen[0].line if seen else 0
    in_wsl = bool(wsl) and (wsl[0] in seen or names == {"linux"})
    if in_wsl or names == {"linux"}:
        system, line = "linux", (wsl[0].line if in_wsl else line)
    elif names == {"windows"}:
        system = "windows"
    if system is None:
        system = _system_of_driver(driver)
        line = choice.best("driver")[0].line if system else 0
        if system is None and names:
            choice.one("system", seen, [each.value for each in seen])
    linux = system != "windows"
    arm = linux and bool(choice.by_fact["machine"] or _has_arm(choice, cards))
    libc, distribution, container = (
        next((each.value for each in choice.by_fact[fact]), None) if linux else None
        for fact in ("libc", "distribution", "container")
    )
    if system is not None:
        words = (distribution or "Linux") if linux else "Windows"
        choice.tell("system", f"{words} (WSL)" if in_wsl else words, line)
    return {
        "system": "linux" if linux else "windows",
        "machine": "aarch64" if arm else "x86_64",
        "libc": libc,
        "distribution": distribution,
        "wsl": in_wsl,
        "container": container,
    }


def _has_arm(choice: _Choice, cards: Sequence[Gpu]) -> bool:
    return any(has_arm_processor(choice.table, card) for card in cards)


def _system_of_driver(release: str | None) -> str | None:
    """Return the system that a driver's release is of, as `--driver` tells it; None: any.

    Source: https://docs.nvidia.com/datacenter/tesla/drivers/
    """
    if release is None:
        return None
    if release.count(".") > 1:
        return "linux"
    branch = int(release.split(".")[0])
    return "windows" if branch >= 430 and branch % 5 else None  # noqa: PLR2004 - as `read_machine`


def _packages(choice: _Choice, *, gpu_build: bool, nuget: bool) -> dict[str, str]:
    """Return the packages of the first list, and of those that do not contradict it."""
    blocks: dict[int, list[Seen]] = defaultdict(list)
    written: dict[str, list[Seen]] = defaultdict(list)
    for each in choice.by_fact["package"]:
        if each.weight == PRINTED:
            blocks[each.block].append(each)
        else:
            written[each.name].append(each)
    found = _listed(choice, blocks)
    unnamed = written.pop("", [])
    if unnamed and gpu_build and not {GPU_BUILD, CPU_BUILD} & found.keys():
        written[GPU_BUILD] += unnamed
    for name, seen in written.items():
        if name not in found and not (nuget and name in {GPU_BUILD, CPU_BUILD}):
            whole = sorted(seen, key=lambda each: -len(each.value))  # 2.11.0 before 2.11
            taken = choice.one("packages", whole, _releases(whole), name)
            if taken is not None:
                found[name] = taken
    if found:
        first = min(found.values(), key=lambda each: each.line)
        rows = ", ".join(f"{name} {found[name].value}" for name in sorted(found, key=_rank)[:SHOWN])
        rows += ", …" if len(found) > SHOWN else ""
        choice.tell("packages", rows, first.line)
    return {name: each.value for name, each in found.items()}


def _releases(seen: Sequence[Seen]) -> list[str]:
    """Return versions so that those which may be one release are equal: 2.11 and 2.11.0+cu128."""
    parts = [each.value.partition("+") for each in seen]
    several = len({local for _, _, local in parts if local}) > 1
    return [
        canonicalize_version(public) + (f"+{local}" if several else "")
        for public, _, local in parts
    ]


def _listed(choice: _Choice, blocks: Mapping[int, Sequence[Seen]]) -> dict[str, Seen]:
    """Return the packages of the lists, but for lists that contradict those before them."""
    found: dict[str, Seen] = {}
    for block in blocks.values():
        other = next((e for e in block if found.get(e.name, e).value != e.value), None)
        if other is None:
            found = {each.name: each for each in block} | found
        else:
            known = found[other.name]
            values, lines = (known.value, other.value), (known.line, other.line)
            choice.contradictions.append(
                Contradiction("packages", values, lines, taken=True, package=other.name)
            )
    return found


def _rank(name: str) -> tuple[bool, bool, str]:
    return not name.startswith("onnxruntime"), not name.startswith(("torch", "nvidia")), name
