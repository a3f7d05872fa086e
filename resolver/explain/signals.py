r"""What a message says, whatever its wording: `missing:cuda:12@cuda`, `cuda:35`, `no-wheel:numpy`.

Three kinds of messages are parsed here, each once: what a loader says of a library (glibc, Windows'
errors 126, 127, 193 and 1114, macOS, .NET, and programs that load libraries themselves), the
statuses of CUDA, cuDNN and cuBLAS, and what pip, uv and poetry say of a distribution. The rows of
`failures.toml` name the keys that they are about; `@` says who asked for a library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from .libraries import LibraryName
from .patterns import Pattern, pattern

Read = Callable[[str], LibraryName]

OTHERS = re.compile(
    r"dso_loader\.cc|tensorflow[/\\]|[/\\](?:cupy|jax|jaxlib|mxnet|paddle|tensorflow|dlib)[/\\]"
)
"""Programs whose libraries are not ours to bring, by what their messages hold."""
BEFORE = 400
"""How far before a message its asker is looked for."""


class Signal(NamedTuple):
    """What one message says."""

    key: str
    library: LibraryName | None = None
    """The library that it names."""


def asked(wanted: str, signal: Signal) -> bool:
    """Whether a row that names the key `wanted` is about this signal.

    `wanted` may hold `*`; without an `@` it is about whoever asked, but for programs of others.
    """
    key, _, asker = signal.key.partition("@")
    return asker != "others" and fnmatchcase(signal.key if "@" in wanted else key, wanted)


class Wording(NamedTuple):
    """A wording, and what it says."""

    pattern: Pattern
    kind: str
    """Of a loader: `missing`, `symbol`, `unloadable`; else the first word of its key."""


NOT_FOUND = "126"
"""Windows' ERROR_MOD_NOT_FOUND: it, or a library that it needs, is not there."""

_SYMBOL = re.compile(r"_{0,2}(?:cublas|cudnn|cufft|curand|nvrtc|nvJitLink)")
_FILE = r"""[^\s"':;,]{2,300}"""
_LIBRARY = r"[\w.+~-]{0,120}\w"


def _of_loaders(*rows: tuple[str, str]) -> tuple[Wording, ...]:
    return tuple(Wording(pattern(source), kind) for kind, source in rows)


LOADERS = _of_loaders(
    # glibc and musl; a program that opens it by itself repeats the name in front
    (
        "missing",
        (
            rf"(?:(?P<asker>{_FILE})\.? (?:Error|with error): \s{{0,4}})?(?P<library>{_FILE}): "
            r"cannot open shared object file"
        ),
    ),
    ("missing", r"load library failed: (?P<library>lib[\w.-]{1,60})"),
    (
        "symbol",
        (
            rf"(?:(?P<asker>{_FILE})\.? Error: )?(?P<library>{_FILE}): "
            r"undefined symbol: (?P<symbol>\w{1,200})"
        ),
    ),
    (
        "symbol",
        (
            rf"(?:(?P<asker>{_FILE})\.? Error: )?(?:{_FILE}: )?symbol \w{{1,300}},? "
            rf"version {_FILE} not defined in file (?P<library>{_LIBRARY})"
        ),
    ),
    # Windows, as onnxruntime puts it; its system's text can run over the middle of the line
    (
        "missing",
        rf'"(?P<asker>[^"\n]{{1,300}})"[^\n]{{0,120}}?(?P<library>{_LIBRARY})" which is missing',
    ),
    ("missing", rf"(?P<asker>{_FILE}): (?P<library>{_LIBRARY}\.dll) is missing"),
    (
        "unloadable",
        (
            r"LoadLibrary failed with error (?P<error>\d{1,5})[^\n]{0,120}? when trying to load "
            r'"(?P<library>[^"\n]{1,300})'
        ),
    ),
    (
        "unloadable",
        (
            r"\[WinError (?P<error>\d{1,5})\]"
            r'(?:[^\n]{0,300}?Error loading "(?P<library>[^"\n]{1,300})")?'
        ),
    ),
    (
        "unloadable",
        rf"ould not load library (?P<library>{_LIBRARY})\. Error code (?P<error>\d{{1,5}})",
    ),
    # programs that load cuDNN and cuBLAS by name
    ("missing", rf"ould not load library '?(?P<library>{_LIBRARY})"),
    ("missing", rf"Could not locate (?P<library>{_LIBRARY})\. Please"),
    ("missing", rf"Library (?P<library>{_LIBRARY}) is not found or cannot be loaded"),
    ("missing", r"LoadLibrary\(\):'(?P<library>[\w.-]{1,80})' not found"),
    ("missing", r"Unable to load any of \{(?P<library>[\w.]{1,80})"),
    ("missing", r"Cannot load symbol (?P<library>cudnn)\w{1,80}"),
    # macOS and .NET
    ("missing", rf"Library not loaded: (?P<library>{_FILE})"),
    ("missing", r"dlopen\((?P<library>[\w./-]{1,200}), [^\n]{0,200}image not found"),
    ("missing", r"Unable to load (?:shared library|DLL) '(?P<library>[\w./-]{1,120})'"),
)

