"""Prove that `--apply` refuses nothing where a plan ends with it, on random machines.

    python scripts/prove/promises.py [--count 3000] [--seed 1] [--results DIR]

Each machine of tests/support/random_machines.py is made: a virtual environment of this Python with
its packages (wheels of those names, versions and requirements, with nothing in them) and one more
that has wishes of its own; driver, GPUs and libraries are a facts file. Where the plan ends with a
command, that command is run as it is printed, offline, with stand-ins for the wheels that it names.
It must come to its end: exit code 0, what was promised is installed, and no refusal. The inference
that an apply ends with is left out, for there is nothing in the wheels. The dated result goes to
scripts/prove/results/; the exit code is 1 where a promise was broken.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from command import run_here
from random_machines import ORDINARY, WISHES, Document, documents
from standins import make_standin, with_standins

from ortgpu_fix.cli import inputs
from ortgpu_fix.cli.commands import apply as changing
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.verify.verification import Verification
from prove.outcomes import prove_random
from support.standin_wheels import as_wheel, clean_environment, find_uv, make_venv

FLAGS: tuple[tuple[str, ...], ...] = ((), (), (), ("--ort", "latest"), ("--ort", "<1.27"))
ENDS = {name: [*versions, "99"] for name, versions in ORDINARY.items()}


def drawn() -> st.SearchStrategy[tuple[Document, list[str], tuple[str, ...]]]:
    """Return machines that can be made here, with the wishes of a package and of the user."""

    def here(document: Document) -> Document:
        document["platform"] = {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"}
        document["python"] = {"version": platform.python_version()}
        document["packages"] = [row for row in document["packages"] if can_be_made(row)]
        return document

    wishes = st.lists(st.sampled_from(WISHES), max_size=3, unique=True)
    return st.tuples(documents().map(here), wishes, st.sampled_from(FLAGS))


def can_be_made(row: Document) -> bool:
    """Tell whether a wheel can have this name, version and requirements."""
    try:
        Version(row["version"])
        for line in row.get("requires", ()):
            Requirement(line)
    except (InvalidVersion, InvalidRequirement):
        return False
    return True


class Workshop:
    """A folder in which each machine is made in its turn."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.matrix = folder, load_matrix(torch=False)
        self.wheels: dict[tuple[str, ...], Path] = {}
        self.template = make_venv(folder / "template", pip=False)
        self.environ = clean_environment() | {
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "UV_CACHE_DIR": str(folder / "uv"),
        }
        (folder / "home").mkdir()
        (folder / "ordinary").mkdir()
        for name, versions in ENDS.items():
            for version in filter(lambda text: text != "junk", versions):
                make_standin(folder / "ordinary", name, version)

    def wheel(self, name: str, version: str, requires: tuple[str, ...] = ()) -> Path:
        """Return the stand-in of a distribution, made once."""
        key = (name, version, *requires)
        if key not in self.wheels:
            folder = self.folder / f"made-{len(self.wheels)}"
            folder.mkdir(exist_ok=True)
            self.wheels[key] = make_standin(folder, name, version, requires)
        return self.wheels[key]

    def try_one(self, document: Document, wishes: list[str], flags: tuple[str, ...]) -> str:
        """Return how it went: `kept`, what the plan says where it promises nothing, or an error."""
        here, links = self.folder / "machine", self.folder / "links"
        for folder in (here, links):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template.folder, here / ".venv", symlinks=True)
        shutil.copytree(self.folder / "ordinary", links, copy_function=os.link)
        rows = [*document["packages"], {"name": "app-one", "version": "1.0", "requires": wishes}]
        wheels = [
            self.wheel(row["name"], row["version"], tuple(row.get("requires", ()))) for row in rows
        ]
        uv = [find_uv(), "pip", "install", "-q", "--offline", "--no-config", "--no-deps"]
        uv += ["--python", str(here / ".venv/bin/python"), *map(str, wheels)]
        subprocess.run(uv, check=True, env=clean_environment() | {"UV_LINK_MODE": "copy"})
        (here / "machine.json").write_text(json.dumps(document))
        given = ["--facts", "machine.json", "--python", ".venv", *flags]
        given += ["--offline", "--find-links", str(links)]
        document_of_plan = json.loads(self.run(here, *given, "--json").stdout)
        if document_of_plan["verdict"] != "fixable":
            return str(document_of_plan["verdict"])
        said = self.run(here, *given).stdout.splitlines()
        if "--apply" not in said[-1]:
            return "nothing promised"
        standins = {}
        for row in document_of_plan["install"]:
            if row["index"] != "here":
                made = self.wheel(row["name"], row["version"])
                (links / made.name).unlink(missing_ok=True)
                os.link(made, links / made.name)
                standins[row["name"], row["version"]] = as_wheel(made)

        def tables(*, torch: bool = True) -> Matrix:
            return with_standins(load_matrix(torch=torch), standins)

        with mock.patch.object(inputs, "load_matrix", tables):
            words = shlex.split(said[-1])[1:]
            near = [] if "--offline" in words else ["--offline"]  # by now all of it is here
            done = self.run(here, *words, *near, "--yes", "--json")
        if done.returncode != 0:
            return f"{done.returncode}: {done.stdout}{done.stderr}"
        [site] = here.glob(".venv/lib/python3*/site-packages")
        there = {
            (canonicalize_name(found.name), found.version)
            for found in distributions(path=[str(site)])
        }
        promised = {(row["name"], row["version"]) for row in document_of_plan["install"]}
        lacking = {(canonicalize_name(name), version) for name, version in promised} - there
        return f"not installed: {sorted(lacking)}" if lacking else "kept"

    def run(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run our command in `folder`, without the inference."""
        works = lambda *_, **__: Verification(verdict="works")  # noqa: E731
        with mock.patch.object(changing, "verify", works):
            return run_here(*words, cwd=folder, env=self.environ)


def prove(count: int, number: int) -> dict[str, Any]:
    """Try `count` machines; return what they came to, and the promises that were broken."""
    seen: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="prove-promises-") as temporary:
        workshop = Workshop(Path(temporary))

        @seed(number)
        @settings(
            max_examples=count,
            suppress_health_check=list(HealthCheck),
            database=None,
            deadline=None,
        )
        @given(drawn())
        def judge(row: tuple[Document, list[str], tuple[str, ...]]) -> None:
            how = workshop.try_one(*row)
            seen["machines"] += 1
            good = how in {"kept", "healthy", "impossible", "nothing promised"}
            seen[how if good else "broken"] += 1
            if not good:
                broken.append(f"{how}: {json.dumps(row)}")
                print(broken[-1], file=sys.stderr, flush=True)

        judge()
    return {**seen, "wrong": broken}


if __name__ == "__main__":
    sys.exit(prove_random(__doc__, "promises", lambda *given: {"promises": prove(*given)}))
