"""Read the machine and the target environment.

Everything that may hang or crash is a child with a time limit; they run side by side.
What is read is made fit to be shared here, before anything else sees it.
"""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..facts.capture import Capture, Child
from ..facts.driver_replies import parse_reply
from ..facts.parsers import SMI_FIELDS, SMI_OLD_FIELDS
from ..facts.redact import redact
from ..facts.target import Target
from ..facts.target_reply import last_json_line, parse_target
from ..utils.process import Finished, Runner, own_environment
from .background import ProbeProcesses, describe_target, query_gpus, run_if_startable
from .interpreter import find_interpreter
from .libraries import dll_versions, find_dlls, find_libraries, find_text, find_toolkits, names_in

SMI_SECONDS = 10.0
_TEXTS = (
    "/etc/os-release",
    "/proc/sys/kernel/osrelease",
    "/proc/driver/nvidia/version",
    "/etc/nv_tegra_release",
)
_MARKS = ("/.dockerenv", "/run/.containerenv")
_VARIABLES = (
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "VIRTUAL_ENV",
)


class ProbedMachine(NamedTuple):
    """What `probe` saw."""

    target: Target
    """The environment with its real paths, to work on."""
    capture: Capture
    """Everything, fit to be shared; `capture.facts` reads it."""


def target_of(
    python: str | None, *, environ: Mapping[str, str], cwd: Path, runner: Runner
) -> Target:
    """Return the environment that `python` names (`find_interpreter`), as it describes itself.

    Raises what `find_interpreter`, `describe_target` and `parse_target` raise.
    """
    interpreter = find_interpreter(python, environ, cwd)
    return parse_target(
        describe_target(interpreter, runner=runner, environ=environ), str(interpreter)
    )


def probe(
    processes: ProbeProcesses,
    *,
    runner: Runner,
    environ: Mapping[str, str],
    root: Path = Path("/"),
) -> ProbedMachine:
    """Look at this machine and at the environment that is being asked.

    `root` stands for `/` where files of the system are read. Raises Error as `asking.ask` and
    `parse_target` do; what the machine itself does not tell is not an error but a fact.
    """
    inside = processes.inside.result()
    target = parse_target(inside, str(processes.interpreter))
    conda = target.base_prefix if _is_conda(target) else None
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
        children=_ask_driver(processes, runner=runner, environ=environ, root=root),
        toolkits={clean(path): dict(told) for path, told in toolkits.items()},
        libraries=tuple((clean(path), clean(real)) for path, real in libraries),
        versions={clean(path): text for path, text in dll_versions(libraries).items()},
        environment={name: clean(environ[name]) for name in _VARIABLES if name in environ},
    )
    return ProbedMachine(target=target, capture=capture)


def _cleaner(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return what takes this user's home and name out of a text."""
    name = "USERPROFILE" if sys.platform == "win32" else "HOME"
    home = environ.get(name) or os.path.expanduser("~")  # noqa: PTH111 - knows what to do without
    user = environ.get("USER") or environ.get("LOGNAME") or environ.get("USERNAME")
    return partial(redact, home=home, user=user)


def _is_conda(target: Target) -> bool:
    return Path(target.base_prefix, "conda-meta").is_dir()


def _ask_driver(
    processes: ProbeProcesses, *, runner: Runner, environ: Mapping[str, str], root: Path
) -> dict[str, Child]:
    """Return what NVML and libcuda said, and nvidia-smi where NVML did not name the GPUs.

    nvidia-smi is NVML with another face: where NVML hangs, crashes or names a reason that will not
    go away, it is not asked. Where NVML crashed, libcuda is asked in a child of its own.
    """
    clean = _cleaner(environ)
    first = _child(processes.gpu_query.result(), clean)
    children = {"gpu_query": first}
    nvml = parse_reply(first.stdout, "nvml", returncode=first.returncode, timed_out=first.timed_out)
    if nvml.state == "crashed":
        again = query_gpus("libcuda", runner=runner, environ=environ, seconds=processes.gpu_seconds)
        children["gpu_query libcuda"] = _child(again, clean)
    final = nvml.code in {9, 18} or nvml.state in {"hangs", "crashed"}
    program = None if final or nvml.gpus is not None else _find_smi(environ, root)
    if program is not None:
        children["nvidia-smi"] = _child(_smi(program, runner=runner, environ=environ), clean)
    return children


def _child(answer: Finished | None, clean: Callable[[str], str]) -> Child:
    if answer is None:
        return Child()
    return Child(
        stdout=clean(answer.stdout), returncode=answer.returncode, timed_out=answer.timed_out
    )


def _find_smi(environ: Mapping[str, str], root: Path) -> str | None:
    places = [environ.get("PATH", ""), str(root / "usr/lib/wsl/lib")]
    return shutil.which("nvidia-smi", path=os.pathsep.join(places))


def _smi(program: str, *, runner: Runner, environ: Mapping[str, str]) -> Finished | None:
    """Ask nvidia-smi, again without the field that drivers before 510 do not know."""
    env = own_environment(environ) | {"LC_ALL": "C"}
    answer = None
    for fields in (SMI_FIELDS, SMI_OLD_FIELDS):
        argv = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        answer = run_if_startable(argv, runner=runner, env=env, seconds=SMI_SECONDS)
        if answer is None or "not a valid field" not in answer.stdout:
            break
    return answer


def _texts(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    found = {path: find_text(root / path[1:]) for path in _TEXTS}
    gpus = "/proc/driver/nvidia/gpus"
    for name in names_in(root / gpus[1:]):
        path = f"{gpus}/{name}/information"
        found[path] = _model(find_text(root / path[1:]))
    found |= {path: "" for path in _MARKS if (root / path[1:]).exists()}
    if "KUBERNETES_SERVICE_HOST" in environ:
        found["KUBERNETES_SERVICE_HOST"] = ""
    if sys.platform == "win32":
        found["windows"] = platform.version()
    else:
        found["/sys/bus/pci/devices"] = _pci(root / "sys/bus/pci/devices") or None
    return {path: text for path, text in found.items() if text is not None}


def _model(text: str | None) -> str | None:
    r"""Keep the one line that is no serial number: `Model: \t\t NVIDIA A100-SXM4-80GB`."""
    if text is None:
        return None
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("Model:"))


def _pci(folder: Path) -> str:
    """Return the NVIDIA display controllers, one a line: `0x10de 0x20b2 0x030200`."""
    rows = []
    for name in names_in(folder):
        texts = (find_text(folder / name / part) for part in ("vendor", "device", "class"))
        vendor, device, kind = ((text or "").strip() for text in texts)
        if vendor == "0x10de" and kind.startswith("0x03"):
            rows.append(f"{vendor} {device} {kind}\n")
    return "".join(rows)
