"""The raw texts that `probe` read of a machine and an environment, and the facts in them.

The JSON of a `Capture` is also how a machine is recorded for the tests. Homes, host names and
serial numbers were replaced when it was made.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

from ..errors import Error
from . import model
from .document import as_table
from .driver import Evidence, judge_driver
from .driver_replies import LibraryReply, parse_reply
from .model import Architecture, Facts, Library, Platform, System, Toolkit
from .parsers import (
    parse_file_version,
    parse_os_release,
    parse_pci,
    parse_proc_gpu,
    parse_proc_version,
    parse_smi,
    parse_toolkit,
)
from .target import Target, packages_of, parse_target, python_of

SCHEMA = 1
_SYSTEMS: dict[str, System] = {"linux": "linux", "win32": "windows"}
_NAMES = {"darwin": "macOS"}
"""The names of other systems, by `sys.platform`."""
_CONTAINERS = {
    "/run/.containerenv": "podman",
    "/.dockerenv": "docker",
    "KUBERNETES_SERVICE_HOST": "kubernetes",
}


class Child(NamedTuple):
    """The output and the end of a child process."""

    stdout: str = ""
    returncode: int | None = None
    """None where it could not be started."""
    timed_out: bool = False


class Capture(NamedTuple):
    """Raw texts and the output of children, each under its source."""

    system: str
    """`sys.platform`: `linux`, `win32`."""
    machine: str
    """`platform.machine()`: `x86_64`, `AMD64`, `aarch64`."""
    inside: str
    """What `describe_target` printed in the target environment."""
    texts: Mapping[str, str] = MappingProxyType({})
    """Files by path; one that is missing did not exist or was not readable."""
    children: Mapping[str, Child] = MappingProxyType({})
    """`gpu_query`, `gpu_query libcuda` (where NVML crashed the first one), `nvidia-smi`."""
    toolkits: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """The files with the version of each CUDA toolkit, by its folder."""
    libraries: tuple[tuple[str, str], ...] = ()
    """Path and real path of each library of interest, in the order of the loader."""
    versions: Mapping[str, str] = MappingProxyType({})
    """The versions of DLLs of `libraries`, by path."""
    environment: Mapping[str, str] = MappingProxyType({})


def to_json(capture: Capture) -> dict[str, object]:
    """Return the document of `capture`, ready for `json.dumps`."""
    document = {"schema": SCHEMA, **as_table(capture)}
    if not capture.versions:  # as everywhere but on Windows
        del document["versions"]
    return document


def from_json(document: object) -> Capture:
    """Read the document that `to_json` writes. Raises Error `capture-invalid`."""
    try:
        values = dict(cast("dict[str, object]", document))
        if values.pop("schema") != SCHEMA:
            raise Error("capture-invalid", problem="schema")
        children = cast("dict[str, dict[str, object]]", values.pop("children", {}))
        libraries = cast("list[list[str]]", values.pop("libraries", []))
        return Capture(
            **cast("dict[str, str]", values),  # type: ignore[arg-type]
            children={name: Child(**child) for name, child in children.items()},  # type: ignore[arg-type]
            libraries=tuple((path, real) for path, real in libraries),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Error("capture-invalid", problem=str(error)) from error


def facts(
    capture: Capture, gpu_names: Callable[[str], str | None], *, elsewhere: bool = False
) -> Facts:
    """Return the facts in `capture`; `gpu_names` gives a compute capability by product name.

    `elsewhere`: they are to stand for another machine, which is one with Linux on x86_64 where this
    system has no wheels.

    Raises Error `platform-unsupported` (there are no wheels for the system), and what
    `parse_target` raises.
    """
    target = parse_target(capture.inside, "inside")
    if elsewhere and capture.system not in _SYSTEMS:
        platform = Platform(system="linux", machine="x86_64")
    else:
        platform = _platform(capture, target)
    reading = judge_driver(_evidence(capture), gpu_names)
    windows = platform.system == "windows"
    return Facts(
        platform=platform,
        driver=reading.driver,
        gpus=reading.gpus,
        python=python_of(target),
        packages=packages_of(target),
        toolkits=tuple(
            Toolkit(version=parse_toolkit(files), path=path)
            for path, files in capture.toolkits.items()
        ),
        libraries=_libraries(capture),
        onnxruntime=target.build,
        environment=dict(capture.environment),
        sources={**reading.sources, **({model.LIBRARIES_SEARCHED: "search"} if windows else {})},
    )


def _platform(capture: Capture, target: Target) -> Platform:
    if capture.system not in _SYSTEMS:
        name = _NAMES.get(capture.system, capture.system)
        raise Error("platform-unsupported", system=name, machine=capture.machine)
    return Platform(
        system=_SYSTEMS[capture.system],
        machine=_machine(capture, target),
        libc=target.libc,
        distribution=_distribution(capture),
        wsl="microsoft" in capture.texts.get("/proc/sys/kernel/osrelease", "").lower(),
        container=next((name for mark, name in _CONTAINERS.items() if mark in capture.texts), None),
        jetson=next(iter(capture.texts.get("/etc/nv_tegra_release", "").splitlines()), None),
    )


def _machine(capture: Capture, target: Target) -> Architecture:
    """Return the architecture of the target's own tag: `linux-x86_64`, `win-amd64`.

    An interpreter of 32 bits on a machine of 64 can use the wheels of neither.
    """
    machine = target.machine
    if target.bits != 64 or machine is None:  # noqa: PLR2004 - bits of a pointer
        unsupported = f"{target.platform}, {target.bits} bit"
        raise Error("platform-unsupported", system=capture.system, machine=unsupported)
    return machine


def _distribution(capture: Capture) -> str | None:
    """Return `Ubuntu 22.04`, or `Windows 10.0.22631`."""
    if "windows" in capture.texts:
        return f"Windows {capture.texts['windows']}"
    return parse_os_release(capture.texts.get("/etc/os-release", ""))


def _evidence(capture: Capture) -> Evidence:
    smi = capture.children.get("nvidia-smi", Child())
    proc = sorted(path for path in capture.texts if path.startswith("/proc/driver/nvidia/gpus/"))
    return Evidence(
        nvml=_reply(capture, "nvml"),
        libcuda=_reply(capture, "libcuda"),
        smi=parse_smi(smi.stdout) if smi.returncode == 0 else (),
        proc_version=parse_proc_version(capture.texts.get("/proc/driver/nvidia/version", "")),
        proc_gpus=tuple(parse_proc_gpu(capture.texts[path]) for path in proc),
        pci=parse_pci(capture.texts.get("/sys/bus/pci/devices", "")),
    )


def _reply(capture: Capture, library: str) -> LibraryReply:
    """Return the reply of a library, from the child of its own where there was one."""
    shared = capture.children.get("gpu_query", Child())
    child = capture.children.get(f"gpu_query {library}", shared)
    stdout, returncode, timed_out = child
    return parse_reply(stdout, library, returncode=returncode, timed_out=timed_out)


def _libraries(capture: Capture) -> tuple[Library, ...]:
    """Return the first library of each name, which is the one that is loaded."""
    libraries: dict[str, Library] = {}
    for path, real in capture.libraries:
        name = path.replace("\\", "/").rpartition("/")[2]
        version = capture.versions.get(path) or parse_file_version(name, real)
        libraries.setdefault(name, Library(name=name, path=path, version=version))
    return tuple(libraries[name] for name in sorted(libraries))
