"""The values of markers are those that the target's own Python would give (PEP 508)."""

from __future__ import annotations

from typing import Any

import pytest
from example_target import TARGET
from packaging.markers import default_environment

import synthetic
from ortgpu_fix.facts.markers import marker_environment, target_markers


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
        (synthetic.machine("windows", None, "aarch64"), {"platform_machine": "aarch64"}),
        (synthetic.machine(name="aarch64"), {"platform_machine": "aarch64"}),
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


def test_those_of_an_environment_are_those_of_its_facts() -> None:
    assert target_markers(TARGET) == marker_environment(synthetic.machine())


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
        ({"implementation": "graalpy"}, {"platform_python_implementation": "graalpy"}),
        (
            {"platform": "win-amd64"},
            {"os_name": "nt", "sys_platform": "win32", "platform_machine": "AMD64"},
        ),
        ({"platform": "linux-arm64"}, {"platform_machine": "aarch64", "os_name": "posix"}),
        ({"platform": "linux-riscv64"}, {"platform_machine": "riscv64"}),
    ],
)
def test_the_target_s_python_counts_not_ours(
    changed: dict[str, Any], expected: dict[str, str]
) -> None:
    found = target_markers(TARGET._replace(**changed))

    assert {name: found[name] for name in expected} == expected
