"""`python -m ortgpu_fix` in a folder of somebody else."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from command import run_here

from ortgpu_fix.errors import Error


def test_modules_in_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    """A project may have a `json.py`, and a download may bring one."""
    for name in ("__future__", "json", "signal", "argparse", "threading", "subprocess", "tomllib"):
        (tmp_path / f"{name}.py").write_text(f"print('{name} of the folder'); raise SystemExit(9)")

    done = subprocess.run(
        [sys.executable, "-m", "ortgpu_fix", "--facts", "example", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "of the folder" not in done.stdout + done.stderr
    assert done.returncode in {0, 1}
    assert done.stdout.startswith("{")


URL = "https://me:sec'ret@packages.example/simple"


def failing(*_: object) -> int:
    behind = ValueError(f"Failed to parse: {URL}")
    raise Error("index-unreachable", url=URL, reason=f"\x1b[31m{URL}") from behind


def in_a_thread(*_: object) -> int:
    def end() -> None:
        raise ValueError(URL)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    return 0


@pytest.mark.parametrize(("command", "debug"), [(failing, "1"), (in_a_thread, "1"), (failing, "")])
def test_what_is_behind_an_error_has_no_password(
    command: Callable[..., int], debug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own message asks people to send it."""
    monkeypatch.setattr("ortgpu_fix.cli.commands.cache.run", command)
    env = {"ORTGPU_FIX_DEBUG": debug, "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    said = run_here("cache", "info", cwd=tmp_path, env=env).stderr

    assert "https://packages.example/simple" in said
    assert ("Traceback" in said) is bool(debug)
    assert not [part for part in ("me:", "ret@", "\x1b") if part in said]


def test_what_ends_a_thread_is_shown_to_who_debugs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ortgpu_fix.cli.commands.cache.run", in_a_thread)

    done = run_here("cache", "info", cwd=tmp_path, env={"HOME": str(tmp_path)})

    assert (done.returncode, done.stderr) == (0, "")
