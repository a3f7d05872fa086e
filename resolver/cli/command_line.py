"""A command for the user to paste: this one's flags, and what it should do."""

from __future__ import annotations

import argparse

from ..utils.process import quoted

_KEPT = (
    "python",
    "facts",
    "driver",
    "gpu",
    "ignore_gpu",
    "ort",
    "cuda",
    "torch",
    "requirement",
    "no_autoload",
    "no_provide",
    "allow",
    "offline",
    "find_links",
    "index_url",
    "torch_index_url",
    "matrix",
)
"""What decides which plan is made, or where its wheels come from."""


def command_line(
    arguments: argparse.Namespace, *wanted: str, leaving: frozenset[str] = frozenset()
) -> str:
    """Return `ortgpu-fix` with the flags that were given but for `leaving`, and then `wanted`.

    Quoted as the shell of this system takes it; the credentials of an address stay out.
    """
    words = ["ortgpu-fix"]
    for name in _KEPT:
        flag, given = f"--{name.replace('_', '-')}", getattr(arguments, name)
        if name in leaving or flag in wanted or not given:
            continue
        if given is True:
            words.append(flag)
            continue
        for value in given if isinstance(given, list) else [given]:
            words += [flag, _shown(value) if name.endswith("_url") else str(value)]
    words += wanted
    return quoted(words)


def _shown(address: str) -> str:
    from ..index.page import without_credentials  # it imports much, and few plans name an index

    return without_credentials(address)
