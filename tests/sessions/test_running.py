"""`ortgpu-fix run --pid`: what a process has loaded, seen from outside; the driver is simulated."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import documents
import drivers
import pytest
from command import run_here

from ortgpu_fix.cli.commands import running as command
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.running import (
    GpuMemory,
    LoadedFile,
    RunningProcess,
    judge_running,
    loaded_files,
)
from ortgpu_fix.probe import running as probe
from ortgpu_fix.probe.running import look_at_process
from ortgpu_fix.utils.mapped_files import mapped_files, process_ids
from ortgpu_fix.utils.process import Finished

WINDOWS = sys.platform == "win32"
of_linux = pytest.mark.skipif(WINDOWS, reason="/proc")
SITE = "venv/lib/python3.11/site-packages"
CAPI = f"{SITE}/onnxruntime/capi"
STATE = f"{CAPI}/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so"
CUDA = f"{CAPI}/libonnxruntime_providers_cuda.so"
CUDNN = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
TOLD = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("NVIDIA_DRIVER_CAPABILITIES", "CUDA_MODULE_LOADING", "CUDA_PATH", "VIRTUAL_ENV"),
    *("ORTGPU_FIX_AUTOLOAD", "ORTGPU_FIX_REQUIRE", "ORTGPU_FIX_PROVIDERS", "ORTGPU_FIX_NOTICE"),
)
LOADING = """
import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path)
print("ready", flush=True)
sys.stdin.read()
"""


class Service:
    """A process that has loaded empty libraries with the names of the real ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
        self.processes: list[subprocess.Popen[str]] = []

    def library(self, path: str) -> str:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if WINDOWS:  # any DLL will do; one in use cannot be written
            if not file.exists():
                shutil.copy(Path(sys.base_prefix, "vcruntime140.dll"), file)
            return str(file)
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", file], check=True)
        return str(file)

    def start(self, *paths: str, **environ: str) -> int:
        libraries = [self.library(path) for path in paths]
        process = subprocess.Popen(
            # The program of a venv of Windows is another process, which starts this one.
            [getattr(sys, "_base_executable", sys.executable), "-c", LOADING, *libraries],
            env=self.environ | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid

    def look(self, pid: int, *words: str, env: dict[str, str] | None = None) -> Any:
        argv = ("run", "--pid", str(pid), *words)
        return run_here(*argv, cwd=self.folder, env=self.environ | (env or {}))

    def document(self, pid: int, env: dict[str, str] | None = None) -> Any:
        found = json.loads(self.look(pid, "--json", env=env).stdout)
        documents.check(found, "process")
        return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    if not WINDOWS and shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    made = Service(tmp_path)
    yield made
    for process in made.processes:
        process.communicate()


@pytest.mark.skipif(not WINDOWS, reason="DLLs")
def test_the_modules_of_a_process_of_windows(service: Service) -> None:
    capi = "venv/Lib/site-packages/onnxruntime/capi"
    names = (f"{capi}/onnxruntime_pybind11_state.pyd", f"{capi}/onnxruntime_providers_cuda.dll")
    pid = service.start(*names, "cudnn64_9.dll")

    found = service.document(pid)

    assert (found["verdict"], found["environment"], found["devices"]) == ("not-known", None, None)
    assert Path(found["executable"]).name == "python.exe"
    assert [row["name"] for row in found["providers"]] == ["onnxruntime_providers_cuda.dll"]
    assert [row["name"] for row in found["libraries"]][-1:] == ["cudnn64_9.dll"]
    assert Path(found["onnxruntime"][0]["path"]).samefile(service.folder / names[0])
    (service.folder / names[1]).rename(service.folder / "away.dll")
    cpu = service.document(service.start(names[0]))
    assert cpu["verdict"] == "cpu-build"
    assert cpu["commands"][0].startswith("ortgpu-fix --python ")
    assert service.look(999999).returncode == 2


@of_linux
def test_a_process_on_the_gpu(service: Service, simulate: Callable[..., dict[str, str]]) -> None:
    pid = service.start(STATE, CUDA, CUDNN, LD_LIBRARY_PATH="/opt/lib", SECRET="x")  # noqa: S106
    met = simulate(
        release="580.95.05", cuda=13000, cards=[drivers.A100], holder=f"0|{pid}|{900 << 20}"
    )

    found = service.document(pid, met)

    assert found["verdict"] == "on-gpu"
    assert found["command"].split()[1] == "-c"
    assert Path(found["executable"]).samefile(sys.executable)
    assert found["gpus"] == [{"gpu": 0, "mib": 900}]
    assert [row["path"] for row in found["providers"]] == [str(service.folder / CUDA)]
    assert [row["name"] for row in found["libraries"]] == ["libcudnn.so.9"]
    assert found["environment"] == {"LD_LIBRARY_PATH": "/opt/lib"}
    assert (found["twice"], found["commands"]) == ([], [])
    text = service.look(pid, env=met)
    assert (text.returncode, text.stderr) == (0, "")
    assert "It uses the GPU" in text.stdout
    assert "GPU 0: 900 MiB" in text.stdout
    assert service.look(pid, "--require-gpu", env=met).returncode == 0
    other = {**met, "ORTGPU_STUB": str(service.folder / "other")}
    stub = Path(met["ORTGPU_STUB"]).read_text().replace(f"|{pid}|", "|1|")
    Path(other["ORTGPU_STUB"]).write_text(stub)
    assert service.document(pid, other)["gpus"] == []
    assert service.document(pid, other)["verdict"] == "not-on-gpu"
    assert service.look(pid, "--require-gpu", env=other).returncode == 6


@of_linux
def test_a_build_for_the_cpu_names_its_environment(service: Service) -> None:
    pid = service.start(STATE)

    found = service.document(pid)
    text = service.look(pid)

    assert (found["verdict"], found["gpus"], found["devices"]) == ("cpu-build", None, [])
    assert found["commands"] == [f"ortgpu-fix --python {service.folder / 'venv'}"]
    assert text.stdout.rstrip().endswith(found["commands"][0])


@of_linux
def test_a_provider_that_nobody_asked_for(service: Service) -> None:
    service.library(CUDA)

    assert service.document(service.start(STATE))["verdict"] == "not-loaded"


@of_linux
def test_what_is_loaded_twice_or_was_replaced_is_told(service: Service) -> None:
    pid = service.start(STATE, CUDNN, "other/libcudnn.so.9")
    (service.folder / CUDNN).unlink()

    found = service.document(pid)
    text = service.look(pid).stdout

    assert found["twice"] == ["libcudnn.so.9"]
    assert [row["replaced"] for row in found["libraries"]] == [False, True]
    assert "libcudnn.so.9: loaded from several places" in text
    assert f"{service.folder / CUDNN} (replaced since it began" in text


@of_linux
def test_a_process_without_onnxruntime(service: Service) -> None:
    found = service.document(service.start(CUDNN))

    assert (found["verdict"], found["commands"]) == ("no-onnxruntime", [])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--pid", "999999999"], 2, "There is no process 999999999"),
        (["--pid", "0"], 2, "`0`"),
        (["--pid", "-1"], 2, ""),
        (["--pid", "12x"], 2, "`12x`"),
        (["--pid", "1", "--", "true"], 2, "--pid PID"),
        (["--pid", "1", "--live"], 2, "--pid, --live"),
        (["--pid", "1", "--report", "x.html"], 2, ""),
    ],
)
def test_what_is_no_process(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    done = run_here("run", *words, cwd=tmp_path, env=os.environ | {"LANG": "C"})

    assert (done.returncode, said in done.stderr) == (code, True)


@of_linux
def test_a_program_is_started_where_no_process_is_named(tmp_path: Path) -> None:
    words = ("run", "--", sys.executable, "-c", "raise SystemExit(3)")

    assert run_here(*words, cwd=tmp_path, env=dict(os.environ)).returncode == 3


def test_another_command_takes_no_process(tmp_path: Path) -> None:
    for name in ("plan", "verify", "facts"):
        done = run_here(name, "--pid", "1", cwd=tmp_path, env=os.environ | {"LANG": "C"})
        assert (done.returncode, "`--pid`" in done.stderr) == (2, True)


def test_the_document_may_go_to_a_file(service: Service) -> None:
    pid = service.start(STATE)

    assert service.look(pid, "--json", "-o", "seen.json").stdout == ""
    assert json.loads((service.folder / "seen.json").read_text())["pid"] == pid


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_another_users_process_is_said_to_be_so(service: Service) -> None:
    pid = service.start(STATE)
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            look_at_process(pid, runner=nobody_asks, environ={})
        except Error as error:
            os._exit(17 if error.code == "process-unreadable" else 1)
        os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


@pytest.mark.parametrize(
    ("failure", "why"),
    [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError(7), "OSError")],
)
def test_what_cannot_be_read_is_told_with_what_the_system_says(
    monkeypatch: pytest.MonkeyPatch, failure: OSError, why: str
) -> None:
    """Root may be refused too, of its own processes."""

    def refused(*_: object) -> None:
        raise failure

    monkeypatch.setattr(probe, "mapped_files", refused)
    with pytest.raises(Error) as caught:
        look_at_process(1, runner=nobody_asks, environ={})

    assert (caught.value.code, caught.value.values) == (
        "process-unreadable",
        {"pid": 1, "cause": why},
    )


