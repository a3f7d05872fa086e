"""Whole outputs, as a reader accepted them last: what changes in any line of one is seen, and read.

The other tests look at a part of an output and say why it is so; these look at all the rest. Each
file of `tests/recordings/texts` is what is made of one kind of input, for people and for programs.
Where a change is wanted, `ORTGPU_FIX_RECORD=1` writes them anew, and what git shows is to be read.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cut_real import cut_matrix
from odd import check_recorded
from pages import made

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.here import look
from ortgpu_fix.explain.matcher import explain_log
from ortgpu_fix.explain.mending import mending
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Driver
from ortgpu_fix.fleet.model import FleetMachine
from ortgpu_fix.fleet.planner import plan_fleet
from ortgpu_fix.lock.drift import drift
from ortgpu_fix.lock.parse import read_lock
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Section, plain
from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.report.drift import drift_json, drift_sections
from ortgpu_fix.report.explanation import explanation_json, explanation_sections
from ortgpu_fix.report.fleet import fleet_json, fleet_sections
from ortgpu_fix.report.matrix import overview_json, release_json, release_sections
from ortgpu_fix.report.measurement import bench_sections, model_sections
from ortgpu_fix.report.page import Page, render
from ortgpu_fix.report.plan import machine_section, plan_json, plan_sections
from ortgpu_fix.report.supported import runs_json, runs_sections
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.verify.measurement import Failed
from ortgpu_fix.verify.model_report import Copies, Fallback

TESTS = Path(__file__).parents[1]
MATRIX = synthetic.matrix()
EN = load_texts("en")


def written(name: str, *parts: Sequence[Section] | Any) -> str:
    """Return a heading and below it what is for people as text, what is for programs as JSON."""
    texts = [
        plain(part)
        if isinstance(part, tuple)
        else json.dumps(part, ensure_ascii=False, separators=(",", ": "), indent=0)
        for part in parts
    ]
    return "\n".join([f"=== {name}", *texts, ""])


def plans() -> Iterator[str]:
    """Machines with findings that none before had, each way to say it in turn."""
    seen: set[object] = set()
    lines = (TESTS / "recordings/plans/invented.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        facts = facts_json.from_json(row["facts"])
        made = resolve(facts, PlanOptions(), MATRIX)
        codes = {made.verdict, *(found.code for found in made.findings)}
        codes |= {why.change.code for why in made.unlock}
        if codes <= seen:
            continue
        number, seen = len(seen), seen | codes
        settings: dict[str, Any] = {"verbose": number % 2 == 0, "asked": number % 3 == 0}
        files = {wheel.file for wheel in made.install[:1]} if number % 4 == 0 else set()
        told = plan_sections(
            made, facts, EN, command="ortgpu-fix --apply", at_hand=files, **settings
        )
        document = [plan_json(made, EN)] if number % 4 == 0 else []
        yield written(f"{number} {settings}", told, *document)


def long_plans() -> Iterator[str]:
    """Machines on the real matrix, which has more releases than a plan shows."""
    lines = (TESTS / "recordings/plans/real.jsonl").read_text("utf-8").splitlines()
    for number, row in enumerate(map(json.loads, lines[::9])):
        facts = facts_json.from_json(row["facts"])
        made = resolve(facts, PlanOptions(), cut_matrix())
        for verbose in (False, True):
            told = plan_sections(
                made, facts, EN, command="ortgpu-fix --apply", verbose=verbose, asked=False
            )
            yield written(f"{number} {verbose}", told)
    drivers = ("535.104.12", "570.86.10", "470.256.02", "580.82.07")
    members = [
        FleetMachine(
            name=f"machine-{at:02}",
            facts=synthetic.facts(driver=None, gpus=(gpu,))._replace(driver=Driver(version=driver)),
        )
        for at, (driver, gpu) in enumerate(itertools.product(drivers, ("7.0", "8.9", "12.0")))
    ]
    for count, verbose in itertools.product((4, 12), (False, True)):
        fleet = plan_fleet(members[:count], PlanOptions(), cut_matrix())
        yield written(f"{count} {verbose}", fleet_sections(fleet, EN, verbose=verbose))


SET = {"nvidia-cublas-cu12": "12.8.4", "nvidia-cudnn-cu12": "9.28.0", "onnxruntime-gpu": "1.26.0"}
HEAD = "# matrix: 2026-01-01 sha256:{}\n"
PIN = "{}=={} \\\n    --hash=sha256:{}\n"


def drifts() -> Iterator[str]:
    """Locks that hold, that moved, that nothing can hold, on machines as they were and others."""
    other = {"onnxruntime-gpu": "1.31.0", "nvidia-cublas": "13.0.2", "nvidia-cudnn-cu13": "9.28.0"}
    locks = {
        "whole": (SET, "invented", "0"),
        "of an older matrix": (SET, "older", "0"),
        "of other files": (SET, "invented", "1"),
        "of an older cudnn": ({**SET, "nvidia-cudnn-cu12": "9.1.0"}, "invented", "0"),
        "of a cudnn that nobody knows": ({**SET, "nvidia-cudnn-cu12": "9.99"}, "invented", "0"),
        "of CUDA 13": (other, "invented", "0"),
        "of half a set": ({"onnxruntime-gpu": "1.26.0"}, "invented", "0"),
        "of nothing": ({"numpy": "2.2.6"}, "invented", "0"),
    }
    installed = [f"{name} {version}" for name, version in SET.items()]
    machines = {
        "as locked": synthetic.facts(*installed, "numpy 2.2.6", "flatbuffers 25.0"),
        "empty": synthetic.facts(),
        "another cudnn": synthetic.facts(*installed[:1], "nvidia-cudnn-cu12 9.10.2", installed[2]),
        "an old driver": synthetic.facts(*installed, driver="11.7"),
        "another GPU": synthetic.facts(*installed, gpus=("5.2",)),
        "the CPU build": synthetic.facts("onnxruntime 1.26.0"),
    }
    for (lock, (pins, digest, sha)), (name, facts) in itertools.product(
        locks.items(), machines.items()
    ):
        rows = (PIN.format(*pin, sha * 64) for pin in pins.items())
        locked = read_lock(HEAD.format(digest) + "".join(rows), "lock.txt")
        found = drift(locked, facts, PlanOptions(), MATRIX)
        told = drift_sections(found, locked, "lock.txt", MATRIX, EN)
        document = drift_json(found, locked, "lock.txt", MATRIX, EN)
        yield written(f"{lock}, {name}", told, document)


def machines() -> Iterator[str]:
    for path in sorted((TESTS / "captures").glob("*/*.json")):
        document = json.loads(path.read_text("utf-8"))
        if path.name == "facts.json" or "facts" in document:
            facts = facts_json.from_json(document.get("facts", document))
            yield written(path.parent.name, (machine_section(facts, EN),))


ARM = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.39"}
OLD_LIBC = {"system": "linux", "machine": "x86_64", "libc": "glibc 2.27"}
PACKAGES = ("numpy 2.2.6", "onnxruntime 1.22.1", "transformer 4.2", "nvidia-cudnn-cu12 9.1.0")
FLEETS: dict[str, list[dict[str, Any]]] = {
    "one set": [{}, {"driver": "13.0"}],
    "two": [
        {"driver": "11.7", "gpus": ("7.0",)},
        {"driver": "13.0", "python": "3.13.0", "gpus": ("12.0",)},
        {"driver": "13.0", "python": "3.12.0", "gpus": ("12.0", "8.0")},
    ],
    "some left": [{}, {"driver": None, "gpus": ()}, {"driver": "10.1"}, {"gpus": ("5.2",)}],
    "none": [{"driver": None, "gpus": ()}, {"driver": "10.1"}],
    "many": [
        {"driver": driver, "gpus": gpus, "python": python}
        for driver in ("11.8", "12.2", "12.8", "13.0")
        for gpus in (("7.0",), ("8.0", "8.6"))
        for python in ("3.10.13", "3.11.7")
    ],
    "odd": [
        {"gpus": None},
        {"driver": "13.0", "gpus": ("9.0",), "platform": ARM},
        {"driver": "12.8", "gpus": ("12.0",), "python": "3.12.1"},
        {"driver": "12.8", "gpus": ("8.6",), "platform": OLD_LIBC},
        {"driver": "13.0", "gpus": ("5.2", "12.0")},
        {"driver": "12.2", "python": "3.15.0"},
    ],
}


def fleets() -> Iterator[str]:
    for name, rows in FLEETS.items():
        facts = [synthetic.facts(*PACKAGES[: at % 5], **row) for at, row in enumerate(rows)]
        members = [FleetMachine(name=f"m{at}", facts=each) for at, each in enumerate(facts)]
        for with_cpu in (False, True):
            made = plan_fleet(members, PlanOptions(), MATRIX, with_cpu=with_cpu)
            for verbose in (False, True):
                told = fleet_sections(made, EN, verbose=verbose)
                yield written(f"{name} {with_cpu} {verbose}", told)
            yield written(f"{name} {with_cpu}", fleet_json(made, EN))


def odd(page: Page) -> Page:
    """Return a page on which more went wrong than in what was recorded."""
    assert page.bench
    fallbacks = (
        Fallback(name="nms", op="NonMaxSuppression", why="no-kernel", ms=1.5),
        Fallback(name="s", op="Shape", why="shape-work", ms=9.0),
        Fallback(name="x", op="Loop", why="unknown", ms=0.0),
    )
    report = dataclasses.replace(
        page.report,
        fallbacks=fallbacks,
        copies=Copies(to_device=3, to_host=2),
        evidence=("cuda: gone",),
        notes=(Reason(code="model-cpu-alone", values=()),),
    )
    failed = (
        Failed(key="cuda-graph", shape=None, error="cannot"),
        Failed(key=page.bench.configurations[-1].key, shape=0, error="out of memory"),
    )
    bench = dataclasses.replace(page.bench, failed=failed, ends=("measure cuda: SIGSEGV",))
    return page._replace(report=report, bench=bench)


def measured() -> Iterator[tuple[str, Page]]:
    for gpu in (True, False):
        yield f"gpu {gpu}", made("en", gpu=gpu)
        yield f"gpu {gpu}, odd", odd(made("en", gpu=gpu))
        yield f"gpu {gpu}, 12 lines", made("en", gpu=gpu, cut=12)


def models() -> Iterator[str]:
    for name, page in measured():
        assert page.bench
        assert page.advice
        told = (
            *model_sections(page.report, EN),
            *bench_sections(page.bench, page.advice, EN),
        )
        yield written(
            name, told, page.report.to_json(), page.bench.to_json(), page.advice.to_json()
        )


def pages() -> Iterator[str]:
    for name, page in measured():
        body = render(page, EN).partition("<body")[2]
        body = re.sub(r"<(script|style)\b.*?</\1>", "", body, flags=re.DOTALL)
        yield f"=== {name}\n" + re.sub(r"(?=<(?:tr|td|th|rect|text|p|h\d|table|li)\b)", "\n", body)


def matrices() -> Iterator[str]:
    tables = synthetic.tables()
    rows = [
        {**row, "cuda_source": "read of the wheel", "partial": ["9.0"] if at == 1 else []}
        for at, row in enumerate(tables["onnxruntime"]["build"])
    ]
    floors = [{**row, "source": "https://d"} for row in tables["drivers"]["floor"]]
    yield written("all", overview_json(MATRIX))
    for version in ("1.16.1", "1.18.0", "1.23.0", "1.31.0"):
        told = release_sections(MATRIX, rows, floors, version, EN)
        yield written(version, told, release_json(MATRIX, rows, floors, version))
    for driver, gpus in (("535.104", ["7.0"]), ("580.65.06", ["8.6", "12.0"]), ("450.1", [])):
        told = runs_sections(MATRIX, driver, gpus, EN)
        yield written(f"{driver} {gpus}", told, runs_json(MATRIX, driver, gpus, EN))


WHOLE = (
    "onnxruntime-gpu 1.26.0",
    *("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.10.2", "numpy 1.26.4", "flatbuffers 25.0"),
)


def explanations() -> Iterator[str]:
    """A log of each kind, on a machine where all is right, on one with the CPU build, on none."""
    table = parse_failures(load_table("failures"))
    build = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
    kinds = {path.stem.split("--")[0]: path for path in sorted(TESTS.glob("cases/logs/first/*--*"))}
    for kind, path in sorted(kinds.items()):
        lines = path.read_text("utf-8").split("\n")
        log = "\n".join(line for line in lines if not line.startswith("# "))
        found = explain_log(log, table)
        yield written(kind, explanation_sections(found, EN), explanation_json(found, EN))
        for facts in (
            synthetic.facts(*WHOLE, onnxruntime=build),
            synthetic.facts("onnxruntime 1.26.0", "numpy 2.2.6", driver="11.7", gpus=("5.2",)),
        ):
            plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
            here = look(found, table, facts, plan)
            mends = mending(found, here, plan, by_user=EN.is_for_user)
            told = explanation_sections(found, EN, here, mends, command="ortgpu-fix --apply")
            yield written(f"{kind} here", told)


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    made.__name__: made
    for made in (plans, long_plans, drifts, machines, fleets, models, pages, matrices, explanations)
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_is_the_one_that_was_accepted(kind: str) -> None:
    check_recorded(f"texts/{kind}.txt", KINDS[kind]())
