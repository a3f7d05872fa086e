"""The packages that a pasted text tells of, chosen from its lists and sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from packaging.utils import canonicalize_version

from ..facts.model import CPU_BUILD, GPU_BUILD
from .choice import Choice, Contradiction
from .reader import PRINTED, WRITTEN, Seen

SHOWN = 8
"""How many packages are told of in a line."""
WHOLE = "pip"
"""The package that shows that a list names all that is installed: nobody picks it out."""


def packages_of(choice: Choice, *, gpu_build: bool, other_language: bool) -> dict[str, str]:
    """Return the packages of the first list, and of those that do not contradict it.

    Beside a list of what is installed, one that may be of what is asked for is merely written.
    """
    surest = max([PRINTED, *(each.weight for each in choice.by_fact["package"])])
    blocks: dict[int, list[Seen]] = defaultdict(list)
    written: dict[str, list[Seen]] = defaultdict(list)
    for each in choice.by_fact["package"]:
        if each.weight == surest:
            blocks[each.block].append(each)
        else:
            written[each.name].append(each._replace(weight=WRITTEN))
    found = _listed(choice, blocks)
    unnamed = written.pop("", [])
    if unnamed and gpu_build and not {GPU_BUILD, CPU_BUILD} & found.keys():
        written[GPU_BUILD] += unnamed
    for name, seen in written.items():
        others = other_language and name in {GPU_BUILD, CPU_BUILD}
        if not others and not {name, WHOLE} & found.keys():
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


def _listed(choice: Choice, blocks: Mapping[int, Sequence[Seen]]) -> dict[str, Seen]:
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