def nobody_asks(*_: object, **__: object) -> Finished:
    """Stand for a query of the driver that says nothing."""
    return Finished((), 0, "", "")


@of_linux
@pytest.mark.parametrize(
    ("device", "verdict"),
    [
        ("/dev/nvidia-uvm", "on-gpu"),
        ("/dev/dxg", "on-gpu"),
        ("/dev/nvhost-ctrl-gpu", "on-gpu"),
        ("/dev/nvgpu/igpu0/ctrl", "on-gpu"),
        ("/dev/nvidia0", "not-on-gpu"),
        ("/dev/nvidia-uvm-tools", "not-on-gpu"),
    ],
)
def test_the_open_devices_tell_where_nvml_does_not(
    tmp_path: Path, device: str, verdict: str
) -> None:
    """A process that only asks NVML for the GPU's name opens /dev/nvidia0."""
    home = tmp_path / "42"
    (home / "fd").mkdir(parents=True)
    (home / "fd" / "3").symlink_to(device)
    (home / "fd" / "4").symlink_to("/dev/null")
    (home / "maps").write_text(
        "".join(f"7f-80 r-xp 0 08:01 4  /{name}\n" for name in (STATE, CUDA))
    )

    seen = look_at_process(42, runner=nobody_asks, environ={}, proc=tmp_path)

    assert (seen.devices, judge_running(seen)) == ((device,), verdict)
    assert (seen.environment, seen.command, seen.can_cuda) == (None, "", None)
    assert [file.path for file in seen.files] == [f"/{CUDA}", f"/{STATE}"]


