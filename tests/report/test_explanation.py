"""An explanation, in words and as JSON."""

from __future__ import annotations

from typing import Any, cast

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.fix import Fix
from ortgpu_fix.guests.explain.observation import Observation
from ortgpu_fix.guests.explain.report import explanation_json, explanation_sections
from ortgpu_fix.log_lines.explanations import Explanation, on_system
from ortgpu_fix.log_lines.failures import SEVERITIES, parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.reasons import finding, reason

EN = load_texts("en")
TABLE = parse_failures(load_table("failures"))
MISSING = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot"
    " open shared object file: No such file or directory\n"
    "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*\n"
)
BLAS = "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded\n"


def rows(document: dict[str, object]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", document["explanations"])


def test_a_log_that_tells_something() -> None:
    found = explain_log(MISSING, TABLE)

    text = plain(explanation_sections(found, EN))

    assert text.startswith(
        "error[cudnn-9-missing]: cuDNN 9 was not found (libcudnn.so.9)\n  --> 1\n"
    )
    assert "  |  Failed to load library" in text
    assert "also:   cuda-provider-not-created" in text
    assert "fix:    Install nvidia-cudnn-cu12" in text
    assert "ask:    which driver and GPU are used?" in text


def test_what_the_machine_says_and_the_one_command_come_with_it() -> None:
    found = explain_log(MISSING, TABLE)
    here = (Observation("not-so", why=reason("here-libraries", version="1.26.0")),)
    mends = Fix(reason("mend-right"), ("verify",), code="cudnn-9-missing")

    sections = explanation_sections(
        found, EN, here, mends, command="ortgpu-fix verify", installs=["a 1"], machine="host.json"
    )
    text = plain(sections)

    assert "host.json:  ruled out. onnxruntime-gpu 1.26.0 finds all libraries that it needs" in text
    fix = text.splitlines().index("            ortgpu-fix verify")
    assert text.splitlines()[fix + 1].strip() == "installs a 1"
    assert text.count("ortgpu-fix verify") == 1
    assert "ask:" not in text


def test_what_only_the_owner_can_mend_is_said_with_its_remedy_and_no_command() -> None:
    found = explain_log(MISSING, TABLE)
    stop = finding("driver-no-answer", "error", error="timeout")
    mends = Fix(reason("mend-owner"), finding=stop)

    text = plain(explanation_sections(found, EN, fix=mends))

    said = [line.strip() for line in text.splitlines()[-3:]]
    assert said[0].startswith("Packages can't fix this: the driver, container or virtual machine")
    assert said[1:] == ["The driver does not respond: timeout", EN.remedy(stop)]


def test_what_only_the_owner_of_a_host_can_run_is_marked() -> None:
    found = explain_log("NVRM: API mismatch: the client has the version 550.1\n", TABLE)

    assert found[0].owner_commands == found[0].commands == ("sudo reboot",)
    assert "sudo reboot  # for the owner of the host\n" in plain(explanation_sections(found, EN))


def test_windows_is_not_told_what_only_others_have() -> None:
    """`unset CUDA_VISIBLE_DEVICES` and `sudo` are no commands there."""
    hidden = explain_log("no CUDA-capable device is detected\n", TABLE)
    mismatch = explain_log("NVRM: API mismatch: the client has the version 550.1\n", TABLE)
    found = (*hidden, *mismatch)
    here, there = on_system(found, "windows", TABLE), on_system(found, "linux", TABLE)

    assert there == found
    assert [(row.commands, row.owner_commands) for row in here] == [
        (found[0].commands[:2], found[0].owner_commands),
        ((), ()),
    ]
    assert found[0].commands[2:] == ("unset CUDA_VISIBLE_DEVICES",)


def test_a_program_of_another_kind_is_named() -> None:
    log = "[PYI-1234:ERROR] Failed to execute script 'main'\n" + MISSING
    names = {origin.code: origin.name["en"] for origin in TABLE.origins}

    text = plain(explanation_sections(explain_log(log, TABLE), EN, origins=names))

    assert "an application with its own Python" in text


def test_a_library_that_no_wheel_brings_is_not_explained() -> None:
    known = {**load_table("failures"), "library": load_table("failures")["library"][:1]}
    log = "Failed to load library x.so with error: libcublas.so.12: cannot open shared object file"

    found = explain_log(log + ": No such file or directory", parse_failures(known))

    assert "libcublas.so.12" not in "".join(row.cause for row in found)


def test_a_line_is_shown_once_and_the_same_text_with_all_its_lines() -> None:
    """onnxruntime repeats its error in the exception, and one line can say it in two ways."""
    before = "const char*, " * 30
    gone = "CUDA failure 700: an illegal memory access was encountered ; GPU="
    found = explain_log(f"{before}{gone}0\n\n{gone}1\nx\n{before}{gone}0\n", TABLE)
    assert [seen.line_number for seen in found[0].evidence] == [1, 1, 3, 5]

    lines = plain(explanation_sections(found, EN)).splitlines()

    assert [line for line in lines if "-->" in line] == ["  --> 1, 5", "  --> 3"]
    first, second = [line.strip() for line in lines if "CUDA failure" in line]
    assert first.startswith("|  …")
    assert first.endswith(f"const char*, {gone}0")
    assert second == f"|  {gone}1"


def test_as_json_it_has_what_was_there_before_and_more() -> None:
    found = explain_log(MISSING, TABLE)
    document = explanation_json(found, EN)

    (row,) = rows(document)
    before = {"code", "severity", "line", "line_number", "cause", "remedy", "commands", "fixable"}
    assert before | {"sources"} <= set(row)
    assert row["certainty"] == "named"
    assert row["libraries"] == ("libcudnn.so.9",)
    assert row["consequences"] == ("cuda-provider-not-created",)
    assert row["evidence"][0]["line_number"] == 1
    assert row["here"] is None
    general = explanation_json(explain_log("Failed to create CUDAExecutionProvider", TABLE), EN)
    assert rows(general)[0]["certainty"] == "general"


def test_as_json_the_machine_and_the_command_are_there() -> None:
    found = explain_log(MISSING, TABLE)
    here = (Observation("unseen", why=reason("here-only-there")),)
    mends = Fix(reason("mend-here"), ("--apply",))

    document = explanation_json(found, EN, here, mends, command="ortgpu-fix --apply")

    (row,) = rows(document)
    assert row["here"]["state"] == "unseen"
    assert row["here"]["says"] == ["it is visible only while the program runs"]
    assert document["mending"] == {
        "code": "mend-here",
        "text": "Run this",
        "command": "ortgpu-fix --apply",
        "installs": [],
    }


def test_every_severity_has_a_look() -> None:
    one = Explanation("x", "info", "what", "a", 1, "cause", "remedy", (), fixable=False, sources=())

    for severity in SEVERITIES:
        assert plain(explanation_sections([one._replace(severity=severity)], EN))


def test_what_a_person_has_to_do_is_said_once() -> None:
    found = explain_log("NVRM: API mismatch: the client has the version 550.1\n", TABLE)

    for code in ("mend-by-hand", "mend-other-program"):
        text = plain(explanation_sections(found, EN, fix=Fix(reason(code))))
        assert "see the fix above" not in text
        assert text == plain(explanation_sections(found, EN))


def test_beside_the_command_stands_what_a_package_needs_that_loads_cuda_by_itself() -> None:
    found = explain_log("ctranslate2\nsite-packages\n" + BLAS, TABLE)
    mends = Fix(reason("mend-by-besides"), ("--apply",), code=found[0].code)

    text = plain(explanation_sections(found, EN, fix=mends, command="ortgpu-fix --apply"))

    assert "fix:    nvidia-cublas-cu12 contains it" in text
    assert "CTranslate2" in text
    assert text.index("CTranslate2") < text.index("For onnxruntime, run this in the program's env")


def test_a_cause_of_one_sentence_is_its_headline_alone() -> None:
    log = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 35533.34 MiB on device 0:"
    found = explain_log(f"{log} cudaMalloc failed: out of memory\n", TABLE)

    text = plain(explanation_sections(found, EN))

    assert text.startswith(
        "error[out-of-memory]: The GPU does not have enough free memory for the model"
    )
    assert text.splitlines()[0].endswith("that uses ggml")
    assert "cause:" not in text


def test_several_libraries_are_named_in_one_headline_as_files() -> None:
    end = "cannot open shared object file: No such file or directory"
    names = ("libcublasLt.so.12", "libcublas.so.12")
    missing = "".join(f"Failed to load {name}: {name}: {end}\n" for name in names)
    part = "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}\n"
    part += "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor\n"
    said = [explain_log(log, TABLE)[0].what for log in (missing, part)]

    assert said == [
        "CUDA 12 libraries were not found: libcublasLt.so.12, libcublas.so.12",
        "a part of cuDNN was not found (libcudnn_ops.so.9.1.0)",
    ]


def test_what_else_the_log_shows_is_not_called_an_effect() -> None:
    """A list of both builds is as good a reason."""
    found = explain_log(f"{MISSING}onnxruntime 1.22.1\nonnxruntime-gpu 1.26.0\n", TABLE)

    also = "also:   two-builds-listed, cuda-provider-not-created"
    assert also in plain(explanation_sections(found, EN))


def test_what_a_command_installs_counts_the_wheels_of_nvidia() -> None:
    found = explain_log(MISSING, TABLE)
    fix = Fix(reason("mend-there"), ("--apply",), code="cudnn-9-missing")

    def last(*installs: str) -> str:
        text = plain(
            explanation_sections(
                found, EN, (Observation("unseen"),), fix, command="do", installs=installs
            )
        )
        return next(line.strip() for line in text.splitlines() if "installs" in line)

    several = ("nvidia-a 1", "nvidia-b 2", "onnxruntime-gpu 1.26.0")
    assert last(*several) == "installs onnxruntime-gpu 1.26.0, 2 NVIDIA wheels"
    assert last("nvidia-a 1") == "installs nvidia-a 1"


def test_what_stands_around_a_message_begins_and_ends_with_a_whole_word() -> None:
    missing = "libcudnn.so.9: cannot open shared object file"

    def shown(before: str, after: str) -> str:
        return explain_log(f"{before}{missing}{after}\n", TABLE)[0].evidence[0].message

    assert shown("12345678 " * 9, " 12345678" * 9) == (
        f"…{'12345678 ' * 6}{missing}{' 12345678' * 6}…"
    )
    assert shown("a b ", " c d") == f"a b {missing} c d"
