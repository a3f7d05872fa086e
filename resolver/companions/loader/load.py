"""Load CUDA's libraries by their full path, for onnxruntime to find them loaded.

Shell, and not ours: it travels in the wheel that `companions` makes, as `load.py` of the package
`_ortgpu_fix_libraries`, and runs in the target's interpreter (Python 3.8 and newer) when CUDA is
asked for (`demand`). A loader that meets a name which is loaded already looks no further; that is
all that happens here, so nothing is changed that anyone else could notice.

`libraries.txt` beside it names the files, one a line, in the order in which they are loaded:

    always nvidia-cublas-cu12 nvidia/cublas/lib/libcublasLt.so.12
    shadowed nvidia-cudnn-cu12 nvidia/cudnn/lib/libcudnn_graph.so.9

The libraries of one distribution come from one folder. It is the one that some of them are loaded
from already (torch, or whoever was first), else torch's own, where torch carries them, else theirs.
`shadowed` are those that their users find beside themselves; they are loaded only where a folder of
LD_LIBRARY_PATH, which comes first, has another of that name. `newer` are those of the Visual C++
runtime, loaded only where they are newer than what Windows has.

What is done on Windows was tested against a simulation of it only.

Nothing here raises, and without ORTGPU_FIX_DEBUG=1 nothing is printed: what is missing is told by
`lost`, once, and by onnxruntime.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH100, PTH112, PTH113, PTH118, PTH120, PTH121, PTH123, PTH208, T201
from __future__ import annotations

import ctypes
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PROVIDERS = ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")
TENSORRT = {
    *("libnvinfer.so.", "libnvinfer_plugin.so.", "libnvonnxparser.so."),
    *("nvinfer_", "nvinfer_plugin_", "nvonnxparser_"),
}
"""What the names of TensorRT's libraries begin with, before its major and `.dll`."""
DIGITS = "0123456789"
RTLD_DI_LINKMAP = 2
MISSED: list[str] = []
"""Libraries of the list that are not there."""
KEPT: list[object] = []
"""The folders that Windows searches, for as long as this process lives."""


def say(text: str) -> None:
    """Print a line for whoever asks what happens here."""
    if os.environ.get("ORTGPU_FIX_DEBUG", "0") not in {"", "0"} and sys.stderr is not None:
        print("ortgpu-fix: " + text, file=sys.stderr, flush=True)


def has_provider(folder: str) -> bool:
    """Tell whether the onnxruntime in `folder` is built for CUDA."""
    capi = os.path.join(folder, "capi")
    if any(os.path.isfile(os.path.join(capi, name)) for name in PROVIDERS):
        return True
    say("no CUDA provider in " + capi + ": nothing is loaded")
    return False


