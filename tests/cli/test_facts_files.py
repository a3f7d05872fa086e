"""Files that describe a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.cli.facts_files import read_facts
from ortgpu_fix.data_files import example_machine


def test_keys_of_a_newer_program_are_told_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "machine.json"
    whole: Any = example_machine()
    newer = {"written_by": "ortgpu-fix 99.0", "later": 1, "also": 2}
    file.write_text(json.dumps({**whole, **newer}), "utf-8")
    monkeypatch.setenv("ORTGPU_FIX_LANG", "en")

    facts = read_facts(str(file))

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"{file} was written by a newer ortgpu-fix; ignored here: also, later\n"
    assert facts == read_facts("example")


def test_a_gpu_of_a_file_written_by_hand_gets_its_capability_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    whole: Any = example_machine()
    gpus = [{**gpu, "name": "Tesla T4", "compute_capability": None} for gpu in whole["gpus"]]
    file.write_text(json.dumps({**whole, "gpus": gpus}), "utf-8")

    assert [gpu.compute_capability for gpu in read_facts(str(file)).gpus or ()] == ["7.5"]
