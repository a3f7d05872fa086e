"""The commands, one function each: `(arguments, environ, language) -> exit code`.

Shell, and thin: a command finds out what it is about, asks the core, and prints. Those that change
an environment are in `changing`. A command raises the Errors of what it calls; with each stand only
those that are its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import Error
from ...facts.document import to_json
from ...facts.model import GPU_BUILD
from ...matrix.load import add_torch, load_matrix, load_texts, table
from ...matrix.torch import TORCH
from ...messages.catalog import Language
from ...plan.model import Plan, finding
from ...utils.process import run
from .. import console
from ..inputs import Occasion, occasion, read_short_form, seen

if TYPE_CHECKING:  # it takes part of what a plan without `-r` takes
    from ...requirements.rewrite import Edit

VERDICT_EXIT = {"healthy": 0, "fixable": 1, "impossible": 3}
DRIFT_EXIT = {"holds": 0, "drifted": 1, "impossible": 3}


def plan(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Diagnose, and print the plan."""
    about = occasion(arguments, environ)
    made = _resolved(about)
    show(made, about, arguments, language)
    return VERDICT_EXIT[made.verdict]


def _resolved(about: Occasion, *, unlocking: bool = True) -> Plan:
    from ...resolve.resolver import resolve

    return resolve(about.facts, about.wishes, about.matrix, unlocking=unlocking)


def show(made: Plan, about: Occasion, arguments: argparse.Namespace, language: Language) -> None:
    """Print a plan, for people or as JSON."""
    from ...report.plan import plan_json, plan_sections

    edits = _edits(made, about, arguments) if arguments.requirement else []
    if arguments.json:
        document = plan_json(made, load_texts("en"))
        if edits:
            from ...report.requirements import mending_json

            document["requirements"] = mending_json(edits)
        console.print_json(document)
        return
    texts = load_texts(language)
    asked = about.wishes.chooses
    sections = plan_sections(made, about.facts, texts, verbose=arguments.verbose, asked=asked)
    if edits:
        from ...report.requirements import mending_section

        sections = (*sections[:-1], mending_section(edits, texts, written=False), sections[-1])
    console.print_sections(sections)


def _edits(made: Plan, about: Occasion, arguments: argparse.Namespace) -> list[tuple[str, Edit]]:
    """Return what should become of the lines of the files that `-r` names."""
    from ...requirements.rewrite_files import mended_by

    found = mended_by(made, about, arguments)
    return [(str(file.path), edit) for file in found for edit in file.edits]


def check(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Tell by the exit code alone whether the environment is right."""
    del language
    about = occasion(arguments, environ)
    return VERDICT_EXIT[_resolved(about, unlocking=False).verdict]


def facts(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Write what was seen of this machine and environment."""
    found, _ = seen(arguments, environ)
    if arguments.output is None:
        console.print_json(to_json(found))
    else:
        text = json.dumps(to_json(found), indent=2) + "\n"
        from ...utils.files import write

        write(Path(arguments.output), text)
        console.say(load_texts(language).label("written", file=arguments.output))
    return 0


def verify(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Run real inference in the environment and say what ran where."""
    from ...report.verification import verification_sections
    from ...verify.model import exit_code
    from ...verify.runner import verify as run_verification

    found, target = seen(arguments, environ)
    if found.python.change == "unfinished":
        half = finding("change-unfinished", "error")
        console.say(load_texts(language).summary(half))
    verification = run_verification(
        target.executable,
        driver=found.driver,
        runner=run,
        environ=environ,
        ignore_gpus=arguments.ignore_gpu,
    )
    if arguments.json:
        console.print_json(verification.to_json())
    else:
        console.print_sections(verification_sections(verification, load_texts(language)))
    return exit_code(verification)


def explain(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Read an error log, name the causes and the remedies. Raises Error `log-unreadable`."""
    del environ
    from ...explain.failures import parse_failures
    from ...explain.matcher import explain as find_causes
    from ...report.verification import explanation_sections

    log = _read_log(arguments.argument or "-")
    failures = parse_failures(table("failures"))
    found = find_causes(log, failures, "en" if arguments.json else language)
    if arguments.json:
        from dataclasses import asdict

        console.print_json({"schema": 1, "explanations": [asdict(row) for row in found]})
    else:
        console.print_sections(explanation_sections(found, load_texts(language)))
    return 0


def _read_log(file: str) -> str:
    """Return the text of a log; `-` is standard input. Raises Error `log-unreadable`."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Error("log-unreadable", file=file, cause=error.strerror or error) from error
    # PowerShell's `>` writes UTF-16, and its Out-File UTF-8 with a mark in front.
    encoding = "utf-16" if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    return content.decode(encoding, errors="replace")


def matrix(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Show all releases, one of them, or what runs on a GPU and a driver.

    Raises Error `usage` for a release that the matrix does not hold, `wish-driver` and `wish-gpu`.
    """
    del environ
    from ...report import matrix as report
    from ...report import supported as matrix_runs

    known, texts = load_matrix(torch=False), load_texts("en" if arguments.json else language)
    rows, floors = table("onnxruntime")["build"], table("drivers")["floor"]
    version = (arguments.argument or "").removeprefix(GPU_BUILD).lstrip("= ")
    if version:
        document = report.release_json(known, rows, floors, version)
        sections = report.release_sections(known, rows, floors, version, texts)
        if document is None:
            raise Error("usage", problem=f"the matrix holds no {GPU_BUILD} {version}")
    elif arguments.driver is not None:
        driver, gpus = read_short_form(arguments.driver, arguments.gpu)
        document = matrix_runs.runs_json(known, driver, gpus, texts)
        sections = matrix_runs.runs_sections(known, driver, gpus, texts)
    else:
        document = report.overview_json(known)
        sections = report.overview_sections(known, texts)
    if arguments.json:
        console.print_json(document)
    else:
        console.print_sections(sections)
    return 0


def check_lock(
    arguments: argparse.Namespace, environ: Mapping[str, str], language: Language
) -> int:
    """Tell whether a lock still holds here, and what has drifted from it.

    Raises Error `lock-unreadable`, and those of `occasion`.
    """
    from ...lock.drift import drift
    from ...lock.parse import read_lock
    from ...report.drift import drift_json, drift_sections

    file = arguments.argument
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Error("lock-unreadable", file=file, cause=error.strerror or error) from error
    except ValueError as error:
        raise Error("lock-unreadable", file=file, cause="it is no UTF-8 text") from error
    locked = read_lock(text, file)
    about = occasion(arguments, environ)
    torch = any(pin.name == TORCH for pin in locked.pins)
    matrix = add_torch(about.matrix) if torch else about.matrix
    found = drift(locked, about.facts, about.wishes, matrix)
    if arguments.json:
        console.print_json(drift_json(found, locked, file, matrix, load_texts("en")))
    else:
        texts = load_texts(language)
        console.print_sections(drift_sections(found, locked, file, matrix, texts))
    return DRIFT_EXIT[found.verdict]
