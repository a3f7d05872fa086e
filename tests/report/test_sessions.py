"""What is told of a program's sessions, whole: as text, as JSON, in one line, on a page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import documents
import pytest

from ortgpu_fix.guests.run.advice import Knob
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
)
from ortgpu_fix.guests.run.report import (
    Advised,
    ProgramReport,
    program_json,
    program_sections,
    session_line,
)
from ortgpu_fix.guests.run.verdicts import MadeBy, Maker, SessionGroup
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.messages.shells import TypedCommand
from ortgpu_fix.plan.reasons import reason

EN = load_texts("en")
CPU, CUDA, TENSORRT = (f"{name}ExecutionProvider" for name in ("CPU", "CUDA", "Tensorrt"))
MAKER = Maker("rembg", "2.0.86", Frame("/env/rembg/base.py", 37, "__init__"))
VIA = Maker("tagger", "1.2", Frame("/env/tagger/main.py", 5, "load"))
PROGRAM = Frame("/home/me/app.py", 3, "<module>")
RUNS = Runs(4, 9.5, 30.0, 2.25, 3, {"x": (1, 3), "y": ()}, 2)
FAILED = InferenceSession(
    id="1",
    pid=12,
    asked=(Asked(TENSORRT), Asked(CUDA, {"device_id": "0"}), Asked(CPU)),
    got=(CPU,),
    options={CPU: {}},
    available=(CUDA, CPU),
    model="/models/u2net.onnx",
    create_ms=120.0,
    words="first\n\n2 Memcpy nodes are added to the graph a\n1 Memcpy nodes are added to the graph",
    errors=("EP Error",),
    runs=RUNS,
)
AGAIN = replace(
    FAILED, id="2", pid=11, model="/models/isnet.onnx", create_ms=100.0, runs=Runs(1, 5.0)
)
WHY = Explanation(
    code="cudnn-9-missing",
    severity="error",
    what="cuDNN 9 is missing",
    line="libcudnn.so.9",
    line_number=1,
    cause="cuDNN 9 is missing.",
    remedy="",
    commands=(),
    fixable=True,
    sources=(),
)
HOW = 'new_session(providers=["CUDAExecutionProvider"])'
KNOB = Knob("rembg", "argument", HOW, by_itself=True, checked=False)
GROUP = SessionGroup(
    verdict="asked-not-got",
    sessions=(FAILED, AGAIN),
    made=MadeBy(MAKER, (VIA,), PROGRAM),
    not_in_build=(TENSORRT,),
    why=(WHY, WHY),
)
SEEN = ProgramSeen(
    processes=(PythonProcess(11, 1, "3.11.7", "app.py"),),
    libraries=(
        ImportedLibrary(11, "onnxruntime", "1.26.0", "/env/ort.py", "/env/bin/python", (CUDA, CPU)),
        ImportedLibrary(12, "ctranslate2", "4.6", "/env/ct2.py", error="no libcudnn"),
    ),
    sessions=(FAILED, AGAIN),
    torches=(TorchState(11, "2.7.1", "12.8", used=True, device=None),),
)
REPORT = ProgramReport(
    command="python app.py",
    status=0,
    verdict="asked-not-got",
    seen=SEEN,
    groups=(Advised(group=GROUP, knobs=(KNOB,), advice=(reason("session-mend"),)),),
    diagnose="ortgpu-fix --python /env/bin/python",
    measure="ortgpu-fix verify --bench /models/u2net.onnx --shape x=1x3",
)


RAN = (
    "Runs 5; the first took 9.50 ms, later ones 2.25 ms (median); input shapes: 3,"
    " first run of a new shape: 30.0 ms; threads: 2"
)


def advised(session: InferenceSession = FAILED, **changes: Any) -> Advised:
    group = replace(GROUP, sessions=(session,), **changes)
    return Advised(group=group, knobs=(), advice=())


def test_the_document_holds_all_that_was_seen() -> None:
    document: Any = program_json(REPORT, EN)

    documents.check(document, "run")
    [session] = document["sessions"]
    assert document["verdict"] == session["verdict"] == "asked-not-got"
    assert [row["available"] for row in document["libraries"]] == [[CUDA, CPU], []]
    assert document["torch"][0]["device"] is None
    assert (session["count"], session["pids"]) == (2, [11, 12])
    assert (session["package"], session["file"]) == ("rembg", "/env/rembg/base.py")
    assert session["via"] == [{"name": "tagger", "version": "1.2"}]
    assert session["caller"] == {"file": "/home/me/app.py", "line": 3}
    assert session["models"] == ["/models/u2net.onnx", "/models/isnet.onnx"]
    assert session["asked"][1] == {"name": CUDA, "options": {"device_id": "0"}}
    assert (session["got"], session["available"]) == ([CPU], [CUDA, CPU])
    assert [row["code"] for row in session["why"]] == ["not-in-build", *["cudnn-9-missing"] * 2]
    assert (session["create_ms"], session["copies"]) == (110.0, 3)
    times = {"first_ms": 9.5, "fresh_ms": 30.0, "later_ms": 2.25}
    inputs = {"x": [1, 3], "y": []}
    assert session["runs"][0] == {"times": 4, **times, "shapes": 3, "inputs": inputs, "threads": 2}
    assert session["knobs"][0]["how"] == HOW
    assert [row["code"] for row in session["advice"]] == ["session-mend"]


@pytest.mark.parametrize(
    ("status", "ended"), [(3, {"code": 3, "signal": None}), (-9, {"code": None, "signal": 9})]
)
def test_how_a_program_ended(status: int, ended: dict[str, object]) -> None:
    assert program_json(replace(REPORT, status=status), EN)["exit"] == ended


def test_what_was_not_observed_and_which_commands_there_are() -> None:
    unseen = (Unobserved(("python3", "-I"), "-I"), Unobserved(("python3",), ""))
    bare = replace(REPORT, diagnose="", measure="", seen=replace(SEEN, unobserved=unseen))

    found = program_json(bare, EN)
    documents.check(found, "run")
    assert found["unobserved"] == [
        {"words": ["python3", "-I"], "option": "-I"},
        {"words": ["python3"], "option": None},
    ]
    assert found["commands"] == []
    said = [row.text for row in program_sections(bare, EN)[0].rows]
    assert said[-2:] == [
        "Not observed: python3 -I (-I ignores PYTHONPATH)",
        "Not observed: python3 (started with other environment variables)",
    ]
    many = replace(bare, seen=replace(SEEN, unobserved=unseen * 3))
    assert program_sections(many, EN)[0].rows[-1].text == "(+1)"
    whole = replace(bare, measure="c", diagnose="b", instead="a")
    assert program_json(whole, EN)["commands"] == ["a", "b", "c"]


def test_where_onnxruntime_is_not_installed_each_python_is_named_once() -> None:
    missing = tuple(MissingLibrary(pid, "onnxruntime", "/usr/bin/python3") for pid in (1, 2))
    report = ProgramReport(
        command="python3 app.py",
        status=1,
        verdict="not-installed",
        seen=ProgramSeen(missing=missing),
        groups=(),
        instead="ortgpu-fix run --python .venv -- python3 app.py",
    )
    [said, following] = program_sections(report, EN)

    documents.check(program_json(report, EN), "run")
    assert [row.text for row in said.rows] == [
        "onnxruntime is not installed in the Python that was used",
        "Not installed in /usr/bin/python3",
        "`.venv` in this directory is not activated, so its Python was not used",
    ]
    assert [row.text for row in following.rows] == [report.instead]
    alone = program_sections(replace(report, instead=""), EN)[0].rows
    assert [row.text for row in alone][1:] == ["Not installed in /usr/bin/python3"]


def test_the_text_says_who_asked_what_got_what_and_why() -> None:
    lines = [line.strip() for line in plain(program_sections(REPORT, EN)).splitlines()]

    assert [" ".join(line.split()) for line in lines if line] == [
        "python app.py",
        "Sessions: 2; on the provider that they requested (other than the CPU): 0",
        f"onnxruntime 1.26.0 in /env/ort.py; execution providers: {CUDA}, {CPU}",
        "ctranslate2 could not be imported: no libcudnn",
        "torch 2.7.1 (CUDA 12.8) used the GPU; its default device: ?",
        "rembg 2.0.86 /env/rembg/base.py:37 (sessions: 2)",
        "Verdict The program requested the GPU, but did not get it",
        "Called from tagger 1.2, /home/me/app.py:3",
        "Model u2net.onnx, isnet.onnx",
        f"Requested {TENSORRT}, {CUDA} (device_id=0), {CPU}",
        f"Got {CPU}",
        f"Why the installed onnxruntime does not include {TENSORRT}; it includes {CUDA}, {CPU}",
        "Why cuDNN 9 is missing.",
        "Created in 110 ms",
        RAN,
        f"{EN.label('model-copies')} {EN.label('run-copies', count=3)}",
        f"To change {EN.advice(reason('session-mend'), command=TypedCommand())}",
        "Next",
        REPORT.diagnose,
        REPORT.measure,
    ]


def rows(report: ProgramReport, head: str) -> list[str]:
    """Return what stands behind a heading of the sessions' rows."""
    found = [row for each in program_sections(report, EN) for row in each.rows]
    return [row.text for row in found if row.head == EN.label(head)]


