"""A simulated GPU build of onnxruntime: a real one for the CPU, with another skin.

What it knows of CUDA is made up: its sessions say that they have CUDAExecutionProvider, its
profiles name it for the operators that are not in `on_cpu`, its log says that the others have no
kernel for it, and a run takes as long as `search` says. The graph, the nodes, the form of the
profile, the numbers and all that goes wrong are those of the real onnxruntime.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

SKIN = """
import json, sys, time
import numpy as np
from onnxruntime.capi import onnxruntime_inference_collection as real

SIMULATED = json.loads({settings!r})
CUDA = "CUDAExecutionProvider"
KNOWN = {{}}


class Session(real.InferenceSession):
    def __init__(self, path, options=None, providers=(), **more):
        named = [one if isinstance(one, str) else one[0] for one in providers]
        self.gpu = CUDA in named
        self.options = dict(next((one[1] for one in providers if not isinstance(one, str)), {{}}))
        self.path, self.seen = path, set()
        self.profiling = bool(options and options.enable_profiling)
        time.sleep(SIMULATED.get("create_ms", 0) / 1000 if self.gpu else 0)
        if self.gpu and path.endswith("fft.onnx"):  # no CPU kernel: another stands for it
            path = path[: -len("fft.onnx")] + "matmul.onnx"
        super().__init__(path, options, providers=["CPUExecutionProvider"], **more)

    def get_providers(self):
        return [CUDA, "CPUExecutionProvider"] if self.gpu else super().get_providers()

    def compute(self, feed):
        stored = self.get_modelmeta().custom_metadata_map
        if self.gpu and "expected" in stored:
            super().run(None, feed)
            row = json.loads(stored["expected"])
            return [np.array(row["values"], np.float32).reshape(row["shape"])]
        key = (self.path, *(np.asarray(one).shape for one in feed.values()))
        if key not in KNOWN or self.profiling or not self.gpu:
            KNOWN[key] = super().run(None, feed)
        return KNOWN[key]

    def run(self, names, feed, options=None):
        if not self.gpu:
            return self.compute(feed)
        search = self.options.get("cudnn_conv_algo_search", "EXHAUSTIVE")
        new, fixed, each = SIMULATED["search"][search]
        shapes = tuple(np.asarray(one).shape for one in feed.values())
        items = shapes[0][0] if shapes and shapes[0] else 1
        begin = time.perf_counter()
        found = self.compute(feed)
        wanted = fixed + each * items + (0 if shapes in self.seen else new)
        wanted *= 0.5 if self.options.get("enable_cuda_graph") else 1
        self.seen.add(shapes)
        time.sleep(max(0.0, wanted / 1000 - (time.perf_counter() - begin)))
        return found

    def io_binding(self):
        return Binding(self)

    def run_with_iobinding(self, binding, options=None):
        binding.found = self.run(None, binding.feed)

    def end_profiling(self):
        path = super().end_profiling()
        if not self.gpu:
            return path
        with open(path) as file:
            events = json.load(file)
        copies = []
        for event in events:
            args = event.get("args") or {{}}
            if event.get("cat") != "Node" or "provider" not in args:
                continue
            name = event["name"][: -len("_kernel_time")]
            if args["op_name"] not in SIMULATED["on_cpu"]:
                args["provider"] = CUDA
                event["dur"] = event["dur"] // 5 + 1
                continue
            said = "CUDA kernel not found in registries for Op type: " + args["op_name"]
            where = "2026-11-22 05:00:00.0 [I:onnxruntime:Default, x.cc:1 Get] "
            print(f"{{where}}{{said}} node name: {{name}}", file=sys.stderr)
            for op in ("MemcpyToHost", "MemcpyFromHost"):
                more = dict(args, op_name=op, provider=CUDA)
                copies.append(dict(event, name=f"Memcpy_{{name}}_kernel_time", dur=9, args=more))
        with open(path, "w") as file:
            json.dump(events + copies, file)
        return path


class Value:
    @staticmethod
    def ortvalue_from_numpy(array, kind, device):
        return array

    @staticmethod
    def ortvalue_from_shape_and_type(shape, dtype, kind, device):
        return np.zeros(shape, dtype)


class Binding:
    def __init__(self, session):
        self.session, self.feed, self.found = session, {{}}, None

    def bind_ortvalue_input(self, name, value):
        self.feed[name] = value

    def bind_ortvalue_output(self, name, value):
        pass

    def bind_output(self, name, kind, device):
        pass

    def synchronize_outputs(self):
        pass

    def copy_outputs_to_cpu(self):
        return self.found


def put_on(module):
    module.InferenceSession, module.OrtValue = Session, Value
    module.__version__ = SIMULATED.get("release", module.__version__)
"""
SEARCH = {"EXHAUSTIVE": (40.0, 1.2, 0.2), "HEURISTIC": (3.0, 1.25, 0.2), "DEFAULT": (3.0, 6.0, 1.0)}
"""Milliseconds by search: for a new shape, for every run, and for each item."""


def put_skin(
    site: Path,
    *,
    on_cpu: Sequence[str] = (),
    search: Mapping[str, Sequence[float]] | None = None,
    **more: object,
) -> None:
    """Put the skin on the onnxruntime that is installed in `site`.

    `on_cpu`: operators without a kernel for CUDA.
    """
    settings = {"on_cpu": [*on_cpu], "search": search or SEARCH, **more}
    package = site / "onnxruntime"
    (package / "simulated.py").write_text(SKIN.format(settings=json.dumps(settings)))
    start = package / "__init__.py"
    text = start.read_text("utf-8").partition("\n# simulated")[0]
    start.unlink()  # it may be a link to the file of every other environment
    tail = (
        "import sys\nfrom onnxruntime import simulated\nsimulated.put_on(sys.modules[__name__])\n"
    )
    start.write_text(f"{text}\n# simulated\n{tail}", "utf-8")
