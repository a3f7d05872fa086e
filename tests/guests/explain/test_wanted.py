"""What is said only where a GPU was wanted, and what is promised only of programs of ours."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.fix import fix_for
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search, explain_log

TABLE = parse_failures(load_table("failures"))
BUILD = "['AzureExecutionProvider', 'CPUExecutionProvider']\n"
SESSION = "Providers: ['CPUExecutionProvider']\n"
WANTED = "pip install onnxruntime-gpu\n"


def codes(log: str, *, has_gpu: bool = False) -> list[str]:
    return [each.code for each in explain_log(log, TABLE, has_gpu=has_gpu)]


def only(log: str) -> Explanation:
    (found,) = explain_log(log, TABLE)
    return found


@pytest.mark.parametrize(
    ("printed", "code"), [(BUILD, "cpu-build-in-use"), (SESSION, "cpu-fallback")]
)
def test_what_a_program_for_cpus_prints_is_an_error_only_where_a_gpu_was_wanted(
    printed: str, code: str
) -> None:
    assert only(printed).severity == "info"
    assert codes(printed) == codes(WANTED + printed) == codes(printed, has_gpu=True) == [code]
    assert only(WANTED + printed).severity != "info"


def test_what_means_nothing_for_sure_is_not_the_reason_of_anything() -> None:
    harmless = "No registered plugin EP device found for 'CUDAExecutionProvider'\n"

    assert (only(harmless).severity, only(harmless).certain) == ("info", True)
    assert fix_for([only(harmless)], (), None).why.code == "mend-by-hand"
    assert fix_for([only(BUILD)], (), None).why.code == "mend-if-wanted"


@pytest.mark.parametrize(
    "code",
    [
        "ort.InferenceSession(path, providers=['CPUExecutionProvider'])",
        "providers = ['CPUExecutionProvider']",
        "InferenceSession(…, providers=['AzureExecutionProvider', 'CPUExecutionProvider'])",
    ],
)
def test_code_is_no_output(code: str) -> None:
    assert codes(WANTED + code) == []


PTX = "CUDA error: the provided PTX was compiled with an unsupported toolchain\n"
KERNEL = "CUDA error 209: no kernel image is available for execution on the device\n"


@pytest.mark.parametrize("error", [PTX, KERNEL])
def test_nothing_is_promised_of_a_program_without_anything_of_ours(error: str) -> None:
    """A driver that is too old, and code for a GPU, are what any program of CUDA can lack."""
    theirs, ours = only(error), only(f"onnxruntime\n{error}")

    assert (theirs.code, theirs.cause, theirs.remedy) == (ours.code, ours.cause, ours.remedy)
    assert (theirs.fixable, ours.fixable) == (False, True)
    assert "ortgpu-fix --apply" in ours.commands
    assert not [line for line in theirs.commands if line.startswith("ortgpu-fix")]
    assert fix_for([theirs], (), None).why.code == "mend-by-hand"


def test_what_may_have_any_reason_is_looked_into_and_not_mended() -> None:
    mends = fix_for(explain_log(WANTED + SESSION, TABLE), (), None)

    assert (mends.why.code, mends.looks) == ("mend-effect", True)


# Whether the program runs on Python's packages

MISSING = "libcublas.so.12: cannot open shared object file: No such file or directory\n"
KERNEL = "CUDA failure 209: no kernel image is available for execution on the device\n"
OLD = "CUDA failure 35: CUDA driver version is insufficient"
DOTNET = "Microsoft.ML.OnnxRuntime.OnnxRuntimeException"


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (KERNEL, "mend-by-python"),
        ("Traceback (most recent call last):\n" + KERNEL, "mend-by"),
        ("/opt/venv/lib/python3.11/site-packages/onnxruntime\n" + KERNEL, "mend-by"),
        (KERNEL + "I ran pip install onnxruntime-gpu", "mend-by"),
    ],
)
def test_packages_mend_it_where_the_program_runs_on_them(log: str, why: str) -> None:
    search = Search(TABLE)
    search.feed(log, joined=True)
    found = search.explanations()
    mends = fix_for(found, (), None, by=search.fix_label(found))

    assert mends.why.code == why
    assert mends.arguments == ("--apply",)


@pytest.mark.parametrize(
    ("log", "origin"),
    [
        ("ai.onnxruntime.OrtException\n" + KERNEL, "java"),
        ("onnxruntime-node\n" + KERNEL, "node"),
        ("at site-packages/x.py\nai.onnxruntime.OrtException\n" + KERNEL, None),
        ("Microsoft.ML.OnnxRuntime.Gpu\n" + OLD, "dotnet"),
        ("com.microsoft.onnxruntime:onnxruntime_gpu:1.20.0\n" + OLD, "java"),
        ("ai.onnxruntime.Ort\nonnxruntime_gpu-1.20.0-cp311\n" + OLD, None),
        ("ai.onnxruntime.Ort\nNo CUDA capable device: no CUDA-capable device is detected", None),
    ],
)
def test_no_package_is_promised_to_a_program_that_brings_onnxruntime_itself(
    log: str, origin: str | None
) -> None:
    """It says so in whatever it fails, also where only the row itself knows what to do."""
    found = explain_log(log, TABLE)[0]

    assert found.origin == origin
    if origin:
        assert not found.fixable
        assert not found.commands
        assert fix_for([found], (), None).why.code == "mend-other-program"


@pytest.mark.parametrize("log", [OLD, "CUDNN failure 1001: CUDNN_STATUS_NOT_INITIALIZED"])
def test_a_program_that_brings_onnxruntime_is_told_of_its_own_packages(log: str) -> None:
    """Not that ortgpu-fix chooses a release for it; a kind's own remedy goes before the row's."""
    theirs = [explain_log(f"{each}\n{log}", TABLE)[0] for each in ("ai.onnxruntime.Ort", DOTNET)]
    (frozen,) = explain_log("Failed to execute script\nCUDNN_STATUS_NOT_INITIALIZED", TABLE)

    row = TABLE.by_code[theirs[0].code]
    assert row.bundled is not None
    assert theirs[0].remedy == row.bundled["en"]
    assert (theirs[1].remedy == row.bundled["en"]) is (log == OLD)
    assert frozen.remedy == TABLE.programs["frozen"].remedies["cudnn"]["en"]
    assert explain_log(log, TABLE)[0].remedy == row.remedy["en"]


@pytest.mark.parametrize(
    "own", [*("RUN python3 -m pip install x", "RUN uv sync", "FROM nvidia/cuda:12.4")]
)
def test_packages_mend_an_image_of_one_s_own(own: str) -> None:
    """What they cannot mend is up to the host there, too, and a ready image stays its author's."""
    log = "docker run --gpus all app\ndocker-compose up\n"
    lost = "no CUDA-capable device is detected\n"

    for failure in (OLD, KERNEL):
        (mine,), (ready,) = (explain_log(log + each + failure, TABLE) for each in (own + "\n", ""))
        assert (mine.origin, mine.fixable) == (None, True)
        assert (ready.origin in {"container", "image"}, ready.fixable) == (True, False)
        assert "toolkit on the host" not in mine.remedy
    assert explain_log(log + own + "\n" + lost, TABLE)[0].origin == "container"


