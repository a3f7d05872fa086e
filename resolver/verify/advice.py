"""What the measured times advise.

Core. Every sentence rests on numbers of this machine, this model and these shapes, and carries
them; what was not measured is not advised. A difference counts where it is larger than a tenth,
and where the middle halves of the runs do not overlap.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..plan.reasons import Reason, reason
from ..versions import numbers
from .bench import FRONTEND_SINCE, SEARCHES, Bench, Configuration, Timing
from .measurement import CPU, Shapes, say_shapes
from .model_report import FREE, ModelReport
from .records import to_json

CLEAR = 1.1
"""How many times faster is faster."""
CLOSE = 1.05
"""Options that are this close are the same: then the one that takes new shapes better is better."""
COSTLY = 3.0
"""A new shape that takes so many times a known one is worth avoiding."""
MOST_BUCKETS = 4
STEP, FINE_STEP, FINE = 32, 8, 64
"""Buckets are multiples of 32, small ones of 8."""
MUCH = 0.1
"""A part of the time from which on it is worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to do, and the options that it is to be done with."""

    rows: tuple[Reason, ...]
    """Codes of the table `advice`, with their values; the first is the answer."""
    options: Mapping[str, str] | None = None
    """Of the CUDA provider; None where the CPU is the advice, or nothing was compared."""
    best: str | None = None
    """The key of the configuration that is advised."""

    def to_json(self) -> dict[str, object]:
        """Return what `verify --bench --json` has under `advice`."""
        return {
            "codes": to_json(self.rows),
            "best": self.best,
            "provider_options": to_json(self.options),
        }


def advise(bench: Bench, report: ModelReport) -> Advice:
    """Return what the numbers advise; the rows are in the order in which they matter."""
    found = pick(bench)
    notes = _remarks(bench, report)
    if found is None:
        timed = any(row.median_ms is not None for row in bench.timings)
        code = "cpu-only" if timed and bench.gpu is None else "nothing-compared"
        return Advice(rows=(reason(code), *notes))
    pairs = [
        (bench.at(CPU, shape), bench.at(found.key, shape)) for shape in range(len(bench.shapes))
    ]
    pairs = [pair for pair in pairs if None not in (pair[0].median_ms, pair[1].median_ms)]
    if not pairs:
        return Advice(rows=(reason("nothing-compared"), *notes))
    wins = [_faster(gpu, cpu) for cpu, gpu in pairs]
    cost = new_shape_cost(bench, found)
    rows = [_answer(bench, pairs, wins)]
    if any(wins):
        rows += _on_new_shapes(bench, found, cost) if cost is not None else []
        rows += _on_search(bench, found) + _on_refinements(bench, found)
    lost = not any(wins)
    return Advice(
        rows=(*rows, *notes),
        options=None if lost else _options(found),
        best=CPU if lost else found.key,
    )


def pick(bench: Bench) -> Configuration | None:
    """Return the search that is best for these shapes; None where none was timed beside the CPU.

    With several shapes: by what each of them takes when it is new, and when it comes again after
    another one. With one: by steady runs, and where these are close, the release's default. A
    search that failed for a shape is not chosen where another one did not.
    """
    rows = [
        row
        for row in bench.configurations
        if row.on_gpu and not row.binding and "use_tf32" not in row.options
    ]
    if bench.at(CPU, 0).median_ms is None:
        return None
    medians = {
        row.key: [each.median_ms for each in bench.timings if each.key == row.key] for row in rows
    }
    steady = {key: [ms for ms in found if ms is not None] for key, found in medians.items()}
    most = max(map(len, steady.values()), default=0)
    if not most:
        return None
    costs = {}
    for key, known in steady.items():
        timings = [bench.at(key, shape) for shape in range(len(bench.shapes))]
        varied = [
            (each.first_ms or 0.0) + (each.changed_ms or each.median_ms or 0.0)
            for each in timings[1:]
        ]
        if len(known) == most:
            costs[key] = sum(varied) if varied else sum(known)
    least = min(costs.values())
    return next(row for row in rows if costs.get(row.key, math.inf) <= least * CLOSE)


def new_shape_cost(bench: Bench, found: Configuration) -> float | None:
    """Return what the first run of a shape takes once the session is warm; None: one shape only."""
    rows = [bench.at(found.key, shape).first_ms for shape in range(1, len(bench.shapes))]
    known = [ms for ms in rows if ms is not None]
    return statistics.median(known) if known else None


def _answer(bench: Bench, pairs: Sequence[tuple[Timing, Timing]], wins: Sequence[bool]) -> Reason:
    """Return whether the GPU is worth it."""
    factors = [
        cpu.median_ms / gpu.median_ms for cpu, gpu in pairs if cpu.median_ms and gpu.median_ms
    ]
    least, most = f"{min(factors):.1f}", f"{max(factors):.1f}"
    if all(wins):
        return reason("gpu-faster", least=least, most=most)
    if not any(wins):
        same = max(factors) >= 1 / CLEAR
        slower = f"{1 / min(factors):.1f}"
        return reason("gpu-same") if same else reason("stay-on-cpu", factor=slower)
    sizes = [_batch(bench.shapes, cpu.shape) for cpu, _ in pairs]
    if all(size is not None for size in sizes):
        ranked = sorted(zip((size or 0 for size in sizes), wins, strict=True))
        if [won for _, won in ranked] == sorted(wins):
            batch = next(size for size, won in ranked if won)
            return reason("gpu-from-batch", batch=str(batch), most=most)
    won = [
        say_shapes(bench.shapes[cpu.shape])
        for (cpu, _), win in zip(pairs, wins, strict=True)
        if win
    ]
    return reason("gpu-for-shapes", shapes="; ".join(won), most=most)


def _on_new_shapes(bench: Bench, found: Configuration, cost: float) -> list[Reason]:
    """Return what new shapes cost, and how to have fewer of them."""
    known = _median_of(bench, found.key, since=1)
    cpu = _median_of(bench, CPU, since=1)
    rows = []
    if known and cost > COSTLY * known:
        rows.append(
            reason("new-shape-costs", new=_ms(cost), known=_ms(known), option=_search(found))
        )
    if cpu and cost > cpu * CLEAR:
        rows.append(reason("new-shapes-slower", new=_ms(cost), cpu=_ms(cpu)))
        turns = _changed(bench, found)
        if turns and turns > cpu * CLEAR:
            rows.append(reason("turns-slower", turns=_ms(turns), cpu=_ms(cpu)))
        elif known and cpu > known:
            runs = math.ceil((cost - known) / (cpu - known))
            rows.append(reason("shape-pays-after", runs=str(runs)))
        if sizes := buckets(bench.shapes):
            said = "; ".join(f"{name}: {', '.join(map(str, each))}" for name, each in sizes)
            rows.append(reason("bring-to-buckets", buckets=said))
    return rows


def _changed(bench: Bench, found: Configuration) -> float | None:
    """Return what a known shape takes right after another one; None where that was not timed."""
    rows = [bench.at(found.key, shape).changed_ms for shape in range(len(bench.shapes))]
    known = [ms for ms in rows if ms is not None]
    return statistics.median(known) if known else None


def buckets(shapes: Sequence[Shapes]) -> list[tuple[str, list[int]]]:
    """Return sizes to pad to, by input and dimension (`x, dimension 3`), where there are many.

    The first dimension is a number of items, which is not padded but waited for.
    """
    found = []
    for name, first in dict(shapes[0]).items() if shapes else ():
        for at in range(1, len(first)):
            sizes = sorted({dict(each)[name][at] for each in shapes if len(dict(each)[name]) > at})
            if len(sizes) > 2:  # noqa: PLR2004 - two sizes are two buckets already
                found.append((f"{name}, dimension {at}", _rounded_up(sizes)))
    return found


def _rounded_up(sizes: Sequence[int]) -> list[int]:
    count = min(MOST_BUCKETS, max(1, len(sizes) // 2))
    tops = [sizes[math.ceil((part + 1) * len(sizes) / count) - 1] for part in range(count)]
    step = FINE_STEP if sizes[-1] <= FINE else STEP
    return sorted({math.ceil(top / step) * step for top in tops})


def _on_search(bench: Bench, found: Configuration) -> list[Reason]:
    """Return how the searches compare, where they differ."""
    timed = {
        row.options["cudnn_conv_algo_search"]: row
        for row in bench.configurations
        if not row.binding and len(row.options) == 1 and "cudnn_conv_algo_search" in row.options
    }
    medians = {name: _median_of(bench, row.key) for name, row in timed.items()}
    known = {name: ms for name, ms in medians.items() if ms is not None}
    if len(known) < 2:  # noqa: PLR2004 - nothing to compare
        return []
    rows = []
    said = ", ".join(f"{name} {_ms(known[name])}" for name in SEARCHES if name in known)
    if max(known.values()) > CLEAR * min(known.values()):
        rows.append(reason("searches-differ", times=said, best=_search(found)))
    new = {name: new_shape_cost(bench, row) for name, row in timed.items()}
    costs = {name: ms for name, ms in new.items() if ms is not None}
    if len(costs) > 1 and max(costs.values()) > CLEAR * min(costs.values()):
        said = ", ".join(f"{name} {_ms(costs[name])}" for name in SEARCHES if name in costs)
        rows.append(reason("searches-new-shapes", times=said))
    rows += _on_many_runs(_search(found), known, costs)
    default = known.get("DEFAULT")
    frontend = numbers(bench.onnxruntime or "") >= FRONTEND_SINCE
    advised = _search(found) == "DEFAULT"
    if frontend and not advised and default is not None and default > CLEAR * min(known.values()):
        rows.append(reason("default-is-fallback", ms=_ms(default)))
    return rows


def _on_many_runs(
    advised: str, known: Mapping[str, float], new: Mapping[str, float]
) -> list[Reason]:
    """Return after how many runs of a shape the search with the fastest ones is the better one.

    `known` and `new` are the milliseconds of a known shape and of the first run, by search.
    """
    both = {name: ms for name, ms in known.items() if name in new}
    if advised not in both:
        return []
    best = min(both, key=lambda name: both[name])
    lost = new[best] - new[advised]
    if lost <= 0 or both[advised] <= CLEAR * both[best]:
        return []
    runs = str(math.ceil(lost / (both[advised] - both[best])) + 1)
    ms, than = _ms(both[best]), _ms(both[advised])
    return [reason("search-pays-after", search=best, runs=runs, ms=ms, than=than)]


def _on_refinements(bench: Bench, found: Configuration) -> list[Reason]:
    """Return what TF32, bound inputs and CUDA graphs bring."""
    base = _median_of(bench, found.key) or 0.0
    rows = []
    exact = _median_of(bench, f"{found.key}-no-tf32")
    if exact is not None and exact > CLEAR * base:
        rows.append(reason("tf32-faster", on=_ms(base), off=_ms(exact)))
    bound = _median_of(bench, f"{found.key}-binding")
    if bound is not None and base > CLEAR * bound:
        rows.append(reason("binding-faster", without=_ms(base), bound=_ms(bound)))
    graph = _median_of(bench, f"{found.key}-graph")
    reference = base if bound is None else bound
    if graph is not None and reference > CLEAR * graph:
        rows.append(reason("graph-faster", without=_ms(reference), graph=_ms(graph)))
    if any(row.key == f"{found.key}-graph" for row in bench.failed):
        rows.append(reason("graph-refused"))
    return rows


def _remarks(bench: Bench, report: ModelReport) -> list[Reason]:
    """Return what is worth knowing whatever the answer is."""
    rows = []
    total = sum(row.ms for row in report.providers)
    slow = [row for row in report.fallbacks if row.why not in FREE]
    part = sum(row.ms for row in slow) / total if total else 0.0
    if part > MUCH:
        operators = ", ".join(dict.fromkeys(row.op for row in slow))
        rows.append(reason("fallback-costs", part=f"{part:.0%}", operators=operators))
    if report.float16:
        rows.append(reason("model-is-float16"))
    timed = (_quartiles(row) for row in bench.timings if row.median_ms)
    spread = [(high - low) / median for low, median, high in timed]
    if spread and statistics.median(spread) > 2 * MUCH:
        rows.append(reason("noisy", part=f"{statistics.median(spread):.0%}"))
    if bench.interrupted:
        rows.append(reason("interrupted"))
    return rows


def _options(found: Configuration) -> dict[str, str]:
    """Return the options that differ from what a session has without any."""
    default = ("cudnn_conv_algo_search", SEARCHES[0])
    return dict(pair for pair in found.options.items() if pair != default)


def _faster(one: Timing, other: Timing) -> bool:
    _, median, high = _quartiles(one)
    low, other_median, _ = _quartiles(other)
    return high < low and median * CLEAR < other_median


def _quartiles(row: Timing) -> tuple[float, float, float]:
    """Return what a quarter, half and three quarters of the steady runs took at most."""
    times = (row.low_ms, row.median_ms, row.high_ms)
    low, median, high = (math.nan if ms is None else ms for ms in times)
    return low, median, high


def _batch(shapes: Sequence[Shapes], number: int) -> int | None:
    """Return the number of items of a shape; None where shapes differ in more than that."""
    if len({tuple((name, sizes[1:]) for name, sizes in each) for each in shapes}) > 1:
        return None
    return next((sizes[0] for _, sizes in shapes[number] if len(sizes) > 1), None)


def _median_of(bench: Bench, key: str, *, since: int = 0) -> float | None:
    """Return the median over the shapes from number `since` on."""
    rows = [
        row.median_ms
        for row in bench.timings
        if row.key == key and row.shape >= since and row.median_ms is not None
    ]
    return statistics.median(rows) if rows else None


def _search(found: Configuration) -> str:
    return found.options.get("cudnn_conv_algo_search", found.key)


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 999.5 else f"{value / 1000:.3g} s"  # noqa: PLR2004
