"""A user's model and its times, in words.

Core.
"""

from __future__ import annotations

from ..messages.catalog import Texts
from ..messages.sections import Row, Section, size
from ..verify.advice import Advice
from ..verify.bench import Bench, Configuration, Timing, option_text
from ..verify.measurement import CPU, say_shapes
from ..verify.model_report import FREE, ModelReport
from ..verify.verification import UP_TO_THE_DRIVER

SHOWN_FALLBACKS = 12


def model_sections(report: ModelReport, texts: Texts) -> tuple[Section, ...]:
    """Say what a model's run proves, the verdict first."""
    sections = (
        Section(
            heading=texts.label("model"), rows=(*_verdict(report, texts), *_notes(report, texts))
        ),
        Section(heading=texts.label("model-placement"), rows=tuple(_placement(report, texts))),
        Section(heading=texts.label("model-fallbacks"), rows=tuple(_fallbacks(report, texts))),
        Section(heading=texts.label("model-outputs"), rows=tuple(_outputs(report, texts))),
    )
    return tuple(section for section in sections if section.rows)


def verdict_text(report: ModelReport, texts: Texts, key: str = "text") -> str:
    """Return the verdict in the words for a model, where it has such."""
    code = report.verdict
    own = code in {"works", "cpu-fallback", "wrong-result", "crashed"} and bool(report.values)
    return texts.verdict(f"model-{code}" if own else code, report.values, key)


def _verdict(report: ModelReport, texts: Texts) -> list[Row]:
    good = report.verdict == "works"
    style = "bold green" if good else "bold" if report.verdict in UP_TO_THE_DRIVER else "bold red"
    rows = [Row(text=report.file), Row(text=verdict_text(report, texts), style=style)]
    if hint := verdict_text(report, texts, "hint"):
        rows.append(Row(text=hint, style="dim"))
    if report.gpu is None and report.providers:
        rows.append(Row(text=texts.verdict("model-cpu-alone")))
    return rows


def _notes(report: ModelReport, texts: Texts) -> list[Row]:
    rows = []
    for note in report.notes:
        rows.append(Row(text=texts.verdict(note.code, note.values)))
        if hint := texts.verdict(note.code, note.values, "hint"):
            rows.append(Row(text=hint, style="dim"))
    return rows + [Row(text=line, style="dim") for line in report.evidence]


def _placement(report: ModelReport, texts: Texts) -> list[Row]:
    rows = [
        Row(head=row.provider, text=texts.label("model-nodes", nodes=row.nodes, ms=row.ms))
        for row in report.providers
    ]
    return rows + traffic_rows(report, texts)


def traffic_rows(report: ModelReport, texts: Texts) -> list[Row]:
    """Say what is copied between the devices, and the memory that is used, where that is known."""
    rows = []
    if copies := report.copies:
        said = texts.label(
            "model-copied",
            count=copies.to_device,
            to_device=size(copies.to_device_bytes),
            back=copies.to_host,
            to_host=size(copies.to_host_bytes),
            inputs=size(copies.input_bytes),
            outputs=size(copies.output_bytes),
        )
        rows.append(Row(head=texts.label("model-copies"), text=said))
    if report.gpu_memory_bytes is not None:
        rows.append(Row(head=texts.label("model-memory"), text=size(report.gpu_memory_bytes)))
    return rows


def _fallbacks(report: ModelReport, texts: Texts) -> list[Row]:
    ordered = sorted(report.fallbacks, key=lambda row: row.why in FREE)
    rows = [
        Row(head=row.op, text=f"{texts.label(f'why-{row.why}')}: {row.name}, {row.ms} ms")
        for row in ordered[:SHOWN_FALLBACKS]
    ]
    more = len(ordered) - len(rows)
    return [*rows, Row(text=texts.label("model-more", count=more))] if more else rows


def _outputs(report: ModelReport, texts: Texts) -> list[Row]:
    rows = []
    for row in report.checked:
        if row.deviation is None:
            text = texts.label("model-incomparable", problem=row.problem or "?")
        else:
            deviation = f"{row.deviation:.2g}"
            text = texts.label("model-deviation", deviation=deviation, tolerance=row.tolerance)
        rows.append(Row(head=row.name, text=text, style="red" if row.right is False else ""))
    return rows


def bench_sections(bench: Bench, advice: Advice, texts: Texts) -> tuple[Section, ...]:
    """Say how long everything took, and what that advises."""
    sections = []
    for number, shapes in enumerate(bench.shapes):
        rows = [
            Row(head=name(each, bench, texts), text=_times(bench.at(each.key, number), texts))
            for each in bench.configurations
            if bench.at(each.key, number).first_ms is not None
        ]
        heading = texts.label("page-shape", number=number + 1, shapes=say_shapes(shapes))
        sections.append(Section(heading=heading, rows=tuple(rows)))
    failed = [
        Row(head=row.key, text=texts.label("bench-failed", error=row.error[:200]))
        for row in bench.failed
    ]
    failed += [Row(text=texts.label("bench-ended", what=what)) for what in bench.ended_early]
    sections.append(Section(heading=texts.label("bench"), rows=tuple(failed)))
    advised = [Row(text=texts.advice(row)) for row in advice.rows]
    if advice.options is not None:
        advised.append(Row(text=option_text(advice.options)))
    sections.append(Section(heading=texts.label("advice"), rows=tuple(advised)))
    return tuple(section for section in sections if section.rows)


def name(each: Configuration, bench: Bench, texts: Texts) -> str:
    """Return what a configuration is called."""
    if each.key == CPU:
        return texts.label("bench-cpu", threads=bench.cpu_threads or "?")
    return each.key


def _times(row: Timing, texts: Texts) -> str:
    if row.median_ms is None:
        return milliseconds(row.first_ms)
    said = texts.label(
        "bench-row",
        first=milliseconds(row.first_ms),
        median=milliseconds(row.median_ms),
        low=milliseconds(row.low_ms),
        high=milliseconds(row.high_ms),
        runs=row.runs,
    )
    if row.changed_ms is None:
        return said
    after = texts.label("bench-changed", changed=milliseconds(row.changed_ms))
    return f"{said}; {after}"


def milliseconds(value: float | None) -> str:
    """Return a time as people say it: `0.338 ms`, `12.1 ms`, `1250 ms`."""
    if value is None:
        return "?"
    digits = max(0, 2 - len(str(int(value))) + 1) if value >= 1 else 3
    return f"{value:.{digits}f} ms"
