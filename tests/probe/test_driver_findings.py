"""What NVML and CUDA of a simulated driver answer, as the findings of a plan.

The probe, its children and the libraries are real, the driver behind them is simulated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drivers import A100, Card

from ortgpu_fix.facts import capture
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.plan.reasons import Finding
from ortgpu_fix.probe.background import ProbeProcesses
from ortgpu_fix.probe.machine import probe
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.utils.process import run

SLICED = Card(name=A100.name, capability=(8, 0), memory_mib=81920, mig=1)
DRIVER: dict[str, Any] = {"release": "550.54.14", "cuda": 12040}


def findings(
    simulate: Callable[..., dict[str, str]], root: Path, **driver: Any
) -> dict[str, Finding]:
    """Return the findings of the driver and the GPUs that are seen, by their codes."""
    cards = {"cards": [A100]}
    environ = simulate(**DRIVER | cards | driver)
    processes = ProbeProcesses(Path(sys.executable), runner=run, environ=environ, gpu_seconds=20)
    seen = probe(processes, runner=run, environ=environ, root=root)
    facts = capture.facts(seen.capture, {A100.name: "8.0"}.get)
    plan = resolve(facts, PlanOptions(), load_matrix(), unlocking=False)
    of_machine = ("driver-", "no-gpu", "no-driver", "mig", "forward-")
    return {row.code: row for row in plan.findings if row.code.startswith(of_machine)}


@pytest.mark.parametrize(
    ("answer", "card", "code"),
    [
        (100, A100, "driver-no-device"),
        (100, SLICED, "mig-without-instance"),
    ],
)
def test_what_cuda_answers_has_one_finding(
    simulate: Callable[..., dict[str, str]],
    empty_root: Path,
    answer: int,
    card: Card,
    code: str,
) -> None:
    found = findings(simulate, empty_root, cards=[card], cu_init=answer)

    assert list(found) == [code]
    assert str(answer) in dict(found[code].values)["error"]


def test_mig_that_works_is_worth_knowing(
    simulate: Callable[..., dict[str, str]], empty_root: Path
) -> None:
    found = findings(simulate, empty_root, cards=[A100, SLICED])

    assert {code: row.severity for code, row in found.items()} == {"mig": "info"}
