"""What would allow a newer release: nothing is named that would not."""

from __future__ import annotations

import pytest
from told import gains

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.driver import EXPLAINED_ERRORS
from ortgpu_fix.facts.model import Gpu
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
TORCH = {"name": "torch", "version": "2.6.0+cpu"}


def unlocks(made: Plan) -> set[tuple[str, str]]:
    return {(row.change.code, gains(row).rpartition(" ")[2]) for row in made.unlock}


@pytest.mark.parametrize(("last", "named"), [(580, True), (535, False)])
def test_no_driver_is_named_that_drops_a_gpu_although_that_of_now_knows_it(
    last: int, *, named: bool
) -> None:
    """The driver of now has named the GPU, so it supports it; of a newer one nobody knows that."""
    tables = synthetic.tables()
    tables["onnxruntime"]["build"][3]["sass"] = ["7.0", *synthetic.NEW]
    tables["drivers"]["last"] = [{"below": "7.5", "branch": last}]
    facts = synthetic.facts(
        "onnxruntime-gpu 1.26.0", gpus=("7.0",), driver="12.2", sources={"gpus": "nvml"}
    )
    assert facts.driver
    facts = facts._replace(driver=facts.driver._replace(version="535.104.12"))
    made = resolve(facts, PlanOptions(), matrix_parse.parse(tables, "", {}))

    assert made.verdict == "fixable"
    assert (("newer-driver", "1.31.0") in unlocks(made)) is named


def test_beside_a_torch_the_index_for_an_old_cuda_is_named_too() -> None:
    """Where no other torch would help, what helps without one does."""
    python = {"python": "3.13.0", "driver": "11.7", "gpus": ("8.0",)}
    without = resolve(synthetic.facts(**python), PlanOptions(), MATRIX)
    beside = resolve(synthetic.facts(TORCH, **python), PlanOptions(), MATRIX)

    assert without.verdict == "impossible"
    assert "ort-index" in {code for code, _ in unlocks(without)}
    assert unlocks(beside) >= unlocks(without)


@pytest.mark.parametrize(
    ("gpus", "named"), [(None, False), ((), False), ((Gpu(compute_capability="9.0"),), True)]
)
def test_packages_for_data_centres_are_named_for_gpus_that_are_known(
    gpus: tuple[Gpu, ...] | None, *, named: bool
) -> None:
    tables = synthetic.tables()
    row = {"package": "cuda-compat-13-0", "cuda": "13.0", "branches": [535]}
    tables["drivers"]["forward"] = [row | {"source": "https://n"}]
    facts = synthetic.facts("onnxruntime-gpu 1.26.0", driver="12.2")._replace(gpus=gpus)
    assert facts.driver
    facts = facts._replace(driver=facts.driver._replace(version="535.104.12"))
    made = resolve(facts, PlanOptions(), matrix_parse.parse(tables, "", {}))

    assert ("forward-compatibility" in {code for code, _ in unlocks(made)}) is named


@pytest.mark.parametrize(
    ("machine", "python", "named"),
    [
        ({}, {"implementation": "pypy"}, False),
        ({"machine": "aarch64"}, {}, False),
        ({"libc": None}, {}, True),
    ],
)
def test_the_index_for_an_old_cuda_is_named_where_its_wheels_may_fit(
    machine: dict[str, str | None], python: dict[str, str], *, named: bool
) -> None:
    document = synthetic.document(driver="11.7")
    document["platform"] |= machine
    document["python"] = {"version": "3.13.0", **python}
    made = resolve(facts_json.from_json(document), PlanOptions(), MATRIX)

    assert made.verdict == "impossible"
    assert ("ort-index" in {code for code, _ in unlocks(made)}) is named


@pytest.mark.parametrize("error", ["odd: x", *(f"{code}: x" for code in EXPLAINED_ERRORS)])
def test_what_no_change_of_the_environment_mends_is_told_as_that(error: str) -> None:
    made = resolve(synthetic.facts("onnxruntime-gpu 1.26.0", error=error), PlanOptions(), MATRIX)
    [outside] = made.unfixable

    assert made.verdict == "fixable"
    assert outside.code == EXPLAINED_ERRORS.get(error.removesuffix(": x"), "driver-unreadable")
