"""A user's model and its times, in words.

Core.
"""

from __future__ import annotations

from ...messages.catalog import Texts
from ...messages.sections import Row, Section, milliseconds, size
from ...messages.shells import PROGRAM, TypedCommand
from ...report.page_parts import clean as one_line
from ...report.verification import note_rows, remedy, verdict_style
from .advice import Advice
from .bench import Bench, Configuration, Timing, option_text
from .measurement import CPU, say_shapes
from .model_report import FREE, Fallback, ModelReport

SHOWN_FALLBACKS = 12
_OWN_VERDICTS = frozenset({"works", "cpu-fallback", "wrong-result", "crashed"})
"""Those that a model can have by itself, each with a text of its own."""


def model_sections(
    report: ModelReport, texts: Texts, command: TypedCommand = PROGRAM
) -> tuple[Section, ...]:
    """Say what a model's run proves, the verdict first; not that of the small models.

    `command`: this program, with the flags that were given.
    """
    rows = [Row(text=report.file)]
    if not report.of_environment:
        code, values = _verdict_code(report), report.values
        rows.append(Row(text=texts.verdict(code, values), style=verdict_style(report.verdict)))
        if hint := remedy(code, values, texts, command):
            rows.append(Row(text=hint, style="dim"))
    if report.gpu is None and report.providers:
        rows.append(Row(text=texts.verdict("model-cpu-alone")))
    rows += note_rows(report.notes, texts, command)
    rows += [Row(text=line, style="dim") for line in report.evidence]
    sections = (
        Section(heading=texts.label("model"), rows=tuple(rows)),
        Section(heading=texts.label("model-placement"), rows=tuple(_placement(report, texts))),
        Section(heading=texts.label("model-fallbacks"), rows=tuple(_fallbacks(report, texts))),
        Section(heading=texts.label("model-outputs"), rows=tuple(_outputs(report, texts))),
    )
    return tuple(section for section in sections if section.rows)


def _verdict_code(report: ModelReport) -> str:
    own = report.verdict in _OWN_VERDICTS and not report.of_environment
    if report.verdict == "works" and any(output.right is None for output in report.checked):
        return "model-works-unchecked"
    return f"model-{report.verdict}" if own else report.verdict


def _placement(report: ModelReport, texts: Texts) -> list[Row]:
    rows = [
        Row(head=share.provider, text=texts.label("model-nodes", nodes=share.nodes, ms=share.ms))
        for share in report.providers
    ]
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
    ordered = sorted(report.fallbacks, key=lambda fallback: fallback.why in FREE)
    rows = [
        Row(head=fallback.op, text=_fallback(fallback, texts))
        for fallback in ordered[:SHOWN_FALLBACKS]
    ]
    more = len(ordered) - len(rows)
    return [*rows, Row(text=texts.label("model-more", count=more))] if more else rows


def _fallback(fallback: Fallback, texts: Texts) -> str:
    why, node = texts.label(f"why-{fallback.why}"), one_line(fallback.name)
    return texts.label("model-fallback", why=why, node=node, ms=fallback.ms)


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
    for number in range(len(bench.shapes)):
        rows = [
            Row(head=name(each, bench, texts), text=_times(bench.at(each.key, number), texts))
            for each in bench.configurations
            if bench.at(each.key, number).first_ms is not None
        ]
        heading = shape_heading(bench, number, texts)
        sections.append(Section(heading=heading, rows=tuple(rows)))
    failed = [
        Row(head=row.key, text=texts.label("bench-failed", error=row.error[:200]))
        for row in bench.failed
    ]
    failed += [Row(text=texts.label("bench-ended", what=what)) for what in bench.ended_early]
    sections.append(Section(heading=texts.label("bench"), rows=tuple(failed)))
    advised = [Row(text=texts.advice(row)) for row in advice.rows]
    if advice.options is not None:
        advised.append(Row(text=option_text(advice.options), unwrapped=True))
    sections.append(Section(heading=texts.label("advice"), rows=tuple(advised)))
    return tuple(section for section in sections if section.rows)


def shape_heading(bench: Bench, number: int, texts: Texts) -> str:
    """Return what stands above the times of a shape."""
    return texts.label("page-shape", number=number + 1, shapes=say_shapes(bench.shapes[number]))


def name(each: Configuration, bench: Bench, texts: Texts) -> str:
    """Return what a configuration is called."""
    if each.key == CPU:
        return texts.label("bench-cpu", threads=bench.cpu_threads or "?")
    return each.key


def _times(timing: Timing, texts: Texts) -> str:
    if timing.median_ms is None:
        return milliseconds(timing.first_ms)
    said = texts.label(
        "bench-row",
        first=milliseconds(timing.first_ms),
        median=milliseconds(timing.median_ms),
        low=milliseconds(timing.low_ms),
        high=milliseconds(timing.high_ms),
        runs=timing.runs,
    )
    if timing.changed_ms is None:
        return said
    after = texts.label("bench-changed", changed=milliseconds(timing.changed_ms))
    return f"{said}{texts.label('semicolon')}{after}"
