"""What a fleet's plan is made from: which machines are alike, and what they have in common."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.guests.machines.common_facts import common_facts, equivalence_key
from ortgpu_fix.guests.machines.shared_wheels import sharing_machines
from ortgpu_fix.guests.machines.split import FleetSolver
from ortgpu_fix.resolve.gpu_code import capabilities
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()
NAMES = ("nvidia-cublas-cu12", "numpy", "onnxruntime-gpu")
APP = {"name": "app", "version": "1", "requires": ["numpy>=2"]}


def here(
    *packages: Any, ignored: tuple[str, ...] = (), platform: Any = None, **machine: Any
) -> Situation:
    document = synthetic.document(*packages, **machine)
    document["platform"] |= platform or {}
    options = PlanOptions(ignored_gpus=frozenset(ignored))
    return situation_of(facts_json.from_json(document), options, MATRIX)


@pytest.mark.parametrize(
    "other",
    [
        here(driver="12.4"),
        here(gpus=None),
        here(gpus=("8.6",)),
        here(python="3.12.1"),
        here(platform={"libc": "glibc 2.17"}),
        here(APP),
        here("transformer 4.2"),
        here("torch 2.5"),
    ],
)
def test_what_the_rules_read_makes_another_kind(other: Situation) -> None:
    assert equivalence_key(other, NAMES) != equivalence_key(here(), NAMES)


def test_requirements_of_distributions_that_no_rule_is_about_make_none() -> None:
    odd = {"name": "app", "version": "1", "requires": ["numpy>=2", "odd>3"]}

    assert equivalence_key(here(odd), NAMES) == equivalence_key(here(APP), NAMES)
    assert equivalence_key(here(odd), (*NAMES, "odd")) != equivalence_key(here(APP), NAMES)
    for line in ("onnxruntime-gpu>=2", "numpy>=3"):
        other = here(APP | {"requires": [line]})
        assert equivalence_key(other, NAMES) != equivalence_key(here(APP), NAMES)


def test_shared_wheels_are_for_the_oldest_driver_of_each_gpu_and_the_oldest_libc() -> None:
    machines = (
        here(driver="12.8", gpus=("8.0", "9.0"), platform={"libc": "glibc 2.35"}),
        here(driver="12.2", gpus=("9.0",), platform={"libc": "glibc 2.28"}),
        here(driver="12.10", gpus=("8.0",), platform={"libc": "glibc 2.39"}),
    )
    each = sharing_machines(machines).each

    found = [(capabilities(row), row.driver_cuda, row.facts.platform.libc) for row in each]
    assert found == [(("8.0",), "12.8", "glibc 2.28"), (("9.0",), "12.2", "glibc 2.28")]


def test_every_kind_of_gpu_stands_once_in_what_they_have_in_common() -> None:
    found = common_facts([here(gpus=("12.0", "8.0")), here(gpus=None), here(gpus=("9.0", "12.0"))])

    assert [gpu.compute_capability for gpu in found.gpus or ()] == ["8.0", "9.0", "12.0"]
    assert common_facts([here(gpus=None)] * 2).gpus is None
    assert common_facts([here(gpus=()), here(gpus=None)]).gpus == ()


def test_machines_alike_are_asked_for_their_wheels_once() -> None:
    held = here("cudf-cu13 26.2", "nvidia-cudnn-cu13 9.12.0")
    found = FleetSolver((held, held), MATRIX)

    assert found.against("1.26.0", 0).reasons == found.against("1.26.0", 1).reasons != ()
