"""The plan: what is wrong, which set works here, and what has to be done for it.

Core. Only values; `resolve` makes them, `report` and `lock` write them, `apply` does them.
"""

from typing import Literal, NamedTuple

from ..facts.model import GPU_BUILD
from ..matrix.model import BuildWheel, Release
from ..matrix.torch import PypiWheel

PYPI = "pypi"
"""What `index` says of a wheel that comes from the user's default index."""
HERE = "here"
"""What `index` says of a wheel that is made here, and looked for nowhere."""

Severity = Literal["error", "warning", "info"]
Verdict = Literal["healthy", "fixable", "impossible"]


class Reason(NamedTuple):
    """Why something is so: a code of the table of texts, and the values of its placeholders."""

    code: str
    values: tuple[tuple[str, str], ...] = ()


def reason(code: str, **values: str) -> Reason:
    """Return the reason `code` with the values that its text names."""
    return Reason(code=code, values=tuple(values.items()))


class Finding(NamedTuple):
    """Something that was found here, wrong or worth knowing."""

    code: str
    severity: Severity
    values: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    """What was seen, and where: facts, not texts."""


def finding(code: str, severity: Severity, *evidence: str, **values: str) -> Finding:
    """Return the finding `code` with the values that its texts name, and what was seen."""
    return Finding(code=code, severity=severity, values=tuple(values.items()), evidence=evidence)


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


class Rejected(NamedTuple):
    """A release that does not work here, with every reason."""

    package: str
    version: str
    reasons: tuple[Reason, ...]


class Unlock(NamedTuple):
    """One change that would allow something better."""

    change: Reason
    gains: str
    """`onnxruntime-gpu 1.31.1`."""


class Plan(NamedTuple):
    """The whole answer."""

    verdict: Verdict
    matrix_date: str
    matrix_digest: str
    """`sha256:…` over the matrix that the plan was made with."""
    findings: tuple[Finding, ...] = ()
    why: tuple[Reason, ...] = ()
    """What speaks for the selection."""
    cuda: str | None = None
    """The CUDA major of the selection; None where nothing works."""
    selection: tuple[Wheel, ...] = ()
    """The whole set that works together, what is kept included."""
    uninstall: tuple[str, ...] = ()
    """Canonical names of the distributions that leave for good."""
    install: tuple[Wheel, ...] = ()
    companions: tuple[Companion, ...] = ()
    """What makes it last: installed with it."""
    requires: tuple[str, ...] = ()
    """Ordinary requirements that are missing; the engine picks their versions."""
    rejected: tuple[Rejected, ...] = ()
    unlock: tuple[Unlock, ...] = ()

    @property
    def release(self) -> str | None:
        """Return the release of onnxruntime-gpu that the selection has; None where it has none."""
        return next((row.version for row in self.selection if row.name == GPU_BUILD), None)