@of_linux
@pytest.mark.parametrize(
    ("said", "gpus"),
    [
        ('{"library": "nvml", "held": [{"pid": 42, "gpu": 3, "memory": 3145728}]}', ((3, 3),)),
        ('{"library": "nvml", "held": [{"pid": 42, "memory": null}]}', ((0, None),)),
        ('{"library": "nvml", "held": [{"pid": 43, "gpu": 1, "memory": 1}]}', ()),
        ('{"library": "nvml", "held": []}\n{"library": "nvml"}', ()),
        ('{"library": "nvml"}', None),
        ("", None),
    ],
)
def test_what_nvml_says_of_the_process(
    tmp_path: Path, said: str, gpus: tuple[tuple[int, int | None], ...] | None
) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "maps").write_text("")
    asked: list[Any] = []

    def asks(argv: Any, **_: object) -> Finished:
        asked.append(argv)
        return Finished((), 0, said, "")

    seen = look_at_process(42, runner=asks, environ={}, proc=tmp_path)

    assert seen.gpus == gpus
    assert asked[0][-2:] == ["nvml", "held"]


@of_linux
def test_the_variables_that_decide_are_told_and_no_others(tmp_path: Path) -> None:
    home = tmp_path / "42"
    home.mkdir()
    (home / "maps").write_text(
        "7f-80 r-xp 0 08:01 4  /usr/lib/libcudnn.so.9\n\n7f-80 rw-p 0 0 0 [heap]\n"
    )
    (home / "cmdline").write_bytes(b"python\0app \xff.py\0")
    told = dict.fromkeys(TOLD, "1")
    rows = {
        "TOKEN": "x",
        **told,
        "LD_LIBRARY_PATH": "/a=b",
        "CUDA_VISIBLE_DEVICES": "",
        "HOME": "/",
    }
    (home / "environ").write_text("".join(f"{name}={text}\0" for name, text in rows.items()))
    (home / "exe").symlink_to("/usr/bin/python3.11")

    seen = look_at_process(42, runner=nobody_asks, environ={}, proc=tmp_path)

    assert seen.environment == {**told, "LD_LIBRARY_PATH": "/a=b", "CUDA_VISIBLE_DEVICES": ""}
    assert (seen.command, seen.executable) == ("python app \ufffd.py", "/usr/bin/python3.11")
    assert (seen.devices, len(seen.files)) == (None, 1)


