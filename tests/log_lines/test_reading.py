"""The bytes of a log: encodings, and logs that are too long to hold."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import PASTED, explain_log
from ortgpu_fix.log_lines.patterns import Words
from ortgpu_fix.log_lines.reading import PIECE, text_of

TABLE = parse_failures(load_table("failures"))
LINE = "CUDA failure 209: no kernel image is available for execution on the device"
LOG = f"an ordinary line 1\nそうです, bien sûr\n{LINE}\n"


def blocks(log: bytes, size: int) -> Iterator[bytes]:
    return (log[at : at + size] for at in range(0, len(log), size))


@pytest.mark.parametrize("size", [1, 4096])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"], ids=str
)
def test_a_log_is_read_in_its_encoding_with_or_without_a_mark(encoding: str, size: int) -> None:
    """PowerShell 5 writes UTF-16; some programs leave its mark out."""
    read = text_of(blocks(LOG.encode(encoding), size))

    assert isinstance(read, str)
    assert read.removeprefix("\ufeff") == LOG


def test_a_log_with_a_blank_after_each_letter_is_read() -> None:
    """UTF-16 that was shown byte by byte: cubiq/ComfyUI_IPAdapter_plus#238."""
    shown = " ".join(LINE)
    ordinary = "a b c d e f g\n" + "0 1 2 3 4 5 6 7 8 9 " * 2 + "words\n"
    read = text_of([f"{ordinary}{shown}\nend\n".encode()])

    assert read == f"{ordinary}{LINE}\nend\n"


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


def test_a_failure_where_pieces_meet_is_seen() -> None:
    """Of a line without an end the pieces overlap."""
    for shift in (0, 80, 160):
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


@given(st.text(), st.text(alphabet="a9 |\n" + "ühx", min_size=1), st.text())
def test_what_stands_in_a_text_is_never_taken_to_be_missing(
    before: str, anchor: str, after: str
) -> None:
    assert Words(before + anchor + after).may_hold(anchor)


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
MOST_KB = 100_000
"""What a log of any size may take; an interpreter with our modules takes 35,000."""


def watched(path: Path) -> tuple[str, int, float]:
    """Return what is explained of a log, the most memory that this took in kB, and the time."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs Linux, which tells a process its most memory")
    argv = [sys.executable, "-c", WATCHED, "explain", str(path), "--text-only", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    most_kb, seconds = done.stderr.split()
    return done.stdout, int(most_kb), float(seconds)


def server_log(lines: int) -> str:
    """Return what a server writes: few kinds of lines, many names, hardly one line twice."""
    chance = random.Random(18)  # noqa: S311 - the same log each time
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = ["".join(chance.choices(letters, k=chance.randint(3, 11))) for _ in range(5_000)]

    def words(count: int) -> str:
        return " ".join(chance.choices(names, k=count))

    kinds: list[tuple[int, Callable[[], str]]] = [
        (40, lambda: f'"POST /v1/{words(1)}/{chance.randrange(10**6)} HTTP/1.1" 200'),
        (30, lambda: f"INFO request={chance.getrandbits(128):032x} took={chance.random():.3f}"),
        (10, lambda: f"DEBUG {words(1)}.{words(1)}: onnxruntime cache hit {chance.random()}"),
        (10, lambda: f'{{"level":"info","n":{chance.random()},"msg":"{words(8)}"}}'),
        (5, lambda: f"WARNING {words(12)}"),
        (4, lambda: f'  File "/opt/{words(1)}/{words(1)}.py", line 7, in {words(1)}'),
        (1, lambda: f"{words(1)}.onnx with CUDAExecutionProvider, cudaError 0"),
    ]
    weights = [weight for weight, _ in kinds]
    chosen = chance.choices([make for _, make in kinds], weights, k=lines)
    return "".join(
        f"2026-11-21T10:{number % 3600 // 60:02}:{number % 60:02}.{number % 997:03} {make()}\n"
        for number, make in enumerate(chosen)
    )


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.untraced
@pytest.mark.parametrize(
    ("encoding", "make"),
    [
        ("utf-8", lambda log: log.replace("\n", "; ")),  # no line ends
        ("utf-16", lambda log: log),
    ],
    ids=["one line", "UTF-16"],
)
def test_the_memory_that_a_log_takes_does_not_grow_with_it(
    tmp_path: Path, encoding: str, make: Callable[[str], str]
) -> None:
    path = tmp_path / "large.log"
    with path.open("w", encoding=encoding) as file:
        some = make(server_log(100_000))
        for _ in range(60_000_000 // len(some)):
            file.write(some)
        file.write(f"\n{LINE}\n")

    explained, most_kb, _ = watched(path)

    assert '"no-kernel-image"' in explained
    assert most_kb < MOST_KB


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
@pytest.mark.parametrize(
    "around",
    ["", "在 D:\\用户\\一号\\模型\\人脸识别\\ 中加载失败，请检查驱动程序与运行库是否一致\r\n" * 40],
)
def test_a_log_with_chinese_words_and_paths_needs_no_mark(around: str, encoding: str) -> None:
    log = f'{around}Error loading "D:\\用户\\一\\x.dll" which depends on "cudnn64_9.dll"\r\n'

    assert text_of([log.encode(encoding)]) == log


@pytest.mark.parametrize("log", [b"a\0\0\0\0\n" * 3 + b"words of a log\n" * 20, b"\0" * 100])
def test_zeros_in_a_log_make_it_no_other_encoding(log: bytes) -> None:
    assert text_of([log]) == log.decode()


GITHUB = {
    "title": "It runs on the CPU",
    "number": 7,
    "body": f"On an A100:\r\n```\r\n{LINE}\r\n```",
    "comments": [{"author": {"login": "a"}, "body": "driver 535.104.12"}, {"body": None}],
}


@pytest.mark.parametrize("thread", [GITHUB, [GITHUB], {"data": {"issue": GITHUB}}])
def test_of_a_document_of_json_its_texts_are_read(thread: object) -> None:
    read = text_of([json.dumps(thread).encode()])

    assert read == f"{GITHUB['title']}\n\n{GITHUB['body']}\n\na\n\ndriver 535.104.12"
    [found] = explain_log(read, TABLE)
    assert (found.code, found.line) == ("no-kernel-image", LINE)


@pytest.mark.parametrize("text", [f'{{"body": "{LINE}"}}\n{{"body": "b"}}\n', "7", "[" * 9999, "{"])
def test_what_is_no_document_stays_as_it_is(text: str) -> None:
    assert text_of([text.encode()]) == text


def test_reading_a_document_takes_time_by_its_length() -> None:
    def seconds(size: int) -> float:
        text = json.dumps([{"a": [number]} for number in range(size)]).encode()
        began = time.process_time()
        text_of([text])
        return time.process_time() - began

    def fastest(size: int) -> float:  # a collection of garbage may fall into one of them
        return min(seconds(size) for _ in range(3))

    seconds(1_000)
    assert fastest(40_000) < 5 * fastest(20_000) + 0.2


def test_a_log_that_ends_with_a_line_has_no_piece_left() -> None:
    log = ("x" * 99 + "\n") * (max(PIECE, PASTED) // 100 + 1)

    assert list(text_of([log.encode()])) == [log]
