"""Texts that people pass: several are read as one."""

from __future__ import annotations

from pathlib import Path

from ortgpu_fix.cli.text_files import MOST, place, read_text, read_texts
from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search

FAILED = "with error: libcublasLt.so.12: cannot open shared object file\n"


def test_each_line_is_told_with_its_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    one.write_text("started\nended")
    other.write_text(FAILED)
    search = Search(parse_failures(load_table("failures")))
    begins, text = read_texts([str(one), str(other)], search)
    [found] = search.explanations()

    assert place(begins, found.line_number) == f"{other}:1"
    assert place(begins[:1], 2) == f"{one}:2"
    assert text.split("\n") == ["started", "ended", *FAILED.split("\n")]


def test_of_a_text_of_any_length_a_part_is_read(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("x" * (MOST + 7))

    assert len(read_text(str(file))) == MOST