def shown(head: str, session: InferenceSession = FAILED, **changes: Any) -> list[str]:
    return rows(replace(REPORT, groups=(advised(session, **changes),)), head)


def test_where_no_failure_is_known_onnxruntimes_last_words_are_shown() -> None:
    bare: dict[str, Any] = {"why": (), "not_in_build": ()}
    words = "\n".join(f" line {number} " for number in range(7))

    assert shown("run-why", replace(FAILED, words=words, errors=("E",)), **bare) == [
        *("line 3", "line 4", "line 5", "line 6", "E"),
    ]
    silent = replace(FAILED, words=" \n", errors=())
    assert shown("run-why", silent, **bare) == [EN.label("run-silent")]
    assert shown("run-why", silent, **bare, verdict="got") == []


def test_the_error_of_a_session_that_could_not_be_made_is_shown_always() -> None:
    failed = replace(FAILED, got=None, errors=("first", "NoSuchFile: m.onnx\n\n 2\n3\n4\n5\n6"))
    error = ["NoSuchFile: m.onnx", " 2", "3", "4", "5"]

    known = ["cuDNN 9 is missing.", *error]
    assert shown("run-why", failed, why=(WHY,), not_in_build=()) == known
    assert shown("run-why", failed, why=(), not_in_build=(), verdict="not-made") == error
    assert shown("run-why", replace(failed, errors=()), why=(WHY,), not_in_build=()) == known[:1]
    refused = replace(failed, got=(CPU,))
    assert shown("run-why", refused, why=(), not_in_build=(), verdict="never-asked") == error
    assert shown("run-why", refused, why=(), not_in_build=(), verdict="got") == []


