"""What the text of a Dockerfile or a compose file tells of the GPU, each with its line.

What a requirements file brings, which version pip picks, and what the base image holds beside its
name can only be known from the image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from packaging.version import Version

from ..facts.model import CPU_BUILD, GPU_BUILD, Facts, Package
from ..facts.wheel_tags import abi
from ..matrix.model import Build, Matrix
from ..plan.reasons import Finding, Reason, Severity, finding, words
from ..resolve.candidate import without_wheels
from ..resolve.dependencies import wheel_for
from ..resolve.machine_rules import check_platform, check_python
from ..resolve.options import PlanOptions
from ..resolve.serving import Serving, against, on_machine, serving
from ..resolve.situation import situation
from ..versions import allows, major, newest_first
from .base_image import NVIDIA, WITHOUT_CUDA, platform_on, python_on
from .compose import Service
from .dockerfile import (
    Instruction,
    Stage,
    assigned,
    based_on,
    copied_from_elsewhere,
    taken_from,
)
from .installs import Installs, PipInstall, installs_of
from .judged import CAPABILITIES, has_compute

_BRINGS_CUDA = re.compile(r"nvidia-(cudnn|cublas|cuda-runtime)")
_EXTRAS = frozenset({"cuda", "cudnn"})
"""Of onnxruntime-gpu: NVIDIA's wheels."""


class TextFinding(NamedTuple):
    """A finding in a text."""

    line: int
    finding: Finding


class JudgedText(NamedTuple):
    """What a text tells."""

    told: tuple[TextFinding, ...]
    """In the order of their lines."""
    serving: Serving | None = None
    """What the release that it installs can serve; None: it names none."""
    hosts: tuple[tuple[str, tuple[Reason, ...]], ...] = ()
    """Why each named machine cannot use it; empty: it can, as far as the text tells."""
    elsewhere: tuple[tuple[int, str], ...] = ()
    """The lines that install what the text does not name."""

    @property
    def wrong(self) -> bool:
        """Whether an image of the text is not right, or not for a named machine."""
        errors = any(row.finding.severity == "error" for row in self.told)
        return errors or any(why for _, why in self.hosts)


def judge_dockerfile(
    stages: Sequence[Stage],
    machines: Iterable[tuple[str, Facts]],
    bare: Facts,
    *,
    matrix: Matrix,
    known: Sequence[str],
) -> JudgedText:
    """Return what a Dockerfile tells, for the named `machines`; `bare` are facts with no packages.

    `known` are the compute capabilities that are asked for.
    """
    kept = taken_from(stages)
    installs = installs_of(row for stage in kept for row in stage.instructions)
    elsewhere = (*installs.elsewhere, *copied_from_elsewhere(stages))
    installs, gpu = installs._replace(elsewhere=elsewhere), installs.packages.get(GPU_BUILD)
    build = None
    if gpu:
        chain = based_on([stage for stage in stages if stage.line < gpu.line])
        python = python_on(chain)
        bare = bare._replace(platform=platform_on(chain[0], bare.platform))
        build = None if gpu.foreign or gpu.gutted else _build(gpu, bare, python, matrix)
        version = python or (_python_of(build) if build else bare.python.version)
        bare = bare._replace(python=bare.python._replace(version=version))
        elsewhere = elsewhere if build or gpu.gutted else (*elsewhere, (gpu.line, str(gpu.wanted)))
    told = [*_of_builds(installs, build, bare, matrix), *_of_variables(based_on(stages))]
    image = bare._replace(packages=tuple(_packages(installs, build)) if build else ())
    unfit: tuple[Reason, ...] = ()
    if gpu and build:
        told += _of_base(based_on(stages)[0], installs, gpu, build)
        unfit = _unfit(build, image, matrix)
        told += _of_wheels(gpu, build, unfit)
    return JudgedText(
        told=tuple(sorted(told, key=lambda row: row.line)),
        serving=serving(image, matrix, known) if build else None,
        hosts=tuple(
            (name, unfit or against(on_machine(image, facts), matrix))
            for name, facts in (machines if build else ())
        ),
        elsewhere=tuple(sorted(elsewhere, key=lambda row: row[0])),
    )


def _build(gpu: PipInstall, image: Facts, python: str | None, matrix: Matrix) -> Build | None:
    """Return the newest build that a requirement allows, best with a wheel for the Python there.

    None: the matrix has none.
    """
    fitting = (row for row in matrix.builds if allows(gpu.wanted.specifier, row.version))

    def best(row: Build) -> tuple[bool, bool, Version]:
        fits = python is None or wheel_for(row, abi(python, free_threaded=False)) is not None
        return row.platform == image.platform.key, fits, newest_first(row.version)

    return max(fitting, key=best, default=None)


def _python_of(build: Build) -> str:
    """Return the newest Python that a build has a wheel for: `3.14`."""
    newest = max(int(wheel.python.strip("cpmt")[1:]) for wheel in build.wheels)
    return f"3.{newest}"


