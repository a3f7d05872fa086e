"""The wheels of a plan, and where they come from."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..facts.model import GPU_BUILD
from ..matrix.model import DEFAULT_INDEX, AddedRows, Build, BuildWheel, Release
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH, PypiWheel

PYPI = DEFAULT_INDEX
"""The `index_url` of a wheel of the user's default index."""
HERE = "here"
"""The `index_url` of a wheel that this program makes."""
TORCH_FAMILY = frozenset({TORCH, *DOMAIN_LIBRARIES})
"""Distributions whose requirements are not in a plan: only their wheels have them."""
_MINOR = re.compile(r"cp3(\d+)")


class Wheel(NamedTuple):
    """A wheel of a plan; what the matrix does not know of it is left to the index."""

    name: str
    """The canonical name of the distribution."""
    version: str
    index_url: str
    """`PYPI`, or the URL of the only index that may serve it:
    `https://download.pytorch.org/whl/cu128` for a torch that PyPI does not have; `INSTALLED` for
    one that is kept and that no index is known to have; `IN_TORCH` for what torch brings."""
    file: str
    """Its file name; empty: not known."""
    size: int
    """Bytes; 0: not known."""
    sha256: str
    """Empty: not known."""

    @property
    def every_python(self) -> bool:
        """Return whether it fits every Python 3; False where its file is not known."""
        return "-py3-" in self.file


def index_of_torch(wheels: Iterable[Wheel]) -> str | None:
    """Return the address of the index from which a torch, or a library of it, comes.

    None where that is the default one.
    """
    urls = (wheel.index_url for wheel in wheels if wheel.name in TORCH_FAMILY)
    return next((url for url in urls if url != PYPI), None)


def short_name(name: str) -> str:
    """Return `cublas` for `nvidia-cublas-cu12`: a wheel of NVIDIA's without what all have."""
    return re.sub(r"^nvidia-(.+?)(-cu\d+)?$", r"\1", name)


def oldest_python(builds: Iterable[Build], wheels: Collection[Wheel], python: str) -> str:
    """Return the oldest Python that `wheels` fit, as `3.11`; `builds` are those of onnxruntime-gpu.

    It is `python`, the one that they were chosen for, where any other of them fits one Python.
    """
    alone = any(not wheel.every_python for wheel in wheels if wheel.name != GPU_BUILD)
    oldest = [
        min(
            (int(minor) for wheel in build.wheels for minor in _MINOR.findall(wheel.python)),
            default=0,
        )
        for build in builds
    ]
    return f"3.{max(oldest)}" if oldest and not alone else python


def on_pypi(name: str, version: str, chosen: BuildWheel | Release | PypiWheel | None) -> Wheel:
    """Return a wheel of the default index; without a `chosen` its file is not known."""
    return wheel_on(PYPI, name, version, chosen)


def wheel_on(
    index_url: str, name: str, version: str, chosen: BuildWheel | Release | PypiWheel | None
) -> Wheel:
    """Return a wheel of this index; without a `chosen` its file is not known."""
    file, size, sha256 = (chosen.file, chosen.size, chosen.sha256) if chosen else ("", 0, "")
    return Wheel(
        name=name, version=version, index_url=index_url, file=file, size=size, sha256=sha256
    )


def rows_of(wheel: Wheel, added: Iterable[AddedRows]) -> AddedRows | None:
    """Return the rows that hold `wheel`, of those that were read; None: the shipped ones do."""
    release = f"{wheel.name} {wheel.version}"
    for addition in added:
        index = addition.index_url if addition.alone else PYPI
        if wheel.index_url == index and release in addition.releases:
            return addition
    return None


def read_hashes(
    wheels: Iterable[Wheel], added: Iterable[AddedRows]
) -> tuple[tuple[AddedRows, tuple[Wheel, ...]], ...]:
    """Return the wheels whose hash is the one that an index gave when it was read, by its rows."""
    additions = tuple(added)
    held = [(rows_of(wheel, additions), wheel) for wheel in wheels] if additions else []
    groups = ((one, tuple(wheel for by, wheel in held if by is one)) for one in additions)
    return tuple((one, group) for one, group in groups if group)


class Pinned(NamedTuple):
    """A wheel, and the URL of its file."""

    wheel: Wheel
    url: str


def first_of_each(pinned: Iterable[Pinned]) -> tuple[Pinned, ...]:
    """Return of each distribution the wheel that comes first: it fits best."""
    first: dict[str, Pinned] = {}
    for pin in pinned:
        first.setdefault(pin.wheel.name, pin)
    return tuple(first.values())


class Companion(NamedTuple):
    """A wheel that this program makes and installs."""

    name: str
    version: str
