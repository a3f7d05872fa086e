"""What was seen of a machine and an environment, as raw texts, and the facts in it.

`probe` makes a `Capture`; its JSON is also how a machine is recorded for the tests. It
carries nothing private: homes, host names and serial numbers were replaced when it was made.
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
from .target import packages_of, python_of
from .target_reply import parse_target

SCHEMA = 1


class Child(NamedTuple):
    """How another program answered."""

    stdout: str = ""
    returncode: int | None = None
    """None where it could not be started."""
    timed_out: bool = False


class Capture(NamedTuple):
    """Raw texts and the answers of children, each under its source."""

    system: str
    """`sys.platform`: `linux`, `win32`."""
    machine: str
    """`platform.machine()`: `x86_64`, `AMD64`, `aarch64`."""
    inside: str
    """What `inside.py` printed in the target environment."""
    texts: Mapping[str, str] = MappingProxyType({})
    """Files and the like by path; one that is not here was not there, or not readable."""
    children: Mapping[str, Child] = MappingProxyType({})
    """`gpu_query`, `gpu_query libcuda` (where NVML took the first one with it), `nvidia-smi`."""
    toolkits: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """The files that tell the version of each CUDA toolkit, by its folder."""
    libraries: tuple[tuple[str, str], ...] = ()
    """Path and real path of each library of interest, in the order in which the loader looks."""
    versions: Mapping[str, str] = MappingProxyType({})
    """The versions that DLLs of `libraries` carry, by path."""
    environment: Mapping[str, str] = MappingProxyType({})


def to_json(capture: Capture) -> dict[str, object]:
    """Return the document of `capture`, ready for `json.dumps`."""
    document = {"schema": SCHEMA, **as_table(capture)}
    if not capture.versions:  # as everywhere but on Windows
        del document["versions"]
    return document


def from_json(document: object) -> Capture:
    """Read the document that `to_json` writes.

    Raises Error `capture-invalid` where it is none.
    """
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


def facts(capture: Capture, gpu_names: Callable[[str], str | None]) -> Facts:
    """Return the facts in `capture`; `gpu_names` gives a compute capability by product name.

    Raises Error `platform-unsupported` where nothing this program installs exists for the system,
    `python-garbage` and `python-too-old` as `parse_target` does.
    """
    target = parse_target(capture.inside, "inside")
    platform = Platform(
        system=_system(capture),
        machine=_machine(capture, target.platform, target.bits),
        libc=target.libc,
        distribution=_distribution(capture),
        wsl="microsoft" in capture.texts.get("/proc/sys/kernel/osrelease", "").lower(),
        container=_container(capture),
        jetson=next(iter(capture.texts.get("/etc/nv_tegra_release", "").splitlines()), None),
    )
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


def _system(capture: Capture) -> System:
    systems: dict[str, System] = {"linux": "linux", "win32": "windows"}
    if capture.system not in systems:
        raise Error("platform-unsupported", system=capture.system, machine=capture.machine)
    return systems[capture.system]


def _machine(capture: Capture, platform: str, bits: int) -> Architecture:
    """Return what the target's programs are made for: `linux-x86_64`, `win-amd64`, `linux-aarch64`.

    An interpreter of 32 bits on a machine of 64 takes the wheels of neither.
    """
    machines: dict[str, Architecture] = {
        "x86_64": "x86_64",
        "amd64": "x86_64",
        "aarch64": "aarch64",
        "arm64": "aarch64",
    }
    name = platform.rpartition("-")[2].lower()
    if bits != 64 or name not in machines:  # noqa: PLR2004 - bits of a pointer
        raise Error(
            "platform-unsupported", system=capture.system, machine=f"{platform}, {bits} bit"
        )
    return machines[name]


def _distribution(capture: Capture) -> str | None:
    """Return `Ubuntu 22.04`, or `Windows 10.0.22631`."""
    build = capture.texts.get("windows")
    if build is not None:
        return f"Windows {build}"
    return parse_os_release(capture.texts.get("/etc/os-release", ""))


def _container(capture: Capture) -> str | None:
    marks = {
        "/run/.containerenv": "podman",
        "/.dockerenv": "docker",
        "KUBERNETES_SERVICE_HOST": "kubernetes",
    }
    return next((name for mark, name in marks.items() if mark in capture.texts), None)


def _evidence(capture: Capture) -> Evidence:
    nvml, libcuda = (_asked(capture, library) for library in ("nvml", "libcuda"))
    smi = capture.children.get("nvidia-smi", Child())
    proc = {
        path: text
        for path, text in capture.texts.items()
        if path.startswith("/proc/driver/nvidia/gpus/")
    }
    return Evidence(
        nvml=nvml,
        libcuda=libcuda,
        smi=parse_smi(smi.stdout) if smi.returncode == 0 else (),
        proc_version=parse_proc_version(capture.texts.get("/proc/driver/nvidia/version", "")),
        proc_gpus=tuple(parse_proc_gpu(proc[path]) for path in sorted(proc)),
        pci=parse_pci(capture.texts.get("/sys/bus/pci/devices", "")),
    )


def _asked(capture: Capture, library: str) -> LibraryReply:
    """Return what a library answered, in the child of its own where there was one."""
    own = capture.children.get(f"gpu_query {library}")
    child = own or capture.children.get("gpu_query", Child())
    return parse_reply(
        child.stdout, library, returncode=child.returncode, timed_out=child.timed_out
    )


def _libraries(capture: Capture) -> tuple[Library, ...]:
    """Return the first of each name: that one is loaded."""
    found: dict[str, Library] = {}
    for path, real in capture.libraries:
        name = path.replace("\\", "/").rpartition("/")[2]
        version = capture.versions.get(path) or parse_file_version(name, real)
        found.setdefault(name, Library(name=name, path=path, version=version))
    return tuple(found[name] for name in sorted(found))
