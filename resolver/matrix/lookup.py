"""Look rows of the matrix up: what a release of an nvidia distribution holds."""

from __future__ import annotations

from collections.abc import Iterable

from ..versions import at_least
from .model import Code, Distribution, Release, WheelLibraries


def libraries_of(distribution: Distribution, release: Release) -> WheelLibraries | None:
    """Return the libraries in `release`, or None where the matrix does not know them."""
    return next(
        (
            row
            for row in distribution.contents
            if row.platform == release.platform and release.version in row.versions
        ),
        None,
    )


def code_of(rows: Iterable[Code], release: Release) -> Code | None:
    """Return the GPU code in `release`; None where it carries none."""
    return next(
        (
            row
            for row in rows
            if row.platform == release.platform
            and at_least(release.version, row.first)
            and at_least(row.last, release.version)
        ),
        None,
    )
