"""Pages to look at, and a reader of what they show."""

from __future__ import annotations

import json
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from ortgpu_fix.facts.redact import redact
from ortgpu_fix.guests.bench.advice import Advice, advise
from ortgpu_fix.guests.bench.bench import Bench, Configuration, searches, summarize
from ortgpu_fix.guests.bench.measurement import parse_measurement
from ortgpu_fix.guests.bench.model_report import ModelReport
from ortgpu_fix.guests.bench.model_verdict import judge_model
from ortgpu_fix.guests.bench.page import render, times_by_row
from ortgpu_fix.guests.bench.report import bench_sections, model_sections
from ortgpu_fix.messages.catalog import Language, load_texts
from ortgpu_fix.messages.sections import Row, Section
from ortgpu_fix.verify.verification import Verification

RECORDINGS = Path(__file__).parents[1] / "recordings" / "measure"
HOSTILE = "</td><script>alert(1)</script><b>&amp;\"'\x1b[31m\u202egnp.exe"
"""A name that a model may have: every character of it has to be shown as a character."""


class Made(NamedTuple):
    """A model that was measured."""

    report: ModelReport
    bench: Bench
    advice: Advice


def made(
    *,
    name: str = "/home/alice/m.onnx",
    gpu: bool = True,
    cut: int | None = None,
) -> Made:
    """Return what recorded runs say; with `gpu`, as if one had taken part.

    `cut`: an interrupt came after so many lines of the times.
    """
    rows = [json.loads(line) for line in read("silero-vad-place-1.31.1").splitlines()]
    times = [json.loads(line) for line in read("rapidocr-cls-time-1.31.1").splitlines()]
    if gpu:
        rows, times = with_gpu(rows), with_gpu(times)
    times = times[:cut]
    lines, timed = (parse_measurement("\n".join(map(json.dumps, each))) for each in (rows, times))
    environment = Verification(verdict="works" if gpu else "no-gpu")
    report = judge_model(lines, file=name, environment=environment)
    configurations: tuple[Configuration, ...] = searches(report, on_gpu=gpu)
    bench: Bench = summarize([timed], configurations, interrupted=cut is not None)
    return Made(report, bench, advise(bench, report))


def read(name: str) -> str:
    return (RECORDINGS / f"{name}.jsonl").read_text("utf-8")


def with_gpu(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a recording in which a GPU took part, which is made up."""
    more: list[dict[str, Any]] = [{"event": "gpu", "name": "NVIDIA A10 (8.6)", "index": 0}]
    factors = {"cuda": 5, "cuda-exhaustive": 5, "cuda-heuristic": 4.9, "cuda-default": 1.5}
    for row in rows:
        for key, factor in factors.items():
            if row.get("key") != "cpu" or row["event"] == "doing":
                continue
            new = {**row, "key": key}
            if row["event"] == "times":
                new["ms"] = [round(ms / factor, 4) for ms in row["ms"]]
            elif row["event"] == "session":
                new["providers"] = ["CUDAExecutionProvider", "CPUExecutionProvider"]
            elif row["event"] == "profile":
                new["events"] = [
                    {**each, "provider": "CUDAExecutionProvider"} if at % 2 else each
                    for at, each in enumerate(row["events"])
                ]
            more.append(new)
    return [rows[0], *more[:1], *rows[1:-1], *more[1:], rows[-1]]


class Shown(HTMLParser):
    """What a page shows: all tags and attributes, and the text outside of its style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "br"}:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data if "style" not in self._inside else ""


def page(language: Language, *, name: str = "/home/alice/m.onnx", **more: Any) -> str:
    """Return the HTML of a page."""
    report, bench, advice = made(name=name, **more)
    texts = load_texts(language)
    machine = [Row(head=texts.label("driver"), text="535.104.12"), Row(head="Python", text=name)]
    sections = [
        *model_sections(report, texts),
        *bench_sections(bench, advice, texts),
        Section(heading=texts.label("machine"), rows=tuple(machine)),
    ]
    return render(
        sections,
        times_by_row(report, bench, texts),
        texts,
        title=texts.label("page-title", model=report.file),
        made="ortgpu-fix, 2026-11-22",
        redact=partial(redact, home="/home/alice"),
    )
