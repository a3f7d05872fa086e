"""How much of what cannot be used is shown."""

from __future__ import annotations

import pytest

from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan, Rejected
from ortgpu_fix.plan.reasons import Reason, reason
from ortgpu_fix.plan.wheels import PYPI, Wheel
from ortgpu_fix.report.rejected import SHORT, rejected_section

EN = load_texts("en")


def why(number: int) -> tuple[Reason, ...]:
    """Return reasons that no neighbour has."""
    return (reason("no-gpu-code", gpu=f"{number}.0", carried="9.0"),)


def rows(package: str, *versions: str) -> list[Rejected]:
    return [
        Rejected(package=package, version=version, reasons=why(number))
        for number, version in enumerate(versions)
    ]


def shown(*rejected: Rejected, taken: str | None = None, verbose: bool = False) -> list[str]:
    wheel = Wheel(
        name="onnxruntime-gpu", version=taken or "", index_url=PYPI, file="", size=0, sha256=""
    )
    plan = Plan(
        verdict="fixable",
        matrix_date="",
        matrix_digest="",
        selection=(wheel,) if taken else (),
        rejected=rejected,
    )
    section = rejected_section(plan, EN, verbose=verbose)
    return [row.head if row.head != "…" else f"… {row.text}" for row in section.rows]


ORT = ("1.31.1", "1.31.0", "1.26.0", "1.25.0", "1.24.0")


def test_the_newest_few_are_shown_and_the_rest_is_counted() -> None:
    short = shown(*rows("onnxruntime-gpu", *ORT))

    assert short[:SHORT] == ["1.31.1", "1.31.0", "1.26.0"]
    assert len(short) == SHORT + 1
    assert "2" in short[-1]
    assert shown(*rows("onnxruntime-gpu", *ORT), verbose=True) == [*ORT]


def test_what_is_older_than_the_release_that_is_taken_needs_no_reason() -> None:
    short = shown(*rows("onnxruntime-gpu", *ORT), taken="1.26.0")

    assert short[:-1] == ["1.31.1", "1.31.0"]
    assert "3" in short[-1]


def test_neighbours_with_the_same_reasons_are_one() -> None:
    same = [row._replace(reasons=why(1)) for row in rows("onnxruntime-gpu", *ORT)]

    assert len(shown(*same)) == 1


@pytest.mark.parametrize(("count", "hidden"), [(SHORT, 0), (SHORT + 2, 2)])
def test_torches_that_were_passed_over_come_last(count: int, hidden: int) -> None:
    torches = rows("torch", *(f"2.{minor}.0" for minor in range(count)))
    short = shown(*torches, *rows("onnxruntime-gpu", "1.31.1"))

    assert short[0] == "1.31.1"
    assert short[1 : SHORT + 1] == [f"torch 2.{minor}.0" for minor in range(SHORT)]
    assert short[SHORT + 1 :] == ([] if not hidden else short[-1:])
    assert len(shown(*torches, verbose=True)) == count
