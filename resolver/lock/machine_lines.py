"""The machines that a lock is for, as its header names them: one a line, written and read back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts.model import Driver, Facts, Gpu, Interpreter, Platform

_LINE = re.compile(
    r"^# for (?:.*: )?(linux|windows) (x86_64|aarch64)(?:, ((?:glibc|musl) [\d.]+))?"
    r", Python (\d+(?:\.\d+)+)(t?); driver ([^;\n]*); GPU (\d+\.\d(?:, \d+\.\d)*)$",
    re.MULTILINE,
)
_CUDA = re.compile(r"(?:(\d+(?:\.\d+)*)(?:, |$))?(?:CUDA (\d+\.\d+))?")
_CAPABILITY = re.compile(r"\d+\.\d")


def machine_line(name: str, facts: Facts) -> str:
    """Return a machine on one line of a header: `for NAME: ` and what `machine_text` says."""
    return f"for {name + ': ' if name else ''}{machine_text(facts)}"


def machine_text(facts: Facts) -> str:
    """Return a machine in words: `linux x86_64, Python 3.11.7; driver 535.104; GPU 8.0`."""
    platform, driver = facts.platform, facts.driver
    python = f"Python {facts.python.version}{'t' if facts.python.free_threaded else ''}"
    system = [f"{platform.system} {platform.machine}", platform.libc, python]
    versions = (driver.version, driver.cuda and f"CUDA {driver.cuda}") if driver else ()
    known = ", ".join(filter(None, versions)) or ("?" if driver else "none")
    gpus = sorted({gpu.compute_capability or "?" for gpu in facts.gpus or ()})
    capabilities = "?" if facts.gpus is None else ", ".join(gpus) or "none"
    return f"{', '.join(filter(None, system))}; driver {known}; GPU {capabilities}"


def read_machines(text: str) -> Iterator[Facts]:
    """Yield the machines with a GPU that the header of the lock `text` names, as facts.

    A line of which a part is not known, or was changed by hand, is no machine to hold a lock
    against.
    """
    for line in _LINE.finditer(text):
        system, machine, libc, python, free_threaded, driver, gpus = line.groups()
        versions = _CUDA.fullmatch(driver)
        if not driver or versions is None:
            continue
        yield Facts(
            platform=Platform(system=system, machine=machine, libc=libc),  # type: ignore[arg-type]
            driver=Driver(version=versions[1], cuda=versions[2]),
            gpus=tuple(Gpu(name=None, compute_capability=one) for one in _CAPABILITY.findall(gpus)),
            python=Interpreter(version=python, free_threaded=bool(free_threaded)),
        )
