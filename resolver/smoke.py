"""Run real inference in the target environment and tell, step by step, what happened.

    TARGET_PYTHON smoke.py [--plain] [--provider NAME] MODEL.onnx …

Script: run by the target's interpreter (3.8 or newer), with the standard library and the target's
own onnxruntime and numpy. It prints one JSON object a line, and one before each step that may kill
the process: old releases crash where there is no driver, and how far they came is an answer too.
Everything that other code prints goes to stderr. It decides nothing: `verdict` does.

Without `--plain` it helps as an application could: it calls `preload_dlls()`, and then loads from
the environment's NVIDIA wheels what the provider links and nothing else has loaded.
"""

from __future__ import annotations

import os
import sys

if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):  # noqa: PTH100, PTH120
    del sys.path[0]  # what lies beside this script is not the target's

import contextlib
import ctypes
import faulthandler
import importlib.util
import json
import re
import struct
import tempfile
import time
import traceback
from pathlib import Path
from types import ModuleType

CUDA_NAMES = re.compile(
    r"(lib)?(cuda|nvcuda|cudart|cublas|cublasLt|cudnn\w*|cufft|curand|nvrtc[\w-]*|nvJitLink|"
    r"nvidia-\w+|onnxruntime\w*)(\d\d_\w+)?\.(so|dll)\b[\d.]*"
)
NVRTC = {"11": "libnvrtc.so.11.2", "12": "libnvrtc.so.12", "13": "libnvrtc.so.13"}
CUFFT = {"11": "libcufft.so.10", "12": "libcufft.so.11", "13": "libcufft.so.12"}
LOADED_LATE = (1, 28)
"""From this release on cuDNN, cuFFT and NVRTC are not linked but loaded when first used."""
NOT_FOUND = "cannot open shared object file: No such file or directory"
HELPED: dict[str, str] = {}
"""What only this script could load, by name, and from which file."""
MAPS = Path("/proc/self/maps")

answers = sys.stdout
if __name__ == "__main__":  # what the target's code prints must not mix with the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)


def tell(event: str, **values: object) -> None:
    """Print one answer; nothing of it is lost when the process dies right after."""
    print(json.dumps(dict(values, event=event)), file=answers, flush=True)


def main(arguments: list[str]) -> None:
    """Do every step, each in its own event."""
    faulthandler.enable()
    plain = "--plain" in arguments
    provider = "CUDAExecutionProvider"
    if "--provider" in arguments:
        provider = arguments.pop(arguments.index("--provider") + 1)
    models = [Path(argument) for argument in arguments if not argument.startswith("--")]
    tell("start", python=sys.version.split()[0], plain=plain)
    tell("driver", **driver())
    if not plain:
        add_windows_folders()
        load_before_import()
    tell("doing", what="import onnxruntime")
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        tell("onnxruntime", file=None, version=None, error=short(error), whole=False)
        return
    version = getattr(onnxruntime, "__version__", None)
    cuda = getattr(onnxruntime, "cuda_version", None) or None
    origin = getattr(onnxruntime, "__file__", None)
    whole = origin is not None and hasattr(onnxruntime, "InferenceSession")
    tell("onnxruntime", file=origin, version=version, cuda=cuda, error=None, whole=whole)
    if not origin or not whole:
        return
    if not plain:
        preload(onnxruntime)
    tell("needed", **needed(Path(origin).parent, version, helping=not plain))
    tell("loaded", libraries=loaded())
    with tempfile.TemporaryDirectory(prefix="ortgpu-fix-") as folder:
        for model in models:
            tell("doing", what="inference", model=model.stem)
            tell("model", **infer(onnxruntime, model, provider, Path(folder)))
            tell("loaded", libraries=loaded())
        tell("end")


def short(error: BaseException) -> str:
    """Return the error as one line."""
    return " ".join("".join(traceback.format_exception_only(type(error), error)).split())


