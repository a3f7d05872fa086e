"""The whole probe on simulated machines: real children, real libraries, real environments."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from drivers import A100, SMI_TABLE, smi_script
from environments import put, site_packages

from ortgpu_fix.facts import capture
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Driver, Facts, Gpu
from ortgpu_fix.probe.background import ProbeProcesses
from ortgpu_fix.probe.machine import probe
from ortgpu_fix.utils import process as run

Simulate = Callable[..., dict[str, str]]
NAMES = {"NVIDIA A100-SXM4-80GB": "8.0", "Tesla K80": "3.7"}
A100_GPU = Gpu(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", memory_mib=81920)


def look(environ: Mapping[str, str], root: Path, *, seconds: float = 20) -> Facts:
    """Return the facts, having been through the JSON of the capture and of the facts."""
    processes = ProbeProcesses(
        Path(sys.executable), runner=run.run, environ=environ, gpu_seconds=seconds
    )
    seen = probe(processes, runner=run.run, environ=environ, root=root)
    recorded = capture.from_json(json.loads(json.dumps(capture.to_json(seen.capture))))
    facts = capture.facts(recorded, NAMES.get)

    assert recorded == seen.capture
    assert facts_json.from_json(json.loads(json.dumps(facts_json.to_json(facts)))) == facts
    return facts


def put_text(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


DRIVERS = [
    ("470.256.02", 11040, "11.4"),
    ("610.43.02", 13030, "13.3"),
]


@pytest.mark.parametrize(("release", "number", "cuda"), DRIVERS, ids=[row[0] for row in DRIVERS])
def test_every_driver_is_read(
    simulate: Simulate, empty_root: Path, release: str, number: int, cuda: str
) -> None:
    """With the table of R610 as nvidia-smi's whole output: it is not what is read."""
    smi = f"cat <<TABLE\n{SMI_TABLE}TABLE"
    facts = look(simulate(release=release, cuda=number, cards=[A100], smi=smi), empty_root)

    assert facts.driver == Driver(version=release, cuda=cuda)
    assert facts.gpus == (A100_GPU,)
    assert facts.sources == {"driver.version": "nvml", "driver.cuda": "libcuda", "gpus": "nvml"}


def test_no_driver_at_all(simulate: Simulate, empty_root: Path) -> None:
    facts = look(simulate(libraries=()), empty_root)

    assert facts.driver is None
    assert facts.gpus == ()
    assert "none of them is there" in facts.sources["driver"]


def test_no_driver_but_a_gpu_on_the_bus(simulate: Simulate, empty_root: Path) -> None:
    for name, vendor, kind in (("0", "0x10de", "0x030200"), ("1", "0x8086", "0x030000")):
        put_text(empty_root, f"sys/bus/pci/devices/{name}/vendor", f"{vendor}\n")
        put_text(empty_root, f"sys/bus/pci/devices/{name}/device", "0x20b2\n")
        put_text(empty_root, f"sys/bus/pci/devices/{name}/class", f"{kind}\n")

    facts = look(simulate(libraries=()), empty_root)

    assert facts.driver is None
    assert facts.gpus == (Gpu(name="NVIDIA GPU (PCI 10de:20b2)"),)


def test_a_user_mode_driver_without_a_kernel_module(simulate: Simulate, empty_root: Path) -> None:
    """What NVIDIA's own 535 libraries answer on a machine without a GPU."""
    environ = simulate(release="535.261.03", cuda=12020, nvml_init=9, cu_init=100)
    facts = look(environ, empty_root)

    assert facts.driver == Driver(version="535.261.03", cuda="12.2")
    assert facts.gpus == ()
    assert facts.sources["driver.version"].endswith("libcuda.so.535.261.03")


