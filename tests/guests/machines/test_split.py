"""Which release serves which machines: each question by itself, and asked once."""

from __future__ import annotations

from typing import Any

import pytest
from told import required, values_of

import synthetic
from ortgpu_fix.facts.model import Gpu
from ortgpu_fix.guests.machines import split
from ortgpu_fix.guests.machines.shared_wheels import sharing_machines
from ortgpu_fix.guests.machines.split import FleetSolver
from ortgpu_fix.resolve import environment_rules
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()
APP = {"name": "app", "version": "1", "requires": ["onnxruntime>=1.26"]}
OLD = {"name": "old-app", "version": "1", "requires": ["onnxruntime<1.24"]}


def here(*packages: Any, libc: str | None = None, **machine: Any) -> Situation:
    facts = synthetic.facts(*packages, **machine)
    if libc is not None:
        facts = facts._replace(platform=facts.platform._replace(libc=libc))
    return situation_of(facts, PlanOptions(), MATRIX)


def pin(name: str, specifier: str) -> dict[str, Any]:
    return {"name": f"needs-{name}", "version": "1", "requires": [f"{name}{specifier}"]}


def solver(*situations: Situation) -> FleetSolver:
    return FleetSolver(situations, MATRIX)


def groups(found: FleetSolver) -> list[tuple[str, tuple[int, ...]]]:
    return [(share.version, share.members) for share in found.split()]