BLAS = "Library cublas64_12.dll is not found or cannot be loaded\n"
ITS_OWN = "CTranslate2 (faster-whisper, WhisperX) loads CUDA by itself"


@pytest.mark.parametrize(
    ("log", "why", "besides"),
    [
        ("import ctranslate2  # in site-packages\n" + MISSING, "mend-by-besides", True),
        (BLAS, "mend-by-python", True),
        ("site-packages\n" + MISSING, "mend-by", False),
        ("ctranslate2, site-packages\n" + KERNEL, "mend-by", False),
        ("ctranslate2, site-packages\n" + KERNEL + MISSING, "mend-by", False),
        ("ctranslate2\nai.onnxruntime.OrtException\n" + MISSING, "mend-other-program", False),
    ],
)
def test_what_loads_cuda_by_itself_is_told_which_of_its_releases_fit(
    log: str, why: str, *, besides: bool
) -> None:
    search = Search(TABLE)
    search.feed(log, joined=True)
    found = search.explanations()

    assert fix_for(found, (), None, by=search.fix_label(found)).why.code == why
    assert (ITS_OWN in found[0].remedy) is besides


# What failed before a session that has the GPU

USED = "Applied providers: ['CUDAExecutionProvider', 'CPUExecutionProvider'], with options: {}\n"
NOT_USED = "Applied providers: ['CPUExecutionProvider'], with options: {}\n"


@pytest.mark.parametrize(
    ("pieces", "over"),
    [
        (("site-packages\n", MISSING, USED), True),
        (("site-packages\n", MISSING, USED, NOT_USED), False),
        (("site-packages\n", USED, MISSING), False),
        (("site-packages\n", KERNEL, USED, MISSING), False),
        (("site-packages\n", USED, MISSING, USED), True),
        (("site-packages\n", USED), False),
    ],
)
def test_what_failed_before_a_session_on_cuda_and_not_after_it_is_information(
    pieces: tuple[str, ...], *, over: bool
) -> None:
    for parts in (pieces, ("".join(pieces),)):
        search = Search(TABLE)
        for part in parts:
            search.feed(part, joined=len(parts) == 1)
        found = search.explanations()
        assert search.is_over is over
        assert all(each.severity == "info" and not each.fixable for each in found) is (
            over or not found
        )


def test_more_of_the_same_error_than_is_shown_is_not_over_either() -> None:
    search = Search(TABLE)
    search.feed(MISSING * 6 + USED + MISSING)

    assert not search.is_over
