"""What the matrix holds: all releases, one with its sources, or what runs on a GPU and a driver.

Core: returns sections and documents, prints nothing. `rows` are the builds as their table has them,
with the sources that plans have no use for.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .facts import Driver, Facts, Gpu, Interpreter, Machine, Platform, System
from .matrix import Build, Matrix
from .plan import Reason
from .rules import NAME, Candidate, candidate, reasons_against
from .sections import Row, Section, width
from .situation import Situation, Wishes, situation
from .texts import Texts
from .versions import major, newest_first, numbers

SCHEMA = 1
Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A build, and what speaks against it on the GPUs and the driver that were asked for."""

    build: Build
    subject: Candidate
    reasons: tuple[Reason, ...]


def pythons(build: Build) -> str:
    """Return the Pythons of `build`, runs of minors drawn together: `3.11-3.14, 3.13t`."""
    tags = [wheel.python.removeprefix("cp3").removesuffix("m") for wheel in build.wheels]
    minors = sorted(int(tag) for tag in tags if tag.isdigit())
    runs: list[list[int]] = []
    for minor in minors:
        if runs and minor == runs[-1][-1] + 1:
            runs[-1].append(minor)
        else:
            runs.append([minor])
    said = [f"3.{run[0]}" + (f"-3.{run[-1]}" if len(run) > 1 else "") for run in runs]
    return ", ".join([*said, *(f"3.{tag}" for tag in tags if not tag.isdigit())])


def floor(build: Build, matrix: Matrix) -> str:
    """Return the oldest driver release for `build` on its system; `?` where it is not known."""
    row = next((row for row in matrix.floors if row.cuda == major(build.cuda)), None)
    windows = build.platform.startswith("windows")
    return ((row.windows if windows else row.linux) if row else None) or "?"


def ordered(matrix: Matrix) -> list[Build]:
    """Return all builds, the newest release first and its platforms by name."""
    builds = sorted(matrix.builds, key=lambda build: build.platform)
    return sorted(builds, key=lambda build: newest_first(build.version), reverse=True)


def overview_sections(matrix: Matrix, texts: Texts) -> tuple[Section, ...]:
    """Return all releases, neighbours that are alike under one heading."""
    said: dict[str, list[Row]] = {}
    for build in ordered(matrix):
        said.setdefault(build.version, []).extend(_lines(build, matrix, texts))
    groups: list[tuple[list[str], list[Row]]] = []
    for version, rows in said.items():
        if groups and groups[-1][1] == rows:
            groups[-1][0].append(version)
        else:
            groups.append(([version], rows))
    sections = [
        Section(heading=f"{NAME} {_range(versions, texts)}", rows=tuple(rows))
        for versions, rows in groups
    ]
    return (*sections, _dated(matrix, texts))


def _lines(build: Build, matrix: Matrix, texts: Texts) -> list[Row]:
    driver = floor(build, matrix)
    made = texts.label("matrix-build", cuda=build.cuda, cudnn=build.cudnn, driver=driver)
    glibc = f", glibc >= {build.glibc}" if build.glibc else ""
    return [
        Row(head=build.platform, text=made + glibc),
        Row(text=f"Python {pythons(build)}"),
        Row(text=_code(build, texts), style="dim"),
    ]


def _code(build: Build, texts: Texts) -> str:
    code = texts.label("matrix-code", sass=" ".join(build.sass))
    return code + (f"; PTX {' '.join(build.ptx)}" if build.ptx else "")


def _range(versions: Sequence[str], texts: Texts) -> str:
    if len(versions) == 1:
        return versions[0]
    return texts.label("versions", first=versions[-1], last=versions[0])


def _dated(matrix: Matrix, texts: Texts) -> Section:
    text = texts.label("matrix-of", date=matrix.date, digest=matrix.digest)
    return Section(rows=(Row(text=text, style="dim"),))


def overview_json(matrix: Matrix) -> dict[str, object]:
    """Return all releases as the document that `--json` prints."""
    return _document(matrix, [_summary(build, matrix) for build in ordered(matrix)])


def _document(matrix: Matrix, releases: Sequence[object]) -> dict[str, object]:
    dated = {"date": matrix.date, "digest": matrix.digest}
    return {"schema": SCHEMA, "releases": list(releases), "matrix": dated}


def _summary(build: Build, matrix: Matrix) -> dict[str, object]:
    return {
        "version": build.version,
        "platform": build.platform,
        "cuda": build.cuda,
        "cudnn": build.cudnn,
        "driver": floor(build, matrix),
        "glibc": build.glibc,
        "pythons": [wheel.python for wheel in build.wheels],
        "sass": list(build.sass),
        "ptx": list(build.ptx),
    }


def release_sections(
    matrix: Matrix, rows: Sequence[Table], floors: Sequence[Table], version: str, texts: Texts
) -> tuple[Section, ...]:
    """Return one release with its sources; nothing where the matrix does not hold it.

    `floors` are the driver floors as their table has them.
    """
    by_platform = {row["platform"]: row for row in rows if row["version"] == version}
    sections: list[Section] = []
    for build in ordered(matrix):
        if build.version == version:
            sections += _one(build, by_platform[build.platform], floors, matrix, texts)
    return (*sections, _dated(matrix, texts)) if sections else ()


