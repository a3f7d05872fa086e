"""Which source goes before which, and what is said of a driver that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts.driver import Evidence, Reading, judge_driver
from ortgpu_fix.facts.driver_replies import LibraryReply
from ortgpu_fix.facts.model import Driver, Gpu
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

ABSENT = LibraryReply(state="absent")


def gpu(name: str) -> Gpu:
    return Gpu(name=name, compute_capability="8.0")


NVML = LibraryReply(state="answered", driver="1.1", cuda="12.1", gpus=(gpu("by NVML"),))
LIBCUDA = LibraryReply(
    state="answered", cuda="12.4", gpus=(gpu("by libcuda"),), file="/x/libcuda.so.4.4"
)


def read(nvml: LibraryReply = ABSENT, libcuda: LibraryReply = ABSENT, **more: Any) -> Reading:
    return judge_driver(Evidence(nvml=nvml, libcuda=libcuda, **more), {"known": "7.5"}.get)


ALL: dict[str, Any] = {
    "nvml": NVML,
    "smi": ((gpu("by smi"), "3.3"),),
    "libcuda": LIBCUDA,
    "proc_gpus": (gpu("by /proc"),),
    "proc_version": "2.2",
    "pci": (gpu("on the bus"),),
}


def without(*names: str) -> dict[str, Any]:
    left = {name: value for name, value in ALL.items() if name not in names}
    return left | {name: ABSENT for name in ("nvml", "libcuda") if name in names}


@pytest.mark.parametrize(
    ("gone", "name", "source"),
    [
        ((), "by NVML", "nvml"),
        (("nvml",), "by smi", "nvidia-smi"),
        (("nvml", "smi"), "by libcuda", "libcuda"),
        (("nvml", "smi", "libcuda"), "by /proc", "/proc/driver/nvidia/gpus"),
        (("nvml", "smi", "libcuda", "proc_gpus"), "on the bus", "/sys/bus/pci/devices"),
    ],
)
def test_the_first_source_that_has_gpus_names_them(
    gone: tuple[str, ...], name: str, source: str
) -> None:
    found = read(**without(*gone))

    assert found.gpus == (gpu(name),)
    assert found.sources["gpus"] == source


@pytest.mark.parametrize(
    ("gone", "release", "source"),
    [
        ((), "1.1", "nvml"),
        (("nvml",), "2.2", "/proc/driver/nvidia/version"),
        (("nvml", "proc_version"), "3.3", "nvidia-smi"),
        (("nvml", "proc_version", "libcuda"), "3.3", "nvidia-smi"),
        (("nvml", "proc_version", "smi"), "4.4", "the name of /x/libcuda.so.4.4"),
    ],
)
def test_the_first_source_that_has_a_release_tells_it(
    gone: tuple[str, ...], release: str, source: str
) -> None:
    found = read(**without(*gone))

    assert found.driver is not None
    assert found.driver.version == release
    assert found.sources["driver.version"] == source


def test_a_source_is_named_for_what_it_told_alone() -> None:
    silent = LibraryReply(state="hangs", call="nvmlInit")
    found = read(silent)

    assert found.driver == Driver(error="no-answer: NVML does not return from nvmlInit")
    assert found.gpus is None
    assert found.sources == {"driver.error": "nvml"}


@pytest.mark.parametrize(
    ("nvml", "libcuda", "pci", "error"),
    [
        # An update without a restart explains all the rest.
        (LibraryReply(state="answered", code=18, problem="Mismatch"), ABSENT, (),
         "version-mismatch: NVML error 18: Mismatch"),
        (LibraryReply(state="hangs", call="a"), LibraryReply(state="answered", code=803), (),
         "version-mismatch: cuInit error 803"),
        # What hangs is told before what else it is.
        (LibraryReply(state="hangs", call="a"), LibraryReply(state="crashed", call="b"), (),
         "no-answer: NVML does not return from a"),
        (NVML, LibraryReply(state="hangs", call="cuInit"), (),
         "no-answer: libcuda does not return from cuInit"),
        (LibraryReply(state="crashed", call="a"), LIBCUDA, (), "crashed: NVML crashes in a"),
        (NVML, LibraryReply(state="crashed", call="cuInit"), (),
         "crashed: libcuda crashes in cuInit"),
        (LibraryReply(state="unloadable", problem="wrong ELF class"), LIBCUDA, (),
         "unloadable: NVML: wrong ELF class"),
        (NVML, LibraryReply(state="unloadable", problem="wrong ELF class"), (),
         "unloadable: libcuda: wrong ELF class"),
        (LibraryReply(state="unasked"), LIBCUDA, (),
         "unasked: the driver could not be queried"),
        (LibraryReply(state="answered", code=4, problem="No permission"), LIBCUDA, (),
         "nvml-4: NVML error 4: No permission"),
        (LibraryReply(state="answered", code=9, problem="Not loaded"), ABSENT, (gpu("x"),),
         "not-loaded: NVML error 9: Not loaded"),
        (NVML, ABSENT, (),
         "libcuda-missing: the library libcuda of the driver is missing"),
        (NVML._replace(lost="GPU is lost"), LIBCUDA, (), "gpu-lost: GPU is lost"),
        (NVML, LibraryReply(state="answered", code=802), (), "cuinit-802: cuInit error 802"),
        # Nothing is wrong.
        (NVML, LIBCUDA, (), None),
        (ABSENT, LIBCUDA, (), None),
        # pynvml tells with a number that Windows has no NVML.
        (LibraryReply(state="absent", code=12, problem="NVML Shared Library Not Found"), LIBCUDA,
         (), None),
        (NVML._replace(gpus=()), LibraryReply(state="answered", code=100), (), None),
    ],
)  # fmt: skip
def test_what_is_said_of_a_driver(
    nvml: LibraryReply, libcuda: LibraryReply, pci: tuple[Gpu, ...], error: str | None
) -> None:
    found = read(nvml, libcuda, pci=pci)

    assert found.driver is not None
    assert found.driver.error == error
    assert ("driver.error" in found.sources) is (error is not None)


def planned(found: Reading) -> Plan:
    """Return the plan for a machine of which this was read."""
    parts = {"driver": found.driver, "gpus": found.gpus, "sources": found.sources}
    return resolve(synthetic.facts()._replace(**parts), PlanOptions(), synthetic.matrix())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nvml", "libcuda", "code"),
    [
        (LibraryReply(state="answered", code=18), ABSENT, "driver-version-mismatch"),
        (NVML._replace(lost="GPU is lost"), LIBCUDA, "driver-gpu-lost"),
        (NVML, LibraryReply(state="answered", code=999), "driver-failed"),
        (NVML, LibraryReply(state="answered", code=46), "driver-unreadable"),
        (LibraryReply(state="crashed"), LIBCUDA, "driver-unreadable"),
    ],
)
def test_what_a_library_replies_is_a_finding_of_its_own(
    nvml: LibraryReply, libcuda: LibraryReply, code: str
) -> None:
    found = planned(read(nvml, libcuda, pci=(gpu("on the bus"),)))

    assert code in [row.code for row in found.findings]


K80 = Gpu(name="Tesla K80", compute_capability="3.7")


@pytest.mark.parametrize(
    ("evidence", "dropped"),
    [
        ({"nvml": NVML._replace(driver="535.1.2", gpus=(K80,))}, False),
        ({"smi": ((K80, "535.1.2"),)}, False),
        ({"libcuda": LIBCUDA._replace(gpus=(K80,), file="/x/libcuda.so.535.1.2")}, False),
        ({"proc_gpus": (K80,), "proc_version": "535.1.2"}, False),
        ({"pci": (K80,), "proc_version": "535.1.2"}, True),  # it need not know what is there
    ],
)
def test_a_driver_that_names_a_gpu_supports_it(evidence: dict[str, Any], *, dropped: bool) -> None:
    codes = {why.code for row in planned(read(**evidence)).rejected for why in row.reasons}

    assert ("gpu-dropped" in codes) is dropped


@pytest.mark.parametrize(
    ("seen", "devices", "capability"),
    [
        (Gpu(name="known"), (), "7.5"),
        (Gpu(name="known"), (gpu("named otherwise"),), "7.5"),
        (Gpu(name="unknown"), (), None),
        (Gpu(name="known", compute_capability="8.0"), (), "8.0"),  # what is seen stays
        (Gpu(name=None), (gpu("x"),), None),
        (Gpu(name="unknown"), (gpu("named otherwise"),), "8.0"),
        (Gpu(name="unknown"), (gpu("a"), gpu("b")), None),
        (Gpu(name="b"), (gpu("a"), Gpu(name="b", compute_capability="9.0")), "9.0"),
    ],
)
def test_the_capability_of_a_gpu_that_has_a_name(
    seen: Gpu, devices: tuple[Gpu, ...], capability: str | None
) -> None:
    libcuda = LibraryReply(state="answered", gpus=devices)
    found = read(LibraryReply(state="answered", gpus=(seen,)), libcuda)

    assert found.gpus == (seen._replace(compute_capability=capability),)
