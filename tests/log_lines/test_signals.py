"""What a message says: every wording by a message as programs print it."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.patterns import regex

PARSERS = parse_failures(load_table("failures")).parsers.rows


def said(log: str) -> list[str]:
    """Return the keys of everything that is read of `log`: of two wordings, what the first says."""
    taken: set[int] = set()
    keys = []
    for parser, make in PARSERS:
        for match in parser.regex.finditer(log):
            signal, here = make(match), set(range(*match.span()))
            if signal is not None and not here & taken:
                taken |= here
                keys.append(signal.key)
    return keys


@pytest.mark.parametrize(
    ("log", "keys"),
    [
        ("libcudnn.so.9: cannot open shared object file", ["missing:cudnn:9@"]),
        (
            (
                "libonnxruntime_providers_cuda.so with error: libcublas.so.12: cannot open shared"
                " object file"
            ),
            ["missing:cuda:12@cuda"],
        ),
        ("/x/libcudnn.so.9: undefined symbol: anything", ["symbol:cudnn:9@"]),
        (
            "libcudnn_ops.so.9. Error: libcublas.so.12: undefined symbol: a",
            ["symbol:cuda:12@cudnn-part"],
        ),
        ("/x/libother.so: undefined symbol: __cublasLtCreate", ["symbol:cuda:@"]),
        (
            (
                "/x/a.so: symbol cublasCreate, version libcublas.so.12 not defined in file"
                " libcublas.so.12 with link time reference"
            ),
            ["symbol:cuda:12@"],
        ),
        (
            'LoadLibrary failed with error 193 "" when trying to load "C:\\x\\zlibwapi.dll"',
            ["unloadable:zlib:193@"],
        ),
        ("[WinError 1114] of an unnamed library", ["unloadable::1114@"]),
        (
            "Could not load library cudnn_ops64_9.dll. Error code 193",
            ["unloadable:cudnn-part:193@"],
        ),
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so}",
            ["missing:cudnn-part:@"],
        ),
        ("Cannot load symbol cudnnCreateTensorDescriptor", ["missing:cudnn-part:@"]),
        ("dlopen(/x/libcudnn.so.9, 6): image not found", ["missing:cudnn:9@"]),
        ("Unable to load shared library 'libcublas.so.12'", ["missing:cuda:12@"]),
    ],
)
def test_what_loaders_say_of_a_library(log: str, keys: list[str]) -> None:
    assert said(log) == keys


@pytest.mark.parametrize(
    ("line", "asker"),
    [
        ("dso_loader.cc:64] ", "others"),
        ("/site-packages/jaxlib/x.py ", "others"),
        ("/site-packages/ordinary/x.py ", ""),
        ("./app: error while loading shared libraries: ", "program"),
    ],
)
def test_who_asked_for_a_library_stands_before_it_in_its_line(line: str, asker: str) -> None:
    message = "libcudnn.so.9: cannot open shared object file"

    assert said(line + message) == [f"missing:cudnn:9@{asker}"]
    assert said(f"{line}\n{message}") == ["missing:cudnn:9@"]


@pytest.mark.parametrize(("far", "asker"), [(400, "others"), (401, "")])
def test_in_a_line_without_an_end_an_asker_is_looked_for_nearby(far: int, asker: str) -> None:
    log = f"{'dso_loader.cc:64]':{far}}libcudnn.so.9: cannot open shared object file"

    assert said(log) == [f"missing:cudnn:9@{asker}"]


@pytest.mark.parametrize(
    "log",
    [
        "CUDA failure 100: what",
        "CUDA error=100",
        "cuda failed with error 100",
        "cuda runtime error (100) : what",
        "Cuda Error in initialize: 100 (what)",
        "the name is cudaErrorNoDevice",
        "the name is CUDA_ERROR_NO_DEVICE",
        "RuntimeError: no CUDA-capable device is detected",
    ],
)
def test_a_status_of_cuda_is_told_by_its_number_its_names_and_its_text(log: str) -> None:
    assert said(log) == ["cuda:100"]


def test_what_a_check_compares_with_is_no_status() -> None:
    """dmlc's CHECK prints its condition before what CUDA answered."""
    checked = "Check failed: e == cudaSuccess || e == cudaErrorCudartUnloading: CUDA: "

    assert said(checked + "invalid device ordinal") == ["cuda:101"]
    assert said(checked + "cudaErrorNoDevice") == ["cuda:100"]


@pytest.mark.parametrize("log", ["CUDA failure 1001: what", "cudaErrorOfLater"])
def test_a_status_that_the_table_lacks_says_nothing(log: str) -> None:
    assert said(log) == []


@pytest.mark.parametrize(
    ("log", "key"),
    [
        ("CUDNN_STATUS_NOT_INITIALIZED", "cudnn:NOT_INITIALIZED"),
        ("CUBLAS error executing cublasHgemm(", "cublas:cublasHgemm"),
        ("No matching distribution found for onnxruntime_gpu==1", "no-wheel:onnxruntime-gpu"),
        (
            (
                "onnxruntime_gpu-1.26.0-cp311-cp311-win_amd64.whl is not a supported wheel on this"
                " platform"
            ),
            "no-wheel:onnxruntime-gpu",
        ),
        ("`torch` (v2.9.0+cu128) only has wheels for the following platform", "no-wheel:torch"),
        ("Because only torch<=2.9 is available", "no-wheel:torch"),
        (
            "Retrying after connection broken by 'NewConnectionError()': /simple/some_name/",
            "unreachable:some-name",
        ),
        ("Failed to fetch: `https://example.org/simple/torch/`", "unreachable:torch"),
    ],
)
def test_what_parts_of_cuda_and_what_installers_say(log: str, key: str) -> None:
    assert said(log) == [key]


def test_a_wording_that_is_no_expression_is_named() -> None:
    with pytest.raises(ValueError, match=r"^parser\[3\]: missing \)"):
        regex("(", "parser[3]")
