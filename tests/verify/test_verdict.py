"""The verdicts, from what real releases said (the messages are theirs, paths shortened)."""

from __future__ import annotations

from typing import Any

import pytest
from smoke_said import (
    ABSENT,
    BUILD,
    CPU,
    END,
    FAILURE,
    GPU,
    IMPORTING,
    INFERRING,
    NO_DEVICE,
    NO_KERNEL,
    NO_LIBCUDA,
    NOT_LOADED,
    ON_CPU,
    ON_GPU,
    PROVIDER_DLL,
    START,
    TOO_OLD,
    driver,
    each,
    failed,
    library,
    model,
    needed,
    say,
)
from told import values_of

from ortgpu_fix.facts.model import Driver
from ortgpu_fix.verify.verification import (
    Verification,
    VerificationVerdict,
    verification_exit_code,
)


def notes(found: Verification) -> list[str]:
    return [note.code for note in found.notes]


def test_all_on_the_gpu_and_right_works() -> None:
    found = say(START, driver(), IMPORTING, BUILD, needed(), *ON_GPU, END)
    assert found.verdict == "works"
    assert verification_exit_code(found) == verification_exit_code(found, elsewhere=True) == 0
    assert [(run.name, run.correct, run.second_ms) for run in found.models] == [
        ("conv", True, 0.2),
        ("matmul", True, 0.2),
        ("fft", True, 0.2),
    ]
    assert found.evidence == (
        "onnxruntime 1.26.0 from /env/onnxruntime/__init__.py",
        "driver: /usr/lib/libcuda.so.1, CUDA 12.2, cuInit 0",
        f"conv: Conv on {GPU}, MemcpyToHost on {GPU}; off by 0.0; 12.0 ms, then 0.2 ms",
        f"matmul: MemcpyFromHost on {CPU}, MatMul on {GPU}; off by 0.0; 12.0 ms, then 0.2 ms",
        f"fft: Rfft on {GPU}; off by 0.0; 12.0 ms, then 0.2 ms",
    )


def test_the_precision_of_tf32_is_enough() -> None:
    close = model("matmul", "MatMul CUDA", deviation=0.0009)
    assert say(driver(), BUILD, needed(), ON_GPU[0], close, ON_GPU[2], END).verdict == "works"


def test_one_node_on_the_cpu_is_a_fallback() -> None:
    split = model("conv", "Conv CPU", "Relu CUDA")
    found = say(driver(), BUILD, needed(), split, *ON_GPU[1:], END)
    assert (found.verdict, found.values) == ("cpu-fallback", (("models", "conv"),))


@pytest.mark.parametrize(
    ("seen", "known", "error", "verdict"),
    [
        (NO_LIBCUDA, None, TOO_OLD, "no-driver"),
        (NO_LIBCUDA, Driver(version="550.163.01", cuda="12.4"), TOO_OLD, "no-driver"),
        (NO_LIBCUDA, Driver(version="470.256.02", cuda="11.4"), TOO_OLD, "driver-too-old"),
        (driver(None, 100), None, TOO_OLD, "driver-too-old"),
        (driver("12.2", 100), None, NO_DEVICE, "no-gpu"),
    ],
)
def test_what_cuda_says_of_the_driver(
    seen: dict[str, Any], known: Driver | None, error: str, verdict: str
) -> None:
    found = say(seen, BUILD, needed(), *each(error), END, known=known)
    assert found.verdict == verdict
    assert verification_exit_code(found) == 6
    assert verification_exit_code(found, elsewhere=True) == 0
    assert f"conv: {error}" in found.evidence
    assert not any("build-7" in str(part) for part in (found.evidence, found.models))


def test_releases_that_only_log_what_cuda_says() -> None:
    """From 1.19 to 1.22 the session falls back to the CPU all the same."""
    log = FAILURE.format(NO_DEVICE)
    found = say(driver("12.2", 100), BUILD, needed(), *ON_CPU, END, stderr=log)
    assert (found.verdict, found.evidence[-1]) == ("no-gpu", NO_DEVICE)
    log = FAILURE.format(TOO_OLD)
    found = say(driver("11.4", 100), BUILD, needed(), *ON_CPU, END, stderr=log)
    assert (found.verdict, found.evidence[-1]) == ("driver-too-old", TOO_OLD)


