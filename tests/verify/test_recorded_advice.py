"""What many runs prove and advise, as a reader accepted it last: what changes in it is seen.

The runs are made up, by chance but the same each time, so that every limit is met from both sides:
the other tests say why a limit is where it is. Where a change is wanted, `ORTGPU_FIX_RECORD=1`
writes `advice.txt` and `models.txt` of `tests/recordings/verify` anew, and what git shows is to be
read.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from odd import check_recorded

from ortgpu_fix.verify.advice import advise
from ortgpu_fix.verify.bench import Timing, refinements, searches, summarize
from ortgpu_fix.verify.measurement import (
    CPU,
    Failed,
    Made,
    Measurement,
    NodeEvent,
    OutputRow,
    Tensor,
)
from ortgpu_fix.verify.model_report import Copies, Fallback, ModelReport, Why
from ortgpu_fix.verify.model_run import judge_model

CUDA_PROVIDER, CPU_PROVIDER = "CUDAExecutionProvider", "CPUExecutionProvider"
NO_KERNEL = "CUDA kernel not found in registries for Op type: "
FORCED = "Force fallback to CPU execution for node: "
RELEASES = ("1.16.3", "1.17.0", "1.18.1", "1.19.2", "1.20.0", "1.26.0", None)
GPUS = ("NVIDIA A10 (8.6)", "NVIDIA A100 (8.0)", "Tesla T4 (7.5)", "A GPU", None)
OPERATORS = (
    *("Conv", "ConvTranspose", "FusedConv", "NhwcConv", "NhwcFusedConv"),
    *("MatMul", "If", "Loop", "Scan"),
)
RATIOS = (0.3, 0.9, 0.94, 0.96, 1.0, 1.04, 1.06, 1.09, 1.11, 1.15, 1.3, 3.1, 40.0)
"""Times of one configuration in those of another, on both sides of every limit."""


def some_shapes(chance: random.Random) -> tuple[Any, ...]:
    sizes: tuple[tuple[int, ...], ...] = chance.choice(
        (
            ((1, 8),),
            ((1, 64), (4, 64), (16, 64)),
            tuple((1, 3, 48, 90 + 26 * step) for step in range(16)),
            tuple((1, 8 + 8 * step) for step in range(6)),
            ((4,), (2,), ()),
        )
    )
    return tuple((("x", each), *([("sr", ())] if len(sizes) == 3 else [])) for each in sizes)


def some_report(chance: random.Random) -> ModelReport:
    whys: tuple[Why, ...] = ("no-kernel", "shape-work", "optimizer", "unknown")
    fallbacks = [
        Fallback(name=f"n{at}", op="Loop", why=chance.choice(whys), ms=chance.choice((0.1, 5.0)))
        for at in range(chance.choice((0, 0, 1, 3)))
    ]
    copies = Copies(
        to_device=chance.choice((0, 0, 2)),
        to_host=chance.choice((0, 0, 3)),
        to_device_bytes=chance.choice((0, 5_000_000)),
        to_host_bytes=chance.choice((0, 900)),
        input_bytes=chance.choice((100, 4_000_000)),
        output_bytes=chance.choice((100, 4_000_000)),
    )
    chosen = chance.sample(OPERATORS, chance.choice((1, 1, 2)))
    return ModelReport(
        file="m.onnx",
        verdict=chance.choice(("works", "cpu-fallback")),
        release=chance.choice(RELEASES),
        gpu=chance.choice(GPUS),
        copies=chance.choice((copies, Copies(), None)),
        fallbacks=tuple(fallbacks),
        half=chance.random() < 0.2,
        operators=tuple((name, at + 1) for at, name in enumerate(chosen)),
    )


def some_timings(chance: random.Random, key: str, base: float, count: int) -> Iterator[Timing]:
    factor = chance.choice(RATIOS)
    spread = chance.choice((0.01, 0.05, 0.2, 0.4))
    new = chance.choice((1.0, 2.0, 2.9, 3.1, 50.0))
    for shape in range(count):
        if chance.random() < 0.05:
            continue
        median = round(base * factor * chance.choice((1.0, 1.0, 0.9, 1.2)), 3)
        yield Timing(
            key=key,
            shape=shape,
            first_ms=chance.choice((round(median * new, 3), None, round(median * new, 3))),
            warm_ms=(median,),
            median_ms=median,
            low_ms=round(median * (1 - spread), 3),
            high_ms=round(median * (1 + spread), 3),
            least_ms=round(median * (1 - 2 * spread), 3),
            runs=chance.choice((1, 2, 40)),
            changed_ms=chance.choice((None, median, round(median * 1.5, 3), round(median * 4, 3))),
        )


def advised() -> Iterator[str]:
    chance = random.Random(1)  # noqa: S311
    for number in range(260):
        report, shapes = some_report(chance), some_shapes(chance)
        rows = list(searches(report, on_gpu=chance.random() < 0.9))
        if len(rows) > 1:
            rows += refinements(chance.choice(rows[1:]), report)[1:]
        base = chance.choice((0.2, 8.0, 300.0))
        timings = [
            timing
            for row in rows
            if chance.random() < 0.95
            for timing in some_timings(chance, row.key, base, len(shapes))
        ]
        failed = [
            Failed(key=row.key, shape=chance.choice((None, 0)), error="cannot")
            for row in rows
            if chance.random() < 0.1
        ]
        bench = dataclasses.replace(
            summarize([], rows, interrupted=chance.random() < 0.1),
            release=report.release,
            gpu=report.gpu,
            processors=chance.choice((None, 4, 12)),
            threads=chance.choice((None, 2, 12)),
            shapes=shapes,
            given=chance.random() < 0.7,
            create_ms=tuple((row.key, 20.5) for row in rows[:2]),
            timings=tuple(timings),
            failed=tuple(failed),
            deviations=((CPU, 0.0),),
            ends=("measure cuda: SIGSEGV",) if chance.random() < 0.05 else (),
        )
        keys = [[row.key, dict(row.options), row.binding, row.graph] for row in rows]
        yield f"{number} {keys}: {json.dumps(advise(bench, report).to_json())}"


def some_events(chance: random.Random, provider: str) -> tuple[NodeEvent, ...]:
    operators = ("Conv", "Shape", "Size", "ConstantOfShape", "Gather", "NonMaxSuppression", "Cast")
    types = ((), ("float",), ("int64",), ("uint8",), ("bool", "float"), ("float16",), ("int32",))
    rows = [
        NodeEvent(
            name=f"n{chance.randrange(8)}",
            op=chance.choice(operators),
            provider=chance.choice((provider, provider, CPU_PROVIDER)),
            microseconds=chance.choice((0, 1, 40, 2500)),
            output_bytes=chance.choice((0, 8, 5000)),
            types=chance.choice(types),
            elements=chance.choice((0, 1, 63, 64, 65, 10_000)),
        )
        for _ in range(chance.choice((0, 3, 9)))
    ]
    for op in ("MemcpyFromHost", "MemcpyToHost")[: chance.randrange(3)]:
        copy = NodeEvent(
            name=op, op=op, provider=provider, microseconds=3, output_bytes=64, types=(), elements=1
        )
        rows.append(copy)
    return tuple(rows)


def some_outputs(chance: random.Random) -> tuple[OutputRow, ...]:
    deviations = (0.0, 1e-4, 1e-3, 1.1e-3, 0.019, 0.021, 0.7, None)
    return tuple(
        OutputRow(
            name=name,
            type=chance.choice(("float32", "float16", "int64")),
            shape=(1, 8),
            deviation=chance.choice(deviations),
            problem=chance.choice((None, None, "nan")),
        )
        for name in ("boxes", "scores")[: chance.randrange(3)]
    )


def judged() -> Iterator[str]:
    chance = random.Random(2)  # noqa: S311
    errors = (
        "CUDA failure 2: out of memory",
        "CUDA failure 700: an illegal memory access",
        "Failed to allocate memory for requested buffer",
        "x" * 450,
    )
    logs = (
        "",
        f"{NO_KERNEL}Gather node name: n1\n",
        f"{NO_KERNEL}Cast node name: n2 \n{FORCED}n3 because the CPU execution path is faster\n",
        "terminate called after throwing an instance of 'std::bad_alloc'",
    )
    kinds = ("float", "float16", "int64", "double", "bool", "uint8", "string")
    for number in range(260):
        measured = Measurement(
            ended=chance.random() < 0.85,
            step=chance.choice(("start", "make cuda", "y" * 250)),
            release="1.26.0",
            gpu="NVIDIA A10 (8.6)",
            inputs=tuple(
                Tensor(name=name, type=f"tensor({chance.choice(kinds)})", shape=shape)
                for name, shape in (("x", (1, "w")), ("y", (2, -1)), ("z", (1, 8)))[
                    : chance.randrange(4)
                ]
            ),
            shapes=((("x", (1, 8)), ("y", (2, 3)), ("z", (1, 8))), (("x", (1, 9)),))[
                : chance.randrange(3)
            ],
            given=chance.random() < 0.5,
            made={
                key: Made(create_ms=20.5, providers=providers)
                for key, providers in (
                    (CPU, (CPU_PROVIDER,)),
                    ("cuda", chance.choice(((CUDA_PROVIDER, CPU_PROVIDER), (CPU_PROVIDER,)))),
                )
                if chance.random() < 0.9
            },
            times={
                (key, 0, kind): [(1.5, 1.25), (1.0,)][: chance.randrange(3)]
                for key in (CPU, "cuda")
                for kind in ("first", "warm", "steady")
            },
            compared={
                ("cuda", shape): some_outputs(chance) for shape in range(chance.randrange(3))
            },
            repeated=some_outputs(chance) if chance.random() < 0.3 else (),
            memory={"cuda": 512_000_000} if chance.random() < 0.5 else {},
            events={
                key: some_events(chance, provider)
                for key, provider in ((CPU, CPU_PROVIDER), ("cuda", CUDA_PROVIDER))
                if chance.random() < 0.9
            },
            failed=tuple(
                Failed(key=key, shape=None, error=chance.choice(errors))
                for key in (CPU, "cuda")
                if chance.random() < 0.08
            ),
            log=chance.choice(logs),
        )
        exact = Measurement(compared={("cuda-without-tf32", 0): some_outputs(chance)})
        report = judge_model(
            measured,
            file="m.onnx",
            environment=chance.choice(("works", "works", "works", "no-gpu")),
            end=chance.choice((None, "timeout", "SIGKILL", "SIGSEGV")),
            without_tf32=chance.choice((None, exact)),
        )
        rows = refinements(searches(report, on_gpu=True)[1], report)
        yield f"{number} {[row.key for row in rows]}: {json.dumps(report.to_json())}"


KINDS: dict[str, Callable[[], Iterator[str]]] = {"advice": advised, "models": judged}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_is_what_was_accepted(kind: str) -> None:
    check_recorded(f"verify/{kind}.txt", KINDS[kind]())
