"""Which onnxruntime a program carries that is not Python: read from its libraries, none loaded.

The library with the CUDA provider says which libraries of NVIDIA it links, and which GPUs it has
code for; that lies beside the program, or in a folder below it, whatever the program is written in:
onnxruntime itself may be linked into the program.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import Error
from ...facts.model import Platform, Provider
from ...facts.parsers import parse_dll_version
from ...probe.provider import PROVIDERS, read_library
from ...versions import numbers

_MAIN = re.compile(r"libonnxruntime\.so(?:\.[\d.]+)?|onnxruntime\.dll")
_NAMED = re.compile(rb"VERS_(\d{1,3}\.\d{1,3}\.\d{1,3})\0")
"""The version of onnxruntime's symbols.

Source: https://github.com/microsoft/onnxruntime/blob/main/tools/ci_build/gen_def.py
"""
_HELD = re.compile(rb"\0(1\.\d{2}\.\d{1,2})\0")
"""As `GetVersionString` returns it; the other constants of this form are older versions of others
(zlib 1.3.2 has one digit there)."""
_MACHINES = {62: "x86_64", 183: "aarch64"}
"""`e_machine` of an ELF file."""
_MOST_FILES = 200_000


class Carried(NamedTuple):
    """An onnxruntime with CUDA that a program carries."""

    file: Path
    """The library with the provider."""
    version: str | None
    platform: Platform
    provider: Provider


def find_carried(path: Path, platform: Platform) -> Carried:
    """Return the onnxruntime of the program at `path`: it, its folder, or one of its libraries.

    Where it carries several, as packages for Node.js and .NET do, the one for `platform`. Raises
    Error `program-unreadable`, `program-without-onnxruntime`, `program-without-cuda` where it is
    the CPU-only package's, and `program-several`.
    """
    if not path.exists():
        raise Error("program-unreadable", path=path)
    found = [path] if path.name in PROVIDERS else _files(path)
    providers = [file for file in found if file.name in PROVIDERS]
    if not providers:
        main = next((file for file in found if _MAIN.fullmatch(file.name)), None)
        if main is None:
            raise Error("program-without-onnxruntime", path=path)
        raise Error("program-without-cuda", file=main)
    read = [one for file in providers for one in _read(file)]
    fitting = [one for one in read if one.platform.key == platform.key] or read
    if not fitting:
        raise Error("program-unreadable", path=providers[0])
    nearest = min(len(one.file.parts) for one in fitting)
    several = {one[1:]: one for one in reversed(fitting) if len(one.file.parts) == nearest}
    if len(several) > 1:
        files = ", ".join(sorted(str(one.file) for one in several.values()))
        raise Error("program-several", files=files)
    return next(iter(several.values()))


def _files(path: Path) -> list[Path]:
    """Return onnxruntime's libraries in the folder of a program and below, the nearest first.

    Where there are none, those in `lib` beside the folder of a program in `bin`.
    """
    folder = path if path.is_dir() else path.parent
    found = sorted(_below(folder), key=lambda file: (len(file.parts), file))
    if not found and folder.name == "bin":
        return sorted(file for name in ("lib", "lib64") for file in _below(folder.parent / name))
    return found


def _below(folder: Path) -> Iterator[Path]:
    left = _MOST_FILES
    for directory, _, names in os.walk(folder):
        yield from (
            Path(directory, name) for name in names if name in PROVIDERS or _MAIN.fullmatch(name)
        )
        left -= len(names)
        if left < 0:
            return


def _read(file: Path) -> Iterator[Carried]:
    """Yield what a provider says; nothing where it cannot be read."""
    provider = read_library(file)
    platform = _platform(file) if provider else None
    if provider is not None and platform is not None:
        yield Carried(file, _version(file), platform, provider)


def _platform(file: Path) -> Platform | None:
    if file.suffix == ".dll":
        return Platform(system="windows", machine="x86_64")
    with file.open("rb") as stream:
        head = stream.read(20)
    machine = _MACHINES.get(struct.unpack_from("<H", head, 18)[0])
    return None if machine is None else Platform(system="linux", machine=machine)  # type: ignore[arg-type]


def _version(provider: Path) -> str | None:
    """Return the version of the onnxruntime beside a provider, else that of the provider itself.

    `1.26` where a DLL says no more; None where nothing says one.
    """
    beside = [file for file in provider.parent.iterdir() if _MAIN.fullmatch(file.name)]
    for file in (*sorted(beside), provider):
        try:
            with (
                file.open("rb") as stream,
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
            ):
                named = {match[1].decode() for match in _NAMED.finditer(data)}
                held = {match[1].decode() for match in _HELD.finditer(data)}
                stamped = parse_dll_version(data) if file.suffix == ".dll" else None
        except (OSError, ValueError):  # an empty file
            continue
        minor = ".".join(stamped.split(".")[:2]) if stamped else ""
        fitting = named or {each for each in held if each.startswith(f"{minor}." if minor else "")}
        if fitting or minor:
            return max(fitting, key=numbers, default=minor)
    return None
