"""Where a user's model ran, and what that proves.

Core. In comes what `measure` printed; out comes a `ModelReport`. The reasons why a node runs on the
CPU are onnxruntime's own words in its log: `CUDA kernel not found in registries for Op type: …
node name: …` where the provider has no kernel, and `Force fallback to CPU execution for node: …`
where it has one, and the partitioner keeps work on the CPU that only depends on tensors there,
which is most often arithmetic on shapes
(https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/framework/fallback_cpu_capability.cc).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from ...plan.reasons import Reason, reason
from ...verify.verdict import last_words
from ...verify.verification import CUDA_FAILURE, GPU, TOLERANCE, Verification, VerificationVerdict
from .measurement import CPU, Measurement, NodeEvent, Tensor, shape_flags
from .model_report import (
    FREE,
    Checked,
    Copies,
    Fallback,
    ModelReport,
    ProviderShare,
    Why,
)

CUDA = "cuda"
"""The key of the GPU's configuration without any option."""
WITHOUT_TF32 = "cuda-without-tf32"
HALF_TOLERANCE = 2e-2
"""For float16: ten bits of mantissa, and sums of many such products."""
SHAPE_OPS = frozenset({"Shape", "Size", "ConstantOfShape"})
SMALL = 64
"""Elements up to which whole numbers are taken for a shape, an axis or an index."""
_NO_KERNEL = re.compile(
    r"CUDA kernel not found in registries for Op type: (\S+) node name: (.*)$", re.MULTILINE
)
_FORCED = re.compile(
    r"Force fallback to CPU execution for node: (.*?)(?: because the CPU execution path|$)",
    re.MULTILINE,
)


def judge_model(
    measured: Measurement,
    *,
    file: str,
    environment: Verification,
    end: str | None = None,
    without_tf32: Measurement | None = None,
) -> ModelReport:
    """Return what was measured of the model at `file` proves.

    `environment` is what the small models proved: where they did not work on the GPU, the model
    was run on the CPU alone, and its verdict is theirs. `end` says how the process ended, where
    that was not by itself. `without_tf32` is the same run with
    `use_tf32=0`, where the first one deviated too far.
    """
    tried = environment.verdict == "works"
    key = CUDA if tried else CPU
    events = measured.events.get(key, ())
    fallbacks = find_fallbacks(events, measured.log) if tried else ()
    checked = check_outputs(measured, key) if tried else ()
    crashed = not measured.ended or any(failed.key == CPU for failed in measured.failed)
    verdict, values = environment.verdict, environment.values
    notes: list[Reason] = []
    evidence = [f"{failed.key}: {failed.error[:400]}" for failed in measured.failed]
    if crashed:
        step = measured.failed[0].error if measured.failed else measured.step
        verdict, values = "crashed", (("step", step[:200]), ("end", end or "exit"))
        notes = [reason(f"model-{_kind_of_end(end, measured.log)}")]
        evidence += last_words(measured.log)
    elif tried:
        verdict, values, notes = _verdict(measured, fallbacks, checked, without_tf32)
    if measured.shapes and not measured.given and any(map(_is_free, measured.inputs)):
        shapes = "; ".join(map(shape_flags, measured.shapes))
        notes.append(reason("shapes-guessed", shapes=shapes))
    if measured.broken_names:
        notes.append(reason("node-names-broken", count=str(measured.broken_names)))
    half = any("float16" in event.types for event in events)
    return ModelReport(
        file=file,
        verdict=verdict,
        values=values,
        notes=tuple(notes),
        evidence=tuple(evidence),
        of_environment=not (tried or crashed),
        gpu=measured.gpu if tried else None,
        onnxruntime=measured.release,
        inputs=measured.inputs,
        outputs=measured.outputs,
        shapes=measured.shapes,
        shapes_given=measured.given,
        providers=provider_shares(events),
        fallbacks=fallbacks,
        copies=count_copies(events, measured) if tried and events else None,
        checked=checked,
        gpu_memory_bytes=measured.memory.get(CUDA),
        create_ms={each: made.create_ms for each, made in measured.made.items()},
        first_ms=_times(measured, "first"),
        second_ms=_times(measured, "warm"),
        float16=half,
        operators=dict(Counter(event.op for event in _nodes(events)).most_common()),
    )


