"""What a session got of what it asked for, the groups, the advice, and every way to tell them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.run.advice import Packed, advice_of, knobs_of
from ortgpu_fix.guests.run.events import (
    Asked,
    Frame,
    ImportedLibrary,
    InferenceSession,
    MissingLibrary,
    ProgramSeen,
    PythonProcess,
    Runs,
    TorchState,
    Unobserved,
    parse_events,
)
from ortgpu_fix.guests.run.verdicts import (
    CUDA,
    MadeBy,
    Maker,
    SessionGroup,
    grouped,
    judge_program,
    verdict_of,
    without_gpu,
)
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.shells import PROGRAM
from ortgpu_fix.plan.reasons import Severity

CPU, TENSORRT = "CPUExecutionProvider", "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
FRAME = Frame("/env/site-packages/rembg/session.py", 46, "__init__")
MADE = MadeBy(Maker("rembg", "2.0.57", FRAME), (), Frame("/home/me/app.py", 3, "<module>"))


def session(
    *asked: str, got: tuple[str, ...] | None = (CPU,), library: str = "onnxruntime", name: str = "1"
) -> InferenceSession:
    wanted = tuple(Asked(each) for each in asked) or None
    available = (TENSORRT, CUDA, CPU)
    return InferenceSession(
        id=name, pid=7, library=library, asked=wanted, got=got, available=available
    )


@pytest.mark.parametrize(
    ("asked", "got", "verdict"),
    [
        ((), (CPU,), "never-asked"),
        ((CPU, "AzureExecutionProvider"), (CPU,), "never-asked"),
        ((CUDA, CPU), (CPU,), "asked-not-got"),
        ((CUDA,), None, "asked-not-got"),
        ((CUDA, CPU), (CUDA, CPU), "got"),
        ((TENSORRT, CUDA, CPU), (CUDA, CPU), "asked-tensorrt-got-cuda"),
        ((CUDA, TENSORRT, CPU), (CUDA, CPU), "got"),
        ((OPENVINO,), (OPENVINO, CPU), "got"),
        ((OPENVINO, CPU), (CPU,), "asked-other"),
        ((CUDA, OPENVINO, CPU), (OPENVINO, CPU), "asked-not-got"),
        (("CudaExecutionProvider",), (CPU,), "asked-not-got"),
        (("PREFER_GPU",), (CUDA, CPU), "got"),
        (("PREFER_NPU",), (CPU,), "asked-other"),
        (("PREFER_CPU",), (CPU,), "never-asked"),
        ((), (CUDA, CPU), "got"),
        (("auto",), ("cpu",), "asked-not-got"),
    ],
)
def test_the_verdict(asked: tuple[str, ...], got: tuple[str, ...] | None, verdict: str) -> None:
    assert verdict_of(session(*asked, got=got)) == verdict
    assert without_gpu(session(*asked, got=got)) == (verdict == "asked-not-got")


@pytest.mark.parametrize(
    ("asked", "got", "verdict"),
    [
        ((), (CPU,), "asked-not-got"),
        ((), (CUDA, CPU), "got"),
        ((CPU,), (CPU,), "never-asked"),
    ],
)
def test_options_whose_providers_nobody_knows_ask_for_more_than_the_cpu(
    asked: tuple[str, ...], got: tuple[str, ...], verdict: str
) -> None:
    assert verdict_of(replace(session(*asked, got=got), by_options=True)) == verdict


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("NoSuchFile: [ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from m.onnx", "not-made"),
        ("Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from m.onnx failed: IR", "not-made"),
        ("RuntimeError: Unable to open file 'model.bin' in model 'm'", "not-made"),
        ("RuntimeError: CUDA failure 35: InvalidGraph: ", "asked-not-got"),
    ],
)
def test_a_model_that_nobody_can_read_is_no_matter_of_the_gpu(error: str, verdict: str) -> None:
    failed = replace(session(CUDA, got=None), errors=("RuntimeError: before", error))

    assert verdict_of(failed) == verdict
    assert verdict_of(replace(failed, errors=(error, "RuntimeError: later"))) == "asked-not-got"
    assert verdict_of(replace(failed, got=(CPU,))) == "asked-not-got"


@pytest.mark.parametrize(
    ("shapes", "fresh", "later", "search", "slow"),
    [
        (10, 90.0, 3.0, "EXHAUSTIVE", True),
        (10, 90.0, None, "EXHAUSTIVE", True),
        (9, 90.0, 3.0, "EXHAUSTIVE", False),
        (10, 5.9, 3.0, "EXHAUSTIVE", False),
        (10, 90.0, 3.0, "HEURISTIC", False),
        (10, None, 3.0, "EXHAUSTIVE", False),
    ],
)
def test_a_search_for_each_of_many_shapes_is_slow(
    shapes: int, fresh: float | None, later: float | None, search: str, *, slow: bool
) -> None:
    runs = Runs(times=40, fresh_ms=fresh, later_ms=later, shapes=shapes)
    options = {CUDA: {"cudnn_conv_algo_search": search}}
    found = replace(session(CUDA, got=(CUDA, CPU)), runs=runs, options=options)

    assert verdict_of(found) == ("got-but-slow-options" if slow else "got")


def test_alike_sessions_of_one_line_are_one_group_and_the_worst_comes_first() -> None:
    words = "2026-11-23 07:31:0{}.122875365 [E:onnxruntime] why\n"
    failed = [
        replace(session(CUDA, name=str(at)), words=words.format(at), model=f"/m/{at}.onnx")
        for at in range(3)
    ]
    asked: list[str] = []

    def explain(text: str) -> tuple[Explanation, ...]:
        asked.append(text)
        return ()

    groups = grouped([session(CUDA, got=(CUDA,), name="9"), *failed], lambda _: MADE, explain)

    assert [(each.verdict, len(each.sessions)) for each in groups] == [
        ("asked-not-got", 3),
        ("got", 1),
    ]
    assert groups[0].models == ("/m/0.onnx", "/m/1.onnx", "/m/2.onnx")
    assert asked == [" [E:onnxruntime] why\n"]


@pytest.mark.parametrize(
    ("severities", "kept"),
    [(("info", "error", "warning"), ("error", "warning")), (("info",), ("info",)), ((), ())],
)
def test_information_is_a_reason_only_where_nothing_else_is(
    severities: tuple[Severity, ...], kept: tuple[str, ...]
) -> None:
    """onnxruntime 1.32 says of CUDA that no such plugin is registered, whatever the reason is."""
    rows = tuple(
        Explanation(each, each, "", "", 1, "", "", (), fixable=False, sources=())
        for each in severities
    )

    [group] = grouped([replace(session(CUDA), words="w")], lambda _: MADE, lambda _: rows)

    assert tuple(each.code for each in group.why) == kept


UNOBSERVED = (
    Unobserved(("python3", "-I", "app.py"), "-I"),
    Unobserved(("/tox/bin/python", "app.py"), ""),
)
MISSING = MissingLibrary(7, "onnxruntime", "/usr/bin/python3")
PROCESS = PythonProcess(7, 1, "3.11.7", "app.py")
LIBRARY = ImportedLibrary(7, "onnxruntime", "1.26.0", "/o/__init__.py", "/bin/python", (CPU,))


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (ProgramSeen(), "no-python"),
        (ProgramSeen(processes=(PROCESS,)), "no-library"),
        (ProgramSeen(unobserved=UNOBSERVED), "not-observed"),
        (
            ProgramSeen(processes=(PROCESS,), libraries=(LIBRARY,), unobserved=UNOBSERVED),
            "not-observed",
        ),
        (
            ProgramSeen(processes=(PROCESS,), missing=(MISSING,), unobserved=UNOBSERVED),
            "not-installed",
        ),
        (
            ProgramSeen(processes=(PROCESS,), libraries=(LIBRARY,), missing=(MISSING,)),
            "no-session",
        ),
        (ProgramSeen(sessions=(session(),), unobserved=UNOBSERVED), "never-asked"),
        (
            ProgramSeen(processes=(PROCESS,), libraries=(LIBRARY._replace(error="ImportError"),)),
            "import-failed",
        ),
        (
            ProgramSeen(processes=(PROCESS,), libraries=(LIBRARY._replace(available=()),)),
            "not-whole",
        ),
        (ProgramSeen(sessions=(session(CUDA, got=(CUDA,)), session())), "never-asked"),
        (ProgramSeen(sessions=(session(CUDA), session())), "asked-not-got"),
    ],
)
def test_the_word_for_a_program(seen: ProgramSeen, verdict: str) -> None:
    assert judge_program(seen) == verdict


def test_the_failure_that_a_native_program_prints_is_its_word_where_no_session_is_seen() -> None:
    printed = Search(parse_failures(load_table("failures")))
    printed.feed("libcudnn.so.9: cannot open shared object file: No such file or directory\n")
    found = printed.explanations("en")

    assert judge_program(ProgramSeen(), found) == "printed-failure"
    assert judge_program(ProgramSeen(sessions=(session(),)), found) == "never-asked"


def test_half_a_line_and_what_is_no_event_are_left_out() -> None:
    lines = [
        '{"event": "process", "pid": 1, "parent": 0, "python": "3.8.1", "program": "a"}',
        '{"event": "torch", "pid": 1, "version": "2.7", "cuda": null, "used": false}',
        "[]",
        '{"event": "runs", "id": "nobody", "pid": 3}',
        '{"event": "providers", "id": "nobody", "pid": 3}',
        '{"event": "session", "id": "1", "pi',
    ]
    seen = parse_events(lines)

    assert seen.sessions == ()
    assert seen.processes == (PythonProcess(1, 0, "3.8.1", "a"),)
    assert seen.torches == (TorchState(1, "2.7", None, used=False, device=None),)


TABLE = {
    "application": [
        {"name": "rembg", "since": "2.0.0", "read": "2.0.57", "asks": "by-itself"}
        | {"knob": "argument", "how": "new_session(providers=…)", "file": "rembg/bg.py"},
        {"name": "rembg", "since": "1.0", "read": "1.9", "asks": "never", "knob": "none"}
        | {"file": "rembg/bg.py"},
        {"name": "rapidocr", "since": "1.2", "read": "1.4", "asks": "when-told"}
        | {"knob": "argument", "how": "RapidOCR(use_cuda=True)", "file": "rapidocr/main.py"},
        {"name": "magika", "since": "0.5", "read": "1.0", "asks": "never", "knob": "none"}
        | {"file": "magika/magika.py"},
    ]
}
NO_CUDA = ("AzureExecutionProvider", CPU)
"""What the CPU-only package has."""


SLOW = replace(
    session(CUDA, got=(CUDA,)),
    runs=Runs(20, 9.0, 90.0, None, 20),
    options={CUDA: {"cudnn_conv_algo_search": "EXHAUSTIVE"}},
)


def group_of(found: InferenceSession, *makers: tuple[str, str]) -> SessionGroup:
    made = [Maker(name, version, FRAME) for name, version in makers]
    about = MadeBy(made[0], tuple(made[1:])) if made else MadeBy(None)
    [group] = grouped([found], lambda _: about, lambda _: ())
    return group


@pytest.mark.parametrize(
    ("found", "makers", "codes"),
    [
        # It named nothing: the application's knob, else our variable; in one's own code the line.
        (session(), [("rembg", "2.0.5")], ["session-knob-argument"]),
        (session(), [("rembg", "1.0")], ["session-way-out"]),
        (session(), [("flashrank", "0.2")], ["session-way-out"]),
        (session(), [("", ""), ("rembg", "2.0.5")], ["session-knob-argument"]),
        (session(), [("", ""), ("magika", "0.6")], ["session-providers"]),
        (session(), [], ["session-providers"]),
        (
            replace(session(), available=NO_CUDA),
            [("magika", "0.6")],
            ["session-build-without", "session-way-out"],
        ),
        # It named the CPU: our variable cannot help.
        (session(CPU), [("rembg", "2.0.5")], ["session-knob-argument"]),
        (session(CPU), [("magika", "0.6")], ["session-line"]),
        (session(CPU), [("", "")], ["session-providers"]),
        (
            replace(session(CPU), available=NO_CUDA),
            [("magika", "0.6")],
            ["session-build-without", "session-line"],
        ),
        # It named what onnxruntime has: another onnxruntime is enough.
        (
            replace(session(*NO_CUDA), available=NO_CUDA),
            [("open-image-models", "0.5")],
            ["session-everything"],
        ),
        (replace(session(CPU), available=NO_CUDA), [("rembg", "2.0.5")], ["session-by-itself"]),
        (
            replace(session(CPU), available=NO_CUDA, looked=True),
            [("others", "1.0")],
            ["session-looked"],
        ),
        (replace(session(CPU), looked=True), [("others", "1.0")], ["session-line-unread"]),
        # It looked at what there is, and is known to ask only where it is told to.
        (
            replace(session(CPU), available=NO_CUDA, looked=True),
            [("rapidocr", "1.3")],
            ["session-build-without", "session-knob-argument"],
        ),
        (
            replace(session(CPU), available=(CPU,)),  # a package with the CPU provider alone
            [("others", "1.0")],
            ["session-build-without", "session-line-unread"],
        ),
        (session(CUDA), [("rembg", "2.0.5")], ["session-mend"]),
        (
            replace(session(CUDA), errors=("E", "RuntimeError: Unknown Provider Type: C")),
            [],
            ["session-providers", "session-mend"],
        ),
        (session(OPENVINO), [], []),
        (replace(session(CPU, got=None), errors=("NoSuchFile: m",)), [], []),
        (session(TENSORRT, CUDA, got=(CUDA,)), [], ["session-tensorrt"]),
        (session(CUDA, got=(CUDA,)), [], []),
        (SLOW, [], ["session-conv-search"]),
        (session("cpu", got=("cpu",), library="ctranslate2"), [], ["session-device"]),
    ],
)
def test_the_advice(
    found: InferenceSession, makers: list[tuple[str, str]], codes: list[str]
) -> None:
    group = group_of(found, *makers)

    assert [each.code for each in advice_of(group, knobs_of(TABLE, group))] == codes


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        (session(CUDA), ["session-packed"]),
        (
            replace(session(CPU), available=NO_CUDA),
            ["session-packed", "session-knob-argument"],
        ),
        (session(CPU), ["session-knob-argument"]),
    ],
)
def test_what_is_packed_in_an_archive_is_mended_by_no_environment(
    found: InferenceSession, codes: list[str]
) -> None:
    group = group_of(found, ("rembg", "2.0.5"))
    advice = advice_of(group, knobs_of(TABLE, group), Packed("/srv/app.pyz", "3.11"))

    assert [each.code for each in advice] == codes
    said = load_texts("en").advice(advice[0], command=PROGRAM)
    assert codes[0] != "session-packed" or (
        "/srv/app.pyz contains its own onnxruntime" in said
        and "`ortgpu-fix lock --python 3.11 -d gpu-wheels -o gpu.txt`" in said
    )


def test_where_nobody_knows_what_the_build_has_nothing_is_missing_in_it() -> None:
    for available, missing in (((), ()), (NO_CUDA, (CUDA,)), ((CUDA, CPU), ())):
        found = replace(session(CUDA, CPU), available=available)
        [group] = grouped([found], lambda _: MADE, lambda _: ())

        assert (group.verdict, group.not_in_build) == ("asked-not-got", missing)
