"""The machine that a pasted text tells of, chosen from all that its lines say.

Of two tables the first is taken whole. Unknown is not wrong: what is left out is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from ..facts.document import from_json
from ..facts.gpu_names import gpus_like, has_arm_processor, product_name
from ..facts.model import (
    OTHER_PACKAGES,
    PACKAGE_FILES,
    TEXT,
    Driver,
    Facts,
    Gpu,
)
from .choice import Choice, Contradiction, Told
from .packages import WHOLE, packages_of
from .patterns import OF_WINDOWS
from .reader import PART, PRINTED, MachineReader

NEEDED = ("system", "driver", "gpus", "python")
"""What a plan has to know."""
SOURCE = f"{TEXT} {{line}}"
ASSUMED = "assumed"
"""The sources of a fact that the text tells, and of one that it does not."""
_CUT = re.compile(r"\.\.\.$|…$")


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


def told_machine(reader: MachineReader, gpus: Mapping[str, Any], python: str) -> ToldMachine:
    """Return the machine that a text tells of.

    `gpus` is the parsed `gpus.toml`; `python` is the version that is assumed where none is told.
    """
    choice = Choice(reader.seen, gpus)
    driver, cuda = _driver(choice)
    cards = _gpus(choice)
    version = _python(choice)
    platform = _platform(choice, driver, cards)
    packages = packages_of(
        choice, gpu_build=reader.gpu_build_named, other_language=reader.other_language
    )
    kind = _environment(choice)
    order = (*NEEDED, "environment", "packages")
    told = tuple(sorted(choice.told, key=lambda each: order.index(each.fact)))
    known = {each.fact: SOURCE.format(line=each.line) for each in told}
    sources = {fact: known.get(fact, ASSUMED) for fact in ("driver", "gpus", "python")}
    sources["platform"] = known.get("system", ASSUMED)
    sources[PACKAGE_FILES] = ASSUMED
    if "packages" in known:
        sources["packages"] = known["packages"]
    if WHOLE not in packages:
        sources[OTHER_PACKAGES] = ASSUMED
    document = {
        "schema": 1,
        "platform": platform,
        "driver": {"version": driver, "cuda": cuda},
        "gpus": [card._asdict() for card in cards] if cards else None,
        "python": {"version": version or python, "environment": kind}
        | ({"externally_managed": True} if kind == "system" else {}),
        "packages": [{"name": name, "version": found} for name, found in packages.items()],
        "sources": sources,
    }
    return ToldMachine(told, tuple(choice.contradictions), document)


def _driver(choice: Choice) -> tuple[str | None, str | None]:
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


def _gpus(choice: Choice) -> tuple[Gpu, ...]:
    """Return the GPUs; where a table cuts their names, those that the text names elsewhere."""
    every = [(each, _gpu(each.value, choice.table)) for each in choice.by_fact["gpu"]]
    cut = {each.block for each, card in every if card is None and _CUT.search(each.value)}
    unread = [each for each, _ in every if each.weight == PRINTED and each.block in cut]
    others = [row for row in every if row[0] not in unread]
    top = max((each.weight for each, _ in others), default=0)
    cards = [row for row in others if row[0].weight == top]
    known = [(each, card) for each, card in cards if card is not None]
    if top == PRINTED:
        if len(known) < len(cards):
            return ()
        block = known[0][0].block
        same = [row for row in known if row[0].block == block]
    else:
        seen = [each for each, _ in known]
        keys = [str(card.compute_capability) for _, card in known]
        taken = choice.one("gpus", seen, keys)
        same = [row for row in known if row[0] is taken]
    if unread and sum(each.block == unread[0].block for each in unread) != len(same):
        return ()
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


def _python(choice: Choice) -> str | None:
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


def _platform(choice: Choice, driver: str | None, cards: Sequence[Gpu]) -> dict[str, object]:
    seen = choice.best("system")
    names = {each.value for each in seen}
    told = (each for each in choice.by_fact["system"] if each.value == "wsl")
    wsl = sorted(told, key=lambda each: each not in seen)
    system: str | None = None
    line = seen[0].line if seen else 0
    in_wsl = bool(wsl) and (wsl[0] in seen or names == {"linux"})
    by_driver = _system_of_driver(driver)
    if in_wsl or names == {"linux"}:
        system, line = "linux", (wsl[0].line if in_wsl else line)
    elif names == {"windows"} and not (by_driver == "linux" and seen[0].weight < PRINTED):
        system = "windows"
    if system is None and by_driver:
        system, line = by_driver, choice.best("driver")[0].line
    elif system is None:
        parts = {each.value for each in choice.by_fact["system"] if each.weight == PART}
        shown = [each for each in seen if {each.value} == parts] or seen
        taken = choice.one("system", shown, [each.value for each in shown])
        if taken:
            system, line = taken.value, taken.line
    linux = system != "windows"
    arm = linux and bool(choice.by_fact["machine"] or _has_arm(choice, cards))
    libc, container = (
        next((each.value for each in choice.by_fact[fact]), None) if linux else None
        for fact in ("libc", "container")
    )
    named = choice.by_fact["distribution"] if linux else []
    taken = choice.one("system", named, [each.value.partition(".")[0] for each in named])
    distribution = taken.value if taken else None
    if taken and not in_wsl:
        line = taken.line
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


def _environment(choice: Choice) -> str:
    """Return the kind of the environment; a virtual one, where nothing or several are told."""
    seen = choice.by_fact["environment"]
    if {each.value for each in seen} not in ({"conda"}, {"system"}):
        return "venv"
    choice.tell("environment", seen[0].value, seen[0].line)
    return seen[0].value


def _has_arm(choice: Choice, cards: Sequence[Gpu]) -> bool:
    return any(has_arm_processor(choice.table, card) for card in cards)


def _system_of_driver(release: str | None) -> str | None:
    """Return the system that a driver's release is of, nearly as `--driver` tells it; None: any.

    Windows' have two parts, the second of two digits: `570.181` is of Linux.

    Source: https://docs.nvidia.com/datacenter/tesla/drivers/
    """
    if release is None:
        return None
    if "." in release and not OF_WINDOWS.match(release):
        return "linux"
    branch = int(release.split(".")[0])
    return "windows" if branch >= 430 and branch % 5 else None  # noqa: PLR2004 - as `read_machine`
