"""The document of `lock --check --json`, key by key: a lock that holds, and one that does not."""

from __future__ import annotations

import json
from typing import Any

import synthetic
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.guests.machines.drift import drift
from ortgpu_fix.guests.machines.drift_report import drift_json, drift_sections
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.resolve.options import PlanOptions

MATRIX = synthetic.matrix()
EN = load_texts("en")
SET = {"nvidia-cublas-cu12": "12.8.4", "nvidia-cudnn-cu12": "9.28.0", "onnxruntime-gpu": "1.26.0"}
SET |= {"numpy": "2.2.6", "flatbuffers": "25.0"}
INSTALLED = [f"{name} {version}" for name, version in SET.items()]
HEAD = "# matrix: 2025-12-01 sha256:older\n"


def lock(pins: dict[str, str] = SET, head: str = HEAD) -> str:
    rows = (
        f"{name}=={version} \\\n    --hash=sha256:{'0' * 64}\n" for name, version in pins.items()
    )
    return head + "".join(rows)


def document(text: str, facts: Facts) -> dict[str, Any]:
    locked = read_lock(text, "lock.txt")
    found = drift_json(drift(locked, facts, PlanOptions(), MATRIX), locked, "lock.txt", MATRIX, EN)
    printed: dict[str, Any] = json.loads(json.dumps(found))
    return printed


def told(text: str, facts: Facts) -> str:
    locked = read_lock(text, "lock.txt")
    found = drift(locked, facts, PlanOptions(), MATRIX)
    return plain(drift_sections(found, locked, "lock.txt", MATRIX, EN))


def test_a_lock_that_holds() -> None:
    assert document(lock(), synthetic.facts(*INSTALLED)) == {
        "schema": 1,
        "file": "lock.txt",
        "format": "requirements",
        "verdict": "holds",
        "release": {"name": "onnxruntime-gpu", "version": "1.26.0"},
        "machine": None,
        "differences": [],
        "reasons": [],
        "environment": [],
        "newest": None,
        "unlock": [{"change": "driver >= 580.65.06", "gains": "onnxruntime-gpu 1.31.0"}],
        "made_with": {"date": "2025-12-01", "digest": "sha256:older"},
        "matrix": {"date": "2026-01-01", "digest": "sha256:invented"},
    }


def test_a_lock_that_an_environment_has_drifted_from() -> None:
    moved = synthetic.facts("nvidia-cudnn-cu12 9.10.2", *INSTALLED[2:], driver="13.0")
    found = document(lock(head=""), moved)

    assert found["verdict"] == "drifted"
    assert found["environment"] == [
        {"name": "nvidia-cublas-cu12", "locked": "12.8.4", "installed": None},
        {"name": "nvidia-cudnn-cu12", "locked": "9.28.0", "installed": "9.10.2"},
    ]
    assert found["newest"] == "1.31.0"  # this driver runs it
    assert found["made_with"] is None  # the lock does not say


def test_what_has_drifted_in_words() -> None:
    moved = synthetic.facts(
        *INSTALLED[3:],
        "nvidia-cudnn-cu12 9.10.2",
        "onnxruntime 1.22.1",
        {"name": "onnxruntime-gpu", "version": "1.26.0", "intact": False},
        driver="13.0",
    )

    assert told(lock(), moved) == (
        """\
Lock  lock.txt  onnxruntime-gpu 1.26.0

The environment differs from the lock
  nvidia-cublas-cu12  not installed, but 12.8.4 is locked
  nvidia-cudnn-cu12   9.10.2 is installed, but 9.28.0 is locked
  onnxruntime-gpu     1.26.0 is installed, but incomplete
  onnxruntime         1.22.1 is also installed and overwrites files of the locked package

Changes since the lock
  the lock was made with the compatibility data of 2025-12-01; the current data is of 2026-01-01
  onnxruntime-gpu 1.31.0 can be used now; `ortgpu-fix lock --ort latest` locks it

The lock works on this machine, but the environment differs from it (see above)"""
    )


def test_other_rows_of_the_same_day_are_told_without_its_date_twice() -> None:
    made = lock().replace("2025-12-01", "2026-01-01")

    assert "with the compatibility data of 2026-01-01, but with other additions" in told(
        made, synthetic.facts(*INSTALLED)
    )
    assert "the current data is of" not in told(made, synthetic.facts(*INSTALLED))


def test_a_lock_without_a_build_of_onnxruntime_names_none() -> None:
    assert told(lock({"numpy": "2.2.6"}), synthetic.facts()).startswith("Lock  lock.txt\n")
