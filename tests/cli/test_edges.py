"""What one command writes, the next one takes: the edges of the program, each by its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ortgpu_fix.__main__ import main


def test_facts_of_a_file_are_those_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were those of this machine, silently."""
    written = {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.31"},
        "driver": {"version": "525.85.12"},
        "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}],
        "python": {"version": "3.9.1"},
        "packages": [{"name": "numpy", "version": "1.22.4"}],
    }
    file = tmp_path / "host.json"
    file.write_text(json.dumps(written))

    assert main(["facts", "--facts", str(file)]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["driver"]["version"] == "525.85.12"
    assert found["gpus"][0]["compute_capability"] == "8.0"
    assert found["python"]["version"] == "3.9.1"
    assert [row["name"] for row in found["packages"]] == ["numpy"]


def test_facts_of_a_driver_and_a_gpu_are_those_of_that_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "host.json"
    flags = ["--driver", "535.104.12", "--gpu", "8.0"]

    assert main(["facts", *flags, "-o", str(file)]) == 0

    found = json.loads(file.read_text())
    assert found["driver"]["version"] == "535.104.12"
    assert [gpu["compute_capability"] for gpu in found["gpus"]] == ["8.0"]
    capsys.readouterr()