@of_linux
@pytest.mark.parametrize(
    ("beside", "info", "can"),
    [
        ("libonnxruntime_providers_cuda.so", "", True),
        ("other.so", "", False),
        ("libonnxruntime_providers_cuda.so", "package_name = 'onnxruntime-gpu'\n", True),
        ("libonnxruntime_providers_cuda.so", "x = 1\npackage_name = 'onnxruntime'\n", False),
        (
            "libonnxruntime_providers_cuda.so",
            "package_name = 'onnxruntime'\ncuda_version = '13.0'",
            True,
        ),
        ("other.so", "package_name = 'onnxruntime-gpu'\n", False),
    ],
)
def test_the_build_is_looked_at_in_the_container_of_the_process(
    tmp_path: Path, beside: str, info: str, *, can: bool
) -> None:
    """The build for CPUs leaves the provider where it was installed over the build that has it."""
    home = tmp_path / "42"
    folder = home / "root" / CAPI
    folder.mkdir(parents=True)
    (folder / beside).touch()
    if info:
        (folder / "build_and_package_info.py").write_text(info)
    (home / "maps").write_text(f"7f-80 r-xp 0 08:01 4  /{STATE}\n")

    seen = look_at_process(42, runner=nobody_asks, environ={}, proc=tmp_path)

    assert seen.can_cuda is can


def running(**changes: Any) -> RunningProcess:
    files = loaded_files((f"/{STATE}", f"/{CUDA}"))
    process = RunningProcess(1, "app", "/usr/bin/python3.11", files, True, {}, (), ())  # noqa: FBT003
    return process._replace(**changes)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "not-on-gpu"),
        ({"devices": None}, "not-on-gpu"),
        ({"gpus": None}, "not-on-gpu"),
        ({"devices": None, "gpus": None}, "not-known"),
        ({"devices": ("/dev/nvidia-uvm",), "gpus": None}, "on-gpu"),
        ({"devices": None, "gpus": (GpuMemory(1, None),)}, "on-gpu"),
        ({"files": ()}, "no-onnxruntime"),
        ({"files": loaded_files((f"/{CUDA}",))}, "no-onnxruntime"),
        ({"files": loaded_files((f"/{STATE}",))}, "not-loaded"),
        ({"files": loaded_files((f"/{STATE}",)), "can_cuda": None}, "not-loaded"),
        ({"files": loaded_files((f"/{STATE}",)), "can_cuda": False}, "cpu-build"),
        ({"can_cuda": False}, "not-on-gpu"),
    ],
)
def test_what_is_seen_decides(changes: dict[str, Any], verdict: str) -> None:
    assert judge_running(running(**changes)) == verdict


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/app/libonnxruntime.so.1.26.0", "onnxruntime"),
        ("/app/libonnxruntime.so", "onnxruntime"),
        (r"C:\app\onnxruntime.dll", "onnxruntime"),
        (r"C:\v\Lib\site-packages\onnxruntime\capi\onnxruntime_pybind11_state.pyd", "onnxruntime"),
        (r"C:\app\onnxruntime_providers_cuda.dll", "providers"),
        ("/app/libonnxruntime_providers_tensorrt.so", "providers"),
        ("/app/libonnxruntime_providers_shared.so", ""),
        ("/usr/lib/libcublasLt.so.12", "cuda_libraries"),
        ("/usr/lib/libc.so.6", ""),
        ("/app/libonnxruntime.so.txt", ""),
    ],
)
def test_the_names_of_files_tell_what_they_are(path: str, kind: str) -> None:
    process = running(files=loaded_files((path,)))
    rows = {name: getattr(process, name) for name in ("onnxruntime", "providers", "cuda_libraries")}

    assert {name for name, found in rows.items() if found} == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        (f"/{STATE}", "/venv"),
        (
            "/opt/conda/lib64/python3.13t/site-packages/onnxruntime/capi/libonnxruntime.so",
            "/opt/conda",
        ),
        (r"C:\v\Lib\site-packages\onnxruntime\capi\onnxruntime.dll", r"C:\v"),
        ("/app/libonnxruntime.so", ""),
    ],
)
def test_the_environment_is_that_of_onnxruntime(path: str, prefix: str) -> None:
    others = ("/app/libonnxruntime.so", path)

    assert running(files=loaded_files(others)).prefix == prefix


