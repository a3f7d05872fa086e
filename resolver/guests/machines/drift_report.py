"""What has drifted from a lock, in words and as JSON.

Returns sections and documents, prints nothing.
"""

from __future__ import annotations

from ...lock.machine_lines import machine_text
from ...matrix.model import Matrix
from ...messages.catalog import Texts
from ...messages.sections import Row, Section
from ...report.plan_document import SCHEMA, reasons_json
from .drift import Drift, MovedPin
from .parsed_lock import ParsedLock


def drift_json(
    found: Drift, locked: ParsedLock, file: str, matrix: Matrix, texts: Texts
) -> dict[str, object]:
    """Return the document that `lock --check --json` prints; `texts` must be English.

    `verdict` is `holds`, `drifted` or `impossible`; `differences` name the lines of the lock that
    the matrix contradicts, `environment` what is installed otherwise, `reasons` why the packages
    cannot work here, `machine` the one of the lock's header that stands for this one.
    """
    release = found.release
    return {
        "schema": SCHEMA,
        "file": file,
        "format": locked.format,
        "verdict": found.verdict,
        "machine": found.machine and machine_text(found.machine),
        "release": release and {"name": release.name, "version": release.version},
        "differences": [
            {"line": difference.line, **why}
            for difference in found.differences
            for why in reasons_json([difference.why], texts)
        ],
        "reasons": reasons_json(found.against, texts),
        "environment": [
            {
                "name": difference.name,
                "locked": difference.locked,
                "installed": difference.installed,
            }
            for difference in found.moved
        ],
        "newest": found.newest,
        "unlock": [
            {"change": texts.change(difference), "gains": texts.gains(difference)}
            for difference in found.unlock
        ],
        "made_with": locked.matrix_digest
        and {"date": locked.matrix_date, "digest": locked.matrix_digest},
        "matrix": {"date": matrix.date, "digest": matrix.digest},
    }


def not_ours_json(file: str) -> dict[str, object]:
    """Return the document for a lock that names nothing of ours: it has nothing to hold."""
    nothing = ("format", "machine", "release", "newest", "made_with", "matrix")
    lists = ("differences", "reasons", "environment", "unlock")
    return {
        "schema": SCHEMA,
        "file": file,
        "verdict": "holds",
        **dict.fromkeys(nothing),
        **{name: [] for name in lists},
    }


def drift_sections(
    found: Drift, locked: ParsedLock, file: str, matrix: Matrix, texts: Texts
) -> tuple[Section, ...]:
    """Return the answer for people."""
    release = found.release
    named = f"{file}  {release.name} {release.version}" if release else file
    newer: list[Row] = []
    if found.matrix_moved:
        label = texts.label(
            "drift-matrix" if locked.matrix_date != matrix.date else "drift-matrix-rows",
            then=locked.matrix_date,
            now=matrix.date,
        )
        newer.append(Row(text=label))
    if found.newest is not None:
        newer.append(Row(text=texts.label("drift-newest", version=found.newest)))
    styles = {"holds": "bold green", "drifted": "bold", "impossible": "bold red"}
    head = [Row(head=texts.label("drift-lock"), text=named)]
    if found.machine is not None:
        code = "drift-machine" if found.compared else "drift-made-for"
        head.append(Row(text=texts.label(code, machine=machine_text(found.machine))))
    sections = (
        Section(rows=tuple(head)),
        Section(
            heading=texts.label("drift-differs"),
            rows=tuple(
                Row(
                    head=texts.label("drift-line", line=row.line),
                    text=texts.reason(row.why),
                    style="red",
                )
                for row in found.differences
            ),
        ),
        Section(
            heading=texts.label("drift-against"),
            rows=tuple(Row(text=texts.reason(why), style="red") for why in found.against),
        ),
        Section(
            heading=texts.label("drift-environment"),
            rows=tuple(Row(head=row.name, text=_moved(row, texts)) for row in found.moved),
        ),
        Section(heading=texts.label("drift-newer"), rows=tuple(newer)),
        Section(
            heading=texts.label("unlock"),
            rows=tuple(Row(head=texts.change(row), text=texts.gains(row)) for row in found.unlock),
        ),
        Section(rows=(Row(text=texts.label(_end(found)), style=styles[found.verdict]),)),
    )
    return tuple(section for section in sections if section.rows)


def _end(found: Drift) -> str:
    """Return the label of the last sentence: of this machine or that one, with what is installed.

    A lock that the matrix alone contradicts is no drift of an environment.
    """
    if not found.compared or (found.verdict == "drifted" and not found.moved):
        return f"drift-alone-{found.verdict}"
    return f"drift-there-{found.verdict}" if found.machine else f"drift-{found.verdict}"


def _moved(row: MovedPin, texts: Texts) -> str:
    if row.installed is None:
        return texts.label("drift-absent", locked=row.locked)
    if row.locked is None:
        return texts.label("drift-extra", installed=row.installed)
    code = "drift-damaged" if row.locked == row.installed else "drift-other"
    return texts.label(code, locked=row.locked, installed=row.installed)
