"""Is the GPU worth it for a model, and with which options: what to measure, and what was.

Core. `configurations` says what `measure` is to time; `summarize` makes numbers of its times, and
`advice` judges them. What `cudnn_conv_algo_search` means depends on the release: up to 1.19
EXHAUSTIVE times every algorithm of cuDNN for each new shape, HEURISTIC asks cuDNN's heuristic, and
DEFAULT is one fixed algorithm; from 1.20 on they are the heuristic modes B, A and FALLBACK of
cuDNN's frontend (https://github.com/microsoft/onnxruntime/issues/22705,
https://github.com/microsoft/onnxruntime/pull/19470). `use_tf32` exists from 1.18 on, and is on by
default (https://github.com/microsoft/onnxruntime/pull/19357). A CUDA graph needs every node on the
GPU, no control flow and fixed addresses, and from 1.17 on each shape can have one of its own
(https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#using-cuda-graphs-preview).
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...verify.records import chosen_json, to_json
from ...versions import numbers
from .measurement import CPU, Failed, Measurement, Shapes
from .model_report import ModelReport

SEARCH = "cudnn_conv_algo_search"
SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
"""The first is what a session has where nothing is asked for."""
FRONTEND_SINCE = (1, 20)
"""From this release on the three are heuristic modes of cuDNN's frontend."""
REFINED = ("no-tf32", "binding", "graph")
"""What is tried with the best search besides: each ends the key of its configuration."""
TF32_SINCE, GRAPHS_SINCE = (1, 18), (1, 17)
TF32_CAPABILITY = (8, 0)
"""The first GPUs that have it."""
CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "FusedConv", "NhwcConv", "NhwcFusedConv"})
CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
BATCHES = (1, 4, 16)
"""Numbers of items to try where the first dimension is free and no shape is given."""
SECONDS = 40.0
"""For the measuring of one round; two rounds, and the rest, take about a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """How a session is made."""

    key: str
    on_gpu: bool
    options: Mapping[str, str] = field(default_factory=dict)
    binding: bool = False
    """Inputs and outputs stay on the GPU."""
    graph: bool = False

    @property
    def refined(self) -> bool:
        """Whether this is the best of the searches with something else, and no search itself."""
        return self.binding or "use_tf32" in self.options

    def request(self) -> dict[str, object]:
        """Return what `measure` is given."""
        return {
            "key": self.key,
            "provider": "cuda" if self.on_gpu else "cpu",
            "options": self.options,
            "binding": self.binding,
            "graph": self.graph,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One configuration with one shape; milliseconds."""

    key: str
    shape: int
    first_ms: float | None = None
    warm_ms: tuple[float, ...] = ()
    median_ms: float | None = None
    """Of the steady runs, of which half took between `low_ms` and `high_ms`."""
    low_ms: float | None = None
    high_ms: float | None = None
    least_ms: float | None = None
    """Of the steady run that took the least: what a busy machine changes last."""
    runs: int = 0
    changed_ms: float | None = None
    """Median of runs that came after another shape, all shapes known."""


DOCUMENT = (
    *("gpu", "onnxruntime", "processors", "cpu_threads", "shapes", "shapes_given"),
    *("configurations", "deviations", "skipped", "ended_early", "interrupted"),
)
"""What of a bench is in the JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What was timed."""

    gpu: str | None
    onnxruntime: str | None
    """Its release."""
    processors: int | None
    cpu_threads: int | None
    shapes: tuple[Shapes, ...]
    shapes_given: bool
    configurations: tuple[Configuration, ...]
    create_ms: Mapping[str, float] = field(default_factory=dict)
    timings: tuple[Timing, ...]
    deviations: Mapping[str, float] = field(default_factory=dict)
    """The largest of all outputs that could be compared, by configuration."""
    failed: tuple[Failed, ...] = ()
    skipped: tuple[str, ...] = ()
    ended_early: tuple[str, ...] = ()
    """What a process was doing that did not come to its own end, and how it ended."""
    interrupted: bool = False

    def at(self, key: str, shape: int) -> Timing:
        """Return a timing; an empty one where nothing was measured."""
        found = (timing for timing in self.timings if (timing.key, timing.shape) == (key, shape))
        return next(found, Timing(key=key, shape=shape))

    def typical(self, key: str, what: str = "median_ms", *, since: int = 0) -> float:
        """Return the median over the shapes from number `since` on; NaN where none was measured."""
        timings = (timing for timing in self.timings if timing.key == key and timing.shape >= since)
        known = [ms for timing in timings if (ms := getattr(timing, what)) is not None]
        return statistics.median(known) if known else math.nan

    def to_json(self) -> dict[str, object]:
        """Return what `verify --bench --json` has under `bench`, but for the advice."""
        configurations = [
            {
                **each.request(),
                "create_ms": self.create_ms.get(each.key),
                "timings": [
                    {name: value for name, value in to_json(row).items() if name != "key"}
                    for row in self.timings
                    if row.key == each.key
                ],
                "failed": to_json([row for row in self.failed if row.key == each.key]),
            }
            for each in self.configurations
        ]
        shapes = to_json([dict(each) for each in self.shapes])
        made = {"configurations": configurations, "shapes": shapes}
        return chosen_json(self, *DOCUMENT) | made


