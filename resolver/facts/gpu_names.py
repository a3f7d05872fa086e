"""The compute capability of a GPU by its product name; `gpus.toml` describes the comparison."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..versions import numbers
from .model import Architecture, Facts, Gpu

_VIRTUAL = re.compile(r"-\d+(-\d+)?[abcq](me)?$")
_SEPARATORS = re.compile(r"[-_/()]")
_SLICE = re.compile(r"[ _-]mig[ _-].*")
_NOT_OF_THE_NAME = re.compile(r"\b(\d+ ?(gb|g|mb)|\d+x)\b")
"""A size, and how many there are: `80 GB`, `8x`."""
_RUN_TOGETHER = re.compile(
    r"(?<=\bquadro)(?=[a-z])|(?<=rtx|gtx)(?=a?\d)|(?<=\d{4})(?=(?:ti|super)\b)"
)
"""Between the words of `RTX4060Ti`, `QuadroRTX8000`."""
_WORDS = frozenset(
    {
        "nvidia", "tesla", "tegra", "nvgpu", "grid", "gpu", "laptop", "mobile", "with", "max", "q",
        "design", "edition", "generation", "workstation", "server", "sff", "embedded", "active",
        "ac", "nvl", "dgxs", "fhhl", "pcie", "hbm2", "hbm2e", "hbm3", "hbm3e", "sxm",
        "tensor", "core", "shared",
    }
)  # fmt: skip


def product_name(name: str) -> str:
    """Return `NVIDIA A100-SXM4-80GB` as `a100`: what two spellings of one product share."""
    text = _VIRTUAL.sub("", _SLICE.sub("", name.lower()))
    text = _NOT_OF_THE_NAME.sub(" ", _SEPARATORS.sub(" ", text))
    words = (word for word in text.split() if word not in _WORDS)
    return " ".join(word for word in words if not re.fullmatch(r"sxm\d", word))


def capability_by_name(table: Mapping[str, Any]) -> Callable[[str], str | None]:
    """Return the look-up in the parsed `gpus.toml`: from a name to its capability or None."""
    capabilities = {
        product_name(name): family["compute_capability"]
        for family in table["family"]
        for name in family["names"]
    }
    return lambda name: capabilities.get(product_name(name))


def known_capabilities(table: Mapping[str, Any], machine: Architecture) -> tuple[str, ...]:
    """Return the compute capabilities of the GPUs in `gpus.toml` for `machine`, lowest first."""
    found = {family["compute_capability"] for family in table["family"]}
    arm = set() if machine == "aarch64" else {*table["arm"]["compute_capabilities"]}
    return tuple(sorted(found - arm, key=numbers))


def neighbours(some: Collection[str], known: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return `some` compute capabilities, those that follow one another in `known` together."""
    runs = itertools.groupby(known, key=some.__contains__)
    return tuple(tuple(run) for inside, run in runs if inside)


def gpus_like(table: Mapping[str, Any], name: str) -> dict[str, list[str]]:
    """Return the GPUs that `name` may mean, by compute capability, oldest first.

    Those of exactly that name, with GeForce or without, or else those that have all words of it:
    `RTX 4060`.
    """
    wanted = product_name(_RUN_TOGETHER.sub(" ", name.lower().replace("_", " ")))
    entries = [
        (family["compute_capability"], gpu) for family in table["family"] for gpu in family["names"]
    ]
    same = [entry for entry in entries if product_name(entry[1]) in {wanted, f"geforce {wanted}"}]
    words = set(wanted.split())
    alike = [entry for entry in entries if words and words <= set(product_name(entry[1]).split())]
    found: dict[str, list[str]] = {}
    for capability, gpu in sorted(same or alike, key=lambda entry: numbers(entry[0])):
        found.setdefault(capability, []).append(gpu)
    return found


def has_arm_processor(table: Mapping[str, Any], gpu: Gpu) -> bool:
    """Return whether a GPU comes with an Arm processor: Jetson, GB10, GH200."""
    words = set(re.findall(r"[a-z]+\d*", (gpu.name or "").lower()))
    named = any(name.lower() in words for name in table["arm"]["names"])
    return named or gpu.compute_capability in table["arm"]["compute_capabilities"]


def with_capabilities(facts: Facts, look_up: Callable[[str], str | None]) -> Facts:
    """Return `facts` with the compute capability of every GPU that has only a name."""
    gpus = facts.gpus and tuple(
        gpu._replace(compute_capability=look_up(gpu.name))
        if gpu.name and gpu.compute_capability is None
        else gpu
        for gpu in facts.gpus
    )
    return facts._replace(gpus=gpus)