def test_the_programs_own_line_is_told_once() -> None:
    own = MadeBy(Maker("", "", PROGRAM), (), PROGRAM)
    sections = program_sections(replace(REPORT, groups=(advised(made=own),)), EN)

    assert sections[1].heading == "/home/me/app.py:3 (sessions: 1)"
    assert shown("run-called-by", made=own) == []
    assert shown("run-called-by", made=MadeBy(None, (), PROGRAM)) == ["/home/me/app.py:3"]
    other = program_sections(replace(REPORT, groups=(advised(made=MadeBy(None)),)), EN)
    assert other[1].heading == "created by code without a file (sessions: 1)"


def test_a_session_in_one_line_while_it_runs() -> None:
    assert session_line(FAILED, "asked-not-got", EN) == (
        "u2net.onnx: The program requested the GPU, but did not get it: "
        f"requested {TENSORRT}, {CUDA} (device_id=0), {CPU}; got {CPU}"
    )
    assert session_line(replace(FAILED, model=None), "got", EN).startswith("?: ")


def test_what_was_asked_and_got_has_a_word_where_it_has_no_name() -> None:
    assert shown("run-asked", replace(FAILED, asked=None)) == ["no provider"]
    by_options = replace(FAILED, asked=None, by_options=True)
    assert shown("run-asked", by_options) == ["the providers in the session options"]
    assert shown("run-asked", replace(FAILED, asked=())) == ["[]"]
    assert shown("run-got", replace(FAILED, got=None)) == [
        "nothing: the session could not be created"
    ]
