"""The uv that installs: the one that comes with this program.

It resolves, fetches, checks, unpacks and links; nothing here does that again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from ..errors import Error
from ..utils.child_environment import child_environment
from ..utils.process import Finished, Runner
from ..utils.programs import find_program
from ..versions import at_least

OLDEST = "0.13"
"""The oldest uv that is taken from PATH; what comes with this program is newer."""
_READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """A uv that runs, for the environment `environ` of the user."""

    program: str
    version: str
    environ: Mapping[str, str]
    runner: Runner

    @property
    def name(self) -> str:
        """`uv 0.13.9`: for people."""
        return f"uv {self.version}"

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], seconds: float, **how: object
    ) -> Finished:
        """Run a command of uv; `how` are further arguments of `process.run`.

        One that cannot be started is one that failed.
        """
        try:
            return self.runner(argv, timeout=seconds, env=env, **how)
        except OSError as error:
            return Finished(tuple(argv), 127, "", error.strerror or str(error))


def find_uv(environ: Mapping[str, str], runner: Runner) -> Uv:
    """Return the uv of our own environment; only where that has none, one of PATH.

    Raises Error `uv-missing` where there is none, or none that is new enough.
    """
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - a plan needs none

        program, version = find_uv_bin(), metadata.version("uv")
    except (ImportError, FileNotFoundError):
        program = find_program("uv", environ) or ""
        version = _version_of(program, environ, runner) if program else ""
    if not at_least(version, OLDEST):
        raise Error("uv-missing", oldest=OLDEST)
    return Uv(program=program, version=version, environ=environ, runner=runner)


def _version_of(program: str, environ: Mapping[str, str], runner: Runner) -> str:
    """Return `0.13.9` of `uv 0.13.9 (d5f39331a 2026-10-21)`; empty where it does not run."""
    try:
        done = runner(
            [program, "--version"], timeout=_READ_SECONDS, env=child_environment(environ, "index")
        )
    except OSError:
        return ""
    words = done.stdout.split()
    return words[1] if done.returncode == 0 and len(words) > 1 else ""
