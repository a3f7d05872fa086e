"""Run real inference in the target environment and print the result of each step.

    TARGET_PYTHON smoke.py --scratch FOLDER [--lifeline] [--plain] [--ignore CC] [--torch ORDER]
                          MODEL.onnx …

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

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):  # noqa: PTH120
    del sys.path[0]  # what lies beside this script is not the target's

import argparse
import atexit
import contextlib
import ctypes
import faulthandler
import importlib.util
import json
import re
import shutil
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import smoke_libraries as libraries
    from . import smoke_torch
else:

    def beside(name: str) -> ModuleType:
        """Import another part of the script, whose folder is not on the path."""
        file = Path(__file__).with_name(f"{name}.py")
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    libraries, smoke_torch = beside("smoke_libraries"), beside("smoke_torch")

if sys.platform == "win32":
    import msvcrt

PROVIDER = "CUDAExecutionProvider"
WEDGED = 60.0
"""Seconds that the driver may take to start."""
answers = sys.stdout
if __name__ == "__main__":  # what the target's code prints must not mix with the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)


def tell(event: str, **values: object) -> None:
    """Print one answer at once, for the process may crash right after."""
    print(json.dumps(dict(values, event=event)), file=answers, flush=True)


def main(arguments: list[str]) -> None:
    """Do every step, each in its own event."""
    faulthandler.enable()
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--lifeline", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--torch", choices=["first", "last", "alone"])
    parser.add_argument("models", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    begin(options.scratch, lifeline=options.lifeline)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    tell("start", python=sys.version.split()[0], plain=options.plain, visible=visible)
    if not options.plain:  # what follows loads code to the GPU: only what is used, not all there is
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    machine = driver()
    tell("driver", **machine)
    tell("torch-found", **smoke_torch.found())
    if options.torch in {"first", "alone"}:
        use_torch(machine["gpus"], options.ignore)
    if options.torch == "alone" or use_onnxruntime(machine["gpus"], options):
        if options.torch == "last":
            use_torch(machine["gpus"], options.ignore)
        tell("end")


def begin(scratch: Path, *, lifeline: bool) -> None:
    """Make `scratch`; with `lifeline` remove it and end as soon as the starter is gone.

    The starter holds the other end of standard input. Not read through `sys.stdin`: a thread that
    waits in it makes Python crash at its end. On Windows not read at all: while a read waits,
    whatever else asks about standard input does too, as the C runtime of a library does when it is
    loaded (GetFileType). There it is looked at now and then.
    """
    scratch.mkdir(mode=0o700, exist_ok=True)
    if not lifeline:
        return
    # The caller may be killed while Python ends.
    atexit.register(shutil.rmtree, str(scratch), ignore_errors=True)

    def wait() -> None:
        if sys.platform == "win32":
            standard_input = ctypes.c_void_p(msvcrt.get_osfhandle(0))
            while ctypes.windll.kernel32.PeekNamedPipe(standard_input, None, 0, None, None, None):
                time.sleep(0.1)
        else:
            while os.read(0, 1):
                pass
        for _ in range(5):  # a profile that is written meanwhile
            shutil.rmtree(str(scratch), ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def use_onnxruntime(machine: list[dict[str, Any]], options: argparse.Namespace) -> bool:
    """Import onnxruntime and run the models; return whether it could be imported, and is whole."""
    helping = not options.plain
    if helping:
        libraries.add_windows_folders()
        libraries.load_before_import()
    tell("doing", what="import onnxruntime")
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        tell("onnxruntime", file=None, version=None, error=smoke_torch.short(error), whole=False)
        return False
    version = getattr(onnxruntime, "__version__", None)
    cuda = getattr(onnxruntime, "cuda_version", None) or None
    origin = getattr(onnxruntime, "__file__", None)
    whole = origin is not None and hasattr(onnxruntime, "InferenceSession")
    tell("onnxruntime", file=origin, version=version, cuda=cuda, error=None, whole=whole)
    if not origin or not whole:
        return False
    if helping:
        preload(onnxruntime)
    with contextlib.suppress(Exception):  # as an application does; what is missing is told below
        onnxruntime.OrtDevice.make("cuda", 0)
    tell("needed", **libraries.needed(Path(origin).parent, version, helping=helping))
    tell("loaded", libraries=libraries.loaded())
    for gpu, index in chosen(machine, options.ignore):
        device = (PROVIDER, {"device_id": str(index)}) if index else PROVIDER
        for model in options.models:
            tell("doing", what="inference", model=model.stem, gpu=gpu)
            tell("model", gpu=gpu, **infer(onnxruntime, model, [device], options.scratch))
            tell("loaded", libraries=libraries.loaded())
    return True


def use_torch(machine: list[dict[str, Any]], ignored: list[str]) -> None:
    """Import torch, and compute with it on one GPU of each kind."""
    tell("doing", what="import torch")
    torch, problem = smoke_torch.import_torch()
    if torch is None:
        tell("torch", error=problem, unavailable=None)
        return
    tell("doing", what="torch.cuda")
    lack = smoke_torch.unavailable(torch)
    tell("torch", error=None, unavailable=lack)
    if lack is None:
        for gpu, index in chosen(machine, ignored):
            tell("doing", what="torch on the GPU", gpu=gpu)
            tell("torch-run", gpu=gpu, **smoke_torch.compute(torch, f"cuda:{index}"))
    tell("loaded", libraries=libraries.loaded())


def driver() -> dict[str, Any]:
    """Return the replies of the driver's library, and its GPUs."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    answer: dict[str, Any] = {"library": None, "cuda": None, "init": None, "gpus": []}
    version = ctypes.c_int(0)
    try:
        library = ctypes.CDLL(name)
        status = library.cuDriverGetVersion(ctypes.byref(version))
        tell("doing", what="cuInit")
        faulthandler.dump_traceback_later(WEDGED, exit=True)
        answer["init"] = library.cuInit(0)
        if answer["init"] == 0:
            answer["gpus"] = gpus(library)
        faulthandler.cancel_dump_traceback_later()
    except (OSError, AttributeError) as error:
        return dict(answer, error=str(error))
    stem = name.partition(".")[0] + "."
    paths = (path for path in libraries.mapped() if Path(path).name.lower().startswith(stem))
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return dict(answer, library=next(paths, name), cuda=None if status else cuda, error=None)


