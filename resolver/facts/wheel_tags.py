"""The wheel tags of a Python on a machine that need not be this one, the best first.

`packaging.tags` makes them from platforms; this module makes the platforms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging import tags
from packaging.tags import Tag

from ..versions import numbers
from .model import Facts

GLIBC = "2.28"
"""Assumed where the libc is not known: that of the oldest supported distribution (RHEL 8), so that
the chosen wheels fit newer ones too."""
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
"""PEP 600."""
_OLDEST = {"x86_64": 5, "aarch64": 17}
"""The minor of the oldest glibc that wheels were built for."""
_WITHOUT_PYMALLOC = (3, 8)
"""The oldest Python whose ABI tag lost its `m` (https://docs.python.org/3/whatsnew/3.8.html)."""


def libc_tag(facts: Facts) -> tuple[str, tuple[int, ...]]:
    """Return the C library of a Linux machine and its version: `("glibc", (2, 35))`."""
    kind, version = facts.platform.c_library or ("glibc", numbers(GLIBC))
    return kind, (*version, 0)[:2]


def platforms(facts: Facts) -> tuple[str, ...]:
    """Return the platform tags of the machine of `facts`, the best first."""
    machine = facts.platform.machine
    if facts.platform.system == "windows":
        return ("win_amd64" if machine == "x86_64" else "win_arm64",)
    kind, (major, newest) = libc_tag(facts)
    if kind == "musl":
        policies = [f"musllinux_{major}_{minor}" for minor in range(newest, -1, -1)]
    else:
        policies = []
        for minor in range(newest, _OLDEST[machine] - 1, -1):
            policies.append(f"manylinux_{major}_{minor}")
            policies += [_LEGACY[major, minor]] if (major, minor) in _LEGACY else []
    return tuple(f"{policy}_{machine}" for policy in ("linux", *policies))


def abi(version: str, *, free_threaded: bool) -> str:
    """Return the ABI tag of CPython `version`: `cp311`, `cp313t`; `cp37m` up to 3.7."""
    major, minor = numbers(version)[:2]
    flag = "t" if free_threaded else "m" if (major, minor) < _WITHOUT_PYMALLOC else ""
    return f"cp{major}{minor}{flag}"


def tags_of(facts: Facts) -> Iterator[Tag]:
    """Yield the tags of the wheels that the CPython of `facts` can install, the best first."""
    python = facts.python
    return tags_on(platforms(facts), python.version, free_threaded=python.free_threaded)


def tags_on(
    platforms: Sequence[str],
    version: str,
    *,
    implementation: str = "cpython",
    free_threaded: bool = False,
) -> Iterator[Tag]:
    """Yield the tags that a Python `version` can install on `platforms`, the best first."""
    minor = numbers(version)[:2]
    if implementation == "cpython":
        yield from tags.cpython_tags(minor, [abi(version, free_threaded=free_threaded)], platforms)
    short = tags.INTERPRETER_SHORT_NAMES.get(implementation, implementation)
    interpreter = f"{short}{minor[0]}{minor[1]}"
    yield from tags.compatible_tags(minor, interpreter, platforms)
