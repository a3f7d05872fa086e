"""The wheels of a plan: what is installed, where it comes from and how it is known."""

from typing import NamedTuple

from ..matrix.model import BuildWheel, Release
from ..matrix.torch import PypiWheel

PYPI = "pypi"
"""What `index` says of a wheel that comes from the user's default index."""


HERE = "here"
"""What `index` says of a wheel that is made here, and looked for nowhere."""


class Wheel(NamedTuple):
    """A wheel of the set, as the matrix knows it."""

    name: str
    """The canonical name of the distribution."""
    version: str
    index_url: str
    """`pypi` for the user's default index, else the URL of the index that must serve it, and no
    other: `https://download.pytorch.org/whl/cu128` for a torch that PyPI does not have."""
    file: str
    """Its file name on the index; empty: as that index calls it."""
    size: int
    """Bytes; 0: as that index says."""
    sha256: str
    """Empty: as that index says."""


def on_pypi(name: str, version: str, row: BuildWheel | Release | PypiWheel | None) -> Wheel:
    """Return a wheel of the default index; where no `row` knows it, as that index says."""
    file, size, sha256 = (row.file, row.size, row.sha256) if row else ("", 0, "")
    return Wheel(name=name, version=version, index_url=PYPI, file=file, size=size, sha256=sha256)


class Pinned(NamedTuple):
    """A wheel, and where it was found."""

    wheel: Wheel
    """Its size is 0 where the index does not say."""
    url: str


class Companion(NamedTuple):
    """A wheel to install that is made here and never looked for on an index."""

    name: str
    version: str
