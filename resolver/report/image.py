"""An image, in words and as JSON: what it can serve, what is wrong, and what CUDA weighs in it.

Returns sections and documents, prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..image.judged import JudgedEnvironment, JudgedImage
from ..image.weight import Holding
from ..matrix.model import Matrix
from ..messages.catalog import Texts
from ..messages.sections import STYLES, Row, Section, size
from ..plan.model import Plan
from ..plan.reasons import Finding
from ..resolve.serving import Serving
from .plan_document import SCHEMA, findings_json
from .rejected import rejected_section

_STYLES = {"healthy": "bold green", "fixable": "bold", "impossible": "bold red"}


def image_sections(
    found: JudgedImage, path: str, verdict: str, mending: Sequence[Row], texts: Texts
) -> tuple[Section, ...]:
    """Return the answer for people.

    `mending` has the command for each environment that needs one, or why there is none.
    """
    sections = [section for one in found.environments for section in _environment(one, texts)]
    others = ", ".join(f"{one.path} ({one.facts.python.version})" for one in found.others)
    if others:
        row = Row(head=texts.label("image-others"), text=others, style="dim")
        sections.append(Section(rows=(row,)))
    sections += [
        Section(
            heading=texts.label("image-heading", path=path),
            rows=tuple(finding_rows(found.findings, texts)),
        ),
        Section(
            heading=texts.label("image-weight"),
            rows=tuple(Row(head=row.path, text=_weight(row, texts)) for row in found.holdings),
        ),
        Section(rows=(Row(text=weight_text(found, texts)),)),
        Section(
            heading=texts.label("image-lost"),
            rows=tuple(
                Row(head=str(number + 1), text=size(layer.lost))
                for number, layer in enumerate(found.layers)
                if layer.lost
            ),
        ),
    ]
    rows = [Row(text=texts.label(f"image-{verdict}"), style=_STYLES[verdict])]
    commands = [row for row in mending if row.whole]
    rows += [Row(text=texts.label("image-mend")), *commands] if commands else []
    rows += dict.fromkeys(row for row in mending if not row.whole)
    return (*(section for section in sections if section.rows), Section(rows=tuple(rows)))


def _environment(one: JudgedEnvironment, texts: Texts) -> Iterator[Section]:
    facts = one.environment.facts
    heading = f"{one.environment.path} (Python {facts.python.version})"
    serves = serves_row(one.serving, texts)
    named = [(name, tuple(judged_rows(plan, texts))) for name, plan in one.plans]
    yield Section(heading=heading, rows=(serves, *dict(named).get("", ())))
    yield from (Section(heading=name, rows=rows) for name, rows in named if name)


def judged_rows(plan: Plan, texts: Texts) -> Iterator[Row]:
    """Yield what a plan finds, whether sessions can use the GPU, and why no set would."""
    yield from finding_rows(plan.findings, texts)
    yield Row(text=texts.label(f"image-is-{plan.verdict}"), style=_STYLES[plan.verdict])
    if plan.verdict == "impossible":
        for row in rejected_section(plan, texts, verbose=False).rows:
            yield Row(text=f"{row.head}: {row.text}", style="dim")


def serves_row(serving: Serving, texts: Texts) -> Row:
    """Return the driver and the GPUs that a set can serve."""
    if serving.release is None:
        return Row(text=texts.label("serves-nothing"), style="red")
    return Row(
        text=texts.label(
            "serves",
            release=serving.release,
            cuda=serving.cuda,
            driver=serving.driver or "?",
            gpus=", ".join(serving.gpus) or texts.label("none"),
        )
    )


def finding_rows(findings: Sequence[Finding], texts: Texts) -> Iterator[Row]:
    """Yield findings, errors with what mends them."""
    for each in findings:
        yield Row(text=texts.summary(each), style=STYLES[each.severity])
        if each.severity == "error" and texts.remedy(each):
            yield Row(text=f"→ {texts.remedy(each)}")


def _weight(row: Holding, texts: Texts) -> str:
    layers = ", ".join(str(number + 1) for number, _ in row.layers)
    said = [texts.label("image-layers", size=size(row.size), layers=layers)]
    if row.twice:
        said.append(texts.label("image-twice", size=size(row.twice_size)))
    if not row.used:
        said.append(texts.label("image-unused"))
    return texts.label("semicolon").join(said)


def weight_text(found: JudgedImage, texts: Texts) -> str:
    """Return what the image weighs, and what it could weigh where that is less."""
    code = "image-size" if found.could_weigh == found.size else "image-could"
    return texts.label(code, size=size(found.size), could=size(found.could_weigh))


def image_json(
    found: JudgedImage, path: str, verdict: str, matrix: Matrix, texts: Texts
) -> dict[str, object]:
    """Return the document that `check-image --json` prints; `texts` must be English."""
    return {
        "schema": SCHEMA,
        "image": path,
        "verdict": verdict,
        "environments": [_environment_json(one, texts) for one in found.environments],
        "without_onnxruntime": [one.path for one in found.others],
        "findings": findings_json(found.findings, texts),
        "cuda": [
            {
                "path": row.path,
                "size": row.size,
                "layers": [{"layer": number, "size": count} for number, count in row.layers],
                "used": row.used,
                "twice": list(row.twice),
                "twice_size": row.twice_size,
            }
            for row in found.holdings
        ],
        "layers": [layer._asdict() for layer in found.layers],
        "size": found.size,
        "could_weigh": found.could_weigh,
        "matrix": {"date": matrix.date, "digest": matrix.digest},
    }


def _environment_json(one: JudgedEnvironment, texts: Texts) -> dict[str, object]:
    facts = one.environment.facts
    build = facts.onnxruntime
    return {
        "path": one.environment.path,
        "python": facts.python.version,
        "onnxruntime": build
        and {"distribution": build.distribution, "version": build.version, "intact": build.intact},
        "serves": serving_json(one.serving),
        "machines": [_machine_json(name, plan, texts) for name, plan in one.plans],
    }


def _machine_json(name: str, plan: Plan, texts: Texts) -> dict[str, object]:
    findings = findings_json(plan.findings, texts)
    return {"name": name, "verdict": plan.verdict, "findings": findings}


def serving_json(serving: Serving) -> dict[str, object]:
    """Return what a set can serve, as documents have it."""
    document: dict[str, object] = serving._asdict()
    return {
        **document,
        "gpus": list(serving.gpus),
        "consumers": [str(row.by) for row in serving.consumers],
    }
