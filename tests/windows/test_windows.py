"""What only Windows does; run by a Windows Python (`tests/e2e/test_windows.py` has one)."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.apply import before_change, staged_tree
from ortgpu_fix.apply.before_change import (
    check_files_movable,
    check_path_lengths,
    processes_using,
)
from ortgpu_fix.apply.environment_lock import hold_environment_lock
from ortgpu_fix.apply.journal import Mark
from ortgpu_fix.apply.journaled_change import append, move
from ortgpu_fix.apply.state_folder import Site, remove_tree
from ortgpu_fix.errors import Error
from ortgpu_fix.guests.machines.lock_text import read_lock_text
from ortgpu_fix.messages.shells import pasted_commands
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils.process import run
from ortgpu_fix.uv import guard
from ortgpu_fix.uv.guard import guarded_command, wait_for_engine

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")
ENGINE = "import sys, time; open(sys.argv[1], 'w').write(str(1)); time.sleep(60)"


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def wait_until(there: Path) -> None:
    end = time.monotonic() + 60
    while not there.exists() and time.monotonic() < end:
        time.sleep(0.02)


def site_of(folder: Path) -> Site:
    return Site(*[str(folder.resolve())] * 4)


def test_a_child_that_is_heard_ends_at_its_time() -> None:
    """With what it started: the Python of a venv starts another one."""
    began = time.monotonic()
    heard: list[str] = []
    code = "import time; print('one', flush=True); time.sleep(60)"

    finished = run(python(code), timeout=5, env=os.environ, hear=heard.append)

    assert (finished.timed_out, heard) == (True, ["one\n"])
    assert time.monotonic() - began < 40


@pytest.mark.parametrize("ended", ["tool", "guard", "engine and tool"])
def test_what_an_engine_starts_ends_with_the_tool_and_with_the_guard(
    tmp_path: Path, ended: str
) -> None:
    """As uv starts interpreters: one of them outlived both, and held the lock."""
    tool = (
        "import os, sys; from pathlib import Path;"
        "from ortgpu_fix.uv.guard import guarded_command;"
        "from ortgpu_fix.utils.process import run;"
        "command = guarded_command(sys.argv[2:], Path(sys.argv[1]));"
        "run(command, timeout=60, env=os.environ, lifeline=True)"
    )
    engine = (
        "import os, subprocess, sys; words = [sys.executable, '-c', sys.argv[1], sys.argv[2]];"
        "open(sys.argv[3], 'w').write(str(os.getpid())); subprocess.call(words, close_fds=False)"
    )
    lock, began, pid = tmp_path / "lock", tmp_path / "began", tmp_path / "pid"
    words = python(tool, lock, *python(engine, ENGINE, began, pid))
    with subprocess.Popen(words) as process:
        wait_until(began)
        if ended != "guard":
            process.kill()
        os.kill(int((lock if ended == "guard" else pid).read_text()), signal.SIGTERM)
    start = time.monotonic()
    wait_for_engine(lock)

    assert began.exists()
    assert time.monotonic() - start < 2


def test_who_holds_a_planted_lock_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number in the file may be somebody else's by now; a virus scanner holds files, too."""
    monkeypatch.setattr(guard, "PATIENCE", 0.2)
    lock = tmp_path / "lock"
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    with subprocess.Popen(python(ENGINE, tmp_path / "began")) as bystander:
        lock.write_text(str(bystander.pid))
        held = guard._locked(kernel, str(lock))  # type: ignore[attr-defined]
        with pytest.raises(TimeoutError):
            wait_for_engine(lock)
        assert bystander.poll() is None
        bystander.kill()
    kernel.CloseHandle(ctypes.c_void_p(held))
    wait_for_engine(lock)


