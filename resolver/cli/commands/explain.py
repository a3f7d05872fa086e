"""Read an error log, name the causes and the remedies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from ...data_files import load_table
from ...errors import Error
from ...explain.failures import parse_failures
from ...explain.matcher import explain_log
from ...messages.catalog import Language, load_texts
from ...report.verification import explanation_sections
from .. import console


def run(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Read an error log, name the causes and the remedies. Raises Error `log-unreadable`."""
    del environ
    log = _read_log(arguments.argument or "-")
    failures = parse_failures(load_table("failures"))
    found = explain_log(log, failures, "en" if arguments.json else language)
    if arguments.json:
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
