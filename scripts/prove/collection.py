"""Prove the Ansible collection with Ansible's own tools, on each ansible-core that it is for.

    python scripts/prove/collection.py [--work DIR] [--core 2.19 2.20 2.21]

For each ansible-core a fresh environment with ansible-lint and the program. `lint`: ansible-lint
finds nothing, in the profile for production. `sanity`: every test of `ansible-test sanity` that is
for collections passes, on every Python that is here and that this ansible-core has modules for.
`tests`: tests/ansible, but for those that need an index, pass under that ansible-core: the whole
role in waves on hosts that differ is among them.

Needs Linux, gcc, git, a Python 3.12 or 3.13 and a package index, and takes about four minutes for
each ansible-core. ansible-test takes pip from a server of its own; here it comes from the index.
The dated result goes to scripts/prove/results/; the exit code is 1 where something is not as it
must be.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import record
from support.pythons import find_python

ROOT = Path(__file__).resolve().parents[2]
CORES = ["2.19", "2.20", "2.21"]
TOOLS = ["ansible-lint", "hypothesis", "pytest", "pytest-timeout", "tomli", "uv"]
PYTHONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
PIP = """\
import subprocess
import sys

argv = ["-m", "pip", "--python", sys.executable, "install", "--quiet", "pip=={version}"]
subprocess.check_call([{python!r}, *argv])
"""
"""Stands for the script by which ansible-test puts pip into its environments."""


class Proof:
    """An environment with an ansible-core, and the collection where its tools want it."""

    def __init__(self, work: Path, core: str, cases: list[str]) -> None:
        self.core = core
        self.cases = cases
        self.failed = 0
        self.venv = work / "venv"
        base = find_python("3.13") or find_python("3.12") or Path(sys.executable)
        subprocess.run([base, "-m", "venv", self.venv], check=True)
        self.python = self.venv / "bin" / "python"
        pip = [str(self.python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"ansible-core=={core}.*", *TOOLS, str(ROOT)], check=True)
        self.home = work / "home"
        self.place = work / "ansible_collections" / "ortgpu" / "fix"
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "scripts" / "ansible", self.place, ignore=left_out)
        self._bring_pip()

    def _bring_pip(self) -> None:
        """Put our script where ansible-test looks for the one that it has loaded."""
        [source] = self.venv.glob("lib/python*/site-packages/ansible_test/_internal")
        text = (source / "python_requirements.py").read_text()
        cache = self.home / ".ansible" / "test" / "cache"
        cache.mkdir(parents=True)
        for version in set(re.findall(r"pip='([0-9.]+)'", text)):
            script = PIP.format(version=version, python=str(self.python))
            (cache / f"get_pip_{version.replace('.', '_')}.py").write_text(script)

    def run(self, *argv: str | Path, cwd: Path) -> tuple[int, str, float]:
        """Run a program of the environment: its exit code, what it said, seconds."""
        pythons = [str(found.parent) for found in map(find_python, PYTHONS) if found]
        environ = {name: text for name, text in os.environ.items() if "ANSIBLE" not in name}
        environ |= {
            "ANSIBLE_COLLECTIONS_PATH": str(self.place.parents[2]),
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(self.venv / "bin"), *pythons, os.environ["PATH"]]),
        }
        started = time.monotonic()
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=cwd,
            env=environ,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout, round(time.monotonic() - started, 1)

    def note(self, part: str, problems: Iterable[str], **about: object) -> None:
        """Write down what a part came to."""
        found = list(problems)
        self.failed += bool(found)
        name = f"{self.core}: {part}"
        print(f"{name:14} {about} {'; '.join(found) or 'ok'}", flush=True)
        record("collection", {"name": name, "problems": found, **about}, self.cases)

    def lint(self) -> None:
        """Let ansible-lint look at all of it."""
        words = ["--nocolor", "--strict", "--profile", "production"]
        code, said, seconds = self.run(self.venv / "bin" / "ansible-lint", *words, cwd=self.place)
        passed = re.findall(r"^Passed: .*", said, re.MULTILINE)
        self.note(
            "lint", [] if code == 0 else said.splitlines()[-20:], seconds=seconds, said=passed
        )

    def sanity(self) -> None:
        """Let ansible-test look at all of it, on every Python."""
        words = ["sanity", "--local", "--color", "no"]
        code, said, seconds = self.run(self.venv / "bin" / "ansible-test", *words, cwd=self.place)
        ran = re.findall(r'^Running sanity test "(.+?)"(?: on Python (\S+))?', said, re.MULTILINE)
        problems = re.findall(r"^(?:ERROR|FATAL): .*", said, re.MULTILINE)
        problems += [f"exit code {code}"] if code and not problems else []
        left_out = re.findall(r"^WARNING: (Skipping .*)", said, re.MULTILINE)
        self.note(
            "sanity",
            problems,
            seconds=seconds,
            tests=sorted({name for name, _ in ran}),
            pythons=sorted({python for _, python in ran if python}, key=PYTHONS.index),
            left_out=sorted(set(left_out)),
        )

    def tests(self) -> None:
        """Run our own tests under this ansible-core."""
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not online"]
        code, said, seconds = self.run(self.python, *words, "tests/ansible", cwd=ROOT)
        last = said.strip().splitlines()[-1:]
        self.note("tests", [] if code == 0 else said.splitlines()[-30:], seconds=seconds, said=last)


def main() -> int:
    """Prove it all; return 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path)
    parser.add_argument("--core", nargs="+", default=CORES, metavar="VERSION")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-collection-"))
    cases = [f"{core}: {part}" for core in CORES for part in ("lint", "sanity", "tests")]
    failed = 0
    for core in options.core:
        proof = Proof(work / core, core, cases)
        proof.lint()
        proof.sanity()
        proof.tests()
        failed += proof.failed
    if options.work is None:
        shutil.rmtree(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
