"""Whether a GPU can run what a library carries.

Sources: CUDA Programming Guide, "Compute Capabilities" (machine code runs on the same major
and the same or a newer minor; `a` targets on exactly theirs, `f` targets within their family), and
"CUDA Compatibility" (an old driver cannot compile PTX that is newer than itself).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..versions import numbers

Run = Literal["sass", "ptx", "no"]


def runs_on(sass: Iterable[str], ptx: Iterable[str], compute_capability: str) -> Run:
    """Return how a GPU of `compute_capability` (`8.6`) runs code for these targets.

    `sass` and `ptx` hold targets such as `9.0`, `9.0a`, `12.0f`. `ptx` as the answer means that the
    driver has to compile it, and must be new enough for that.
    """
    gpu = numbers(compute_capability)
    if any(_covers(target, gpu, ptx=False) for target in sass):
        return "sass"
    if any(_covers(target, gpu, ptx=True) for target in ptx):
        return "ptx"
    return "no"


def describe_code(sass: Iterable[str], ptx: Iterable[str]) -> str:
    """Return code for these targets as people read it: `7.5, 8.6; as PTX 9.0`."""
    compiled = ", ".join(ptx)
    return ", ".join(sass) + (f"; as PTX {compiled}" if compiled else "")


def _covers(target: str, gpu: tuple[int, ...], *, ptx: bool) -> bool:
    built = numbers(target)
    if target.endswith("a"):
        return gpu == built
    if ptx and not target.endswith("f"):
        return gpu >= built
    return gpu[:1] == built[:1] and gpu >= built
