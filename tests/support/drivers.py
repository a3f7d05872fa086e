"""Simulated NVIDIA drivers: stand-ins for their libraries, compiled here, and for nvidia-smi."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "stubs"
SMI_TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02     KMD Version: 610.43.02     CUDA UMD Version: 13.3              |
+-----------------------------------------+------------------------+----------------------+
"""
"""The head that nvidia-smi of R610 prints: neither `Driver Version` nor `CUDA Version` is in it."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """A simulated GPU."""

    name: str
    capability: tuple[int, int]
    memory_mib: int
    mig: int | None = None

    def line(self) -> str:
        mig = "" if self.mig is None else str(self.mig)
        return (
            f"{self.name}|{self.capability[0]}|{self.capability[1]}|{self.memory_mib << 20}|{mig}"
        )


A100 = Card(name="NVIDIA A100-SXM4-80GB", capability=(8, 0), memory_mib=81920, mig=0)
RTX3090 = Card(name="NVIDIA GeForce RTX 3090", capability=(8, 6), memory_mib=24576)


def compile_stubs(folder: Path) -> Path:
    """Compile `libnvidia-ml.so.1` and `libcuda.so.1` into `folder`."""
    for source, library in (("nvml", "libnvidia-ml.so.1"), ("cuda", "libcuda.so.1")):
        options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{library}"]
        target = ["-o", str(folder / library), str(SOURCES / f"{source}.c")]
        subprocess.run(["gcc", *options, *target], check=True)
    return folder


def simulate(
    stubs: Path,
    folder: Path,
    *,
    release: str | None = None,
    cuda: int | None = None,
    cards: Iterable[Card] = (),
    libraries: Iterable[str] = ("libnvidia-ml.so.1", "libcuda.so.1"),
    smi: str | None = None,
    hang: Iterable[str] = (),
    **settings: str | int,
) -> dict[str, str]:
    """Return the environment of a process that meets this driver.

    `settings` are those of `stubs/stub.h` (`crash="cuInit"`, `nvml_init=18`), `hang` names the
    calls that never end, `smi` is the body of the shell script that stands for nvidia-smi.
    """
    lines = [f"{key} {value}" for key, value in settings.items()]
    lines += [f"hang {call}" for call in hang]
    lines += [f"release {release}"] if release else []
    lines += [f"cuda {cuda}"] if cuda else []
    lines += [f"gpu {card.line()}" for card in cards]
    lib, programs = folder / "lib", folder / "bin"
    lib.mkdir(parents=True)
    programs.mkdir()
    (folder / "driver.txt").write_text("".join(line + "\n" for line in lines))
    for library in libraries:
        real = library if release is None else library[:-1] + release
        shutil.copy(stubs / library, lib / real)
        if real != library:
            (lib / library).symlink_to(real)
    if smi is not None:
        (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{smi}\n")
        (programs / "nvidia-smi").chmod(0o755)
    return {
        "HOME": str(folder / "home"),
        "LD_LIBRARY_PATH": str(lib),
        "ORTGPU_STUB": str(folder / "driver.txt"),
        "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
    }


def smi_script(rows: str, *, table: str = SMI_TABLE) -> str:
    """Return a script that prints `rows` for a query, and otherwise a table."""
    return f"""case "$*" in
*--query-gpu=*) cat <<ROWS
{rows}ROWS
;; *) cat <<TABLE
{table}TABLE
esac"""
