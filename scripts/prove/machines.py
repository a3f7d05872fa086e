"""Judge the plans of thousands of random machines with a checker that shares no code with them.

    python scripts/prove/machines.py [--count 3000] [--seed 1] [--results DIR]

The machines are those of tests/support/random_machines.py: any driver, GPU, Python, wheels of any
release, and wheels, releases and drivers that no table has. Each plan is judged by
tests/support/checker.py, which reads the tables and knows no resolver, and so are the plans of the
recorded machines of tests/captures. Of as many machines, a newer driver is compared with an older
one: it makes no answer worse, but where its branch dropped a GPU. Each is planned with `--prefer
small`, too, and tests/support/raw_small.py tries every set with fewer bytes. Where a plan says that
nothing works on the machine, nothing does in an empty environment either. Of a third as many the
driver, the GPUs or both are taken away: the case that is shown for what was there is the plan that
comes out with it. The dated result, which counts what the machines were, goes to
scripts/prove/results/; the exit code is 1 where the judge finds something.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from checker import check
from packaging.utils import canonicalize_name
from random_machines import (
    BRANCHES,
    RELEASES,
    TABLES,
    UNKNOWN,
    Document,
    documents,
    is_no_worse,
    known_gpus,
    plan,
    says_wrongly_that_nothing_works,
    unlike_its_case,
)

from ortgpu_fix.resolve.options import PlanOptions
from prove.outcomes import prove_random

CAPTURES = Path(__file__).resolve().parents[2] / "tests" / "captures"
DRIVERS = [*(f"{branch}.10" for branch in BRANCHES), "650.10", "999.10"]
OPTIONS: list[dict[str, Any]] = [{}, {}, {"latest": True}, {"cuda": "12"}, {"onnxruntime": "<1.27"}]


def unknown_wheels(document: Document) -> set[tuple[str, str]]:
    """Return the installed wheels of NVIDIA's of releases that no table has for this platform."""
    platform = "{system}_{machine}".format(**document["platform"])
    known = {
        (kind["name"], row["version"])
        for kind in TABLES["nvidia"]["distribution"]
        for row in kind["releases"]
        if row["platform"] == platform
    }
    names = {name for name, _ in known}
    there = {(canonicalize_name(row["name"]), row["version"]) for row in document["packages"]}
    return {pair for pair in there - known if pair[0] in names}


def selection_of(made: Document) -> dict[str, str]:
    """Return the releases of a plan by distribution."""
    return {row["name"]: row["version"] for row in (made["selection"] or {}).get("packages", ())}


def prove_plans(count: int, number: int) -> dict[str, Any]:
    """Judge `count` plans; return what the machines and the plans were, and what is wrong."""
    seen: Counter[str] = Counter()
    wrong: list[str] = []

    @seed(number)
    @settings(
        max_examples=count, suppress_health_check=list(HealthCheck), database=None, deadline=None
    )
    @given(documents(), st.sampled_from(OPTIONS))
    def judge(document: Document, options: Document) -> None:
        made = plan(document, PlanOptions(**options))
        seen["machines"] += 1
        seen[made["verdict"]] += 1
        unknown = unknown_wheels(document)
        selected = {
            (row["name"], row["version"]) for row in (made["selection"] or {}).get("packages", ())
        }
        seen["with wheels that no table has"] += bool(unknown)
        seen["of which some are kept"] += bool(unknown & selected)
        release = str((document["driver"] or {}).get("version") or "")
        seen["with a driver that no table has"] += release.startswith("999")
        small = plan(document, PlanOptions(**options, small=True))
        usual = {"usual": selection_of(made)}
        seen["with a smaller set"] += selection_of(small) != selection_of(made)
        seen["MB less"] += (made.get("prefer_small") or {"less": 0})["less"] // 1_000_000
        nothing = says_wrongly_that_nothing_works(document)
        seen["on which nothing works"] += nothing is not None
        if nothing:
            wrong.append(f"something works there: {json.dumps(document)}")
        wrong.extend(
            f"small: {line}: {json.dumps(document)}"
            for line in check(document, small, TABLES, options | usual)
        )
        wrong.extend(
            f"{line}: {json.dumps(document)}" for line in check(document, made, TABLES, options)
        )

    judge()
    return {**seen, "wrong": wrong}


def prove_drivers(count: int, number: int) -> dict[str, Any]:
    """Compare `count` pairs of drivers."""
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    pairs = st.lists(st.sampled_from(range(len(DRIVERS))), min_size=2, max_size=2).map(sorted)

    @seed(number)
    @settings(
        max_examples=count, suppress_health_check=list(HealthCheck), database=None, deadline=None
    )
    @given(documents(), pairs)
    def compare(document: Document, ages: list[int]) -> None:
        older, newer = (DRIVERS[age] for age in ages)
        seen["pairs"] += 1
        seen["of different drivers"] += older != newer
        if not is_no_worse(document, older, newer):
            wrong.append(f"{older} to {newer}: {json.dumps(document)}")

    compare()
    return {**seen, "wrong": wrong}


def prove_cases(count: int, number: int) -> dict[str, Any]:
    """Hold the cases of `count` machines that are not known against the plans of known ones."""
    seen: Counter[str] = Counter()
    wrong: list[str] = []

    @seed(number)
    @settings(
        max_examples=count, suppress_health_check=list(HealthCheck), database=None, deadline=None
    )
    @given(documents(), st.sampled_from(UNKNOWN), st.sampled_from(RELEASES), st.data())
    def compare(document: Document, unknown: str, release: str, data: st.DataObject) -> None:
        gpu = data.draw(st.sampled_from(known_gpus(document)))
        seen[unknown] += 1
        found = unlike_its_case(document, unknown, release, gpu)
        wrong.extend(f"{unknown}, {release}, {gpu}: {line}" for line in found)

    compare()
    return {**seen, "wrong": wrong}


def prove_recorded() -> dict[str, Any]:
    """Judge the plans of the recorded machines."""
    wrong: list[str] = []
    folders = sorted(path.parent for path in CAPTURES.glob("*/expected.json"))
    for folder in folders:
        facts = folder / "facts.json"
        if facts.exists():
            document = json.loads(facts.read_text(encoding="utf-8"))
        else:
            document = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["facts"]
        made, small = plan(document), plan(document, PlanOptions(small=True))
        usual = {"usual": selection_of(made)}
        lines = (*check(document, made, TABLES), *check(document, small, TABLES, usual))
        wrong += [f"{folder.name}: {line}" for line in lines]
    return {"machines": len(folders), "wrong": wrong}


def prove(count: int, number: int) -> dict[str, dict[str, Any]]:
    """Judge them all."""
    return {
        "recorded": prove_recorded(),
        "plans": prove_plans(count, number),
        "drivers": prove_drivers(count, number),
        "cases": prove_cases(count // 3, number),
    }


if __name__ == "__main__":
    sys.exit(prove_random(__doc__, "machines", prove))
