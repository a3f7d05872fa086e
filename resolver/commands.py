"""The commands, one function each: `(arguments, environ, language) -> exit code`.

Shell, and thin: a command finds out what it is about, asks the core, and prints.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from . import console
from .data_files import load_texts, table
from .errors import Error
from .facts import to_json
from .occasion import Occasion, occasion, seen
from .plan import Plan
from .resolve import resolve
from .run import run
from .texts import Language

VERDICT_EXIT = {"healthy": 0, "fixable": 1, "impossible": 3}


def plan(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Diagnose, and print the plan."""
    about = occasion(arguments, environ)
    made = _resolved(about)
    show(made, about, arguments, language)
    return VERDICT_EXIT[made.verdict]


def _resolved(about: Occasion) -> Plan:
    return resolve(about.facts, about.wishes, about.matrix)


def show(made: Plan, about: Occasion, arguments: argparse.Namespace, language: Language) -> None:
    """Print a plan, for people or as JSON."""
    from .report import plan_json, plan_sections

    if arguments.json:
        console.print_json(plan_json(made, load_texts("en")))
        return
    asked = bool(about.wishes.onnxruntime or about.wishes.latest or about.wishes.cuda)
    sections = plan_sections(
        made, about.facts, load_texts(language), verbose=arguments.verbose, asked=asked
    )
    console.print_sections(sections)


def check(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Tell by the exit code alone whether the environment is right."""
    del language
    return VERDICT_EXIT[_resolved(occasion(arguments, environ)).verdict]


def facts(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Write what was seen of this machine and environment."""
    import json

    found, _ = seen(arguments, environ)
    if arguments.output is None:
        console.print_json(to_json(found))
        return 0
    text = json.dumps(to_json(found), indent=2, ensure_ascii=False) + "\n"
    write(Path(arguments.output), text)
    print(load_texts(language).label("written", file=arguments.output), file=sys.stderr)
    return 0


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises Error `file-unwritable`."""
    import os
    import tempfile

    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Error("file-unwritable", file=path, cause=error.strerror or error) from error
