"""Reads machine and target environment.

What may hang or crash runs in child processes with time limits. Private data are removed here.
"""

import os
import platform
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..facts.capture import Capture, Child
from ..facts.driver_replies import parse_reply
from ..facts.parsers import SMI_FIELDS, SMI_OLD_FIELDS
from ..facts.redact import redact
from ..facts.target import Target, last_json_line, parse_target
from ..utils.child_environment import child_environment
from ..utils.process import Finished, Runner
from ..utils.programs import find_program
from .background import ProbeProcesses, describe_target, query_gpus, run_if_startable
from .interpreter import find_interpreter
from .libraries import dll_versions, find_dlls, find_libraries, find_text, find_toolkits, names_in
from .mistaken import check_complete

SMI_SECONDS = 10.0
_TEXTS = (
    "/etc/os-release",
    "/proc/sys/kernel/osrelease",
    "/proc/driver/nvidia/version",
    "/etc/nv_tegra_release",
)
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_VARIABLES = (
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONPATH",
    "VIRTUAL_ENV",
)


class ProbedMachine(NamedTuple):
    """The result of `probe`."""

    target: Target
    """The environment, with its real paths."""
    capture: Capture
    """Everything, without private data; `capture.facts` reads it."""


def target_of(
    python: str | None, *, environ: Mapping[str, str], cwd: Path, runner: Runner
) -> Target:
    """Return the environment that `python` names (`find_interpreter`), as it describes itself.

    Raises what `find_interpreter`, `describe_target`, `parse_target` and `check_complete` raise.
    """
    interpreter = find_interpreter(python, environ, cwd)
    return _complete_target(
        describe_target(interpreter, runner=runner, environ=environ), interpreter
    )


def described_target(processes: ProbeProcesses) -> Target:
    """Return the environment of `processes`; raises as `target_of`, but for `find_interpreter`."""
    return _complete_target(processes.inside.result(), processes.interpreter)


def _complete_target(stdout: str, interpreter: Path) -> Target:
    target = parse_target(stdout, str(interpreter))
    check_complete(target, interpreter)
    return target


def probe(
    processes: ProbeProcesses,
    *,
    runner: Runner,
    environ: Mapping[str, str],
    root: Path = Path("/"),
) -> ProbedMachine:
    """Return this machine and the environment of `processes`; `root` is `/` except in tests.

    Raises what `described_target` raises. What cannot be read of the machine is no
    error but a fact.
    """
    inside, target = processes.inside.result(), described_target(processes)
    conda = target.base_prefix if Path(target.base_prefix, "conda-meta").is_dir() else None
    windows = sys.platform == "win32"
    toolkits = find_toolkits(environ, conda, root, windows=windows)
    libraries = (
        find_dlls(environ, target.base_prefix, conda)
        if windows
        else find_libraries(environ, conda, platform.machine(), root, runner)
    )
    clean = _cleaner(environ)
    capture = Capture(
        system=sys.platform,
        machine=platform.machine(),
        inside=clean(last_json_line(inside)),
        texts={path: clean(text) for path, text in _texts(environ, root).items()},
        children=_query_driver(processes, clean, runner=runner, environ=environ, root=root),
        toolkits={clean(path): files for path, files in toolkits.items()},
        libraries=tuple((clean(path), clean(real)) for path, real in libraries),
        versions={clean(path): text for path, text in dll_versions(libraries).items()},
        environment={name: clean(environ[name]) for name in _VARIABLES if name in environ},
    )
    return ProbedMachine(target=target, capture=capture)


def _cleaner(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that removes this user's home and name from a text."""
    name = "USERPROFILE" if sys.platform == "win32" else "HOME"
    home = environ.get(name) or os.path.expanduser("~")  # noqa: PTH111 - knows what to do without
    user = environ.get("USER") or environ.get("LOGNAME") or environ.get("USERNAME")
    return partial(redact, home=home, user=user)


def _query_driver(
    processes: ProbeProcesses,
    clean: Callable[[str], str],
    *,
    runner: Runner,
    environ: Mapping[str, str],
    root: Path,
) -> dict[str, Child]:
    """Return the output of NVML and libcuda, and of nvidia-smi where NVML did not list the GPUs.

    nvidia-smi uses NVML: it is not run where NVML hangs, crashes or gives a lasting reason. Where
    NVML crashed, libcuda is queried in a child of its own.
    """
    first = _child(processes.gpu_query.result(), clean)
    children = {"gpu_query": first}
    nvml = parse_reply(first.stdout, "nvml", returncode=first.returncode, timed_out=first.timed_out)
    if nvml.state == "crashed":
        again = query_gpus("libcuda", runner=runner, environ=environ, seconds=processes.gpu_seconds)
        children["gpu_query libcuda"] = _child(again, clean)
    final = nvml.code in {9, 18} or nvml.state in {"hangs", "crashed"} or nvml.gpus is not None
    wsl = str(root / "usr/lib/wsl/lib")
    program = None if final else find_program("nvidia-smi", environ, wsl)
    if program is None:
        return children
    env = child_environment(environ, "compute") | {"LC_ALL": "C"}
    for fields in (SMI_FIELDS, SMI_OLD_FIELDS):
        argv = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        smi = run_if_startable(argv, runner=runner, env=env, seconds=SMI_SECONDS)
        children["nvidia-smi"] = _child(smi, clean)
        if smi is None or "not a valid field" not in smi.stdout:
            break
    return children


def _child(finished: Finished | None, clean: Callable[[str], str]) -> Child:
    if finished is None:
        return Child()
    return Child(clean(finished.stdout), finished.returncode, finished.timed_out)


def _texts(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    texts = {path: find_text(root / path[1:]) for path in _TEXTS}
    gpus = "/proc/driver/nvidia/gpus"
    for path in (f"{gpus}/{name}/information" for name in names_in(root / gpus[1:])):
        text = find_text(root / path[1:])
        if text is not None:  # `Model: \t\t NVIDIA A100-SXM4-80GB`; other lines are serial numbers
            lines = (line for line in text.splitlines() if line.startswith("Model:"))
            texts[path] = "".join(f"{line}\n" for line in lines)
    texts |= {path: "" for path in _CONTAINER_MARKS if (root / path[1:]).exists()}
    if "KUBERNETES_SERVICE_HOST" in environ:
        texts["KUBERNETES_SERVICE_HOST"] = ""
    if sys.platform == "win32":
        texts["windows"] = platform.version()
    else:
        texts["/sys/bus/pci/devices"] = _pci(root / "sys/bus/pci/devices") or None
    return {path: text for path, text in texts.items() if text is not None}


def _pci(folder: Path) -> str:
    """Return the NVIDIA display controllers, one a line: `0x10de 0x20b2 0x030200`."""
    rows = []
    for name in names_in(folder):
        texts = (find_text(folder / name / part) for part in ("vendor", "device", "class"))
        vendor, device, kind = ((text or "").strip() for text in texts)
        if vendor == "0x10de" and kind.startswith("0x03"):
            rows.append(f"{vendor} {device} {kind}\n")
    return "".join(rows)
