"""The Visual C++ runtime in plans for Windows, on the invented matrix.

1.26.0 was linked by MSVC 14.40; there are wheels of the runtime up to 14.42 for Python 3.11, up to
14.40 for 3.10, and none for 3.12.
"""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve


def parsed(tables: dict[str, Any]) -> Matrix:
    return matrix_parse.parse(tables, "", {"__init__.py": "", "load.py": ""})


MATRIX = parsed(synthetic.windows_tables())
WHOLE = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.28.0",
    "numpy 2.2.6",
    "flatbuffers 25.0",
)
TOO_OLD, SUFFICES = "14.38.33135.0", "14.40.33810.0"


def plan(
    *packages: str | dict[str, Any],
    runtime: str | None = None,
    listed: bool = True,
    searched: bool = True,
    matrix: Matrix = MATRIX,
    **machine: Any,
) -> Plan:
    """Plan for a Windows whose `msvcp140.dll` has the version `runtime`."""
    library = {"name": "MSVCP140.dll", "path": "C:\\Windows\\System32\\MSVCP140.dll"}
    document = synthetic.document(*packages, **machine)
    document["platform"] = {"system": "windows", "machine": "x86_64", "libc": None}
    other = {"name": "zlibwapi.dll", "path": "C:\\zlibwapi.dll", "version": "1.2.3.0"}
    document["libraries"] = [other, library | {"version": runtime}] if listed else [other]
    document["sources"] = {"libraries": "search"} if searched else {}
    return resolve(facts_json.from_json(document), PlanOptions(), matrix)


def brought(made: Plan) -> list[str]:
    """Return the runtime that the plan installs; what it installs is selected."""
    found = [wheel for wheel in made.install if wheel.name == "msvc-runtime"]

    assert set(found) <= set(made.selection)
    return [wheel.version for wheel in found]


def codes(made: Plan) -> list[str]:
    """Return the findings on the runtime, each of which has its words in both languages."""
    found = [finding for finding in made.findings if finding.code.startswith("msvc")]
    for texts in (load_texts("en"), load_texts("zh")):
        assert all(
            "1.26.0" in texts.summary(row) or "1.31.0" in texts.summary(row) for row in found
        )
        assert all(texts.remedy(row) for row in found)
    return [finding.code for finding in found]


@pytest.mark.parametrize("version", ["14.40", "14.51.36231.0", None])
def test_a_runtime_that_is_as_new_as_the_build_tools_is_left_alone(version: str | None) -> None:
    made = plan("onnxruntime 1.22.1", runtime=version)

    assert made.verdict == "fixable"
    assert brought(made) == []
    assert codes(made) == []
    assert plan(*WHOLE, runtime=version).verdict == "healthy"


def test_a_runtime_that_is_too_old_is_mended_by_its_newest_wheel() -> None:
    made = plan(*WHOLE, runtime=TOO_OLD)
    [finding] = [row for row in made.findings if row.code == "msvc-old"]
    said = load_texts("en").summary(finding)

    assert made.verdict == "fixable"
    assert brought(made) == ["14.42.34433"]
    assert [wheel.name for wheel in made.install] == ["msvc-runtime"]
    assert "14.38.33135.0 (C:\\Windows\\System32\\MSVCP140.dll)" in said
    assert "onnxruntime-gpu 1.26.0 needs 14.40" in said


def test_a_runtime_that_is_not_there_is_brought() -> None:
    made = plan(*WHOLE, listed=False)

    assert (made.verdict, brought(made)) == ("fixable", ["14.42.34433"])
    assert codes(made) == ["msvc-absent"]


def test_a_runtime_that_is_not_known_comes_only_with_other_wheels() -> None:
    alone = plan(*WHOLE, listed=False, searched=False)
    others = plan(*WHOLE[:2], listed=False, searched=False)

    assert (alone.verdict, brought(alone)) == ("healthy", [])
    assert "msvc-runtime" not in {wheel.name for wheel in alone.selection}
    assert brought(others) == ["14.42.34433"]
    assert "why-msvc" in {reason.code for reason in others.why}
    assert codes(alone) == codes(others) == []
    there = plan(*WHOLE[:2], "msvc-runtime 14.40.33807", listed=False, searched=False)
    assert "why-msvc" not in {reason.code for reason in there.why}
    old = plan(*WHOLE[:2], runtime=TOO_OLD)
    assert "why-msvc" not in {reason.code for reason in old.why}  # a finding says it


def test_what_has_no_wheel_is_said_and_not_refused() -> None:
    old = plan(*WHOLE, runtime=TOO_OLD, python="3.12.1")
    absent = plan(*WHOLE, listed=False, python="3.12.1")

    assert (old.verdict, codes(old)) == ("healthy", ["msvc-old-by-hand"])
    assert (absent.verdict, codes(absent)) == ("healthy", ["msvc-absent-by-hand"])


@pytest.mark.parametrize("runtime", [TOO_OLD, SUFFICES])
def test_a_runtime_that_was_installed_is_kept(runtime: str) -> None:
    made = plan(*WHOLE, "msvc-runtime 14.40.33807", runtime=runtime)

    assert made.verdict == "healthy"
    assert ("msvc-runtime", "14.40.33807") in {(row.name, row.version) for row in made.selection}
    assert codes(made) == []


def test_a_release_whose_build_tools_are_not_known_wants_no_runtime() -> None:
    tables = synthetic.windows_tables()
    for row in tables["onnxruntime"]["build"]:
        row.pop("toolset")
    made = plan("onnxruntime 1.22.1", matrix=parsed(tables), listed=False)

    assert brought(made) == []
    assert codes(made) == []


def test_an_installed_runtime_that_is_damaged_comes_again() -> None:
    damaged = {"name": "msvc-runtime", "version": "14.40.33807", "intact": False}

    assert brought(plan(*WHOLE, damaged, runtime=TOO_OLD)) == ["14.42.34433"]


def test_a_plan_done_is_healthy_and_its_companion_loads_the_runtime() -> None:
    made = plan("onnxruntime 1.22.1", "numpy 2.2.6", "flatbuffers 25.0", runtime=TOO_OLD)
    loader, stand_in = made.companions
    after: list[str | dict[str, Any]] = [f"{row.name} {row.version}" for row in made.selection]
    after.append(f"{loader.name} {loader.version}")
    after.append({"name": stand_in.name, "version": stand_in.version, "provided": True})
    again = plan(*after, "numpy 2.2.6", "flatbuffers 25.0", runtime=TOO_OLD)

    assert again.verdict == "healthy"
    assert (loader.name, stand_in.name) == ("ortgpu-fix-libraries", "onnxruntime")
