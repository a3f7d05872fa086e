"""Recognising error texts: every failure by a recorded log, and nothing by the log of another.

The logs of `cases/logs` are what people posted and what the wheels printed; `code--detail.txt` is
a further one for `code`. Lines that begin with `# ` say where a log comes from.
"""

from __future__ import annotations

import re
import sys
import time
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortgpu_fix.log_lines.explanations import MOST_EVIDENCE, Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import PASTED, Search, explain_log
from ortgpu_fix.log_lines.patterns import REACH

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load(name: str) -> dict[str, Any]:
    return tomllib.loads((files("ortgpu_fix.data") / name).read_text("utf-8"))


RAW = load("failures.toml")
TABLE = parse_failures(RAW)
ROWS: dict[str, dict[str, Any]] = {row["code"]: row for row in RAW["failure"]}
FOLDER = Path(__file__).parents[1] / "cases" / "logs"
LOGS = sorted(FOLDER.glob("*.txt"))
RECORDED = [*LOGS, *sorted(FOLDER.glob("first/*.txt"))]
ALSO = {"cuda-12-libraries-missing--preload": {"curand-missing"}}
"""Errors that a log holds beside its own."""
STATUSES = {
    code
    for code, row in ROWS.items()
    if not row.get("match") and all(key.startswith("cuda:") for key in row["signals"][:1])
} - {path.stem.split("--")[0] for path in RECORDED}
"""Failures by statuses of CUDA alone: `test_statuses.py` looks at each."""
MISSING = "libcublasLt.so.12: cannot open shared object file: No such file or directory"


def read(path: Path) -> str:
    lines = path.read_text("utf-8").split("\n")
    return "\n".join(line for line in lines if not line.startswith("# "))


def codes(log: str) -> list[str]:
    return [found.code for found in explain_log(log, TABLE)]


def only(log: str) -> Explanation:
    (found,) = explain_log(log, TABLE)
    return found


# The recorded logs


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_recorded_log_is_recognised_and_as_nothing_else(path: Path) -> None:
    code = path.stem.split("--")[0]
    found = explain_log(read(path), TABLE)
    expected = {code} - {"none"} | ALSO.get(path.stem, set())
    assert {
        each.code for each in found if each.severity == "error" or each.code == code
    } == expected
    for each in found:
        assert each.line
        assert each.cause
        assert each.remedy
        assert each.line_number >= 1


def test_every_failure_has_a_recorded_log() -> None:
    assert ROWS.keys() - STATUSES <= {path.stem.split("--")[0] for path in RECORDED}


def test_all_logs_at_once_hold_every_particular_failure() -> None:
    statuses = [f"CUDA error {row.names[0]}:" for row in TABLE.statuses]
    found = explain_log("\n\n".join([*map(read, RECORDED), *statuses]), TABLE)
    said = {each.code for each in found} | {code for each in found for code in each.consequences}
    assert said == set(ROWS)


# What is said


def test_both_languages_say_the_same() -> None:
    """Of our own failures and of those of other programs."""
    rows = [*ROWS.values(), *(each for row in ROWS.values() for each in row.get("elsewhere", ()))]
    rows += [{"remedy": row["own_remedy"]} for row in RAW["origin"] if "own_remedy" in row]
    for text in (row[key] for row in rows for key in ("cause", "remedy") if key in row):
        en, zh = text["en"], text["zh"]
        fields = [{name for _, name, _, _ in Formatter().parse(each) if name} for each in (en, zh)]
        numbers = [set(re.findall(r"\d+\.\d[\d.]*\d|\d{3,}", each)) for each in (en, zh)]
        assert set(text) == {"en", "zh"}
        assert fields[0] == fields[1], en
        assert numbers[0] == numbers[1], en
        assert re.search("[\u4e00-\u9fff]", zh)
        assert not re.search("[\u4e00-\u9fff]", en)


