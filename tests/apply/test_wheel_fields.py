"""The fields of METADATA and WHEEL: a wheel written by any tool is read."""

from __future__ import annotations

import pytest

from ortgpu_fix.apply.wheel_contents import Member, requirements_in, wheel_contents
from ortgpu_fix.errors import Error

INFO = "stand_in-1.0.dist-info"
NAMES = ("a.py", f"{INFO}/METADATA", f"{INFO}/WHEEL", f"{INFO}/RECORD")
METADATA = "Name: stand-in\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"


def outcome(metadata: str = METADATA, wheel: str = WHEEL) -> str:
    """Return what is wrong with a wheel, or `read`."""
    members = [Member(name=name, size=3, mode=0) for name in NAMES]
    texts = {
        "METADATA": metadata,
        "WHEEL": wheel,
        "RECORD": "".join(f"{name},,\n" for name in NAMES),
    }
    try:
        found = wheel_contents("stand_in-1.0-py3-none-any.whl", 1000, members, texts)
    except Error as error:
        return str(error.values["part"])
    assert (found.name, found.size) == ("stand-in", 12)
    return "read"


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (METADATA, "read"),
        ("NAME : Stand_In\r\nversion:1.0.0\r\n", "read"),
        ("name\nversion\n" + METADATA, "read"),  # a line without a colon is no field
        (METADATA + "\nName: other\n", "read"),  # nor is one of the description
        ("Name: other\n" + METADATA, "METADATA"),  # the first counts
        ("\n\n" + METADATA, "METADATA"),
        ("Name: stand-in\n", "METADATA"),
        ("Name: stand-in\nVersion: 1.1\n", "METADATA"),
        ("", "METADATA"),
    ],
)
def test_name_and_version(metadata: str, found: str) -> None:
    assert outcome(metadata) == found


@pytest.mark.parametrize(
    ("wheel", "found"),
    [
        (WHEEL, "read"),
        ("wheel-version : 1.9\n", "read"),
        ("Wheel-Version: 2.0\nRoot-Is-Purelib: true\n", "WHEEL"),
        ("Wheel-Version: 10\n", "WHEEL"),
        ("Root-Is-Purelib: true\n", "WHEEL"),
        ("", "WHEEL"),
    ],
)
def test_the_version_of_the_format(wheel: str, found: str) -> None:
    assert outcome(wheel=wheel) == found


def test_a_requirement_may_go_on_in_the_next_line() -> None:
    text = "Requires-Dist: a>=1;\n  python_version>'3'\nRequires-Dist: b\r\n\tc\n\nRequires-Dist: d"

    assert requirements_in(text) == ("a>=1; python_version>'3'", "b c")
