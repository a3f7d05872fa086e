"""`run --pid`: tell what a process that runs already has loaded, and whether it holds a GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from ...errors import Error
from ...facts.running import RunningProcess, RunningVerdict, judge_running
from ...messages.catalog import Language, load_texts
from ...probe.running import look_at_process
from ...report.running import running_json, running_sections
from ...utils.files import write
from ...utils.foreign_text import clean
from ...utils.process import run as run_process
from .. import console
from ..command_line import in_shells
from ..flags import CommandLine

NOT_ON_THE_GPU = 6


def run(line: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Return 0, or 6 where `--require-gpu` is given and the process is not seen to hold a GPU.

    Raises Error `usage` for what is no number, those of `look_at_process`, and `file-unwritable`.
    """
    texts = load_texts("en" if line.json else language)
    process = look_at_process(_number(line.pid or ""), runner=run_process, environ=environ)
    verdict = judge_running(process)
    command = _next(process, verdict)
    if line.json:
        document = running_json(process, verdict, command, texts)
        if line.output is None:
            console.print_json(document)
        else:
            write(Path(line.output), json.dumps(clean(document), indent=2) + "\n")
    else:
        console.print_sections(running_sections(process, verdict, command, texts))
    return NOT_ON_THE_GPU if line.require_gpu and verdict != "on-gpu" else 0


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text):
        raise Error("usage", problem=Error("wish-pid", value=text))
    return int(text)


def _next(process: RunningProcess, verdict: RunningVerdict) -> str:
    """Return the command that looks at the environment of a Python that lacks the GPU."""
    if verdict in {"on-gpu", "not-known"} or not process.prefix:
        return ""
    return in_shells(("ortgpu-fix", "--python", process.prefix))
