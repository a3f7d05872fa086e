"""Prove what the loader's list says of Windows' wheels, and what it costs at each start of Python.

    python scripts/prove/autoload.py [--work DIR] [--only windows,startup] [--keep]

The wheels for Windows are unpacked, and their import tables read: they are not run. A start of
Python is measured with and without the companion, by turns. That applications find the libraries,
and that these are loaded when CUDA is asked for, is in `loading.py`. Needs Linux, uv, gcc, a
network and about 6 GB. The dated result goes to scripts/prove/results/; the exit code is 1 where
something is not as it must be.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

import pefile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.companions.library_list import libraries
from ortgpu_fix.facts.parsers import parse_dll_version
from ortgpu_fix.versions import numbers
from support.prover import Prover, Run, site_packages
from support.pythons import find_python

WINDOWS = {"1.18.1": "3.10", "1.26.0": "3.13", "1.31.1": "3.13"}


def prove_windows(prover: Prover) -> None:
    """Hold list and order against the import tables of Windows' DLLs. They are not run."""
    for release, python in WINDOWS.items():
        plan = prover.plan(release, python, "windows")
        target = prover.work / f"windows-{release}"
        prover.uv(
            *("pip", "install", "--no-deps", "--only-binary", ":all:", "--target", target),
            *("--python-platform", "x86_64-pc-windows-msvc", "--python-version", python),
            *(f"{wheel.name}=={wheel.version}" for wheel in plan.selection),
        )
        entries = libraries(plan.selection, prover.matrix, "windows_x86_64")
        # uv puts what belongs beside python.exe into the target, two folders below where it goes.
        paths = {
            Path(entry.path).name.lower(): target / entry.path.removeprefix("../../")
            for entry in entries
        }
        names = list(paths)
        missing = [name for name, path in paths.items() if not path.is_file()]
        wrong = []
        for at, name in enumerate(names):
            if name not in missing:
                later = set(imports(paths[name])) & set(names[at:])
                wrong += [f"{name} before {other}" for other in sorted(later)]
        provider = imports(target / "onnxruntime/capi/onnxruntime_providers_cuda.dll")
        wanted = [
            name
            for name in provider
            if re.match(r"cu(?!da\.)|nv(?!cuda)|msvcp|vcruntime|concrt", name)
        ]
        unlisted = sorted(set(wanted) - set(names))
        toolset = next(
            build.toolset or ""
            for build in prover.matrix.builds
            if (build.version, build.platform) == (release, "windows_x86_64")
        )
        runtime = parse_dll_version(paths["msvcp140.dll"].read_bytes()) or ""
        prover.say(
            "windows",
            release,
            good=not (missing or wrong or unlisted) and numbers(runtime)[:2] >= numbers(toolset),
            toolset=toolset,
            runtime=runtime,
            libraries=names,
            missing=missing,
            wrong=wrong,
            provider_imports=provider,
            unlisted=unlisted,
        )
        if not prover.keep:
            shutil.rmtree(target)


def imports(path: Path) -> list[str]:
    """Return the DLLs that one imports, in lower case."""
    with pefile.PE(str(path), fast_load=True) as file:
        directories: Any = pefile.DIRECTORY_ENTRY
        file.parse_data_directories(
            [
                directories["IMAGE_DIRECTORY_ENTRY_IMPORT"],
                directories["IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT"],
            ]
        )
        found = [
            *getattr(file, "DIRECTORY_ENTRY_IMPORT", []),
            *getattr(file, "DIRECTORY_ENTRY_DELAY_IMPORT", []),
        ]
        return [entry.dll.decode().lower() for entry in found]


def prove_startup(prover: Prover) -> None:
    """Measure a start of Python with and without the companion, by turns."""
    plan = prover.plan("1.26.0", "3.12")
    for version in filter(find_python, ("3.8", "3.10", "3.12", "3.13")):
        python = prover.environment(f"env-startup-{version}", version)
        prover.companions(python, plan.selection)
        site = site_packages(python)
        states = ("without", "an empty .pth file", "with", "with, not compiled")
        times: dict[str, list[float]] = {state: [] for state in states}
        for _turn in range(200):
            (site / "ortgpu_fix_libraries.pth").rename(site / "off")
            times["without"].append(start(python))
            (site / "empty.pth").touch()
            times["an empty .pth file"].append(start(python))
            (site / "empty.pth").unlink()
            (site / "off").rename(site / "ortgpu_fix_libraries.pth")
            times["with"].append(start(python))
            cache = site / "_ortgpu_fix_libraries" / "__pycache__"
            cache.rename(cache.with_name("away"))
            times["with, not compiled"].append(start(python))
            cache.with_name("away").rename(cache)
        medians = {name: round(statistics.median(values), 2) for name, values in times.items()}
        added = round(min(times["with"]) - min(times["without"]), 2)
        prover.say(
            "startup",
            version,
            good=added < 1,
            added_ms=added,
            median_ms=medians,
            least_ms={name: round(min(values), 2) for name, values in times.items()},
            load=os.getloadavg()[0],
        )
        prover.drop(python)


def start(python: Path) -> float:
    """Return the processor time of `python -c pass` in milliseconds."""
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    child = os.posix_spawn(python, [str(python), "-c", "pass"], environ)
    used = os.wait4(child, 0)[2]
    return (used.ru_utime + used.ru_stime) * 1000


def main() -> int:
    """Do all of it; return the exit code."""
    run = Run(__doc__, "autoload")
    for name, part in {"windows": prove_windows, "startup": prove_startup}.items():
        if run.wants(name):
            part(run.prover)
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
