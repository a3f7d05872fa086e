"""What NVML, libcuda, nvidia-smi and /proc said, put together: the driver and the GPUs.

Each of them knows a part, and some lie or hang; here is decided who is believed for what.
`Driver.error` begins with a code that stays, one of those in `_error`: `version-mismatch: …`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .driver_replies import LibraryReply, compute_capability, release
from .model import Driver, Gpu

NVML_NOT_LOADED, NVML_MISMATCH = 9, 18
EXPLAINED_ERRORS = frozenset({"libcuda-missing", "no-answer", "not-loaded", "version-mismatch"})
"""The codes in `_error` with a text of their own, `driver-no-answer` and so on."""
CUDA_STUB, CUDA_NO_DEVICE, CUDA_MISMATCH = 34, 100, 803


class Evidence(NamedTuple):
    """Everything that may say something about driver and GPUs."""

    nvml: LibraryReply
    libcuda: LibraryReply
    smi: tuple[tuple[Gpu, str | None], ...] = ()
    """Each GPU of nvidia-smi with the driver release in its row."""
    proc_version: str | None = None
    proc_gpus: tuple[Gpu, ...] = ()
    pci: tuple[Gpu, ...] = ()


class Reading(NamedTuple):
    """The answer, and where each part of it came from."""

    driver: Driver | None
    gpus: tuple[Gpu, ...] | None
    sources: Mapping[str, str]


def judge_driver(evidence: Evidence, gpu_names: Callable[[str], str | None]) -> Reading:
    """Return the driver and the GPUs of the machine; `gpu_names` knows capabilities by name.

    No driver at all is a driver of None; one that cannot be read has an `error`. GPUs are None
    where something is there that cannot be asked, and none (`()`) only where that was said.
    """
    sources: dict[str, str] = {}
    gpus, source = _gpus(evidence)
    if source:
        sources["gpus"] = source
    if gpus is not None:
        gpus = tuple(_named(gpu, evidence.libcuda, gpus, gpu_names) for gpu in gpus)
    if evidence.nvml.mig:
        sources["mig"] = "nvml: on for GPU " + ", ".join(map(str, evidence.nvml.mig))
    if not _present(evidence):
        sources["driver"] = "nvml, libcuda, nvidia-smi, /proc/driver/nvidia: none of them is there"
        return Reading(driver=None, gpus=gpus, sources=sources)
    version, source = _version(evidence)
    if version is not None:
        sources["driver.version"] = source
    cuda = evidence.libcuda.cuda if evidence.libcuda.code != CUDA_STUB else None
    if cuda is not None:
        sources["driver.cuda"] = "libcuda"
    elif evidence.nvml.cuda is not None:
        cuda, sources["driver.cuda"] = evidence.nvml.cuda, "nvml"
    error = _error(evidence, gpus)
    if error is not None:
        sources["driver.error"] = error[1]
    driver = Driver(version=version, cuda=cuda, error=error[0] if error else None)
    return Reading(driver=driver, gpus=gpus, sources=sources)


def _present(evidence: Evidence) -> bool:
    """Tell whether there is a driver, or something that might be one and cannot be asked.

    NVML alone, without its kernel module, is none: distributions install it for monitors.
    """
    nvml, libcuda = evidence.nvml, evidence.libcuda
    alone = nvml.state == "answered" and nvml.code == NVML_NOT_LOADED and not evidence.pci
    stub = libcuda.state == "answered" and libcuda.code == CUDA_STUB
    return (
        (nvml.state != "absent" and not alone)
        or (libcuda.state != "absent" and not stub)
        or evidence.proc_version is not None
        or bool(evidence.smi)
    )


def _version(evidence: Evidence) -> tuple[str | None, str]:
    smi = next((row for _, row in evidence.smi if row), None)
    file = release((evidence.libcuda.file or "").rpartition("libcuda.so.")[2])
    choices = (
        (evidence.nvml.driver, "nvml"),
        (evidence.proc_version, "/proc/driver/nvidia/version"),
        (smi, "nvidia-smi"),
        (file, f"the name of {evidence.libcuda.file}"),
    )
    return next((choice for choice in choices if choice[0] is not None), (None, ""))


def _gpus(evidence: Evidence) -> tuple[tuple[Gpu, ...] | None, str]:
    """Return the GPUs of the first that knows them all, and its name.

    libcuda goes before /proc where it shows as many: it knows more of each. A GPU on the PCI bus
    for which there is no driver is still a GPU of this machine, of unknown capability.
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
    if libcuda.state == "answered" and libcuda.code in {0, CUDA_NO_DEVICE, CUDA_STUB}:
        return (), "libcuda"
    if libcuda.state == "absent" and (
        nvml.state == "absent" or (nvml.state == "answered" and nvml.code == NVML_NOT_LOADED)
    ):
        return (), "no driver, no GPU on the PCI bus"
    return None, ""


