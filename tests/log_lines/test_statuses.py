"""Every status of CUDA, cuDNN and cuBLAS is recognised, by its number and by each of its names."""

from __future__ import annotations

import re
from pathlib import Path

import evidence_samples as samples
import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.update.reader import Reader, ReadingCache
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

TABLE = parse_failures(load_table("failures"))
NUMBERS = {row.number: row for row in TABLE.statuses}
ANSWERS = {"CUDNN_STATUS_SUCCESS", "CUBLAS_STATUS_SUCCESS", "CUDNN_STATUS_DEPRECATED"}
"""What is no failure."""
HEADERS = (
    ("nvidia-cuda-runtime", "13.0.96", "nvidia/cu13/include", "driver_types.h"),
    ("nvidia-cuda-runtime", "13.0.96", "nvidia/cu13/include", "cuda.h"),
    ("nvidia-cudnn-cu12", "9.10.2.21", "nvidia/cudnn/include", "cudnn_graph.h"),
)


def said(line: str) -> list[str]:
    return [each.code for each in explain_log(line, TABLE)]


def test_a_status_is_the_same_by_number_and_by_name() -> None:
    """As onnxruntime writes both: `CUDA failure 35: …`, `CUDA error cudaErrorNoDevice:…`."""
    for row in TABLE.statuses[::8]:
        (code,) = said(f"CUDA failure {row.number}: something ; GPU=0 ; hostname=x")

        for name in row.names:
            assert said(f"Status Message: CUDA error {name}:something") == [code], name
        if row.text:
            assert said(f"Error Code 1: Cuda Runtime ({row.text})") == [code], row.text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("an illegal memory access was encountered", "gpu-program-fault"),
        ("CUDA failure 500: named symbol not found ; GPU=-1", "driver-symbol-not-found"),
        ("CUDA failure 3: initialization error", "cuda-after-fork"),
        ("CUDA driver error: 304", "system-call-refused"),
        ("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", "no-kernel-image"),
        ("CUDNN failure 3: CUDNN_STATUS_BAD_PARAM ; GPU=0", "cudnn-refused"),
        ("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "cuda-library-failed"),
    ],
)
def test_what_a_status_means(text: str, code: str) -> None:
    assert said(text) == [code]


@pytest.mark.parametrize("text", ["CUDA failure 1234567:", "failure 700", "CUDNN_STATUS_SUCCESS"])
def test_what_is_no_status_is_none(text: str) -> None:
    assert said(text) == []


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.parametrize(("name", "version", "folder", "header"), HEADERS)
def test_the_statuses_of_a_header_are_all_recognised(
    name: str, version: str, folder: str, header: str, tmp_path: Path
) -> None:
    index = samples.source("https://pypi.org/simple", tmp_path)
    reader = Reader(index, ReadingCache(tmp_path), "", lambda _: None)
    wheels = [wheel for wheel in reader.wheels(name) if f"-{version}-" in wheel.file]
    linux = next(wheel for wheel in wheels if wheel.file.endswith("x86_64.whl"))
    text = reader.text(linux, f"{folder}/{header}")
    cuda = dict(re.findall(r"\b(cudaError[A-Z]\w*|CUDA_ERROR_\w+)\s*=\s*(\d+)", text))
    others = set(re.findall(r"\b((?:CUDNN|CUBLAS)_STATUS_\w+)\s*=\s*\d+", text)) - ANSWERS
    known = {name for row in TABLE.statuses for name in row.names}
    cuda.pop("cudaErrorApiFailureBase", None)  # no status: "should not be used"

    assert cuda or others
    assert {name for name in cuda if name not in known} == set()
    assert {
        name for name, number in cuda.items() if name not in NUMBERS[int(number)].names
    } == set()
    assert {name for name in others if not said(f"failure 3: {name} ; GPU=0")} == set()
