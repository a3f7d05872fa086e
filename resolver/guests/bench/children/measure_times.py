"""The two tasks: where a model's nodes run, and how long it takes.

Part of the script `measure`: run by the target's interpreter (3.8 or newer), with the standard
library. Times are of whole runs, in milliseconds.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, List, Tuple

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
tell = common.tell


def place(tools: Any, reference: Any, found: Found, request: dict[str, Any]) -> None:
    """Tell where each node runs, and how far the outputs are from those of the CPU."""
    expected = [reference.session.run(reference.outputs, feed) for _, feed in found]
    again = reference.session.run(reference.outputs, found[0][1])
    rows = rows_of(tools, reference, again, expected[0])
    tell("repeated", outputs=rows)
    for configuration in request["configurations"]:
        key = configuration["key"]
        tell("doing", what="session", key=key)
        try:
            place_one(tools, configuration, found, expected)
        except Exception as error:  # noqa: BLE001 - an answer like every other
            tell("failed", key=key, shape=None, error=common.short(error))


def place_one(
    tools: Any, configuration: dict[str, Any], found: Found, expected: list[list[Any]]
) -> None:
    """Do it with one configuration."""
    key, on_gpu = configuration["key"], configuration["provider"] == "cuda"
    device = configuration.get("device", 0)
    before = measure_session.free_memory(device) if on_gpu else None
    tools.log(placement=on_gpu)
    session = measure_session.Session(tools, configuration, profile=True)
    tools.log(placement=False)
    providers = session.session.get_providers()
    tell("session", key=key, create_ms=session.create_ms, providers=providers)
    for number, (_, feed) in reversed(list(enumerate(found))):  # the first shape is profiled last
        tell("doing", what="run", key=key, shape=number)
        first = session.run(number, feed)
        tell("times", key=key, shape=number, kind="first", ms=[first])
        results = session.results(number, feed)
        rows = rows_of(tools, session, results, expected[number])
        tell("outputs", key=key, shape=number, outputs=rows)
    tell("times", key=key, shape=0, kind="warm", ms=[session.run(0, found[0][1])])
    after = measure_session.free_memory(device) if on_gpu else None
    if before is not None and after is not None:
        tell("memory", key=key, bytes=max(0, before - after))
    events, broken = session.placement()
    tell("profile", key=key, events=events, broken=broken)


def rows_of(
    tools: Any, session: Any, results: list[Any], expected: list[Any]
) -> list[dict[str, object]]:
    """Return a row for each output."""
    return [
        dict(measure_session.compare(tools.np, one, two), name=name)
        for name, one, two in zip(session.outputs, results, expected)
    ]


def measure(tools: Any, reference: Any, found: Found, request: dict[str, Any]) -> None:
    """Time every configuration with every shape: the first run, warming up, and then steadily."""
    expected = [reference.session.run(reference.outputs, feed) for _, feed in found]
    ends = time.monotonic() + request["seconds"]
    running = create(tools, request["configurations"])
    for number, (_, feed) in enumerate(found):
        for session in list(running):
            key = session.key
            tell("doing", what="run", key=key, shape=number)
            try:
                first = session.run(number, feed, expected[number])
                tell("times", key=key, shape=number, kind="first", ms=[first])
                warm = [session.run(number, feed, expected[number]) for _ in range(WARM_RUNS)]
                tell("times", key=key, shape=number, kind="warm", ms=warm)
                if session.key != "cpu":
                    results = session.results(number, feed)
                    rows = rows_of(tools, session, results, expected[number])
                    tell("outputs", key=key, shape=number, outputs=rows)
            except Exception as error:  # noqa: BLE001 - an answer like every other
                tell("failed", key=key, shape=number, error=common.short(error))
                running.remove(session)
        left = len(found) - number + (1 if len(found) > 1 else 0)
        share = max(0.0, ends - time.monotonic()) / left
        steadily(running, number, feed, time.monotonic() + share)
    if len(found) > 1:
        changing(running, found, ends)


def create(tools: Any, configurations: list[dict[str, Any]]) -> list[Any]:
    """Return a session for each configuration that can have one."""
    running = []
    for configuration in configurations:
        key = configuration["key"]
        tell("doing", what="session", key=key)
        try:
            session = measure_session.Session(tools, configuration)
        except Exception as error:  # noqa: BLE001 - an answer like every other
            tell("failed", key=key, shape=None, error=common.short(error))
            continue
        providers = session.session.get_providers()
        tell("session", key=key, create_ms=session.create_ms, providers=providers)
        running.append(session)
    return running


def steadily(running: list[Any], number: int, feed: Any, ends: float) -> None:
    """Run the configurations in turn until all are steady, or the time is up."""
    medians: dict[str, list[float]] = {session.key: [] for session in running}
    for block in range(MOST_BLOCKS):
        if block and time.monotonic() >= ends:
            return
        for session in running:
            tell("doing", what="measure", key=session.key, shape=number)
            times = stretch(session, number, feed)
            medians[session.key].append(statistics.median(times))
            tell("times", key=session.key, shape=number, kind="steady", ms=times)
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
    """Tell whether the last stretches took the same time."""
    last = medians[-STEADY_BLOCKS:]
    if len(last) < STEADY_BLOCKS:
        return False
    return max(last) - min(last) <= STEADY * statistics.median(last)


def changing(running: list[Any], found: Found, ends: float) -> None:
    """Run all shapes in turn, each known by now; tell what a run takes after another shape."""
    for cycle in range(CYCLES):
        if cycle and time.monotonic() >= ends:
            return
        for session in running:
            for number, (_, feed) in enumerate(found):
                tell("doing", what="change", key=session.key, shape=number)
                ms = session.run(number, feed)
                tell("times", key=session.key, shape=number, kind="changed", ms=[ms])
