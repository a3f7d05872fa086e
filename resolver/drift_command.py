"""The command `lock --check FILE`: `(arguments, environ, language) -> exit code`.

Shell.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from . import console
from .data_files import load_texts
from .drift import drift
from .drift_report import drift_json, drift_sections
from .errors import Error
from .lock_reading import read_lock
from .occasion import occasion
from .texts import Language

EXIT = {"holds": 0, "drifted": 1, "impossible": 3}


def check_lock(
    arguments: argparse.Namespace, environ: Mapping[str, str], language: Language
) -> int:
    """Tell whether a lock still holds here, and what has drifted from it.

    Raises Error `lock-unreadable`, and those of `occasion`.
    """
    file = arguments.argument
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Error("lock-unreadable", file=file, cause=error.strerror or error) from error
    except ValueError as error:
        raise Error("lock-unreadable", file=file, cause="it is no UTF-8 text") from error
    locked = read_lock(text, file)
    about = occasion(arguments, environ)
    found = drift(locked, about.facts, about.wishes, about.matrix)
    if arguments.json:
        console.print_json(drift_json(found, locked, file, about.matrix, load_texts("en")))
    else:
        texts = load_texts(language)
        console.print_sections(drift_sections(found, locked, file, about.matrix, texts))
    return EXIT[found.verdict]
