"""`ortgpu-fix run` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import documents
import pytest
from command import run_here

from support.standin_wheels import find_uv

PROGRAM = """
import onnxruntime, sys
session = onnxruntime.InferenceSession("m.onnx", providers=["CUDAExecutionProvider"])
print("out of the program"); session.run(None, {"x": [1]})
"""


def run(
    folder: Path, *words: str, program: str = PROGRAM, **environ: str
) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": str(folder / "site-packages"), "LANG": "C", **environ}
    argv = [sys.executable, "-m", "ortgpu_fix", "run", *words, "--", sys.executable, "app.py"]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_report_is_on_standard_error(tmp_path: Path, packages: Path) -> None:
    done = run(packages.parent, "--live")

    assert done.returncode == 0
    assert done.stdout == "out of the program\n"
    assert done.stderr.startswith("m.onnx: The session got the provider that it requested")
    assert f"{tmp_path / 'app.py'}:3 (sessions: 1)" in done.stderr


def test_require_gpu_turns_a_fallback_into_an_exit_code(tmp_path: Path, packages: Path) -> None:
    done = run(packages.parent, "--require-gpu", FAKE_BUILD="CPUExecutionProvider")

    assert done.returncode == 6
    assert "the installed onnxruntime does not include CUDAExecutionProvider" in done.stderr
    assert run(tmp_path, "--require-gpu").returncode == 0
    assert run(tmp_path, FAKE_BUILD="CPUExecutionProvider").returncode == 0


NATIVE = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
    printf("%d of the program\\n", isatty(2));
    fprintf(stderr, "%s", WORDS);
    return 3;
}
"""
FAILED = (
    "2026-11-28 07:31:01.12 [E:onnxruntime:Default, provider_bridge_ort.cc:2195 "
    "TryGetProviderInfo_CUDA] /onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:"
    "1778 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL"
    " : "
    "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: "
    "cannot open shared object file: No such file or directory"
)


def native(folder: Path, words: str) -> Path:
    """Compile a program that writes `words` to standard error, and ends with 3."""
    source = folder / "native.c"
    source.write_text(NATIVE)
    literal = json.dumps(words)
    subprocess.run(["gcc", f"-DWORDS={literal}", "-o", folder / "native", source], check=True)
    return folder / "native"


@pytest.mark.skipif(sys.platform == "win32", reason="compiles with gcc")
@pytest.mark.parametrize(
    ("flags", "words", "code", "codes"),
    [
        (("--require-gpu",), f"begin\n{FAILED}\nend\n", 6, ["cuda-12-libraries-missing"]),
        ((), FAILED, 3, []),
        (("--require-gpu",), "all is well é\n", 3, []),
    ],
)
def test_what_a_program_that_is_not_python_prints_is_read_where_the_gpu_is_required(
    tmp_path: Path, flags: tuple[str, ...], words: str, code: int, codes: list[str]
) -> None:
    program = native(tmp_path, words)
    argv = [sys.executable, "-m", "ortgpu_fix", "run", "--json", *flags, "--", str(program)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)

    first, last = done.stdout.decode().splitlines()
    document = json.loads(last)
    documents.check(document, "run")
    assert (done.returncode, first) == (code, "0 of the program")
    assert done.stderr.decode() == words
    assert [row["code"] for row in document["printed"]] == codes
    assert document["verdict"] == ("printed-failure" if codes else "no-python")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_what_stays_behind_is_not_waited_for_long(tmp_path: Path) -> None:
    argv = ["run", "--require-gpu", "--", "sh", "-c", "sleep 60 & echo $! > pid; exit 4"]
    began = time.monotonic()
    done = run_here(*argv, cwd=tmp_path, env=dict(os.environ))

    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert done.returncode == 4
    assert time.monotonic() - began < 30


def test_the_document_is_the_last_line_or_a_file(tmp_path: Path, packages: Path) -> None:
    first, last = run(packages.parent, "--json").stdout.splitlines()
    done = run(tmp_path, "--json", "-o", "run.json")

    assert first == "out of the program"
    documents.check(json.loads(last), "run")
    assert done.stdout == "out of the program\n"
    written = json.loads((tmp_path / "run.json").read_text())
    documents.check(written, "run")
    assert written["sessions"][0]["got"] == ["CUDAExecutionProvider"]
    assert written["commands"] == []


def test_where_the_place_is_gone_then_the_report_is_text_and_the_exit_code_the_programs(
    tmp_path: Path,
) -> None:
    (tmp_path / "out").mkdir()
    program = "import os; os.rmdir('out'); raise SystemExit(3)"
    done = run(tmp_path, "--json", "-o", "out/x", program=program)

    assert (done.returncode, done.stdout) == (3, "")
    assert "None of the observed Python processes imported onnxruntime" in done.stderr
    assert done.stderr.endswith(
        "error: `out/x` cannot be written: No such file or directory\n\nhint: Choose another path\n"
    )


