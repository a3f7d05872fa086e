"""What a release of an nvidia distribution holds, and whether it can be used here."""

from __future__ import annotations

from ..matrix.model import Code, LibraryNeed
from ..versions import at_least, numbers
from .gpu_code import runs_on
from .situation import Situation

MACHINE_CODE_ONLY = ("nvidia-cublas", "nvidia-cudnn")
"""PTX in these does not count: what NVIDIA supports begins with machine code. cuFFT is different:
that of torch's wheels for CUDA 12.8, made for Blackwell, has PTX alone for 12.0. A driver as new as
the toolkit compiles it at the first use; no other wheel of that toolkit would spare it: it is no
reason for or against a set, as PTX in the provider itself is (`why-ptx`). Code for a GPU in only a
part of a provider's files counts as none: some operators would fail."""


def gpu_without_code(code: Code, name: str, here: Situation, *, ptx: bool) -> str | None:
    """Return the first compute capability that finds nothing to run in `code`, or None.

    `name` is the distribution's; `ptx` tells whether the driver compiles it.
    """
    counted = code.ptx if ptx and not name.startswith(MACHINE_CODE_ONLY) else ()
    return next(
        (gpu for gpu in capabilities(here) if runs_on(code.sass, counted, gpu) == "no"), None
    )


def oldest_that_serves(need: LibraryNeed, here: Situation) -> str | None:
    """Return the oldest release of the distribution that has every symbol of `need`.

    None where even the oldest wheel with that library does: nothing speaks against a still older
    library of the same name.
    """
    distribution = here.matrix.distributions.get(need.distribution or "")
    since = need.since
    if distribution is None or since is None:
        return None
    holding = (
        version
        for contents in distribution.contents
        if contents.platform == here.platform and need.library in contents.libraries
        for version in contents.versions
    )
    return None if all(at_least(version, since) for version in holding) else since


def capabilities(here: Situation) -> tuple[str, ...]:
    """Return the distinct compute capabilities that must be served, lowest first."""
    known = {gpu.compute_capability for gpu in here.gpus or () if gpu.compute_capability}
    return tuple(sorted(known, key=numbers))


def glibc_suffices(here: Situation, floor: str | None) -> bool:
    """Tell whether the target's glibc is `floor` or newer; a libc that is not known counts as so.

    Of musl it is False: the wheels are built for glibc.
    """
    libc = here.facts.platform.libc
    if floor is None or libc is None:
        return True
    kind, _, version = libc.partition(" ")
    return kind == "glibc" and numbers(version) >= numbers(floor)
