"""What somebody left in a repository, an environment, a lock, facts or an index runs nothing.

Commands run in a checkout full of plants (`planted`), with a PATH whose empty and relative folders
lead into it. strace looks, besides, where they write and whom they call. What a command prints to
be pasted is read by a shell.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from lacking import install_all_but
from planted import Checkout, plant
from stand import Stand
from watched import Watch, addresses_of

from support.standin_wheels import clean_environment, state_of

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
HERE = (
    "--facts facts.json -r r.txt",
    "diff HEAD:lost.txt gpu.txt --python 3.12",
    "explain log.txt --facts facts.json",
    "lock --facts facts.json --offline -o written.txt",
)
"""Commands that ask for no environment: none of those in the checkout is touched."""
THERE = (
    "plan",
    "verify",
    "lock --offline --driver 535.104.12 --gpu A100 -o written.txt",
    "--apply --write --yes --offline --facts example",
)
"""Commands for an environment that is somewhere else."""


class Room(NamedTuple):
    """A checkout, and an environment beside it."""

    checkout: Checkout
    before: Mapping[str, str]
    watch: Watch
    stand: Stand
    home: Path

    def run(self, *argv: str) -> str:
        """Run a command in the checkout; return what it printed."""
        env = clean_environment() | {"HOME": str(self.home), "LANG": "C.UTF-8"}
        env["PATH"] = f":.:{os.environ['PATH']}:"
        words = [sys.executable, "-I", "-m", "ortgpu_fix", *argv]
        done = subprocess.run(
            self.watch.begin(words, self.checkout.folder, env),
            cwd=self.checkout.folder,
            env=env,
            check=False,
            capture_output=True,
            text=True,
        )
        assert "Internal error" not in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def untouched(self) -> None:
        """Hold that nothing ran, and nothing was written or called that may not be."""
        assert self.checkout.ran() == []
        changed = self.before.items() ^ state_of(self.checkout.folder).items()
        assert {path.partition(os.sep)[0] for path, _ in changed} <= {"written", "written.txt"}
        assert self.watch.outside(addresses_of(self.stand.server.url)) == []


@pytest.fixture
def room(stand: Stand, tmp_path: Path) -> Room:
    folder, home = tmp_path / "checkout", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    checkout, watch = plant(folder, tmp_path / "ran"), Watch(tmp_path / "watched")
    return Room(checkout, state_of(folder), watch, stand, home)


def paste(said: str) -> None:
    """Let a shell read each line of `said` that begins as a command; no program is on its PATH."""
    for line in said.splitlines():
        if re.match(r"\s*(?:[$>] )?(?:ortgpu-fix|pip|uv|python|conda|pixi)\b", line):
            subprocess.run(
                ["/bin/sh", "-c", line], env={"PATH": "/nowhere"}, check=False, capture_output=True
            )


def commands(rows: Sequence[str], *fast: str) -> list[object]:
    """Return the commands of a test; those that are not `fast` are of the slow part."""
    assert {*fast} <= {*rows}
    return [pytest.param(row, marks=[] if row in fast else [pytest.mark.slow]) for row in rows]


@pytest.mark.parametrize("command", commands(HERE, "diff HEAD:lost.txt gpu.txt --python 3.12"))
def test_a_command_in_a_checkout_runs_nothing_of_it(room: Room, command: str) -> None:
    paste(room.run(*command.split()))

    room.untouched()


@pytest.mark.parametrize("command", commands(THERE, "plan"))
def test_a_command_for_an_environment_runs_nothing_of_the_checkout(
    room: Room, command: str
) -> None:
    python = ["--python", str(room.stand.venv.folder)]
    paste(room.run(*command.split(), *python))

    room.untouched()


def test_an_environment_s_own_start_runs_in_its_python_alone(room: Room) -> None:
    """Whoever starts that Python starts it; nobody else reads it, and nothing lies on its way."""
    site, started = room.stand.venv.site, room.home / ".cache" / "started"
    started.parent.mkdir()
    line = f"import sys; open({str(started)!r}, 'a').write(sys.prefix + chr(10))\n"
    (site / "a.pth").write_text(line)
    (site / "sitecustomize.py").write_text(line)
    python = ["--python", str(room.stand.venv.folder)]
    for command in ("plan", "verify", "--apply --yes --offline --facts example"):
        room.run(*command.split(), *python)

    room.untouched()
    assert {*started.read_text().splitlines()} == {str(room.stand.venv.folder)}


def test_of_an_index_no_source_is_built_nor_asked_for(room: Room, tmp_path: Path) -> None:
    install_all_but("flatbuffers", room.stand.venv, tmp_path / "made")
    served = room.stand.server.behaviour
    served.listed["flatbuffers"] = [("flatbuffers-99.tar.gz", "0" * 64)]
    room.run(
        *("--apply", "--yes", "--facts", "example", "--allow", "conflicts"),
        *("--no-autoload", "--no-provide", "--index-url", room.stand.server.url),
        *("--python", str(room.stand.venv.folder)),
    )

    room.untouched()
    assert [row for row in served.requests if "flatbuffers" in row and ".whl" in row]
    assert not [row for row in served.requests if ".tar.gz" in row]


def test_what_is_planted_would_run(room: Room) -> None:
    checkout = room.checkout
    for words in (["./uv"], [sys.executable, "-c", "import json"]):
        subprocess.run(words, cwd=checkout.folder, check=False, capture_output=True)
    assert checkout.ran() == ["program uv", "module json.py"]
    subprocess.run(
        ["git", "cat-file", "blob", "HEAD:lost.txt"],
        cwd=checkout.folder,
        check=False,
        capture_output=True,
    )
    paste(f"To mend it:\n  ortgpu-fix --python {checkout.evil}")
    assert {*checkout.ran()[2:]} == {"program sh", "ran-by-a-shell"}
