"""Which files a program needs beside its executable: those that the wheels of its release link."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.explanations import needed_files
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.log_lines.wordings import reader_of

TABLE = parse_failures(load_table("failures"))
READ = reader_of(TABLE.libraries)
BUILDS: list[dict[str, Any]] = load_table("onnxruntime")["build"]
PROGRAMS = {
    "dotnet": "Microsoft.ML.OnnxRuntime.OnnxRuntimeException: [ErrorCode:RuntimeException] ",
    "frozen": "[PYI-7:ERROR] Failed to execute script 'main'\n",
    "cpp": "terminate called after throwing an instance of 'Ort::Exception'\n",
}
MISSING = (
    'Error loading "C:\\app\\onnxruntime_providers_cuda.dll" which depends on "{}" which is'
    " missing."
)


def recent(build: dict[str, Any]) -> bool:
    """Tell whether a build is one whose libraries the rows list: those before 1.17 vary."""
    return tuple(map(int, build["version"].split(".")[:2])) >= (1, 17)


@pytest.mark.parametrize("platform", sorted({build["platform"] for build in BUILDS}))
def test_all_that_a_release_needs_is_in_the_list(platform: str) -> None:
    for build in BUILDS:
        if recent(build) and build["platform"] == platform:
            check_list(build)


def check_list(build: dict[str, Any]) -> None:
    (row,) = [row for row in TABLE.needed if row.releases.contains(build["version"])]
    listed = row.windows if build["platform"].startswith("windows") else row.linux
    wanted = {need["library"] for need in build["needs"] if need.get("distribution")}
    missing = {
        name for name in wanted if not any(fnmatchcase(name, each) for each in listed.split(", "))
    }
    wheels = {each.partition(" ")[0] for each in row.wheels.split(", ")}

    assert missing <= {"nvrtc64_120_0.dll"}
    assert (row.cuda, row.cudnn) == (build["cuda"].partition(".")[0], build["cudnn"])
    assert {need["distribution"] for need in build["needs"] if need.get("distribution")} <= wheels


@pytest.mark.parametrize(
    ("names", "release", "cuda"),
    [
        (["cublasLt64_11.dll"], None, ["11"]),
        (["libcublasLt.so.12"], "1.31.1", ["12"]),
        (["cudnn64_9.dll"], None, ["12", "13"]),
        (["cudnn64_9.dll"], "1.22.0", ["12"]),
        (["onnxruntime_providers_cuda.dll"], "1.31.1", ["13"]),
        ([], None, ["11", "12", "13"]),
    ],
)
def test_the_cuda_major_is_that_of_the_library_or_of_the_release(
    names: list[str], release: str | None, cuda: list[str]
) -> None:
    told = needed_files(TABLE.needed, [READ(name) for name in names], release)
    rows = [row for row in TABLE.needed if row.cuda in cuda]

    assert [row for row in TABLE.needed if row.wheels in told["wheels"]] == rows
    windows = any(name.endswith(".dll") for name in names)
    linux = any(".so" in name for name in names)
    assert all((row.windows in told["files"]) == (windows or not linux) for row in rows)
    assert all((row.linux in told["files"]) == (linux or not windows) for row in rows)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_another_kind_is_told_the_files(program: str) -> None:
    (found,) = explain_log(PROGRAMS[program] + MISSING.format("cublasLt64_12.dll"), TABLE)

    fetch = "ortgpu-fix download -d gpu-libraries --libraries --cuda 12"
    assert (found.origin, found.commands, found.fixable) == (program, (fetch,), False)
    assert "cublas64_12.dll, cublasLt64_12.dll, cudart64_12.dll, cufft64_11.dll" in found.remedy
    assert "cudnn*64_9.dll" in found.remedy
    assert "nvidia-cublas-cu12" in found.remedy


@pytest.mark.parametrize(("named", "both"), [("", True), ("onnxruntime-gpu==1.16.3\n", False)])
def test_a_program_s_own_release_counts_and_not_the_machine_s(named: str, *, both: bool) -> None:
    log = (
        "[PYI-1234:ERROR] Failed to execute script 'main' due to unhandled exception!\n" + named
    ) + (
        'LoadLibrary failed with error 126 "" when trying to load'
        ' "C:\\x\\onnxruntime_providers_cuda.dll"\n'
    )

    (found,) = explain_log(log, TABLE, release="1.31.1")

    assert "cublas64_11.dll" in found.remedy
    assert ("cublas64_13.dll" in found.remedy) is both
