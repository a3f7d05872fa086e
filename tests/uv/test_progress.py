"""uv's own drawing of its downloads is read, and everything else that it draws is not."""

from __future__ import annotations

import time

import pytest

from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.uv import progress as uv_progress
from ortgpu_fix.uv.progress import DrawnProgress

BAR = "-" * 30


def wheel(name: str, size: int) -> Wheel:
    file = f"{name.replace('-', '_')}-1-py3-none-any.whl"
    return Wheel(name=name, version="1", index_url="pypi", file=file, size=size, sha256="0")


class Told:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(uv_progress, "_SECONDS", 0)
        self.rows: list[tuple[str, int, int, int]] = []
        wheels = (wheel("nvidia-curand-cu12", 63_619_976), wheel("a-b", 2000))
        self.drawn = DrawnProgress(wheels, self)

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        assert code == "download"
        self.rows.append(
            (str(values["file"]).partition("-")[0], int(str(values["have"])), done, total)
        )


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


def test_as_uv_0_13_draws_it(told: Told) -> None:
    """Recorded from uv 0.13.9 on a terminal."""
    told.drawn.hear(
        "\x1b[2A\r\x1b[2K\x1b[1B\r\x1b[2K\x1b[2A\x1b[37m⠙\x1b[0m "
        "\x1b[2mPreparing packages...\x1b[0m (0/2)     "
        "\x1b[2mnvidia-curand-cu12   \x1b[0m "
        "\x1b[32m----\x1b[30m\x1b[2m--------------------------"
        "\x1b[0m\x1b[0m 35.42 MiB/60.67 MiB        \x1b[2A"
    )

    have = int(35.42 * (1 << 20))
    assert told.rows == [("nvidia_curand_cu12", have, have, 63_619_976)]


def test_several_at_once_and_a_line_in_two_pieces(told: Told) -> None:
    told.drawn.hear(f"a.b {BAR}  1.50 KiB/1.95 KiB   nvidia-curand-cu12   {BAR} 10.")
    told.drawn.hear(f"00 MiB/60.67 MiB  unknown {BAR} 1 B/2 B")

    assert told.rows == [
        ("a_b", 1536, 1536, 2000),
        ("nvidia_curand_cu12", 10 << 20, 1536 + (10 << 20), 63_621_976),
    ]


@pytest.mark.parametrize("text", ["", "Resolved 2 packages in 250ms\r\n", "\x1b[", "a-b 1 B/2 B"])
def test_what_is_no_download_is_not_told(told: Told, text: str) -> None:
    told.drawn.hear(text)

    assert told.rows == []


def test_nothing_is_told_before_all_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch)
    monkeypatch.setattr(uv_progress, "_SECONDS", 3600)

    told.drawn.hear(f"a-b {BAR} 1.00 KiB/1.95 KiB ")

    assert told.rows == []


def haves(heard: list[object], size: int) -> DrawnProgress:
    """Return one that appends to `heard` how many bytes of a wheel of `size` have come."""

    def progress(_: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        assert (done, total) == (values["have"], size)
        heard.append(values["have"])

    return DrawnProgress([wheel("a", size)], progress)


def test_a_line_that_comes_letter_by_letter(told: Told) -> None:
    for letter in f"a-b {BAR} 1.50 KiB/1.95 KiB":
        told.drawn.hear(letter)

    assert told.rows == [("a_b", 1536, 1536, 2000)]


def test_all_downloads_have_begun_a_third_of_a_second_after_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before that the total would grow."""
    clock = iter([0.3, 0.5, 0.6, 0.7])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    heard: list[object] = []
    one = haves(heard, 10)

    for have in (1, 2, 3, 4):
        one.hear(f"a {BAR} {have} B/10 B")

    assert heard == [3, 4]
