"""Downloads are told with bytes, speed and the time left, in any width and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ortgpu_fix.cli import console
from ortgpu_fix.cli.progress_bars import Bars
from ortgpu_fix.messages.catalog import load_texts

EN = load_texts("en")
MB = 1_000_000
FILE = "nvidia_cudnn_cu12-9.28.0.42-py3-none-manylinux_2_27_x86_64.whl"


def drawn(bars: Bars, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(bars.drawn.get_renderable())
    return [line.rstrip() for line in file.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize("width", [40, 120])
def test_a_line_for_each_file_on_its_way_and_one_for_all(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    bars = Bars(EN)
    bars("download", done=100 * MB, total=2000 * MB, file="done.whl", have=5 * MB, size=5 * MB)
    bars("download", done=900 * MB, total=2000 * MB, file=FILE, have=95 * MB, size=717 * MB)

    whole, file = drawn(bars, width)

    assert whole.startswith("Downloading")
    assert "900 MB / 2.0 GB" in whole
    assert file.startswith("nvidia_cudnn")
    assert file.endswith("95 MB / 717 MB")
    assert all(len(line) <= width for line in (whole, file))


def lines(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *said: tuple[float, str, int],
) -> list[str]:
    """Return what a pipe gets where this is said: when, what, and how many MB have come."""
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: 100 + now[0])  # type: ignore[attr-defined]
    with console.progress(EN, quiet=False) as progress:
        for when, code, done in said:
            now[0] = when
            if code == "download":
                progress(code, done=done * MB, total=2000 * MB, file=FILE, have=1, size=2)
            else:
                progress(code, seconds=int(when))
    return capsys.readouterr().err.splitlines()


def test_a_pipe_gets_a_line_at_each_tenth(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [(number / 10, "download", number * 50) for number in range(41)]

    assert lines(monkeypatch, capsys, (0, "resolve", 0), *said) == [
        "Resolving other dependencies",
        "Downloading 2.0 GB",
        *(
            f"Downloaded {done} of 2.0 GB, 500 MB/s, {left} s left"
            for done, left in (
                *(("200 MB", 4), ("400 MB", 3), ("600 MB", 3), ("800 MB", 2), ("1.0 GB", 2)),
                *(("1.2 GB", 2), ("1.4 GB", 1), ("1.6 GB", 1), ("1.8 GB", 0)),
            )
        ),
    ]


def test_bars_show_a_step_that_goes_on_only_where_no_download_moves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    bars = Bars(EN)
    bars("resolve")
    bars.wait("Still working: 2 s")
    bars.wait("Still working: 4 s")
    assert [line.strip() for line in drawn(bars, 80)] == ["Still working: 4 s"]
    bars("verify")
    assert drawn(bars, 80) == []

    bars("download", done=9 * MB, total=20 * MB, file=FILE, have=9 * MB, size=20 * MB)
    bars.wait("Still working: 2 s")
    assert len(drawn(bars, 80)) == 2
    bars("download", done=20 * MB, total=20 * MB, file=FILE, have=20 * MB, size=20 * MB)
    bars.wait("Still working: 2 s")
    assert [line.strip() for line in drawn(bars, 80)] == ["Still working: 2 s"]
    bars.drawn.stop()
    capsys.readouterr()
