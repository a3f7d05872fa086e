"""What was recognised in a log, put in order: root causes with what follows from them.

In: the places where rows were recognised; out: explanations in the reader's language.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..facts.model import System
from ..messages.catalog import Language
from ..plan.reasons import Severity
from ..versions import numbers
from .failures import SEVERITIES, ByLanguage, Failure, FailureTable, NeededFiles, ProgramKind
from .lines import ShownInLog
from .wordings import LibraryName

ANYBODYS = frozenset({"driver", "gpu-code"})
"""What rows are about that any program can fail by, also one that has nothing of ours."""
OF_ONNXRUNTIME = frozenset(
    {"build", "cudnn", "fallback", "gpu-code", "libraries", "msvc", "native", "tensorrt", "zlib"}
)
"""What rows are about that a program which brings onnxruntime itself can fail by."""
OWN = "own"
"""The kind of program that brings an onnxruntime itself, where no more is known of it."""
NEEDS_CUDA = frozenset({"libraries", "cudnn", "fallback"})
"""What rows are about that say more where it is known which CUDA the build needs."""
_END = re.compile(r"[.:] |[。：]")
_WANTS = re.compile(r"(cuDNN|CUDA) (\d{1,2})\.\*")
"""What onnxruntime says that a build requires."""
MOST_EVIDENCE = 5
"""The most lines that are shown for one failure."""


class LogLine(NamedTuple):
    """A line that says it."""

    line_number: int
    line: str
    message: str = ""
    """What was recognised, with a little of what stands around it."""


class Explanation(NamedTuple):
    """One failure that stands in a log."""

    code: str
    severity: Severity
    what: str
    """The headline: what is wrong, in a few words."""
    line: str
    """The text that was recognised."""
    line_number: int
    cause: str
    remedy: str
    commands: tuple[str, ...]
    fixable: bool
    """True where `ortgpu-fix --apply` can fix it."""
    sources: tuple[str, ...]
    certain: bool = True
    """False where the text says only that something failed, and not why."""
    evidence: tuple[LogLine, ...] = ()
    libraries: tuple[str, ...] = ()
    """The libraries that are named."""
    consequences: tuple[str, ...] = ()
    """The codes of what stands in the log too and follows from this."""
    owner_commands: tuple[str, ...] = ()
    """Those of `commands` that only who owns the host, or its system, can run."""
    origin: str | None = None
    """The kind of program that wrote the log, where its remedy is another."""
    ask: str = ""
    """The question that decides, where no machine was looked at."""
    effect: bool = False
    """It says only that CUDA was not used, and not why."""


class RecognisedFailure(NamedTuple):
    """Where a row was recognised, and the library that was named."""

    place: tuple[int, int, int]
    """The number of the piece, and the span in it."""
    evidence: LogLine
    failure: Failure
    library: LibraryName | None
    if_wanted: bool
    """Whether a program for CPUs prints the same, and nothing shows that a GPU was wanted."""


def explanations(
    recognised: Sequence[RecognisedFailure],
    table: FailureTable,
    origins: Sequence[ProgramKind],
    language: Language,
    release: str | None,
    *,
    excepted: Collection[str],
    ours: bool,
    python: bool,
    shown: ShownInLog,
) -> tuple[Explanation, ...]:
    """Return what was recognised as explanations, errors first, each kind in the log's order.

    What a program for CPUs prints as well counts only where nothing else was recognised.
    `origins`: the kinds of programs that the log has traces of; `excepted`: the codes of those
    where packages fix what they can all the same; `ours`: whether it names anything that this
    program can change; `python`: whether it shows Python's packages; `release`: the onnxruntime-gpu
    that it is about, where known; `shown`: what the lines show besides.
    """
    build = table.needed_by(shown.oldest, shown.newest)
    logged = shown.newest if build else None
    found_by_code: dict[str, list[RecognisedFailure]] = {}
    known = [each for each in recognised if not each.if_wanted]
    for each in known or recognised:
        failure = _of_card(
            _of_release(each.failure, table, release), table, build, shown.capability
        )
        found_by_code.setdefault(failure.code, []).append(each._replace(failure=failure))
    for found in found_by_code.values():
        found.sort(key=lambda each: (each.failure.program != "", each.place))
        found[:] = [each for each in found if each.failure.program == found[0].failure.program]
    roots, followers = _folded({code: found[0].failure for code, found in found_by_code.items()})
    owners = table.owner_commands
    made: list[Explanation] = []
    for code in roots:
        libraries = [
            each.library for each in found_by_code[code] if each.library and each.library.part
        ]
        values = _values(libraries) | needed_files(table.needed, libraries, logged)
        kind = table.programs.get(found_by_code[code][0].failure.program)
        others = [
            each
            for each in origins
            if each.code not in excepted
            or not (found_by_code[code][0].failure.fixable or each.unless_at_all)
        ]
        if _is_of_another(table.needed, libraries, logged):
            others.append(table.programs[OWN])
        kind = kind or _program(found_by_code[code][0].failure, others, python=python)
        one = _explanation(found_by_code[code], kind, language, release, values)
        between = " " if language == "en" else ""
        about = found_by_code[code][0].failure.about in NEEDS_CUDA
        if build and table.needs and about and _agrees(build, libraries, one.evidence):
            values = {"version": _range(shown), "cuda": build.cuda, "cudnn": build.cudnn}
            needs = table.needs[language].format_map(values)
            one = one._replace(cause=one.cause + between + needs)
        question = (
            table.ask.get(found_by_code[code][0].failure.ask) if one.severity != "info" else None
        )
        one = one._replace(ask=question[language] if question else "")
        if not ours and found_by_code[code][0].failure.about in ANYBODYS:
            own = tuple(line for line in one.commands if not line.startswith("ortgpu-fix"))
            one = one._replace(fixable=False, commands=own)
        for more in _besides(found_by_code[code][0].failure, others, kind):
            one = one._replace(remedy=one.remedy + between + more[language])
        commands = tuple(line for line in one.commands if line.startswith(owners))
        consequences = tuple(followers.get(code, ()))
        made.append(one._replace(owner_commands=commands, consequences=consequences))
    of_other = {each.code: found_by_code[each.code][0].failure.program != "" for each in made}
    made.sort(
        key=lambda each: (SEVERITIES.index(each.severity), of_other[each.code], each.line_number)
    )
    return tuple(made)


def on_system(
    found: Sequence[Explanation], system: System, table: FailureTable
) -> tuple[Explanation, ...]:
    """Return `found` with the commands that this system has."""
    missing = table.not_windows_commands if system == "windows" else ()
    return tuple(
        one._replace(
            commands=tuple(line for line in one.commands if not line.startswith(missing)),
            owner_commands=tuple(x for x in one.owner_commands if not x.startswith(missing)),
        )
        for one in found
    )


def _of_release(failure: Failure, table: FailureTable, release: str | None) -> Failure:
    by = failure.by_release
    if by is None or release is None or not by.releases.contains(release):
        return failure
    return table.by_code[by.inside]


def _of_card(
    failure: Failure, table: FailureTable, build: NeededFiles | None, capability: str | None
) -> Failure:
    """Return the row that holds for a card: a build for an older CUDA has no code for it."""
    newest = build.newest_gpu if build else None
    if failure.on_new_card and newest and capability and numbers(capability) > numbers(newest):
        return table.by_code[failure.on_new_card]
    return failure


def _range(shown: ShownInLog) -> str:
    """Return the version, or the first and the last that it may be: `1.16.0 to 1.16.3`."""
    return " – ".join(dict.fromkeys(filter(None, (shown.oldest, shown.newest))))


def _program(
    failure: Failure, origins: Sequence[ProgramKind], *, python: bool
) -> ProgramKind | None:
    """Return the kind of program whose remedy for `failure` differs from that of Python packages.

    Of one that brings onnxruntime itself the remedy is as the row says it, where nothing more is
    known, and no package is promised.
    """
    for each in origins:
        if failure.about in each.remedies and not each.besides:
            return each
    bundled = not python and (failure.about in OF_ONNXRUNTIME or failure.bundled)
    return next((each for each in origins if bundled and each.bundled), None)


def _besides(
    failure: Failure, origins: Sequence[ProgramKind], kind: ProgramKind | None
) -> Iterator[ByLanguage]:
    """Yield what is added to the remedy of `failure`, if that is not of a `kind` of program."""
    if failure.to_use and all(each.besides for each in origins):
        yield failure.to_use
    if kind is None:
        yield from (
            each.remedies[failure.about] for each in origins if failure.about in each.remedies
        )


def _explanation(
    found: Sequence[RecognisedFailure],
    origin: ProgramKind | None,
    language: Language,
    release: str | None,
    values: Mapping[str, str],
) -> Explanation:
    first, failure = found[0], found[0].failure
    named = [each.library for each in found if each.library and each.library.part]
    cause, remedy = failure.cause, failure.remedy
    if origin is not None:
        remedy = origin.remedies.get(failure.about, failure.bundled or remedy)
    if failure.by_release and release:
        cause, remedy = failure.by_release.cause, failure.by_release.remedy
    maybe = found[0].if_wanted
    headline, rest = (
        (failure.what, cause[language]) if failure.what else _first_sentence(cause[language])
    )
    commands = origin.commands.get(failure.about, ()) if origin else failure.commands
    return Explanation(
        code=failure.code,
        severity="info" if maybe else failure.severity,
        what=_filled(headline if isinstance(headline, str) else headline[language], values),
        line=first.evidence.line,
        line_number=first.evidence.line_number,
        cause=_filled(rest, values),
        remedy=remedy[language].format_map(values),
        commands=() if maybe else tuple(command.format_map(values) for command in commands),
        fixable=failure.fixable and origin is None and not maybe,
        sources=failure.sources,
        certain=not failure.generic and not maybe,
        evidence=tuple(dict.fromkeys(each.evidence for each in found))[:MOST_EVIDENCE],
        libraries=tuple(dict.fromkeys(library.name for library in named)),
        origin=origin.code if origin else None,
        effect=failure.effect,
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    return text.format_map(values).replace(" ()", "").replace("（）", "")


def _first_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence of a cause, which is its headline, and what follows it."""
    for end in _END.finditer(text):
        first, rest = text[: end.start()], text[end.end() :]
        if rest and first.count("(") == first.count(")") and first.count("（") == first.count("）"):
            name = rest.startswith("onnxruntime")
            return first, rest if name else rest[0].upper() + rest[1:]
    return text.rstrip(".。"), text


