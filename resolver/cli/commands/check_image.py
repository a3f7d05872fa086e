"""`check-image PATH`: what a container of an image will be able to do; nothing of it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...data_files import load_table
from ...facts.model import EXPECTED_PLATFORM, Driver, Facts, Interpreter
from ...image.archive import read_image
from ...image.environments import environments_of
from ...image.judged import JudgedImage, judge_image
from ...matrix.load import add_torch, load_matrix
from ...matrix.torch import TORCH
from ...messages.catalog import Language, load_texts
from ...report.image import image_json, image_sections
from .. import console
from ..command_line import command_line
from ..described import PLATFORMS, read_machine
from ..facts_files import read_facts
from ..flags import CommandLine
from ..inputs import plan_options_of
from .plan import plan_exit_code

_VERDICTS = {0: "healthy", 1: "fixable", 3: "impossible"}


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Say what the environments in an image can serve, what is wrong there, and what it weighs.

    Exit code as of `--check`, of the worst environment on the worst machine. Raises those of
    `read_image`, `environments_of`, `read_facts`, `read_machine` and `plan_options_of`.
    """
    del environ
    path = Path(arguments.argument or "")
    options, machines = plan_options_of(arguments), _machines(arguments)
    image = read_image(path)
    environments = environments_of(image)
    torch = any(one.facts.package(TORCH) for one in environments)
    matrix = add_torch(load_matrix(torch=False)) if torch else load_matrix(torch=False)
    gpus = load_table("gpus")
    found = judge_image(image, environments, machines, options=options, matrix=matrix, gpus=gpus)
    code = _exit_code(found)
    if arguments.json:
        document = image_json(found, str(path), _VERDICTS[code], matrix, load_texts("en"))
        console.print_json(document)
        return code
    commands = {
        one.environment.path: command_line(
            arguments._replace(python=one.environment.path), "--apply", "--yes", system="linux"
        )
        for one in found.environments
        if machines and any(plan.verdict == "fixable" for _, plan in one.plans)
    }
    texts = load_texts(language)
    console.print_sections(image_sections(found, str(path), _VERDICTS[code], commands, texts))
    return code


def _machines(arguments: CommandLine) -> Sequence[tuple[str, Facts]]:
    """Return the machines that will run the image, by name; none where none is named.

    A Windows machine runs it in its Linux.
    """
    if arguments.driver is not None and arguments.gpu is not None:
        read = read_machine(arguments.driver, arguments.gpu)
        driver, python = Driver(version=read.driver), Interpreter(version="")
        machine = Facts(PLATFORMS["linux"], driver, read.gpus, python)
        return [("", _expecting(machine, read.expected))]
    files = [(Path(file).stem, read_facts(file)) for file in arguments.facts]
    return [
        (name, _expecting(facts, f"{facts.platform.system}-{facts.platform.machine}"))
        for name, facts in files
    ]


def _expecting(facts: Facts, platform: str | None) -> Facts:
    if not (platform or "").startswith("linux"):
        return facts
    return facts._replace(sources={**facts.sources, EXPECTED_PLATFORM: str(platform)})


def _exit_code(found: JudgedImage) -> int:
    plans = (plan for one in found.environments for _, plan in one.plans)
    wrong = any(row.severity == "error" for row in found.findings)
    return max([int(wrong), *map(plan_exit_code, plans)])
