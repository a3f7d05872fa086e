"""A file of the name of a Python need not be one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support import pythons

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a PATH of one folder, and nothing found before."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(pythons, "SECONDS", 0.5)
    monkeypatch.setattr(pythons, "find_python", pythons.find_python.__wrapped__)
    return tmp_path


@pytest.mark.parametrize(
    "body",
    [
        "echo 'pyenv: python9.9: command not found' >&2; exit 127",
        "exec sleep 600",
        "echo 2.7",
        "kill -SEGV $$",
    ],
    ids=["shim", "hangs", "another", "crashes"],
)
def test_one_that_does_not_run_is_none(home: Path, body: str) -> None:
    (home / "python9.9").write_text(f"#!/bin/sh\n{body}\n")
    (home / "python9.9").chmod(0o755)

    assert pythons.find_python("9.9") is None


def test_one_of_pyenv_is_found_behind_a_shim_that_is_not_active(home: Path) -> None:
    (home / "python9.9").write_text("#!/bin/sh\nexit 127\n")
    (home / "python9.9").chmod(0o755)
    real = home / ".pyenv/versions/9.9.1/bin/python9.9"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho 9.9\n")
    real.chmod(0o755)

    assert pythons.find_python("9.9") == real