def _verdict(
    measured: Measurement,
    fallbacks: Sequence[Fallback],
    checked: Sequence[Checked],
    without_tf32: Measurement | None,
) -> tuple[VerificationVerdict, tuple[tuple[str, str], ...], list[Reason]]:
    """Return the verdict, the values of its text, and what explains it."""
    failed = next((each for each in measured.failed if each.key == CUDA), None)
    if failed:
        failure = CUDA_FAILURE.search(failed.error)
        full = (failure and failure.group(1) == "2") or re.search(
            r"Failed to allocate|out of memory", failed.error, re.IGNORECASE
        )
        note = [reason("cuda-failure-2")] if full else []
        return "crashed", (("step", failed.error[:200]), ("end", "error")), note
    if CUDA not in measured.made:
        return "crashed", (("step", measured.step), ("end", "error")), []
    if GPU not in measured.made[CUDA].providers:
        nodes = _nodes(measured.events.get(CUDA, ()))
        return "cpu-fallback", _counts(len(nodes), len(nodes), [node.op for node in nodes]), []
    wrong = [output for output in checked if output.right is False]
    notes: list[Reason] = []
    if wrong and without_tf32:
        exact = check_outputs(without_tf32, WITHOUT_TF32)
        if exact and all(output.right is not False for output in exact):
            most = max(output.deviation or 0.0 for output in wrong)
            notes.append(reason("tf32-deviates", deviation=f"{most:.2g}"))
            wrong = []
    if wrong:
        return "wrong-result", (("outputs", _names(wrong)),), notes
    unknown = [output for output in checked if output.right is None]
    if names := _names(output for output in unknown if output.problem != "type"):
        notes.append(reason("outputs-random", outputs=names))
    if names := _names(output for output in unknown if output.problem == "type"):
        notes.append(reason("outputs-not-compared", outputs=names))
    missing = [fallback for fallback in fallbacks if fallback.why not in FREE]
    total = len(_nodes(measured.events.get(CUDA, ())))
    if missing:
        values = _counts(total, len(fallbacks), [fallback.op for fallback in missing])
        return "cpu-fallback", values, notes
    return (
        "works",
        (("total", str(total - len(fallbacks))), ("shape_nodes", str(len(fallbacks)))),
        notes,
    )


