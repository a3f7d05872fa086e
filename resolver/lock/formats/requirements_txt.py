"""A lock as a requirements file, for `pip install --require-hashes -r`."""

from __future__ import annotations

from ..model import Lock, LockedDistribution, LockedFile, header, locked_distributions

INSTALL = (
    "install with: pip install --require-hashes -r FILE (or uv pip install), in FILE's folder",
    "before: pip uninstall onnxruntime (the CPU build shares the folder of the GPU build)",
)


def requirements(lock: Lock) -> str:
    """Return the text of the file; what has an address is named by it, and by nothing else.

    Raises as `locked_distributions` does.
    """
    install = INSTALL if lock.cuda else INSTALL[:1]
    return header(lock, install) + "\n" + pinned(lock)


def pinned(lock: Lock) -> str:
    """Return the requirements alone, without the header. Raises as `locked_distributions` does."""
    return "".join(block for pin in locked_distributions(lock) for block in _blocks(pin))


def _blocks(pin: LockedDistribution) -> list[str]:
    if pin.direct:
        return [_block(_address(pin, file), file.marker, [file]) for file in pin.files]
    return [_block(f"{pin.name}=={pin.version}", pin.marker, list(pin.files))]


def _address(pin: LockedDistribution, file: LockedFile) -> str:
    """Return the address of a wheel; pip takes a relative path only as it is."""
    url = file.pinned.url
    return f"{pin.name} @ {url}" if "://" in url else url


def _block(what: str, marker: str, files: list[LockedFile]) -> str:
    condition = f" ; {marker}" if marker else ""
    hashes = sorted({file.pinned.wheel.sha256 for file in files})
    return " \\\n    ".join([what + condition, *(f"--hash=sha256:{one}" for one in hashes)]) + "\n"
