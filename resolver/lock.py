"""A plan as a lock: exact versions, with the hash of every wheel.

Core. The same plan gives the same text, byte for byte: the header says which machine and which
matrix, not when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .facts import Facts
from .plan import Plan, Wheel


def requirements(plan: Plan, closure: Iterable[Wheel], facts: Facts, command: Sequence[str]) -> str:
    """Return a requirements file for `pip install --require-hashes -r`.

    `closure` are the ordinary distributions that the selection requires, as an engine resolved
    them; where the selection itself holds one of them, its version counts. `command` made the lock.
    """
    wheels = {wheel.name: wheel for wheel in closure} | {
        wheel.name: wheel for wheel in plan.selection
    }
    lines = [f"# {line}".rstrip() for line in _header(plan, facts, command)]
    for name in sorted(wheels):
        wheel = wheels[name]
        lines.append(f"{name}=={wheel.version} \\\n    --hash=sha256:{wheel.sha256}")
    return "\n".join(lines) + "\n"


def _header(plan: Plan, facts: Facts, command: Sequence[str]) -> list[str]:
    platform, driver = facts.platform, facts.driver
    system = [platform.system, platform.machine, platform.libc, f"Python {facts.python.version}"]
    gpus = sorted({gpu.compute_capability or "?" for gpu in facts.gpus or ()})
    versions = [] if driver is None else [driver.version, driver.cuda and f"CUDA {driver.cuda}"]
    return [
        f"onnxruntime-gpu for CUDA {plan.cuda}, with every library that it needs",
        "made by: " + " ".join(command),
        "system: " + ", ".join(part for part in system if part),
        "driver: " + (", ".join(part for part in versions if part) or "none"),
        "GPUs, by compute capability: " + (", ".join(gpus) or "none"),
        f"matrix: {plan.matrix_date} {plan.matrix_digest}",
        "install with: pip install --require-hashes -r FILE",
        "before: pip uninstall onnxruntime (the CPU build shares the folder of the GPU build)",
        "the application: onnxruntime.preload_dlls() first (ortgpu-fix --apply needs no such line)",
        "",
    ]
