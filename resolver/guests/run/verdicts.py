"""What each session got of what it asked for, and why not.

Core. Sessions that are alike, of one maker, make one group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple, get_args

from ...log_lines.explanations import Explanation
from .events import Frame, InferenceSession, ProgramSeen

SessionVerdict = Literal[
    "asked-not-got",
    "asked-tensorrt-got-cuda",
    "got-but-slow-options",
    "never-asked",
    "asked-other",
    "not-made",
    "got",
]
VERDICTS: tuple[SessionVerdict, ...] = get_args(SessionVerdict)
"""The worst for a user who wants the GPU comes first, but that who never asked got what it did."""
ProgramVerdict = (
    Literal[
        "no-python",
        "no-library",
        "not-installed",
        "not-observed",
        "printed-failure",
        "import-failed",
        "not-whole",
        "no-session",
    ]
    | SessionVerdict
)

PLAIN = frozenset(
    {"CPUExecutionProvider", "AzureExecutionProvider", "cpu", "PREFER_CPU", "DEFAULT"}
)
"""What is always there, or computes elsewhere; the policies that take it."""
CUDA = "CUDAExecutionProvider"
TENSORRT = frozenset({"TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"})
ANY = frozenset({"auto", "PREFER_GPU", "MAX_PERFORMANCE"})
"""The GPU where there is one: CTranslate2's word, and onnxruntime's policies."""
_NVIDIA = re.compile("cuda|tensorrt", re.IGNORECASE)
"""In the names of what computes on NVIDIA's GPUs, in every library and every misspelling."""
_OF_THE_MODEL = re.compile(
    r"(NoSuchFile|NoModel|InvalidProtobuf|InvalidGraph): |.*: Load model from "
    "|RuntimeError: Unable to open file "
)
"""Begins the error of a model that cannot be read: onnxruntime's classes, CTranslate2's words."""
MANY_SHAPES = 10
"""So many different shapes, each searched for anew, are more than a warm-up."""
SLOWER = 2.0
"""How much longer a run with a new shape takes before that is called slow."""
_COPIES = re.compile(r"\b(\d{1,6}) Memcpy nodes are added to the graph")
"""Source: onnxruntime, core/optimizer/transformer_memcpy.cc."""


class Maker(NamedTuple):
    """The distribution whose code made a session, and where; the program itself has no name."""

    name: str
    version: str
    frame: Frame


class MadeBy(NamedTuple):
    """Who made a session."""

    maker: Maker | None
    via: tuple[Maker, ...] = ()
    """The other distributions that called it, the innermost first."""
    caller: Frame | None = None
    """The innermost line of the program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGroup:
    """Sessions that one line of a program made and that fared alike."""

    verdict: SessionVerdict
    sessions: tuple[InferenceSession, ...]
    made: MadeBy
    not_in_build: tuple[str, ...] = ()
    """The providers that were asked for and that the build does not have."""
    why: tuple[Explanation, ...] = ()
    """The failures that onnxruntime's words show."""

    @property
    def first(self) -> InferenceSession:
        """The first of them, which stands for what is alike in all."""
        return self.sessions[0]

    @property
    def copies(self) -> int:
        """How many copies between CPU and GPU onnxruntime warns of, in the worst session."""
        found = [_COPIES.findall(each.words) for each in self.sessions]
        return max((sum(map(int, numbers)) for numbers in found), default=0)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models: their paths, or the names of the graphs of those given as bytes."""
        names = (each.model or each.graph or "" for each in self.sessions)
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def create_ms(self) -> float | None:
        """The median time that it took to make one."""
        times = [each.create_ms for each in self.sessions if each.create_ms is not None]
        return median(times) if times else None


def on_gpu(names: Iterable[str]) -> tuple[str, ...]:
    """Return those among `names` that stand for NVIDIA's GPU."""
    return tuple(name for name in names if name in ANY or _NVIDIA.search(name))


def asked_names(session: InferenceSession) -> tuple[str, ...]:
    """Return what a session was asked for."""
    return tuple(each.name for each in session.asked or ())


