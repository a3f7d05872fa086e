"""Wheels on a package index, as its page and their file names describe them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.utils import BuildTag, InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from ..index.page import IndexFile


class EvidenceError(Exception):
    """A file, page or answer could not be read as what it claims to be."""


PLATFORMS = ("linux_x86_64", "linux_aarch64", "windows_x86_64", "windows_aarch64")
_PLAIN = {"any": "any", "win_amd64": "windows_x86_64", "win_arm64": "windows_aarch64"}
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")
_LEGACY = {"manylinux2014": (2, 17), "manylinux2010": (2, 12), "manylinux1": (2, 5)}


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexWheel:
    """One wheel on an index, as its project page and its file name describe it."""

    file: str
    """File name, for example `nvidia_cublas-13.1.0.3-py3-none-win_amd64.whl`."""
    url: str
    """Absolute address without fragment."""
    sha256: str
    """Hash that the page gives, lower-case hexadecimal; empty where it gives none."""
    version: Version
    """ReadRelease, from the file name."""
    python: str
    """ABI tag (`cp313t`), or the Python tag (`py3`) where the ABI is `none`."""
    platform: str
    """One of `PLATFORMS`, or `any`."""
    glibc: str | None
    """Lowest glibc of its manylinux tags, `2.27`; None on Windows and for plain linux tags."""
    build: BuildTag = ()
    """Its build number: of one release and tag the highest is what pip and uv take."""


def wheels_on(files: Iterable[IndexFile]) -> list[IndexWheel]:
    """Return the wheels of a project page, yanked ones left out, the oldest first."""
    rows = (wheel_of(one.name, one.url, one.sha256 or "") for one in files if not one.yanked)
    found = [wheel for wheel in rows if wheel is not None]
    return sorted(found, key=lambda wheel: (wheel.version, wheel.platform, wheel.file))


def wheel_of(name: str, url: str, sha256: str) -> IndexWheel | None:
    """Return the wheel of this file name; None for other files and other platforms."""
    try:
        _, version, build, tags = parse_wheel_filename(name)
    except (InvalidWheelFilename, ValueError):
        return None
    python, abi, platform_tag = name[: -len(".whl")].split("-")[-3:]
    platform = _platform(platform_tag)
    if platform is None or not tags:
        return None
    return IndexWheel(
        file=name,
        url=url,
        sha256=sha256,
        version=version,
        python=python if abi == "none" else abi,
        platform=platform,
        glibc=_glibc(platform_tag),
        build=build,
    )


def _platform(tag: str) -> str | None:
    if tag in _PLAIN:
        return _PLAIN[tag]
    for machine in ("x86_64", "aarch64"):
        parts = tag.split(".")
        if all(part.endswith(machine) and "linux" in part for part in parts):
            return None if "musllinux" in tag else f"linux_{machine}"
    return None


def _glibc(tag: str) -> str | None:
    floors = [(int(major), int(minor)) for major, minor in _GLIBC.findall(tag)]
    floors += [floor for name, floor in _LEGACY.items() if f"{name}_" in tag]
    return "{}.{}".format(*min(floors)) if floors else None