def driver() -> dict[str, object]:
    """Return what the driver's own library answers, and whether it can be started."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    version = ctypes.c_int(0)
    try:
        library = ctypes.CDLL(name)
        status = library.cuDriverGetVersion(ctypes.byref(version))
        tell("doing", what="cuInit")
        started = library.cuInit(0)
    except (OSError, AttributeError) as error:
        return {"library": None, "cuda": None, "init": None, "error": str(error)}
    stem = name.partition(".")[0] + "."
    path = next((path for path in mapped() if Path(path).name.lower().startswith(stem)), name)
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return {"library": path, "cuda": None if status else cuda, "init": started, "error": None}


def load_before_import() -> None:
    """Load what releases up to 1.15 want to find when they are imported."""
    with contextlib.suppress(ImportError, ValueError):
        found = importlib.util.find_spec("onnxruntime")
        for name in wanted_on_import(Path(found.origin).parent) if found and found.origin else []:
            load(name, [], wheel_folders())


def wanted_on_import(folder: Path) -> list[str]:
    """Return the CUDA libraries that a release up to 1.15 loads by name instead of linking them."""
    script = folder / "capi" / "_ld_preload.py"
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    names = re.findall(r"CDLL\(\"(lib[^\"]+)\"", text)
    return [name for name in dict.fromkeys(names) if CUDA_NAMES.fullmatch(name)]


def preload(onnxruntime: ModuleType) -> None:
    """Call the official helper where it exists, as its documentation says for NVIDIA's wheels."""
    if hasattr(onnxruntime, "preload_dlls"):
        tell("doing", what="preload_dlls")
        try:
            onnxruntime.preload_dlls(directory="")
            tell("preloaded", error=None)
        except Exception as error:  # noqa: BLE001 - an answer like every other
            tell("preloaded", error=short(error))


def needed(folder: Path, version: str | None, *, helping: bool) -> dict[str, object]:
    """Try to load each CUDA library that the provider needs; return which could not be.

    A name that the loader finds already is left to it; where `helping`, the rest is looked for in
    the environment's own wheels and loaded by full path, for the provider to find by its name.
    """
    provider = folder / "capi" / "libonnxruntime_providers_cuda.so"
    if sys.platform == "win32" or not provider.is_file():
        return {"cuda": None, "libraries": []}
    linked: list[str] = []
    places: list[Path] = []
    with contextlib.suppress(Exception):  # cut off, or no ELF file at all: onnxruntime will say so
        linked, places = dynamic(provider)
    names = [name for name in linked if CUDA_NAMES.fullmatch(name)] + wanted_on_import(folder)
    major = next((name.split(".so.")[1] for name in names if name.startswith("libcublas.")), "")
    late = []
    if tuple(int(part) for part in re.findall(r"\d+", version or "")[:2]) >= LOADED_LATE:
        late = [name for name in ("libcudnn.so.9", CUFFT.get(major)) if name and name not in names]
    wheels = wheel_folders() if helping else []
    rows = [dict(load(name, places, wheels), optional=False) for name in names + late]
    if major in NVRTC and NVRTC[major] not in names:  # cuDNN uses it if it is there
        rows.append(dict(load(NVRTC[major], places, wheels), optional=True))
    return {"cuda": major or None, "libraries": rows}


def wheel_folders() -> list[Path]:
    """Return where NVIDIA's wheels have put their libraries in this environment."""
    roots = [Path(entry) / "nvidia" for entry in sys.path if entry]
    return [folder for root in roots for folder in sorted(root.glob("*/lib"))]


def load(name: str, places: list[Path], wheels: list[Path]) -> dict[str, object]:
    """Load one library, and before it what it needs itself; return its name and how it went.

    `places` are the folders that the provider itself names, `wheels` those that no loader knows.
    """
    with contextlib.suppress(OSError):
        ctypes.CDLL(name)
        return {"name": name, "error": None, "helped": HELPED.get(name)}
    error: str | None = NOT_FOUND
    for folder in places + wheels:
        if (folder / name).is_file():
            error = load_file(folder / name, places, wheels)
            if error is None:
                if folder not in places:
                    HELPED[name] = str(folder / name)
                return {"name": name, "error": None, "helped": HELPED.get(name)}
    return {"name": name, "error": error, "helped": None}


def load_file(
    path: Path, places: list[Path], wheels: list[Path], tried: frozenset[str] = frozenset()
) -> str | None:
    """Load one file, after what it misses; return None, or what the loader said in the end."""
    try:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as problem:
        first = re.match(r"(lib[\w.+-]+\.so[\d.]*): cannot open shared object", str(problem))
        if not first or first.group(1) in tried:
            return str(problem)
        load(first.group(1), places, wheels)
        return load_file(path, places, wheels, tried | {first.group(1)})
    return None