OFFERS_NONE = "LookupError: the plugin offers no device: CUDAExecutionProvider"


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (NO_LIBCUDA, "no-driver"),
        (driver("11.4", 100), "driver-too-old"),
        (driver("12.2", 100), "no-gpu"),
    ],
)
def test_a_plugin_that_offers_no_device(seen: dict[str, Any], verdict: str) -> None:
    models = [failed(name, OFFERS_NONE) for name in ("conv", "matmul")]

    assert say(seen, BUILD, needed(), *models, END).verdict == verdict


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (NO_LIBCUDA, "no-driver"),
        (driver("12.2", 100), "no-gpu"),
        (driver("12.2", 0), "cpu-fallback"),
    ],
)
def test_a_session_that_runs_on_the_cpu_without_a_word(seen: dict[str, Any], verdict: str) -> None:
    """As one does whose provider `import onnxruntime` registers where there is no GPU."""
    assert say(seen, BUILD, needed(), *ON_CPU, END).verdict == verdict
    partly = (ON_GPU[0], *ON_CPU[1:])
    assert say(seen, BUILD, needed(), *partly, END).verdict == "cpu-fallback"


@pytest.mark.parametrize("seen", [NO_LIBCUDA, driver("12.2", 100)])
def test_a_build_without_cuda_is_told_before_a_driver_that_it_would_not_use(
    seen: dict[str, Any],
) -> None:
    without = BUILD | {"cuda": None}

    assert say(seen, without, *ON_CPU, END).verdict == "cpu-fallback"
    wants = say(seen, without, needed(library("libcudart.so.12"), cuda=None), *ON_CPU, END)
    assert wants.verdict in {"no-driver", "no-gpu"}


def test_nvidias_own_plugin_computes_on_the_gpu() -> None:
    models = [model("conv", "Conv NvTensorRTRTX"), model("matmul", "MatMul NvTensorRTRTX")]

    assert say(driver(), BUILD, needed(), *models, END).verdict == "works"


def test_a_driver_that_is_too_old_is_named_with_what_is_needed() -> None:
    found = say(driver("11.4"), BUILD, needed(), *each(TOO_OLD), END)
    assert found.values == (("speaks", "11.4"), ("needs", "12"))
    unknown = say(driver(None), BUILD | {"cuda": None}, needed(cuda=None), *each(TOO_OLD), END)
    assert unknown.values == (("speaks", "?"), ("needs", "?"))
    known = say(NO_LIBCUDA, BUILD, *each(TOO_OLD), END, known=Driver(cuda="11.4"))
    assert known.values == (("speaks", "11.4"), ("needs", "12"))
    major = say(NO_LIBCUDA, BUILD, needed(), *each(TOO_OLD), END, known=Driver(cuda="11"))
    assert (major.verdict, major.values) == ("driver-too-old", (("speaks", "11"), ("needs", "12")))


@pytest.mark.parametrize("code", [46, 802, 999])
def test_failures_by_which_no_gpu_can_be_used(code: int) -> None:
    found = say(driver(), BUILD, needed(), *each(f"CUDA failure {code}: so it is"), END)

    assert found.verdict == "no-gpu"
    assert notes(found) == ([f"cuda-failure-{code}"] if code >= 802 else [])


def test_a_missing_library_goes_before_what_the_driver_says() -> None:
    absent = library("libcudnn.so.9", f"libcudnn.so.9: {ABSENT}")
    other = library("libcufft.so.11", f"libcufft.so.11: {ABSENT}")

    for rows in ([*each(NO_DEVICE)], ON_CPU):
        found = say(driver("12.2", 100), BUILD, needed(absent, other), *rows, END)
        assert found.verdict == "library-missing"
        assert values_of(found) == {"library": "libcudnn.so.9"}
    wrong = say(driver(), BUILD, needed(absent), *[row | {"deviation": 1.0} for row in ON_GPU], END)
    assert wrong.verdict == "wrong-result"


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (FAILURE.format("CUDA failure 2: out of memory"), "cuda-failure-2"),
        ("BFCArena::AllocateRawInternal Failed to allocate memory for requested", "cuda-failure-2"),
        ("CUDNN failure 14: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH ; GPU=0", "cudnn-mixed"),
    ],
)
def test_crashes_that_can_be_explained(error: str, note: str) -> None:
    found = say(driver(), BUILD, needed(), failed("conv", error), *ON_GPU[1:], END)
    assert (found.verdict, notes(found)) == ("crashed", [note])


@pytest.mark.parametrize("error", [NO_KERNEL, FAILURE.format("CUDA failure 209: no kernel image")])
def test_no_code_for_the_gpu(error: str) -> None:
    found = say(driver(), BUILD, needed(), failed("conv", error), *ON_GPU[1:], END)
    assert found.verdict == "crashed"
    assert notes(found) == ["cuda-failure-209"]