def test_the_exit_code_and_the_words_of_an_engine(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = run(
        guarded_command(python(code, "a b", '-x"q'), tmp_path / "lock"), timeout=60, env=os.environ
    )

    assert (done.returncode, done.stdout.strip()) == (7, "['a b', '-x\"q']")


def test_what_a_child_leaves_behind_holds_nothing_up(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]])"
    )
    start = time.monotonic()
    done = run(python(code, ENGINE, tmp_path / "began"), timeout=50, env=os.environ)

    assert (done.returncode, done.timed_out) == (0, False)
    assert time.monotonic() - start < 40


def test_what_watches_its_starter_lets_others_ask_about_standard_input(tmp_path: Path) -> None:
    """A library's C runtime does when it is loaded: `verify` hung there, with the lock held."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import os, sys, time; from pathlib import Path;"
        "from ortgpu_fix.verify.children import common;"
        "common.begin(Path(sys.argv[1]), lifeline=True); time.sleep(1);"
        "os.fstat(0); print(1, flush=True); time.sleep(60)"
    )
    words = python(code, scratch)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        timer = threading.Timer(20, child.kill)
        timer.start()
        assert child.stdout.readline().strip() == b"1"
        timer.cancel()
        child.stdin.close()

        assert child.wait(20) == 1
    assert not scratch.exists()


def test_the_holder_of_the_lock_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; from ortgpu_fix.apply.environment_lock import hold_environment_lock as hold;"
        "from ortgpu_fix.apply.state_folder import Site; site = Site(*[sys.argv[1]] * 4)\n"
        "with hold(site): print(1, flush=True); sys.stdin.read()"
    )
    words = python(code, site_of(tmp_path).purelib)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Error) as caught, hold_environment_lock(site_of(tmp_path)):
            pass
        file = tmp_path / ".ortgpu-fix" / "lock"
        assert file.stat().st_size < 1000
        assert caught.value.values["pid"] == json.loads(file.read_text())["pid"]
        other.communicate()
    with hold_environment_lock(site_of(tmp_path)):
        pass

    assert not (tmp_path / ".ortgpu-fix").exists()


def test_a_journal_is_the_same_everywhere(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"")
    append(tmp_path, Mark(step="undo"))

    assert (tmp_path / "journal").read_bytes() == b'\n{"step": "undo"}\n'


def test_read_only_files_move_and_go(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "x.dll"
    file.parent.mkdir()
    file.write_bytes(b"x")
    file.chmod(stat.S_IREAD)
    move(str(file), str(tmp_path / "folder" / "y.dll"))

    assert remove_tree(file.parent) == 0
    assert not file.parent.exists()


def test_a_dll_in_use_is_named_with_its_process_and_can_be_moved(tmp_path: Path) -> None:
    dll = tmp_path / "some_library.dll"
    dll.write_bytes(Path(os.environ["SYSTEMROOT"], "System32", "version.dll").read_bytes())
    code = "import ctypes, sys; ctypes.WinDLL(sys.argv[1]); print(1, flush=True); sys.stdin.read()"
    words = python(code, dll)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        [found] = processes_using([str(dll).upper()])
        check_files_movable([str(dll)])
        move(str(dll), str(tmp_path / "aside.dll"))
        child.communicate()

    assert found.startswith("python.exe (")
    assert processes_using([str(dll)]) == ()


def test_an_open_file_cannot_be_moved(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("")
    with file.open(), pytest.raises(Error) as caught:
        check_files_movable([str(file)])

    assert caught.value.code == "files-in-use"


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("C:\\" + "x" * 240 + "\\" + "y" * 15, False),
        ("C:\\" + "x" * 240 + "\\" + "y" * 16, True),
        ("C:\\" + "x" * 244 + "\\y", False),
        ("C:\\" + "x" * 245 + "\\y", True),
    ],
)
def test_a_path_that_windows_does_not_allow(
    monkeypatch: pytest.MonkeyPatch, path: str, *, refused: bool
) -> None:
    monkeypatch.setattr(before_change, "_long_paths_enabled", lambda: False)
    if refused:
        with pytest.raises(Error) as caught:
            check_path_lengths(["C:\\x", path])
        assert (caught.value.code, caught.value.values["path"]) == ("path-too-long", path)
    else:
        check_path_lengths([path])
    monkeypatch.setattr(before_change, "_long_paths_enabled", lambda: True)
    check_path_lengths([path])


def test_staged_files_may_have_longer_paths(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("x")

    assert Path(staged_tree.long_path(str(file))).read_text() == "x"
    assert staged_tree.long_path("\\\\server\\share\\x") == "\\\\?\\UNC\\server\\share\\x"


def test_a_lock_that_is_not_there_is_no_commit() -> None:
    with pytest.raises(Error) as caught:
        read_lock_text("C:\\gone.lock")

    assert caught.value.values["cause"] == "No such file or directory"


SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"
TYPED = (
    ("--ort", "<1.26", "--apply"),
    ("--ort", ">=1.19,!=1.20", "--cuda", "12"),
    ("--python", "C:\\a b\\", "--facts", "Z:\\R&D (x86)\\it's, a^b; @c!.json"),
    ("--python", "C:\\.venv", "--shape", "x=1x3x640x640", "-V:3.12", ""),
)
ONLY_CMD = (("--python", "C:\\$HOME\\`a", "--ort", "~=1.26"), ("--python", "C:\\R&D", '"100% (a'))


@pytest.mark.parametrize("words", [*TYPED, *ONLY_CMD])
@pytest.mark.parametrize("way", ["batch", "prompt"])
def test_what_is_told_for_cmd_arrives_there(
    words: tuple[str, ...], way: str, tmp_path: Path
) -> None:
    """In a batch file `%` is written twice; a text that both shells take has none.

    Wine's cmd knows no code page in a batch file: a path in Chinese is not tried here. Nor is what
    is told for `%PATH%`, `^%PATH^%`. Microsoft's page of `set` says that `^` escapes `< > | & ^`,
    and nothing of `%` (https://learn.microsoft.com/windows-server/administration/windows-commands/set_1),
    nor in which order cmd reads a line. Who tried it found that variables come first, at the prompt
    those alone that there are (https://stackoverflow.com/a/4095133): there is no `PATH^`, and then
    `^` goes. Wine's takes `^` away first, and finds PATH. `scripts/windows_check.py` tries it.
    """
    (tmp_path / "show.py").write_text(SHOW)
    (shell, text), *others = pasted_commands(("python", "show.py", *words), "windows")
    environ = os.environ | {"PATH": str(Path(sys.executable).parent) + ";" + os.environ["PATH"]}
    line = text
    if way == "batch":
        (tmp_path / "told.bat").write_text("@" + text.replace("%", "%%") + "\n")
        line = "told.bat"
    done = subprocess.run(  # noqa: S602 - it is the shell that is asked
        line, shell=True, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, check=True
    )

    assert (shell, len(others)) == ((None, 0) if words in TYPED else ("cmd", 1))
    assert json.loads(done.stdout) == list(words)
    assert [file.name for file in tmp_path.iterdir() if file.suffix not in {".py", ".bat"}] == []


PRESS = """
import ctypes, sys, time
kernel = ctypes.WinDLL("kernel32")
kernel.FreeConsole(), kernel.AttachConsole(int(sys.argv[1])), kernel.SetConsoleCtrlHandler(None, 1)
sys.exit(not kernel.GenerateConsoleCtrlEvent(0, 0))
"""


def test_ctrl_c_ends_a_measured_model(tmp_path: Path) -> None:
    """In a console of its own, as in a terminal; the child hears it, too."""
    code = (
        "import os, sys; from ortgpu_fix.utils.process import run;"
        "from ortgpu_fix.utils.signals import signals_as_interrupt as interrupts\n"
        "try:\n with interrupts(): run(sys.argv[1:], timeout=60, env=os.environ, hear=print)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)"
    )
    words = python(code, *python(ENGINE, tmp_path / "began"))
    hidden = subprocess.CREATE_NO_WINDOW  # type: ignore[attr-defined]
    with subprocess.Popen(words, stdout=subprocess.PIPE, creationflags=hidden) as tool:
        wait_until(tmp_path / "began")
        start = time.monotonic()
        subprocess.run(python(PRESS, tool.pid), check=True)
        said = tool.communicate(timeout=60)[0]

    assert said.strip() == b"interrupted"
    assert time.monotonic() - start < 20


BASE = Path(sys.base_prefix)


@pytest.fixture
def registered() -> Iterator[Callable[..., None]]:
    """Register the base Python in the registry as an installer does (PEP 514)."""
    winreg: Any = importlib.import_module("winreg")
    core = "Software\\Python\\PythonCore\\3.99"
    user = winreg.HKEY_CURRENT_USER

    def register(**values: int) -> None:
        with winreg.CreateKey(user, core) as key:
            for name, value in values.items():
                winreg.SetValueEx(key, name, 0, winreg.REG_DWORD, value)
        winreg.SetValue(user, f"{core}\\InstallPath", winreg.REG_SZ, f"{BASE}\\".upper())

    yield register
    winreg.DeleteKey(user, f"{core}\\InstallPath")
    winreg.DeleteKey(user, core)


def told(python: Path | str) -> tuple[str, bool, str | None]:
    target = target_of(str(python), environ=os.environ, cwd=Path.cwd(), runner=run)
    return target.kind, target.externally_managed, target.managed_by


def test_a_python_that_programs_share_is_told(registered: Callable[..., None]) -> None:
    marked = (BASE / "Lib" / "EXTERNALLY-MANAGED").is_file()
    assert told(BASE) == ("system", marked, None)
    registered()
    assert told(BASE) == ("system", True, "python-org-user")
    assert told(BASE / "python") == ("system", True, "python-org-user")
    registered(ManagedByPyManager=1)
    assert told(BASE / "python.exe") == ("system", True, "pymanager")
    assert told(sys.executable) == ("venv", False, None)


def test_an_embeddable_python_is_free(tmp_path: Path) -> None:
    for file in (BASE / "python.exe", *BASE.glob("*.dll")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    (tmp_path / "Lib" / "site-packages").mkdir(parents=True)
    lines = f"{BASE / 'Lib'}\n{BASE / 'DLLs'}\n.\nimport site\n"
    (tmp_path / f"python{version}._pth").write_text(lines)

    assert told(tmp_path) == ("system", False, "embeddable")


@pytest.mark.parametrize(
    ("python", "code"),
    [
        ("Q:\\", "python-not-found"),
        ("C:\\", "python-folder-empty"),
        ("nul", "python-not-found"),
        ("C:\\nul", "python-not-found"),
        ("py:3.11", "python-not-launched"),
        ("-V:3.12", "python-not-launched"),
    ],
)
def test_what_is_no_python_is_told_in_a_sentence(python: str, code: str) -> None:
    with pytest.raises(Error, match=code):
        told(python)


@pytest.mark.parametrize("dlls", [("cublas64_12.dll", "torch_cpu.dll"), ()])
def test_the_dlls_in_torchs_own_directory_are_seen(tmp_path: Path, dlls: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    site = tmp_path / "Lib" / "site-packages"
    metadata = site / "torch-2.8.0+cu126.dist-info" / "METADATA"
    for path in (metadata, *(site / "torch" / "lib" / name for name in (*dlls, "asmjit.lib"))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+cu126\n")
    found = target_of(str(tmp_path), environ=os.environ, cwd=Path.cwd(), runner=run).find("torch")

    assert found is not None
    assert (found.libraries, found.missing) == (tuple(f"torch/lib/{row}" for row in dlls), not dlls)
