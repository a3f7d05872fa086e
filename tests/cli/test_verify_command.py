"""The flags of `verify` for a model of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run_here

from ortgpu_fix.errors import Error
from ortgpu_fix.guests.bench.command import read_shapes


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["x=1x3x224x224"], [{"x": [1, 3, 224, 224]}]),
        (["sr="], [{"sr": []}]),
        (["a=b=2"], [{"a=b": [2]}]),
        (["x=1", "x=2", "y=3"], [{"x": [1], "y": [3]}, {"x": [2], "y": [3]}]),
    ],
)
def test_shapes(given: list[str], wanted: list[dict[str, list[int]]]) -> None:
    assert read_shapes(given) == wanted


@pytest.mark.parametrize("text", ["x", "x=1,2", "x=-1", "x=1x٣"])
def test_what_is_no_shape(text: str) -> None:
    with pytest.raises(Error, match="shape-syntax"):
        read_shapes([text])


def test_shapes_that_do_not_go_together() -> None:
    with pytest.raises(Error, match="shape-counts"):
        read_shapes(["x=1", "x=2", "x=3", "y=1", "y=2"])


@pytest.mark.parametrize(
    ("argv", "code", "status"),
    [
        (["nowhere.onnx"], "model-unreadable", 7),
        (["--bench", "--shape", "x=1,2"], "shape-syntax", 2),
        (["--bench", "--report", "gone/page.html"], "file-unwritable", 7),
    ],
)
def test_mistakes_are_told_before_anything_takes_time(
    argv: list[str], code: str, status: int, tmp_path: Path
) -> None:
    done = run_here("verify", *argv, "--json", cwd=tmp_path, env={})

    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (status, code)
