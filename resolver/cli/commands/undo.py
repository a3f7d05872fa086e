"""Put the environment back to before the last apply, or forget how it was before."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from ...apply.history import discard_undo_data
from ...apply.removal import distributions_here
from ...apply.rollback import recover_interrupted, undo_last
from ...apply.state_folder import Site, size_of
from ...messages.catalog import Language, Texts, load_texts
from ...messages.sections import size
from ...probe.machine import target_of
from ...utils.process import run as run_process
from .. import console
from ..confirmation import confirm, warn_of_leftovers


def run(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Put the environment back to before the last apply, or forget how it was before."""
    texts = load_texts("en" if arguments.json else language)
    target = target_of(arguments.python, environ=environ, cwd=Path.cwd(), runner=run_process)
    site = Site.of(target)
    if arguments.forget:
        return _forget(site, arguments, texts)

    def say(label: str) -> None:
        if arguments.json:
            console.print_json({"schema": 1, "undone": True, "path": os.fspath(target.prefix)})
        else:
            console.print_result(texts.label(label, path=target.prefix))

    if recover_interrupted(site):
        say("recovered")
        return 0
    confirm(arguments, texts, "ask-undo")
    left = undo_last(site, distributions_here(target, site), lambda: say("undone"))
    warn_of_leftovers(left, site, texts)
    return 0


def _forget(site: Site, arguments: argparse.Namespace, texts: Texts) -> int:
    """Remove what is kept for `undo_last`, and say how much that freed."""
    kept = size_of(site.state)
    if kept:  # else there is nothing to ask about, and all is as wanted: an image may be healthy
        confirm(arguments, texts, "ask-forget", size=size(kept))
    left = discard_undo_data(site)
    if arguments.json:
        console.print_json({"schema": 1, "forgotten": True, "freed": kept - left})
    else:
        console.print_result(texts.label("forgotten", size=size(kept - left)))
    warn_of_leftovers(left, site, texts)
    return 0
