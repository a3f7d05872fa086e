"""Requirements and markers of metadata, whatever they are."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.markers import is_in_force, marker_environment
from ortgpu_fix.versions import requirement

MARKERS = marker_environment(from_json(example_machine()))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a", True),
        ("a ; os_name == 'posix'", True),
        ("a ; os_name == 'nt'", False),
        ("a ; extra == 'x'", False),
        ("a ; os_name ~= 'x'", False),
        ("a ; os_name === 'posix'", False),
        ("a ; 'x' in extras", False),  # a name of lock files alone
    ],
)
def test_a_marker_that_compares_nothing_is_not_in_force(line: str, *, expected: bool) -> None:
    parsed = requirement(line)

    assert parsed is not None
    assert is_in_force(parsed, MARKERS, "") is expected


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
