"""Plans for random fleets on the real matrix, judged by trying every set on every machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_judge import judge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import tables

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.guests.machines.plan_report import fleet_json
from ortgpu_fix.guests.machines.planner import plan_fleet
from ortgpu_fix.lock.groups import FleetMachine
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.resolve.options import PlanOptions

CAPTURES = Path(__file__).parents[2] / "captures"
TABLES = tables()
MATRIX = load_matrix()
TEXTS = load_texts("en")
Document = dict[str, Any]
Fleet = dict[str, Document]

DRIVERS = ["470.256", "522.25", "535.104.12", "550.54", "560.35", "576.02", "580.95", "610.10"]
GPUS = ["6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]
TORCH = {
    row["version"]: row.get("requires", [])
    for row in TABLES["torch"]["torch"]
    if row["platform"] == "linux_x86_64" and row["version"] in {"1.13.1", "2.5.1", "2.7.1"}
}
APPS = [
    {"name": "fastembed", "version": "0.9.1", "requires": ["onnxruntime>=1.17.0,!=1.20.0"]},
    {"name": "old-app", "version": "1.0", "requires": ["onnxruntime<1.20"]},
    {"name": "vision", "version": "1.0", "requires": ["nvidia-cudnn-cu12==9.1.0.70"]},
    {"name": "speech", "version": "1.0", "requires": ["nvidia-cudnn-cu12>=9.10", "numpy<2"]},
]
INSTALLED = ["onnxruntime 1.22.1", "onnxruntime-gpu 1.19.2", "nvidia-cudnn-cu12 9.1.0.70"]


def package(text: str) -> Document:
    name, version = text.split()
    return {"name": name, "version": version}


@st.composite
def machines(draw: st.DrawFn) -> Document:
    """Draw one machine of a team: what teams have, seldom something odd."""
    system, machine = draw(
        st.sampled_from(
            [("linux", "x86_64")] * 5 + [("windows", "x86_64")] * 2 + [("linux", "aarch64")]
        )
    )
    driver: Document | None = {"version": draw(st.sampled_from(DRIVERS))}
    gpus = [
        {"compute_capability": gpu}
        for gpu in draw(st.lists(st.sampled_from(GPUS), min_size=1, max_size=2))
    ]
    odd = draw(st.integers(0, 15))
    if odd == 7:
        driver, gpus = None, []
    packages = [
        package(text)
        for text in draw(st.lists(st.sampled_from(INSTALLED), max_size=2, unique=True))
    ]
    which = draw(st.integers(0, 5))
    if which == 3:
        packages.append(draw(st.sampled_from(APPS)))
    elif which == 4 and system == "linux":
        version = draw(st.sampled_from(sorted(TORCH)))
        packages.append({"name": "torch", "version": version, "requires": TORCH[version]})
        names = [line.partition("==")[0].partition(" ")[0] for line in TORCH[version]]
        packages += [
            {"name": name, "version": "1.0"}
            for name in names
            if name.startswith("nvidia-cudnn") and all(row["name"] != name for row in packages)
        ]
    return {
        "schema": 1,
        "platform": {
            "system": system,
            "machine": machine,
            "libc": draw(st.sampled_from(["glibc 2.39", "glibc 2.35", "glibc 2.28", "glibc 2.17"]))
            if system == "linux"
            else None,
        },
        "driver": driver,
        "gpus": gpus,
        "python": {"version": draw(st.sampled_from(["3.9.2", "3.10.13", "3.11.7", "3.12.1"]))},
        "packages": packages,
    }


fleets = st.lists(machines(), min_size=1, max_size=5).map(
    lambda rows: {f"m{at}": row for at, row in enumerate(rows)}
)


def plan(fleet: Fleet, *, with_cpu: bool = False, **options: Any) -> Document:
    known = [
        FleetMachine(name=name, facts=facts_json.from_json(row)) for name, row in fleet.items()
    ]
    made = plan_fleet(known, PlanOptions(**options), MATRIX, with_cpu=with_cpu)
    document: Document = json.loads(json.dumps(fleet_json(made, TEXTS)))
    return document


many = settings(max_examples=40, suppress_health_check=list(HealthCheck))
some = settings(max_examples=8, suppress_health_check=list(HealthCheck))


@given(fleets, st.sampled_from([{}, {"cuda": "12"}, {"onnxruntime": "<1.27"}]))
@many
@pytest.mark.slow
def test_40_fleets_get_what_works_on_every_machine(fleet: Fleet, options: Document) -> None:
    assert judge(fleet, plan(fleet, with_cpu=True, **options), TABLES, options) == []


@given(fleets, st.sampled_from([{}, {"cuda": "12"}]))
@some
def test_every_fleet_gets_what_works_on_every_machine(fleet: Fleet, options: Document) -> None:
    assert judge(fleet, plan(fleet, **options), TABLES, options) == []


@given(fleets, st.randoms(use_true_random=False))
@some
def test_the_order_of_the_machines_does_not_matter(fleet: Fleet, random: Any) -> None:
    rows = list(fleet.items())
    random.shuffle(rows)

    assert json.dumps(plan(dict(rows))) == json.dumps(plan(fleet))


def recorded(*names: str) -> Fleet:
    """Return machines that are kept in tests/captures."""
    found = {}
    for name in names:
        written = CAPTURES / name / "facts.json"
        expected = json.loads((CAPTURES / name / "expected.json").read_text("utf-8"))
        found[name] = (
            json.loads(written.read_text("utf-8")) if written.exists() else expected["facts"]
        )
    return found


def releases(made: Document) -> dict[str, list[str]]:
    return {group["version"]: group["machines"] for group in made["groups"]}


TAGGER, SERVICE = "windows-rtx3060-576-cpu-build", "linux-a100-535-image-cuda124"
TORCH_FIRST, OCR = "windows-rtx3070-522-torch", "linux-gtx1660s-rtx3090-515-conda"
NEW_CARD = "windows-rtx5060-576"


def test_the_five_machines_need_two_locks() -> None:
    """Drivers 522 and 515 do CUDA 11 only, and no wheel for CUDA 11 has code for an RTX 5060.

    The tagger and the service have Python 3.10, for which 1.23.2 is the last release; it runs on
    the new card too, as PTX, with wheels of CUDA 12.8 or newer.
    """
    fleet = recorded(TAGGER, SERVICE, TORCH_FIRST, OCR, NEW_CARD)
    made = plan(fleet)

    assert judge(fleet, made, TABLES) == []
    assert releases(made) == {
        "1.23.2": sorted([TAGGER, SERVICE, NEW_CARD]),
        "1.18.1": sorted([TORCH_FIRST, OCR]),
    }


# A judge that cannot fail is worthless: each of these spoils a right plan.


def first(made: Document) -> Any:
    return made["groups"][0]["targets"][0]


def other_version(made: Document, name: str, version: str) -> None:
    for row in (*first(made)["selection"]["packages"], *first(made)["install"]):
        if row["name"] == name:
            row["version"] = version


def split_needlessly(made: Document) -> None:
    [group] = made["groups"]
    made["groups"] = [
        {**group, "machines": target["machines"], "targets": [target]}
        for target in group["targets"]
    ]


SPOILT: dict[str, tuple[Callable[[Document], Any], str]] = {
    "an older release": (
        lambda made: made["groups"][0].update(version="1.23.2"),
        "and 1.26.0 serves them",
    ),
    "another split": (split_needlessly, "fewer would do"),
    "a machine is in no group": (lambda made: made["groups"][0]["machines"].pop(), "served are"),
    "a machine is called hopeless": (
        lambda made: made["impossible"].append({"machine": "a", "reasons": []}),
        "nothing serves []",
    ),
    "the machine without a GPU is forgotten": (
        lambda made: made["without_gpu"].clear(),
        "without a GPU are ['ci']",
    ),
    "cuDNN without code for the GPU": (
        lambda made: other_version(made, "nvidia-cudnn-cu12", "9.28.0.42"),
        "cannot serve",
    ),
    "no cuFFT": (
        lambda made: first(made)["selection"]["packages"].pop(4),
        "nothing brings libcufft",
    ),
    "another Python": (lambda made: first(made).update(abi="cp312"), "is no linux"),
    "somebody else is blamed": (
        lambda made: made["rejected"][0]["reasons"][0].update(machines=["b"]),
        "is excluded by",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_the_judge_sees_what_is_wrong(name: str) -> None:
    """Two Pythons, a V100 for which cuDNN 9.10.2 is the last, and a machine without a GPU."""
    base = recorded(SERVICE)[SERVICE]
    fleet = {
        "a": base | {"gpus": [{"compute_capability": "7.0"}], "python": {"version": "3.11.1"}},
        "b": base | {"driver": {"version": "580.95"}, "python": {"version": "3.12.1"}},
        "ci": base | {"driver": None, "gpus": []},
    }
    made = plan(fleet)
    assert judge(fleet, made, TABLES) == []
    spoil, said = SPOILT[name]
    spoil(made)

    assert [line for line in judge(fleet, made, TABLES) if said in line]
