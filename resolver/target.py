"""The environment to work on, as it describes itself.

Shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .asking import ask
from .environment import Target, read_target
from .interpreter import find_interpreter
from .run import Runner


def target_of(
    python: str | None, *, environ: Mapping[str, str], cwd: Path, runner: Runner
) -> Target:
    """Return the environment to work on, as it describes itself.

    Raises what `find_interpreter`, `ask` and `read_target` raise.
    """
    interpreter = find_interpreter(python, environ, cwd)
    return read_target(ask(interpreter, runner=runner, environ=environ), str(interpreter))