def test_library_and_kernel_module_of_two_releases(simulate: Simulate, empty_root: Path) -> None:
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC\n"
    put_text(empty_root, "proc/driver/nvidia/version", version)
    gpu = "proc/driver/nvidia/gpus/0000:41:00.0/information"
    put_text(empty_root, gpu, "Model: \t\t NVIDIA A100-SXM4-80GB\nGPU UUID: \t GPU-1-2-3\n")

    environ = simulate(release="550.90.07", cuda=12040, nvml_init=18, cu_init=803)
    facts = look(environ, empty_root)

    assert facts.driver is not None
    assert facts.driver.version == "550.54.14"
    assert facts.driver.error is not None
    assert facts.driver.error.startswith("version-mismatch: ")
    assert facts.gpus == (Gpu(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0"),)


def test_a_driver_that_hangs_in_libcuda(simulate: Simulate, empty_root: Path) -> None:
    call = "cuInit"
    start = time.monotonic()
    environ = simulate(release="550.54.14", cuda=12040, cards=[A100], hang=[call])
    facts = look(environ, empty_root, seconds=1)

    assert facts.driver == Driver(
        version="550.54.14",
        cuda="12.4",
        error=f"no-answer: libcuda does not return from {call}",
    )
    assert facts.gpus == (A100_GPU,)
    assert time.monotonic() - start < 40


def test_a_driver_that_hangs_in_nvml(simulate: Simulate, empty_root: Path) -> None:
    environ = simulate(release="550.54.14", cuda=12040, cards=[A100], hang=["nvmlInitWithFlags"])
    facts = look(environ, empty_root, seconds=1)

    assert facts.driver == Driver(
        version="550.54.14",
        cuda="12.4",
        error="no-answer: NVML does not return from nvmlInit",
    )
    assert facts.gpus == (A100_GPU,)
    assert facts.sources["gpus"] == "libcuda"


def test_a_crash_in_nvml_does_not_lose_libcuda(simulate: Simulate, empty_root: Path) -> None:
    environ = simulate(release="550.54.14", cuda=12040, cards=[A100], crash="nvmlInitWithFlags")
    facts = look(environ, empty_root)

    assert facts.driver == Driver(
        version="550.54.14", cuda="12.4", error="crashed: NVML crashes in nvmlInit"
    )
    assert facts.gpus == (A100_GPU,)
    assert facts.sources["gpus"] == "libcuda"


def test_nvidia_smi_where_nvml_is_not_found(simulate: Simulate, empty_root: Path) -> None:
    smi = smi_script("NVIDIA A100-SXM4-80GB, 8.0, 81920, 610.43.02\n")
    environ = simulate(cuda=13030, cards=[A100], libraries=["libcuda.so.1"], smi=smi)
    facts = look(environ, empty_root)

    assert facts.driver == Driver(version="610.43.02", cuda="13.3")
    assert facts.gpus == (A100_GPU,)
    assert facts.sources["gpus"] == "nvidia-smi"


def test_an_old_nvidia_smi_without_compute_cap(simulate: Simulate, empty_root: Path) -> None:
    smi = (
        'case "$*" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\';'
        " exit 2;; *) echo 'Tesla K80, 11441, 470.256.02';; esac"
    )
    environ = simulate(cuda=11040, libraries=["libcuda.so.1"], smi=smi)
    facts = look(environ, empty_root)

    assert facts.gpus == (Gpu(name="Tesla K80", compute_capability="3.7", memory_mib=11441),)


def test_a_container_that_was_not_given_the_driver(simulate: Simulate, empty_root: Path) -> None:
    """Without `--gpus all` the kernel's side is visible, and the libraries are not there."""
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  "
    put_text(empty_root, "proc/driver/nvidia/version", f"{version}(root@builder)\n")
    put_text(empty_root, ".dockerenv", "")

    facts = look(simulate(libraries=()), empty_root)

    assert facts.driver is not None
    assert facts.driver.version == "580.65.06"
    assert facts.driver.error is not None
    assert facts.driver.error.startswith("libcuda-missing: ")
    assert facts.platform.container == "docker"


def test_nvml_without_libcuda(simulate: Simulate, empty_root: Path) -> None:
    """NVIDIA_DRIVER_CAPABILITIES=utility: nvidia-smi works, and CUDA cannot."""
    environ = simulate(
        release="550.54.14", cuda=12040, cards=[A100], libraries=["libnvidia-ml.so.1"]
    )
    facts = look({**environ, "NVIDIA_DRIVER_CAPABILITIES": "utility"}, empty_root)

    assert facts.driver is not None
    assert facts.driver.error is not None
    assert facts.driver.error.startswith("libcuda-missing: ")
    assert facts.gpus == (A100_GPU,)


def test_the_platform(simulate: Simulate, empty_root: Path) -> None:
    put_text(empty_root, "etc/os-release", 'NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\n')
    put_text(empty_root, "proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")
    put_text(empty_root, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.3\n")
    put_text(empty_root, "run/.containerenv", "")

    platform = look(simulate(libraries=()), empty_root).platform

    assert platform.distribution == "Ubuntu 22.04"
    assert platform.wsl
    assert platform.container == "podman"
    assert platform.jetson == "# R36 (release), REVISION: 4.3"


def test_nothing_private_is_kept(simulate: Simulate, empty_root: Path, venv: Path) -> None:
    """A home, a login in a requirement and the host that built the kernel module."""
    environ = simulate(release="550.54.14", cuda=12040, cards=[A100])
    put(site_packages(venv), "app", "1", requires=["x @ git+https://me:secret@example.org/x.git"])
    put_text(
        empty_root,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  (ci@host17)\n",
    )
    home = str(venv.parents[2])
    environ |= {"HOME": home, "VIRTUAL_ENV": str(venv.parents[1]), "USER": "alice"}
    environ["CUDA_HOME"] = "/scratch/alice/cuda"
    seen = probe(
        ProbeProcesses(venv, runner=run.run, environ=environ),
        runner=run.run,
        environ=environ,
        root=empty_root,
    )

    recorded = json.dumps(capture.to_json(seen.capture))

    assert home not in recorded
    assert "secret" not in recorded
    assert "alice" not in recorded
    assert "host17" not in recorded
    assert seen.target.executable == str(venv)
    assert json.loads(recorded)["environment"]["VIRTUAL_ENV"].startswith("~/")


def test_the_machine_cannot_be_asked(venv: Path, empty_root: Path) -> None:
    """Where not even our own child starts, the driver is not known; it is not absent."""

    def runner(argv: Sequence[str], **values: Any) -> run.Finished:
        if "query_gpus" in " ".join(argv):
            raise OSError
        return run.run(argv, **values)

    seen = probe(
        ProbeProcesses(venv, runner=runner, environ={"PATH": "/bin"}),
        runner=runner,
        environ={"PATH": "/bin"},
        root=empty_root,
    )
    facts = capture.facts(seen.capture, NAMES.get)

    assert facts.driver is not None
    assert facts.driver.error is not None
    assert facts.driver.error.startswith("unasked: ")
    assert facts.gpus is None


def test_an_interrupt_does_not_wait_for_a_driver_that_hangs(
    simulate: Simulate, empty_root: Path
) -> None:
    environ = simulate(release="550.54.14", cuda=12040, hang=["nvmlInitWithFlags", "cuInit"])

    def runner(argv: Sequence[str], **values: Any) -> run.Finished:
        if values.get("text_in"):  # the script for the target's Python
            raise KeyboardInterrupt
        return run.run(argv, **values)

    start = time.monotonic()
    processes = ProbeProcesses(Path(sys.executable), runner=runner, environ=environ, gpu_seconds=20)
    with pytest.raises(KeyboardInterrupt):
        probe(processes, runner=runner, environ=environ, root=empty_root)

    assert time.monotonic() - start < 15
