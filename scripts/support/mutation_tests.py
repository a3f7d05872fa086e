"""Which tests concern a line, and whether they notice a mutation of it.

Both are learnt of one run of the fast tests: coverage says which test ran a line (its contexts),
the report of the run how long each test took.
"""

from __future__ import annotations

import compileall
import contextlib
import itertools
import json
import os
import py_compile
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import coverage

from matrix import compile_tables

ROOT = Path(__file__).resolve().parents[2]
RESOLVER = ROOT / "resolver"
PACKAGE = "ortgpu_fix"
MEASURED = ROOT / ".mutants"
CONTEXTS = MEASURED / "coverage"
PIECE = 8
"""Seconds of tests that are run at once: the nearest notice most mutations."""
PATIENCE = 60
"""Of the tests that ran a line the nearest and quickest are run, so many seconds of them."""
FAST = "not slow and not online"
WORDS = ("-q", "-m", FAST, "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")
SLOWER = 4
"""Tests may take so many times as long as when they were measured, and `START` seconds more."""
START = 60


class CannotTellError(Exception):
    """Why no mutation can be judged, in one sentence."""


class Reach:
    """The tests that ran a line, nearest and quickest first."""

    def __init__(self) -> None:
        if not CONTEXTS.exists():
            raise CannotTellError("no run of the fast tests was measured")
        self._data = coverage.CoverageData(str(CONTEXTS))
        self._data.read()
        self._files = {
            Path(name).relative_to(RESOLVER).as_posix(): name
            for name in self._data.measured_files()
            if RESOLVER in Path(name).parents
        }
        by_file: dict[str, dict[str, float]] = {}
        for report in sorted(MEASURED.glob("*.xml"), key=_written):
            by_file |= _seconds_in(report)
        there = [row for file, row in by_file.items() if (ROOT / file).exists()]
        self.seconds = {test: value for row in there for test, value in row.items()}
        self._traced = {name.partition("|")[0] for name in self._data.measured_contexts()}
        self._lines: dict[str, dict[int, set[str]]] = {}
        self._early: dict[str, set[int]] = {}

    def of_line(self, module: str, first: int, last: int) -> list[str]:
        """Return the tests that ran a line from `first` to `last` of `module`.

        Those of a line that runs once, when it is imported, are all that ran any of the module.
        """
        lines = self._of_module(module)
        tests = set().union(*(lines.get(line, set()) for line in range(first, last + 1)))
        return self.quickest(self._sorted(module, tests or set().union(*lines.values())))

    def runs_early(self, module: str, first: int, last: int) -> bool:
        """Return whether a line ran outside of the tests: when the program was imported."""
        early = self._early.get(module, set())
        return not early.isdisjoint(range(first, last + 1))

    def others(self, module: str, tests: Iterable[str]) -> list[str]:
        """Return further tests that may notice.

        A value that was kept from an earlier test, a process of its own and random examples leave
        no trace in the contexts. So these are those without a trace, in files of whose tests others
        ran the module, and all of the package.
        """
        files = {test.partition("::")[0] for test in set().union(*self._of_module(module).values())}
        more = {
            test
            for test in self.seconds
            if test.startswith(_folder(module))
            or (test not in self._traced and test.partition("::")[0] in files)
        }
        return self.quickest(self._sorted(module, more - set(tests)), PATIENCE / 2)

    def files(self, module: str) -> set[str]:
        """Return the files of all tests that `of_line` and `others` may return."""
        tests = {test for test in self.seconds if test.startswith(_folder(module))}
        tests.update(*self._of_module(module).values())
        return {test.partition("::")[0] for test in tests}

    def quickest(self, tests: Sequence[str], seconds: float = PATIENCE) -> list[str]:
        """Return the first of `tests` that take no longer than `seconds` in all."""
        totals = itertools.accumulate(self.seconds[test] for test in tests)
        return [test for test, total in zip(tests, totals, strict=True) if total <= seconds]

    def limit(self, tests: Iterable[str]) -> float:
        """Return the seconds that `tests` may take."""
        return START + SLOWER * sum(self.seconds.get(test, 1.0) for test in tests)

    def _of_module(self, module: str) -> dict[int, set[str]]:
        if module not in self._lines:
            by_line = (
                self._data.contexts_by_lineno(self._files[module])
                if (module in self._files)
                else {}
            )
            self._early[module] = {line for line, names in by_line.items() if "" in names}
            self._lines[module] = {
                line: {name.partition("|")[0] for name in names} & self.seconds.keys()
                for line, names in by_line.items()
            }
        return self._lines[module]

    def _sorted(self, module: str, tests: Iterable[str]) -> list[str]:
        folder = _folder(module)
        return sorted(
            tests,
            key=lambda test: (not test.startswith(folder), self.seconds.get(test, 1.0), test),
        )