def test_a_library_names_its_wheel() -> None:
    found = only(
        "Failed to load library onnxruntime/capi/libonnxruntime_providers_cuda.so with error:"
        " libcufft.so.11: cannot open shared object file: No such file or directory"
    )
    assert found.code == "cuda-12-libraries-missing"
    assert "libcufft.so.11" in found.cause
    assert "nvidia-cufft-cu12" in found.remedy
    assert found.fixable
    assert found.commands == ("ortgpu-fix --apply",)
    assert all(source.startswith("https://") for source in found.sources)


def test_a_name_that_the_system_s_text_ran_over_is_completed() -> None:
    path = next(path for path in LOGS if path.stem.endswith("--garbled"))
    assert "needs CUDA 12 (cublasLt64_12.dll)" in only(read(path)).cause


def test_one_failure_is_explained_once_with_all_its_libraries_and_lines() -> None:
    path = next(path for path in LOGS if path.stem.endswith("--preload"))
    log = read(path)
    (found,) = (
        each for each in explain_log(log * 3, TABLE) if each.code == "cuda-12-libraries-missing"
    )
    assert [line for line, *_ in found.evidence] == [1, 2, 3, 5, 6][:MOST_EVIDENCE]
    assert len(set(found.libraries)) == len(found.libraries) >= 4
    assert all(name in found.cause for name in found.libraries)


def test_errors_come_first_and_each_kind_in_the_order_of_the_log() -> None:
    log = """3 Memcpy nodes are added to the graph main_graph for CUDAExecutionProvider.
OP Conv(a) running in Fallback mode. May be extremely slow.
CUDA failure 999: unknown error
AttributeError: module 'onnxruntime' has no attribute 'InferenceSession'
CUDA failure 999: unknown error"""
    found = explain_log(log, TABLE)
    assert [(each.severity, each.line_number) for each in found] == [
        ("error", 3),
        ("error", 4),
        ("warning", 2),
        ("info", 1),
    ]


def test_what_follows_from_what_follows_is_told_of_the_first_cause() -> None:
    """The provider fails for cuDNN, and cuDNN for want of code: the code is the cause."""
    found = only(
        "cuDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0\n"
        "Failed to create CUDAExecutionProvider\n"
        "CUDA failure 209: no kernel image is available for execution on the device\n"
    )
    assert found.code == "no-kernel-image"
    assert found.consequences == ("cuda-library-failed", "cuda-provider-not-created")


def test_tensorrt_s_complaint_is_no_error_although_it_names_a_cuda_library() -> None:
    log = (
        "Failed to load library x/libonnxruntime_providers_tensorrt.so with error:"
        " libcublas.so.13: cannot open shared object file: No such file or directory"
    )
    assert codes(log) == ["tensorrt-unavailable"]
    assert codes(log.replace("error: ", "error:\n")) == ["tensorrt-unavailable"]


# How a log may look


def test_colours_do_not_hide_a_text() -> None:
    log = (
        "\x1b[1;31mCUDA failure \x1b[0;93m999\x1b[m: \x1b]8;;https://example.org\x07unknown\x1b[0m"
    )
    found = only(log)
    assert found.code == "driver-unknown-error"
    assert "\x1b" not in found.line


@pytest.mark.parametrize("width", [20, 80])
@pytest.mark.parametrize("frame", ["{}", "app  | {}", "│ {:80} │", "{}\r"])
def test_a_line_that_a_terminal_wrapped_is_joined(width: int, frame: str) -> None:
    text = "x" * 50 + "CUDA driver version is insufficient for CUDA runtime version" + " ;" * 40
    pieces = [text[at : at + width] for at in range(0, len(text), width)]
    anchor = text.index("CUDA")
    rows = 1 + (anchor + 60 - 1) // width - anchor // width
    expected = ["driver-too-old"] if rows <= 3 else []
    assert codes("\n".join(frame.format(piece) for piece in pieces)) == expected


