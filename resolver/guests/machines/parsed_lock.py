"""What a lock says: the distributions that it pins, their hashes, and the lines of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...facts.markers import marker_holds
from ...facts.model import Facts

Format = Literal["requirements", "pylock", "uv", "dockerfile", "project"]
"""The last is the lock of uv, Poetry or PDM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedHash:
    """A SHA-256 in a lock."""

    sha256: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPin:
    """A distribution in a lock, at one version, or at what a requirement leaves to the index."""

    name: str
    """Canonical."""
    version: str
    """Where it is not `exact`, what is written of it: `>=1.20`; empty: any, or an address."""
    marker: str
    """Where it is installed; empty: everywhere."""
    hashes: tuple[ParsedHash, ...]
    line: int
    """The line that names it, from 1."""
    wanted: tuple[str, ...] | None = ()
    """The markers under which it is installed without an extra or a group; None: nobody knows."""
    placeholder: bool
    """A wheel without code, as our `onnxruntime` is, that requires the GPU build."""
    exact: bool = True

    def applies(self, environment: Mapping[str, str]) -> bool:
        """Return whether it is installed under the marker values of `environment`."""
        return not self.marker or marker_holds(self.marker, environment)

    def is_sure(self, environment: Mapping[str, str]) -> bool:
        """Return whether it brings its code whatever extras and groups are asked for."""
        if self.placeholder or self.wanted is None:
            return False
        return all(marker_holds(marker, environment) for marker in self.wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLock:
    """What a lock holds."""

    format: Format
    pins: tuple[ParsedPin, ...]
    matrix_date: str | None
    """Of the matrix that it was made with; None where the lock does not name it."""
    matrix_digest: str | None
    loose: tuple[ParsedPin, ...] = ()
    """What it names without an exact version."""
    machines: tuple[Facts, ...] = ()
    """The machines with a GPU that it was made for, where its header names them."""
