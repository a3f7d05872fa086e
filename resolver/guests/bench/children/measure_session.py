"""A session of onnxruntime as one configuration asks for it.

Part of the script `measure`: run by the target's interpreter (3.8 or newer), with the standard
library and the target's own onnxruntime and numpy. A configuration is an object: `key`, `provider`
(`cpu` or `cuda`), `device` (the GPU's index), `options` (of the provider, texts), `binding`
(inputs and outputs stay on the device) and `graph` (a CUDA graph for each shape, which needs
`binding`).
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterable, NamedTuple

from ....verify.children import common, plugin

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
QUIET, INFORMATION = 4, 1
"""Severities of onnxruntime's log; which nodes go to the CPU, and why, is information."""
KEPT = ("op_name", "provider", "input_type_shape", "output_type_shape", "output_size", "node_index")
"""What is passed on of a profile's event."""
Feed = Dict[str, Any]


class Tools(NamedTuple):
    """What every step uses: the modules, the model, the folder for profiles, and a plugin's."""

    onnxruntime: Any
    np: Any
    model: str
    scratch: Path
    apart: Any = None

    def log(self, *, placement: bool) -> None:
        """Let the log say which nodes go to the CPU and why, or nothing."""
        severity = getattr(self.onnxruntime, "set_default_logger_severity", None)
        if severity:
            severity(INFORMATION if placement else QUIET)


class Session:
    """One session; `run` is what is timed."""

    def __init__(
        self, tools: Tools, configuration: dict[str, Any], *, profile: bool = False
    ) -> None:
        self.tools = tools
        self.key: str = configuration["key"]
        self.on_gpu = configuration["provider"] == "cuda"
        self.device: int = configuration.get("device", 0)
        self.binding = bool(configuration.get("binding"))
        self.graph = bool(configuration.get("graph"))
        self.bound: dict[int, Any] = {}
        self.free_before = free_memory(self.device) if profile and self.on_gpu else None
        settings = tools.onnxruntime.SessionOptions()
        settings.log_severity_level = QUIET
        if profile:
            settings.enable_profiling = True
            settings.profile_file_prefix = str(tools.scratch / self.key)
        options = {"device_id": str(self.device), **configuration.get("options", {})}
        if self.graph:
            options["enable_cuda_graph"] = "1"
        providers: list[Any] | None = [(CUDA, options), CPU] if self.on_gpu else [CPU]
        if self.on_gpu and tools.apart:
            offered = plugin.devices(tools.onnxruntime, tools.apart, self.device)
            settings.add_provider_for_devices(offered, configuration.get("options", {}))
            providers = None
        before = threads()
        begin = time.perf_counter()
        self.session = tools.onnxruntime.InferenceSession(
            tools.model, settings, providers=providers, enable_fallback=0
        )
        self.create_ms = common.milliseconds(begin)
        after = threads()
        self.threads = after - before + 1 if before and after else None
        self.session.disable_fallback()
        self.outputs = [output.name for output in self.session.get_outputs()]

    def run(self, number: int, feed: Feed, expected: list[Any] | None = None) -> float:
        """Run with the inputs of shape `number`; return how many milliseconds it took.

        `expected`, what the CPU made of them, has the shapes that a CUDA graph's outputs need.
        """
        if not self.binding:
            begin = time.perf_counter()
            self.session.run(self.outputs, feed)
            return common.milliseconds(begin)
        if number not in self.bound:
            self.bound[number] = self.bind(feed, expected)
        binding, settings = self.bound[number], self.settings(number)
        begin = time.perf_counter()
        self.session.run_with_iobinding(binding, settings)
        binding.synchronize_outputs()
        return common.milliseconds(begin)

    def results(self, number: int, feed: Feed) -> list[Any]:
        """Return what comes out."""
        if not self.binding:
            found: list[Any] = self.session.run(self.outputs, feed)
            return found
        self.session.run_with_iobinding(self.bound[number], self.settings(number))
        copied: list[Any] = self.bound[number].copy_outputs_to_cpu()
        return copied

    def bind(self, feed: Feed, expected: list[Any] | None) -> Any:
        """Return a binding with the inputs, and for a graph the outputs, on the device."""
        kind = "cuda" if self.on_gpu else "cpu"
        value = self.tools.onnxruntime.OrtValue
        binding = self.session.io_binding()
        for name, array in feed.items():
            binding.bind_ortvalue_input(name, value.ortvalue_from_numpy(array, kind, self.device))
        for at, name in enumerate(self.outputs):
            if self.graph and expected is not None:
                shape, dtype = expected[at].shape, expected[at].dtype
                place = value.ortvalue_from_shape_and_type(shape, dtype, kind, self.device)
                binding.bind_ortvalue_output(name, place)
            else:
                binding.bind_output(name, kind, self.device)
        return binding

    def settings(self, number: int) -> Any:
        """Return the options of a run: each shape has a CUDA graph of its own."""
        if not self.graph:
            return None
        options = self.tools.onnxruntime.RunOptions()
        options.add_run_config_entry("gpu_graph_id", str(number + 1))
        return options

    def placement(self) -> tuple[list[dict[str, object]], int]:
        """End the profile; return its node events of the last run, without what nobody reads.

        And how many nodes have a name that breaks the profile.
        """
        path = Path(self.session.end_profiling())
        events, broken = common.read_profile(path)
        path.unlink()
        runs = [row for row in events if row.get("name") == "model_run"]
        begin = runs[-1]["ts"] if runs else 0
        rows = []
        for event, microseconds in own_times(
            event
            for event in events
            if event.get("cat") == "Node"
            and (event.get("args") or {}).get("provider")
            and event["ts"] >= begin
        ):
            kept = {key: event["args"][key] for key in KEPT if key in event["args"]}
            rows.append(dict(kept, name=event["name"], us=microseconds))
        return rows, broken