@pytest.mark.parametrize(
    ("log", "name"),
    [
        (
            f'Error loading "{PROVIDER_DLL}" which depends on "cublasLt64_12.dll" which is missing',
            "cublasLt64_12.dll",
        ),
        (
            f'LoadLibrary failed with error 126 "" when trying to load "{PROVIDER_DLL}"',
            "onnxruntime_providers_cuda",
        ),
        (
            NOT_LOADED.format("/x/libcublas.so.12: undefined symbol: cublasLtGetEnvironmentMode"),
            "onnxruntime_providers_cuda",
        ),
    ],
)
def test_other_ways_of_not_being_loaded(log: str, name: str) -> None:
    found = say(driver(), BUILD, *ON_CPU, END, stderr=log)
    assert (found.verdict, found.values) == ("library-missing", (("library", name),))


@pytest.mark.parametrize(
    ("seen", "reason", "verdict"),
    [
        (NO_LIBCUDA, f"libcuda.so.1: {ABSENT}", "no-driver"),
        (
            NO_LIBCUDA | {"error": f"libnvidia-fatbinaryloader.so.418.226.00: {ABSENT}"},
            f"libnvidia-fatbinaryloader.so.418.226.00: {ABSENT}",
            "no-driver",
        ),
        (driver("11.4", 100), "/x.so: undefined symbol: cuTensorMapEncodeTiled", "driver-too-old"),
    ],
)
def test_a_provider_that_lacks_only_the_driver(
    seen: dict[str, Any], reason: str, verdict: str
) -> None:
    rows = needed(library("libcuda.so.1", ABSENT), library("libcudnn.so.9"), cuda="13")
    found = say(seen, BUILD, rows, *ON_CPU, END, stderr=NOT_LOADED.format(reason))
    assert found.verdict == verdict
    assert verification_exit_code(found, elsewhere=True) == 0


@pytest.mark.parametrize(
    ("seen", "why", "verdict"),
    [
        (NO_LIBCUDA, f"libcuda.so.1: {ABSENT}", "no-driver"),
        (
            driver("11.0", 100),
            "/env/libcudnn_engines_rtc.so.9: undefined symbol: cuTensorMapEncodeIm2col",
            "driver-too-old",
        ),
    ],
)
def test_a_library_that_itself_needs_the_driver_is_not_missing(
    seen: dict[str, Any], why: str, verdict: str
) -> None:
    name = "libcudnn_engines_runtime_compiled.so.9"
    log = NOT_LOADED.format(f"{name}: {ABSENT}")
    found = say(seen, BUILD, needed(library(name, why)), *ON_CPU, END, stderr=log)
    assert found.verdict == verdict


def test_a_library_used_later_is_missing_even_where_the_driver_already_says_no() -> None:
    rows = needed(library("libcublas.so.13"), library("libcudnn.so.9", ABSENT), cuda="13")
    found = say(driver("12.2", 100), BUILD, rows, *each(TOO_OLD), END)
    assert (found.verdict, found.values) == ("library-missing", (("library", "libcudnn.so.9"),))
    optional = needed(library("libnvrtc.so.12", ABSENT, optional=True))
    assert say(driver(), BUILD, optional, *each(NO_DEVICE), END).verdict == "no-gpu"


@pytest.mark.parametrize(
    ("seen", "known", "verdict", "expected"),
    [
        ([NO_LIBCUDA], None, "no-driver", ["crash-without-driver"]),
        ([driver("10.1", 100)], None, "driver-too-old", ["crash-without-driver"]),
        ([], Driver(cuda="10.1"), "driver-too-old", ["crash-without-driver"]),
        ([driver("12.2", 100)], None, "no-gpu", []),
        ([driver("12.2", 803)], None, "no-gpu", ["cuda-failure-803"]),
        ([driver("12.2", 0)], None, "crashed", []),
    ],
)
def test_a_crash_is_an_answer(
    seen: list[dict[str, Any]], known: Driver | None, verdict: str, expected: list[str]
) -> None:
    steps = (START, *seen, IMPORTING, BUILD, needed(cuda="11"), INFERRING)
    found = say(*steps, returncode=-11, known=known)
    assert found.verdict == verdict
    assert notes(found) == expected
    assert found.evidence[-1] == "inference conv: ended by SIGSEGV"


def test_a_child_that_says_nothing() -> None:
    found = say("", "Hello", "[1]", "{}", '{"event": 3}', '{"event": "nothing-known"}')
    assert found.verdict == "crashed"
    assert found.evidence == ("start: ended by exit code 0",)


