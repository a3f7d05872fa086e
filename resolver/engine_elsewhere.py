"""The engine that resolves for machines that are not here.

Shell.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Protocol

from .engine import find_uv
from .engine_pip import Pip
from .engine_uv import Uv
from .facts import Facts
from .plan import Pinned
from .run import Runner
from .sources import Sources


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
        sources: Sources,
        folder: Path,
    ) -> tuple[Pinned, ...]:
        """Choose wheels for `requires` and what they require, on the machine of `facts`.

        As if nothing was installed there, whatever this machine is: the same everywhere. `within`
        are requirements that what is chosen must satisfy too. Of a release there may be several
        wheels that fit; the best comes first. Raises Error `requirements-impossible`.
        """


def choose_resolver(environ: Mapping[str, str], runner: Runner) -> Resolver:
    """Return uv, else the pip that is beside us: neither needs the machine's own Python."""
    uv = find_uv(environ, runner)
    if uv is not None:
        return Uv(program=uv[0], version=uv[1], environ=environ, runner=runner)
    command = (sys.executable, "-I", "-m", "pip")
    version = metadata.version("pip")
    return Pip(command=command, version=version, environ=environ, runner=runner)
