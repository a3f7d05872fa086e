"""A lock as pylock.toml (PEP 751), for pip 26.1 and newer, uv, and other tools."""

from __future__ import annotations

from ...utils.toml_writer import Rows, Value, inline, table
from ..markers import full_marker
from ..model import Lock, LockedDistribution, LockedFile, header, locked_distributions
from .words import hash_word, pin_word

INSTALL = (
    "install with: uv pip sync FILE (installs this and nothing else), or pip install -r FILE;",
    "the name must be pylock.toml or pylock.NAME.toml",
)


def pylock(lock: Lock) -> str:
    """Return the text of the file; every wheel has an address.

    Raises Error `lock-value-odd` for a name, version or hash that is none, and those of
    `locked_distributions`.
    """
    environments = "".join(f"    {inline(full_marker(place))},\n" for place in lock.places)
    top = 'lock-version = "1.0"\ncreated-by = "ortgpu-fix"\n'
    packages = "\n".join(table("packages", _package(pin)) for pin in locked_distributions(lock))
    return f"{header(lock, INSTALL)}\n{top}environments = [\n{environments}]\n\n{packages}"


def _package(pin: LockedDistribution) -> dict[str, Value | None]:
    pin_word(pin.name, pin.version)
    return {
        "name": pin.name,
        "version": pin.version,
        "marker": pin.marker or None,
        "index": pin.index if "://" in pin.index else None,
        "wheels": Rows([_wheel(file) for file in pin.files]),
    }


def _wheel(file: LockedFile) -> dict[str, Value]:
    wheel, url = file.pinned.wheel, file.pinned.url
    entry: dict[str, Value] = {"url" if "://" in url else "path": url}
    if wheel.size:
        entry["size"] = wheel.size
    return entry | {"hashes": {"sha256": hash_word(wheel.sha256)}}
