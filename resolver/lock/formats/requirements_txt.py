"""A lock as a requirements file, for `pip install --require-hashes -r`."""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.wheels import PYPI
from ..model import Lock, LockedDistribution, LockedFile, header, locked_distributions

INSTALL = (
    "install with: pip install --require-hashes -r FILE (or uv pip install), in FILE's folder",
    "before: pip uninstall onnxruntime (the CPU build shares the folder of the GPU build)",
)


def requirements(lock: Lock) -> str:
    """Return the text of the file; a wheel that has an address is named by it alone.

    Raises as `locked_distributions` does.
    """
    return header(lock, INSTALL if lock.cuda else INSTALL[:1]) + "\n" + pinned(lock)


def pinned(lock: Lock) -> str:
    """Return the requirements alone, without the header. Raises as `locked_distributions` does."""
    return "".join(block for pin in locked_distributions(lock) for block in _blocks(pin))


def _blocks(pin: LockedDistribution) -> list[str]:
    if pin.index == PYPI:
        return [_block(f"{pin.name}=={pin.version}", pin.marker, pin.files)]
    return [_block(_address(pin, file.pinned.url), file.marker, [file]) for file in pin.files]


def _address(pin: LockedDistribution, url: str) -> str:
    return f"{pin.name} @ {url}" if "://" in url else url  # pip allows a relative path no name


def _block(what: str, marker: str, files: Sequence[LockedFile]) -> str:
    condition = f" ; {marker}" if marker else ""
    hashes = sorted({file.pinned.wheel.sha256 for file in files})
    return (
        " \\\n    ".join([what + condition, *(f"--hash=sha256:{sha256}" for sha256 in hashes)])
        + "\n"
    )
