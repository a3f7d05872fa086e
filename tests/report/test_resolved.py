"""Files that the matrix lacks, in words and as JSON."""

from __future__ import annotations

from ortgpu_fix.apply.chosen_wheels import ChosenWheel
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.wheels import PYPI, Wheel
from ortgpu_fix.report.resolved import resolved_json, resolved_sections

ROW = ChosenWheel(
    Wheel(
        name="protobuf",
        version="6.33.0",
        index_url=PYPI,
        file="protobuf-6.33.0-py3-none-any.whl",
        size=171_000,
        sha256="ab" * 32,
    ),
    "https://mirror.example.org/simple",
)
UNSIZED = ROW._replace(wheel=ROW.wheel._replace(name="packaging", size=0))


def test_each_file_with_index_and_hash() -> None:
    brief = plain(resolved_sections([ROW, UNSIZED], load_texts("en"))).splitlines()
    lines = plain(resolved_sections([ROW, UNSIZED], load_texts("en"), verbose=True)).splitlines()

    assert brief == [line for line in lines if "sha256" not in line]
    assert [line.split() for line in lines[1:]] == [
        ["+", "protobuf", "6.33.0", "from", "https://mirror.example.org/simple,", "171", "kB"],
        ["sha256:" + "ab" * 32],
        ["+", "packaging", "6.33.0", "from", "https://mirror.example.org/simple"],
        ["sha256:" + "ab" * 32],
    ]
    assert resolved_sections([], load_texts("en")) == ()


def test_the_rows_of_the_document() -> None:
    sized, unsized = resolved_json([ROW, UNSIZED])

    assert sized == {
        "name": "protobuf",
        "version": "6.33.0",
        "index": ROW.place,
        "file": ROW.wheel.file,
        "sha256": "ab" * 32,
        "size": 171_000,
    }
    assert unsized["size"] is None
    assert resolved_json([]) == []
