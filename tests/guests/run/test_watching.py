"""Programs under the watch: what is told of their sessions, and that they notice nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.guests.run import runner
from ortgpu_fix.guests.run.events import Asked, InferenceSession, ProgramSeen
from support.pythons import find_python

Run = Callable[..., tuple[int, ProgramSeen]]
KILLED = 9 if sys.platform == "win32" else -signal.SIGKILL
VERSIONS = ("3.8", "3.13")
MAKE = """
import onnxruntime
session = onnxruntime.InferenceSession("model.onnx", providers=[
    ("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"])
"""
STARTING = """
import multiprocessing, os, subprocess, sys
code = "import onnxruntime; onnxruntime.InferenceSession(str())"
def work():
    import onnxruntime
    session = onnxruntime.InferenceSession("m")
    for _ in range(3): session.run(None, {"x": []})
def start(kind):
    each = multiprocessing.get_context(kind).Process(target=work)
    each.start(); each.join()
if __name__ == "__main__":
    work()
"""
MEANWHILE = """
import onnxruntime, os, sys
os.environ["USUAL"] = str(os.fstat(2).st_ino)
argv = [sys.executable, "-c", "import os; print(os.environ['USUAL'] == str(os.fstat(2).st_ino))"]
class Meanwhile(onnxruntime.InferenceSession):
    def _create_inference_session(self, *given):
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_told_with_who_made_it_on_every_python(watched: Run, version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    status, seen = watched(MAKE + "session.run(None, {'x': []})", python=str(python))

    [session] = seen.sessions
    assert status == 0
    assert session.asked == (
        Asked("CUDAExecutionProvider", {"device_id": "0"}),
        Asked("CPUExecutionProvider", {}),
    )
    assert session.got == ("CUDAExecutionProvider", "CPUExecutionProvider")
    assert session.options == {"CUDAExecutionProvider": {"o": "1"}}
    assert session.available == ("CUDAExecutionProvider", "CPUExecutionProvider")
    assert session.model is not None
    assert Path(session.model).name == "model.onnx"
    assert session.graph == "graph"
    assert [(Path(each.file).name, each.line) for each in session.frames] == [("app.py", 3)]
    assert session.runs.times == 1
    assert seen.libraries[0].version == "1.26.0"
    assert [each.python.rpartition(".")[0] for each in seen.processes] == [version]


def test_what_passes_a_call_on_is_not_who_made_the_session(watched: Run, packages: Path) -> None:
    """Our own loader does, where another build came in the place of the set's."""
    loader = packages / "_ortgpu_fix_libraries"
    loader.mkdir()
    (loader / "lost.py").write_text(
        "def wrap(owner, name):\n"
        "    original = getattr(owner, name)\n"
        "    setattr(owner, name, lambda *given, **named: original(*given, **named))\n"
    )
    _, seen = watched(
        "import onnxruntime\nfrom _ortgpu_fix_libraries import lost\n"
        "lost.wrap(onnxruntime.InferenceSession, '__init__')\n"
        "onnxruntime.InferenceSession('m')\n"
    )

    [session] = seen.sessions
    assert [(Path(each.file).name, each.line) for each in session.frames] == [("app.py", 4)]


def test_no_provider_named_differs_from_the_cpu_named(watched: Run) -> None:
    _, seen = watched("""
        from onnxruntime import InferenceSession
        InferenceSession(b"model")
        InferenceSession(b"model", None, ["CPUExecutionProvider"])
        InferenceSession("m", providers=["CUDAExecutionProvider"], provider_options=[{"a": 1}])
    """)

    assert [each.asked for each in seen.sessions] == [
        None,
        (Asked("CPUExecutionProvider", {}),),
        (Asked("CUDAExecutionProvider", {"a": "1"}),),
    ]
    assert [each.size for each in seen.sessions] == [5, 5, None]


def test_what_the_options_of_a_session_hold_is_what_it_asked_for(watched: Run) -> None:
    _, seen = watched("""
        from types import SimpleNamespace as Value
        from onnxruntime import InferenceSession, SessionOptions
        def made(*providers):
            InferenceSession("m", options, *providers)
        options = SessionOptions(); made()
        options.add_provider("CUDAExecutionProvider", {"device_id": "0"}); made()
        options.add_provider_for_devices([Value(ep_name="Another")], {}); made()
        options.add_provider("Third", {}); made()
        made([]); made(["CPUExecutionProvider"])
        options.set_provider_selection_policy(Value(name="PREFER_GPU")); made()
        options = SessionOptions(); options.by_a_way_that_nobody_knows(); made()
    """)

    cuda, another = Asked("CUDAExecutionProvider", {"device_id": "0"}), Asked("Another", {})
    third = Asked("Third", {})
    assert [(each.by_options, each.asked) for each in seen.sessions] == [
        (False, None),
        (True, (cuda,)),
        (True, (cuda, another)),
        (True, (cuda, another, third)),
        (True, (cuda, another, third)),
        (True, (Asked("CPUExecutionProvider", {}),)),
        (True, (Asked("PREFER_GPU", {}),)),
        (True, None),
    ]


GENAI = """

class Config:
    def __init__(self, path): pass
    def clear_providers(self): pass
    def append_provider(self, name): pass
class Model:
    device_type = "cpu"
    def __init__(self, of): pass
"""


def test_what_the_configuration_of_genai_holds_is_what_was_asked_for(
    watched: Run, packages: Path, tmp_path: Path
) -> None:
    package = packages / "onnxruntime_genai"
    package.mkdir()
    (package / "__init__.py").write_text("from .onnxruntime_genai import *")
    (package / "onnxruntime_genai.py").write_text(GENAI)
    options = '{"provider_options": [{"NvTensorRtRtx": {}}]}'
    written = f'{{"model": {{"decoder": {{"session_options": {options}}}}}}}'
    (tmp_path / "genai_config.json").write_text(written)
    _, seen = watched(f"""
        from onnxruntime_genai import Config, Model
        config = Config({str(tmp_path)!r}); Model(config)
        config.append_provider("cuda"); Model(config)
        config.clear_providers(); Model(config)
        Model({str(tmp_path)!r})
    """)

    asked = [[each.name for each in session.asked or ()] for session in seen.sessions]
    assert asked == [["NvTensorRtRtx"], ["NvTensorRtRtx", "cuda"], [], ["NvTensorRtRtx"]]
    [library] = seen.libraries
    assert (library.name, library.executable) == ("onnxruntime-genai", sys.executable)
    assert library.file == str(package / "onnxruntime_genai.py")


def test_what_ctranslate2_makes_is_told_with_its_python(watched: Run, packages: Path) -> None:
    package = packages / "ctranslate2"
    package.mkdir()
    (package / "version.py").write_text("__version__ = '4.4.0'")
    (package / "__init__.py").write_text("from . import version\nfrom ._ext import Translator")
    (package / "_ext.py").write_text(
        "class Translator:\n"
        "    device = 'cpu'\n"
        "    def __init__(self, path, device): 'device: str'\n"
    )
    _, seen = watched("import ctranslate2\nctranslate2.Translator('m', device='cuda')")

    [session], [library] = seen.sessions, seen.libraries
    assert (session.asked, session.got) == ((Asked("cuda", {}),), ("cpu",))
    assert (library.name, library.executable) == ("ctranslate2", sys.executable)
    assert (library.version, library.file) == ("4.4.0", str(package / "_ext.py"))


@pytest.mark.parametrize(
    ("value", "module", "program", "asked"),
    [
        ("CUDA", "_ortgpu_fix_libraries.service", "InferenceSession('m', None, [])", True),
        ("cuda", "_ortgpu_fix_libraries.service", "InferenceSession('m', None, [CPU])", False),
    ],
)
def test_what_our_own_loader_asks_for_is_asked_for(
    watched: Run, packages: Path, value: str, module: str, program: str, *, asked: bool
) -> None:
    folder = packages / "_ortgpu_fix_libraries"
    folder.mkdir()
    (folder / "service.py").touch()
    (folder / "load.py").touch()
    text = f"import {module}\nfrom onnxruntime import InferenceSession\n"
    text += f"CPU = 'CPUExecutionProvider'\n{program}"

    [session] = watched(text, ORTGPU_FIX_PROVIDERS=value)[1].sessions
    given = (Asked("CUDAExecutionProvider", {"ORTGPU_FIX_PROVIDERS": "cuda"}),)
    assert (session.asked == given) == asked
    [session] = watched(text, ORTGPU_FIX_PROVIDERS=value, FAKE_BUILD="CPU")[1].sessions
    assert session.asked != given


def test_what_is_said_meanwhile_is_told_and_comes_out_unchanged(
    watched: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    _, seen = watched(
        "import sys; print('before', file=sys.stderr)" + MAKE + "print('after', file=sys.stderr)",
        FAKE_SAYS="[E:onnxruntime] 数 failed",
    )

    assert seen.sessions[0].words == "[E:onnxruntime] 数 failed\n"
    assert seen.sessions[0].got == ("CPUExecutionProvider",)
    out, err = capfd.readouterr()
    assert (out, err.splitlines()) == ("", ["before", "[E:onnxruntime] 数 failed", "after"])


def test_words_of_a_program_that_is_killed_meanwhile_are_passed_on(
    watched: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    status, seen = watched(MAKE, FAKE_KILLED="1")

    assert status == KILLED
    assert capfd.readouterr().err.splitlines() == ["the last words"]
    assert [each.name for each in seen.libraries] == ["onnxruntime"]


@pytest.mark.skipif(sys.platform == "win32", reason="ways of Unix")
@pytest.mark.parametrize(
    ("first", "start"),
    [
        ("", "import subprocess; subprocess.run(argv, check=True)"),
        (
            "import multiprocessing.util as util",
            "os.waitpid(util.spawnv_passfds(os.fsencode(argv[0]), argv, []), 0)",
        ),
        ("", "os.waitpid(os.posix_spawnp(argv[0], argv, os.environ), 0)"),
        ("import pickle, shlex", "pickle.loads(pickle.dumps(os.system))(shlex.join(argv))"),
        ("", "os.execv(argv[0], argv)"),
    ],
)
def test_what_is_started_meanwhile_has_the_usual_standard_error(
    watched: Run, capfd: pytest.CaptureFixture[str], first: str, start: str
) -> None:
    """It may outlive the session, and with it whoever reads the file of the words."""
    _, seen = watched(
        f"{first}\n{MEANWHILE}        os.write(2, b'before ')\n        {start}\n"
        "        os.write(2, b'after')\n        super()._create_inference_session(*given)\n"
        "Meanwhile('m', providers=['CUDAExecutionProvider'])\n"
    )

    assert capfd.readouterr().out == "True\n"
    assert [each.words for each in seen.sessions] == ([] if "exec" in start else ["before after"])


def test_a_session_that_is_made_when_the_starter_has_ended_leaves_no_file_open(
    watched: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    """A daemon, whose folder is gone. And no file of the program's is taken for ours."""
    watched(
        MAKE
        + """
import os, sys, tempfile
sys.modules["_ortgpu_fix_watch.standard_error"].FOLDER = "/nowhere"
files = [tempfile.TemporaryFile(buffering=0) for _ in range(3)]
for each in files: each.write(b"kept")
def free():
    os.close(lowest := os.dup(2)); return lowest
before = free()
for _ in range(3): onnxruntime.InferenceSession("m", providers=["CUDAExecutionProvider"])
print(free() - before, [each.seek(0, 2) for each in files])
"""
    )

    assert capfd.readouterr().out == "0 [4, 4, 4]\n"


def test_providers_that_the_program_changes_are_what_was_asked(watched: Run) -> None:
    _, seen = watched(MAKE + "session.set_providers(['CPUExecutionProvider'])")

    assert seen.sessions[0].asked == (Asked("CPUExecutionProvider", {}),)
    assert seen.sessions[0].got == ("CPUExecutionProvider",)


def test_a_session_is_told_while_the_program_goes_on(tmp_path: Path, packages: Path) -> None:
    """The program waits for what `show_session` writes, as long as it must."""
    answer = tmp_path / "told"
    program = tmp_path / "app.py"
    program.write_text(
        MAKE + f"import os, time\nend = time.monotonic() + 60\n"
        f"while not os.path.exists({str(answer)!r}) and time.monotonic() < end: time.sleep(0.05)\n"
        f"raise SystemExit(0 if os.path.exists({str(answer)!r}) else 1)\n"
    )

    def told(session: InferenceSession) -> None:
        answer.write_text(session.model or "?")

    status, _ = runner.watch_program(
        [sys.executable, str(program)],
        {**os.environ, "PYTHONPATH": str(packages)},
        told,
    )

    assert (status, Path(answer.read_text()).name) == (0, "model.onnx")


def test_runs_shapes_and_threads_are_counted(watched: Run) -> None:
    _, seen = watched(
        MAKE
        + """
import threading
class Array(list):
    def __init__(self, *shape): self.shape = shape
class Value(list):
    def shape(self): return [7]
def work():
    for size in (1, 2, 1, 1): session.run(None, {"x": Array(1, size), "y": Array(size)})
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join()
session.run(None, {"x": Value()})
"""
    )

    runs = seen.sessions[0].runs
    assert runs.times == 13
    assert runs.shapes == 3
    assert runs.threads in {2, 3, 4}  # numbers of threads that ended are given again
    assert runs.inputs == {"x": (1, 1), "y": (1,)}
    assert None not in {runs.first_ms, runs.fresh_ms, runs.later_ms}


@pytest.mark.parametrize(
    ("call", "timed", "shapes"),
    [("run_async(None, {'x': []}, print, None)", False, 1), ("run_with_iobinding(None)", True, 0)],
)
def test_what_nobody_knows_of_other_runs_is_not_told(
    watched: Run, call: str, *, timed: bool, shapes: int
) -> None:
    """Of `run_async` only the start would be timed; where inputs are bound nobody sees them."""
    _, seen = watched(MAKE + f"for _ in range(3): session.{call}\n")

    runs = seen.sessions[0].runs
    assert (runs.times, runs.shapes) == (3, shapes)
    assert [each is not None for each in (runs.first_ms, runs.later_ms)] == [timed, timed]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_the_last_runs_before_a_wait_in_which_the_program_is_killed_are_told(
    watched: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    _, seen = watched(
        MAKE
        + """
import _thread, os, time
gone = 0
def burst():
    for _ in range(3): session.run(None, {"x": []})
    time.sleep(0.01)
    os.write(1, b"threads: %d\\n" % (_thread._count() - gone))
burst()
child = os.fork()
if not child: gone = _thread._count()
burst()
time.sleep(0.9)
burst()
time.sleep(0.9)
if child: os.wait()
os.kill(os.getpid(), 9)
"""
    )

    assert seen.sessions[0].runs.times == 15
    assert capfd.readouterr().out.splitlines() == ["threads: 1"] * 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_processes_by_fork_spawn_and_subprocess_are_seen(watched: Run) -> None:
    _, seen = watched(
        STARTING
        + """
    for kind in ("fork", "spawn"):
        start(kind)
    subprocess.run(["sh", "-c", f"{sys.executable} -c '{code}'"], check=True)
    if os.fork() == 0:
        work(); os._exit(0)
    os.wait()
"""
    )

    assert len({each.pid for each in seen.sessions}) == len(seen.sessions) == 5
    assert [each.runs.times for each in seen.sessions] == [3, 3, 3, 0, 3]


def test_processes_by_spawn_and_subprocess_are_seen_on_every_system(watched: Run) -> None:
    _, seen = watched(
        STARTING
        + """
    start("spawn")
    subprocess.run([sys.executable, "-c", code], check=True)
"""
    )

    assert len({each.pid for each in seen.sessions}) == 3
    assert [each.runs.times for each in seen.sessions] == [3, 3, 0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_session_that_a_fork_inherits_is_counted_in_both(watched: Run) -> None:
    _, seen = watched(
        MAKE
        + """
import os
session.run(None, {"x": []})
if os.fork() == 0:
    session.run(None, {"x": []})
    session.run(None, {"x": []})
    raise SystemExit
os.wait()
"""
    )

    assert len(seen.sessions) == 1
    assert seen.sessions[0].runs.times == 3


def test_the_users_own_sitecustomize_and_path_are_as_before(
    watched: Run, packages: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (packages / "sitecustomize.py").write_text("print('mine', __file__)")
    text = "import sys, sitecustomize; print(sitecustomize.__file__); print(sys.path[1])"
    watched(text)

    own = packages / "sitecustomize.py"
    assert capfd.readouterr().out.splitlines() == [f"mine {own}", str(own), str(packages)]


def test_an_onnxruntime_that_cannot_be_imported_is_told(watched: Run, packages: Path) -> None:
    (packages / "onnxruntime/capi/_pybind_state.py").write_text(
        "raise ImportError('libcudart.so.13: cannot open shared object file')"
    )
    status, seen = watched("import onnxruntime")

    assert status == 1
    assert seen.sessions == ()
    assert "libcudart.so.13" in seen.libraries[0].error


def test_a_python_that_has_none_is_named(watched: Run, packages: Path) -> None:
    for name in ("__init__.py", "capi/__init__.py"):
        (packages / "onnxruntime" / name).unlink()
    (packages / "onnxruntime").rename(packages / "else")
    status, seen = watched("""
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            raise SystemExit(str(error))
    """)

    assert status == 1
    assert [(each.name, each.executable) for each in seen.missing] == [
        ("onnxruntime", sys.executable)
    ]
    assert seen.libraries == ()


@pytest.mark.parametrize(
    ("starting", "unobserved"),
    [
        ("subprocess.run([python, 'x.py'], env={})", [(("python", "x.py"), "")]),
        ("subprocess.run([python, '-Im', 'x'])", [(("python", "-Im", "x"), "-Im")]),
        ("subprocess.run([python, '-u', '-c', '-I'])", []),
        (
            "os.environ['PYTHONPATH'] = '/x'; subprocess.run([python, 'x.py'])",
            [(("python", "x.py"), "")],
        ),
        ("os.execv(python, [python, '-sE', 'x.pex'])", [(("python", "-sE", "x.pex"), "-sE")]),
        ("subprocess.run(['./tool', '1'], env={b'PYTHONPATH': b'/x'})", [(("./tool", "1"), "")]),
        ("subprocess.run(['./alone', '1'])", [(("./alone", "1"), "-I")]),
        ("subprocess.run(['no-such-program'])", []),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the programs of POSIX")
def test_a_python_that_starts_without_the_hook_is_told(
    watched: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    starting: str,
    unobserved: list[tuple[tuple[str, ...], str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, option in (("tool", ""), ("alone", " -I")):
        (tmp_path / name).write_text(f"#!{sys.executable}{option}\n")
        (tmp_path / name).chmod(0o755)
    _, seen = watched(f"""
        import os, subprocess, sys
        python = sys.executable
        try:
            {starting}
        except OSError:
            pass
    """)

    shown = [
        (tuple(word.replace(sys.executable, "python") for word in each.words), each.option)
        for each in seen.unobserved
    ]
    assert shown == unobserved


def test_an_archive_that_has_its_packages_within_is_told(tmp_path: Path, packages: Path) -> None:
    """As shiv makes them: the packages are unpacked elsewhere, and the Python is the system's."""
    import zipfile

    archive = tmp_path / "app.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        text = f"import sys; sys.path.insert(0, {str(packages)!r}); import onnxruntime"
        file.writestr("__main__.py", text)
    _, seen = runner.watch_program([sys.executable, str(archive)], os.environ)

    assert [each.archive for each in seen.libraries] == [str(archive)]


def test_nothing_is_left_on_the_disk(
    watched: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    children = Path(runner.__file__).with_name("children")
    before = {path: path.stat().st_mtime_ns for path in children.rglob("*")}
    status, _ = watched("raise SystemExit(3)")

    assert status == 3
    assert [*folder.iterdir()] == []
    assert {path: path.stat().st_mtime_ns for path in children.rglob("*")} == before


def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(Error, match="program-not-started"):
        runner.watch_program(["/does/not/exist"], os.environ)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["python3", "-I", "app.py"], "-I"),
        (["/usr/bin/python3", "-uE", "app.py"], "-uE"),
        (["python3", "-c", "-I"], ""),
        (["python3", "-cimport I", "-I"], ""),
        (["python3", "-um", "app", "-I"], ""),
        (["python3", "-", "-I"], ""),
        (["python3", "-Wignore::ImportWarning", "app.py"], ""),
        (["python3", "-W", "ignore", "-I"], "-I"),
        (["python3", "-W", "-I", "-u"], ""),
        (["python3", "-uX", "importtime", "-sE"], "-sE"),
        (["python3", "--check-hash-based-pycs", "always", "-I"], "-I"),
        (["python3", "-IWignore"], "-IWignore"),
        (["python3", "app.py", "-I"], ""),
        (["true", "-I"], ""),
    ],
)
def test_a_python_that_ignores_the_hook_is_recognised(words: list[str], option: str) -> None:
    assert runner.ignoring(runner.python_of(words, os.environ)) == option


def test_a_script_says_so_in_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/usr/bin/env -S python3 -I\n")
    other = tmp_path / "other"
    other.write_text("#!/usr/bin/python3\n")

    assert runner.python_of([str(script)], {}) == ["python3", "-I"]
    assert runner.python_of([str(other)], {}) == ["/usr/bin/python3"]