def test_in_a_long_log_wrapped_lines_are_not_joined() -> None:
    """A program wrote it, and no terminal wrapped what it wrote."""
    wrapped = "CUDA driver version is insufficient\nfor CUDA runtime version\n"
    whole = "CUDA failure 999: unknown error\n"
    long = "an ordinary line\n" * (PASTED // 16)

    assert codes(wrapped + whole) == ["driver-too-old", "driver-unknown-error"]
    assert codes(wrapped + whole + long) == ["driver-unknown-error"]


def test_lines_that_happen_to_meet_are_not_joined_to_a_message() -> None:
    assert codes("libcudnn.so.9:\n\nall is well\n\n cannot open shared object file") == []


@pytest.mark.parametrize(
    "log",
    [
        "['CUDAExecutionProvider', 'AzureExecutionProvider', 'CPUExecutionProvider']",
        "ERROR: No matching distribution found for onnxruntime-directml",
        "The package `x` requires `onnxruntime-gpu>=1.19`, but it's not installed",
        "Ultralytics requirement ['onnxruntime-gpu'] not found, attempting AutoUpdate",
        "bluetooth: No devices were found in range",
        "libopencv_core.so.4: cannot open shared object file: No such file or directory",
        'Error loading "C:\\x\\ortextensions.dll" which depends on "zlib.dll" which is missing.',
        "Falling back to ['CUDAExecutionProvider', 'CPUExecutionProvider'] and retrying.",
        "the model's features are not yet initialized",
    ],
)
def test_what_only_looks_like_a_failure_is_none(log: str) -> None:
    assert codes(log) == []


def test_a_long_line_is_shown_in_part() -> None:
    found = only("y" * 5000 + " CUDA failure 999 " + "z" * 5000)
    assert found.line == f"{'y' * 299} CUDA failure 999 {'z' * 299}"


@pytest.mark.parametrize("before", ["", "one line\nand another \n\n"])
@pytest.mark.parametrize("after", ["", "\none more\nand another\n"])
def test_the_line_of_a_message_is_shown_and_no_other(before: str, after: str) -> None:
    found = only(f"{before}[gpu]  CUDA failure 999: unknown\terror ;{after}")
    assert found.line == "[gpu] CUDA failure 999: unknown error ;"
    assert found.line_number == before.count("\n") + 1


def test_messages_that_touch_are_two() -> None:
    """As in a repr without its newlines; which of them is looked for first does not matter."""
    texts = (
        "no kernel image is available for execution on the device",
        "system not yet initialized",
    )
    for one, other in (texts, texts[::-1]):
        assert set(codes(f"{one}{other}")) == {"no-kernel-image", "fabric-manager-not-running"}


def test_a_library_of_somebody_else_that_wants_one_of_ours_is_not_told_as_ours() -> None:
    found = only("ImportError: /opt/x/libtheirs.so: undefined symbol: cublasLtCreate")
    assert found.libraries == ()
    assert "libtheirs.so" not in found.cause + found.remedy


FROZEN = "[PYI-7:ERROR] Failed to execute script 'main'\n"


@pytest.mark.parametrize(
    "pieces",
    [
        ["an ordinary line\n", f"{FROZEN}{MISSING}\n"],
        [f"{FROZEN * 2}{MISSING}\n", f"{FROZEN}{MISSING.replace('12', '13')}\n"],
    ],
)
def test_a_program_that_brings_all_itself_is_known_by_any_piece(pieces: list[str]) -> None:
    for found in explain_log(pieces, TABLE):
        assert found.origin == "frozen"


def test_the_version_that_a_log_shows_goes_before_the_machine_s() -> None:
    named = "onnxruntime-gpu=={}\n"
    complaint = "Failed to load library libonnxruntime_providers_tensorrt.so with error: x\n"
    complaint = f"EP Error when using ['TensorrtExecutionProvider']\n{complaint}"
    complaint += "libnvinfer.so.10: cannot open shared object file\n"

    def only_code(log: str, release: str | None = None) -> list[str]:
        return [each.code for each in explain_log(log, TABLE, release=release)][-1:]

    early = only_code(named.format("1.22.0") + complaint)
    assert early == only_code(complaint, "1.22.0") == ["tensorrt-cpu-fallback"]
    assert only_code(named.format("1.22.0") + complaint, "1.26.0") == early
    assert only_code(named.format("1.26.0") + complaint) == ["tensorrt-unavailable"]
    both = named.format("1.22.0") + named.format("1.26.0")
    assert only_code(both + complaint) == ["tensorrt-unavailable"]


# The five machines whose owners wrote down what went wrong

MACHINES = {
    "the CPU build": "['AzureExecutionProvider', 'CPUExecutionProvider']",
    "the image tagger": """
Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest \
MSVC runtime.
Error loading "...onnxruntime_providers_cuda.dll" which depends on "cublas64_12.dll" which is \
missing.
""",
    "the container": """
Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot open \
shared object file: No such file or directory
Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*
""",
    "torch first": "GPU\nFailed to create CUDAExecutionProvider",
    "cuDNN by hand": """
Could not locate zlibwapi.dll. Please make sure it is in your library path!
""",
    "slow OCR": """
arena_extend_strategy: kNextPowerOfTwo, gpu_mem_limit: 2 GiB, cudnn_conv_algo_search: EXHAUSTIVE
""",
    "the new card": """
NVIDIA GeForce RTX 5060 with CUDA capability sm_120 is not compatible with the current PyTorch \
installation.
""",
}


@pytest.mark.parametrize(
    ("machine", "code"),
    [
        ("the CPU build", "cpu-build-in-use"),
        ("the image tagger", "cuda-12-libraries-missing"),
        ("the container", "cudnn-9-missing"),
        ("torch first", "cuda-provider-not-created"),
        ("cuDNN by hand", "zlibwapi-missing"),
        ("slow OCR", "conv-search-exhaustive"),
        ("the new card", "torch-without-this-gpu"),
    ],
)
def test_the_five_machines(machine: str, code: str) -> None:
    found = explain_log(MACHINES[machine], TABLE, has_gpu=True)
    assert [each.code for each in found] == [code]


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("with options: {'CUDAExecutionProvider': {'cudnn_conv_algo_search': 'EXHAUSTIVE'}}", []),
        ('{"cudnn_conv_algo_search": "EXHAUSTIVE"}', ["conv-search-exhaustive"]),
        ("    'cudnn_conv_algo_search': 'EXHAUSTIVE',", ["conv-search-exhaustive"]),
        ("cudnn_conv_algo_search='EXHAUSTIVE'", ["conv-search-exhaustive"]),
    ],
)
def test_a_default_that_insightface_prints_of_every_session_is_nothing(
    line: str, codes: list[str]
) -> None:
    """https://github.com/fudan-generative-vision/hallo/issues/181: it stands in healthy logs."""
    assert [each.code for each in explain_log(line, TABLE)] == codes