def _one(
    build: Build, row: Table, floors: Sequence[Table], matrix: Matrix, texts: Texts
) -> tuple[Section, ...]:
    """Return a build: what it is made for, what it needs, how that is known, and its wheels."""
    made, *rest = _lines(build, matrix, texts)
    found = [Row(text=made.text), *rest]
    for need in build.needs:
        how = texts.label("matrix-linked" if need.how == "links" else "matrix-loaded")
        brings = f", {need.distribution} >= {need.since}" if need.distribution else ""
        found.append(Row(head=need.library, text=how + brings))
    found.append(Row(head=texts.label("matrix-requires"), text=", ".join(row["requires"])))
    driver = next((row["source"] for row in floors if row["cuda"] == major(build.cuda)), "?")
    sources = (
        Row(head="CUDA", text=row["cuda_source"]),
        Row(head="cuDNN", text=texts.label("matrix-cudnn")),
        Row(head=texts.label("driver"), text=driver),
    )
    wheels = tuple(Row(head=wheel.python, text=wheel.file) for wheel in build.wheels)
    return (
        Section(heading=f"{NAME} {build.version}, {build.platform}", rows=tuple(found)),
        Section(heading=texts.label("matrix-sources"), rows=sources),
        Section(heading=texts.label("matrix-wheels"), rows=wheels),
    )


def release_json(
    matrix: Matrix, rows: Sequence[Table], floors: Sequence[Table], version: str
) -> dict[str, object] | None:
    """Return one release, every value of its table, or None where the matrix does not hold it."""
    found = [dict(row) for row in rows if row["version"] == version]
    if not found:
        return None
    majors = {major(row["cuda"]) for row in found}
    drivers = [dict(row) for row in floors if row["cuda"] in majors]
    return {**_document(matrix, found), "drivers": drivers}


def judged(matrix: Matrix, driver: str, capabilities: Sequence[str]) -> list[Judged]:
    """Return every build with what speaks against it on these GPUs with this driver.

    Each is asked on its own platform and the newest Python that it has a wheel for, with nothing
    installed.
    """
    found: list[Judged] = []
    for build in ordered(matrix):
        here = _elsewhere(build, matrix, driver, capabilities)
        subject = candidate(build, here)
        reasons = reasons_against(subject, here)
        found.append(Judged(build=build, subject=subject, reasons=reasons))
    return found


def _elsewhere(build: Build, matrix: Matrix, driver: str, capabilities: Sequence[str]) -> Situation:
    system, _, machine = build.platform.partition("_")
    minor = max(numbers(wheel.python.removeprefix("cp3"))[0] for wheel in build.wheels)
    facts = Facts(
        platform=Platform(system=cast("System", system), machine=cast("Machine", machine)),
        driver=Driver(version=driver),
        gpus=tuple(Gpu(compute_capability=text) for text in capabilities),
        python=Interpreter(
            version=f"3.{minor}.0",
            free_threaded=all(wheel.python != f"cp3{minor}" for wheel in build.wheels),
        ),
    )
    return situation(facts, Wishes(), matrix)


def runs_sections(
    matrix: Matrix, driver: str, capabilities: Sequence[str], texts: Texts
) -> tuple[Section, ...]:
    """Return what runs on these GPUs with this driver, and why the rest does not, by platform."""
    platforms: dict[str, list[tuple[list[str], str, str]]] = {}
    for row in sorted(judged(matrix, driver, capabilities), key=lambda row: row.build.platform):
        style = "dim" if row.reasons else "green"
        text = texts.reason(row.reasons[0]) if row.reasons else _running(row, texts)
        groups = platforms.setdefault(row.build.platform, [])
        if groups and groups[-1][1:] == (text, style):
            groups[-1][0].append(row.build.version)
        else:
            groups.append(([row.build.version], text, style))
    sections = [
        Section(
            heading=platform,
            rows=tuple(
                Row(head=_range(versions, texts) if first else "", text=line, style=style)
                for versions, text, style in groups
                for first, line in _wrapped(text)
            ),
        )
        for platform, groups in platforms.items()
    ]
    return (*sections, _dated(matrix, texts))


def _wrapped(text: str) -> Iterator[tuple[bool, str]]:
    """Yield `text` in lines that leave room for a head, and which is the first."""
    columns = 78 * len(text) // width(text)
    for at, line in enumerate(textwrap.wrap(text, columns)):
        yield at == 0, line


def _running(row: Judged, texts: Texts) -> str:
    cudnn = [
        f"cuDNN {component.release.version}"
        for component in row.subject.components.chosen
        if component.release.name.startswith("nvidia-cudnn")
    ]
    wheels = ", ".join([f"CUDA {row.build.cuda}", *cudnn])
    return texts.label("matrix-runs", pythons=pythons(row.build), wheels=wheels)


def runs_json(
    matrix: Matrix, driver: str, capabilities: Sequence[str], texts: Texts
) -> dict[str, object]:
    """Return what runs on these GPUs with this driver as a document; `texts` must be English."""
    releases = [
        {
            **_summary(row.build, matrix),
            "runs": not row.reasons,
            "reasons": [{"code": why.code, "text": texts.reason(why)} for why in row.reasons],
            "packages": [
                {"name": component.release.name, "version": component.release.version}
                for component in row.subject.components.chosen
                if not row.reasons
            ],
        }
        for row in judged(matrix, driver, capabilities)
    ]
    return _document(matrix, releases)
