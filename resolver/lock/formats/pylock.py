"""A lock as pylock.toml (PEP 751), for pip 26.1 and newer, uv, and what else reads it."""

from __future__ import annotations

from ...utils.toml_writer import Rows, Value, inline, table
from ..markers import full
from ..model import File, Lock, Pin, header, pins

INSTALL = (
    "install with: uv pip sync FILE (installs this and nothing else), or pip install -r FILE;",
    "the name must be pylock.toml or pylock.NAME.toml",
)


def pylock(lock: Lock) -> str:
    """Return the text of the file; every wheel in it has an address. Raises as `pins` does."""
    environments = "".join(f"    {inline(full(place))},\n" for place in lock.places)
    top = 'lock-version = "1.0"\ncreated-by = "ortgpu-fix"\n'
    packages = "\n".join(table("packages", _package(pin)) for pin in pins(lock))
    return f"{header(lock, INSTALL)}\n{top}environments = [\n{environments}]\n\n{packages}"


def _package(pin: Pin) -> dict[str, Value | None]:
    return {
        "name": pin.name,
        "version": pin.version,
        "marker": pin.marker or None,
        "index": pin.index if "://" in pin.index else None,
        "wheels": Rows([_wheel(file) for file in pin.files]),
    }


def _wheel(file: File) -> dict[str, Value]:
    wheel, url = file.pinned.wheel, file.pinned.url
    row: dict[str, Value] = {"url" if "://" in url else "path": url}
    if wheel.size:
        row["size"] = wheel.size
    return row | {"hashes": {"sha256": wheel.sha256}}
