"""Look at a running process from outside: nothing is stopped, and nothing put into it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error
from ..facts.running import GpuMemory, LoadedFile, RunningProcess, loaded_files
from ..utils.json_reader import read_rows
from ..utils.mapped_files import PROC, mapped_files
from ..utils.process import Runner
from .background import GPU_SECONDS, query_gpus
from .libraries import find_text
from .provider import PROVIDERS

_VARIABLES = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("NVIDIA_DRIVER_CAPABILITIES", "CUDA_MODULE_LOADING", "CUDA_PATH", "VIRTUAL_ENV"),
    *("ORTGPU_FIX_AUTOLOAD", "ORTGPU_FIX_REQUIRE", "ORTGPU_FIX_PROVIDERS", "ORTGPU_FIX_NOTICE"),
)
_NAMED_FOR_CPUS = re.compile(r"^package_name *= *['\"]onnxruntime['\"]", re.MULTILINE)
_DEVICE = re.compile(r"/dev/(?:nvidia|nvhost|nvgpu|nvmap|dxg)")


def look_at_process(
    pid: int, *, runner: Runner, environ: Mapping[str, str], proc: Path = PROC
) -> RunningProcess:
    """Return what can be seen of the process `pid`.

    Raises Error `process-unknown` where there is none, and `process-unreadable` where the system
    does not show it: another user's, or one that is kept from root too.
    """
    try:
        mapped = mapped_files(pid, proc)
    except ProcessLookupError as error:
        raise Error("process-unknown", pid=pid) from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Error("process-unreadable", pid=pid, cause=why) from error
    home, files = proc / str(pid), loaded_files(mapped)
    windows = sys.platform == "win32"
    executable = mapped[0] if windows and mapped else _link(home / "exe")
    words = () if windows else _words(home / "cmdline") or ()
    return RunningProcess(
        pid=pid,
        command=" ".join(words) or executable,
        executable=executable,
        files=files,
        can_cuda=_can_cuda(files, None if windows else home / "root"),
        environment=None if windows else _environment(home),
        devices=None if windows else _devices(home / "fd"),
        gpus=_held(pid, runner=runner, environ=environ),
    )


def _words(file: Path) -> tuple[str, ...] | None:
    """Return the words of a file, each of which a zero byte ends; None where it is unreadable."""
    try:
        text = file.read_bytes().decode(errors="replace")
    except OSError:
        return None
    return tuple(word for word in text.split("\0") if word)


def _link(path: Path) -> str:
    with contextlib.suppress(OSError):
        return str(path.readlink())
    return ""


def _environment(home: Path) -> dict[str, str] | None:
    rows = _words(home / "environ")
    if rows is None:
        return None
    pairs = (row.partition("=") for row in rows)
    return {name: text for name, _, text in pairs if name in _VARIABLES}


def _devices(folder: Path) -> tuple[str, ...] | None:
    """Return the device files of NVIDIA that the process holds open; None where that is unseen."""
    try:
        links = {_link(entry) for entry in folder.iterdir()}
    except OSError:
        return None
    return tuple(sorted(filter(_DEVICE.match, links)))


def _can_cuda(files: tuple[LoadedFile, ...], root: Path | None) -> bool | None:
    """Tell whether one of the loaded libraries of onnxruntime is of a build with CUDA.

    `root` is the process's own `/`: it may be in a container.
    """
    files = tuple(file for file in files if "onnxruntime" in file.name)
    folders = {f"{root or ''}{os.path.dirname(file.path)}" for file in files}  # noqa: PTH120
    try:
        return any(map(_has_cuda, folders))
    except OSError:
        return None


def _has_cuda(folder: str) -> bool:
    """Tell whether the build in a folder has CUDA. Raises OSError where it cannot be read.

    The build for CPUs says so, and overwrites no provider that another left there.
    """
    beside = os.listdir(folder)  # noqa: PTH208
    info = find_text(Path(folder, "build_and_package_info.py")) or ""
    for_cpus = _NAMED_FOR_CPUS.search(info) is not None and "cuda_version" not in info
    return not for_cpus and not set(PROVIDERS).isdisjoint(beside)


def _held(pid: int, *, runner: Runner, environ: Mapping[str, str]) -> tuple[GpuMemory, ...] | None:
    """Return what NVML says that the process holds; in a container it knows other numbers."""
    asked = query_gpus("nvml", "held", runner=runner, environ=environ, seconds=GPU_SECONDS)
    rows = [row for row in read_rows(asked.stdout if asked else "") if row.has("held")]
    if not rows:
        return None
    return tuple(
        GpuMemory(row.integer("gpu") or 0, None if memory is None else memory >> 20)
        for row in rows[-1].rows("held")
        if row.integer("pid") == pid
        for memory in [row.integer("memory")]
    )
