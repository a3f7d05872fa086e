"""A provider that comes as a plugin beside onnxruntime, registered as its packages document it.

Part of the script `smoke`: run by the target's interpreter (3.8 or newer), standard library only.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from . import common

MODULE = "onnxruntime_ep_"
NO_RTX = {"name": MODULE + "nv_tensorrt_rtx", "error": "no such module", "optional": False}
"""What a check of TensorRT-RTX needs and lacks where there is no plugin of it."""
BUILT_IN = ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")


def find(onnxruntime: Path, *, rtx: bool = False) -> ModuleType | None:
    """Return the module of the plugin for NVIDIA's GPUs; None where there is none.

    `onnxruntime` is that folder: a CUDA provider in it goes first, unless `rtx`, that of
    TensorRT-RTX, is asked for. A plugin is a module `onnxruntime_ep_…` with `get_library_path()`
    and `get_ep_name()`.
    """
    if not rtx and any((onnxruntime / "capi" / name).is_file() for name in BUILT_IN):
        return None
    roots = (Path(entry) for entry in sys.path if entry)
    found = (path.parent.name for root in roots for path in root.glob(f"{MODULE}*/__init__.py"))
    wanted = (f"{MODULE}nv_",) if rtx else (f"{MODULE}cuda", f"{MODULE}nv_")
    ours = sorted(name for name in found if name.startswith(wanted))
    return importlib.import_module(ours[0]) if ours else None


def register(onnxruntime: ModuleType, plugin: ModuleType) -> None:
    """Register the plugin. An error of that goes where onnxruntime's own words go."""
    common.report("doing", what="register " + plugin.__name__)
    try:
        name = plugin.get_ep_name()
        onnxruntime.register_execution_provider_library(name, plugin.get_library_path())
    except Exception as error:  # noqa: BLE001 - an answer like every other
        print(common.short(error), file=sys.stderr, flush=True)


def lacks(plugin: ModuleType, model: Path) -> bool:
    """Return whether the provider has no Fourier transform: CUDA's alone has onnxruntime's own."""
    return model.stem == "fft" and plugin.get_ep_name() != "CUDAExecutionProvider"


def devices(onnxruntime: ModuleType, plugin: ModuleType, index: int) -> list[Any]:
    """Return the plugin's device of this index. Raises LookupError where it offers none."""
    name = plugin.get_ep_name()
    offered = [device for device in onnxruntime.get_ep_devices() if device.ep_name == name]
    if len(offered) <= index:
        raise LookupError("the plugin offers no device: " + name)
    return offered[index : index + 1]
