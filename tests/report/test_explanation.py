"""An explanation, in words and as JSON."""

from __future__ import annotations

from typing import Any, cast

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.fix import Fix
from ortgpu_fix.guests.explain.observation import Observation
from ortgpu_fix.guests.explain.report import explanation_json, explanation_sections
from ortgpu_fix.log_lines.explanations import on_system
from ortgpu_fix.log_lines.failures import parse_failures
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
    assert "ortgpu-fix --apply" not in text  # the one command for this machine comes at the end


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


def test_what_a_person_has_to_do_is_said_once() -> None:
    found = explain_log("NVRM: API mismatch: the client has the version 550.1\n", TABLE)

    for code in ("mend-by-hand", "mend-other-program"):
        text = plain(explanation_sections(found, EN, fix=Fix(reason(code))))
        assert "see the fix above" not in text
        assert text == plain(explanation_sections(found, EN))


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