@pytest.mark.parametrize(
    ("situations", "expected"),
    [
        ([], []),
        ([here(driver="10.1")], []),
        ([here(driver="12.2")], [("1.26.0", (0,))]),
        ([here(driver="13.0"), here(driver="12.2")], [("1.26.0", (0, 1))]),
        ([here(driver="11.7"), here(APP, driver="13.0")], [("1.31.0", (1,)), ("1.18.0", (0,))]),
        ([here(driver="10.1"), here(driver="12.2")], [("1.26.0", (1,))]),
        ([here(OLD), here(APP), here()], [("1.26.0", (1, 2)), ("1.23.0", (0,))]),
        ([here(APP), here(OLD), here()], [("1.26.0", (0, 2)), ("1.23.0", (1,))]),
        (
            [here(OLD, driver="11.7"), here(OLD), here(APP, driver="13.0"), here(APP)],
            [("1.26.0", (2, 3)), ("1.18.0", (0, 1))],
        ),
    ],
)
def test_the_fewest_groups_each_with_the_newest_release(
    situations: list[Situation], expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert groups(solver(*situations)) == expected


def counted(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """Return a list that grows with each call of these functions by the solver."""
    asked: list[str] = []

    def count(name: str) -> None:
        real = getattr(split, name)

        def answer(*values: Any) -> Any:
            asked.append(name)
            return real(*values)

        monkeypatch.setattr(split, name, answer)

    for name in names:
        count(name)
    return asked


def test_each_question_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet asks the same again and again; of thousands of machines it would never end."""
    names = ("choose_shared_wheels", "sharing_machines", "choose_nvidia_wheels")
    asked = counted(monkeypatch, *names)
    odd = pin("nvidia-cublas-cu12", "==99")
    found = solver(here(odd), here(odd, python="3.12.1"))

    for _ in range(2):
        for member in (0, 1):
            assert [why.code for why in found.against("1.26.0", member).reasons] == [
                "library-pinned"
            ]
    assert sorted(asked) == [
        "choose_nvidia_wheels",  # of both: nothing that the choice reads differs
        *["choose_shared_wheels"] * 2,
        *["sharing_machines"] * 2,
    ]
    asked.clear()
    found.share("1.23.0", (0,))
    assert asked == ["choose_shared_wheels"]  # the machines are known
    first = found._without_wheels("1.31.0", 0)
    assert first
    assert found._without_wheels("1.31.0", 0) is first


def test_groups_of_one_release_are_in_the_order_of_their_machines() -> None:
    one, other = (pin("nvidia-cudnn-cu12", f"=={at}") for at in ("9.1.0", "9.10.2"))
    found = solver(here(APP, one), here(APP, other), here(APP, other, gpus=("9.0",)))

    assert groups(found) == [("1.26.0", (0,)), ("1.26.0", (1, 2))]


def test_machines_that_a_release_cannot_serve_do_not_hinder_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asked first is for all of the others at once, not for each subset."""
    asked = counted(monkeypatch, "choose_shared_wheels")
    found = solver(here(driver="11.7"), here(driver="13.0"), here(driver="13.0", gpus=("9.0",)))

    assert [share.members for share in found.shares("1.31.0")] == [(1, 2)]
    assert len(asked) == 1


def test_of_each_release_its_own_wheels_are_told() -> None:
    pins = pin("nvidia-cublas-cu12", "==99"), pin("nvidia-cudnn-cu13", "==99")
    found = solver(here(*pins, driver="13.0"))

    def lacks(version: str) -> list[str]:
        return [values_of(why)["distribution"] for why in found.against(version, 0).reasons]

    assert lacks("1.26.0") == ["nvidia-cublas-cu12"]
    assert lacks("1.31.0") == ["nvidia-cudnn-cu13"]


def test_folders_are_looked_at_where_somebody_needs_what_lies_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Situation] = []
    real = environment_rules.check_shared_folders

    def check(candidate: Any, machine: Situation) -> Any:
        asked.append(machine)
        return real(candidate, machine)

    monkeypatch.setattr(split, "check_shared_folders", check)
    there = "nvidia-cudnn-cu13 9.12.0"
    wanted = situation_of(
        synthetic.facts(there), PlanOptions(requirements=required("nvidia-cudnn-cu13")), MATRIX
    )
    free = [here(), here(there), here(pin("numpy", ">1"))]
    held = [wanted, here("cudf-cu13 26.2", there)]

    assert all(solver(row).share("1.26.0", (0,)) for row in free)
    assert asked == []
    assert not any(solver(row).share("1.26.0", (0,)) for row in held)
    assert asked == held


def test_the_reasons_of_the_release_that_has_the_fewest_and_of_those_the_oldest() -> None:
    """The oldest release needs the oldest driver."""
    found = solver(here(driver="10.1"))

    assert found.least_against(0) == found.against("1.18.0", 0).reasons
    assert [row.code for row in found.least_against(0)] == ["driver-too-old"]


def test_what_the_options_exclude_comes_last_of_the_reasons() -> None:
    facts = synthetic.facts(driver="10.1", gpus=("7.0",))
    wished = situation_of(facts, PlanOptions(cuda="13"), MATRIX)
    found = FleetSolver([wished], MATRIX)

    codes = {why.code for why in found.least_against(0)}
    assert split.UNWISHED not in codes
    assert split.UNWISHED in {why.code for why in found.against("1.18.0", 0).reasons}


# What machines that share wheels need of them.


def needs(*situations: Situation) -> list[tuple[str | None, str | None, str | None]]:
    return [
        (
            (row.gpus or (Gpu(),))[0].compute_capability,
            row.driver_cuda,
            row.facts.platform.libc,
        )
        for row in sharing_machines(situations).each
    ]


def test_of_each_gpu_the_oldest_driver_and_of_all_the_oldest_libc() -> None:
    assert needs(
        here(driver="12.8", gpus=("8.0", "9.0"), libc="glibc 2.35"),
        here(driver="12.2", gpus=("9.0",), libc="glibc 2.28"),
        here(driver="12.10", gpus=("8.0",), libc="glibc 2.39"),
    ) == [("8.0", "12.8", "glibc 2.28"), ("9.0", "12.2", "glibc 2.28")]


def test_a_gpu_that_is_not_known_is_one_too() -> None:
    assert needs(here(driver="12.8", gpus=None), here(driver="12.2", gpus=("8.0",))) == [
        (None, "12.8", here().facts.platform.libc),
        ("8.0", "12.2", here().facts.platform.libc),
    ]


def test_a_driver_of_which_no_version_is_known_counts_as_the_oldest() -> None:
    unknown = here(driver="12.8")._replace(driver_cuda=None)

    assert [row[1] for row in needs(here(driver="12.2"), unknown)] == [None]
    assert [row[1] for row in needs(unknown, here(driver="12.2"))] == [None]


def test_what_each_machine_requires_of_the_wheels_counts_for_all() -> None:
    found = sharing_machines(
        [
            here(pin("nvidia-cublas-cu12", ">=12.2")),
            here(),
            here(pin("nvidia-cublas-cu12", "<13"), pin("nvidia-cudnn-cu12", ">9")),
        ]
    )

    assert {
        name: [str(demand.specifier) for demand in rows] for name, rows in found.demands.items()
    } == {"nvidia-cublas-cu12": [">=12.2", "<13"], "nvidia-cudnn-cu12": [">9"]}
    assert all(row.demands == {} for row in found.each)