def has_tf32(release: str | None) -> bool:
    """Return whether a release knows `use_tf32`."""
    return numbers(release or "") >= TF32_SINCE


def searches(report: ModelReport, *, on_gpu: bool) -> tuple[Configuration, ...]:
    """Return what to time first: the CPU, and the GPU with each search for convolutions."""
    options: dict[str, dict[str, str]] = {"cuda": {}}
    if CONVOLUTIONS & report.operators.keys():
        options = {f"cuda-{one.lower()}": {SEARCH: one} for one in SEARCHES}
    rows = [Configuration(key=key, on_gpu=True, options=chosen) for key, chosen in options.items()]
    return Configuration(key=CPU, on_gpu=False), *(rows if on_gpu else ())


def refinements(best: Configuration, report: ModelReport) -> tuple[Configuration, ...]:
    """Return what to time next: the best so far again, and with what else the release offers."""
    capability = re.search(r"\((\d+\.\d+)\)$", report.gpu or "")
    tf32 = capability is not None and numbers(capability.group(1)) >= TF32_CAPABILITY
    exact, bound, graph = (f"{best.key}-{name}" for name in REFINED)
    rows = [best]
    if tf32 and has_tf32(report.onnxruntime) and not report.float16:
        rows.append(replace(best, key=exact, options={**best.options, "use_tf32": "0"}))
    rows.append(replace(best, key=bound, binding=True))
    if allows_graph(report) and numbers(report.onnxruntime or "") >= GRAPHS_SINCE:
        rows.append(replace(best, key=graph, binding=True, graph=True))
    return tuple(rows)


def allows_graph(report: ModelReport) -> bool:
    """Return whether a CUDA graph can hold the model: all on GPU, no control flow, no copies."""
    copies = report.copies
    still = copies is not None and copies.to_device == 0 and copies.to_host == 0
    return still and not report.fallbacks and not CONTROL_FLOW & report.operators.keys()


def summarize(
    measured: Sequence[Measurement],
    configurations: Iterable[Configuration],
    *,
    interrupted: bool = False,
    ends: Sequence[str] = (),
) -> Bench:
    """Return numbers of what each round measured; of a configuration in two rounds, the last."""
    last = measured[-1] if measured else Measurement()
    first = measured[0] if measured else last
    rows: dict[tuple[str, int], Timing] = {}
    created: dict[str, float] = {}
    deviations: dict[str, float] = {}
    for each in measured:
        created.update({key: made.create_ms for key, made in each.made.items()})
        for key, shape in dict.fromkeys((key, shape) for key, shape, _ in each.times):
            row = timing(each, key, shape)
            if (key, shape) not in rows or row.median_ms is not None:
                rows[key, shape] = row
        for (key, _), outputs in each.compared.items():
            found = [row.deviation for row in outputs if row.deviation is not None]
            if found:
                deviations[key] = max([*found, deviations.get(key, 0.0)])
    unique = {row.key: row for row in configurations}
    return Bench(
        onnxruntime=first.release,
        gpu=next((each.gpu for each in measured if each.gpu), None),
        processors=first.processors,
        cpu_threads=first.threads,
        shapes=first.shapes or last.shapes,
        shapes_given=first.given,
        configurations=tuple(unique.values()),
        create_ms=created,
        timings=tuple(rows.values()),
        deviations=deviations,
        failed=tuple(row for each in measured for row in each.failed),
        skipped=tuple(row for each in measured for row in each.skipped),
        ended_early=tuple(ends),
        interrupted=interrupted,
    )


def timing(measured: Measurement, key: str, shape: int) -> Timing:
    """Return the numbers of one configuration with one shape."""
    first = measured.all_times(key, shape, "first")
    steady = measured.all_times(key, shape, "steady")
    changed = measured.all_times(key, shape, "changed")
    low = median = high = None
    if len(steady) > 1:
        low, median, high = statistics.quantiles(steady, n=4, method="inclusive")
    elif steady:
        low = median = high = steady[0]
    return Timing(
        key=key,
        shape=shape,
        first_ms=first[0] if first else None,
        warm_ms=tuple(measured.all_times(key, shape, "warm")),
        median_ms=_rounded(median),
        low_ms=_rounded(low),
        high_ms=_rounded(high),
        least_ms=_rounded(min(steady, default=None)),
        runs=len(steady),
        changed_ms=_rounded(statistics.median(changed)) if changed else None,
    )


def _rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 4)


def option_text(options: Mapping[str, str]) -> str:
    """Return the providers as a Python expression to paste."""
    said = ", ".join(f'"{name}": "{value}"' for name, value in options.items())
    cuda = f'("CUDAExecutionProvider", {{{said}}})' if said else '"CUDAExecutionProvider"'
    return f'providers=[{cuda}, "CPUExecutionProvider"]'
