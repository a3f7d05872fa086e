"""A running process, as text and as JSON.

Core.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..facts.running import LoadedFile, RunningProcess, RunningVerdict
from ..messages.catalog import Texts
from ..messages.sections import Row, Section

_STYLES: Mapping[RunningVerdict, str] = {"on-gpu": "green", "not-on-gpu": "red", "cpu-build": "red"}


def running_sections(
    process: RunningProcess, verdict: RunningVerdict, command: str, texts: Texts
) -> tuple[Section, ...]:
    """Return the process as text; `command` is what to type next, or empty."""
    code = f"running-{verdict}"
    said = [Row(text=texts.verdict(code), style=f"bold {_STYLES.get(verdict, 'yellow')}")]
    said.append(Row(text=texts.verdict(code, key="hint")))
    for gpu in process.gpus or ():
        mib = "?" if gpu.mib is None else gpu.mib
        said.append(Row(text=texts.label("running-memory", gpu=gpu.gpu, mib=mib)))
    if process.twice:
        text = texts.label("running-twice", names=", ".join(process.twice))
        said.append(Row(text=text, style="red"))
    files = (*process.onnxruntime, *process.providers, *process.cuda_libraries)
    blocks = {
        texts.label("running-heading", pid=process.pid, command=process.command): said,
        texts.label("running-loaded"): [_row(file, texts) for file in files],
        texts.label("running-environment"): [
            Row(head=name, text=text) for name, text in sorted((process.environment or {}).items())
        ],
        texts.label("run-next"): [Row(text=command, whole=True)],
    }
    shown = {heading: tuple(row for row in rows if row.text) for heading, rows in blocks.items()}
    return tuple(Section(heading=heading, rows=rows) for heading, rows in shown.items() if rows)


def _row(file: LoadedFile, texts: Texts) -> Row:
    text = texts.label("running-replaced", path=file.path) if file.replaced else file.path
    return Row(head=file.name, text=text)


def running_json(
    process: RunningProcess, verdict: RunningVerdict, command: str, texts: Texts
) -> dict[str, object]:
    """Return the process as one document (`data/process.schema.json`)."""
    return {
        "schema": 1,
        "pid": process.pid,
        "command": process.command,
        "executable": process.executable,
        "verdict": verdict,
        "text": texts.verdict(f"running-{verdict}"),
        "onnxruntime": [file._asdict() for file in process.onnxruntime],
        "providers": [file._asdict() for file in process.providers],
        "libraries": [file._asdict() for file in process.cuda_libraries],
        "twice": list(process.twice),
        "environment": None if process.environment is None else dict(process.environment),
        "devices": None if process.devices is None else list(process.devices),
        "gpus": None if process.gpus is None else [gpu._asdict() for gpu in process.gpus],
        "commands": [command] if command else [],
    }
