"""What the name of a base image tells, beside the words of its stages: CUDA, platform, Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from ..facts.model import Architecture, Platform
from .dockerfile import Stage

NVIDIA = re.compile(r"(?:^|/)cuda:(\d+\.\d+)(?:\.\d+)*(?:-(cudnn)(\d*))?-(base|runtime|devel)")
"""https://hub.docker.com/r/nvidia/cuda: later names tell no major of cuDNN, which is 9 then."""
WITHOUT_CUDA = re.compile(r"(?:^|/)(?:python|debian|ubuntu|buildpack-deps)(?::|$)")
_NAMED = re.compile(r"(?:python|pip|-p)(?:[=: ]|\s+(?:install|pin)\s+)?(3\.\d+)")
_UNNAMED = re.compile(r"conda|mamba|pyenv|Python-3|deadsnakes|python\$|\buv (?:venv|sync|run)\b")
"""What brings a Python of its own, whose release no word tells."""
_OF_SYSTEM = (
    (re.compile(r"ubuntu:?18\.04|bionic"), "3.6"),
    (re.compile(r"ubuntu:?20\.04|focal"), "3.8"),
    (re.compile(r"ubuntu:?22\.04|jammy"), "3.10"),
    (re.compile(r"ubuntu:?24\.04|noble"), "3.12"),
    (re.compile(r"debian:?10|buster"), "3.7"),
    (re.compile(r"debian:?11|bullseye"), "3.9"),
    (re.compile(r"debian:?12|bookworm"), "3.11"),
    (re.compile(r"debian:?13|trixie"), "3.13"),
)
"""https://packages.ubuntu.com/python3, https://packages.debian.org/python3."""


def platform_on(stage: Stage, usual: Platform) -> Platform:
    """Return the platform of a stage on a base image; `usual` where nothing tells another."""
    machine = f"{stage.platform} {stage.base}"
    if re.search("arm64|aarch64", machine):
        usual = usual._replace(machine="aarch64")
    elif re.search("arm/v7|arm32v7", machine):
        usual = usual._replace(machine=cast("Architecture", "armv7l"))
    return usual._replace(libc="musl 1") if "alpine" in stage.base else usual


def python_on(chain: Sequence[Stage]) -> str | None:
    """Return the Python that a chain of stages installs into: `3.10`; None: not known."""
    base = chain[0].base
    texts = " ; ".join(row.text for stage in chain for row in stage.instructions)
    named = {*_NAMED.findall(texts)}
    if not _UNNAMED.search(texts):
        named |= {*_NAMED.findall(base)}
        if not named and re.search(r"\bpython3\b", texts):
            named = {version for name, version in _OF_SYSTEM if name.search(base)}
    return named.pop() if len(named) == 1 else None
