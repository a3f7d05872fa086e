"""Of whom a thread tells: the machine and the failure of one person are not another's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ortgpu_fix.cli import text_files
from ortgpu_fix.cli.text_files import machine_of, read_texts
from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search
from ortgpu_fix.log_lines.reading import of_one_author
from ortgpu_fix.pasted.reader import MachineReader

TABLE = parse_failures(load_table("failures"))
FAILED = "with error: libcublasLt.so.12: cannot open shared object file\n"
ASKED = f"It fails on Linux Mint 22:\n{FAILED}"
OTHER = "Same here: CUDA failure 35: CUDA driver version is insufficient. Windows 11, RTX 4090\n"
MORE = "I have driver 535.104.12\n"
HEAD = "alice commented on Dec 11, 2025\n\n"


def told(folder: Path, text: str) -> dict[str, tuple[str, int]]:
    """Return the codes and the machine that `explain` reads of a text, each with its line."""
    file = folder / "thread.txt"
    file.write_text(text, "utf-8")
    search, reader = Search(TABLE), MachineReader()
    read_texts([str(file)], reader, search)
    rows = {each.code: (each.code, each.line_number) for each in search.explanations()}
    facts = {each.fact: (each.value, each.line) for each in machine_of(reader).told}
    return rows | facts


MISSING = {"cuda-12-libraries-missing": ("cuda-12-libraries-missing", 2)}


@pytest.mark.parametrize(
    "head",
    [
        *("alice commented", "@alice commented on Dec 11, 2025", "alice commented Dec 11, 2025"),
        *("alice commented 3 days ago", "alice commented last week", "alice commented yesterday"),
        *(
            "alice\ncommented\non Dec 11, 2025",
            "a-l.ice_1 commented on Dec 9 • edited",
            "author:\talice",
        ),
        *("alice opened this issue on May 1 · 5 comments", "alice commented on Dec 11\r"),
    ],
)
def test_what_another_wrote_in_a_thread_is_none_of_the_askers(tmp_path: Path, head: str) -> None:
    found = told(tmp_path, f"{ASKED}\n{head}\n\n{OTHER}")

    assert found == {**MISSING, "system": ("Linux Mint 22", 1)}


@pytest.mark.parametrize(
    "line",
    [
        *("I commented out the line", "alice commented.", "alice closed this on Dec 11, 2025"),
        *("As alice commented on Dec 11, 2025", "alice commented on the code", "author: alice"),
    ],
)
def test_what_is_no_head_cuts_no_text(tmp_path: Path, line: str) -> None:
    assert told(tmp_path, f"{ASKED}\n{line}\n{OTHER}").keys() > {"driver-too-old", *MISSING}


def test_the_asker_may_tell_more_below_others(tmp_path: Path) -> None:
    bob = "bob opened on Dec 10, 2025\n"
    thread = (
        f"{bob}It fails\n{HEAD}{OTHER}bob commented\n\n{FAILED}{HEAD}{MORE}bob commented\n{MORE}"
    )
    found = told(tmp_path, thread)

    assert found["cuda-12-libraries-missing"][1] == 8
    assert found["driver"] == ("535.104.12", 13)
    assert {"driver-too-old", "gpus"}.isdisjoint(found)


def test_where_the_asker_shows_no_failure_the_next_does(tmp_path: Path) -> None:
    found = told(tmp_path, f"It fails on Windows 10\n{HEAD}{ASKED}carol commented\n{OTHER}")

    assert found["cuda-12-libraries-missing"][1] == 5
    assert found["system"] == ("Linux Mint 22", 4)
    assert "driver-too-old" not in found


def test_where_nobody_shows_a_failure_the_first_machine_counts(tmp_path: Path) -> None:
    thread = f"It fails\n{HEAD}On Linux Mint 22\ncarol commented\nmine is Windows 11, RTX 4090\n"
    assert told(tmp_path, thread) == {"system": ("Linux Mint 22", 4)}
    reader = MachineReader()
    read_texts([str(tmp_path / "thread.txt")], reader)
    assert [each.value for each in reader.seen if each.fact == "system"] == ["linux"]


def test_a_thread_in_which_nobody_tells_anything_is_read_whole(tmp_path: Path) -> None:
    assert told(tmp_path, f"It fails\n{HEAD}Yes\n") == {}


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ({}, {"author": {"login": "alice"}}),
        ({"user": {"login": "bob"}}, {"user": {"login": "alice"}}),
        ({"author": {"username": "bob"}}, {"author": {"username": "alice"}}),
        ({"username": "bob"}, {"username": "alice"}),
        ({"user": {"login": None, "username": "bob"}}, {"username": "alice"}),
        ({"author": None, "user": {"login": "bob"}}, {"user": {"login": "alice"}}),
    ],
)
def test_a_thread_as_json_names_who_wrote_what(
    tmp_path: Path, asked: dict[str, object], other: dict[str, object]
) -> None:
    thread = {
        "body": ASKED,
        "comments": [{"body": OTHER, **other}, {"body": MORE, **asked}],
        "title": "T",
        **asked,
    }
    found = told(tmp_path, json.dumps(thread))

    assert found.keys() == {*MISSING, "system", *(["driver"] if asked else [])}
    assert found["system"][0] == "Linux Mint 22"


@pytest.mark.parametrize("who", [7, {"login": 7}, {"name": "bob"}, {}, "", None])
def test_who_has_no_name_is_nobody(tmp_path: Path, who: object) -> None:
    thread = {"body": ASKED, "comments": [{"body": MORE, "user": who}]}
    assert told(tmp_path, json.dumps(thread))["driver"][0] == "535.104.12"


def test_a_failure_in_wrapped_lines_is_its_author_s(tmp_path: Path) -> None:
    wrapped = FAILED.replace("shared object", "shared\nobject")
    found = told(tmp_path, f"It fails\n{wrapped}\n{HEAD}{OTHER}")

    assert found.keys() == {*MISSING, "system"}


def test_the_last_line_needs_no_end() -> None:
    thread = f"It fails\n{HEAD}bob commented\nx"
    assert of_one_author(thread, {6}) == "\n\n\nbob commented\nx"
    assert of_one_author(thread, ()) == thread


def test_what_is_no_thread_is_not_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(text_files, "of_one_author")
    assert told(tmp_path, ASKED).keys() == {*MISSING, "system"}
