r"""What a message says, whatever its wording: `missing:cuda:12@cuda`, `cuda:35`, `no-wheel:numpy`.

Three kinds of messages are parsed here, each once: what a loader says of a library (glibc, Windows'
errors 126, 127, 193 and 1114, macOS, .NET, and programs that load libraries themselves), the
statuses of CUDA, cuDNN and cuBLAS, and what pip, uv and poetry say of a distribution. The rows of
`failures.toml` name the keys that they are about; `@` says who asked for a library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from .patterns import Pattern, pattern

OTHERS = re.compile(
    r"dso_loader\.cc|that Paddle depends"
    r"|tensorflow[/\\]|[/\\](?:cupy|jax|jaxlib|mxnet|paddle|tensorflow|dlib)[/\\]"
)
"""Programs whose libraries are not ours to bring, by what their messages hold."""
BEFORE = 400
"""How far before a message who asks for a library is looked for."""
LOADER = ("missing", "symbol", "unloadable")
"""What a loader says of a library."""


class Signal(NamedTuple):
    """What one message says."""

    key: str
    library: LibraryName | None = None
    """The library that it names."""

    @property
    def of_others(self) -> bool:
        """Whether a program asked for it whose libraries are not ours to bring."""
        return self.key.endswith("@others")


def asked(wanted: str, signal: Signal) -> bool:
    """Whether a row that names the key `wanted` is about this signal.

    `wanted` may hold `*`; without an `@` it is about whoever asked, but for programs of others:
    these it has to name (`@others`).
    """
    if signal.of_others and not wanted.endswith("@others"):
        return False
    key = signal.key if "@" in wanted else signal.key.partition("@")[0]
    return fnmatchcase(key, wanted)


class Wording(NamedTuple):
    """A wording, and what it says."""

    pattern: Pattern
    kind: str
    """Of a loader: `missing`, `symbol`, `unloadable`; else the first word of its key."""


NOT_FOUND = "126"
"""Windows' ERROR_MOD_NOT_FOUND: it, or a library that it needs, is not there."""

_SYMBOL = re.compile(
    r"_{0,2}(?:cublas|cudnn|cufft|curand|cusolver|cusparse|cuda[A-Z]|nvrtc|nvJitLink)"
)


class LoggedLibrary(NamedTuple):
    """A row: file names of one kind, what they belong to, and the wheel that brings them."""

    regex: re.Pattern[str]
    part: str
    """What they are a part of: `cuda`, `cudnn`, `driver`, `tensorrt`, …"""
    major: str
    """The major of CUDA or cuDNN that they belong to; empty where the name does not show it."""
    distribution: str
    """The wheel that brings them; empty where none does."""
    name: str | None
    """The whole name, where a log may show only the end of it."""


class LibraryName(NamedTuple):
    """A file name that was read."""

    name: str
    part: str = ""
    """Empty: a library of somebody else."""
    major: str = ""
    distribution: str = ""


def reader_of(libraries: tuple[LoggedLibrary, ...]) -> Callable[[str], LibraryName]:
    """Return what reads a file name, with or without its folder."""

    @lru_cache(maxsize=1024)
    def read(file: str) -> LibraryName:
        name = re.split(r"[\\/]", file)[-1]
        for library in libraries:
            if library.regex.fullmatch(name):
                return LibraryName(
                    library.name or name, library.part, library.major, library.distribution
                )
        return LibraryName(name)

    return read


Read = Callable[[str], LibraryName]
Make = Callable[[re.Match[str]], Signal | None]
"""Makes a signal of the match of a wording."""


class Parsers(NamedTuple):
    """All wordings, each with what makes a signal of its match."""

    rows: tuple[tuple[Pattern, Make], ...]

    @classmethod
    def of(
        cls,
        wordings: Sequence[Wording],
        read: Read,
        statuses: Mapping[str, str],
        texts: Mapping[str, str],
    ) -> Parsers:
        """Make the parsers.

        `read` reads a file name; `statuses`: the key of a status of CUDA by its number and by its
        names; `texts`: its key by what CUDA says of it.
        """
        makers: dict[str, Make] = {kind: _loader(kind, read) for kind in LOADER}
        makers["status"] = _status(statuses)
        rows = [
            (wording.pattern, makers[wording.kind])
            for wording in wordings
            if wording.kind in makers
        ]
        rows += [(_of_cuda(text), _always(key)) for text, key in texts.items()]
        rows += [
            (wording.pattern, _named(wording.kind))
            for wording in wordings
            if wording.kind not in makers
        ]
        return cls(tuple(rows))


def _of_cuda(text: str) -> Pattern:
    """Return the pattern of what CUDA says, however it begins; AMD's HIP says the same."""
    first, rest = text[0], re.escape(text[1:])
    return pattern(rf"(?<!HIP error: )[{first.lower()}{first.upper()}]{rest}")


def _loader(kind: str, read: Read) -> Make:
    """Return what makes a signal of a loader's message."""

    def signal(match: re.Match[str]) -> Signal | None:
        groups = match.groupdict()
        library = read(groups.get("library") or "")
        asker = _asker(match, groups.get("asker") or "", read)
        part, error = library.part, groups.get("error")
        if error == NOT_FOUND and part and not part.startswith("provider"):
            return Signal(f"missing:{part}:{library.major}@{asker}", library)
        if not part and _SYMBOL.match(groups.get("symbol") or ""):
            part = "cuda"  # somebody else's library, which wants a symbol of ours
        return Signal(f"{kind}:{part}:{error or library.major}@{asker}", library)

    return signal


def _asker(match: re.Match[str], named: str, read: Read) -> str:
    """Return who asked: `cuda`, `tensorrt`, …, `others`, or nothing where nobody is named."""
    before = match.string[max(0, match.start() - BEFORE) : match.end()]
    line = before.rpartition("\n")[2]
    if OTHERS.search(line):
        return "others"
    if "error while loading shared libraries: " in line:
        return "program"
    return read(named).part.removeprefix("provider-")


def _status(statuses: Mapping[str, str]) -> Make:
    def signal(match: re.Match[str]) -> Signal | None:
        key = statuses.get(match.groupdict().get("number", match[0]))
        return Signal(key) if key else None

    return signal


def _always(key: str) -> Make:
    return lambda _: Signal(key)


def _named(kind: str) -> Make:
    def signal(match: re.Match[str]) -> Signal | None:
        name = match["name"]
        if kind in {"no-wheel", "unreachable"}:
            name = re.sub(r"[-_.]+", "-", name).lower()
        return Signal(f"{kind}:{name}")

    return signal
