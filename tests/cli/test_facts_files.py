"""Files that describe a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.__main__ import main
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
    assert told.err == f"{file} was written by a newer ortgpu-fix; ignored keys: also, later\n"
    assert facts == read_facts("example")


def test_a_directory_stands_for_its_facts_files_and_for_a_fleet_with_one_machine_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("not a machine")
    for name in ("gpu1", "gpu2"):
        (tmp_path / f"{name}.json").write_text(json.dumps(example_machine()), "utf-8")

        assert main(["--facts", str(tmp_path), "--json"]) == 0

        groups = json.loads(capsys.readouterr().out)["groups"]
        assert groups[0]["machines"] == ["gpu1", "gpu2"][: len(list(tmp_path.glob("*.json")))]


def test_a_directory_without_facts_files_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--facts", str(tmp_path), "--json"]) == 7

    assert json.loads(capsys.readouterr().out)["error"]["message"] == (
        f"The facts file `{tmp_path}/*.json` cannot be read: No such file or directory"
    )


def test_a_gpu_of_a_file_written_by_hand_gets_its_capability_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    whole: Any = example_machine()
    gpus = [{**gpu, "name": "Tesla T4", "compute_capability": None} for gpu in whole["gpus"]]
    file.write_text(json.dumps({**whole, "gpus": gpus}), "utf-8")

    assert [gpu.compute_capability for gpu in read_facts(str(file)).gpus or ()] == ["7.5"]
