"""Requirements and markers of metadata, whatever they are."""

from __future__ import annotations

import pytest

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
    ],
)
def test_a_marker_that_compares_nothing_is_not_in_force(line: str, *, expected: bool) -> None:
    parsed = requirement(line)

    assert parsed is not None
    assert is_in_force(parsed, MARKERS, "") is expected


def test_a_marker_that_is_nested_too_deep_is_none() -> None:
    assert requirement("a ; " + "(" * 50_000 + "os_name == 'x'" + ")" * 50_000) is None
