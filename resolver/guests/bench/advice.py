"""What the measured times advise.

Core. Every sentence rests on numbers of this machine, this model and these shapes, and carries
them. What was not measured is NaN, with which every comparison is false: it is not advised. A
difference counts where it is larger than a tenth; whether the GPU is faster at all, also where the
middle halves of the runs do not overlap.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...plan.reasons import Reason, reason
from ...verify.records import to_json
from ...versions import numbers
from .bench import FRONTEND_SINCE, REFINED, SEARCH, SEARCHES, Bench, Configuration, Timing
from .measurement import CPU, Shapes, say_shapes
from .model_report import FREE, ModelReport

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
    best = pick(bench)
    notes = _remarks(bench, report)
    pairs = [
        (bench.at(CPU, shape), bench.at(best.key, shape))
        for shape in range(len(bench.shapes) if best else 0)
        if best and bench.at(CPU, shape).median_ms and bench.at(best.key, shape).median_ms
    ]
    if best is None or not pairs:
        alone = best is None and bench.gpu is None and not math.isnan(bench.typical(CPU))
        return Advice(rows=(reason("cpu-only" if alone else "nothing-compared"), *notes))
    wins = [_faster(gpu, cpu) for cpu, gpu in pairs]
    answer = _answer(bench, pairs, wins)
    if not any(wins):
        return Advice(rows=(answer, *notes), best=CPU)
    rows = [reason for rule in RULES for reason in rule(bench, best)]
    # What a session has without any option need not be named.
    options = {key: value for key, value in best.options.items() if (key, value) != _PLAIN}
    return Advice(rows=(answer, *rows, *notes), options=options, best=best.key)


_PLAIN = (SEARCH, SEARCHES[0])


def pick(bench: Bench) -> Configuration | None:
    """Return the search that is best for these shapes; None where none was timed beside the CPU.

    With several shapes: by what each of them takes when it is new, and when it comes again after
    another one. With one: by steady runs, and where these are close, the release's default. A
    search that failed for a shape is not chosen where another one did not.
    """
    candidates = [
        candidate
        for candidate in bench.configurations
        if candidate.on_gpu and not candidate.refined
    ]
    steady = {
        candidate.key: [each.median_ms for each in bench.timings if each.key == candidate.key]
        for candidate in candidates
    }
    known = {key: [ms for ms in found if ms is not None] for key, found in steady.items()}
    most = max(map(len, known.values()), default=0)
    if not most or bench.at(CPU, 0).median_ms is None:
        return None
    costs = {}
    for key in (key for key, found in known.items() if len(found) == most):
        timings = [bench.at(key, shape) for shape in range(1, len(bench.shapes))]
        varied = [
            (each.first_ms or 0.0) + (each.changed_ms or each.median_ms or 0.0) for each in timings
        ]
        costs[key] = sum(varied or known[key])
    least = min(costs.values())
    return next(
        candidate for candidate in candidates if costs.get(candidate.key, math.inf) <= least * CLOSE
    )


def _answer(bench: Bench, pairs: Sequence[tuple[Timing, Timing]], wins: Sequence[bool]) -> Reason:
    """Return whether the GPU is worth it."""
    factors = [(cpu.median_ms or 0.0) / (gpu.median_ms or math.inf) for cpu, gpu in pairs]
    least, most = f"{min(factors):.1f}", f"{max(factors):.1f}"
    if all(wins):
        return reason("gpu-faster", least=least, most=most)
    if not any(wins):
        same = max(factors) >= 1 / CLEAR
        slower = f"{1 / min(factors):.1f}"
        return reason("gpu-same") if same else reason("stay-on-cpu", factor=slower)
    sizes = [_batch(bench.shapes, cpu.shape) for cpu, _ in pairs]
    ranked = sorted((size or 0, won) for size, won in zip(sizes, wins, strict=True))
    if None not in sizes and [won for _, won in ranked] == sorted(wins):
        batch = next(size for size, won in ranked if won)
        return reason("gpu-from-batch", batch=str(batch), most=most)
    won = [
        say_shapes(bench.shapes[cpu.shape])
        for (cpu, _), win in zip(pairs, wins, strict=True)
        if win
    ]
    return reason("gpu-for-shapes", shapes="; ".join(won), most=most)


def _batch(shapes: Sequence[Shapes], number: int) -> int | None:
    """Return the number of items of a shape; None where shapes differ in more than that."""
    if len({tuple((name, sizes[1:]) for name, sizes in each) for each in shapes}) > 1:
        return None
    return next((sizes[0] for _, sizes in shapes[number] if len(sizes) > 1), None)


def _faster(one: Timing, other: Timing) -> bool:
    """Return whether `one` is clearly faster; both were timed."""
    apart = (one.high_ms or 0.0) < (other.low_ms or 0.0)
    return apart and (one.median_ms or 0.0) * CLEAR < (other.median_ms or 0.0)


def _new_shapes(bench: Bench, best: Configuration) -> Iterator[Reason]:
    """Say what new shapes cost, and how to have fewer of them."""
    new = bench.typical(best.key, "first_ms", since=1)
    known, cpu = bench.typical(best.key, since=1), bench.typical(CPU, since=1)
    turns = bench.typical(best.key, "changed_ms")
    if new > COSTLY * known:
        option = best.options.get(SEARCH, best.key)
        yield reason("new-shape-costs", new=_ms(new), known=_ms(known), option=option)
    if new > CLEAR * cpu:
        yield reason("new-shapes-slower", new=_ms(new), cpu=_ms(cpu))
        if turns > CLEAR * cpu:
            yield reason("turns-slower", turns=_ms(turns), cpu=_ms(cpu))
        elif cpu > known:
            runs = math.ceil((new - known) / (cpu - known))
            yield reason("shape-pays-after", runs=str(runs))
        if sizes := buckets(bench.shapes):
            said = "; ".join(f"{name}: {', '.join(map(str, each))}" for name, each in sizes)
            yield reason("bring-to-buckets", buckets=said)


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
    count = min(MOST_BUCKETS, len(sizes) // 2)
    tops = [sizes[math.ceil((part + 1) * len(sizes) / count) - 1] for part in range(count)]
    step = FINE_STEP if sizes[-1] <= FINE else STEP
    return sorted({math.ceil(top / step) * step for top in tops})


def _searches(bench: Bench, best: Configuration) -> Iterator[Reason]:
    """Say how the searches compare, where they differ."""
    searched = [
        configuration
        for configuration in bench.configurations
        if SEARCH in configuration.options and not configuration.refined
    ]
    keys = {configuration.options[SEARCH]: configuration.key for configuration in searched}
    known = _measured({name: bench.typical(key) for name, key in keys.items()})
    new = _measured({name: bench.typical(key, "first_ms", since=1) for name, key in keys.items()})
    advised = best.options.get(SEARCH, best.key)
    if len(known) < 2:  # noqa: PLR2004 - nothing to compare
        return
    quickest = min(known.values())
    if max(known.values()) > CLEAR * quickest:
        yield reason("searches-differ", times=_each(known), best=advised)
    if new and max(new.values()) > CLEAR * min(new.values()):
        yield reason("searches-new-shapes", times=_each(new))
    # The one with the fastest runs of a known shape may cost more at first than that advised.
    fast = min(new, key=lambda name: known.get(name, math.inf), default=advised)
    gain, lost = known.get(advised, math.nan), new.get(fast, math.nan) - new.get(advised, math.nan)
    if lost > 0 and gain > CLEAR * known.get(fast, math.nan):
        runs = str(math.ceil(lost / (gain - known[fast])) + 1)
        ms, than = _ms(known[fast]), _ms(gain)
        yield reason("search-pays-after", search=fast, runs=runs, ms=ms, than=than)
    default = known.get("DEFAULT", math.nan)
    frontend = numbers(bench.onnxruntime or "") >= FRONTEND_SINCE
    if frontend and advised != "DEFAULT" and default > CLEAR * quickest:
        yield reason("default-is-fallback", ms=_ms(default))


def _measured(times: Mapping[str, float]) -> dict[str, float]:
    return {name: ms for name, ms in times.items() if not math.isnan(ms)}


def _each(times: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_ms(times[name])}" for name in SEARCHES if name in times)


def _refinements(bench: Bench, best: Configuration) -> Iterator[Reason]:
    """Say what TF32, bound inputs and CUDA graphs bring."""
    base = bench.typical(best.key)
    exact, bound, graph = (bench.typical(f"{best.key}-{each}") for each in REFINED)
    if exact > CLEAR * base:
        yield reason("tf32-faster", on=_ms(base), off=_ms(exact))
    if base > CLEAR * bound:
        yield reason("binding-faster", without=_ms(base), bound=_ms(bound))
    without = base if math.isnan(bound) else bound
    if without > CLEAR * graph:
        yield reason("graph-faster", without=_ms(without), graph=_ms(graph))
    if any(failed.key == f"{best.key}-graph" for failed in bench.failed):
        yield reason("graph-refused")


AdviceRule = Callable[[Bench, Configuration], Iterator[Reason]]
RULES: tuple[AdviceRule, ...] = (_new_shapes, _searches, _refinements)
"""What is said of the best configuration where the GPU wins, in this order."""


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
    spread = [
        ((row.high_ms or 0.0) - (row.low_ms or 0.0)) / row.median_ms
        for row in bench.timings
        if row.median_ms
    ]
    if spread and statistics.median(spread) > 2 * MUCH:
        rows.append(reason("noisy", part=f"{statistics.median(spread):.0%}"))
    if bench.interrupted:
        rows.append(reason("interrupted"))
    return rows


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 999.5 else f"{value / 1000:.3g} s"  # noqa: PLR2004