def _seconds_in(report: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of each test, by file, of a report in the format of JUnit."""
    found: dict[str, dict[str, float]] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest's own
        file = f"{case.attrib['classname'].replace('.', '/')}.py"
        test = f"{file}::{case.attrib['name']}"
        found.setdefault(file, {})[test] = float(case.attrib["time"])
    return found


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns


def _folder(module: str) -> str:
    room, *more = module.split("/")[:-1] or ["cli"]
    return f"tests/{room}/{more[0]}/" if room == "guests" and more else f"tests/{room}/"


class Outcome(NamedTuple):
    """How tests ended: `noticed` is None where the time was over; `by` is what failed first."""

    noticed: bool | None
    by: str = ""


_WRITES_IN_ITS_FOLDER = """
mount --bind "$1" "$1"
while read -r _ point _; do
  case $point in
    "$1"* | /dev/* | /proc* | /sys*) ;;
    *) mount -o remount,bind,ro "$point" 2>/dev/null || : ;;
  esac
done < /proc/self/mounts
shift
exec "$@"
"""
"""A mutation of what removes files removes others: root's processes see everything else read-only.
Other users' have their permissions."""


class Laboratory:
    """An environment whose copy of the program is mutated; everything else is that of the tests."""

    def __init__(self, folder: Path, files: Iterable[str]) -> None:
        """Make it in `folder`, which does not exist; the tests of `files` wait to be run."""
        site = Path(sysconfig.get_path("purelib"))
        venv.create(folder / "venv")
        python = folder / "venv" / "bin" / "python"
        [packages] = (folder / "venv").glob("lib/python*/site-packages")
        self._package, self._scratch = packages / PACKAGE, folder / "tmp"
        self._scratch.mkdir()
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(RESOLVER, self._package, ignore=without)
        shutil.copytree(ROOT / "data", self._package / "data", ignore=without)
        compile_tables.write_compiled(self._package / "data")
        for program in Path(sysconfig.get_path("scripts")).iterdir():
            with contextlib.suppress(FileExistsError):
                (python.parent / program.name).symlink_to(program)
        (packages / "others.pth").write_text(f"{site}\n")
        by_content = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self._package, quiet=1, invalidation_mode=by_content)
        self._enter = [str(python)]
        enter = ["unshare", "--mount", "--propagation", "private"]
        if os.geteuid() == 0 and shutil.which("unshare") and _succeeds(*enter, "true"):
            words = ["sh", "-euc", _WRITES_IN_ITS_FOLDER, "sh", str(folder)]
            self._enter = [*enter, *words, str(python)]
        own = {name: str(self._scratch) for name in ("TMPDIR", "XDG_CACHE_HOME")}
        self._env = os.environ | own | {"PYTHONDONTWRITEBYTECODE": "1"}
        self._socket, theirs = socket.socketpair()
        with (self._scratch / "output").open("wb") as output, theirs:
            server = str(Path(__file__).with_name("mutation_server.py"))
            self._server = subprocess.Popen(
                [*self._enter, server, str(theirs.fileno()), *WORDS, *files],
                cwd=ROOT,
                env=self._env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._replies = self._socket.makefile(encoding="utf-8")
        self._number = 0
        if not self._replies.readline():
            said = (self._scratch / "output").read_text(encoding="utf-8", errors="replace")
            raise CannotTellError(f"the tests could not be collected: {said[-1000:]}")

    def run(self, module: str, code: str, tests: Sequence[str], seconds: float) -> Outcome | None:
        """Run `tests` with `code` in the place of `module`, to the first that fails.

        None where that changes what was done when they were collected.
        """
        with self._mutated(module, code) as (path, original):
            return self._ask(tests, seconds, str(path), original, code)

    def passes(self, tests: Sequence[str], seconds: float) -> bool:
        """Return whether `tests` pass with the program as it is."""
        outcome = self._ask(tests, seconds, "", "", "")
        return outcome is not None and outcome.noticed is False

    def _ask(self, tests: Sequence[str], seconds: float, *change: str) -> Outcome | None:
        self._number += 1
        request = json.dumps([self._number, *change, list(tests)])
        self._socket.sendall(f"{request}\n".encode())
        child = int(str(self._reply()))
        over = threading.Timer(seconds, _end, [child])
        over.start()
        failed = self._reply()
        in_time = over.is_alive()
        over.cancel()
        _end(child)
        if not in_time:
            return Outcome(noticed=None)
        return None if failed is None else Outcome(noticed=bool(failed), by=str(failed))

    def _reply(self) -> object:
        """Return the next answer to the last request; what comes late of an earlier is left."""
        for line in self._replies:
            number, value = json.loads(line)
            if number == self._number:
                return value
        raise CannotTellError("the process that has collected the tests died")

    def run_anew(self, module: str, code: str, tests: Sequence[str], seconds: float) -> Outcome:
        """Do the same in a process that collects the tests with the changed program."""
        names = self._scratch / "names"
        names.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
        command = [*self._enter, "-m", "pytest", *WORDS, "--tb=no", "-rfE", "-x", f"@{names}"]
        output = self._scratch / "anew"
        with self._mutated(module, code), output.open("wb") as file:
            child = subprocess.Popen(
                command, cwd=ROOT, env=self._env, stdout=file, stderr=file, start_new_session=True
            )
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                return Outcome(noticed=None)
            finally:
                _end(child.pid)
                child.wait()
        said = output.read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+)", said, re.MULTILINE)
        by = (failed or [said[-300:]])[0] if child.returncode else ""
        return Outcome(noticed=child.returncode != 0, by=by)

    @contextlib.contextmanager
    def _mutated(self, module: str, code: str) -> Iterator[tuple[Path, str]]:
        """Put `code` in the place of `module` meanwhile: processes of their own read it there."""
        path = self._package / module
        original = path.read_bytes()
        path.with_suffix(".mutant").write_text(code, encoding="utf-8")
        path.with_suffix(".mutant").replace(path)
        try:
            yield path, original.decode()
        finally:
            path.write_bytes(original)

    def close(self) -> None:
        """End its process."""
        self._socket.close()
        self._server.kill()
        self._server.wait()


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _end(group: int) -> None:
    """End what is left of the processes of `group`."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def words_to_measure() -> list[str]:
    """Return words for pytest that keep which test ran which line; `--cov` is another."""
    MEASURED.mkdir(exist_ok=True)
    return [f"--junitxml={MEASURED / f'{time.time_ns()}.xml'}", "--cov-context=test"]


def measure() -> None:
    """Run the fast tests, and keep which ran which line; only the new ones where that suffices."""
    program = [*RESOLVER.rglob("*.py"), *(ROOT / "data").iterdir()]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    then = _written(CONTEXTS) if CONTEXTS.exists() else 0
    newer = [path for path in tests if _written(path) > then]
    names = [path.relative_to(ROOT).as_posix() for path in newer]
    anew = any(_written(path) > then for path in program)
    anew = anew or not all(path.name.startswith("test_") for path in newer)
    if names or anew:
        installed = Path(sysconfig.get_path("purelib"), PACKAGE)
        for path in RESOLVER.rglob("*.py"):
            if (installed / path.relative_to(RESOLVER)).read_bytes() != path.read_bytes():
                raise CannotTellError(f"{path} differs from what is installed: install it")
        if anew:
            shutil.rmtree(MEASURED, ignore_errors=True)
            names = ["tests"]
        words = ["-q", "-m", FAST, "-n", "2", "--dist", "worksteal", "--cov", "--cov-report="]
        command = [sys.executable, "-m", "pytest", *words, "--cov-append", *words_to_measure()]
        env = os.environ | {"COVERAGE_FILE": str(CONTEXTS)}
        if subprocess.run([*command, *names], cwd=ROOT, env=env, check=False).returncode:
            shutil.rmtree(MEASURED)
            raise CannotTellError("the fast tests fail without a mutation, too")
