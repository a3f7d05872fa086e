"""`diff OLD NEW`: what an update of a lock or a machine changes for the GPU."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...cli import console
from ...data_files import load_table
from ...errors import Error
from ...facts.model import GPU_BUILD, Facts, Interpreter
from ...messages.catalog import Language, load_texts
from .guest import DiffRequest
from .lock_text import NAME, mentions, read_included, read_lock_text

if TYPE_CHECKING:
    from .difference import ProjectState, Update


def run(asked: DiffRequest, environ: Mapping[str, str], language: Language) -> int:
    """Say what the step from one state to another changes; 1 where a machine loses GPU support.

    Raises Error `lock-unreadable`, `state-without-onnxruntime`, and those of `read_facts`.
    """
    files, hosts = asked.words, _hosts(asked, environ)
    states = [_read_state(file) for file in files]
    if not any(states) and not asked.json:  # most projects
        console.print_result(load_texts(language).label("diff-same"))
        return 0
    from .difference_report import difference_json, difference_sections

    found = _compared(states[0], states[1], hosts, asked.python)
    if asked.json:
        console.print_json(difference_json(found, files[0], files[1], load_texts("en")))
    else:
        console.print_sections(difference_sections(found, load_texts(language)))
    return int(any(host.loses_gpu_support for host in found.hosts))


def _hosts(asked: DiffRequest, environ: Mapping[str, str]) -> list[tuple[str, Facts]]:
    """Return the machines that have to run both states, with the Python that `--python` names.

    Raises Error `value-unknown` where that is no version, and as `read_facts` does.
    """
    from ...cli.described import in_new_environment
    from ...probe.interpreter import is_version
    from .facts_files import read_machines

    python = asked.python
    if python is not None and not is_version(python, environ, Path.cwd()):
        problem = Error("value-unknown", flag="--python", value=python, choices="3.11, 3.12, …")
        raise Error("usage", problem=problem)
    hosts = read_machines([*asked.hosts, *asked.facts])
    if python is None:
        return hosts
    return [(name, in_new_environment(host, python)) for name, host in hosts]


def _compared(
    old: ProjectState, new: ProjectState, hosts: Sequence[tuple[str, Facts]], python: str | None
) -> Update:
    from ...cli.described import PLATFORMS
    from ...facts.gpu_names import known_capabilities
    from ...matrix.load import load_matrix
    from .difference import compare

    interpreter = Interpreter(version=python or platform.python_version())
    base = hosts[0][1] if hosts else Facts(PLATFORMS["linux"], None, None, interpreter)
    known = known_capabilities(load_table("gpus"), base.platform.machine)
    return compare(old, new, hosts, base, matrix=load_matrix(), known=known)


def _read_state(file: str) -> ProjectState:
    """Return what a file says is installed; nothing where it does not name onnxruntime."""
    text = read_lock_text(file)
    included = read_included(file, text)
    if not mentions([NAME], text, included):
        return ()
    from ...cli.facts_files import read_facts
    from .parse_lock import read_lock

    if text.lstrip().startswith("{"):
        return read_facts(file)
    locked = read_lock(text, file, included)
    pins = (*locked.pins, *locked.loose)
    if not any(pin.name in {GPU_BUILD, NAME} for pin in locked.pins):
        raise Error("state-without-onnxruntime", file=file)
    return pins