def own_times(events: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Return each event with the microseconds that it took itself, without those inside it.

    The event of an `If`, a `Loop` or a `Scan` spans those of the nodes that it runs.
    """
    ordered = sorted(events, key=lambda event: (event["ts"], -event["dur"]))
    own = [event["dur"] for event in ordered]
    around: list[int] = []  # those that are not over, by their places
    for at, event in enumerate(ordered):
        end = event["ts"] + event["dur"]
        while around and ordered[around[-1]]["ts"] + ordered[around[-1]]["dur"] < end:
            around.pop()
        if around:
            own[around[-1]] -= event["dur"]
        around.append(at)
    return [(event, max(0, taken)) for event, taken in zip(ordered, own)]


def threads() -> int | None:
    """Return how many threads this process has; None where the system does not say."""
    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - the 3.8 way
    except OSError:
        return None


def free_memory(device: int) -> int | None:
    """Return the free bytes of a GPU, over all processes; None where the driver does not say."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    handle, context = ctypes.c_int(0), ctypes.c_void_p()
    try:
        library = ctypes.CDLL(name)
        done = (
            library.cuInit(0)
            or library.cuDeviceGet(ctypes.byref(handle), device)
            or library.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
            or library.cuCtxPushCurrent_v2(context)
        )
        if done != 0:
            return None
        failed = library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        library.cuCtxPopCurrent_v2(ctypes.byref(context))
        library.cuDevicePrimaryCtxRelease_v2(handle)
    except (OSError, AttributeError):
        return None
    return None if failed else free.value


def compare(np: Any, found: Any, expected: Any) -> dict[str, object]:
    """Return how far an output is from what the CPU made of the same inputs.

    `deviation` is the largest difference as a part of the largest number expected; of numbers that
    are not floating, the part of the elements that differ. None where the shapes differ, or only
    one of the two is not a number or the same infinity. A list or a map counts as one array.
    """
    if isinstance(expected, (list, dict)):
        (wanted, two), (places, one) = flat(np, expected), flat(np, found)
        row = compare(np, one, two)
        return row if places == wanted else dict(row, deviation=None, problem="shape")
    if not hasattr(expected, "dtype") or not hasattr(found, "dtype"):
        return {
            "type": type(expected).__name__,
            "shape": None,
            "deviation": None,
            "problem": "type",
        }
    row = {"type": str(expected.dtype), "shape": list(expected.shape), "problem": None}
    if found.shape != expected.shape:
        return dict(row, deviation=None, problem="shape", found=list(found.shape))
    if expected.size == 0:
        return dict(row, deviation=0.0)
    if expected.dtype.kind != "f":
        return dict(row, deviation=float((found != expected).mean()))
    one, two = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(two)
    alike = (np.isfinite(one) & finite) | (one == two) | (np.isnan(one) & np.isnan(two))
    if not alike.all():
        return dict(row, deviation=None, problem="nan")
    if not finite.any():
        return dict(row, deviation=0.0)
    scale = max(float(np.abs(two[finite]).max()), 1e-6)
    return dict(row, deviation=float(np.abs(one[finite] - two[finite]).max()) / scale)


def flat(np: Any, value: Any) -> tuple[list[Any], Any]:
    """Return the places in a list or a map, with their shapes, and its numbers as one array."""
    if not isinstance(value, (list, dict)):
        array = np.asarray(value)
        return [array.shape], array.ravel()
    parts = value if isinstance(value, dict) else dict(enumerate(value))
    found = {key: flat(np, part) for key, part in parts.items()}
    arrays = [array for _, array in found.values()]
    places = [(key, shapes) for key, (shapes, _) in found.items()]
    return places, np.concatenate(arrays) if arrays else np.zeros(0)
