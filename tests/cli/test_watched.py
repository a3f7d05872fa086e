"""A whole run of the program writes nowhere else, and calls nobody else; and that would be seen.

`tests/e2e` is watched so, too.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from lacking import install_all_but
from stand import Stand
from watched import Call, Watch, addresses_of

from support.standin_wheels import clean_environment

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
FAILED = 4
"""There is no real onnxruntime: what came is put back."""


class Room:
    """An environment that lacks a package of this machine's index, and somebody's home."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.stand, self.watch, self.home = stand, Watch(folder / "watched"), folder / "home"
        self.home.mkdir()
        install_all_but("flatbuffers", stand.venv, folder / "made")

    def apply(self, planted: str = "") -> list[Call]:
        """Run `--apply` after the Python code `planted`; return what it did elsewhere."""
        python = ["--python", str(self.stand.venv.folder), "--index-url", self.stand.server.url]
        start = f"{planted}\nimport runpy; runpy.run_module('ortgpu_fix', run_name='__main__')"
        argv = [sys.executable, "-c", start, "--apply", "--yes", "--facts", "example", *python]
        argv += ["--no-autoload", "--no-provide", "--allow", "conflicts"]
        env = clean_environment() | {"HOME": str(self.home), "LANG": "C.UTF-8"}
        command = self.watch.begin(argv, None, env)
        done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
        assert done.returncode == FAILED, done.stdout + done.stderr
        found = self.watch.outside(addresses_of(self.stand.server.url))
        return [call for _, calls in found for call in calls]


def test_an_apply_writes_and_calls_where_it_may(stand: Stand, tmp_path: Path) -> None:
    assert Room(stand, tmp_path).apply() == []


def test_what_is_planted_is_seen_also_where_its_failure_is_passed_over(
    stand: Stand, tmp_path: Path
) -> None:
    """A file beside the environment, a link out of it, another server of this machine."""
    room = Room(stand, tmp_path)
    (room.home / "documents").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        planted = f"""
import contextlib, os, socket, subprocess
home, venv = {str(room.home)!r}, {str(stand.venv.folder)!r}
open(venv + "-beside", "w").close()
os.symlink(home + "/documents", venv + "/out")
open(venv + "/out/through-a-link", "w").close()
subprocess.run(["sh", "-c", f"echo > {{home}}/of-a-child"])
with contextlib.suppress(OSError):
    open("/proc/sys/kernel/ostype", "w")
socket.create_connection(("127.0.0.1", {port})).close()
"""
        found = room.apply(planted)

    assert set(found) == {
        ("connect", f"127.0.0.1 {port}"),
        ("openat", f"{stand.venv.folder}-beside"),
        ("openat", f"{room.home}/documents/through-a-link"),
        ("openat", f"{room.home}/of-a-child"),
        ("openat", "/proc/sys/kernel/ostype"),
    }
