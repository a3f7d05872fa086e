"""Pages to look at, and a reader of what they show."""

from __future__ import annotations

import json
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ortgpu_fix.facts.redact import redact
from ortgpu_fix.messages.catalog import Language, load_texts
from ortgpu_fix.messages.sections import Row
from ortgpu_fix.report.page import Page, render
from ortgpu_fix.verify.advice import Advice, advise
from ortgpu_fix.verify.bench import Bench, Configuration, searches, summarize
from ortgpu_fix.verify.measurement import parse_measurement
from ortgpu_fix.verify.model_verdict import judge_model
from ortgpu_fix.verify.verification import LoadedLibrary, Verification

RECORDINGS = Path(__file__).parents[1] / "recordings" / "measure"
HOSTILE = "</td><script>alert(1)</script><b>&amp;\"'\x1b[31m\u202egnp.exe"
"""A name that a model may have: every character of it has to be shown as a character."""


def made(
    language: Language,
    *,
    name: str = "/home/alice/m.onnx",
    gpu: bool = True,
    cut: int | None = None,
) -> Page:
    """Return a page of recorded runs; with `gpu`, as if one had taken part.

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
    advice: Advice = advise(bench, report)
    texts = load_texts(language)
    return Page(
        report=report,
        bench=bench,
        advice=advice,
        machine=[Row(head=texts.label("driver"), text="535.104.12"), Row(head="Python", text=name)],
        libraries=[
            LoadedLibrary(
                name="libcudnn.so.9", path="/home/alice/.venv/libcudnn.so.9", version="9.1"
            )
        ],
        findings=[(f"finding of {name}", "`remedy`")],
        versions=[("onnxruntime", "1.31.1")],
        made="ortgpu-fix, 2026-11-22",
        redact=partial(redact, home="/home/alice"),
    )


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
    """What a page shows: the rows of every table, lists and paragraphs, all tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[tuple[str, str | None]]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.codes: list[str] = []
        self.verdict: str | None = None
        self.text = ""
        self._caption = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if tag not in {"meta", "link", "br"}:
            self._inside.append(tag)
        if tag == "caption":
            self._caption = ""
        elif tag == "tr" and "tbody" in self._inside:
            self.tables.setdefault(self._caption, []).append([])
        elif tag == "td":
            self.tables[self._caption][-1].append(("", named.get("data-value")))
        self.codes += [named["data-advice"] or ""] if "data-advice" in named else []
        self.verdict = named.get("data-verdict", self.verdict)

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if "caption" in self._inside:
            self._caption += data
        elif "td" in self._inside:
            text, value = self.tables[self._caption][-1][-1]
            self.tables[self._caption][-1][-1] = (text + data, value)
        if not {"style", "script"} & set(self._inside):
            self.text += data


def page(language: Language, **more: Any) -> str:
    """Return the HTML of a page."""
    return render(made(language, **more), load_texts(language))
