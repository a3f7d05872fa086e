"""The one error of this package."""

from __future__ import annotations


class EvidenceError(Exception):
    """A file, page or answer could not be read as what it claims to be."""