def _unfit(build: Build, image: Facts, matrix: Matrix) -> tuple[Reason, ...]:
    """Return why the image's pip finds no wheel of a build."""
    here = situation(image, PlanOptions(), matrix)
    rules = (check_platform, check_python)
    return tuple(why for rule in rules for why in rule(without_wheels(build, here), here))


def _packages(installs: Installs, build: Build) -> Iterator[Package]:
    """Yield the packages at exact versions, and the build."""
    for name, row in installs.packages.items():
        exact = [spec.version for spec in row.wanted.specifier if spec.operator in {"==", "==="}]
        if name == GPU_BUILD:
            yield Package(name, build.version)
        elif exact and "*" not in exact[0]:
            yield Package(name, exact[0])


def _of_builds(
    installs: Installs, build: Build | None, bare: Facts, matrix: Matrix
) -> Iterator[TextFinding]:
    gpu, cpu = installs.packages.get(GPU_BUILD), installs.packages.get(CPU_BUILD)
    unsure = any(row and row.depends for row in (gpu, cpu))
    unsure |= bool(gpu and cpu and gpu.place != cpu.place)
    if gpu and cpu and not unsure:
        row = finding("text-both-builds", "error", gpu=str(gpu.line), cpu=str(cpu.line))
        yield TextFinding(max(gpu.line, cpu.line), row)
    elif cpu and not unsure:
        yield TextFinding(cpu.line, finding("text-cpu-build", "error"))
    if gpu and gpu.gutted:
        row = finding("folder-gutted", "error", distribution=GPU_BUILD)
        yield TextFinding(gpu.gutted, row)
    if gpu and build and "==" not in str(gpu.wanted.specifier):
        needs = serving(bare._replace(packages=(Package(GPU_BUILD, build.version),)), matrix, ())
        row = finding(
            "text-unpinned",
            "warning",
            release=build.version,
            cuda=major(build.cuda),
            driver=needs.driver or "?",
        )
        yield TextFinding(gpu.line, row)


def _of_wheels(gpu: PipInstall, build: Build, unfit: Iterable[Reason]) -> Iterator[TextFinding]:
    severity: Severity = "warning" if gpu.depends else "error"
    for why in unfit:
        place = words(why.values[0][1])
        row = finding("text-no-wheel", severity, release=build.version, place=place)
        yield TextFinding(gpu.line, row)


def _of_variables(chain: Iterable[Stage]) -> Iterator[TextFinding]:
    """Yield what the variables of the image do; a later ENV replaces an earlier one."""
    set_at: dict[str, tuple[Instruction, str]] = {}
    for row in (row for stage in chain for row in stage.instructions if row.word == "ENV"):
        set_at |= {name: (row, value) for name, value in assigned(row.text).items()}
    if CAPABILITIES in set_at:
        row, value = set_at[CAPABILITIES]
        before = row.text.partition(CAPABILITIES)[0]
        yield from _of_capabilities(row.line + before.count("\n"), value)


def _of_capabilities(line: int, value: str) -> Iterator[TextFinding]:
    if not has_compute(value):
        yield TextFinding(line, finding("image-without-compute", "error", value=value))


def _of_base(
    base: Stage, installs: Installs, gpu: PipInstall, build: Build
) -> Iterator[TextFinding]:
    """Yield what the name of the base image means for the release."""
    brought = bool(gpu.wanted.extras & _EXTRAS) or any(map(_BRINGS_CUDA.match, installs.packages))
    sure = not installs.elsewhere and "torch" not in installs.packages
    severity: Severity = "error" if sure else "warning"
    needed = {"base": base.base, "release": build.version, "cuda": major(build.cuda)}
    match = NVIDIA.search(base.base)
    if match and brought:
        yield TextFinding(base.line, finding("text-cuda-unused", "warning", base=base.base))
    elif match and major(match[1]) != major(build.cuda):
        yield TextFinding(base.line, finding("text-cuda-other", severity, found=match[1], **needed))
    elif match and (match[4] == "base" or match[2] is None):
        yield TextFinding(
            base.line, finding("text-cudnn-missing", severity, cudnn=build.cudnn, **needed)
        )
    elif match and match[3] not in {"", build.cudnn}:
        row = finding("text-cudnn-other", severity, found=match[3], cudnn=build.cudnn, **needed)
        yield TextFinding(base.line, row)
    elif WITHOUT_CUDA.search(base.base) and not brought and sure:
        yield TextFinding(gpu.line, finding("text-cuda-missing", severity, **needed))


def judge_compose(services: Sequence[Service]) -> JudgedText:
    """Return what a compose file tells."""
    wanting = [row for row in services if row.wants and row.gpu is False]
    severity: Severity = "error"
    if not any(row.wants or row.gpu is not False for row in services):
        wanting, severity = [row for row in services if row.built], "warning"
    told = [
        TextFinding(row.line, finding("text-without-gpu", severity, service=row.name))
        for row in wanting
    ]
    for row in services:
        value = row.environment.get(CAPABILITIES, "")
        told += _of_capabilities(row.lines.get(CAPABILITIES, row.line), value)
    return JudgedText(told=tuple(sorted(told, key=lambda each: each.line)))
