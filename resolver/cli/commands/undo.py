"""Put the environment back to before the last apply, or forget how it was before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ...apply.files_to_remove import installed_in_site
from ...apply.history import discard_undo_data, recorded_changes
from ...apply.rollback import (
    discard_stage,
    pending_recovery,
    recover_interrupted,
    undo_last,
)
from ...apply.state_folder import Site, size_of
from ...errors import Error
from ...facts.target import Target
from ...messages.catalog import Language, Texts, load_texts
from ...messages.sections import size
from ...probe.machine import target_of
from ...utils.process import run as run_process
from .. import console
from ..confirmation import Asking, confirm, warn_of_leftovers
from ..requests import UndoRequest


def run(asked: UndoRequest, environ: Mapping[str, str], language: Language) -> int:
    """Put the environment back to before the last apply, or forget how it was before."""
    texts = load_texts("en" if asked.json else language)
    target = target_of(asked.python, environ=environ, cwd=Path.cwd(), runner=run_process)
    site = Site.of(target)
    if asked.forget:
        return _forget(site, asked, texts)

    def say(label: str, kept: str = "") -> None:
        if asked.json:
            console.print_json({"schema": 1, "undone": True, "path": os.fspath(target.prefix)})
        else:
            console.print_result(texts.label(label, path=target.prefix, kept=kept))

    changed = "changed" in asked.allow
    if pending_recovery(site):
        confirm(Asking(asked.yes, asked.json), texts, "ask-recover", path=target.prefix)
        recover_interrupted(site, lambda: say("recovered"), allow_changed=changed)
        return 0
    last = next(
        (change.begin for change in recorded_changes(site) if change.state == "committed"), None
    )
    if last is None:
        return _discard_stage(site, asked, texts)
    confirm(Asking(asked.yes, asked.json), texts, "ask-undo")
    installed = installed_in_site(target, site)

    def undone() -> None:
        kept = _kept(target, dict(last.installed))
        say("undone-but" if kept else "undone", kept=kept)

    left = undo_last(site, installed, undone, allow_changed=changed)
    warn_of_leftovers(left, site, texts)
    return 0


def _kept(target: Target, brought: Mapping[str, str]) -> str:
    """Return what `target` had in the place of the versions `brought`, and still has."""
    own = filter(target.holds, target.installed)
    changed = (
        package for package in own if package.version != brought.get(package.key, package.version)
    )
    installed = (package for package in changed if Path(package.metadata_path).exists())
    return ", ".join(f"{package.name} {package.version}" for package in installed)


def _discard_stage(site: Site, asked: UndoRequest, texts: Texts) -> int:
    """Remove what a run staged that was killed before it changed anything.

    Raises Error `nothing-to-undo` where there is nothing.
    """
    recover_interrupted(site)  # removes what an undo left over
    freed = discard_stage(site)
    if freed is None:
        raise Error("nothing-to-undo")
    if asked.json:
        document = {"schema": 1, "undone": False, "freed": freed, "path": site.prefix}
        console.print_json(document)
    else:
        console.print_result(texts.label("downloads-removed", size=size(freed), path=site.prefix))
    return 0


def _forget(site: Site, asked: UndoRequest, texts: Texts) -> int:
    """Remove what is kept for `undo_last`, and say how much that freed."""
    kept = size_of(site.state)
    if kept:  # else there is nothing to ask about, and all is as wanted: an image may be healthy
        confirm(Asking(asked.yes, asked.json), texts, "ask-forget", size=size(kept))
    left = discard_undo_data(site, allow_changed="changed" in asked.allow)
    if asked.json:
        console.print_json({"schema": 1, "forgotten": True, "freed": kept - left})
    else:
        console.print_result(texts.label("forgotten", size=size(kept - left)))
    warn_of_leftovers(left, site, texts)
    return 0
