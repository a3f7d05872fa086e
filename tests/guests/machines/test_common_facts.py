"""What a fleet's plan is made from: which machines are alike, and what a lock installs."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.guests.machines.common_facts import equivalence_key
from ortgpu_fix.lock.locked_facts import names_in_locks, without_locked_packages
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


def test_other_packages_and_the_wheels_of_nvidia_stay_listed() -> None:
    facts = synthetic.facts(
        *("onnxruntime 1.22.0", "numpy 2.2.6", "user 1.0", "nvidia-cudnn-cu12 9.28.0"),
        libraries=[{"name": "libcudnn.so.9"}],
        toolkits=[{"version": "12.4", "path": "/x"}],
        onnxruntime={"distribution": "onnxruntime", "version": "1.22.0"},
        sources={"gpus": "nvml", "libraries": "search"},
    )
    left = without_locked_packages(facts, MATRIX, names_in_locks(MATRIX))

    assert [(row.name, row.intact) for row in left.packages] == [
        ("user", True),
        ("nvidia-cudnn-cu12", False),  # not kept, and still in the way of another
    ]
    assert (left.libraries, left.toolkits, left.onnxruntime) == ((), (), None)
    assert left.sources == {"gpus": "nvml"}
    assert (left.driver, left.gpus, left.python) == (facts.driver, facts.gpus, facts.python)
