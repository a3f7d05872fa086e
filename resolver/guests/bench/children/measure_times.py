"""Run every configuration with every shape: what comes out, how long it takes, where nodes run.

Part of the script `measure`: run by the target's interpreter (3.8 or newer), with the standard
library. Times are of whole runs, in milliseconds.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any, Callable, List, Tuple

from ....verify.children import common
from . import measure_session

WARM_RUNS = 2
"""Runs after the first of a shape that still count as warming up."""
BLOCK_MS, BLOCK_RUNS = 60.0, 3
"""What one configuration runs at a stretch, at least; the first run of a stretch does not count:
what ran before it has the caches, and its threads may still spin."""
LONG_MS = 1000.0
"""A run that takes longer counts from the first of a stretch on, and a stretch is one run."""
STEADY = 0.05
"""Medians of stretches that are this close, as a part of their median, are steady."""
STEADY_BLOCKS, MOST_BLOCKS = 4, 12
CYCLES = 3
"""How often all shapes are run in turn, to see what a change of shape costs."""
Found = List[Tuple[Any, Any]]
report = common.report


def measure(tools: Any, reference: Any, found: Found, request: dict[str, Any]) -> None:
    """Time all configurations side by side; without `seconds` see where the nodes of each run."""
    expected = [reference.session.run(reference.outputs, feed) for _, feed in found]
    if request["seconds"]:
        together(tools, found, expected, request["configurations"], request["seconds"])
        return
    again = reference.session.run(reference.outputs, found[0][1])
    report("repeated", outputs=rows_of(tools, reference, again, expected[0]))  # the random differ
    for configuration in request["configurations"]:
        for session in together(tools, found, expected, [configuration], 0):
            tried(session.key, None, partial(report_placement, session, found[0][1]))


def together(
    tools: Any, found: Found, expected: list[Any], rows: list[dict[str, Any]], seconds: float
) -> list[Any]:
    """Run configurations with every shape, for `seconds` or only as often as it takes to be warm.

    Return the sessions that came to the end of it.
    """
    ends = time.monotonic() + seconds
    running: list[Any] = []
    for row in rows:
        tried(row["key"], None, partial(create, tools, row, running, profile=not seconds))
    for number, (_, feed) in enumerate(found):
        running = [
            session
            for session in running
            if tried(session.key, number, partial(begin, tools, session, number, feed, expected))
        ]
        left = len(found) - number + (1 if len(found) > 1 else 0)
        if seconds:
            share = max(0.0, ends - time.monotonic()) / left
            steadily(running, number, feed, time.monotonic() + share)
    if seconds and len(found) > 1:
        changing(running, found, ends)
    return running


def tried(key: str, shape: int | None, step: Callable[[], None]) -> bool:
    """Do `step`, and report where it fails; return whether it did not."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - an answer like every other
        report("failed", key=key, shape=shape, error=common.short(error))
        return False
    return True


def create(tools: Any, configuration: dict[str, Any], running: list[Any], *, profile: bool) -> None:
    """Make a session for a configuration, and add it to those that are `running`."""
    report("doing", what="session", key=configuration["key"])
    tools.log(placement=profile and configuration["provider"] == "cuda")
    session = measure_session.Session(tools, configuration, profile=profile)
    tools.log(placement=False)
    providers = session.session.get_providers()
    report("session", key=session.key, create_ms=session.create_ms, providers=providers)
    running.append(session)


def begin(tools: Any, session: Any, number: int, feed: Any, expected: list[list[Any]]) -> None:
    """Run a shape for the first time, and until it is warm; compare what comes out."""
    report("doing", what="run", key=session.key, shape=number)
    first = session.run(number, feed, expected[number])
    report("times", key=session.key, shape=number, kind="first", ms=[first])
    warm = [session.run(number, feed, expected[number]) for _ in range(WARM_RUNS)]
    report("times", key=session.key, shape=number, kind="warm", ms=warm)
    if session.on_gpu:
        rows = rows_of(tools, session, session.results(number, feed), expected[number])
        report("outputs", key=session.key, shape=number, outputs=rows)


def report_placement(session: Any, feed: Any) -> None:
    """Run the first shape once more; report the memory of it all, and where its nodes ran."""
    session.run(0, feed)
    if session.free_before is not None:
        after = measure_session.free_memory(session.device)
        if after is not None:
            report("memory", key=session.key, bytes=max(0, session.free_before - after))
    events, broken = session.placement()
    report("profile", key=session.key, events=events, broken=broken)


def rows_of(
    tools: Any, session: Any, results: list[Any], expected: list[Any]
) -> list[dict[str, object]]:
    """Return a row for each output."""
    return [
        dict(measure_session.compare(tools.np, one, two), name=name)
        for name, one, two in zip(session.outputs, results, expected)
    ]


def steadily(running: list[Any], number: int, feed: Any, ends: float) -> None:
    """Run the configurations in turn until all are steady, or the time is up."""
    medians: dict[str, list[float]] = {session.key: [] for session in running}
    for block in range(MOST_BLOCKS):
        if block and time.monotonic() >= ends:
            return
        for session in running:
            report("doing", what="measure", key=session.key, shape=number)
            times = stretch(session, number, feed)
            medians[session.key].append(statistics.median(times))
            report("times", key=session.key, shape=number, kind="steady", ms=times)
        if all(is_steady(found) for found in medians.values()):
            return


def stretch(session: Any, number: int, feed: Any) -> list[float]:
    """Run one configuration for a while; return the times that count."""
    first = session.run(number, feed)
    if first >= LONG_MS:
        return [first]
    times: list[float] = []
    while len(times) < BLOCK_RUNS or sum(times) < BLOCK_MS:
        times.append(session.run(number, feed))
    return times


def is_steady(medians: list[float]) -> bool:
    """Return whether the last stretches took the same time."""
    last = medians[-STEADY_BLOCKS:]
    if len(last) < STEADY_BLOCKS:
        return False
    return max(last) - min(last) <= STEADY * statistics.median(last)


def changing(running: list[Any], found: Found, ends: float) -> None:
    """Run all shapes in turn, each known by now; report what a run takes after another shape."""
    for cycle in range(CYCLES):
        if cycle and time.monotonic() >= ends:
            return
        for session in running:
            for number, (_, feed) in enumerate(found):
                report("doing", what="change", key=session.key, shape=number)
                ms = session.run(number, feed)
                report("times", key=session.key, shape=number, kind="changed", ms=[ms])
