"""The version of the placeholder: of the release, or of what packages pin and PyPI has for CPUs."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from told import values_of

import synthetic
from ortgpu_fix.companions.build import build_companions
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()


def app(*requires: str, name: str = "app", **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1", "requires": list(requires), **more}


def planned(*packages: Any, driver: str = "13.0", **options: Any) -> Plan:
    document = synthetic.document(*packages, driver=driver)
    document["python"]["autoload"] = True
    facts = from_json(document)
    return resolve(facts, PlanOptions(**options), MATRIX)


def answer(*packages: Any, **more: Any) -> tuple[str | None, str]:
    """Return the release that is taken, and the version of the placeholder."""
    made = planned(*packages, **more)
    return made.release, made.placeholder


@pytest.mark.parametrize(
    ("requires", "found"),
    [
        # What the releases 1.18.0, 1.23.0, 1.26.0 and 1.31.0 answer.
        (["onnxruntime>=1.20"], ("1.31.0", "1.31.0")),
        (["onnxruntime==1.26.3"], ("1.26.0", "1.26.3+ortgpu")),
        (["onnxruntime<1.27,>=1.26.1"], ("1.26.0", "1.26.1+ortgpu")),
        # Another minor version is allowed, too: that is the answer.
        (["onnxruntime<=1.26.3,!=1.26.0"], ("1.23.0", "1.23.0")),
        # Of that minor version there is nothing.
        (["onnxruntime==1.24.3"], (None, "")),
        # `===` compares the label, too (PEP 440).
        (["onnxruntime===1.26.3"], (None, "")),
        # The placeholder is named onnxruntime, and nothing else.
        (["onnxruntime-gpu==1.26.3"], (None, "")),
        # Two that exclude one another.
        (["onnxruntime==1.26.3", "onnxruntime==1.26.2"], (None, "")),
    ],
)
def test_an_exact_pin_is_answered_within_its_minor_version(
    requires: list[str], found: tuple[str | None, str]
) -> None:
    assert answer(app(*requires)) == found


def test_the_label_meets_the_pin_that_it_stands_for() -> None:
    made = planned(app("onnxruntime==1.26.3"))
    [placeholder] = [row for row in made.companions if row.name == "onnxruntime"]

    assert SpecifierSet("==1.26.3").contains(placeholder.version)
    wheels = {
        row.name: row
        for row in build_companions(made.selection, MATRIX, "linux_x86_64", {}, made.placeholder)
    }
    assert wheels["onnxruntime"].version == "1.26.3+ortgpu"
    assert b"Requires-Dist: onnxruntime-gpu==1.26.0" in wheels["onnxruntime"].content


def test_where_a_build_of_the_pinned_release_is_made_for_this_python_none_stands_for_it() -> None:
    """1.26.0 exists, and needs a newer driver: nothing else is quietly taken for it."""
    assert answer(app("onnxruntime==1.26.0"), driver="11.8") == (None, "")


def test_with_a_permission_the_fewest_requirements_are_broken() -> None:
    """1.31.0 would break both of them, 1.26.0 the pin alone."""
    other = app("onnxruntime-gpu<1.27", name="other")
    made = planned(app("onnxruntime==1.24.3"), other, "onnxruntime 1.24.3", conflicts=True)

    assert made.release == "1.26.0"
    [told] = [row for row in made.findings if row.code == "would-conflict"]
    assert values_of(told) == {"by": "app 1 (onnxruntime==1.24.3)"}


@pytest.mark.parametrize(
    ("version", "of", "stays"),
    [
        ("1.26.3+ortgpu", "1.26.0", True),
        ("1.26.3+ortgpu", "1.23.0", False),
        ("1.16.3+ortgpu", "1.26.0", False),
    ],
)
def test_the_placeholder_of_a_pin_that_only_a_file_has_stays(
    version: str,
    of: str,
    stays: bool,  # noqa: FBT001
) -> None:
    """`--check` knows nothing of the requirements file for which it was installed."""
    needs = [f"onnxruntime-gpu=={of}"]
    placeholder = {"name": "onnxruntime", "version": version, "provided": True, "requires": needs}
    rows = ["nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0", "onnxruntime-gpu 1.26.0"]
    rows += ["flatbuffers 25.2.10", "numpy 2.4.6"]
    made = planned(app("onnxruntime>=1.17"), placeholder, *rows)

    coming = [row.version for row in made.companions if row.name == "onnxruntime"]
    assert coming == ([] if stays else ["1.26.0"])
