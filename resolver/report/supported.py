"""Which releases run on some GPUs with some driver, on every platform, and why the others do not.

Returns sections and documents, prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ..facts.model import Architecture, Driver, Facts, Gpu, Interpreter, Platform, System
from ..matrix.model import Build, Matrix
from ..messages.catalog import Texts
from ..messages.sections import Row, Section, join_neighbours, wrapped
from ..plan.reasons import Reason
from ..resolve.candidate import Candidate, make_candidate
from ..resolve.options import PlanOptions
from ..resolve.rules import reasons_against
from ..resolve.situation import Situation, situation_of
from ..versions import numbers
from .matrix import builds_in_order, document, matrix_date, pythons, summary
from .plan_document import reasons_json

_COLUMNS = 78
"""Of a text, which leave room for its head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBuild:
    """A build, and what speaks against it on the GPUs and the driver that were asked for."""

    build: Build
    candidate: Candidate
    reasons: tuple[Reason, ...]


def judge_builds(matrix: Matrix, driver: str, capabilities: Sequence[str]) -> list[JudgedBuild]:
    """Return every build with what speaks against it on these GPUs with this driver.

    Each is asked on its own platform and the newest Python that it has a wheel for, with nothing
    installed.
    """
    found: list[JudgedBuild] = []
    for build in builds_in_order(matrix):
        situation = elsewhere(build, matrix, driver, capabilities)
        candidate = make_candidate(build, situation)
        reasons = reasons_against(candidate, situation)
        found.append(JudgedBuild(build=build, candidate=candidate, reasons=reasons))
    return found


def elsewhere(build: Build, matrix: Matrix, driver: str, capabilities: Sequence[str]) -> Situation:
    """Return a machine that `build` has a wheel for, with these GPUs and nothing installed."""
    system, _, machine = build.platform.partition("_")
    minor = max(numbers(wheel.python.removeprefix("cp3"))[0] for wheel in build.wheels)
    facts = Facts(
        platform=Platform(system=cast("System", system), machine=cast("Architecture", machine)),
        driver=Driver(version=driver),
        gpus=tuple(Gpu(compute_capability=text) for text in capabilities),
        python=Interpreter(
            version=f"3.{minor}.0",
            free_threaded=all(wheel.python != f"cp3{minor}" for wheel in build.wheels),
        ),
    )
    return situation_of(facts, PlanOptions(), matrix)


def runs_sections(
    matrix: Matrix, driver: str, capabilities: Sequence[str], texts: Texts
) -> tuple[Section, ...]:
    """Return what runs on these GPUs with this driver, and why the rest does not, by platform."""
    platforms: dict[str, list[tuple[str, tuple[str, str]]]] = {}
    for judged in sorted(
        judge_builds(matrix, driver, capabilities), key=lambda judged: judged.build.platform
    ):
        style = "dim" if judged.reasons else "green"
        text = texts.reason(judged.reasons[0]) if judged.reasons else _running(judged, texts)
        platforms.setdefault(judged.build.platform, []).append(
            (judged.build.version, (text, style))
        )
    sections = [
        Section(
            heading=platform,
            rows=tuple(
                Row(head="" if at else texts.versions(versions), text=line, style=style)
                for versions, (text, style) in join_neighbours(rows)
                for at, line in enumerate(wrapped(text, _COLUMNS))
            ),
        )
        for platform, rows in platforms.items()
    ]
    return (*sections, matrix_date(matrix, texts))


def _running(judged: JudgedBuild, texts: Texts) -> str:
    cudnn = [
        f"cuDNN {component.release.version}"
        for component in judged.candidate.components.chosen
        if component.release.name.startswith("nvidia-cudnn")
    ]
    wheels = ", ".join([f"CUDA {judged.build.cuda}", *cudnn])
    return texts.label("matrix-runs", pythons=pythons(judged.build), wheels=wheels)


def runs_json(
    matrix: Matrix, driver: str, capabilities: Sequence[str], texts: Texts
) -> dict[str, object]:
    """Return what runs on these GPUs with this driver as a document; `texts` must be English."""
    releases = [
        {
            **summary(judged.build, matrix),
            "runs": not judged.reasons,
            "reasons": reasons_json(judged.reasons, texts),
            "packages": [
                {"name": component.release.name, "version": component.release.version}
                for component in judged.candidate.components.chosen
                if not judged.reasons
            ],
        }
        for judged in judge_builds(matrix, driver, capabilities)
    ]
    return document(matrix, releases)
