"""Run a user's model in the target environment, and time it.

Shell. Starts `measure` with the target's interpreter, hears what it measures as it comes, and hands
it to `model_verdict`, `bench` and `advice`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...utils.json_reader import read_rows
from ...utils.process import Finished, Runner
from ...utils.progress import Progress
from ...verify.child import run_script
from ...verify.verdict import describe_end
from ...verify.verification import Verification
from .advice import Advice, advise, pick
from .bench import (
    BATCHES,
    SECONDS,
    Bench,
    Configuration,
    has_tf32,
    refinements,
    searches,
    summarize,
)
from .measurement import CPU, Measurement, parse_measurement
from .model_report import ModelReport
from .model_verdict import CUDA, WITHOUT_TF32, judge_model
from .refusal import refusal

MEASURE = Path(__file__).with_name("children") / "measure.py"
TIME_LIMIT = 600.0
"""Seconds for one process. A model that needs more for a handful of runs is not measured here."""

INTERRUPTED = "interrupt"


class MeasuringPlace(NamedTuple):
    """What every process is given."""

    target: Path
    model: Path
    shown: str
    """The model's path as it may be shown."""
    shapes: Sequence[Mapping[str, Sequence[int]]]
    ignored: Sequence[str]
    environ: Mapping[str, str]
    runner: Runner
    progress: Progress


class Measured(NamedTuple):
    """What came of it."""

    report: ModelReport
    bench: Bench | None = None
    advice: Advice | None = None
    interrupted: bool = False


def run_model(place: MeasuringPlace, environment: Verification, *, bench: bool) -> Measured:
    """Run the model on the CPU and, where the small models worked there, on the GPU; time it too.

    Raises Error of the model (`model-unreadable`, `model-too-new`, …) or its shapes
    (`shape-unfit`, …), and `verify-not-started`. An interrupt while it times ends it with what
    there is so far.
    """
    on_gpu = environment.verdict == "works"
    configurations = [Configuration(key=CPU, on_gpu=False)]
    if on_gpu:
        configurations.append(Configuration(key=CUDA, on_gpu=True))
    measured, end = _measure(place, configurations)
    if error := refusal(measured, place.shown):
        raise error
    judge = partial(judge_model, measured, file=place.shown, environment=environment, end=end)
    report = judge()
    if report.verdict == "wrong-result" and has_tf32(report.onnxruntime):
        exact = Configuration(key=WITHOUT_TF32, on_gpu=True, options={"use_tf32": "0"})
        report = judge(without_tf32=_measure(place, [exact])[0])
    if not bench or (report.verdict == "crashed" and not report.of_environment):
        return Measured(report)
    return _time(place, report, on_gpu=on_gpu)


def _time(place: MeasuringPlace, report: ModelReport, *, on_gpu: bool) -> Measured:
    """Time the searches, and then what else the release offers to the best of them."""
    timed = configurations = searches(report, on_gpu=on_gpu)
    found: list[Measurement] = []
    ends: list[str] = []
    interrupted = False
    for later in (SECONDS, 0.0):
        measured, end = _measure(place, configurations, SECONDS, later if on_gpu else 0.0)
        found.append(measured)
        interrupted = end == INTERRUPTED
        if not (measured.ended or interrupted):
            ends.append(f"{measured.step}: {end}")
        best = pick(summarize(found, timed)) if later and on_gpu and not interrupted else None
        configurations = refinements(best, report) if best else ()
        if len(configurations) <= 1:
            break
        timed += tuple(row for row in configurations if row not in timed)
    bench = summarize(found, timed, interrupted=interrupted, ends=ends)
    return Measured(report, bench, advise(bench, report), interrupted)


def _measure(
    place: MeasuringPlace,
    configurations: Sequence[Configuration],
    seconds: float = 0.0,
    later: float = 0.0,
) -> tuple[Measurement, str | None]:
    """Run one process; return what it measured, and how it ended where that was not by itself.

    With `seconds` it measures for so long, `later` says for how long others may after it, and an
    interrupt ends it with what there is. Else it only sees where the nodes run.
    """
    heard: list[str] = []
    show = _progress_shower(place, configurations, seconds and seconds + later)

    def hear(line: str) -> None:
        heard.append(line)
        show(line)

    request = {
        "model": str(place.model),
        "shapes": [dict(each) for each in place.shapes],
        "batches": list(BATCHES) if seconds else [],
        "configurations": [configuration.request() for configuration in configurations],
        "ignored": list(place.ignored),
        "seconds": seconds,
    }
    try:
        finished = run_script(
            MEASURE,
            place.target,
            [json.dumps(request)],
            runner=place.runner,
            environ=place.environ,
            timeout=TIME_LIMIT,
            hear=hear,
        )
    except KeyboardInterrupt:
        if not seconds:
            raise
        return parse_measurement("".join(heard)), INTERRUPTED
    return parse_measurement(finished.stdout, finished.stderr), _end(finished)


def _progress_shower(
    place: MeasuringPlace, configurations: Sequence[Configuration], seconds: float
) -> Callable[[str], None]:
    """Return what says how far it is, and how long it will take, whenever that changes."""
    begin = time.monotonic()
    shapes = 1
    said: set[tuple[str, int]] = set()

    def show(line: str) -> None:
        nonlocal shapes
        for event in read_rows(line):
            shapes = len(event.rows("shapes")) or shapes
            key, shape = event.text("key"), event.integer("shape")
            if event.text("event") != "doing" or key is None or shape is None:
                continue
            if (key, shape) in said:
                continue
            said.add((key, shape))
            left = max(0, round(begin + seconds - time.monotonic()))
            counted = {"shape": shape + 1, "shapes": shapes, "seconds": left} if seconds else {}
            place.progress("model-time" if seconds else "model-run", configuration=key, **counted)

    place.progress("model-start", count=len(configurations))
    return show


def _end(finished: Finished) -> str | None:
    """Return how a process ended, where that was not by itself."""
    if finished.timed_out:
        return "timeout"
    return describe_end(finished.returncode) if finished.returncode else None