@pytest.mark.parametrize(
    ("changes", "verdict", "code", "next_"),
    [
        ({}, "not-on-gpu", 6, ["ortgpu-fix --python /venv"]),
        ({"gpus": (GpuMemory(0, 1),)}, "on-gpu", 0, []),
        ({"devices": None, "gpus": None}, "not-known", 6, []),
        ({"files": loaded_files((f"/{STATE}",))}, "not-loaded", 6, ["ortgpu-fix --python /venv"]),
        ({"files": loaded_files(("/app/libonnxruntime.so",))}, "not-loaded", 6, []),
        ({"files": ()}, "no-onnxruntime", 6, []),
    ],
)
def test_the_verdict_gives_the_exit_code_and_what_to_type_next(  # noqa: PLR0917
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    verdict: str,
    code: int,
    next_: list[str],
) -> None:
    monkeypatch.setattr(command, "look_at_process", lambda *_, **__: running(**changes))
    env = os.environ | {"LANG": "C"}

    done = run_here("run", "--pid", "1", "--json", "--require-gpu", cwd=tmp_path, env=env)

    found = json.loads(done.stdout)
    assert (found["verdict"], done.returncode, found["commands"]) == (verdict, code, next_)
    assert run_here("run", "--pid", "1", cwd=tmp_path, env=env).returncode == 0


@of_linux
def test_a_process_without_words_is_called_by_its_program(tmp_path: Path) -> None:
    home = tmp_path / "42"
    home.mkdir()
    (home / "maps").write_text("")
    (home / "cmdline").write_text("")
    (home / "exe").symlink_to("/usr/bin/python3.11")

    seen = look_at_process(42, runner=nobody_asks, environ={}, proc=tmp_path)

    assert (seen.command, seen.executable) == ("/usr/bin/python3.11", "/usr/bin/python3.11")


@of_linux
def test_where_nobody_can_ask_nvml_it_does_not_say(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "maps").write_text("")

    def absent(*_: object, **__: object) -> Finished:
        raise OSError

    assert look_at_process(42, runner=absent, environ={}, proc=tmp_path).gpus is None


def test_the_text_is_in_the_users_language_and_the_document_in_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "look_at_process", lambda *_, **__: running())
    env = os.environ | {"LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.UTF-8"}

    text = run_here("run", "--pid", "1", cwd=tmp_path, env=env).stdout
    document = run_here("run", "--pid", "1", "--json", cwd=tmp_path, env=env).stdout

    assert "已加载" in text
    assert json.loads(document)["text"].startswith("The CUDA provider is loaded")


def test_who_may_not_look_is_told_at_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int, _: Path) -> tuple[str, ...]:
        raise PermissionError(pid)

    monkeypatch.setattr(probe, "mapped_files", refused)
    done = run_here("run", "--pid", "77", cwd=tmp_path, env=os.environ | {"LANG": "C"})

    assert (done.returncode, "What process 77 has loaded" in done.stderr) == (7, True)


@of_linux
def test_the_mapped_files_are_files_each_once(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    rows = ("/a/b c.so", "[heap]", "", "/a/b c.so", "anon_inode:[perf]", "/d (deleted)")
    (tmp_path / "42" / "maps").write_text("".join(f"7f-80 r-xp 0 08:01 4  {row}\n" for row in rows))

    assert mapped_files(42, tmp_path) == ("/a/b c.so", "/d (deleted)")
    with pytest.raises(ProcessLookupError):
        mapped_files(43, tmp_path)
    assert list(process_ids(tmp_path)) == [42]


def test_what_is_loaded_from_two_places_is_each_kind_of_library() -> None:
    for name in (Path(STATE).name, Path(CUDA).name, "libcudnn.so.9"):
        files = loaded_files((f"/a/{name}", f"/b/{name}", "/c/libcublas.so.12"))
        assert running(files=files).twice == (name,)


def test_other_files_do_not_concern_us() -> None:
    assert loaded_files(("/usr/lib/libc.so.6", "/usr/bin/python3.11", "/a/libcudnn.so.txt")) == ()


def test_a_deleted_file_keeps_its_name() -> None:
    assert loaded_files((f"/{CUDNN} (deleted)",)) == (
        LoadedFile("libcudnn.so.9", f"/{CUDNN}", replaced=True),
    )
