"""The oldest uv and pip that are taken do all that the newest do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stand import CUDA, REQUIRES, Stand

from ortgpu_fix.engine.at_hand import OLDEST_PIP
from ortgpu_fix.engine.choose import OLDEST_UV
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from support.standin_wheels import Venv

pytestmark = [pytest.mark.online, pytest.mark.decisive, pytest.mark.slow]


@pytest.mark.parametrize(
    ("kind", "release"), [("uv", f"uv=={OLDEST_UV}"), ("pip", f"pip=={OLDEST_PIP}")]
)
@pytest.mark.parametrize("offline", [False, True])
def test_a_plan_in_a_path_with_spaces(
    stand_of: Callable[[str], Stand], tmp_path: Path, kind: str, release: str, *, offline: bool
) -> None:
    """Up to 0.12 uv took what `--constraints` names for several, up to 0.11 it told no hash."""
    stand = stand_of(kind)
    bring = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    where = ["--no-deps", "--target", str(tmp_path / "old")]
    if kind == "uv":
        subprocess.run([*bring, *where, release], check=True)
        stand.uv = str(tmp_path / "old" / "bin" / "uv")
    venv = Venv(folder=tmp_path / "a b, c" / "venv")
    venv.folder.parent.mkdir()
    subprocess.run([sys.executable, "-m", "venv", venv.folder], check=True)
    if kind == "pip":
        subprocess.run([venv.python, *bring[1:], release], check=True)
    stand.venv = venv
    stand.have("onnxruntime 1.22.1")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES)
    folder = next(iter(stand.wheels.values())).parent
    alone = IndexConfig(index_url="http://127.0.0.1:9/simple", find_links=folder, offline=True)

    stand.apply(plan, **({"index": Index(alone)} if offline else {}))

    assert stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}
    stand.undo()
    assert stand.unchanged()
