"""A lock, installed for real with `--require-hashes`, by the tools that people have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prove_apply import UV

from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts import from_json
from ortgpu_fix.run import install_environment

pytestmark = [pytest.mark.online, pytest.mark.slow]
EXAMPLE = from_json(example_machine())
MATCHES = EXAMPLE.python.version.split(".")[:2] == list(map(str, sys.version_info[:2]))


@pytest.mark.skipif(not MATCHES, reason="the example machine has another Python than this one")
@pytest.mark.skipif(sys.platform != "linux", reason="the example machine is a Linux machine")
def test_a_lock_is_installed_with_its_hashes(tmp_path: Path) -> None:
    env = install_environment(os.environ)
    venv, lock = tmp_path / "venv", tmp_path / "requirements-gpu.txt"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, venv], check=True, env=env)
    tool = [sys.executable, "-m", "ortgpu_fix", "--python", str(venv), "--facts", "example"]
    subprocess.run([*tool, "lock", "-o", str(lock)], check=True, env=env)
    install = [UV, "pip", "install", "--quiet", "--python", str(venv), "--no-cache"]

    subprocess.run([*install, "--require-hashes", "-r", str(lock)], check=True, env=env)
    checked = subprocess.run([UV, "pip", "check", "--python", str(venv)], check=False, env=env)
    tampered = tmp_path / "tampered.txt"
    tampered.write_text(lock.read_text().replace("sha256:", "sha256:0", 1)[:-2] + "0\n")
    refused = subprocess.run(
        [*install, "--require-hashes", "--reinstall", "-r", str(tampered)], check=False, env=env
    )
    shutil.rmtree(venv)

    assert checked.returncode == 0
    assert refused.returncode != 0