def gpus(library: ctypes.CDLL) -> list[dict[str, Any]]:
    """Return the GPUs that this process may use, in the order that onnxruntime counts them."""
    rows = []
    number, device = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDeviceGetCount(ctypes.byref(number))
    for index in range(number.value):
        name = ctypes.create_string_buffer(256)
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        library.cuDeviceGet(ctypes.byref(device), index)
        library.cuDeviceGetName(name, len(name), device)
        library.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        library.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        capability = f"{major.value}.{minor.value}"
        rows.append({"index": index, "name": name.value.decode(), "capability": capability})
    return rows


def chosen(machine: list[dict[str, Any]], ignored: list[str]) -> list[tuple[str | None, int]]:
    """Return one GPU of each kind, by name and index; None and 0 where there is none."""
    kinds: dict[str, int] = {}
    for gpu in machine:
        if gpu["capability"] not in ignored:
            kinds.setdefault(f"{gpu['name']} ({gpu['capability']})", gpu["index"])
    return list(kinds.items()) or [(None, 0)]


def preload(onnxruntime: ModuleType) -> None:
    """Call `preload_dlls` where it exists, as documented for NVIDIA's wheels."""
    if hasattr(onnxruntime, "preload_dlls"):
        tell("doing", what="preload_dlls")
        try:
            onnxruntime.preload_dlls(directory="")
            tell("preloaded", error=None)
        except Exception as error:  # noqa: BLE001 - an answer like every other
            tell("preloaded", error=smoke_torch.short(error))


def infer(
    onnxruntime: ModuleType, model: Path, providers: list[object], folder: Path
) -> dict[str, object]:
    """Run one model twice on the provider; return where its nodes ran and how right it was."""
    import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    result: dict[str, object] = {"name": model.stem, "nodes": [], "error": None}
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / model.stem)
    try:
        begin = time.perf_counter()
        session = onnxruntime.InferenceSession(
            str(model), options, providers=providers, enable_fallback=0
        )
        result["create_ms"] = milliseconds(begin)
        session.disable_fallback()
        stored = session.get_modelmeta().custom_metadata_map
        inputs, expected = (
            np.array(row["values"], np.float32).reshape(row["shape"])
            for row in (json.loads(stored[key]) for key in ("input", "expected"))
        )
        begin = time.perf_counter()
        session.run(None, {"input": inputs})
        result["first_ms"] = milliseconds(begin)
        begin = time.perf_counter()
        output = session.run(None, {"input": inputs})[0]
        result["second_ms"] = milliseconds(begin)
        result["deviation"] = None
        if output.shape == expected.shape and np.isfinite(output).all():
            scale = max(1.0, float(np.abs(expected).max()))
            result["deviation"] = float(np.abs(output - expected).max()) / scale
        result["nodes"] = placement(Path(session.end_profiling()))
    except Exception as error:  # noqa: BLE001 - an answer like every other
        result["error"] = smoke_torch.short(error)
    return result


def milliseconds(begin: float) -> float:
    """Return the time since `begin`."""
    return round((time.perf_counter() - begin) * 1000, 3)


def placement(profile: Path) -> list[dict[str, str]]:
    """Return which operator ran on which provider, each node once."""
    nodes = {}
    for event in json.loads(profile.read_text("utf-8")):
        arguments = event.get("args") or {}
        if event.get("cat") == "Node" and arguments.get("provider"):
            row = {"op": arguments["op_name"], "provider": arguments["provider"]}
            nodes[re.sub(r"_(kernel_time|fence_\w+)$", "", event["name"])] = row
    return list(nodes.values())


if __name__ == "__main__":
    main(sys.argv[1:])
