"""The driver and the GPUs, from the replies of NVML, libcuda, nvidia-smi and /proc.

Each source knows a part, and some are wrong or hang: this module decides which one counts for what.
`Driver.error` begins with a stable code, one of those in `_error`: `version-mismatch: …`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .driver_replies import LibraryReply, compute_capability, release
from .model import Driver, Gpu

NVML_NOT_LOADED, NVML_MISMATCH = 9, 18
EXPLAINED_ERRORS = {
    "cuinit-100": "driver-no-device",
    "cuinit-802": "driver-fabric-manager",
    "cuinit-804": "driver-forward-compatibility",
    "cuinit-999": "driver-failed",
    "gpu-lost": "driver-gpu-lost",
    "libcuda-missing": "driver-libcuda-missing",
    "no-answer": "driver-no-answer",
    "not-loaded": "driver-not-loaded",
    "version-mismatch": "driver-version-mismatch",
}
"""The codes in `_error` that a finding of their own explains; `driver-unreadable` the others."""
MIG, COMPAT = "mig", "driver.library"
"""The keys of `sources` that say which GPUs are sliced, and that libcuda is of another release."""
OF_DRIVER = frozenset(
    {"driver", "driver.version", "driver.cuda", "driver.error", "gpus", MIG, COMPAT}
)
"""All keys of `sources` that say where the driver and the GPUs of a machine were read."""
MIG_ON = "nvml: on for GPU "
NAMED_BY_DRIVER = frozenset({"nvml", "libcuda", "nvidia-smi", "/proc/driver/nvidia/gpus"})
"""The sources of GPUs that the driver itself enumerates: it supports them."""
CUDA_STUB, CUDA_NO_DEVICE, CUDA_MISMATCH = 34, 100, 803


class Evidence(NamedTuple):
    """All sources on driver and GPUs."""

    nvml: LibraryReply
    libcuda: LibraryReply
    smi: tuple[tuple[Gpu, str | None], ...] = ()
    """Each GPU of nvidia-smi with the driver release in its row."""
    proc_version: str | None = None
    proc_gpus: tuple[Gpu, ...] = ()
    pci: tuple[Gpu, ...] = ()


class Reading(NamedTuple):
    """The driver and the GPUs, and the source of each part."""

    driver: Driver | None
    gpus: tuple[Gpu, ...] | None
    sources: Mapping[str, str]


def judge_driver(evidence: Evidence, gpu_names: Callable[[str], str | None]) -> Reading:
    """Return the driver and the GPUs of the machine; `gpu_names` gives capabilities by name.

    `driver` is None where there is no driver; one that cannot be read has an `error`. `gpus` is
    None where they cannot be counted, and `()` only where a source says that there are none.
    """
    sources: dict[str, str] = {}
    gpus, source = _gpus(evidence)
    if source:
        sources["gpus"] = source
    if gpus is not None:
        gpus = tuple(_named(gpu, evidence.libcuda, gpus, gpu_names) for gpu in gpus)
    if evidence.nvml.mig:
        sources[MIG] = MIG_ON + ", ".join(map(str, evidence.nvml.mig))
    if not _present(evidence):
        sources["driver"] = "nvml, libcuda, nvidia-smi, /proc/driver/nvidia: none of them is there"
        return Reading(driver=None, gpus=gpus, sources=sources)
    version, source = _version(evidence)
    if version is not None:
        sources["driver.version"] = source
        library = _library_release(evidence)
        if library not in {None, version}:
            sources[COMPAT] = f"libcuda.so.{library}"
    cuda = evidence.libcuda.cuda if evidence.libcuda.code != CUDA_STUB else None
    if cuda is not None:
        sources["driver.cuda"] = "libcuda"
    elif evidence.nvml.cuda is not None:
        cuda, sources["driver.cuda"] = evidence.nvml.cuda, "nvml"
    error, source = _error(evidence, gpus) or (None, "")
    if error is not None:
        sources["driver.error"] = source
    driver = Driver(version=version, cuda=cuda, error=error)
    return Reading(driver=driver, gpus=gpus, sources=sources)


def _present(evidence: Evidence) -> bool:
    """Return whether there is a driver, or something that might be one and gives no reply.

    NVML without its kernel module is no driver: distributions install it for monitors.
    """
    nvml, libcuda = evidence.nvml, evidence.libcuda
    alone = nvml.answered(NVML_NOT_LOADED) and not evidence.pci
    return (
        (nvml.state != "absent" and not alone)
        or (libcuda.state != "absent" and not libcuda.answered(CUDA_STUB))
        or evidence.proc_version is not None
        or bool(evidence.smi)
    )


def _version(evidence: Evidence) -> tuple[str | None, str]:
    smi = next((row for _, row in evidence.smi if row), None)
    file = _library_release(evidence)
    choices = (
        (evidence.nvml.driver, "nvml"),
        (evidence.proc_version, "/proc/driver/nvidia/version"),
        (smi, "nvidia-smi"),
        (file, f"the name of {evidence.libcuda.file}"),
    )
    return next((choice for choice in choices if choice[0] is not None), (None, ""))


def _library_release(evidence: Evidence) -> str | None:
    """Return the release in the name of libcuda's file; the driver's own, but for cuda-compat."""
    return release((evidence.libcuda.file or "").rpartition("libcuda.so.")[2])


def _gpus(evidence: Evidence) -> tuple[tuple[Gpu, ...] | None, str]:
    """Return the GPUs of the first source that knows them all, and its name.

    libcuda comes before /proc where it shows as many: it knows more of each. A GPU on the PCI bus
    without a driver is still a GPU of this machine, of unknown capability.
    """
    nvml, libcuda = evidence.nvml, evidence.libcuda
    if nvml.gpus:
        return nvml.gpus, "nvml"
    if evidence.smi:
        return tuple(gpu for gpu, _ in evidence.smi), "nvidia-smi"
    if libcuda.gpus and len(libcuda.gpus) >= len(evidence.proc_gpus):
        return libcuda.gpus, "libcuda"
    if evidence.proc_gpus:
        return evidence.proc_gpus, "/proc/driver/nvidia/gpus"
    if evidence.pci:
        return evidence.pci, "/sys/bus/pci/devices"
    if nvml.gpus is not None:
        return (), "nvml"
    if libcuda.answered(0, CUDA_NO_DEVICE, CUDA_STUB):
        return (), "libcuda"
    if libcuda.state == "absent" and (nvml.state == "absent" or nvml.answered(NVML_NOT_LOADED)):
        return (), "no driver, no NVIDIA GPU on the PCI bus"
    return None, ""


def _named(
    gpu: Gpu, libcuda: LibraryReply, gpus: tuple[Gpu, ...], gpu_names: Callable[[str], str | None]
) -> Gpu:
    if gpu.compute_capability is not None or gpu.name is None:
        return gpu
    devices = libcuda.gpus or ()
    by_name = {device.name: device.compute_capability for device in devices}
    capability = by_name.get(gpu.name) or gpu_names(gpu.name)
    if capability is None and len(devices) == len(gpus) == 1:  # NVML and CUDA name some differently
        capability = devices[0].compute_capability
    return gpu._replace(compute_capability=compute_capability(capability or ""))


def _error(evidence: Evidence, gpus: tuple[Gpu, ...] | None) -> tuple[str, str] | None:
    """Return why the driver cannot be read or used, as `code: evidence`, and the source.

    The codes: version-mismatch (an update without a restart), no-answer, crashed, unloadable (of
    another architecture or C library), unasked, nvml-N, not-loaded (the kernel module),
    libcuda-missing (a container without the compute capability), gpu-lost, cuinit-N (802: fabric
    manager; 804: cuda-compat on a GPU that does not support it).
    """
    nvml, libcuda = evidence.nvml, evidence.libcuda
    if nvml.answered(NVML_MISMATCH):
        return f"version-mismatch: NVML error 18: {nvml.problem}", "nvml"
    if libcuda.answered(CUDA_MISMATCH):
        return "version-mismatch: cuInit error 803", "libcuda"
    for source, name, reply in (("nvml", "NVML", nvml), ("libcuda", "libcuda", libcuda)):
        if reply.state == "hangs":
            return f"no-answer: {name} does not return from {reply.call}", source
        if reply.state == "crashed":
            return f"crashed: {name} crashes in {reply.call}", source
        if reply.state == "unloadable":
            return f"unloadable: {name}: {reply.problem}", source
    if nvml.state == "unasked" and not evidence.smi:
        return "unasked: the driver could not be queried", "nvml"
    if nvml.state == "answered" and nvml.code not in {0, NVML_NOT_LOADED} and not evidence.smi:
        return f"nvml-{nvml.code}: NVML error {nvml.code}: {nvml.problem}", "nvml"
    return _unusable(nvml, libcuda, gpus)


def _unusable(
    nvml: LibraryReply, libcuda: LibraryReply, gpus: tuple[Gpu, ...] | None
) -> tuple[str, str] | None:
    if nvml.answered(NVML_NOT_LOADED) and gpus:
        return f"not-loaded: NVML error 9: {nvml.problem}", "nvml"
    if libcuda.state == "absent":
        return "libcuda-missing: the library libcuda of the driver is missing", "libcuda"
    if nvml.lost:
        return f"gpu-lost: {nvml.lost}", "nvml"
    if gpus and libcuda.code:
        return f"cuinit-{libcuda.code}: cuInit error {libcuda.code}", "libcuda"
    return None