def test_each_kind_of_gpu_is_named() -> None:
    t4, a100 = {"gpu": "NVIDIA T4 (7.5)"}, {"gpu": "NVIDIA A100 (8.0)"}
    runs = [row | gpu for gpu in (a100, t4) for row in ON_GPU]
    runs[-1] = runs[-1] | {"deviation": 1.5}
    found = say(driver(), BUILD, needed(), *runs, END)
    assert found.verdict == "wrong-result"
    assert found.values == (("models", "fft on NVIDIA T4 (7.5)"),)
    found = say(driver(), BUILD, needed(), ON_CPU[0] | t4, *ON_GPU, END)
    assert found.verdict == "cpu-fallback"
    assert found.values == (("models", "conv on NVIDIA T4 (7.5)"),)


def test_an_end_is_an_end_whatever_happens_on_the_way_out() -> None:
    found = say(driver(), BUILD, needed(), *ON_GPU, END, returncode=-11)
    assert found.verdict == "works"


@pytest.mark.parametrize(
    ("error", "verdict", "note"),
    [
        (f"ImportError: libcublas.so.11: {ABSENT}", "library-missing", []),
        (
            "ImportError: DLL load failed while importing onnxruntime_pybind11_state: 1114",
            "crashed",
            ["runtime-too-old"],
        ),
        ("ModuleNotFoundError: No module named 'onnxruntime'", "crashed", ["import-failed"]),
        (None, "crashed", ["gutted"]),
    ],
)
def test_what_cannot_be_imported(error: str | None, verdict: str, note: list[str]) -> None:
    build = {"event": "onnxruntime", "file": None, "version": None, "error": error, "whole": False}
    found = say(START, NO_LIBCUDA, IMPORTING, build)
    assert found.verdict == verdict
    assert notes(found) == note
    if error:
        assert f"onnxruntime cannot be imported: {error}" in found.evidence


def test_help_and_duplicates_are_noted() -> None:
    rows = needed(library("libcublas.so.11", helped="/env/nvidia/cublas/lib/libcublas.so.11"))
    loaded = [
        {"name": "libcudnn.so.8", "path": "/env/nvidia/cudnn/lib/libcudnn.so.8"},
        {"name": "libcudnn.so.8.9.7", "path": "/usr/lib/libcudnn.so.8.9.7"},
        {"name": "libcublas.so.11", "path": "/env/nvidia/cublas/lib/libcublas.so.11"},
    ]
    events = {"event": "loaded", "libraries": loaded}
    preload = {"event": "preloaded", "error": "RuntimeError: no folder"}
    found = say(START, driver(), BUILD, preload, rows, *ON_GPU, events, END)
    assert found.verdict == "works"
    assert found.helped == ("libcublas.so.11",)
    assert "preload_dlls: RuntimeError: no folder" in found.evidence
    assert [(note.code, values_of(note)) for note in found.notes] == [
        ("libraries-helped", {"libraries": "libcublas.so.11"}),
        (
            "library-twice",
            {
                "library": "libcudnn.so.8",
                "paths": "/env/nvidia/cudnn/lib/libcudnn.so.8, /usr/lib/libcudnn.so.8.9.7",
            },
        ),
    ]


def test_the_document() -> None:
    loaded = {"event": "loaded", "libraries": [{"name": "libcuda.so.1", "path": "/lib/libcuda"}]}
    run = ON_GPU[2] | {"gpu": "NVIDIA L4 (8.9)"}
    found = say(START | {"plain": True, "visible": "0"}, driver(), BUILD, run, loaded, END)
    assert "CUDA_VISIBLE_DEVICES='0'" in found.evidence
    assert found.to_json() == {
        "schema": 1,
        "verdict": "works",
        "plain": True,
        "models": [
            {
                "name": "fft",
                "gpu": "NVIDIA L4 (8.9)",
                "nodes": [{"op": "Rfft", "provider": "CUDAExecutionProvider"}],
                "deviation": 0.0,
                "correct": True,
                "create_ms": 20.5,
                "first_ms": 12.0,
                "second_ms": 0.2,
                "error": None,
            }
        ],
        "libraries": [{"name": "libcuda.so.1", "path": "/lib/libcuda", "version": None}],
        "helped": [],
        "torch": None,
        "notes": [],
        "evidence": list(found.evidence),
    }
    crashed = say(START, INFERRING, returncode=-9, timed_out=True).to_json()
    assert crashed["notes"] == [{"code": "timed-out", "values": {"step": "inference conv"}}]


