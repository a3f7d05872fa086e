"""Reading pip's answer again, with the markers of another machine."""

from __future__ import annotations

import synthetic
from ortgpu_fix.facts.markers import follow_requirements, marker_environment

LINUX = marker_environment(synthetic.facts())
WINDOWS = LINUX | {"sys_platform": "win32", "os_name": "nt", "platform_system": "Windows"}
KNOWN = {
    "humanfriendly": ['pyreadline3 ; sys_platform == "win32"', 'uvloop ; sys_platform == "linux"'],
    "uvloop": [],
    "toolkit": ["base", 'cublas ==1 ; extra == "cublas"', 'nvcc ; extra == "nvcc"'],
    "base": ["toolkit"],
    "cublas": [],
    "nvcc": [],
}


def test_what_only_the_other_machine_needs_is_missing_and_the_rest_too_much() -> None:
    there = follow_requirements(["humanfriendly"], KNOWN, WINDOWS)

    assert there.names == {"humanfriendly"}
    assert there.missing == ("pyreadline3",)


def test_on_the_machine_at_hand_nothing_changes() -> None:
    here = follow_requirements(["humanfriendly>=9"], KNOWN, LINUX)

    assert here.names == {"humanfriendly", "uvloop"}
    assert here.missing == ()


def test_extras_are_followed_where_they_are_asked_for() -> None:
    found = follow_requirements(["Toolkit[cublas]==1"], KNOWN, LINUX)

    assert found.names == {"toolkit", "base", "cublas"}


def test_a_missing_requirement_keeps_its_extras_and_its_versions() -> None:
    found = follow_requirements(
        ["other[b,a]>=2 ; python_version > '3'", "no requirement at all"], {}, LINUX
    )

    assert found.missing == ("other[a,b]>=2",)


def test_all_that_is_asked_for_is_followed_whatever_of_it_is_missing() -> None:
    found = follow_requirements(["toolkit[nvcc]", "humanfriendly", "other"], KNOWN, LINUX)

    assert found.names == {"toolkit", "base", "nvcc", "humanfriendly", "uvloop"}
    assert found.missing == ("other",)