def verdict_of(session: InferenceSession) -> SessionVerdict:
    """Return what a session got of what it asked for."""
    if session.got is None and any(map(_OF_THE_MODEL.match, session.errors[-1:])):
        return "not-made"
    asked, got = asked_names(session), session.got or ()
    wanted, has = on_gpu(asked), on_gpu(got)
    if not has and (wanted or (session.by_options and session.asked is None)):
        return "asked-not-got"
    if wanted and wanted[0] in TENSORRT and wanted[0] not in has:
        return "asked-tensorrt-got-cuda"
    others = set(asked) - PLAIN
    if not has and not others & set(got):
        return "asked-other" if others else "never-asked"
    return "got-but-slow-options" if _searches_often(session) else "got"


def _searches_often(session: InferenceSession) -> bool:
    """Return whether cuDNN's exhaustive search, CUDA's default, was begun anew for many shapes.

    Source: https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html
    """
    runs, options = session.runs, session.options.get(CUDA, {})
    if options.get("cudnn_conv_algo_search") != "EXHAUSTIVE" or runs.shapes < MANY_SHAPES:
        return False
    if runs.fresh_ms is None:
        return False
    return runs.later_ms is None or runs.fresh_ms >= SLOWER * runs.later_ms


def without_gpu(session: InferenceSession) -> bool:
    """Return whether a session asked for the GPU and goes on, or ended, without."""
    return verdict_of(session) == "asked-not-got"


def grouped(
    sessions: Sequence[InferenceSession],
    made_by: Callable[[InferenceSession], MadeBy],
    explain: Callable[[str], tuple[Explanation, ...]],
) -> tuple[SessionGroup, ...]:
    """Return the sessions in groups, the worst first.

    `explain` returns the failures that a text shows; it is called once for each different text.
    What is no more than information is a reason only where nothing else is.
    """
    groups: dict[object, SessionGroup] = {}
    explained: dict[str, tuple[Explanation, ...]] = {}
    for session in sessions:
        verdict, made = verdict_of(session), made_by(session)
        why: tuple[Explanation, ...] = ()
        missing: tuple[str, ...] = ()
        if verdict in {"asked-not-got", "asked-tensorrt-got-cuda"}:
            missing = _not_in_build(session)
            text = _without_times(session)
            if text not in explained:
                found = explain(text) if text.strip() else ()
                explained[text] = tuple(each for each in found if each.severity != "info") or found
            why = explained[text]
        frame = made.maker.frame if made.maker else None
        names = None if session.asked is None else tuple(each.name for each in session.asked)
        codes = tuple(each.code for each in why)
        key = (session.library, frame, names, session.got, verdict, missing, codes)
        known = groups.get(key)
        before = known.sessions if known else ()
        groups[key] = SessionGroup(
            verdict=verdict,
            sessions=(*before, session),
            made=known.made if known else made,
            not_in_build=missing,
            why=why,
        )
    return tuple(sorted(groups.values(), key=lambda each: VERDICTS.index(each.verdict)))


def _not_in_build(session: InferenceSession) -> tuple[str, ...]:
    if not session.available:
        return ()
    names = (CUDA if name in ANY else name for name in on_gpu(asked_names(session)))
    return tuple(name for name in names if name not in session.available)


def _without_times(session: InferenceSession) -> str:
    """Return the words and errors of a session without what differs in equal ones: the times."""
    words = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+", "", session.words)
    return "\n".join([words, *session.errors])


def judge_program(seen: ProgramSeen, printed: Sequence[Explanation] = ()) -> ProgramVerdict:
    """Return the one word for a program: the worst of its sessions, or why there are none.

    `printed`: the failures that its standard error shows.
    """
    if seen.sessions:
        return min(map(verdict_of, seen.sessions), key=VERDICTS.index)
    if printed:
        return "printed-failure"
    if any(library.error for library in seen.libraries):
        return "import-failed"
    if any(library.makes_none for library in seen.libraries):
        return "not-whole"
    if seen.missing and not seen.libraries:
        return "not-installed"
    if seen.unobserved:
        return "not-observed"
    if not seen.processes:
        return "no-python"
    return "no-session" if seen.libraries else "no-library"
