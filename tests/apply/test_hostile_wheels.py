"""Wheels that bring what is not theirs, installed by real uv, or rather not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stand import GOOD, Stand

from ortgpu_fix.errors import Error
from support.local_index import make_wheel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the layout of a venv of Unix")
HOSTILE = {
    "evil-1.0.data/data/PYVENV.CFG": "wheel-overwrites",  # the same file on Windows
    "bystander/__init__.py": "wheel-overwrites",
}


def refusal(stand: Stand, wheel: Path) -> Error:
    base = Path(sys.base_prefix)
    before = sorted(base.iterdir()), sorted((base / "lib").iterdir())
    error = stand.fails(stand.plan(GOOD, wheel))
    assert (sorted(base.iterdir()), sorted((base / "lib").iterdir())) == before
    return error


@pytest.mark.parametrize("path", HOSTILE)
def test_a_wheel_that_brings_what_is_not_its_own(stand: Stand, tmp_path: Path, path: str) -> None:
    stand.have("bystander 1.0")
    wheel = make_wheel(tmp_path / "evil", "evil", "1.0", files={path: "evil"})

    assert refusal(stand, wheel).code in {HOSTILE[path], "install-failed"}  # uv looks first


def test_a_command_that_is_called_as_the_interpreter(stand: Stand, tmp_path: Path) -> None:
    stand.have("bystander 1.0")
    wheel = make_wheel(tmp_path / "evil", "evil", "1.0", scripts={"python": "evil:main"})

    error = refusal(stand, wheel)

    assert (error.code, "reserved name" in str(error.values["said"])) == ("install-failed", True)


def test_the_same_bytes_may_belong_to_two(stand: Stand, tmp_path: Path) -> None:
    stand.have("bystander 1.0")
    files = {"bystander/__init__.py": "z = 3\n", "other/__init__.py": "", "nvidia/__init__.py": "1"}
    wheel = make_wheel(tmp_path / "kind", "kind", "1.0", files=files)
    cudnn = "nvidia-cudnn-cu12 9.28.0.42"  # whose `nvidia/__init__.py` is another

    stand.apply(stand.plan(cudnn, wheel))
    stand.undo()

    assert stand.unchanged()


def test_what_uv_wrote_is_held_against_its_record(stand: Stand) -> None:
    """One more file is noted in a RECORD than the wheels have."""
    stand.have("bystander 1.0")

    def overreach(prefix: Path) -> None:
        record = next(prefix.rglob("onnxruntime_gpu-*.dist-info")) / "RECORD"
        record.write_text(record.read_text() + "../../../../evil.py,,\n")

    assert stand.fails(stand.plan(GOOD), uv=stand.uv_then(overreach)).code == "wheel-escapes"