def _counts(total: int, on_cpu: int, missing: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the values of a fallback: of the nodes on the CPU, those that should not be there.

    `missing` are the operators of these, one for each node.
    """
    return (
        ("count", str(on_cpu)),
        ("total", str(total)),
        ("missing", str(len(missing))),
        ("free", str(on_cpu - len(missing))),
        ("operators", ", ".join(dict.fromkeys(missing))),
    )


def _kind_of_end(end: str | None, log: str) -> str:
    """Return what a process that did not come to its own end is reported as."""
    if end == "timeout":
        return "never-ends"
    full = end == "SIGKILL" or re.search(r"bad_alloc|MemoryError|Failed to allocate memory", log)
    return "memory" if full else "crashes"


def provider_shares(events: Iterable[NodeEvent]) -> tuple[ProviderShare, ...]:
    """Return how many nodes each provider ran, and for how long; copies do not count."""
    kept = [event for event in events if not _is_copy(event)]
    return tuple(
        ProviderShare(
            provider=provider,
            nodes=len(_nodes(event for event in kept if event.provider == provider)),
            ms=sum(e.microseconds for e in kept if e.provider == provider) / 1000,
        )
        for provider in dict.fromkeys(event.provider for event in kept)
    )


def find_fallbacks(events: Sequence[NodeEvent], log: str) -> tuple[Fallback, ...]:
    """Return the nodes that did not run on the GPU, and why, slowest first."""
    without = _NO_KERNEL.findall(log)
    operators = {op for op, _ in without}
    named = {name.strip() for _, name in without}
    forced = {name.strip() for name in _FORCED.findall(log)}
    taken: dict[tuple[str, str], float] = {}
    shapes: dict[tuple[str, str], bool] = {}
    for event in events:
        if event.provider != GPU and not _is_copy(event):
            node = (event.name, event.op)
            taken[node] = taken.get(node, 0.0) + event.microseconds / 1000
            shapes[node] = shapes.get(node, True) and _is_shape_work(event)

    def why(name: str, op: str) -> Why:
        if name in named and op in operators:
            return "no-kernel"
        if shapes[name, op]:
            return "shape-work"
        if name in forced:
            return "optimizer"
        return "no-kernel" if op in operators else "unknown"

    fallbacks = (
        Fallback(name=name, op=op, why=why(name, op), ms=round(ms, 3))
        for (name, op), ms in taken.items()
    )
    return tuple(sorted(fallbacks, key=lambda fallback: -fallback.ms))


def count_copies(events: Iterable[NodeEvent], measured: Measurement) -> Copies:
    """Return the copies in one run with the first shape."""
    up = [event for event in events if event.op == "MemcpyFromHost"]
    down = [event for event in events if event.op == "MemcpyToHost"]
    first = dict(measured.shapes[0]) if measured.shapes else {}
    inputs = sum(
        math.prod(first.get(tensor.name, ()))
        * _width(tensor.type.removeprefix("tensor(").rstrip(")"))
        for tensor in measured.inputs
    )
    outputs = measured.compared.get((CUDA, 0), ())
    return Copies(
        to_device=len(up),
        to_device_bytes=sum(event.output_bytes for event in up),
        to_host=len(down),
        to_host_bytes=sum(event.output_bytes for event in down),
        input_bytes=inputs,
        output_bytes=sum(math.prod(tensor.shape) * _width(tensor.type) for tensor in outputs),
    )


def check_outputs(measured: Measurement, key: str) -> tuple[Checked, ...]:
    """Return every output of every shape, compared with the CPU's."""
    random = {
        output.name
        for output in measured.repeated
        if output.deviation is None or output.deviation > TOLERANCE
    }
    half = any("float16" in event.types for event in measured.events.get(key, ()))
    rows = []
    for (found, shape), outputs in measured.compared.items():
        for output in outputs if found == key else ():
            tolerance = HALF_TOLERANCE if half or output.type == "float16" else TOLERANCE
            right = output.deviation is not None and output.deviation <= tolerance
            checked = {"tolerance": tolerance, "right": None if output.name in random else right}
            rows.append(Checked(**asdict(output) | checked | {"shape": shape}))
    return tuple(sorted(rows, key=lambda output: output.shape))


def _names(outputs: Iterable[Checked]) -> str:
    return ", ".join(dict.fromkeys(output.name for output in outputs))


def _nodes(events: Iterable[NodeEvent]) -> list[NodeEvent]:
    """Return each node once: one in a loop has an event for each turn."""
    kept = {(e.name, e.op, e.provider): e for e in events if not _is_copy(e)}
    return list(kept.values())


def _is_copy(event: NodeEvent) -> bool:
    return event.op.startswith("Memcpy")


def _is_shape_work(event: NodeEvent) -> bool:
    whole = bool(event.types) and all(re.match(r"u?int|bool", kind) for kind in event.types)
    return event.op in SHAPE_OPS or (whole and event.elements <= SMALL)


def _is_free(tensor: Tensor) -> bool:
    return any(not isinstance(size, int) or size < 0 for size in tensor.shape)


def _times(measured: Measurement, kind: str) -> dict[str, float]:
    found = {key: measured.all_times(key, 0, kind) for key in measured.made}
    return {key: times[0] for key, times in found.items() if times}


def _width(kind: str) -> int:
    """Return the bytes of one element: `float`, `int64`, `float16`, `bool`."""
    if kind == "bool":
        return 1
    bits = re.search(r"\d+$", kind)
    return int(bits.group()) // 8 if bits else 8 if kind == "double" else 4
