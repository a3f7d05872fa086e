"""Facts that no wheel on the index can tell, with the documents that do."""

from __future__ import annotations

_SIZE_LIMIT = "https://github.com/microsoft/onnxruntime/issues/20737, read 2026-11-21"
_RELEASE_LIST = "https://www.piwheels.org/project/onnxruntime-gpu/, read 2026-11-21"

PUBLISHED = {
    "1.9.0": _SIZE_LIMIT,
    "1.10.0": _SIZE_LIMIT,
    "1.16.1": _RELEASE_LIST,
    "1.16.2": _RELEASE_LIST,
    "1.20.1": _RELEASE_LIST,
    "1.24.2": _RELEASE_LIST,
    "1.24.3": _RELEASE_LIST,
}
"""Releases of onnxruntime-gpu that were once on the index, and who saw them there.

The index limits what a project may keep there, so releases leave it: the next ones belong here.
"""

VARIANTS_SOURCE = "https://github.com/pytorch/pytorch/blob/main/RELEASE.md, read 2026-11-21"

TORCH_VARIANTS: dict[str, tuple[str, ...]] = {
    "1.12.0": ("cu102", "cu113", "cu116"),
    "1.12.1": ("cu102", "cu113", "cu116"),
    "1.13.0": ("cu116", "cu117"),
    "1.13.1": ("cu116", "cu117"),
    "2.0.0": ("cu117", "cu118"),
    "2.0.1": ("cu117", "cu118"),
    "2.1.0": ("cu118", "cu121"),
    "2.1.1": ("cu118", "cu121"),
    "2.1.2": ("cu118", "cu121"),
    "2.2.0": ("cu118", "cu121"),
    "2.2.1": ("cu118", "cu121"),
    "2.2.2": ("cu118", "cu121"),
    "2.3.0": ("cu118", "cu121"),
    "2.3.1": ("cu118", "cu121"),
    "2.4.0": ("cu118", "cu121", "cu124"),
    "2.4.1": ("cu118", "cu121", "cu124"),
    "2.5.0": ("cu118", "cu121", "cu124"),
    "2.5.1": ("cu118", "cu121", "cu124"),
    "2.6.0": ("cu118", "cu124", "cu126"),
    "2.7.0": ("cu118", "cu126", "cu128"),
    "2.7.1": ("cu118", "cu126", "cu128"),
    "2.8.0": ("cu126", "cu128", "cu129"),
    "2.9.0": ("cu126", "cu128", "cu129", "cu130"),
    "2.9.1": ("cu126", "cu128", "cu129", "cu130"),
    "2.10.0": ("cu126", "cu128", "cu129", "cu130"),
    "2.11.0": ("cu126", "cu128", "cu129", "cu130"),
    "2.12.0": ("cu126", "cu130", "cu132"),
    "2.12.1": ("cu126", "cu129", "cu130", "cu132"),
    "2.13.0": ("cu126", "cu129", "cu130", "cu132"),
    "2.14.0": ("cu126", "cu130", "cu132"),
    "2.14.1": ("cu126", "cu130", "cu132"),
    "2.15.0": ("cu130", "cu132"),
}
"""Release of torch to the CUDA builds on download.pytorch.org, which PyPI carries one of."""
