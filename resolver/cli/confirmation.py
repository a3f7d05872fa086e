"""Ask before a change, and report what was left after it."""

from __future__ import annotations

import sys
from typing import NamedTuple

from ..apply.state_folder import Site
from ..errors import Error
from ..messages.catalog import Texts
from ..messages.sections import size
from . import alive, console


class Asking(NamedTuple):
    """Whether a person can be asked, and wants to be."""

    yes: bool
    json: bool


def confirm(asked: Asking, texts: Texts, label: str = "ask", **values: object) -> None:
    """Ask whether to go on, unless `--yes`; `label` is the question.

    Raises Error `not-confirmed` without a terminal, and `declined`.
    """
    check_answerable(asked)
    if asked.yes:
        return
    with alive.paused():
        console.print_question(texts.label(label, **values))
        answer = sys.stdin.readline()
    if answer.strip().lower() not in {"y", "yes", "是"}:
        raise Error("declined")


def check_answerable(asked: Asking) -> None:
    """Raise Error `not-confirmed` where there is no `--yes`, and nobody to ask."""
    person = sys.stdin.isatty() and sys.stderr.isatty() and not asked.json
    if not asked.yes and not person:
        raise Error("not-confirmed")


def warn_of_leftovers(left: int, site: Site, texts: Texts) -> None:
    """Say where something is left that could not be removed; the next run tries again."""
    if left:
        console.print_notice(texts.label("untidy", size=size(left), folder=site.state))