def test_the_exit_code_is_the_programs_own(tmp_path: Path) -> None:
    done = run(tmp_path, program="import os; os.kill(os.getpid(), 15)")

    assert done.returncode == (15 if sys.platform == "win32" else 128 + 15)
    assert "None of the observed Python processes imported onnxruntime" in done.stderr


MEASURED = """
import onnxruntime
class Array(list):
    shape = (1, 3)
session = onnxruntime.InferenceSession("m.onnx", providers=["CUDAExecutionProvider"])
session.run(None, {"-x": Array(), "y": Array()})
onnxruntime.InferenceSession("m.onnx")
"""


def test_every_command_works_on_the_environment_that_was_seen(
    tmp_path: Path, packages: Path
) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / "m.onnx").touch()
    flags = ("--offline", "--matrix", "more.json", "--json")
    (tmp_path / "app.py").write_text(MEASURED)
    env = {**os.environ, "PYTHONPATH": str(packages), "FAKE_BUILD": "CPUExecutionProvider"}
    program = ("--", sys.executable, "app.py")
    done = run_here("run", *flags, *program, cwd=tmp_path, env=env)
    text = run_here("run", *program, cwd=tmp_path, env=env)
    run_here("run", *flags, "-o", "run.json", *program, cwd=tmp_path, env=env)

    document = json.loads(done.stdout)
    assert text.stdout == ""
    assert "The program requested the GPU, but did not get it" in text.stderr
    written = (tmp_path / "run.json").read_text()
    assert written.endswith("}\n")
    assert json.loads(written)["commands"] == document["commands"]
    given = f"--python {sys.executable} --offline --matrix more.json"
    shown = "--shape=-x=1x3 --shape y=1x3"
    assert document["commands"] == [
        f"ortgpu-fix {given}",
        f"ortgpu-fix verify {given} --bench {tmp_path / 'm.onnx'} {shown}",
    ]
    asked, silent = document["sessions"]
    assert asked["advice"][0]["text"].startswith(f"`ortgpu-fix {given}` shows")
    assert f"First: `ortgpu-fix {given} --apply`" in silent["advice"][0]["text"]


def test_python_names_whose_commands_come_first(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    code = "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'])"
    argv = [sys.executable, "-m", "ortgpu_fix", "run", "--python", str(venv)]
    done = subprocess.run(
        [*argv, "--", "python", "-c", code], capture_output=True, text=True, check=False
    )

    first, second = done.stdout.split()
    assert (Path(first).samefile(venv), second) == (True, str(venv))


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.skipif(sys.platform == "win32", reason="it ends by a signal of Unix")
def test_each_worker_of_uvicorn_is_seen(tmp_path: Path, packages: Path) -> None:
    """The real uvicorn, with two workers: each makes the session of the application."""
    (tmp_path / "service.py").write_text(
        "import onnxruntime\n"
        "session = onnxruntime.InferenceSession('m.onnx', providers=['CUDAExecutionProvider'])\n"
        "async def app(scope, receive, send): ...\n"
    )
    subprocess.run([find_uv(), "venv", "-q", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([find_uv(), "pip", "install", "-q", "--python", python, "uvicorn"], check=True)
    words = ["run", "--json", "-o", "seen.json", "--python", "venv", "--"]
    words += ["uvicorn", "service:app", "--workers", "2", "--port", "0", "--lifespan", "off"]
    with subprocess.Popen(
        [sys.executable, "-m", "ortgpu_fix", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{packages}{os.pathsep}{tmp_path}"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        started = 0
        while started < 2:  # a worker says so when it has imported the application
            started += "Started server process" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.stderr.read()

    seen = json.loads((tmp_path / "seen.json").read_text())
    assert len(seen["sessions"]) == 1
    assert (seen["sessions"][0]["count"], len(set(seen["sessions"][0]["pids"]))) == (2, 2)
    assert seen["sessions"][0]["file"] == str(tmp_path / "service.py")


def test_beside_a_venv_that_the_program_did_not_run_in_the_command_with_it_is_shown(
    tmp_path: Path,
) -> None:
    venv = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (tmp_path / "app.py").write_text("import onnxruntime")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    env.pop("VIRTUAL_ENV", None)
    done = run_here("run", "--", "python3", "app.py", cwd=tmp_path, env=env)

    assert "ortgpu-fix run --python .venv -- python3 app.py" in done.stderr
