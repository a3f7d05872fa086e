"""Run real inference in the target environment and print the result of each step.

    TARGET_PYTHON smoke.py --scratch FOLDER [--lifeline] [--plain] [--ignore CC] [--torch ORDER]
                          [--provider NAME] MODEL.onnx …

Script: run by the target's interpreter (3.8 or newer), with the standard library and the target's
own onnxruntime and numpy. It prints one JSON object a line, also before each step that may crash
the process, as some releases do without a driver. The output of other code goes to stderr.

Every model runs on one GPU of each kind, except those of a compute capability given with
`--ignore`. Without `--plain` the script calls `preload_dlls()`, and loads from the environment's
NVIDIA wheels the libraries that the provider links and that are not loaded yet. FOLDER is for the
profiles of onnxruntime; the script makes it, the caller removes it. With `--lifeline` the script
removes FOLDER itself at its end, which comes at once when its standard input is closed: when the
caller is gone. With `--torch first` or
`last` torch is imported and computes before or after that in the same process; with `--torch alone`
onnxruntime is not used.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

if __name__ == "__main__":  # by its path: what lies beside it is its package, and not the target's
    FOLDER = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
    if sys.path and os.path.realpath(sys.path[0]) == FOLDER:
        del sys.path[0]
    __package__ = "ortgpu_fix_child"
    sys.modules[__package__] = ModuleType(__package__)
    sys.modules[__package__].__path__ = [FOLDER]

import argparse
import contextlib
import functools
import importlib.util
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import common, libraries, plugin

CUDA = "CUDAExecutionProvider"
PROVIDERS = {
    "cuda": [CUDA],
    "tensorrt": ["TensorrtExecutionProvider", CUDA],
    "tensorrt-rtx": ["NvTensorRTRTXExecutionProvider"],
}
"""What a session is asked for, as its documentation has it: TensorRT leaves some nodes to CUDA."""
SIDE = 64
"""Of the matrices that torch multiplies. All numbers are small and whole: exact in TF32 too."""
Tensor = Any
report = common.report


def main(arguments: list[str]) -> None:
    """Do every step, each in its own event."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--torch", choices=["first", "last", "alone"])
    parser.add_argument("--provider", choices=PROVIDERS, default="cuda")
    parser.add_argument("models", nargs="+", type=Path)
    options = common.start(parser, arguments)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    provider = PROVIDERS[options.provider][0]
    version = sys.version.split()[0]
    report("start", python=version, plain=options.plain, visible=visible, provider=provider)
    if not options.plain:  # what follows loads code to the GPU: only what is used, not all there is
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    machine = common.driver()
    report("driver", **machine)
    report("torch-found", **found_torch())
    if options.torch in {"first", "alone"}:
        use_torch(machine["gpus"], options.ignore)
    if options.torch == "alone" or use_onnxruntime(machine["gpus"], options):
        if options.torch == "last":
            use_torch(machine["gpus"], options.ignore)
        report("end")


def use_onnxruntime(machine: list[dict[str, Any]], options: argparse.Namespace) -> bool:
    """Import onnxruntime and run the models; return whether it could be imported, and is whole."""
    helping = not options.plain
    if helping:
        libraries.add_windows_folders()
        libraries.load_before_import()
    report("doing", what="import onnxruntime")
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        report("onnxruntime", file=None, version=None, error=common.short(error), whole=False)
        return False
    version = getattr(onnxruntime, "__version__", None)
    cuda = getattr(onnxruntime, "cuda_version", None) or None
    origin = getattr(onnxruntime, "__file__", None)
    whole = origin is not None and hasattr(onnxruntime, "InferenceSession")
    report("onnxruntime", file=origin, version=version, cuda=cuda, error=None, whole=whole)
    if not origin or not whole:
        return False
    if helping:
        common.preload(onnxruntime)
    with contextlib.suppress(
        Exception
    ):  # as an application does; what is missing is reported below
        onnxruntime.OrtDevice.make("cuda", 0)
    folder = Path(origin).parent
    apart = plugin.find(folder, rtx=options.provider == "tensorrt-rtx")
    if options.provider == "tensorrt-rtx" and not apart:  # no build has that provider
        report("needed", cuda=None, libraries=[plugin.NO_RTX])
        return True
    library = apart.get_library_path() if apart else None
    needed = libraries.needed(folder, version, helping=helping, plugin=library)
    if apart:
        plugin.register(onnxruntime, apart)
        needed = libraries.needed(folder, version, helping=helping, plugin=library)
    report("needed", **needed)
    report("loaded", libraries=libraries.loaded())
    for gpu, index in common.chosen(machine, options.ignore):
        names = PROVIDERS[options.provider]
        devices = [(name, {"device_id": str(index)}) if index else name for name in names]
        for model in options.models:
            report("doing", what="inference", model=model.stem, gpu=gpu)
            if apart and plugin.lacks(apart, model):
                continue
            offered = (
                functools.partial(plugin.devices, onnxruntime, apart, index) if apart else None
            )
            report("model", gpu=gpu, **infer(onnxruntime, model, devices, options.scratch, offered))
            report("loaded", libraries=libraries.loaded())
    return True


