"""torch and onnxruntime-gpu on every driver and GPU, judged by a checker that knows no resolver."""

from __future__ import annotations

import functools
import itertools
import json
import re
from typing import Any

import pytest
from checker_torch import check_torch
from raw_torch import raw_builds
from tables import tables

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.report.plan_document import plan_json
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

Document = dict[str, Any]
TORCHES = {
    "2.0.1": "cu117",
    "2.0.1+cu118": "cu118",
    "2.3.1+cu118": "cu118",
    "2.3.1+cu121": "cu121",
    "2.4.1": "cu121",
    "2.5.1+cu121": "cu121",
    "2.6.0": "cu124",
    "2.7.1+cu128": "cu128",
    "2.9.1+cu126": "cu126",
    "2.10.0": "cu128",
    "2.11.0": "cu130",
    "2.13.0+cu126": "cu126",
    "2.15.0": "cu132",
}
DRIVERS = {  # on Linux, on Windows
    "470": ("470.256.02", "472.12"),
    "535": ("535.104.12", "537.13"),
    "550": ("550.54.14", "552.22"),
    "570": ("570.148.08", "572.83"),
    "580": ("580.95.05", "581.42"),
    "610": ("610.43.02", "610.47"),
}
GPUS = {
    "V100": "7.0",
    "A100": "8.0",
    "RTX 3070": "8.6",
    "RTX 4090": "8.9",
    "RTX 5060": "12.0",
    "RTX 5090": "12.0",
    "B200": "10.0",
    "GB10": "12.1",
}
ORDINARY = ("flatbuffers 25.2.10", "numpy 1.26.4", "packaging 25.0", "protobuf 6.31.1")


@functools.cache
def matrix() -> Any:
    return load_matrix()


@functools.cache
def builds(platform: str) -> list[Any]:
    return list(raw_builds(tables(), platform))


def system_of(gpu: str, *, windows: bool) -> str:
    return "linux_aarch64" if gpu == "GB10" else f"{'windows' if windows else 'linux'}_x86_64"


def document(
    torch: str | None,
    driver: str,
    gpu: str,
    *,
    windows: bool = False,
    wheels: bool = False,
    beside: tuple[str, ...] = (),
) -> Document | None:
    """Return the facts; None where there is no such build. `wheels`: what it pins is installed."""
    platform = system_of(gpu, windows=windows)
    packages = [dict(zip(("name", "version"), row.split(), strict=True)) for row in ORDINARY]
    if torch is not None:
        label = TORCHES.get(torch, torch.partition("+")[2])
        release = torch.partition("+")[0]
        here = [
            row for row in builds(platform) if (row["release"], row["label"]) == (release, label)
        ]
        if not here:
            return None
        plain = "+" not in torch and any(row["index"] == "pypi" for row in here)
        build = next((row for row in here if (row["index"] == "pypi") == plain), None)
        if build is None:
            return None
        version = release if plain else f"{release}+{label}"
        packages.append({"name": "torch", "version": version, "requires": build["pins"]})
        pins = [re.match(r"(nvidia-[a-z0-9-]+) ?\(?==([0-9.]+)", line) for line in build["pins"]]
        found = [pin for pin in pins if pin and wheels]
        packages += [{"name": pin[1], "version": pin[2]} for pin in found]
    packages += [dict(zip(("name", "version"), row.split(), strict=True)) for row in beside]
    return {
        "schema": 1,
        "platform": {
            "system": platform.partition("_")[0],
            "machine": platform.partition("_")[2],
            "libc": None if windows else "glibc 2.39",
        },
        "driver": {"version": DRIVERS[driver][windows]},
        "gpus": [{"name": gpu, "compute_capability": GPUS[gpu]}],
        "python": {"version": "3.11.9"},
        "packages": packages,
    }


def plan(found: Document, torch: str = "keep") -> Document:
    made = resolve(facts_json.from_json(found), PlanOptions(torch=torch), matrix(), unlocking=False)
    document_of_it: Document = json.loads(json.dumps(plan_json(made, load_texts("en"))))
    return document_of_it


PAIRS = [
    (torch, driver, gpu, system)
    for torch, gpu, system in itertools.product(TORCHES, GPUS, ("linux", "windows"))
    for driver in DRIVERS
    if system == "linux" or gpu not in {"B200", "GB10"}
]


def judge(torch: str, driver: str, gpu: str, system: str) -> list[str]:
    """Return what the checker finds wrong; every second torch has its wheels installed."""
    wheels = (list(TORCHES).index(torch) + list(GPUS).index(gpu)) % 2 == 0
    found = document(torch, driver, gpu, windows=system == "windows", wheels=wheels)
    if found is None:
        return []
    return [
        f"--torch {wish}: {wrong}"
        for wish in ("keep", "match")
        for wrong in check_torch(found, plan(found, wish), tables(), wish)
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("turn", range(2))
def test_a_plan_with_torch_keeps_the_contract(turn: int) -> None:
    """One in 37, which divides none of the lists: every torch, driver and GPU is met."""
    some = PAIRS[37 * turn :: 37 * 2]

    assert {pair: found for pair in some if (found := judge(*pair))} == {}
