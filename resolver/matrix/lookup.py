"""Look up rows of the matrix: what a release of an nvidia distribution contains."""

from __future__ import annotations

from collections.abc import Iterable

from ..versions import at_least
from .model import Code, Distribution, Release, WheelLibraries


def libraries_of(distribution: Distribution, release: Release) -> WheelLibraries | None:
    """Return the libraries in `release`, or None where the matrix does not know them."""
    for row in distribution.contents:
        if row.platform == release.platform and release.version in row.versions:
            return row
    return None


def code_of(rows: Iterable[Code], release: Release) -> Code | None:
    """Return the GPU code in `release`; None where it contains none."""
    for row in rows:
        covered = at_least(release.version, row.first) and at_least(row.last, release.version)
        if row.platform == release.platform and covered:
            return row
    return None
