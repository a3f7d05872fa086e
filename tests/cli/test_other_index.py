"""An index that PyPI's builds lack: when a plan names it, and with which commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ortgpu_fix import __main__

READ = "  ortgpu-fix matrix --update --ort-index-url https://aiinfra.pkgs.visualstudio.com/"
READ += "PublicPackages/_packaging/onnxruntime-cuda-12/pypi/simple/"
TORCH_13_AND_A_PIN = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
    "driver": {"version": "580.95.05", "cuda": "13.0"},
    "gpus": [{"compute_capability": "8.9"}],
    "python": {"version": "3.12.3", "executable": "/srv/.venv/bin/python"},
    "packages": [
        {"name": "torch", "version": "2.11.0"},
        {"name": "app", "version": "1.0", "requires": ["onnxruntime-gpu<1.27"]},
    ],
}
"""As it comes from PyPI: for CUDA 13."""


def last_lines(capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    """Return what stands behind the changes that allow more, for driver 535."""
    __main__.main(["--facts", "example", *flags])
    return capsys.readouterr().out.rpartition("To use a ")[2].splitlines()


def test_an_ordinary_plan_does_not_speak_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows what it has before it is read, and 1.26.0 works."""
    _, way, _, _, command = last_lines(capsys)

    assert way.startswith("  onnxruntime-gpu 1.31.1 ")
    assert command.endswith("--apply")


@pytest.mark.parametrize(
    ("flags", "again"),
    [
        (["--verbose"], "  ortgpu-fix --facts example"),
        (["--ort", "1.31.1"], "  ortgpu-fix --facts example --ort 1.31.1"),
    ],
)
def test_who_asks_for_more_reads_the_two_commands(
    flags: list[str], again: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = last_lines(capsys, *flags)

    at = lines.index(READ)
    assert lines[at + 1] == again
    assert "Microsoft's package index may have another build" in lines[at - 1]


def test_it_stands_beside_a_plan_that_has_to_move_torch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Microsoft had builds for CUDA 13 before PyPI: microsoft/onnxruntime#27944."""
    (tmp_path / "host.json").write_text(json.dumps(TORCH_13_AND_A_PIN))

    assert __main__.main(["--facts", str(tmp_path / "host.json")]) == 1
    said = capsys.readouterr().out
    assert f"{READ.replace('cuda-12', 'cuda-13')}\n" in said
    assert said.splitlines()[-2:] == [
        "If torch may be replaced, run:",
        "ortgpu-fix --python /srv/.venv/bin/python --torch match --apply",
    ]