def _named(
    gpu: Gpu, libcuda: LibraryReply, gpus: tuple[Gpu, ...], gpu_names: Callable[[str], str | None]
) -> Gpu:
    """Complete a GPU: its capability by name, from libcuda's devices first."""
    if gpu.compute_capability is not None or gpu.name is None:
        return gpu
    devices = libcuda.gpus or ()
    known = {device.name: device.compute_capability for device in devices}
    capability = known.get(gpu.name) or gpu_names(gpu.name)
    if capability is None and len(devices) == len(gpus) == 1:  # NVML and CUDA name some differently
        capability = devices[0].compute_capability
    return gpu._replace(compute_capability=compute_capability(capability or ""))


def _error(evidence: Evidence, gpus: tuple[Gpu, ...] | None) -> tuple[str, str] | None:
    """Return why the driver cannot be read or used, `code: what was seen`, and who says so.

    The codes: version-mismatch (restart), no-answer, crashed, unloadable (of another architecture
    or C library), unasked, nvml-N, not-loaded (the kernel module), libcuda-missing (a container
    without the compute capability), gpu-lost, cuinit-N (802: fabric manager; 804: cuda-compat on a
    GPU that does not take it).
    """
    return (
        _mismatch(evidence)
        or _silent("nvml", "NVML", evidence.nvml)
        or _silent("libcuda", "libcuda", evidence.libcuda)
        or _refused(evidence)
        or _unusable(evidence, gpus)
    )


def _mismatch(evidence: Evidence) -> tuple[str, str] | None:
    """Library and kernel module are of two releases: an update without a restart."""
    nvml, libcuda = evidence.nvml, evidence.libcuda
    if nvml.state == "answered" and nvml.code == NVML_MISMATCH:
        return f"version-mismatch: NVML answers 18, {nvml.problem}", "nvml"
    if libcuda.state == "answered" and libcuda.code == CUDA_MISMATCH:
        return "version-mismatch: cuInit answers 803", "libcuda"
    return None


def _silent(source: str, name: str, asked: LibraryReply) -> tuple[str, str] | None:
    if asked.state == "hangs":
        return f"no-answer: {name} does not come back from {asked.call}", source
    if asked.state == "crashed":
        return f"crashed: {name} crashes in {asked.call}", source
    if asked.state == "unloadable":
        return f"unloadable: {name}: {asked.problem}", source
    return None


def _refused(evidence: Evidence) -> tuple[str, str] | None:
    nvml = evidence.nvml
    if nvml.state == "unasked" and not evidence.smi:
        return "unasked: the question to the driver could not be put", "nvml"
    if nvml.state == "answered" and nvml.code not in {0, NVML_NOT_LOADED} and not evidence.smi:
        return f"nvml-{nvml.code}: NVML answers {nvml.code}, {nvml.problem}", "nvml"
    return None


def _unusable(evidence: Evidence, gpus: tuple[Gpu, ...] | None) -> tuple[str, str] | None:
    nvml, libcuda = evidence.nvml, evidence.libcuda
    not_loaded = nvml.state == "answered" and nvml.code == NVML_NOT_LOADED
    if not_loaded and gpus:
        return f"not-loaded: NVML answers 9, {nvml.problem}", "nvml"
    if libcuda.state == "absent":
        return "libcuda-missing: there is a driver, and its library libcuda is not here", "libcuda"
    if nvml.lost:
        return f"gpu-lost: {nvml.lost}", "nvml"
    if gpus and libcuda.state == "answered" and libcuda.code:
        return f"cuinit-{libcuda.code}: cuInit answers {libcuda.code}", "libcuda"
    return None
