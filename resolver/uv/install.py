"""Install wheels, each with its hash, into a prefix: `uv pip install --prefix`.

uv takes them from its user's cache or brings them there, and links the files from it. Nothing of
the environment itself is changed: it only decides which Python the scripts will name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..facts.target import Target
from ..index.client import Index
from ..index.config import IndexConfig
from ..plan.wheels import Pinned
from ..utils.child_environment import child_environment
from ..utils.process import Finished, temporary_in
from ..utils.progress import Progress
from .compile import may_cache
from .environment import uv_environment
from .failures import check_python, install_failure
from .guard import guarded_command
from .indexes import indexes_of
from .program import Uv
from .progress import DrawnProgress
from .project import lock_text

INSTALL_SECONDS = 3600.0


class Prefix(NamedTuple):
    """Where uv installs: a prefix that holds nothing else, beside the environment."""

    target: Target
    """The Python that the scripts will name."""
    folder: Path
    work: Path
    """For what is needed meanwhile; on the same filesystem."""
    lock: Path
    """uv holds this file while it runs."""


def install_cached(
    uv: Uv, pinned: Sequence[Pinned], index: Index, into: Prefix, progress: Progress
) -> bool:
    """Install `pinned` from uv's cache and from folders alone; return whether all were there.

    Where they are not, the prefix has to be emptied.
    """
    if may_cache(uv.environ) is None and not all(pin.url.startswith("file:") for pin in pinned):
        return False
    done = _install(uv, pinned, replace(index.sources, offline=True), into, progress)
    return done.returncode == 0


def install(
    uv: Uv, pinned: Sequence[Pinned], index: Index, into: Prefix, progress: Progress
) -> None:
    """Install exactly `pinned` into the prefix `into`.

    Raises Error `install-failed` with the words of uv, `download-hash-mismatch`,
    `download-truncated`, `disk-full`, `python-prints`, offline that of `IndexConfig.absent`, and
    those of `Index`.
    """
    done = _install(uv, pinned, index.sources, into, progress)
    if done.returncode != 0:
        check_python(into.target, uv.environ, uv.runner)
        cache = may_cache(uv.environ) or into.work
        raise install_failure(done, pinned, index, (into.work, cache), INSTALL_SECONDS)


def compile_modules(uv: Uv, folder: Path, into: Prefix) -> None:
    """Have the Python of the environment compile what lies in `folder`, which is staged in `into`.

    Bytecode is not required: that it cannot be made is no failure.
    """
    compiling = ["-m", "compileall", "-q", "-d", into.target.purelib]  # what a traceback names
    argv = [into.target.executable, "-I", "-S", *compiling, str(folder)]
    _run_guarded(uv, argv, child_environment(uv.environ, "look"), into)


def _install(
    uv: Uv, pinned: Sequence[Pinned], sources: IndexConfig, into: Prefix, progress: Progress
) -> Finished:
    wheels = [pin.wheel for pin in pinned]
    indexes = indexes_of(sources, wheels)
    cache = may_cache(uv.environ) is not None
    env = uv_environment(uv.environ, sources, indexes.variables(together=True), cache=cache)
    env["UV_NO_CONFIG"] = "1"
    if env.get("UV_LINK_MODE") == "symlink":  # who cleans the cache would break what is here
        env["UV_LINK_MODE"] = "copy"
    into.work.mkdir(parents=True, exist_ok=True)
    lock = into.work / "pylock.toml"
    lock.write_text(lock_text(pinned, indexes.default), encoding="utf-8")
    argv = [uv.program, "pip", "install", "--python", into.target.executable]
    argv += ["--prefix", str(into.folder), "--no-deps", "--require-hashes", "--no-build"]
    argv += ["--break-system-packages"]  # the prefix is our own
    argv += ["--preview-features", "pylock", "--requirement", str(lock)]
    if sources.offline:
        argv.append("--offline")
        return _run_guarded(uv, argv, env, into)
    drawn = DrawnProgress(wheels, progress).hear
    return _run_guarded(uv, argv, env | {"TERM": "xterm"}, into, drawn=drawn)


def _run_guarded(
    uv: Uv, argv: Iterable[str], env: dict[str, str], into: Prefix, **how: object
) -> Finished:
    temporary = into.work / "tmp"
    with contextlib.suppress(FileExistsError):
        temporary.mkdir(parents=True)
    command = guarded_command([*argv], into.lock)
    env |= temporary_in(str(temporary))
    return uv.run(command, env, INSTALL_SECONDS, lifeline=True, **how)
