"""`run`: start the user's program, and report on its inference sessions.

Its standard output is its own: the report goes to standard error, the document of `--json` to the
file of `-o`, else to standard output as the one line after the program's. Shell, and thin.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...cli import console
from ...cli.command_line import SYSTEM, in_shells, typed_command
from ...cli.flags import Options
from ...data_files import load_table
from ...errors import Error
from ...log_lines.explanations import Explanation
from ...log_lines.failures import FailureTable, parse_failures
from ...log_lines.matcher import Search, explain_log
from ...messages.catalog import Language, Texts, load_texts
from ...messages.sections import plain
from ...messages.shells import TypedCommand, pasted_commands
from ...probe.interpreter import FOLDERS, chosen_by, find_interpreter
from ...utils.files import check_place, write
from ...utils.foreign_text import clean
from .advice import Packed, advice_of, knobs_of
from .events import InferenceSession, ProgramSeen
from .guest import RunRequest
from .makers import made_by
from .report import (
    Advised,
    ProgramReport,
    program_json,
    program_sections,
    session_line,
)
from .runner import python_of, watch_program
from .verdicts import (
    SessionGroup,
    grouped,
    judge_program,
    verdict_of,
    without_gpu,
)

NOT_ON_THE_GPU = 6
SIGNALLED = 128


def run(request: RunRequest, environ: Mapping[str, str], language: Language) -> int:
    """Run the program to its end; return its own exit code, or 6 where `--require-gpu` is not met.

    Raises Error `program-not-started`, those of `find_interpreter`, and, before the program is
    started, `file-unwritable`.
    """
    texts = load_texts("en" if request.json else language)
    child = in_environment(environ, request.python)
    output = console.output_path(request.output)
    if output is not None:
        check_place(output)

    def show_session(session: InferenceSession) -> None:
        console.print_notice(session_line(session, verdict_of(session), load_texts(language)))

    table = parse_failures(load_table("failures"))
    printed = Search(table)
    reads = request.require_gpu and not python_of(request.rest, child)  # else its sessions show it
    status, seen = watch_program(
        request.rest, child, show_session if request.live else None, printed.feed if reads else None
    )
    found = () if seen.sessions else printed.explanations(texts.language)
    failures = tuple(each for each in found if each.severity == "error")
    report = _report(request, status, seen, child, table, failures, texts)
    _write(report, request, texts)
    if request.require_gpu and (failures or any(map(without_gpu, seen.sessions))):
        return NOT_ON_THE_GPU
    return status if status >= 0 else SIGNALLED - status


def in_environment(environ: Mapping[str, str], python: str | None) -> dict[str, str]:
    """Return the environment of a program: `python` is the one that its commands find first."""
    child = dict(environ)
    if python is not None:
        folder = find_interpreter(python, environ, Path.cwd()).parent
        child["PATH"] = os.pathsep.join(filter(None, [str(folder), environ.get("PATH")]))
        if (folder.parent / "pyvenv.cfg").is_file():
            child["VIRTUAL_ENV"] = str(folder.parent)
    return child


def _report(  # noqa: PLR0917
    request: RunRequest,
    status: int,
    seen: ProgramSeen,
    environ: Mapping[str, str],
    table: FailureTable,
    printed: tuple[Explanation, ...],
    texts: Texts,
) -> ProgramReport:
    versions = {each.pid: each.version for each in seen.libraries if each.name == "onnxruntime"}
    release = next(iter(versions.values()), None)

    def explain(text: str) -> tuple[Explanation, ...]:
        return explain_log(text, table, texts.language, release=release)

    applications = load_table("applications")
    groups = []
    for group in grouped(seen.sessions, made_by, explain):
        knobs = knobs_of(applications, group)
        pids = {each.pid for each in group.sessions}
        command = _program(request.options, seen, pids)
        advice = advice_of(group, knobs, _packed(seen, pids))
        groups.append(Advised(group=group, knobs=knobs, advice=advice, command=command))
    verdict = judge_program(seen, printed)
    instead = _instead(request, environ) if verdict == "not-installed" else ""
    return ProgramReport(
        command=pasted_commands(request.rest, SYSTEM)[0].text,
        status=status,
        verdict=verdict,
        seen=seen,
        groups=tuple(groups),
        printed=printed,
        instead=instead,
        diagnose="" if instead else _diagnose(request.options, seen),
        measure=_measure(request.options, [each.group for each in groups], seen),
    )


def _instead(request: RunRequest, environ: Mapping[str, str]) -> str:
    """Return the command that runs the program with the `.venv` here, which nothing named."""
    named = os.path.basename(request.rest[0]) != request.rest[0]  # noqa: PTH119 - PATH is not asked then
    folder = chosen_by(None, environ, Path.cwd())
    if request.python is not None or named or folder not in FOLDERS:
        return ""
    return in_shells(("ortgpu-fix", "run", "--python", folder, "--", *request.rest))


def _program(options: Options, seen: ProgramSeen, pids: Iterable[int]) -> TypedCommand:
    """Return this program with the flags that were given, for the first Python of `pids`."""
    found = (each.executable for each in seen.libraries if each.pid in pids)
    return typed_command({**options, "python": next(filter(None, found), options.get("python"))})


def _packed(seen: ProgramSeen, pids: Iterable[int]) -> Packed | None:
    """Return the archive that one of `pids` runs and has its onnxruntime from."""
    pythons = {each.pid: each.python.rpartition(".")[0] for each in seen.processes}
    for each in seen.libraries:
        if each.pid in pids and each.archive:
            return Packed(each.archive, pythons.get(each.pid, ""))
    return None


def _diagnose(options: Options, seen: ProgramSeen) -> str:
    """Return the command that looks at the environment of the first session without the GPU.

    Or at that of a Python that looked for onnxruntime, where none has it.
    """
    pids = {each.pid for each in seen.sessions if without_gpu(each)}
    pids |= {each.pid for each in seen.libraries if each.makes_none}
    if not pids and not seen.libraries and seen.missing:
        return in_shells(typed_command({**options, "python": seen.missing[0].executable}).words)
    return (
        in_shells(_program(options, seen, pids).words) if pids and not _packed(seen, pids) else ""
    )


def _measure(options: Options, groups: list[SessionGroup], seen: ProgramSeen) -> str:
    """Return the command that measures a model, with the shapes that it got."""
    sessions = (each for group in groups for each in group.sessions)
    session = next((each for each in sessions if each.model and each.runs.inputs), None)
    if session is None or session.model is None or not Path(session.model).is_file():
        return ""
    if _packed(seen, {session.pid}):
        return ""
    program, *flags = _program(options, seen, {session.pid}).words
    words = [program, "verify", *flags, "--bench", session.model]
    for name, sizes in session.runs.inputs.items():
        shape = f"{name}={'x'.join(map(str, sizes))}"
        words += [f"--shape={shape}"] if name.startswith("-") else ["--shape", shape]
    return in_shells(words)


def _write(report: ProgramReport, request: RunRequest, texts: Texts) -> None:
    """Print or write what was asked for; as text, too, where the file cannot be written."""
    document = json.dumps(clean(program_json(report, texts)))
    failed, output = None, console.output_path(request.output)
    if output is not None:
        try:
            write(output, document + "\n")
        except Error as error:
            failed = texts.error(error)
    elif request.json:
        console.print_result(document)
    if failed or not request.json:
        sys.stderr.flush()
        console.print_notice("\n" + plain(program_sections(report, texts)))
    if failed:
        console.print_error(failed, texts, as_json=False)
