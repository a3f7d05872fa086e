"""The fields of METADATA and WHEEL: a wheel written by any tool is read."""

from __future__ import annotations

import pytest

from ortgpu_fix.apply.wheel_contents import Member, wheel_contents
from ortgpu_fix.errors import Error
from ortgpu_fix.evidence.metadata import all_requirements

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
        ("NAME: Stand_In\r\nversion:1.0.0\r\n", "read"),
        ("Name : stand-in\nVersion: 1.0\n", "METADATA"),  # as pip reads it: no field,
        ("name\n" + METADATA, "METADATA"),  # after a line without a colon comes the description
        ("Name: other\n" + METADATA, "METADATA"),  # the first counts
        ("Name: stand-in\nVersion: 1.1\n", "METADATA"),
    ],
)
def test_name_and_version(metadata: str, found: str) -> None:
    assert outcome(metadata) == found


@pytest.mark.parametrize(
    ("wheel", "found"),
    [
        (WHEEL, "read"),
        ("wheel-version: 1.9\n", "read"),
        ("Wheel-Version: 2.0\nRoot-Is-Purelib: true\n", "WHEEL"),
        ("Wheel-Version: 10\n", "WHEEL"),
    ],
)
def test_the_version_of_the_format(wheel: str, found: str) -> None:
    assert outcome(wheel=wheel) == found


def test_a_requirement_may_go_on_in_the_next_line() -> None:
    text = "Requires-Dist: a>=1;\n  python_version>'3'\nRequires-Dist: b\r\n\tc\n\nRequires-Dist: d"

    assert all_requirements(text) == ["a>=1; python_version>'3'", "b c"]


@pytest.mark.parametrize("separator", ["\u2028", "\x0b"])
def test_a_line_ends_where_it_does_for_pip(separator: str) -> None:
    text = f"{METADATA}Summary: x{separator}Requires-Dist: evil\nRequires-Dist: a{separator}b\n"

    assert all_requirements(text) == [f"a{separator}b"]
    assert outcome(text) == "read"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Requires-Dist",
        "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\nContent-Type: x/y\n" * 9_000,
        "".join(f"a{number}: b\n" for number in range(50_000)),
    ],
)
def test_whatever_is_in_it_is_read_at_once(text: str) -> None:
    assert all_requirements(f"{text}\n\nRequires-Dist: evil")[1:] == []
