"""The tool that makes an environment anew from its lock, and what its project file must say.

uv, PDM and Poetry put back what their lock names: the CPU build, where something in it
requires onnxruntime. uv can override a requirement, PDM can exclude one; Poetry can do neither
(https://github.com/python-poetry/poetry/issues/697, closed as not planned), and takes the stand-in
as a dependency with a path. pip has no project; a constraint cannot exclude either, but may name
the stand-in's file. Each was tried: `scripts/prove/projects.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..companions.contents import STAND_IN, wheel_file
from ..facts.model import GPU_BUILD
from ..facts.project_tool import LOCKS
from ..plan.reasons import Finding, finding
from ..plan.wheels import PYPI
from .candidate import Candidate
from .changes import Changes
from .situation import Situation


def project_findings(here: Situation, best: Candidate, changes: Changes) -> Iterator[Finding]:
    """Say that the project's own tool would undo the fix, and what its file needs."""
    tool = here.facts.python.project
    if tool is None or not changes:
        return
    lines = [f'"{row.name}=={row.version}"' for row in changes.selection if row.index_url == PYPI]
    lines.sort(key=lambda line: not line.startswith(f'"{GPU_BUILD}='))
    yield finding(
        f"managed-by-{tool if tool in LOCKS else 'another'}",
        "warning",
        tool=tool,
        lines=", ".join(lines),
        file=wheel_file(STAND_IN, best.version),
    )
