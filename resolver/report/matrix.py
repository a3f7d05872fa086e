"""What the matrix holds: all releases, or one of them with its sources.

Returns sections and documents, prints nothing. `rows` are the builds as their table has them,
with the sources that plans have no use for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..facts.model import GPU_BUILD
from ..matrix.model import Build, Matrix
from ..matrix.torch import TomlTable
from ..messages.catalog import Texts
from ..messages.sections import Row, Section, join_neighbours
from ..versions import major, newest_first
from .plan_document import matrix_json


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


def builds_in_order(matrix: Matrix) -> list[Build]:
    """Return all builds, the newest release first and its platforms by name."""
    builds = sorted(matrix.builds, key=lambda build: build.platform)
    return sorted(builds, key=lambda build: newest_first(build.version), reverse=True)


def overview_sections(matrix: Matrix, texts: Texts) -> tuple[Section, ...]:
    """Return all releases, neighbours that are alike under one heading."""
    said: dict[str, list[Row]] = {}
    for build in builds_in_order(matrix):
        said.setdefault(build.version, []).extend(_lines(build, matrix, texts))
    sections = [
        Section(heading=f"{GPU_BUILD} {texts.versions(versions)}", rows=tuple(rows))
        for versions, rows in join_neighbours(said.items())
    ]
    return (*sections, matrix_date(matrix, texts))


def _lines(build: Build, matrix: Matrix, texts: Texts) -> list[Row]:
    driver = floor(build, matrix)
    made = texts.label("matrix-build", cuda=build.cuda, cudnn=build.cudnn, driver=driver)
    glibc = f"{texts.label('comma')}glibc >= {build.glibc}" if build.glibc else ""
    return [
        Row(head=build.platform, text=made + glibc),
        Row(text=f"Python {pythons(build)}"),
        Row(text=_code(build, texts), style="dim"),
    ]


def _code(build: Build, texts: Texts) -> str:
    code = texts.label("matrix-code", sass=" ".join(build.sass))
    return code + (f"{texts.label('semicolon')}PTX {' '.join(build.ptx)}" if build.ptx else "")


def matrix_date(matrix: Matrix, texts: Texts) -> Section:
    """Return which matrix it is, and which index gave the rows that are not the shipped ones."""
    said = [texts.label("matrix-of", date=matrix.date, digest=matrix.digest)]
    for row in matrix.added:
        listed = ", ".join(row.releases)
        said.append(texts.label("hash-read", listed=listed, index=row.index_url, date=row.read))
    return Section(rows=tuple(Row(text=text, style="dim") for text in said))


def overview_json(matrix: Matrix) -> dict[str, object]:
    """Return all releases as the document that `--json` prints."""
    return document(matrix, [summary(build, matrix) for build in builds_in_order(matrix)])


def document(matrix: Matrix, releases: Sequence[object]) -> dict[str, object]:
    """Return the document of `releases`, and which matrix they are from."""
    about = matrix_json(matrix.date, matrix.digest, matrix.added)
    return {"schema": 1, "releases": list(releases), "matrix": about}


def summary(build: Build, matrix: Matrix) -> dict[str, object]:
    """Return what `build` runs on, for a document."""
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
    matrix: Matrix,
    rows: Sequence[TomlTable],
    floors: Sequence[TomlTable],
    version: str,
    texts: Texts,
) -> tuple[Section, ...]:
    """Return one release with its sources; nothing where the matrix does not hold it.

    `floors` are the driver floors as their table has them. Of a release that left the index that is
    all there is to say.
    """
    if version in matrix.gone:
        gone = Row(text=texts.label("matrix-gone"))
        source = Row(head=texts.label("matrix-sources"), text=matrix.gone[version])
        heading = f"{GPU_BUILD} {version}"
        return Section(heading=heading, rows=(gone, source)), matrix_date(matrix, texts)
    by_platform = {row["platform"]: row for row in rows if row["version"] == version}
    sections: list[Section] = []
    for build in builds_in_order(matrix):
        if build.version == version:
            sections += _one(build, by_platform[build.platform], floors, matrix, texts)
    return (*sections, matrix_date(matrix, texts)) if sections else ()


def _one(
    build: Build, row: TomlTable, floors: Sequence[TomlTable], matrix: Matrix, texts: Texts
) -> tuple[Section, ...]:
    """Return a build: what it is made for, what it needs, how that is known, and its wheels."""
    made, *rest = _lines(build, matrix, texts)
    found = [Row(text=made.text), *rest]
    if row.get("partial"):
        partial = texts.label("matrix-partial", targets=" ".join(row["partial"]))
        found.append(Row(text=partial, style="dim"))
    for need in build.needs:
        how = texts.label("matrix-linked" if need.how == "links" else "matrix-loaded")
        wheel = (f"{need.distribution} >= {need.since}",) if need.distribution else ()
        found.append(Row(head=need.library, text=texts.label("comma").join((how, *wheel))))
    if build.tensorrt:
        found.append(Row(head=build.tensorrt, text=texts.label("matrix-tensorrt")))
    found.append(Row(head=texts.label("matrix-requires"), text=", ".join(row["requires"])))
    driver = next((row["source"] for row in floors if row["cuda"] == major(build.cuda)), "?")
    sources = (
        Row(head="CUDA", text=row.get("cuda_source", "?")),
        Row(head="cuDNN", text=texts.label("matrix-cudnn")),
        Row(head=texts.label("driver"), text=driver),
    )
    wheels = tuple(Row(head=wheel.python, text=wheel.file) for wheel in build.wheels)
    return (
        Section(heading=f"{GPU_BUILD} {build.version}, {build.platform}", rows=tuple(found)),
        Section(heading=texts.label("matrix-sources"), rows=sources),
        Section(heading=texts.label("matrix-wheels"), rows=wheels),
    )


def release_json(
    matrix: Matrix, rows: Sequence[TomlTable], floors: Sequence[TomlTable], version: str
) -> dict[str, object] | None:
    """Return one release, every value of its table, or None where the matrix does not hold it.

    Of a release that left the index it says so, with the source.
    """
    if version in matrix.gone:
        row = {"version": version, "gone": True, "source": matrix.gone[version]}
        return {**document(matrix, [row]), "drivers": []}
    found = [dict(row) for row in rows if row["version"] == version]
    if not found:
        return None
    majors = {major(row["cuda"]) for row in found}
    drivers = [dict(row) for row in floors if row["cuda"] in majors]
    return {**document(matrix, found), "drivers": drivers}
