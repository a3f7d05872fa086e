"""What the lines of a log show of the program that printed them, beside what failed.

The line numbers in onnxruntime's messages are of the sources of one version; paths name the Python
and its environment; some programs print the card. Only lines of programs are read: a version in a
sentence is not one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..facts.model import System
from ..versions import numbers

_SOURCE = re.compile(
    r"(?P<file>provider_bridge_ort|onnxruntime_pybind_state)\.cc:(?P<line>\d{3,4})\b"
)
_VERSION = re.compile(
    r"(?:onnxruntime_gpu-|(?m:^ ?[+~]? ?onnxruntime[-_]gpu(?:==| {1,40})))"
    r"(?P<version>1\.\d{1,2}\.\d{1,2})(?=[\s.-]|$)(?!\.\d)"
)
"""The files of a wheel, and a row of what pip or uv lists and installs."""
_INSTALLED = re.compile(
    r"Successfully installed [^\n]{0,900}?onnxruntime-gpu-(?P<version>1\.\d{1,2}\.\d{1,2})\b"
)
_PYTHON = re.compile(
    r"[/\\][Pp]ython(?:-|)(?P<major>3)\.?(?P<minor>\d{1,2})(?=[/\\])"
    r"|-cp(?P<cp>3\d{1,2})-|\.cpython-(?P<cpython>3\d{1,2})-|\.cp(?P<pyd>3\d{1,2})-win"
)
_ENVIRONMENT = re.compile(
    r"(?P<root>(?:[A-Za-z]:[\\/]|/)[^\n\"'<>|*?:]{0,200}?)[\\/]"
    r"(?:lib[\\/]python3\.\d{1,2}|Lib|lib)[\\/]site-packages[\\/]"
    r"(?!(?:poetry|pdm|hatch|pipenv)[\\/])"
)
"""Tools that install into other environments have one of their own."""
_OF_NOBODY = re.compile(r"(?i)^/usr(?:/local)?$|^[a-z]:[\\/]?$|[\\/]\.local$")
"""Folders of the system and of the user, which are no environments."""
_WINDOWS = re.compile(r"[A-Za-z]:\\[^\n\"]{1,200}\\|\w\.dll\b|\[WinError \d")
_LINUX = re.compile(r"\w\.so(?:\.\d{1,3})*: |/(?:usr|home|opt|root)/[\w./-]{1,200}\.(?:so|py)\b")
_CAPABILITY = re.compile(
    r"(?:compute capability:? |CUDA capability sm_|of cuda capability )"
    r"(?P<capability>\d{1,2}\.?\d)\b"
)
"""TensorFlow, ggml, PyTorch."""
_CARD = re.compile(r"NVIDIA GeForce RTX 50[5-9]0\b")
_OF_CARD = "12.0"
"""What a card of these names is, as nvidia-smi and programs print them. Source: `gpus.toml`."""


class SourceLine(NamedTuple):
    """A line of onnxruntime's sources that its messages name, and the versions that have it."""

    file: str
    line: int
    first: str
    last: str


class ShownInLog(NamedTuple):
    """What the lines show."""

    oldest: str | None = None
    newest: str | None = None
    """The versions of onnxruntime that the line numbers are of, or the one that a file name has."""
    python: str | None = None
    """`3.10`."""
    environment: str | None = None
    """The folder of the virtual environment, or of the Python, that the program runs in."""
    system: System | None = None
    capability: str | None = None
    """Of the card, `12.0`."""


class LineReader:
    """Reads a log piece by piece."""

    def __init__(self, sources: Sequence[SourceLine]) -> None:
        """Begin."""
        self._sources = {(source.file, source.line): source for source in sources}
        self._range: tuple[str, str] | None = None
        self._said: dict[str, str] = {}

    def feed(self, piece: str) -> None:
        """Look at the next piece."""
        for found in _SOURCE.finditer(piece):
            source = self._sources.get((found["file"], int(found["line"])))
            if source:
                first, last = self._range or (source.first, source.last)
                both = max(first, source.first, key=numbers), min(last, source.last, key=numbers)
                self._range = both if numbers(both[0]) <= numbers(both[1]) else self._range
        for fact, pattern in (
            ("version", _VERSION),
            ("version", _INSTALLED),
            ("capability", _CAPABILITY),
        ):
            self._keep(fact, (_dotted(found[fact]) for found in pattern.finditer(piece)))
        self._keep("capability", (_OF_CARD for _ in _CARD.finditer(piece)))
        for found in _PYTHON.finditer(piece):
            short = found["cp"] or found["cpython"] or found["pyd"]
            minor = found["minor"] or short[1:]
            self._keep("python", [f"3.{minor}"])
        roots = (found["root"] for found in _ENVIRONMENT.finditer(piece))
        self._keep("environment", (root for root in roots if not _OF_NOBODY.search(root)))
        if "system" not in self._said:
            windows, linux = _WINDOWS.search(piece), _LINUX.search(piece)
            if bool(windows) != bool(linux):
                self._said["system"] = "windows" if windows else "linux"

    def _keep(self, fact: str, values: Iterable[str]) -> None:
        """Keep the first value; of two that differ none is known."""
        for value in values:
            if self._said.setdefault(fact, value) != value:
                self._said[fact] = ""

    @property
    def shown(self) -> ShownInLog:
        """What was shown so far; a line number counts before a name."""
        said: Mapping[str, Any] = {fact: value for fact, value in self._said.items() if value}
        named = said.get("version")
        oldest, newest = self._range or (named, named)
        if named and oldest and newest and numbers(oldest) <= numbers(named) <= numbers(newest):
            oldest = newest = named
        return ShownInLog(
            oldest=oldest,
            newest=newest,
            python=said.get("python"),
            environment=said.get("environment"),
            system=said.get("system"),
            capability=said.get("capability"),
        )


def _dotted(value: str) -> str:
    """Return `120` as `12.0`; any other value unchanged."""
    return value if "." in value else f"{value[:-1]}.{value[-1]}"