def _folded(failures: Mapping[str, Failure]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the codes of the root causes, and by each what follows from it."""
    particular = [
        failure.code
        for failure in failures.values()
        if failure.severity == "error" and not failure.generic
    ]
    causes: dict[str, str] = {}
    for code, failure in failures.items():
        known = [each for each in failure.after if each in failures]
        known += [each for each in particular if failure.generic and each != code]
        if known:
            causes[code] = known[0]
    roots = [code for code in failures if code not in causes]
    followers: dict[str, list[str]] = {}
    for code, cause in causes.items():
        root, steps = cause, 0
        while root in causes and steps < len(causes):
            root, steps = causes[root], steps + 1
        followers.setdefault(root, []).append(code)
    return roots or list(failures), followers


def _values(named: Sequence[LibraryName]) -> dict[str, str]:
    """Return what the placeholders of the texts stand for."""
    names = dict.fromkeys(each.name for each in named)
    files = [name for name in names if "." in name]  # else some say `cudnn` besides
    return {
        "library": ", ".join(files or names),
        "distribution": ", ".join(
            dict.fromkeys(each.distribution for each in named if each.distribution)
        ),
    }


def needed_files(
    needed: Sequence[NeededFiles], named: Sequence[LibraryName], release: str | None
) -> dict[str, str]:
    """Return `files`, `wheels` and the option `of_cuda` for the libraries that a log names.

    Beside them the log's `release` counts. Where neither shows the CUDA major, those of every major
    are returned, each with its releases.
    """
    names = [library.name.lower() for library in named]
    windows = any(name.endswith(".dll") for name in names)
    linux = any(".so" in name for name in names) and not windows
    chosen = _chosen(needed, named, release)
    files = [
        "; ".join(([each.windows] if not linux else []) + ([each.linux] if not windows else []))
        for each in chosen
    ]
    if len(chosen) == 1:
        option = f" --cuda {chosen[0].cuda}"
        return {"files": files[0], "wheels": chosen[0].wheels, "of_cuda": option}
    heads = [f"CUDA {each.cuda} (onnxruntime {each.releases}): " for each in chosen]
    return {
        "files": "; ".join(head + text for head, text in zip(heads, files, strict=True)),
        "wheels": "; ".join(f"CUDA {each.cuda}: {each.wheels}" for each in chosen),
        "of_cuda": "",
    }


def _chosen(
    needed: Sequence[NeededFiles], named: Sequence[LibraryName], release: str | None
) -> Sequence[NeededFiles]:
    cuda = {library.major for library in named if library.part == "cuda"}
    cudnn = {library.major for library in named if library.part == "cudnn"}
    fits = [files for files in needed if release is not None and files.releases.contains(release)]
    for known in (
        [files for files in needed if files.cuda in cuda],
        [files for files in fits if not cudnn or files.cudnn in cudnn],
        [files for files in needed if files.cudnn in cudnn],
    ):
        if known:
            return known
    return needed


def _agrees(build: NeededFiles, named: Sequence[LibraryName], evidence: Sequence[LogLine]) -> bool:
    """Return whether the log is of PyPI's `build` of its version: others are for another CUDA."""
    wanted = {"cuda": build.cuda, "cudnn": build.cudnn}
    said = [(library.part, library.major) for library in named if library.major]
    said += [
        (found[1].lower(), found[2]) for seen in evidence for found in _WANTS.finditer(seen.line)
    ]
    return all(wanted.get(part, major) == major for part, major in said)


def _is_of_another(
    needed: Sequence[NeededFiles], named: Sequence[LibraryName], release: str | None
) -> bool:
    """Return whether libraries are of an older CUDA than the wheels of `release` want.

    Another onnxruntime asked for them. (Builds for a newer one were on an index of Microsoft's.)
    """
    wanted = {
        files.cuda for files in needed if release is not None and files.releases.contains(release)
    }
    cuda = {library.major for library in named if library.part == "cuda" and library.major}
    return any(int(major) < int(its) for major in cuda for its in wanted)
