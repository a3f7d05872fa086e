"""A lock as a requirements file, for `pip install --require-hashes -r`."""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.wheels import PYPI
from ..model import Lock, LockedDistribution, LockedFile, header, locked_distributions
from .words import hash_word, marker_word, pin_word, place_word

INSTALL = (
    "install with: pip install --require-hashes -r FILE (or uv pip install), in FILE's directory",
    "before: pip uninstall onnxruntime (the CPU-only package uses the directory of the GPU one)",
)


def requirements(lock: Lock) -> str:
    """Return the text of the file; a wheel that has an address is named by it alone.

    Raises Error `lock-value-odd` for a value that would be more than one word of it, and those of
    `locked_distributions`.
    """
    return header(lock, INSTALL if lock.cuda else INSTALL[:1]) + "\n" + pinned(lock)


def pinned(lock: Lock) -> str:
    """Return the requirements alone, without the header. Raises as `requirements` does."""
    return "".join(block for pin in locked_distributions(lock) for block in _blocks(pin))


def _blocks(pin: LockedDistribution) -> list[str]:
    if pin.index == PYPI:
        return [_block(pin_word(pin.name, pin.version), pin.marker, pin.files)]
    places = [(place_word(pin.name, file.pinned.url), file) for file in pin.files]
    return [_block(place, file.marker, [file]) for place, file in places]


def _block(what: str, marker: str, files: Sequence[LockedFile]) -> str:
    hashes = sorted({hash_word(file.pinned.wheel.sha256) for file in files})
    options = [f"--hash=sha256:{sha256}" for sha256 in hashes]
    return " \\\n    ".join([what + marker_word(marker), *options]) + "\n"
