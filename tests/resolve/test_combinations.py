"""Two and three changes together, where no single one allows a release."""

from __future__ import annotations

from typing import Any

import synthetic
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
EN = load_texts("en")


def unlocks(*packages: Any, options: PlanOptions | None = None, **machine: Any) -> list[str]:
    """Return what is told, but for other indexes, with the gain first."""
    made = resolve(synthetic.facts(*packages, **machine), options or PlanOptions(), MATRIX)
    rows = [row for row in made.unlock if row.change.code != "ort-index"]
    return [f"{row.gains[0].version}: {EN.change(row).partition(';')[0]}" for row in rows]


def app(name: str, *requires: str) -> dict[str, Any]:
    return {"name": name, "version": "1", "requires": list(requires)}


OLD: dict[str, Any] = {"driver": "11.0", "gpus": ("9.0",)}
"""No build for CUDA 11 has code for 9.0."""


def test_a_driver_and_a_python_together() -> None:
    """Python 3.9 has no wheel, and the driver runs no CUDA that one is built for."""
    assert unlocks(python="3.9.1", **OLD) == ["1.31.0: Python 3.11 and driver >= 580.65.06"]


def test_two_packages_hold_a_release_together() -> None:
    rows = (app("one", "onnxruntime-gpu<1.17"), app("two", "onnxruntime<1.17"))

    assert unlocks(*rows, driver="13.0") == ["1.31.0: a version of one 1, two 1 that allows it"]


def test_a_package_and_a_driver_together() -> None:
    assert unlocks(app("one", "onnxruntime-gpu<1.17"), **OLD) == [
        "1.31.0: driver >= 580.65.06 and a version of one 1 that allows it"
    ]


def test_several_packages_are_one_permission_where_that_is_fewer_changes() -> None:
    for count in (2, 4):
        many = [app(name, "onnxruntime-gpu<1.17") for name in "abcd"[:count]]
        assert unlocks(*many, **OLD) == ["1.31.0: driver >= 580.65.06 and `--allow conflicts`"]


def test_where_one_change_is_enough_no_other_is_told_with_it() -> None:
    found = unlocks(**OLD)

    assert found
    assert not any(" and " in row for row in found)


def test_no_more_than_three_are_told() -> None:
    """A driver, a Python, a wish and a permission would be four."""
    many = [app(name, "onnxruntime-gpu<1.17") for name in "ab"]
    wish = PlanOptions(cuda="12", onnxruntime="==1.31.0")

    assert unlocks(*many, python="3.9.1", options=wish, **OLD) == []
    assert unlocks(*many, python="3.12.1", options=wish, **OLD) == [
        "1.31.0: driver >= 580.65.06 and without `--cuda` and `--allow conflicts`"
    ]


def test_what_was_wished_for_is_given_up_only_where_nothing_works() -> None:
    wish = PlanOptions(cuda="12")

    assert not any("without `--cuda`" in row for row in unlocks(driver="12.2", options=wish))
    assert unlocks(python="3.13.1", options=wish, **OLD) == [
        "1.31.0: driver >= 580.65.06 and without `--cuda`",
        "1.26.0: Python 3.12 and driver >= 525.60.13",
    ]