@pytest.mark.parametrize(
    ("log", "program"),
    [
        ("at Microsoft.ML.OnnxRuntime.Session()", "a .NET program"),
        ("Traceback (most recent call last):\nFailed to execute script 'x'", "an application with"),
        ("image: ghcr.io/immich-app/immich-machine-learning:v1", "a prebuilt container image"),
        ("docker run immich", "a program in a container"),
        ("docker run immich\npip install x", ""),
        ("ghcr.io/immich-app/server\nFROM nvidia/cuda:12", ""),
        ("JetPack 6.0 on a Jetson Orin", ""),
    ],
)
def test_programs_that_do_not_use_this_environment_are_known(log: str, program: str) -> None:
    search = Search(TABLE)
    search.feed(log)

    assert search.program("en").startswith(program)
    assert bool(search.program("en")) == bool(program)


# Any text, any size


@settings(max_examples=30)
@given(st.text())
def test_no_text_raises(text: str) -> None:
    explain_log(text, TABLE)


ANCHORS = sorted(
    {pattern.anchor for row in TABLE.failures for pattern in row.patterns}
    | {pattern.anchor for pattern, _ in TABLE.parsers.rows}
)


@settings(max_examples=30)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(ANCHORS),
            st.sampled_from(["\n", " ", "\r\n", "\x1b[", "\x1b[1m", "\x1b]", "│ ", "{", "}", "%s"]),
            st.sampled_from([library.distribution for library in TABLE.libraries]),
            st.text(max_size=8),
        )
    )
)
def test_no_text_made_of_what_is_looked_for_raises(parts: list[str]) -> None:
    log = "".join(parts)
    found = explain_log(log, TABLE)
    assert found == explain_log(log, TABLE)
    lines = log.count("\n") + 1
    assert all(1 <= each.line_number <= lines for each in found)