def use_torch(machine: list[dict[str, Any]], ignored: list[str]) -> None:
    """Import torch, and compute with it on one GPU of each kind."""
    report("doing", what="import torch")
    torch, problem = import_torch()
    if torch is None:
        report("torch", error=problem, unavailable=None)
        return
    report("doing", what="torch.cuda")
    lack = unavailable(torch)
    report("torch", error=None, unavailable=lack)
    if lack is None:
        for gpu, index in common.chosen(machine, ignored):
            report("doing", what="torch on the GPU", gpu=gpu)
            report("torch-run", gpu=gpu, **compute(torch, f"cuda:{index}"))
    report("loaded", libraries=libraries.loaded())


def infer(
    onnxruntime: ModuleType,
    model: Path,
    providers: Sequence[object],
    folder: Path,
    offered: Callable[[], list[Any]] | None = None,
) -> dict[str, object]:
    """Run one model twice on the providers; return where its nodes ran and how right it was.

    `offered` returns the devices of a plugin, which are asked for in place of `providers`.
    """
    import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    result: dict[str, object] = {"name": model.stem, "nodes": [], "error": None}
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / model.stem)
    try:
        begin = time.perf_counter()
        if offered is not None:
            options.add_provider_for_devices(offered(), {})
        session = onnxruntime.InferenceSession(
            str(model), options, providers=None if offered else providers, enable_fallback=0
        )
        result["create_ms"] = common.milliseconds(begin, 3)
        session.disable_fallback()
        stored = session.get_modelmeta().custom_metadata_map
        inputs, expected = (
            np.array(row["values"], np.float32).reshape(row["shape"])
            for row in (json.loads(stored[key]) for key in ("input", "expected"))
        )
        begin = time.perf_counter()
        session.run(None, {"input": inputs})
        result["first_ms"] = common.milliseconds(begin, 3)
        begin = time.perf_counter()
        output = session.run(None, {"input": inputs})[0]
        result["second_ms"] = common.milliseconds(begin, 3)
        result["deviation"] = None
        if output.shape == expected.shape and np.isfinite(output).all():
            scale = max(1.0, float(np.abs(expected).max()))
            result["deviation"] = float(np.abs(output - expected).max()) / scale
        result["nodes"] = placement(Path(session.end_profiling()))
    except Exception as error:  # noqa: BLE001 - an answer like every other
        result["error"] = common.short(error)
    return result


def placement(profile: Path) -> list[dict[str, str]]:
    """Return which operator ran on which provider, each node once."""
    nodes = {}
    for event in common.read_profile(profile)[0]:
        arguments = event.get("args") or {}
        if event.get("cat") == "Node" and arguments.get("provider"):
            row = {"op": arguments["op_name"], "provider": arguments["provider"]}
            nodes[common.bare_name(event)] = row
    return list(nodes.values())


def found_torch() -> dict[str, str | None]:
    """Return the version of the installed torch, and its CUDA, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return {"version": None, "cuda": None}
    try:
        text = Path(spec.origin).with_name("version.py").read_text("utf-8", "replace")
    except OSError:
        text = ""

    def value(name: str) -> str | None:  # cuda: Optional[str] = '12.8'
        row = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"\n]+)['\"]", text, re.MULTILINE)
        return row.group(1) if row else None

    return {"version": value("__version__"), "cuda": value("cuda")}


def import_torch() -> tuple[ModuleType | None, str | None]:
    """Return torch, or the error of its import."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        return None, common.short(error)
    return torch, None


def unavailable(torch: ModuleType) -> str | None:
    """Return torch's own error where it cannot use a GPU, else None."""
    if torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001 - an answer like every other
        return common.short(error)
    return "torch.cuda.is_available() is False"


def compute(torch: ModuleType, device: str) -> dict[str, object]:
    """Multiply and convolve on `device` and on the CPU; return the largest relative differences."""
    result: dict[str, object] = {"product": None, "convolution": None, "error": None}
    functional = torch.nn.functional

    def numbers(*shape: int) -> Tensor:
        return torch.arange(math.prod(shape)).remainder(5).sub(2).to(torch.float32).reshape(shape)

    def apart(cpu: Tensor, gpu: Tensor) -> float:
        largest = max(1.0, float(cpu.abs().max()))
        return float((cpu - gpu.cpu()).abs().max()) / largest

    try:
        left, right = numbers(SIDE, SIDE), numbers(SIDE, SIDE).t().contiguous()
        result["product"] = apart(left @ right, left.to(device) @ right.to(device))
        image, kernel = numbers(1, 3, 16, 16), numbers(4, 3, 3, 3)
        convolved = functional.conv2d(image.to(device), kernel.to(device))
        result["convolution"] = apart(functional.conv2d(image, kernel), convolved)
    except Exception as error:  # noqa: BLE001 - an answer like every other
        result["error"] = common.short(error)
    return result


if __name__ == "__main__":
    common.answer_apart()
    main(sys.argv[1:])
