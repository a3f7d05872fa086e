"""Small inputs of which other causes were said once, and the right ones."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.fix import fix_for
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search

TABLE = parse_failures(load_table("failures"))
MISSING = (
    "[E:onnxruntime:Default, provider_bridge_ort.cc:1862 TryGetProviderInfo_CUDA] Failed to load"
    " library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared"
    " object file: No such file or directory\n"
)
MEMORY = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n"
FALLBACK = "Falling back to ['CPUExecutionProvider'] and retrying.\n"
NODES = "Some nodes were not assigned to the preferred execution providers\n"


def search(log: str) -> Search:
    made = Search(TABLE)
    made.feed(log, joined=True)
    return made


def found(log: str) -> tuple[Explanation, ...]:
    return search(log).explanations()


def codes(log: str) -> list[str]:
    return [each.code for each in found(log)]


@pytest.mark.parametrize("between", ["", "\n", "\r\n", "an ordinary line\n"])
def test_two_lines_that_follow_each_other_are_two_messages(between: str) -> None:
    both = found(MISSING + between + MEMORY)

    assert [each.code for each in both] == ["cuda-12-libraries-missing", "out-of-memory"]
    assert [len(each.evidence) for each in both] == [1, 1]


@pytest.mark.parametrize(
    "line",
    [
        'Error loading "C:\\app\\onnxruntime_providers_cuda.dll" which is missing.',
        (
            "with error: libonnxruntime_providers_cuda.so: cannot open shared object file: No such"
            " file or directory"
        ),
    ],
)
def test_the_provider_s_own_file_is_not_there(line: str) -> None:
    assert codes(line) == ["provider-files-missing"]


def test_a_half_removed_package_is_known() -> None:
    line = "WARNING: Ignoring invalid distribution ~nnxruntime-gpu (c:\\x\\lib\\site-packages)"
    assert codes(line) == ["package-half-removed"]
    assert codes(line.replace("nnxruntime-gpu", "orch")) == []


def test_an_effect_says_that_it_is_one_and_that_ortgpu_fix_looks() -> None:
    [effect] = found(f"EP Error x when using ['CUDAExecutionProvider']\n{FALLBACK}")
    fix = fix_for([effect], (), None)

    assert (effect.code, effect.what, effect.effect) == ("cpu-fallback", "CUDA was not used", True)
    assert effect.cause.startswith("This line only says that CUDA was not used.")
    assert (fix.why.code, fix.arguments, fix.looks) == ("mend-effect", (), True)


def test_a_session_with_some_nodes_on_the_cpu_has_the_gpu() -> None:
    made = search(FALLBACK + NODES)

    assert [each.severity for each in made.explanations()] == ["info", "info"]
    assert made.is_over


def test_every_cause_asks_what_would_decide_it() -> None:
    assert {row.ask for row in TABLE.failures} <= TABLE.ask.keys()
    assert found(MISSING)[0].ask.startswith("which driver and GPU")
    assert "驱动" in search(MISSING).explanations("zh")[0].ask


def test_every_failure_has_a_headline_in_both_languages() -> None:
    assert [row.code for row in TABLE.failures if row.what is None and not row.program] == []
