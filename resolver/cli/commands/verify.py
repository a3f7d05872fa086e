"""Run real inference in the environment, and say what ran where."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ...messages.catalog import Language, load_texts
from ...plan.reasons import finding
from ...report.verification import verification_sections
from ...utils.process import run as run_process
from ...verify.model import verification_exit_code
from ...verify.runner import verify
from .. import console
from ..inputs import probe_machine


def run(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Run real inference in the environment and say what ran where."""
    found, target = probe_machine(arguments, environ)
    if found.python.change == "unfinished":
        half = finding("change-unfinished", "error")
        console.print_notice(load_texts(language).summary(half))
    verification = verify(
        target.executable,
        driver=found.driver,
        runner=run_process,
        environ=environ,
        ignore_gpus=arguments.ignore_gpu,
    )
    if arguments.json:
        console.print_json(verification.to_json())
    else:
        console.print_sections(verification_sections(verification, load_texts(language)))
    return verification_exit_code(verification)
