"""`diff` on real bumps, locked by uv, Poetry and PDM: `scripts/record_bumps.py` recorded them.

What it has to say was written by hand: from what the wheels of both states are.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command import run_here

import synthetic

CASES = Path(__file__).parents[1] / "cases" / "bumps"
FORMATS = ("requirements.txt", "uv.lock", "poetry.lock")
HOSTS = {
    "pascal": ("580.65.06", "13.0", "6.1"),
    "a100": ("535.104.12", "12.2", "8.0"),
    "l4": ("580.65.06", "13.0", "8.9"),
}
WORKS = ("pascal  ✓ works", "a100    ✓ works", "l4      ✓ works")
NEEDS_580 = "needs driver 580.65.06 or newer for CUDA 13"
EXPECTED: dict[str, tuple[int, tuple[str, ...]]] = {
    # 1.29 is for CUDA 13, has no code for Pascal and Volta, and its cuDNN has none either.
    "cuda-13": (
        1,
        (
            "onnxruntime-gpu  1.26.0 → 1.29.0\n",
            "Required driver  525.60.13 → 580.65.06\n",
            "cuDNN            9.10.2.21 → 9.23.2.1\n",
            "GPUs dropped     6.0, 6.1, 7.0",
            "pascal  ✗ worked before: does not support compute capability 6.1",
            f"a100    ✗ worked before: {NEEDS_580}",
            WORKS[2],
            "\nMachines that lose GPU support: 2\n",
        ),
    ),
    # 1.20.1 cannot be had any more; of 1.26 everything is known.
    "vanished": (
        0,
        (
            "Before           onnxruntime-gpu 1.20.1 is not in the compatibility data",
            "After            onnxruntime-gpu 1.26.0, CUDA 12: driver 525.60.13 or newer",
            "\nonnxruntime-gpu  1.20.1 → 1.26.0\n",
            *WORKS,
        ),
    ),
    # Both torch and onnxruntime-gpu go to CUDA 13; torch 2.7 from PyPI is for CUDA 12.6.
    "torch": (
        1,
        (
            "onnxruntime-gpu  1.26.0 → 1.29.0\n",
            "Required driver  525.60.13 → 580.65.06\n",
            "cuDNN            9.5.1.17 → 9.20.0.48\n",
            "GPUs dropped     6.0, 6.1, 7.0\n",
            "pascal  ✗ worked before: does not support compute capability 6.1",
            f"a100    ✗ worked before: {NEEDS_580}",
            WORKS[2],
            "\nMachines that lose GPU support: 2\n",
        ),
    ),
    # Nothing but cuDNN moves, and that dropped Pascal and Volta at 9.11.
    "cudnn": (
        1,
        (
            "cuDNN         9.10.2.21 → 9.23.2.1\n",
            "GPUs dropped  6.0, 6.1, 7.0\n",
            "pascal  ✗ worked before: nvidia-cudnn-cu12 9.23.2.1 does not support compute",
            *WORKS[1:],
            "\nMachines that lose GPU support: 1\n",
        ),
    ),
}


def diff(folder: Path, bump: str, name: str, *flags: str) -> tuple[int, str]:
    hosts = []
    for host, (driver, cuda, gpu) in HOSTS.items():
        document = synthetic.document(driver=cuda, gpus=(gpu,))
        document["driver"]["version"] = driver
        path = folder / f"{host}.json"
        path.write_text(json.dumps(document))
        hosts += ["--hosts", str(path)]
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    states = [str(CASES / bump / state / name) for state in ("old", "new")]
    done = run_here("diff", *states, *hosts, *flags, cwd=folder, env=env)
    assert "error" not in done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("bump", EXPECTED)
def test_a_recorded_bump(bump: str, tmp_path: Path) -> None:
    code, expected = EXPECTED[bump]
    names = FORMATS if bump == "cuda-13" else FORMATS[1:2]
    said = {name: diff(tmp_path, bump, name) for name in names}

    for name, (ended, text) in said.items():
        assert ended == code, (name, text)
        assert [line for line in expected if line not in text] == [], (name, text)
    assert len({text for _, text in said.values()}) == 1, "each format says the same"
