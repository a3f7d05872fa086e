"""`lock --check FILE`: tell whether a lock still holds here, and what has drifted from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...cli import console
from ...cli.flags import CommandLine
from ...facts.model import Facts
from ...messages.catalog import Language, load_texts
from .lock_text import OURS, read_included, read_lock_text, tells_of

if TYPE_CHECKING:
    from ...cli.inputs import PlanInputs
    from .parse_lock import Included
    from .parsed_lock import ParsedLock

DRIFT_EXIT = {"holds": 0, "drifted": 1, "impossible": 3}


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Tell whether a lock still holds here, and what has drifted from it.

    Where this machine has no GPU, as in CI, it is held against each machine of this platform that
    it was made for, with the environment that is here. Where no environment is named, it is held
    against all of those, and nothing is compared with what is installed. One that names nothing of
    ours has nothing to hold.

    Raises Error `lock-unreadable`, and those of `gather_inputs`.
    """
    file = arguments.argument or ""
    text = read_lock_text(file)
    included = read_included(file, text)
    if tells_of(OURS, text, included):
        return _check(text, included, arguments, environ, language)
    if arguments.json:  # as of most projects
        from .drift_report import not_ours_json

        console.print_json(not_ours_json(file))
    else:
        console.print_result(load_texts(language).label("lock-not-ours", file=file))
    return 0


def _check(
    text: str,
    included: Included,
    arguments: CommandLine,
    environ: Mapping[str, str],
    language: Language,
) -> int:
    from dataclasses import replace

    from ...cli.described import describes_environment, start_looking

    if not arguments.facts:
        arguments = arguments._replace(processes=start_looking(arguments, environ))
    from ...cli.inputs import gather_inputs, require_known
    from ...matrix.load import add_torch
    from ...matrix.torch import TORCH
    from .drift import drift
    from .drift_report import drift_json, drift_sections
    from .parse_lock import read_lock

    file = arguments.argument or ""
    locked = read_lock(text, file, included)
    alone = describes_environment(arguments, environ, Path.cwd())
    inputs = gather_inputs(arguments, environ)
    held_on = held_against(locked, inputs, alone=alone, python=arguments.python)
    for facts, _ in held_on:
        require_known(facts)
    torch = any(pin.name == TORCH for pin in locked.pins)
    matrix = add_torch(inputs.matrix) if torch else inputs.matrix
    held = (
        replace(drift(locked, facts, inputs.options, matrix, installed=not alone), machine=machine)
        for facts, machine in held_on
    )
    found = max(held, key=lambda each: DRIFT_EXIT[each.verdict])
    if arguments.json:
        console.print_json(drift_json(found, locked, file, matrix, load_texts("en")))
    else:
        texts = load_texts(language)
        console.print_sections(drift_sections(found, locked, file, matrix, texts))
    return DRIFT_EXIT[found.verdict]


def held_against(
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