def release() -> str:
    """Return the distribution and release of onnxruntime that the libraries belong to."""
    try:
        with open(os.path.join(HERE, "release.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def is_by_plugin() -> bool:
    """Tell whether CUDA comes to the plain onnxruntime as a plugin, which may be registered later.

    From a distribution of its own, or from the folder of onnxruntime itself.
    """
    return release().startswith("onnxruntime ")


def is_release(module: Any, release: str) -> bool:
    """Tell whether `release` (`onnxruntime-gpu 1.26.0`) is there by its metadata, and has CUDA."""
    site = os.path.dirname(os.path.dirname(module.__file__))
    name = release.replace("-", "_").replace(" ", "-") + ".dist-info"
    return os.path.isdir(os.path.join(site, name)) and (is_by_plugin() or has_cuda(module))


def has_cuda(module: Any) -> bool:
    """Tell whether the onnxruntime `module` is built for CUDA; a very old one does not tell."""
    available = getattr(module, "get_available_providers", None)
    return available is None or "CUDAExecutionProvider" in available()


def load_all(only: str = "") -> None:
    """Load what the list names, or the libraries among it that have `only` in their name."""
    roots = list(dict.fromkeys([os.path.dirname(HERE), *filter(None, sys.path)]))
    groups: dict[str, list[tuple[str, str]]] = {}
    with open(os.path.join(HERE, "libraries.txt"), encoding="utf-8") as file:
        for line in file:
            when, group, path = line.rstrip("\n").split(" ", 2)
            if only in path.rpartition("/")[2]:
                groups.setdefault(group, []).append((when, path))
    for entries in groups.values():
        load_group(entries, roots)


def load_tensorrt() -> None:
    """Load the libraries that TensorRT's provider links from NVIDIA's wheel, if that is there."""
    for root in filter(None, sys.path):
        folder = os.path.join(root, "tensorrt_libs")
        if os.path.isdir(folder):
            names = sorted(os.listdir(folder))  # no library links one that comes after it
            wanted = [name for name in names if name.replace(".dll", "").rstrip(DIGITS) in TENSORRT]
            load_group([("always", "tensorrt_libs/" + name) for name in wanted], [root])


def load_group(entries: list[tuple[str, str]], roots: list[str]) -> None:
    """Load the libraries of one distribution, all from one folder."""
    files = {path.rpartition("/")[2]: find(path, roots) for _, path in entries}
    folder = elsewhere(files, roots)
    if folder is not None:
        files = {name: os.path.join(folder, name) for name in files}
    if sys.platform == "win32":
        folders = {os.path.dirname(file) for file in files.values()}
        KEPT.extend(os.add_dll_directory(place) for place in folders if os.path.isdir(place))
    for when, path in entries:
        name = path.rpartition("/")[2]
        there = loaded(name)
        if there is not None:
            say(name + " is loaded already: " + there)
        elif WANTED[when](name, files[name]):
            if when == "always" and folder is None and not os.path.isfile(files[name]):
                MISSED.append(files[name])
            load(files[name])


def find(path: str, roots: list[str]) -> str:
    """Return the full path of a file below one of `roots`; where none has it, below the first."""
    tries = [os.path.normpath(os.path.join(root, *path.split("/"))) for root in roots]
    return next((file for file in tries if os.path.isfile(file)), tries[0])


def elsewhere(files: dict[str, str], roots: list[str]) -> str | None:
    """Return the folder that libraries of these names must come from, None for their own."""
    for name, file in files.items():
        there = loaded(name)
        if there is not None:
            return None if same(there, file) else os.path.dirname(there)
    for root in roots:
        torch = os.path.join(root, "torch", "lib")
        if any(os.path.isfile(os.path.join(torch, name)) for name in files):
            return torch
    return None


def same(one: str, other: str) -> bool:
    """Tell whether two paths are one file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def shadowed(name: str, file: str) -> bool:
    """Tell whether the loader would take another file of this name for those who ask for it."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":"):
        other = os.path.join(folder, name)
        if folder and os.path.isfile(other):
            return not same(other, file)
    return False


def newer(name: str, file: str) -> bool:
    """Tell whether Windows itself has no file of this name, or an older one."""
    system = os.path.join(os.environ.get("SYSTEMROOT", "C:\\Windows"), "System32", name)
    return not os.path.isfile(system) or file_version(system) < file_version(file)


def file_version(file: str) -> tuple[int, ...]:
    """Return the version that a DLL carries: VS_FIXEDFILEINFO, found by how it begins."""
    try:
        with open(file, "rb") as stream:
            content = stream.read()
    except OSError:
        return ()
    at = content.find(b"\xbd\x04\xef\xfe\x00\x00\x01\x00")
    return struct.unpack_from("<II", content, at + 8) if at >= 0 else ()


WANTED = {"always": lambda name, file: True, "shadowed": shadowed, "newer": newer}  # noqa: ARG005


def load(file: str) -> None:
    """Load one file, for good."""
    if not os.path.isfile(file):
        say("missing: " + file)
        return
    try:
        if sys.platform == "win32":
            ctypes.WinDLL(file)
        else:
            ctypes.CDLL(file)
    except OSError as error:
        say("not loaded: " + file + ": " + str(error))
    else:
        say("loaded " + file)


def loaded(name: str) -> str | None:
    """Return the file that a loaded library of this name came from, None where none is loaded."""
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32")
        kernel.GetModuleHandleW.argtypes = [ctypes.c_wchar_p]
        kernel.GetModuleHandleW.restype = ctypes.c_void_p
        kernel.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_ulong]
        handle = kernel.GetModuleHandleW(name)
        text = ctypes.create_unicode_buffer(32768)
        found = bool(handle) and kernel.GetModuleFileNameW(handle, text, len(text))
        return text.value if found else None
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
    except OSError:
        return None
    return origin(library._handle)  # noqa: SLF001


class LinkMap(ctypes.Structure):
    """The head of `struct link_map` of <link.h>."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def origin(handle: int) -> str:
    """Return the path that a loaded library has for the loader; nothing where it does not tell."""
    there = ctypes.POINTER(LinkMap)()
    try:
        dlinfo = ctypes.CDLL(None).dlinfo
        if dlinfo(ctypes.c_void_p(handle), RTLD_DI_LINKMAP, ctypes.byref(there)) == 0:
            return os.fsdecode(there.contents.name)
    except (AttributeError, ValueError):  # a C library without it
        pass
    return ""
