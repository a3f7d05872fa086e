"""`verify`: real inference in the environment, with small models."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ...facts.model import Facts
from ...facts.target import Target
from ...messages.catalog import Language, load_texts
from ...plan.reasons import finding
from ...probe.interpreter import require_environment
from ...report.verification import verification_sections
from ...utils.process import run as run_process
from ...verify.runner import verify
from ...verify.verification import Verification, verification_exit_code
from .. import console
from ..command_line import typed_command
from ..machine import probe_machine
from ..requests import VerifyRequest


class VerifiedEnvironment(NamedTuple):
    """An environment, its machine, and what real inference in it proved."""

    facts: Facts
    target: Target
    verification: Verification


def run(asked: VerifyRequest, environ: Mapping[str, str], language: Language) -> int:
    """Run real inference in the environment and say what ran where.

    Raises as `verify_environment`.
    """
    _, _, verification = verify_environment(asked, environ, language)
    if asked.json:
        console.print_json(verification.to_json())
    else:
        command = typed_command(asked.options)
        console.print_sections(
            verification_sections(verification, load_texts(language), command=command)
        )
    return verification_exit_code(verification)


def verify_environment(
    asked: VerifyRequest,
    environ: Mapping[str, str],
    language: Language,
    *,
    with_torch: bool = True,
) -> VerifiedEnvironment:
    """Run the small models in the environment; `with_torch`: beside an installed torch, too.

    Raises as `require_environment`, `probe_machine` and `verify`.
    """
    require_environment(asked.machine.python, environ, Path.cwd())
    found, target = probe_machine(asked.machine, environ)
    if found.python.change == "unfinished":
        half = finding("change-unfinished", "error")
        console.print_notice(load_texts(language).summary(half))
    quiet = asked.json or not sys.stderr.isatty()
    with console.progress(load_texts(language), quiet=quiet) as progress:
        progress("verify")
        verification = verify(
            target.executable,
            driver=found.driver,
            runner=run_process,
            environ=environ,
            ignore_gpus=asked.ignore_gpu,
            provider=asked.provider,
            with_torch=with_torch,
            pythonpath=environ.get("PYTHONPATH"),
        )
    where = f"environment: {target.executable}"
    verification = replace(verification, evidence=(where, *verification.evidence))
    return VerifiedEnvironment(found, target, verification)
