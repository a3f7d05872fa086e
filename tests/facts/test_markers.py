"""Markers, extras and requirements, with the values of this Python or of another machine."""

from __future__ import annotations

import time
from typing import Any

import pytest
from example_target import TARGET
from packaging.markers import Marker, default_environment

import synthetic
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.markers import (
    is_in_force,
    marker_environment,
    marker_holds,
    target_markers,
)
from ortgpu_fix.versions import requirement

MARKERS = marker_environment(from_json(example_machine()))


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a ; os_name == 'nt'", False), ("a ; extra == 'x'", False), ("a ; 'x' in extras", False)],
)
def test_a_marker_that_compares_nothing_is_not_in_force(line: str, *, expected: bool) -> None:
    parsed = requirement(line)

    assert parsed is not None
    assert is_in_force(parsed, MARKERS, "") is expected


def test_a_name_that_packaging_does_not_know_is_not_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """packaging 26.0 to 26.2 look `extras` up among the names of metadata."""

    def evaluate(_: Marker, environment: dict[str, str]) -> bool:
        raise KeyError("extras", environment)

    monkeypatch.setattr(Marker, "evaluate", evaluate)

    never_asked = f"'{time.monotonic_ns()}' in extras"  # answers are kept
    assert marker_holds(never_asked, MARKERS) is False


def test_a_python_that_was_built_between_releases_has_markers_too() -> None:
    markers = marker_environment(synthetic.machine(version="3.13.0+"))
    found = {
        name: is_in_force(parsed, markers, "")
        for name in ("python_full_version", "implementation_version", "platform_release")
        if (parsed := requirement(f"a ; {name} >= '3.8'")) is not None
    }

    assert found == {
        "python_full_version": True,
        "implementation_version": False,
        "platform_release": False,
    }


def test_a_marker_that_is_nested_too_deep_is_none() -> None:
    assert requirement("a ; " + "(" * 50_000 + "os_name == 'x'" + ")" * 50_000) is None


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (
            synthetic.machine(),
            {
                "os_name": "posix",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": "x86_64",
                "platform_python_implementation": "CPython",
                "implementation_name": "cpython",
                "implementation_version": "3.11.7",
                "python_full_version": "3.11.7",
                "python_version": "3.11",
            },
        ),
        (
            synthetic.machine("windows", None, version="3.12.1"),
            {
                "os_name": "nt",
                "sys_platform": "win32",
                "platform_system": "Windows",
                "platform_machine": "AMD64",
                "python_version": "3.12",
            },
        ),
        (
            synthetic.machine(implementation="pypy"),
            {"platform_python_implementation": "PyPy", "implementation_name": "pypy"},
        ),
    ],
)
def test_what_a_marker_compares_with(machine: object, expected: dict[str, str]) -> None:
    found = marker_environment(machine)  # type: ignore[arg-type]

    assert {name: found[name] for name in expected} == expected
    assert found.keys() == {*default_environment(), "extra"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {"version": "3.8.18", "implementation": "pypy"},
            {
                "python_version": "3.8",
                "python_full_version": "3.8.18",
                "implementation_version": "3.8.18",
                "implementation_name": "pypy",
                "platform_python_implementation": "PyPy",
            },
        ),
        (
            {"platform": "win-amd64"},
            {"os_name": "nt", "sys_platform": "win32", "platform_machine": "AMD64"},
        ),
        ({"platform": "linux-arm64"}, {"platform_machine": "aarch64", "os_name": "posix"}),
    ],
)
def test_the_target_s_python_counts_not_ours(
    changed: dict[str, Any], expected: dict[str, str]
) -> None:
    found = target_markers(TARGET._replace(**changed))

    assert {name: found[name] for name in expected} == expected
