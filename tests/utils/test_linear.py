"""What reads text of others takes twice the time for twice the text, and no more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.log_lines.reading import text_of
from ortgpu_fix.requirements.lines import files_named
from ortgpu_fix.utils.foreign_text import clean_text

TABLE = parse_failures(load_table("failures"))
GPU = "onnxruntime-gpu==1.26.0"


def explained(text: str) -> None:
    explain_log(text_of([json.dumps(text.split(" ")).encode()]), TABLE, "en")


def locked(text: str) -> None:
    read_lock(text, "lock")


def project(count: int) -> str:
    return "version = 1\n" + "".join(
        f'[[package]]\nname = "p{at}"\nversion = "1"\ndependencies = [{{ name = "p{at + 1}" }}]\n'
        for at in range(count)
    )


def pylock(count: int) -> str:
    return 'lock-version = "1.0"\n[[packages]]\nname = "a"\nversion = "1"\n' + "".join(
        f'[[packages.wheels]]\nurl = "https://x.example/{at}"\nhashes = {{ sha256 = "{at:064}" }}\n'
        for at in range(count)
    )


@pytest.mark.parametrize(
    ("reader", "made", "count"),
    [
        pytest.param(clean_text, lambda n: "://a:b" * n, 4_000, id="addresses"),
        pytest.param(clean_text, lambda n: "x://" * n, 4_000, id="schemes"),
        pytest.param(clean_text, lambda n: "@" + "://a:b?" * n, 4_000, id="queries"),
        pytest.param(clean_text, lambda n: "://a:b#c" * n, 4_000, id="fragments"),
        pytest.param(locked, lambda n: f"b==2\n{GPU}{' ' * n}x\n", 20_000, id="blanks"),
        pytest.param(locked, lambda n: f"{GPU}\n{chr(32) * n}#\n", 20_000, id="comment"),
        pytest.param(locked, lambda n: "b==2\n" + f"{GPU} {chr(92)}\n" * n, 2_000, id="continued"),
        pytest.param(locked, project, 400, id="uv.lock"),
        pytest.param(locked, pylock, 400, id="pylock"),
        pytest.param(files_named, lambda n: "-r a.txt\n" * n, 400, id="options"),
        pytest.param(explained, lambda n: "a " * n, 5_000, id="json"),
        pytest.param(explained, lambda n: "libcudnn.so.9\u00e9 " * n, 2_000, id="names in json"),
    ],
)
def test_four_times_the_text_takes_four_times_as_long(
    reader: Callable[[str], object], made: Callable[[int], str], count: int
) -> None:
    """A square would be 16 times; the clock is that of this process."""

    def seconds(text: str) -> float:
        began = time.process_time()
        reader(text)
        return time.process_time() - began

    few, many = (min(seconds(text) for _ in range(2)) for text in (made(count), made(4 * count)))

    assert many < 8 * few + 0.05
