"""Find, load and list the libraries of CUDA in the process that checks.

Part of the script `smoke`: run by the target's interpreter (3.8 or newer), standard library only.
A library that the loader does not find is loaded by full path from the environment's NVIDIA wheels.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
import struct
import sys
from pathlib import Path

CUDA_NAMES = re.compile(
    r"(lib)?(cuda|nvcuda|cudart|cublas|cublasLt|cudnn\w*|cufft|curand|cusolver|cusparse(Lt)?|nccl|"
    r"nvrtc[\w-]*|nvJitLink|nvinfer\w*|nvonnxparser\w*|nvidia-\w+|onnxruntime\w*)(\d\d_\w+)?\.(so|dll)\b[\d.]*"
)
NVRTC = {"11": "libnvrtc.so.11.2", "12": "libnvrtc.so.12", "13": "libnvrtc.so.13"}
CUFFT = {"11": "libcufft.so.10", "12": "libcufft.so.11", "13": "libcufft.so.12"}
LOADED_LATE = (1, 28)
"""From this release on cuDNN, cuFFT and NVRTC are not linked but loaded when first used."""
NOT_FOUND = "cannot open shared object file: No such file or directory"
HELPED: dict[str, str] = {}
"""The file of each library that only this script could load, by name."""
MAPS = Path("/proc/self/maps")


def load_before_import() -> None:
    """Load the libraries that releases up to 1.15 load on import."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec("onnxruntime")
        for name in wanted_on_import(Path(spec.origin).parent) if spec and spec.origin else []:
            load(name, [], wheel_folders())


def wanted_on_import(folder: Path) -> list[str]:
    """Return the CUDA libraries that a release up to 1.15 loads by name instead of linking them."""
    script = folder / "capi" / "_ld_preload.py"
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    names = re.findall(r"CDLL\(\"(lib[^\"]+)\"", text)
    return [name for name in dict.fromkeys(names) if CUDA_NAMES.fullmatch(name)]


def needed(
    folder: Path, version: str | None, *, helping: bool, plugin: str | None = None
) -> dict[str, object]:
    """Load each CUDA library that the provider needs; `helping`: from the wheels too.

    The provider lies in the `folder` of onnxruntime, or is the file `plugin`, whose own folder its
    module searches.
    """
    provider = Path(plugin or folder / "capi" / "libonnxruntime_providers_cuda.so")
    if sys.platform == "win32" or not provider.is_file():
        return {"cuda": None, "libraries": []}
    linked: list[str] = []
    places: list[Path] = []
    with contextlib.suppress(Exception):  # cut off, or no ELF file at all: onnxruntime will say so
        linked, places = dynamic(provider)
    names = [name for name in linked if CUDA_NAMES.fullmatch(name)] + wanted_on_import(folder)
    major = next((name.split(".so.")[1] for name in names if name.startswith("libcublas.")), "")
    late = []
    release = tuple(int(part) for part in re.findall(r"\d+", version or "")[:2])
    if major and release >= LOADED_LATE:
        late = [name for name in ("libcudnn.so.9", CUFFT.get(major)) if name and name not in names]
    wheels = wheel_folders() if helping else []
    own = [path.name for path in provider.parent.iterdir()] if plugin else []
    names = [name for name in names if not any(file.startswith(name) for file in own)]
    rows = [dict(load(name, places, wheels), optional=False) for name in names + late]
    if major in NVRTC and NVRTC[major] not in names:  # cuDNN uses it if it is there
        rows.append(dict(load(NVRTC[major], places, wheels), optional=True))
    return {"cuda": major or None, "libraries": rows}


def wheel_folders() -> list[Path]:
    """Return the library folders of NVIDIA's wheels in this environment."""
    roots = [Path(entry) / "nvidia" for entry in sys.path if entry]
    return [folder for root in roots for folder in sorted(root.glob("*/lib"))]


def load(name: str, places: list[Path], wheels: list[Path]) -> dict[str, object]:
    """Load a library after those that it needs; return its name, error and path in a wheel.

    `places` are the folders that the provider names, `wheels` those that no loader knows.
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
    """Load a file after the libraries that it needs; return None, or the loader's error."""
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
    origin = str(path.resolve().parent)
    return (
        [text(value) for tag, value in tags if tag == 1],  # DT_NEEDED
        [Path(folder.replace("$ORIGIN", origin)) for folder in folders.split(":") if folder],
    )


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
    """Return the paths of the DLLs of this process."""
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
    """Let the loader find the DLLs of NVIDIA's wheels and of torch."""
    if sys.platform == "win32":
        for entry in filter(None, sys.path):
            for pattern in ("nvidia/*/bin", "nvidia/*/bin/x86_64", "torch/lib"):
                for folder in Path(entry).glob(pattern):
                    os.add_dll_directory(str(folder.resolve()))
                    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
