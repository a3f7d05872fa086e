"""Run one model on the CPU and on a GPU of the target environment, and report what was measured.

    TARGET_PYTHON measure.py --scratch FOLDER [--lifeline] REQUEST

Script: run by the target's interpreter (3.8 or newer), with the standard library and the target's
own onnxruntime and numpy. REQUEST is a JSON object: `model` (a path), `shapes` (a list of objects,
input name -> sizes; empty: found by trying), `configurations` (see `measure_session`), `ignored`
(compute capabilities of GPUs), `seconds` (for the measuring; 0: see where the nodes run) and
`batches` (numbers of items to try as well, where the first dimension is free).
It prints one JSON object a line, one before each step that may kill the process, and each time as
soon as it is measured: whoever ends it has what there is so far. It decides nothing: `bench` does.
It makes FOLDER, and with `--lifeline` removes it at its end, which comes at once when its standard
input is closed: when whoever started it is gone.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

if __name__ == "__main__":  # by its path: this program is its package, and none of the target's
    FOLDER = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
    if sys.path and os.path.realpath(sys.path[0]) == FOLDER:
        del sys.path[0]
    sys.modules["ortgpu_fix_child"] = ModuleType("ortgpu_fix_child")
    sys.modules["ortgpu_fix_child"].__path__ = [os.path.join(FOLDER, *[os.pardir] * 3)]  # noqa: PTH118
    __package__ = "ortgpu_fix_child.guests.bench.children"

import argparse
import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from ....verify.children import common, libraries, plugin
from . import measure_inputs as given_inputs
from . import measure_session as sessions
from . import measure_times as timing

report = common.report
Request = Dict[str, Any]
Found = List[Tuple[Dict[str, List[int]], Dict[str, Any]]]


def main(arguments: list[str]) -> None:
    """Do what the request asks, each step in its own event."""
    parser = argparse.ArgumentParser()
    parser.add_argument("request", type=json.loads)
    options = common.start(parser, arguments)
    request: Request = options.request
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    report("start", python=sys.version.split()[0], processors=processors())
    gpus = any(configuration["provider"] == "cuda" for configuration in request["configurations"])
    if gpus:
        choose_gpu(request)
        libraries.add_windows_folders()
        libraries.load_before_import()
    report("doing", what="import")
    import numpy as np  # type: ignore[import-not-found,unused-ignore]
    import onnxruntime  # type: ignore[import-not-found,unused-ignore]

    silence = getattr(onnxruntime, "disable_telemetry_events", None)
    if silence:  # what is measured here is nobody else's business
        silence()
    version = getattr(onnxruntime, "__version__", None)
    report("onnxruntime", version=version)
    apart = None
    if gpus:
        common.preload(onnxruntime)
        folder = Path(onnxruntime.__file__).parent
        apart = plugin.find(folder)
        library = apart.get_library_path() if apart else None
        libraries.needed(folder, version, helping=True, plugin=library)
        if apart:
            plugin.register(onnxruntime, apart)
    try:
        work(sessions.Tools(onnxruntime, np, request["model"], options.scratch, apart), request)
    except given_inputs.Refused as refused:
        report("refused", code=refused.code, values=refused.values)
    except MemoryError:
        report("refused", code="memory", values={})
    report("end")


def choose_gpu(request: Request) -> None:
    """Report which GPU it is, the first that is not to be ignored, and let every session use it."""
    machine = common.driver()
    (name, index), *_ = common.chosen(machine["gpus"], request.get("ignored", []))
    report("gpu", name=name, index=index)
    for configuration in request["configurations"]:
        configuration["device"] = index


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def work(tools: Any, request: Request) -> None:
    """Find shapes that the model takes, and do the task with each."""
    report("doing", what="load")
    try:
        reference = sessions.Session(tools, {"key": "cpu", "provider": "cpu"})
    except Exception as error:  # noqa: BLE001 - an answer like every other
        report("refused", code="load", values={"error": common.short(error)})
        return
    inputs = reference.session.get_inputs()
    described = [
        [{"name": row.name, "type": row.type, "shape": list(row.shape)} for row in rows]
        for rows in (inputs, reference.session.get_outputs())
    ]
    report("model", inputs=described[0], outputs=described[1], threads=reference.threads)
    found = find_shapes(tools, reference, request)
    report("shapes", shapes=[shapes for shapes, _ in found], given=bool(request["shapes"]))
    timing.measure(tools, reference, found, request)


def find_shapes(tools: Any, reference: Any, request: Request) -> Found:
    """Return the shapes to use, each with its inputs; each was run on the CPU once."""
    found = [try_shapes(tools, reference, given) for given in request["shapes"] or [{}]]
    for batch in [] if request["shapes"] else request.get("batches", []):
        more, problem = try_batch(tools, reference, found, batch)
        if problem:  # then the model takes no larger one either
            report("skipped", error=f"batch {batch}: {problem[:300]}")
            break
        found += more
    return found


def try_batch(tools: Any, reference: Any, found: Found, batch: int) -> tuple[Found, str | None]:
    """Return the first shapes with so many items that the model takes, or why it takes none."""
    inputs = reference.session.get_inputs()
    problem = None
    for anonymous in (False, True):
        shapes = given_inputs.batched(inputs, found[0][0], batch, anonymous=anonymous)
        if any(shapes == known for known, _ in found):
            continue
        try:
            return [run_once(tools, reference, shapes)], None
        except Exception as error:  # noqa: BLE001 - an answer like every other
            problem = common.short(error)
    return [], problem


def try_shapes(tools: Any, reference: Any, given: Any) -> tuple[Any, Any]:
    """Return the first shapes that the model takes on the CPU, with their inputs."""
    inputs = reference.session.get_inputs()
    given_inputs.check_given(inputs, given)
    problem, tried = None, None
    for shapes in given_inputs.candidates(inputs, given):
        try:
            return run_once(tools, reference, shapes)
        except (given_inputs.Refused, MemoryError):  # noqa: PERF203 - few, and slow anyway
            raise
        except Exception as error:  # noqa: BLE001 - then the model does not take this one
            if problem is None:
                problem, tried = error, shapes
    values = {"error": common.short(problem) if problem else "", "shapes": tried}
    raise given_inputs.Refused("shapes", **values)


def run_once(tools: Any, reference: Any, shapes: Any) -> tuple[Any, Any]:
    """Run the model on the CPU with inputs of these shapes; return the shapes and the inputs."""
    report("doing", what="try", shapes=shapes)
    feed = given_inputs.values(tools.np, reference.session.get_inputs(), shapes)
    reference.session.run(None, feed)
    return shapes, feed


if __name__ == "__main__":
    common.answer_apart()
    main(sys.argv[1:])
