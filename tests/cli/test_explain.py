"""`explain` as a command: what it reads, what it looks at, and the command that it ends with."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import run_here

import synthetic
from ortgpu_fix import __main__
from ortgpu_fix.cli.text_files import MOST, read_text
from ortgpu_fix.errors import Error
from ortgpu_fix.guests.explain import command as explain
from support.standin_wheels import clean_environment

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MISSING = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot"
    " open shared object file: No such file or directory\n"
)
NO_KERNEL = "CUDA failure 209: no kernel image is available for execution on the device\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command in an empty folder, with an empty home."""
    home = tmp_path / "home"
    home.mkdir()

    def start(*argv: str, text_in: str = "", env: Mapping[str, str] | None = None) -> Any:
        environ = clean_environment() | {"HOME": str(home), "LANG": "C.UTF-8"}
        done = run_here(*argv, cwd=home, env=environ | dict(env or {}), text_in=text_in)
        assert "Traceback" not in done.stderr
        return done

    return start


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., str]:
    """Write the facts of a machine and return the file."""

    def write(*packages: str | dict[str, Any], **more: Any) -> str:
        file = tmp_path / "facts.json"
        file.write_text(json.dumps(synthetic.document(*packages, **more)))
        return str(file)

    return write


def explained(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# What it reads


def test_a_file_as_json(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_bytes(f"No devices were found\n{NO_KERNEL}".encode("utf-16"))

    rows = explained(run("explain", str(file), "--json", "--text-only"))["explanations"]

    assert {row["code"] for row in rows} == {"no-gpu-visible", "no-kernel-image"}
    assert {row["here"] for row in rows} == {None}


# What it says of the machine


def test_what_is_so_here_is_confirmed_and_the_command_mends_it(
    run: Run, machine: Callable[..., str]
) -> None:
    facts = machine("onnxruntime-gpu 1.26.0", "numpy 2.2.6")

    document = explained(run("explain", "--facts", facts, "--json", text_in=MISSING))

    (row,) = document["explanations"]
    assert row["code"] == "cudnn-9-missing"
    assert row["here"]["state"] == "confirmed"
    assert row["here"]["findings"]
    assert document["mending"]["command"] == "ortgpu-fix --apply"


def test_the_release_of_the_environment_counts_where_the_log_names_none(
    run: Run, machine: Callable[..., str]
) -> None:
    """TensorRT that is missing means the CPU in some releases only."""
    log = (
        "EP Error x when using ['TensorrtExecutionProvider', 'CUDAExecutionProvider']\n"
        "Failed to load library libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10:"
        " cannot open shared object file: No such file or directory\n"
    )
    facts = machine("onnxruntime-gpu 1.22.0")

    rows = explained(run("explain", "--facts", facts, "--json", text_in=log))["explanations"]

    assert [row["code"] for row in rows] == ["tensorrt-cpu-fallback"]


def test_several_files_are_one_text_and_each_line_is_told_with_its_file(
    run: Run, tmp_path: Path
) -> None:
    texts = {"begin.txt": "started\n", "error.log": "started 1.2.3\n" + MISSING.strip() + "\n"}
    home = tmp_path / "home"
    for name, text in texts.items():
        (home / name).write_text(text)
    document = explained(run("explain", *texts, "--text-only", "--json"))
    said = run("explain", *texts, "--text-only").stdout

    [row] = document["explanations"]
    assert row["code"] == "cudnn-9-missing"
    whole = "".join(text + "\n" for text in texts.values()).split("\n")
    for each in document["files"]:
        first = texts[each["file"]].partition("\n")[0]
        assert whole[each["line_number"] - 1] == first
    assert whole[row["line_number"] - 1] == MISSING.strip()
    assert [each["file"] for each in document["files"]] == list(texts)
    assert "  --> error.log:2\n   |  Failed to load" in said


def test_of_a_text_of_any_length_a_part_is_read(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("x" * (MOST + 7))

    assert len(read_text(str(file))) == MOST


class Terminal(io.TextIOWrapper):
    """Standard input that a person types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("given", "waits"), [([], True), (["FILE"], False)])  # fmt: skip
def test_who_is_waited_for_is_told_so(
    given: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    waits: bool,
) -> None:
    file = tmp_path / "error.log"
    file.write_text(MISSING)
    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"typed")))
    words = [str(file) if word == "FILE" else word for word in given]

    assert __main__.main(["explain", *words, "--text-only"]) == 0
    assert ("Ctrl" in capsys.readouterr().err) is waits


def test_what_to_do_next_is_told_for_the_environment_that_was_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "error.log"
    file.write_text("nothing that is known\n")
    __main__.main(["explain", str(file), "--text-only", "--python", "my app"])

    assert capsys.readouterr().out.splitlines() == [
        "No known failure in this log",
        "",
        "This checks the program's environment on that machine for the reason",
        "ortgpu-fix --python 'my app'",
    ]


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("C.UTF-8", "The log is from a .NET program, which"),
        ("zh_CN.UTF-8", "日志来源：.NET 程序。它不使用"),
    ],
)
def test_who_brings_onnxruntime_is_sent_to_no_command_of_this_machine(
    language: str, told: str, run: Run
) -> None:
    log = "at Microsoft.ML.OnnxRuntime.NativeMethods: it stopped\n"

    said = run("explain", "-", text_in=log, env={"LANG": language}).stdout

    assert told in said
    assert "ortgpu-fix" not in said


def test_a_machine_that_cannot_be_looked_at_promises_no_more_than_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Error("python-not-found", path="python3")

    monkeypatch.setattr(explain, "gather_inputs", refuse)
    file = tmp_path / "error.log"
    said = []
    for text in (MISSING, f"Traceback (most recent call last):\n{MISSING}"):
        file.write_text(text)
        __main__.main(["explain", str(file), "--json"])
        said.append(json.loads(capsys.readouterr().out)["mending"]["code"])

    assert said == ["mend-by-python", "mend-by"]


# The command at the end


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["--ort", "1.26.0", "--ignore-gpu", "8.6"], "--ignore-gpu 8.6 --ort 1.26.0"),
        (["--offline", "--find-links", "a folder"], "--offline --find-links 'a folder'"),
    ],
)
def test_the_command_repeats_the_flags_that_were_given(
    flags: list[str], kept: str, run: Run, machine: Callable[..., str]
) -> None:
    facts = machine("onnxruntime 1.26.0", gpus=("8.0", "8.6"))

    done = run("explain", "--facts", facts, *flags, text_in="['CPUExecutionProvider']\n" + MISSING)

    assert done.returncode == 0, done.stderr
    assert any(line.endswith(f"{kept} --apply") for line in done.stdout.splitlines())


def test_the_command_line_allows_what_it_would_be_refused_for(
    run: Run, machine: Callable[..., str]
) -> None:
    log = MISSING + "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available"
    facts = machine("onnxruntime-gpu 1.26.0", "onnxruntime-directml 1.24.4")

    document = json.loads(run("explain", "--facts", facts, "--json", text_in=log).stdout)

    assert document["mending"]["command"] == "ortgpu-fix --allow provider --apply"


# What the log shows of its program

VENV = MISSING.replace(
    "libonnx", "/opt/my app/.venv/lib/python3.11/site-packages/onnxruntime/capi/libonnx", 1
)
PORTABLE = (
    'LoadLibrary failed with error 126 "找不到指定的模块。" when trying to load'
    ' "D:\\portable\\python_embeded\\Lib\\site-packages\\onnxruntime\\capi\\'
    'onnxruntime_providers_cuda.dll"\n'
)
SMI = """onnxruntime_gpu-1.19.2.dist-info
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA GeForce RTX 3060        Off |   00000000:01:00.0  On |                  N/A |
"""


@pytest.mark.parametrize(
    ("log", "command"),
    [
        (VENV, "ortgpu-fix --python '/opt/my app/.venv' --apply"),
        (PORTABLE, r"ortgpu-fix --python D:\portable\python_embeded\python.exe --apply"),
    ],
)
def test_the_command_has_the_environment_that_the_log_names(
    log: str, command: str, run: Run
) -> None:
    document = explained(run("explain", "-", "--json", text_in=log))

    assert document["mending"]["command"] == command
    assert [row["here"] for row in document["explanations"]] == [None]


def test_what_would_be_installed_follows_from_the_outputs_in_the_log(run: Run) -> None:
    fix_for = explained(run("explain", "-", "--json", text_in=SMI + VENV))["mending"]

    assert "nvidia-cublas-cu12 12.2.5.6" in fix_for["installs"]
    assert not [each for each in fix_for["installs"] if each.startswith("onnxruntime-gpu")]
    assert explained(run("explain", "-", "--json", text_in=VENV))["mending"]["installs"] == []


def test_where_nothing_decides_the_versions_the_question_is_asked(run: Run) -> None:
    said = run("explain", "-", "--text-only", text_in=VENV).stdout

    assert "ask:" in said
    assert "which driver and GPU" in said


@pytest.mark.parametrize(
    ("environ", "text", "told"),
    [({}, PORTABLE, "原因："), ({"LANG": "en_US.UTF-8"}, PORTABLE, "cause:")],
)
def test_a_chinese_log_is_answered_in_chinese_where_no_language_is_set(
    environ: dict[str, str], text: str, told: str, run: Run
) -> None:
    assert told in run("explain", "-", "--text-only", text_in=text, env=environ).stdout


@pytest.mark.parametrize(("gpus", "severity"), [(("8.0",), "error"), ((), "info")])
def test_a_build_without_cuda_is_wrong_where_there_is_a_gpu(
    gpus: tuple[str, ...],
    severity: str,
    machine: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "error.log"
    file.write_text("['AzureExecutionProvider', 'CPUExecutionProvider']\n")
    facts = machine("onnxruntime 1.26.0", gpus=gpus)
    __main__.main(["explain", str(file), "--facts", facts, "--json"])

    rows = json.loads(capsys.readouterr().out)["explanations"]
    assert [(row["code"], row["severity"]) for row in rows] == [("cpu-build-in-use", severity)]