def windows_driver(cuda: str | None, init: int | None) -> dict[str, Any]:
    library = None if init is None else r"C:\Windows\System32\nvcuda.dll"
    return {"event": "driver", "library": library, "cuda": cuda, "init": init}


@pytest.mark.parametrize(
    ("here", "verdict"),
    [
        (windows_driver(None, None), "no-driver"),
        (windows_driver("12.9", 0), "driver-too-old"),
        (windows_driver("13.0", 100), "no-gpu"),
        (windows_driver("13.0", 0), "crashed"),
    ],
)
def test_cuda_13_on_windows_has_its_runtime_in_the_driver(
    here: dict[str, Any], verdict: VerificationVerdict
) -> None:
    """cudart64_13.dll answers 801, without a text, to whatever it is asked (1.31.1, Wine)."""
    build = dict(BUILD, version="1.31.1", cuda="13.0")

    found = say(
        START, here, IMPORTING, build, needed(cuda=None), *each("CUDA failure 801: (null)"), END
    )

    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("log", "seen", "verdict"),
    [
        # a symbol of the driver's where the driver is new enough: that library is of another CUDA
        ("/x/libfoo.so.1: undefined symbol: cuTensorMapEncodeTiled", driver("13.0"), None),
        # a library of somebody else, where the driver is too old besides
        ("/x/libfoo.so.1: undefined symbol: foo_init", driver("11.4"), None),
        ("/x/libfoo.so.1: undefined symbol: cuTensorMapEncodeTiled", driver("11.4"), "too-old"),
        # the driver's library is not found by that name, and CUDA can be asked all the same
        (f"libcuda.so.1: {ABSENT}", driver("13.0"), "no-driver"),
    ],
)
def test_the_driver_is_named_only_where_it_is_the_reason(
    log: str, seen: dict[str, Any], verdict: str | None
) -> None:
    rows = needed(library("libcudnn.so.9"), cuda="12")
    found = say(seen, BUILD, rows, *ON_CPU, END, stderr=NOT_LOADED.format(log))

    expected = {None: "library-missing", "too-old": "driver-too-old", "no-driver": "no-driver"}
    assert found.verdict == expected[verdict]


def test_another_library_that_needs_the_driver_does_not_explain_what_is_missing() -> None:
    """cuDNN's compiler lacks libcuda.so.1; what stopped the provider is cuBLAS."""
    engines = "libcudnn_engines_runtime_compiled.so.9"
    rows = needed(library(engines, f"libcuda.so.1: {ABSENT}"), library("libcublas.so.12"))
    log = NOT_LOADED.format(f"libcublas.so.12: {ABSENT}")

    found = say(NO_LIBCUDA, BUILD, rows, *ON_GPU[:1], *ON_CPU[1:], END, stderr=log)

    assert found.evidence[-1] == f"libcublas.so.12: {ABSENT}"
    assert found.verdict == "library-missing"


@pytest.mark.parametrize(
    ("init", "verdict", "note"),
    [
        (803, "no-gpu", ["crash-without-driver"]),
        (100, "no-gpu", ["crash-without-driver"]),
        (2, "crashed", ["crash-without-driver"]),
        (0, "library-missing", []),
    ],
)
def test_what_the_driver_says_counts_where_the_provider_throws(
    init: int, verdict: str, note: list[str]
) -> None:
    """On Windows as where Linux crashes; a driver that starts has no part in it."""
    log = f'LoadLibrary failed with error 3765269347 "" when trying to load "{PROVIDER_DLL}"'
    cpu = [model(name, "Conv CPU") for name in ("conv", "matmul")]

    found = say(windows_driver("12.8", init), BUILD, needed(), *cpu, END, stderr=log)

    assert (found.verdict, notes(found)) == (verdict, note)


def test_rows_that_lack_their_words_are_read_all_the_same() -> None:
    """Another release of a child, or one that was ended while it wrote."""
    rows = needed({}), {"event": "loaded", "libraries": [{}]}
    found = say(driver(), BUILD, *rows, {"event": "model", "nodes": [{}]}, END)

    assert [(row.name, row.path) for row in found.libraries] == [("", "")]
    assert [(run.name, run.nodes) for run in found.models] == [("", (("", ""),))]
    assert found.verdict == "cpu-fallback"


def test_a_library_loaded_on_first_use_that_is_not_there() -> None:
    text = "Fail: cuDNN is unavailable for CUDA Execution Provider: libcudnn.so.9 not found"
    found = say(driver(), BUILD, needed(), failed("conv", text), *ON_GPU[1:], END)

    assert (found.verdict, found.values) == ("library-missing", (("library", "cuDNN"),))