def dynamic(path: Path) -> tuple[list[str], list[Path]]:
    """Return the libraries that an ELF file links, and the folders that it names for them."""
    with path.open("rb") as file:
        header = file.read(64)
        (start,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(start)
        table = file.read(size * count)
        segments = [struct.unpack_from("<I4xQQ8xQ", table, at * size) for at in range(count)]
        _, offset, _, length = next(row for row in segments if row[0] == 2)  # noqa: PLR2004 - PT_DYNAMIC
        file.seek(offset)
        tags = list(struct.iter_unpack("<QQ", file.read(length // 16 * 16)))
        where, length = dict(tags)[5], dict(tags)[10]  # DT_STRTAB, DT_STRSZ
        _, offset, address, _ = next(
            row for row in segments if row[0] == 1 and row[2] <= where < row[2] + row[3]
        )
        file.seek(offset + where - address)
        strings = file.read(length)

    def text(at: int) -> str:
        return strings[at : strings.index(b"\0", at)].decode("utf-8", "replace")

    folders = ":".join(text(value) for tag, value in tags if tag in {15, 29})  # DT_R(UN)PATH
    here = str(path.resolve().parent)
    return (
        [text(value) for tag, value in tags if tag == 1],  # DT_NEEDED
        [Path(folder.replace("$ORIGIN", here)) for folder in folders.split(":") if folder],
    )


def infer(onnxruntime: ModuleType, model: Path, provider: str, folder: Path) -> dict[str, object]:
    """Run one model twice on the provider; return where its nodes ran and how right it was."""
    import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    result: dict[str, object] = {"name": model.stem, "nodes": [], "error": None}
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / model.stem)
    try:
        begin = time.perf_counter()
        session = onnxruntime.InferenceSession(
            str(model), options, providers=[provider], enable_fallback=0
        )
        result["create_ms"] = milliseconds(begin)
        session.disable_fallback()
        stored = session.get_modelmeta().custom_metadata_map
        given, expected = (
            np.array(row["values"], np.float32).reshape(row["shape"])
            for row in (json.loads(stored[key]) for key in ("input", "expected"))
        )
        begin = time.perf_counter()
        session.run(None, {"input": given})
        result["first_ms"] = milliseconds(begin)
        begin = time.perf_counter()
        output = session.run(None, {"input": given})[0]
        result["second_ms"] = milliseconds(begin)
        result["deviation"] = None
        if output.shape == expected.shape and np.isfinite(output).all():
            scale = max(1.0, float(np.abs(expected).max()))
            result["deviation"] = float(np.abs(output - expected).max()) / scale
        result["nodes"] = placement(Path(session.end_profiling()))
    except Exception as error:  # noqa: BLE001 - an answer like every other
        result["error"] = short(error)
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


def loaded() -> list[dict[str, str]]:
    """Return the CUDA-side libraries in this process, from which file each."""
    rows = ({"name": Path(path).name, "path": path} for path in sorted(mapped()))
    return [row for row in rows if CUDA_NAMES.fullmatch(row["name"])]


def mapped() -> set[str]:
    """Return the paths of all files that this process has loaded."""
    if sys.platform == "win32":
        return windows_modules()
    lines = MAPS.read_text("utf-8", "replace").splitlines()
    return {line[line.index("/") :] for line in lines if "/" in line}


def windows_modules() -> set[str]:
    """Return the paths of the DLLs of this process; not run on Windows so far."""
    paths: set[str] = set()
    if sys.platform == "win32":
        kernel, psapi = ctypes.WinDLL("kernel32"), ctypes.WinDLL("psapi")
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        process = ctypes.c_void_p(kernel.GetCurrentProcess())
        handles, size = (ctypes.c_void_p * 4096)(), ctypes.c_ulong()
        psapi.EnumProcessModules(process, handles, ctypes.sizeof(handles), ctypes.byref(size))
        name = ctypes.create_unicode_buffer(32768)
        for handle in handles[: size.value // ctypes.sizeof(ctypes.c_void_p)]:
            if psapi.GetModuleFileNameExW(process, ctypes.c_void_p(handle), name, len(name)):
                paths.add(name.value)
    return paths


def add_windows_folders() -> None:
    """Let the loader find the DLLs of NVIDIA's wheels and of torch; not run on Windows so far."""
    if sys.platform == "win32":
        for entry in filter(None, sys.path):
            for pattern in ("nvidia/*/bin", "nvidia/*/bin/x86_64", "torch/lib"):
                for folder in Path(entry).glob(pattern):
                    os.add_dll_directory(str(folder.resolve()))
                    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"


if __name__ == "__main__":
    main(sys.argv[1:])
