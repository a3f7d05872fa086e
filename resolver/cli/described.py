"""The machine and the environment that flags describe, where neither has to be there."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..data_files import load_table
from ..errors import Error
from ..facts.driver import OF_DRIVER
from ..facts.gpu_names import has_arm_processor
from ..facts.model import (
    EXPECTED_PLATFORM,
    OWN_ENVIRONMENT,
    Driver,
    Facts,
    Gpu,
    Interpreter,
    Platform,
)
from ..probe.background import ProbeProcesses, start_probe
from ..probe.interpreter import chosen_by, is_alone, is_private, is_version
from .options import capability, is_capability
from .requests import MachineOptions

PLATFORMS = {
    "linux": Platform(system="linux", machine="x86_64"),
    "linux-x86_64": Platform(system="linux", machine="x86_64"),
    "linux-aarch64": Platform(system="linux", machine="aarch64"),
    "windows": Platform(system="windows", machine="x86_64"),
    "windows-arm64": Platform(system="windows", machine="aarch64"),
}
"""By the values of `--platform`, and by what a driver's version shows."""
_WINDOWS_RELEASE = re.compile(r"(\d{3})\.\d{2}")
_FIRST_OF_FIVES = 430


class DescribedMachine(NamedTuple):
    """What `--driver`, `--gpu` and `--platform` say."""

    driver: str
    gpus: tuple[Gpu, ...]
    expected: str | None = None
    """The system that the driver's release, or a GPU, is of, as `EXPECTED_PLATFORM`; None: any."""


def start_looking(machine: MachineOptions, environ: Mapping[str, str]) -> ProbeProcesses:
    """Start the children that look at this machine and at the environment, where there is one.

    Raises as `start_probe`.
    """
    new = describes_environment(machine, environ, Path.cwd())
    return start_probe(sys.executable if new else machine.python, environ)


def describes_environment(machine: MachineOptions, environ: Mapping[str, str], cwd: Path) -> bool:
    """Return whether the environment is a new one, of which the Python's version is all there is.

    So it is where `--python` is a version, where `--platform` names another system than a Python
    here has, and where nothing names an environment and none is needed: what this program has in
    its own is no application's, and `--apply` would refuse it. A program that is not Python has
    none.
    """
    use = machine.environment
    if use == "needed" or machine.several:
        return False
    if use == "none":
        return True
    if machine.python is not None:
        return is_version(machine.python, environ, cwd)
    if machine.platform is not None:
        return True
    if machine.facts:
        return False
    if use != "described" and is_alone(environ, cwd):
        return True
    if not (use == "optional" or machine.driver is not None):
        return False
    return chosen_by(None, environ, cwd) == OWN_ENVIRONMENT and is_private(Path(sys.prefix))


def in_new_environment(facts: Facts, python: str | None) -> Facts:
    """Return `facts` with an empty environment of the version of Python that `--python` names.

    Or else of the Python that runs this program.
    """
    version = python or platform.python_version()
    source = "--python" if python else OWN_ENVIRONMENT
    return facts._replace(
        python=Interpreter(version=version, environment="venv"),
        packages=(),
        onnxruntime=None,
        sources={**facts.sources, "python": source},
    )


def read_machine(driver: str, gpus: str) -> DescribedMachine:
    """Return what the values of `--driver` and `--gpu` say.

    A release for Windows has two numbers, of which the first is no multiple of five; since 430
    those for Linux are (https://docs.nvidia.com/datacenter/tesla/drivers/). An older one, or one of
    560, 565 or 580, may be of either. Three numbers are of Linux.

    Raises Error `wish-driver` or `wish-gpu`.
    """
    if not driver.replace(".", "").isdigit():
        raise Error("wish-driver", value=driver)
    words = [text.strip() for text in gpus.split(",")]
    cards = tuple(
        Gpu(
            name=None if is_capability(word) else word, compute_capability=capability(word, "--gpu")
        )
        for word in words
    )
    expected = None
    windows = _WINDOWS_RELEASE.fullmatch(driver)
    if windows and int(windows[1]) >= _FIRST_OF_FIVES and int(windows[1]) % 5:
        expected = "windows"
    elif any(has_arm_processor(load_table("gpus"), card) for card in cards):
        expected = "linux-aarch64"
    elif driver.count(".") > 1:
        expected = "linux"
    return DescribedMachine(driver=driver, gpus=cards, expected=expected)


def on_described_machine(facts: Facts, machine: MachineOptions, *, new: bool) -> Facts:
    """Return `facts` with the driver and the GPUs of `--driver` and `--gpu`.

    In an existing environment nothing else changes: an image is checked so while it is built, with
    the libraries that it has. `new`: the environment is a new one, of a machine of its own, so the
    system is that of `--platform`, or what the driver's release and the GPU are of, and nothing of
    this one is on it.

    Raises as `read_machine`, and Error `other-platform` where `--python` is of another system than
    `--platform`.
    """
    if machine.driver is None or machine.gpu is None:
        return facts
    read, own = read_machine(machine.driver, machine.gpu), facts.platform
    driver, named = Driver(version=read.driver), {"driver": "--driver", "gpus": "--gpu"}
    if read.expected is not None:
        named[EXPECTED_PLATFORM] = read.expected
    if not new:
        if machine.platform and not own.is_of(machine.platform):
            path = facts.python.executable
            raise Error("other-platform", wanted=machine.platform, path=path, here=own.name)
        kept = {key: text for key, text in facts.sources.items() if key not in OF_DRIVER}
        return facts._replace(driver=driver, gpus=read.gpus, sources=kept | named)
    expected = machine.platform or read.expected or own.name
    named |= {
        "python": facts.sources["python"],
        "platform": "--platform" if machine.platform else "",
    }
    return facts._replace(
        platform=PLATFORMS[own.name if own.is_of(expected) else expected],
        driver=driver,
        gpus=read.gpus,
        toolkits=(),
        libraries=(),
        environment={},
        sources=named,
    )
