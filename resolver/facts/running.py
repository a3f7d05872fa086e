"""What a running process has loaded, seen from outside, and what that says of its sessions.

Core.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ..utils.mapped_files import DELETED
from .parsers import is_library

RunningVerdict = Literal[
    "no-onnxruntime", "cpu-build", "not-loaded", "not-on-gpu", "not-known", "on-gpu"
]
_ONNXRUNTIME = re.compile(
    r"onnxruntime_pybind11_state[\w.-]*\.(?:so|pyd)|libonnxruntime\.so[\d.]*|onnxruntime\.dll"
)
_IN_SITE = re.compile(r"(.+?)(?:/lib(?:64)?/python[\w.]+|\\Lib)[/\\]site-packages[/\\]")
_PROVIDER = re.compile(r"(?:lib)?onnxruntime_providers_(?!shared)(\w+)\.(?:so|dll)")
CUDA = "cuda"
_CONTEXT = re.compile(r"/dev/(?:nvidia-uvm|dxg|nvgpu/.*)|/dev/nvhost-ctrl-gpu")
"""What a process holds open that uses the GPU, and not the one that only asks for its name: the
driver's unified memory, WSL's device, those of a Jetson. Not seen on a real GPU yet.

Source: https://github.com/NVIDIA/open-gpu-kernel-modules (kernel-open/nvidia-uvm)
"""


class LoadedFile(NamedTuple):
    """A library in the process."""

    name: str
    path: str
    replaced: bool
    """The file there now is another one, or none: the process began before it changed."""


class GpuMemory(NamedTuple):
    """What NVML says that the process holds on a GPU."""

    gpu: int
    mib: int | None


class RunningProcess(NamedTuple):
    """A process, seen from outside."""

    pid: int
    command: str
    executable: str
    files: tuple[LoadedFile, ...]
    can_cuda: bool | None
    """The CUDA provider lies beside its onnxruntime; None where that cannot be seen."""
    environment: Mapping[str, str] | None
    """Those of its variables that decide; None where they cannot be read."""
    devices: tuple[str, ...] | None
    """The device files that it holds open; None where they cannot be read."""
    gpus: tuple[GpuMemory, ...] | None
    """None where NVML does not say."""

    @property
    def onnxruntime(self) -> tuple[LoadedFile, ...]:
        """Its onnxruntime; several where several are loaded."""
        return tuple(file for file in self.files if _ONNXRUNTIME.fullmatch(file.name))

    @property
    def providers(self) -> tuple[LoadedFile, ...]:
        """The libraries of the providers that are loaded."""
        return tuple(file for file in self.files if _PROVIDER.fullmatch(file.name))

    @property
    def cuda_libraries(self) -> tuple[LoadedFile, ...]:
        """The libraries of CUDA, cuDNN and TensorRT that are loaded."""
        return tuple(file for file in self.files if is_library(file.name))

    @property
    def twice(self) -> tuple[str, ...]:
        """The names of libraries that are loaded from several places, sorted."""
        places: dict[str, set[str]] = {}
        for file in (*self.onnxruntime, *self.providers, *self.cuda_libraries):
            places.setdefault(file.name, set()).add(file.path)
        return tuple(sorted(name for name, found in places.items() if len(found) > 1))

    @property
    def prefix(self) -> str:
        """The Python environment whose onnxruntime is loaded; empty where it is of none.

        Its program is the base interpreter, also of a venv.
        """
        found = (_IN_SITE.match(file.path) for file in self.onnxruntime)
        return next((match[1] for match in found if match), "")

    @property
    def holds_gpu(self) -> bool | None:
        """Whether it uses a GPU; None where neither NVML nor its open files can be seen."""
        if self.gpus:
            return True
        if self.devices is not None:
            return any(_CONTEXT.fullmatch(device) for device in self.devices)
        return None if self.gpus is None else False


def loaded_files(paths: tuple[str, ...]) -> tuple[LoadedFile, ...]:
    """Return the libraries among the mapped `paths` that concern us, by name."""
    found = []
    for path in paths:
        plain = path.removesuffix(DELETED)
        name = _asked_for(plain.replace("\\", "/").rpartition("/")[2])
        if is_library(name) or _ONNXRUNTIME.fullmatch(name) or _PROVIDER.fullmatch(name):
            found.append(LoadedFile(name, plain, replaced=plain != path))
    return tuple(sorted(found))


def _asked_for(name: str) -> str:
    """Return the name that a program asks for: `libcublas.so.13` for `libcublas.so.13.1.0.3`.

    A system's own libraries have their whole version in the name of the file.
    """
    stem, so, version = name.rpartition(".so.")
    asked = f"{stem}{so}{version.partition('.')[0]}"
    return asked if not is_library(name) and is_library(asked) else name


def judge_running(process: RunningProcess) -> RunningVerdict:
    """Return what the loaded files and the held devices say of its sessions."""
    if not process.onnxruntime:
        return "no-onnxruntime"
    names = {found[1] for file in process.providers if (found := _PROVIDER.fullmatch(file.name))}
    if CUDA not in names and process.can_cuda is False:
        return "cpu-build"
    if CUDA not in names:
        return "not-loaded"
    if process.holds_gpu is None:
        return "not-known"
    return "on-gpu" if process.holds_gpu else "not-on-gpu"