NUMBERS = tuple(
    pattern(source)
    for source in (
        r"CUDA failure (?P<number>\d{1,4})\b",
        r"Cuda failure:? (?P<number>\d{1,4})\b",
        r"CUDA error(?: code)?[ =:]{1,2}(?P<number>\d{1,4})\b",
        r"cuda failed with error (?P<number>\d{1,4})\b",
        r"cuda runtime error \((?P<number>\d{3})\)",
        r"Cuda Error in \w{1,60}: (?P<number>\d{1,4}) \(",
    )
)
NAMES = tuple(pattern(rf"{prefix}\w{{2,60}}") for prefix in ("cudaError", "CUDA_ERROR_"))
PARTS = tuple(
    Wording(pattern(source), kind)
    for kind, source in (
        ("cudnn", r"CUDNN_STATUS_(?P<name>[A-Z_]{3,60})"),
        ("cudnn", r"CUDNN error executing (?P<name>\w{3,60})"),
        ("cublas", r"CUBLAS_STATUS_(?P<name>[A-Z_]{3,60})"),
        ("cublas", r"CUBLAS error executing (?P<name>\w{3,60})"),
    )
)
PACKAGES = tuple(
    Wording(pattern(source), kind)
    for kind, source in (
        ("no-wheel", r"satisfies the requirement (?P<name>[\w.-]{1,80})"),
        ("no-wheel", r"No matching distribution found for (?P<name>[\w.-]{1,80})"),
        (
            "no-wheel",
            (
                r"(?P<name>[A-Za-z]\w{1,60})-\d[\w.+-]{1,120}\.whl "
                r"is not a supported wheel on this platform"
            ),
        ),
        (
            "no-wheel",
            r"istribution `(?P<name>[\w.-]{1,80}?)[=<>@ ][^`\n]{0,200}` can't be installed because",
        ),
        ("no-wheel", r"`(?P<name>[\w.-]{1,80})` \(v[\w.+]{1,30}\) only has wheels for "),
        (
            "no-wheel",
            r"(?P<name>[A-Za-z][\w-]{0,80})(?:[<>=!~,\w.]{1,60})? (?:has|have) no wheels ",
        ),
        ("no-wheel", r"there is no version of (?P<name>[\w-]{1,80})=="),
        ("no-wheel", r"only (?P<name>[\w-]{1,80})[<=>]{1,2}[\w.]{1,40} is available"),
        ("no-wheel", r"Unable to find installation candidates for (?P<name>[\w.-]{1,80})"),
        (
            "unreachable",
            r"after connection broken by [^\n]{1,600}: /[\w./-]{0,80}/(?P<name>[\w.-]{1,80})/",
        ),
        ("unreachable", r"Max retries exceeded with url: /[\w./-]{0,80}/(?P<name>[\w.-]{1,80})/ "),
        ("unreachable", r"Failed to fetch: `?https?://[^`\s]{1,200}/(?P<name>[\w.-]{1,80})/`?"),
    )
)


class Parsers(NamedTuple):
    """All wordings, each with what makes a signal of its match."""

    rows: tuple[tuple[Pattern, Callable[[re.Match[str]], Signal | None]], ...]

    @classmethod
    def of(cls, read: Read, statuses: Mapping[str, str], texts: Mapping[str, str]) -> Parsers:
        """Make the parsers.

        `statuses`: the key of a status of CUDA by its number and by its names; `texts`: its key by
        what CUDA says of it.
        """
        rows = [(row.pattern, _loader(row.kind, read)) for row in LOADERS]
        rows += [(each, _status("number", statuses)) for each in NUMBERS]
        rows += [(each, _status(0, statuses)) for each in NAMES]
        rows += [(pattern(re.escape(text)), _always(key)) for text, key in texts.items()]
        rows += [(row.pattern, _named(row.kind)) for row in (*PARTS, *PACKAGES)]
        return cls(tuple(rows))


def _loader(kind: str, read: Read) -> Callable[[re.Match[str]], Signal | None]:
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


def _status(
    group: str | int, statuses: Mapping[str, str]
) -> Callable[[re.Match[str]], Signal | None]:
    def signal(match: re.Match[str]) -> Signal | None:
        key = statuses.get(match[group])
        return Signal(key) if key else None

    return signal


def _always(key: str) -> Callable[[re.Match[str]], Signal | None]:
    return lambda _: Signal(key)


def _named(kind: str) -> Callable[[re.Match[str]], Signal | None]:
    def signal(match: re.Match[str]) -> Signal | None:
        name = match["name"]
        if kind in {"no-wheel", "unreachable"}:
            name = re.sub(r"[-_.]+", "-", name).lower()
        return Signal(f"{kind}:{name}")

    return signal
