"""Run a script with the target's interpreter, and leave nothing of it behind.

Shell.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import Error
from ..utils.child_environment import child_environment
from ..utils.process import Finished, Runner, temporary_in
from ..utils.signals import signals_ignored


def run_script(
    script: Path,
    target: str | Path,
    arguments: Sequence[str],
    *,
    runner: Runner,
    environ: Mapping[str, str],
    pythonpath: str | None = None,
    **settings: object,
) -> Finished:
    """Run `script` with the interpreter `target`, in an environment made of `environ`.

    `settings` are for `runner`: its time limit in seconds, who hears what it prints. With
    `pythonpath` the script imports from there first. Raises Error `verify-not-started`.
    """
    given = {"PYTHONPATH": pythonpath} if pythonpath else {}
    with scratch_folder(target) as scratch:
        env = child_environment(environ, "compute") | given | temporary_in(scratch)
        argv = [str(target), "-B", str(script), "--scratch", scratch, "--lifeline", *arguments]
        try:
            return runner(argv, env=env, **settings)
        except OSError as problem:
            raise Error("verify-not-started", python=target, problem=problem) from problem


@contextmanager
def scratch_folder(target: str | Path) -> Iterator[str]:
    """Name a new folder for what a child leaves behind: profiles, files of libraries.

    It is removed however this ends; the child that gets the name makes it.

    So it never exists without somebody to remove it: where we are killed, the child learns so from
    its standard input. Raises Error `verify-not-started` (of the interpreter `target`) where there
    is no place for temporary files.
    """
    try:
        folder = Path(tempfile.gettempdir(), f"ortgpu-fix-{secrets.token_hex(8)}")
    except OSError as problem:
        raise Error("verify-not-started", python=target, problem=problem) from problem
    try:
        yield str(folder)
    finally:
        with signals_ignored():
            shutil.rmtree(folder, ignore_errors=True)
