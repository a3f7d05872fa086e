"""The bytes of a log: encodings, and logs that are too long to hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.matcher import PASTED, explain_log
from ortgpu_fix.explain.novelty import MOST_ALIKE, Novelty
from ortgpu_fix.explain.reading import PIECE, text_of

TABLE = parse_failures(load_table("failures"))
LINE = "CUDA failure 209: no kernel image is available for execution on the device"
LOG = f"an ordinary line 1\nそうです, bien sûr\n{LINE}\n"


def blocks(log: bytes, size: int) -> Iterator[bytes]:
    return (log[at : at + size] for at in range(0, len(log), size))


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"], ids=str
)
def test_a_log_is_read_in_its_encoding_with_or_without_a_mark(encoding: str, size: int) -> None:
    """PowerShell 5 writes UTF-16; some programs leave its mark out."""
    read = text_of(blocks(LOG.encode(encoding), size))

    assert isinstance(read, str)
    assert read.removeprefix("\ufeff") == LOG


def test_what_is_no_text_is_read_as_well_as_it_can_be() -> None:
    read = text_of([b"\xff\xfe\xff", LINE.encode(), b"\xc3"])
    assert isinstance(read, str)
    assert text_of([]) == ""
    assert text_of([b"\xc3\x28" + LINE.encode()]) == f"\ufffd({LINE}"


@given(st.binary(max_size=200))
def test_no_bytes_raise(log: bytes) -> None:
    assert isinstance(text_of([log]), str)


@pytest.mark.parametrize("line", ["an ordinary line 12345\n", "no end of a line at all; "])
def test_a_long_log_comes_in_pieces_and_says_the_same(line: str) -> None:
    filler = line * (PASTED // len(line))
    log = f"{filler}\n{LINE}\n{filler}"
    read = text_of(blocks(log.encode(), 1 << 16))

    assert not isinstance(read, str)
    pieces = list(read)
    assert max(map(len, pieces)) <= PIECE + PASTED
    (found,) = explain_log(pieces, TABLE)
    assert found == explain_log(log, TABLE)[0]
    assert found.line_number == filler.count("\n") + 2


def test_a_long_log_that_ends_with_a_line_ends_with_a_piece() -> None:
    log = "an ordinary line\n" * (PASTED // 16)

    assert list(text_of([log.encode()])) == [log]


def test_a_failure_where_pieces_meet_is_seen() -> None:
    """Of a line without an end the pieces overlap."""
    for shift in range(0, 200, 40):
        log = "x" * (PIECE + PASTED - shift) + LINE + "y" * PASTED
        pieces = text_of(blocks(log.encode(), 1 << 16))
        assert [each.code for each in explain_log(pieces, TABLE)] == ["no-kernel-image"]


def test_what_differs_in_a_digit_is_not_taken_for_what_was_seen() -> None:
    """Lines of a long log that told nothing are not looked at again, those that told are."""
    filler = "".join(f"GET /v1/{number:08x} 200 {number} ms\n" for number in range(40_000))
    missing = "with error: libcudnn.so.{}: cannot open shared object file: No such file\n"
    pieces = [
        *(filler + missing.format(8), filler, filler + "done\n"),
        *(filler + missing.format(9) + "fatal: " + LINE + "\n", filler),
    ]
    found = explain_log(iter(pieces), TABLE)

    lines = filler.count("\n")
    assert {each.code: each.line_number for each in found} == {
        "cudnn-8-missing": lines + 1,
        "cudnn-9-missing": 4 * lines + 3,
        "no-kernel-image": 4 * lines + 4,
    }


def test_lines_that_told_nothing_are_left_out_until_too_many_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ortgpu_fix.explain.novelty.MOST_LINES", 2)
    novelty = Novelty()

    def looked_at(piece: str) -> str:
        text = novelty.lines(piece).text
        novelty.done()
        return text

    assert looked_at("one 1\ntwo 2") == "one 1\ntwo 2"
    assert looked_at("one 3\ntwo 4") == ""
    assert looked_at("three\nfour") == "three\nfour"
    assert looked_at("three\nfour") == "three\nfour"


def test_places_that_differ_in_their_numbers_alone_are_looked_at_so_often_and_no_more() -> None:
    alike = "".join(f"at {number}: failed\n" for number in range(2 * MOST_ALIKE))
    novelty = Novelty()

    windows = novelty.windows(f"{alike}then it failed otherwise\n", "failed", 0)

    assert len(windows) == MOST_ALIKE + 1
    assert windows[-1][0] == len(alike)
    assert novelty.windows(alike, "failed", 0) == []


WATCHED = """
import re, resource, sys
from pathlib import Path
from ortgpu_fix.__main__ import main

code = main(sys.argv[1:])
most = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(most, resource.getrusage(resource.RUSAGE_SELF).ru_utime, file=sys.stderr)
sys.exit(code)
"""
"""Runs a command and tells its memory itself: what is measured of a child begins with ours."""


@pytest.mark.slow
@pytest.mark.untraced
def test_a_log_of_a_gigabyte_takes_little_memory_and_seconds(tmp_path: Path) -> None:
    """Measured in a process of its own: its most memory, and the time that it worked."""
    import subprocess
    import sys

    kinds = [
        "2026-11-21 10:19:28.123456 INFO a line with onnxruntime and cuda in it\n",
        "GET /v1/models/detect 200 12.3 ms cudnn libcublas CUDAExecutionProvider\n",
    ]
    some = "".join(kinds) * 7_000
    path = tmp_path / "large.log"
    with path.open("w") as file:
        for _ in range(1_000_000_000 // len(some)):
            file.write(some)
        file.write(f"{LINE}\n")
    argv = [sys.executable, "-c", WATCHED, "explain", str(path), "--text-only", "--json"]

    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    most_kb, seconds = done.stderr.split()

    assert '"no-kernel-image"' in done.stdout
    assert int(most_kb) < 100_000
    assert float(seconds) < 10  # 3 were measured


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
@pytest.mark.parametrize(
    "around",
    [
        "",
        "在 D:\\用户\\一号\\模型\\人脸识别\\ 中加载失败，请检查驱动程序与运行库是否一致\r\n" * 40,
        "一" * 50 + "\r\n",
    ],
)
def test_a_log_with_chinese_words_and_paths_needs_no_mark(around: str, encoding: str) -> None:
    log = f'{around}Error loading "D:\\用户\\一\\x.dll" which depends on "cudnn64_9.dll"\r\n'

    assert text_of([log.encode(encoding)]) == log


@pytest.mark.parametrize("log", [b"a\0\0\0\0\n" * 3 + b"words of a log\n" * 20, b"\0" * 100, b"\0"])
def test_zeros_in_a_log_make_it_no_other_encoding(log: bytes) -> None:
    assert text_of([log]) == log.decode()