@pytest.mark.parametrize(
    "line",
    [f"with error: {MISSING}\n", "\x1b["],
    ids=["errors", "escapes"],
)
@pytest.mark.untraced
def test_a_large_log_is_read_in_no_time(line: str) -> None:
    """Less than half a second was measured: a busy machine has room."""
    log = line * (1_000_000 // len(line))
    began = time.process_time()
    explain_log(log, TABLE)
    assert time.process_time() - began < 5


PATTERNS = [
    *(pattern for row in TABLE.failures for pattern in row.patterns),
    *(pattern for pattern, _ in TABLE.parsers.rows),
    *(pattern for origin in TABLE.origins for pattern in origin.traces),
]


@pytest.mark.parametrize("filler", ["", " ", "a", "a_", "/"])
def test_no_pattern_is_slow_where_it_nearly_matches(filler: str) -> None:
    for pattern in PATTERNS:
        text = (filler * 50 + pattern.anchor) * 100
        began = time.process_time()
        pattern.regex.findall(text[: 2 * REACH])
        assert time.process_time() - began < 1, pattern.regex.pattern


# A table that does not fit


def broken(key: str, value: object) -> dict[str, Any]:
    return {"failure": [RAW["failure"][0], RAW["failure"][1] | {key: value}], "library": []}


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"failure": 3, "library": []}, r"failure\[0\]"),
        ({"failure": [{}], "library": []}, r"failure\[0\]\.severity: missing"),
        (broken("severity", "fatal"), r"failure\[1\].*severity"),
        (broken("match", ["no|fixed text"]), r"failure\[1\].*match\[0\]"),
        (broken("cause", {"en": "{driver}", "zh": "{driver}"}), r"failure\[1\].*cause\.en"),
        (
            {"failure": [RAW["failure"][0] | {"match": [], "signals": []}], "library": []},
            r"failure\[0\].*signals",
        ),
        (broken("by_release", {"releases": "new"}), r"failure\[1\].*new"),
        (
            broken("to_use", {"en": "{release}", "zh": "{release}"}),
            r"failure\[1\].*to_use\.en: release",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_named(table: dict[str, Any], path: str) -> None:
    with pytest.raises(ValueError, match=path):
        parse_failures(table)


@pytest.mark.parametrize(
    "words",
    [
        *("No such file: cudnn64_9.dll", "cudnn64_9.dll is missing", "I miss cudnn64_9.dll"),
        *("找不到 cudnn64_9.dll", "GPU не используется", "my GPU is not detected", "显存不足"),
        "torch.cuda.is_available() returns False",
        "The RTX 5090 is not supported by PyTorch. onnxruntime-gpu",
        "Please update your NVIDIA driver, it is too old. onnxruntime-gpu",
    ],
)
def test_what_people_say_is_no_line_of_a_program(words: str) -> None:
    assert codes(words) == []
