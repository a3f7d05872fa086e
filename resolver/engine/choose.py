"""The program that resolves ordinary requirements and installs the staged wheels: uv or pip.

Both read the user's own configuration while they resolve, and none at all while they
install: then only the staged files exist, each named with its version and its hash.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Protocol

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ..errors import Error
from ..facts.model import Facts
from ..facts.target import Target
from ..index.config import IndexConfig
from ..plan.wheels import Pinned
from ..utils.process import Runner, install_environment
from ..versions import at_least
from .common import StagedFile
from .pip import Pip
from .uv import Uv

OLDEST_UV = "0.8"
"""The first that writes a pylock.toml with sizes and hashes for `uv pip compile`."""
OLDEST_PIP = "22.2"
"""The first with `--report`."""
_READ_SECONDS = 60.0


class Engine(Protocol):
    """uv or pip."""

    @property
    def name(self) -> str:
        """`uv 0.9.5`, `pip 25.1`: for people."""

    def resolve(
        self,
        requires: Sequence[str],
        target: Target,
        sources: IndexConfig,
        folder: Path,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        """Choose wheels for `requires` and what they require, within what `target` has installed.

        That need not be what is really there. Only what is not installed yet, or has to change, is
        returned; those with the canonical names `movable` may change, though nothing in `requires`
        says so. `folder` is for files on the way. Raises Error `requirements-impossible` with what
        the engine said.
        """

    def install(
        self, staged: Sequence[StagedFile], target: Target, folder: Path, lock: Path
    ) -> None:
        """Install exactly `staged`, which lie in one folder, into `target`.

        `folder` is for files on the way and must be on the filesystem of the environment; the
        engine holds `lock` while it runs. Raises Error `engine-failed` with what the engine said.
        """


class Resolver(Protocol):
    """uv or pip."""

    @property
    def name(self) -> str:
        """`uv 0.9.5`, `pip 25.1`: for people."""

    def resolve_for(
        self,
        requires: Sequence[str],
        within: Sequence[str],
        facts: Facts,
        sources: IndexConfig,
        folder: Path,
    ) -> tuple[Pinned, ...]:
        """Choose wheels for `requires` and what they require, on the machine of `facts`.

        As if nothing was installed there, whatever this machine is: the same everywhere. `within`
        are requirements that what is chosen must satisfy too. Of a release there may be several
        wheels that fit; the best comes first. Raises Error `requirements-impossible`.
        """


def choose(
    target: Target,
    environ: Mapping[str, str],
    runner: Runner,
    *,
    break_system_packages: bool = False,
) -> Engine:
    """Return the engine for `target`: uv, else the pip of the target, else our own pip.

    Raises Error `no-engine` where none of them can install there.
    """
    uv = find_uv(environ, runner) if target.implementation in {"cpython", "pypy"} else None
    if uv is not None and _reads(uv[0], target, environ, runner):
        program, version = uv
        return Uv(
            program=program,
            version=version,
            environ=environ,
            runner=runner,
            break_system_packages=break_system_packages,
        )
    command: tuple[str, ...] | None = None
    version = target.pip_version or ""
    if version and at_least(version, OLDEST_PIP):
        # -B: the bytecode of a pip that has none must not come into the environment
        command = (target.executable, "-I", "-B", "-m", "pip")
    else:
        version = _own_pip(target) or ""
        if version:
            command = (sys.executable, "-I", "-B", "-m", "pip", "--python", target.executable)
    if command is None:
        raise Error("no-engine", path=target.executable, version=target.version)
    return Pip(
        command=command,
        version=version,
        environ=environ,
        runner=runner,
        break_system_packages=break_system_packages,
    )


def choose_resolver(environ: Mapping[str, str], runner: Runner) -> Resolver:
    """Return uv, else the pip that is beside us: neither needs the machine's own Python."""
    uv = find_uv(environ, runner)
    if uv is not None:
        return Uv(program=uv[0], version=uv[1], environ=environ, runner=runner)
    command = (sys.executable, "-I", "-m", "pip")
    version = metadata.version("pip")
    return Pip(command=command, version=version, environ=environ, runner=runner)


def find_uv(environ: Mapping[str, str], runner: Runner) -> tuple[str, str] | None:
    """Return the path and the version of a uv that answers and is new enough."""
    beside = sysconfig.get_path("scripts")
    candidates = (shutil.which("uv", path=environ.get("PATH", "")), shutil.which("uv", path=beside))
    for program in dict.fromkeys(candidates):
        if program is None:
            continue
        try:
            said = runner([program, "--version"], timeout=5, env=install_environment(environ))
        except OSError:
            continue
        words = said.stdout.split()  # uv 0.9.5 (d5f39331a 2025-10-21)
        if said.returncode == 0 and len(words) > 1 and at_least(words[1], OLDEST_UV):
            return os.path.abspath(program), words[1]  # noqa: PTH100 - links stay: a shim is one
    return None


def _reads(program: str, target: Target, environ: Mapping[str, str], runner: Runner) -> bool:
    """Tell whether uv can work on `target`: not where anything prints when that Python starts.

    What its cache says of that Python counts for nothing: it installs with a cache of its own.
    """
    argv = [program, "python", "find", "--offline", "--no-cache", "--no-project", target.executable]
    said = runner(argv, timeout=_READ_SECONDS, env=install_environment(environ))
    return said.returncode == 0


def _own_pip(target: Target) -> str | None:
    """Return the version of the pip beside us, where it can install into `target`."""
    try:
        about = metadata.metadata("pip")
    except metadata.PackageNotFoundError:
        return None
    floor = SpecifierSet(about["Requires-Python"] or "")
    fits = floor.contains(Version(target.version), prereleases=True)
    return about["Version"] if fits else None
