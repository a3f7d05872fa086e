"""`lock --check FILE`: report whether a lock still holds here, and what has drifted from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...cli import console
from ...facts.model import Facts
from ...messages.catalog import Language, load_texts
from .guest import CheckLockRequest
from .lock_text import OURS, mentions, read_included, read_lock_text

if TYPE_CHECKING:
    from ...cli.inputs import PlanInputs
    from ...cli.requests import PlanRequest
    from .parse_lock import Included
    from .parsed_lock import ParsedLock

DRIFT_EXIT = {"holds": 0, "drifted": 1, "impossible": 3}


def run(request: CheckLockRequest, environ: Mapping[str, str], language: Language) -> int:
    """Return whether a lock still holds here, and what has drifted from it.

    Where this machine has no GPU, as in CI, it is checked for each machine of this platform that
    it was made for, with the environment that is here. Where no environment is named, it is held
    against all of those, and nothing is compared with what is installed. One that names nothing of
    ours has nothing to hold.

    Raises Error `lock-unreadable`, and those of `gather_inputs`.
    """
    file = "".join(request.words)
    text = read_lock_text(file)
    included = read_included(file, text)
    if mentions(OURS, text, included):
        return _check(file, text, included, request.plan, environ, language)
    if request.plan.json:  # as of most projects
        from .drift_report import not_ours_json

        console.print_json(not_ours_json(file))
    else:
        console.print_result(load_texts(language).label("lock-not-ours", file=file))
    return 0


def _check(  # noqa: PLR0917
    file: str,
    text: str,
    included: Included,
    asked: PlanRequest,
    environ: Mapping[str, str],
    language: Language,
) -> int:
    from dataclasses import replace

    from ...cli.described import describes_environment, start_looking

    machine = asked.machine
    if not machine.facts:
        machine = machine._replace(processes=start_looking(machine, environ))
    from ...cli.inputs import gather_inputs, require_known
    from ...matrix.load import add_torch
    from ...matrix.torch import TORCH
    from .drift import drift
    from .drift_report import drift_json, drift_sections
    from .parse_lock import read_lock

    locked = read_lock(text, file, included)
    alone = describes_environment(machine, environ, Path.cwd())
    inputs = gather_inputs(asked._replace(machine=machine), environ)
    held_on = machines_to_check(locked, inputs, alone=alone, python=machine.python)
    for facts, _ in held_on:
        require_known(facts)
    torch = any(pin.name == TORCH for pin in locked.pins)
    matrix = add_torch(inputs.matrix) if torch else inputs.matrix
    held = (
        replace(drift(locked, facts, inputs.options, matrix, installed=not alone), machine=other)
        for facts, other in held_on
    )
    found = max(held, key=lambda each: DRIFT_EXIT[each.verdict])
    if asked.json:
        console.print_json(drift_json(found, locked, file, matrix, load_texts("en")))
    else:
        texts = load_texts(language)
        console.print_sections(drift_sections(found, locked, file, matrix, texts))
    return DRIFT_EXIT[found.verdict]


def machines_to_check(
    locked: ParsedLock, inputs: PlanInputs, *, alone: bool, python: str | None = None
) -> Sequence[tuple[Facts, Facts | None]]:
    """Return the facts to hold a lock against, each with the machine that stands for this one.

    `alone`: no environment is named; `python`: the version that `--python` names.
    """
    facts = inputs.facts
    if alone and locked.machines and not inputs.elsewhere:
        return [(one, one) for one in _on(python, locked.machines)]
    made_for = [one for one in locked.machines if one.platform.key == facts.platform.key]
    if inputs.elsewhere or not made_for or not (facts.driver is None or facts.gpus == ()):
        return [(facts, None)]
    return [(facts._replace(driver=one.driver, gpus=one.gpus), one) for one in made_for]


def _on(python: str | None, machines: Sequence[Facts]) -> Sequence[Facts]:
    """Return the machines with that Python; where none has it, all of them as if they had it."""
    if python is None:
        return machines
    of_that = [one for one in machines if f"{one.python.version}.".startswith(f"{python}.")]
    return of_that or [one._replace(python=one.python._replace(version=python)) for one in machines]
