"""`check-image PATH`: what a container of an image will be able to do; nothing of it is run."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ...data_files import load_table
from ...errors import Error, cause
from ...facts.gpu_names import known_capabilities
from ...facts.model import Driver, Facts, Gpu, Interpreter
from ...image.archive import read_image
from ...image.environments import environments_of
from ...image.judged import JudgedEnvironment, JudgedImage, judge_image
from ...matrix.load import add_torch, load_matrix
from ...matrix.model import Matrix
from ...matrix.torch import TORCH
from ...messages.catalog import Language, Texts, load_texts
from ...messages.sections import Row
from ...report.image import image_json, image_sections
from ...resolve.options import PlanOptions
from ...resolve.serving import plan_on_machine
from ...versions import numbers
from .. import console
from ..command_line import allowing, command_line
from ..described import PLATFORMS, read_machine
from ..facts_files import read_machines
from ..flags import CommandLine
from ..options import plan_options_of
from .plan import plan_exit_code

MOST_BYTES = 1_000_000
"""Of a text."""
_VERDICTS = {0: "healthy", 1: "fixable", 3: "impossible"}


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Say what the environments in an image can serve, what is wrong there, and what it weighs.

    Exit code as of `--check`, of the worst environment on the worst machine. Raises Error
    `flags-clash` for `--python`, and those of `read_image`, `environments_of`, `read_facts`,
    `read_machine` and `plan_options_of`.
    """
    del environ
    if arguments.python is not None:
        raise Error("flags-clash", flags="check-image, --python")
    path = Path(arguments.argument or "")
    options, machines = plan_options_of(arguments), _machines(arguments)
    if path.is_file() and (read := _reader(path)):
        return _check_text(path, read, arguments, machines, language)
    image = read_image(path)
    environments = environments_of(image)
    torch = any(one.facts.package(TORCH) for one in environments)
    matrix = add_torch(load_matrix(torch=False)) if torch else load_matrix(torch=False)
    gpus = load_table("gpus")
    found = judge_image(image, environments, machines, options=options, matrix=matrix, gpus=gpus)
    code = _exit_code(found)
    if arguments.report is not None:
        _write_page(arguments.report, found, path, _VERDICTS[code], load_texts(language))
    if arguments.json:
        document = image_json(found, str(path), _VERDICTS[code], matrix, load_texts("en"))
        console.print_json(document)
        return code
    texts = load_texts(language)
    mending = [
        _mending(one, machines, arguments, options, matrix, texts=texts)
        for one in found.environments
        if machines and any(plan.verdict == "fixable" for _, plan in one.plans)
    ]
    console.print_sections(image_sections(found, str(path), _VERDICTS[code], mending, texts))
    return code


def _mending(
    one: JudgedEnvironment,
    machines: Sequence[tuple[str, Facts]],
    arguments: CommandLine,
    options: PlanOptions,
    matrix: Matrix,
    *,
    texts: Texts,
) -> Row:
    """Return the command that mends an environment, or why there is none.

    An apply takes one machine, and no facts of another system: of several, those on which nothing
    works left out, it gets the oldest driver and all GPUs.
    """
    line, [(_, plan), *_] = arguments._replace(python=one.environment.path), one.plans
    if len(machines) > 1 or machines[0][1].platform.system == "windows":
        plans = dict(one.plans)
        able = [facts for name, facts in machines if plans[name].verdict != "impossible"]
        drivers = [str(facts.driver and facts.driver.version) for facts in able]
        gpus = {str(gpu.compute_capability) for facts in able for gpu in facts.gpus or [Gpu()]}
        driver, gpu = min(drivers, key=numbers), ",".join(sorted(gpus, key=numbers))
        line = line._replace(facts=(), driver=driver, gpu=gpu)
        try:
            [(_, machine)] = _machines(line)
        except Error:  # one of them is not known
            return Row(text=texts.label("image-machine-unknown"))
        plan = plan_on_machine(one.environment.facts, machine, options, matrix)
    if plan.verdict != "fixable":
        return Row(text=texts.label("image-apart"))
    text = command_line(allowing(line, plan), "--apply", "--yes", system="linux")
    return Row(text=text, whole=True)


def _write_page(file: str, found: JudgedImage, path: Path, verdict: str, texts: Texts) -> None:
    """Write the page that `--report` asks for. Raises Error `file-unwritable`."""
    from ...report.image_page import image_page

    page = image_page(found, path.name or str(path), verdict, console.made_today(texts), texts)
    console.write_file(file, page, texts)


def _reader(path: Path) -> Literal["dockerfile", "compose"] | None:
    """Return what reads the text at `path`; None: it is an image."""
    if re.search("dockerfile|containerfile", path.name, re.IGNORECASE):
        return "dockerfile"
    return "compose" if path.suffix in {".yml", ".yaml"} else None


def _check_text(
    path: Path,
    kind: Literal["dockerfile", "compose"],
    arguments: CommandLine,
    machines: Sequence[tuple[str, Facts]],
    language: Language,
) -> int:
    """Say what the text of a Dockerfile or a compose file tells.

    Raises Error `text-unreadable`, and `usage` where a page is asked for: that is of an image.
    """
    from ...image.compose import read_compose
    from ...image.dockerfile import read_dockerfile
    from ...image.text import judge_compose, judge_dockerfile
    from ...report.image_text import text_json, text_sections

    if arguments.report is not None:
        raise Error("usage", problem=Error("flag-alone", flag="--report", partner="IMAGE"))
    text = _text(path)
    matrix = load_matrix(torch=False)
    if kind == "compose":
        found = judge_compose(read_compose(text, str(path)))
    else:
        stages = read_dockerfile(text)
        if not stages:
            raise Error("text-unreadable", file=path, cause=cause("text-no-dockerfile"))
        python = Interpreter(version=platform.python_version())
        bare = Facts(PLATFORMS["linux"], None, None, python)
        known = known_capabilities(load_table("gpus"), bare.platform.machine)
        found = judge_dockerfile(stages, machines, bare, matrix=matrix, known=known)
    verdict = _VERDICTS[int(found.wrong)]
    if arguments.json:
        console.print_json(text_json(found, str(path), verdict, matrix, load_texts("en")))
    else:
        console.print_sections(text_sections(found, str(path), load_texts(language)))
    return int(found.wrong)


def _text(path: Path) -> str:
    """Return the text of a file. Raises Error `text-unreadable`."""
    try:
        with path.open("rb") as stream:
            return stream.read(MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise Error("text-unreadable", file=path, cause=error.strerror or error) from error
    except ValueError as error:
        raise Error("text-unreadable", file=path, cause=cause("text-not-utf8")) from error


def _machines(arguments: CommandLine) -> Sequence[tuple[str, Facts]]:
    """Return the machines that will run the image, by name; none where none is named."""
    if arguments.driver is None or arguments.gpu is None:
        return read_machines(arguments.facts)
    read = read_machine(arguments.driver, arguments.gpu)
    arm = read.expected == "linux-aarch64"
    machine = Facts(
        platform=PLATFORMS["linux-aarch64" if arm else "linux"],
        driver=Driver(version=read.driver),
        gpus=read.gpus,
        python=Interpreter(version=""),
        sources={} if arm else {"platform": ""},  # nobody said which processor
    )
    return [("", machine)]


def _exit_code(found: JudgedImage) -> int:
    plans = (plan for one in found.environments for _, plan in one.plans)
    wrong = any(row.severity == "error" for row in found.findings)
    return max([int(wrong), *map(plan_exit_code, plans)])
