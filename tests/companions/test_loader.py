"""The modules that load libraries when onnxruntime is imported, in real interpreters.

The libraries are small ones, made here with real names and real links: a loader treats them as it
treats NVIDIA's.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import environments
import pytest

from ortgpu_fix.companions.build import LocalWheel, library_wheel
from ortgpu_fix.companions.contents import LINE
from ortgpu_fix.companions.library_list import Entry, When
from ortgpu_fix.companions.loader import demand
from ortgpu_fix.companions.loader import load as autoload
from ortgpu_fix.matrix import load as data_files
from support.pythons import find_python

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None,
    reason="needs gcc, on Linux",
)

LT, BLAS = "nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cublas/lib/libcublas.so.12"
DNN, GRAPH = "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/lib/libcudnn_graph.so.9"
LISTED: tuple[tuple[When, str], ...] = (
    ("always", LT),
    ("always", BLAS),
    ("shadowed", GRAPH),
    ("always", DNN),
)
PROVIDER = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
ONNXRUNTIME = """
import ctypes, os
try:
    ctypes.CDLL(os.path.join(os.path.dirname(__file__), "capi/libonnxruntime_providers_cuda.so"))
    error = None
except OSError as problem:
    error = str(problem)
"""
MAPPED = r"""
import json, re
def mapped():
    found = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if ".so" in line}
    return sorted(path for path in found if re.search(r"/lib(cu|nv)\w+\.so[.\d]*$", path))
"""


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a site-packages folder with an onnxruntime whose provider links these libraries."""
    root = tmp_path_factory.mktemp("libraries")

    def make(path: str, *links: str, origin: bool = False) -> None:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(target)]
        command += [f"-Wl,-soname,{target.name}", "-Wl,--no-as-needed"]
        command += ["-x", "none", *(str(root / link) for link in links)]
        command += ["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"] if origin else []
        subprocess.run(command, check=True)

    make(LT)
    make(BLAS, LT)
    make(GRAPH)
    make(DNN, GRAPH, origin=True)
    make(PROVIDER, LT, BLAS, DNN)
    (root / "onnxruntime/__init__.py").write_text(ONNXRUNTIME)
    (root / "onnxruntime/part.py").write_text("")
    (root / "onnxruntime_gpu-1.26.0.dist-info").mkdir()
    return root


def wheel() -> LocalWheel:
    entries = [
        Entry(when=when, distribution=path.split("/")[1], path=path) for when, path in LISTED
    ]
    return library_wheel("1.26.0", entries, data_files.companion_modules())


def put(site: Path) -> None:
    """Install the wheel as an installer does."""
    with zipfile.ZipFile(io.BytesIO(wheel().content)) as file:
        file.extractall(site)


@pytest.fixture(scope="session", params=["3.8", f"{sys.version_info[0]}.{sys.version_info[1]}"])
def template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tree: Path
) -> Path:
    """Make an environment with that onnxruntime, and with the wheel."""
    python = find_python(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} on this machine")
    folder = tmp_path_factory.mktemp("template") / "venv"
    site = environments.site_packages(environments.make_venv(python, folder))
    shutil.copytree(tree, site, dirs_exist_ok=True)
    put(site)
    return folder


@pytest.fixture
def python(template: Path, tmp_path: Path) -> Path:
    """Make an environment for one test."""
    shutil.copytree(template, tmp_path / "venv", symlinks=True)
    return tmp_path / "venv/bin/python"


def run(
    python: Path, code: str, *options: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run code there; what matters of the environment is chosen."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [python, *options, "-c", MAPPED + code],
        env=kept | (dict(environ) if environ else {}),
        cwd=python.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def answer(python: Path, code: str, *options: str, **environ: str) -> Any:
    """Return what code prints as JSON; nothing else may be said."""
    finished = run(python, code, *options, environ=environ)

    assert (finished.returncode, finished.stderr) == (0, "")
    return json.loads(finished.stdout)


def names(paths: list[str]) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in paths)


ALL = ["libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9", "libcudnn_graph.so.9"]
IMPORT = "import onnxruntime; print(json.dumps([onnxruntime.error, mapped()]))"


def test_without_the_wheel_the_provider_does_not_load(python: Path) -> None:
    (environments.site_packages(python) / "ortgpu_fix_libraries.pth").unlink()
    error, mapped = answer(python, IMPORT)

    assert "libcublasLt.so.12: cannot open shared object file" in error
    assert mapped == []


def test_an_unchanged_import_finds_every_library(python: Path) -> None:
    error, mapped = answer(python, IMPORT)

    assert error is None
    assert names(mapped) == ALL
    assert {path.partition("/nvidia/")[0] for path in mapped} == {
        str(environments.site_packages(python))
    }


def test_nothing_is_loaded_until_onnxruntime_is_imported(python: Path) -> None:
    code = "import importlib.util; assert importlib.util.find_spec('onnxruntime').origin"
    assert answer(python, f"{code}\nprint(json.dumps(mapped()))") == []


@pytest.mark.parametrize(
    "code",
    [
        "from onnxruntime import part",
        "import importlib.util; importlib.util.find_spec('onnxruntime'); import onnxruntime",
        "import onnxruntime, importlib; importlib.reload(onnxruntime)",
        "import copy, importlib.util as u; copy.deepcopy(u.find_spec('onnxruntime').loader)",
    ],
)
def test_every_way_to_import_it_loads_once(python: Path, code: str) -> None:
    code += "\nimport onnxruntime\nprint(json.dumps([onnxruntime.error, mapped()]))"
    error, mapped = answer(python, code)

    assert error is None
    assert names(mapped) == ALL


def test_the_start_file_names_a_function_that_does_the_same(python: Path) -> None:
    site = environments.site_packages(python)
    (site / "ortgpu_fix_libraries.pth").unlink()
    [entry] = (site / "ortgpu_fix_libraries.start").read_text().splitlines()
    module, _, function = entry.partition(":")  # as Python 3.15 does, by pkgutil.resolve_name
    code = f"import importlib; importlib.import_module({module!r}).{function}()\n{IMPORT}"

    assert answer(python, code)[0] is None


def test_a_missing_module_is_passed_over_in_silence(python: Path) -> None:
    shutil.rmtree(environments.site_packages(python) / "_ortgpu_fix_libraries")

    assert answer(python, "print(json.dumps(1))") == 1


def test_without_onnxruntime_the_usual_error_appears(python: Path) -> None:
    shutil.rmtree(environments.site_packages(python) / "onnxruntime")
    finished = run(python, "import onnxruntime")

    assert "ModuleNotFoundError: No module named 'onnxruntime'" in finished.stderr
    assert "ortgpu" not in finished.stderr


def test_nothing_is_loaded_for_a_cpu_build_or_a_folder_of_that_name(python: Path) -> None:
    (environments.site_packages(python) / PROVIDER).unlink()
    finished = run(python, IMPORT, environ={"ORTGPU_FIX_DEBUG": "1"})

    assert json.loads(finished.stdout)[1] == []
    assert "no CUDA provider in" in finished.stderr


def test_a_missing_library_leaves_the_message_to_onnxruntime(python: Path) -> None:
    """Beside the line that the loader has for it."""
    (environments.site_packages(python) / LT).unlink()
    error, mapped = answer(python, IMPORT, ORTGPU_FIX_NOTICE="0")

    assert "libcublasLt.so.12: cannot open shared object file" in error
    assert names(mapped) == ["libcudnn.so.9", "libcudnn_graph.so.9"]


def test_debug_says_what_was_loaded_from_where(python: Path) -> None:
    site = environments.site_packages(python)
    (site / DNN).unlink()
    (site / BLAS).write_text("no library")
    finished = run(python, IMPORT, environ={"ORTGPU_FIX_DEBUG": "1"})
    lines = finished.stderr.splitlines()

    assert lines[0] == f"ortgpu-fix: loaded {site / LT}"
    assert lines[1].startswith(f"ortgpu-fix: not loaded: {site / BLAS}: ")
    assert lines[2] == f"ortgpu-fix: missing: {site / DNN}"
    assert lines[3].startswith("ortgpu-fix: CUDA libraries of this environment are missing: ")
    assert len(lines) == 4


def test_a_broken_list_is_not_the_end_of_the_import(python: Path) -> None:
    folder = environments.site_packages(python) / "_ortgpu_fix_libraries"
    (folder / "libraries.txt").write_text("one\n")

    assert "cannot open" in answer(python, IMPORT)[0]
    assert "ValueError" in run(python, IMPORT, environ={"ORTGPU_FIX_DEBUG": "1"}).stderr


TORCH = """
import ctypes, os
folder = os.path.join(os.path.dirname(__file__), "lib")
for name in ("libcublasLt.so.12", "libcublas.so.12"):
    ctypes.CDLL(os.path.join(folder, name))
"""


def bundle(site: Path) -> None:
    """Put a torch there that carries cuBLAS itself, as those of PyTorch's own index do."""
    (site / "torch/lib").mkdir(parents=True)
    (site / "torch/__init__.py").write_text(TORCH)
    for path in (LT, BLAS):
        shutil.copy(site / path, site / "torch/lib")


ORDERS = ("torch, onnxruntime", "onnxruntime, torch")


@pytest.mark.parametrize("order", ORDERS)
def test_torchs_own_libraries_are_used_whoever_is_first(python: Path, order: str) -> None:
    bundle(environments.site_packages(python))
    error, mapped = answer(python, f"import {order}\n{IMPORT}")

    assert error is None
    assert names(mapped) == ALL
    assert names([path for path in mapped if "/torch/lib/" in path]) == ALL[:2]


@pytest.mark.parametrize("both", [True, False], ids=["whole", "part"])
def test_libraries_that_are_loaded_already_keep_the_others_of_their_distribution_away(
    python: Path, tmp_path: Path, *, both: bool
) -> None:
    site = environments.site_packages(python)
    for path in (LT, BLAS) if both else (LT,):
        shutil.copy(site / path, tmp_path)
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 'libcublasLt.so.12')!r})\n"
    error, mapped = answer(python, code + IMPORT)

    assert f"{tmp_path}/libcublasLt.so.12" in mapped
    assert [path for path in mapped if "cublas" in path and str(site) in path] == []
    assert (error is None) is both


def test_other_libraries_on_the_loaders_path_do_not_come_before_ours(
    python: Path, tmp_path: Path
) -> None:
    site = environments.site_packages(python)
    for path in (LT, BLAS, GRAPH):
        shutil.copy(site / path, tmp_path)
    error, mapped = answer(python, IMPORT, LD_LIBRARY_PATH=f"/nowhere:{tmp_path}")

    assert error is None
    assert names(mapped) == ALL
    assert not [path for path in mapped if path.startswith(f"{tmp_path}/lib")]


def test_threads_that_import_at_once(python: Path) -> None:
    code = """
import threading
barrier = threading.Barrier(8)
errors = []
def work(at):
    barrier.wait()
    try:
        import onnxruntime
        errors.append(onnxruntime.error)
        __import__(("wave", "chunk", "cgi", "colorsys", "sched", "queue", "cmd", "code")[at])
    except ImportError as problem:
        errors.append(None if problem.name in ("cgi", "chunk") else str(problem))
threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps([errors, mapped()]))
"""
    errors, mapped = answer(python, code, "-W", "ignore")

    assert errors == [None] * 8
    assert names(mapped) == ALL


PRELOAD = """
def preload_dlls():
    import glob
    nvidia = os.path.join(os.path.dirname(os.path.dirname(__file__)), "nvidia")
    for name in ("cublas/lib/libcublasLt.so.12", "cublas/lib/libcublas.so.12"):
        ctypes.CDLL(os.path.join(nvidia, name))
    for path in sorted(glob.glob(os.path.join(nvidia, "cudnn/lib/*"))):
        ctypes.CDLL(path)
"""


PYTHONS = [(f"3.{minor}", found) for minor in range(8, 16) if (found := find_python(f"3.{minor}"))]


@pytest.mark.parametrize(
    ("version", "base"),
    [pytest.param(*row, id=row[0]) for row in sorted({*PYTHONS[:1], *PYTHONS[-1:]})],
)
def test_the_ways_to_start_on_the_oldest_and_the_newest_python(
    version: str, base: Path, tmp_path: Path, tree: Path
) -> None:
    """Plain, -I, -S and with the line, forked, spawned, with preload_dlls(), torch around it."""
    python = environments.make_venv(base, tmp_path / "venv")
    site = environments.site_packages(python)
    shutil.copytree(tree, site, dirs_exist_ok=True)
    put(site)
    (site / "onnxruntime/__init__.py").write_text(ONNXRUNTIME + PRELOAD)
    (python.parent / "work.py").write_text(
        MAPPED + "def work(_):\n    import onnxruntime\n    return [onnxruntime.error, mapped()]\n"
    )
    pool = """
import multiprocessing, sys
sys.path.insert(0, "")
import work
if __name__ == "__main__":
    with multiprocessing.get_context({!r}).Pool(1) as pool:
        print(json.dumps(pool.map(work.work, [0])[0]))
"""
    without = f"import sys; sys.path.append({str(site)!r})\n"
    found = {
        "plain": answer(python, IMPORT),
        "-I": answer(python, IMPORT, "-I"),
        "line": answer(python, f"{without}{LINE}\n{IMPORT}", "-S"),
        "fork": answer(python, pool.format("fork"), "-W", "ignore"),
        "spawn": answer(python, pool.format("spawn"), "-W", "ignore"),
        "preload": answer(python, f"import onnxruntime as o; o.preload_dlls()\n{IMPORT}"),
    }
    alone = answer(python, without + IMPORT, "-S")
    bundle(site)
    torch = {order: answer(python, f"import {order}\n{IMPORT}") for order in ORDERS}

    assert {way: (error, names(mapped)) for way, (error, mapped) in found.items()} == (
        dict.fromkeys(found, (None, ALL))
    ), version
    assert "cannot open shared object file" in alone[0]
    assert {way: (error, names(mapped)) for way, (error, mapped) in torch.items()} == (
        dict.fromkeys(torch, (None, ALL))
    )


def test_a_finder_that_comes_later_may_exchange_the_loader_too(python: Path) -> None:
    code = """
import importlib.util, sys
class Wrapped:
    def __init__(self, loader): self.loader = loader
    def create_module(self, spec): return self.loader.create_module(spec)
    def exec_module(self, module): self.loader.exec_module(module); module.wrapped = True
class Hook:
    busy = False
    def find_spec(self, name, path=None, target=None):
        if name != "onnxruntime" or self.busy: return None
        self.busy = True
        spec = importlib.util.find_spec(name)
        spec.loader = Wrapped(spec.loader)
        return spec
sys.meta_path.insert(0, Hook())
import onnxruntime
print(json.dumps([onnxruntime.error, onnxruntime.wrapped]))
"""
    assert answer(python, code) == [None, True]


def test_old_finders_and_a_finder_that_was_taken_away(python: Path) -> None:
    code = """
import sys
ours = sys.meta_path[0]
class Old:
    def find_module(self, name, path=None): return None
sys.meta_path.insert(1, Old())
import importlib.util
assert importlib.util.find_spec("onnxruntime").origin
sys.meta_path.remove(ours)
assert ours.find_spec("onnxruntime") is None
import onnxruntime
print(json.dumps(onnxruntime.error))
"""
    assert "cannot open" in answer(python, code)


def test_onnxruntime_in_a_zip(python: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as file:
        file.writestr("onnxruntime/__init__.py", "error = 'from a zip'")
        file.writestr("other.py", "here = 1")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'all.zip')!r})\n"
    code += (
        f"import importlib.util; importlib.util.find_spec('onnxruntime'); import other\n{IMPORT}"
    )

    assert answer(python, code) == ["from a zip", []]


def test_uninstalling_leaves_nothing(tmp_path: Path, tree: Path) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("needs uv")
    interpreter = environments.make_venv(Path(sys.executable), tmp_path / "venv")
    site = environments.site_packages(interpreter)
    shutil.copytree(tree, site, dirs_exist_ok=True)
    before = sorted(site.rglob("*"))
    path = tmp_path / wheel().file
    path.write_bytes(wheel().content)
    base = [uv, "--no-config", "--offline", "pip"]
    subprocess.run([*base, "install", "-q", "--python", interpreter, path], check=True)
    answer(interpreter, IMPORT)
    assert run(interpreter, IMPORT, "-O").returncode == 0
    shutil.rmtree(site / "onnxruntime/__pycache__")
    subprocess.run(
        [*base, "uninstall", "-q", "--python", interpreter, "ortgpu-fix-libraries"], check=True
    )

    assert sorted(site.rglob("*")) == before


class Windows:
    """The part of Windows that the module asks: loaded modules, versions, folders."""

    def __init__(self) -> None:
        self.loaded: dict[str, str] = {}
        self.folders: list[str] = []

    def library(self, file: str) -> Any:
        if file == "kernel32":
            return SimpleNamespace(
                GetModuleHandleW=SimpleNamespaceCall(lambda name: name in self.loaded and name),
                GetModuleFileNameW=SimpleNamespaceCall(self._file_name),
            )
        self.loaded[Path(file).name] = file
        return file

    def _file_name(self, handle: str, text: Any, _length: int) -> int:
        text.value = self.loaded[handle]
        return len(text.value)


class SimpleNamespaceCall:
    """A function with `argtypes` and `restype`."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Windows:
    simulated = Windows()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "WinDLL", simulated.library, raising=False)
    monkeypatch.setattr(os, "add_dll_directory", simulated.folders.append, raising=False)
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path / "Windows"))
    return simulated


def touch(root: Path, *paths: str) -> list[str]:
    for path in paths:
        (root / path).resolve().parent.mkdir(parents=True, exist_ok=True)
        (root / path).resolve().touch()
    return [str((root / path).resolve()) for path in paths]


def version(minor: int) -> bytes:
    """Return a DLL's version resource: 14.`minor`."""
    return b"MZ" + b"\xbd\x04\xef\xfe\0\0\1\0" + bytes([minor, 0, 14, 0, 0, 0, 0, 0])


BLAS_DLLS = ("nvidia/cublas/bin/cublasLt64_12.dll", "nvidia/cublas/bin/cublas64_12.dll")


def test_windows_searches_the_folders_and_loads_by_full_path(
    windows: Windows, tmp_path: Path
) -> None:
    files = touch(tmp_path, *BLAS_DLLS)
    autoload.load_group([("always", path) for path in BLAS_DLLS], [str(tmp_path)])

    assert list(windows.loaded.values()) == files
    assert windows.folders == [str(tmp_path / "nvidia/cublas/bin")]


@pytest.mark.parametrize("imported", [True, False], ids=["torch imported", "torch installed"])
def test_windows_uses_torchs_libraries(windows: Windows, tmp_path: Path, *, imported: bool) -> None:
    touch(tmp_path, *BLAS_DLLS)
    files = touch(tmp_path, "torch/lib/cublasLt64_12.dll", "torch/lib/cublas64_12.dll")
    if imported:
        windows.loaded = {"cublasLt64_12.dll": files[0]}
    autoload.load_group([("always", path) for path in BLAS_DLLS], [str(tmp_path)])

    assert list(windows.loaded.values()) == files


@pytest.mark.parametrize(("system", "loads"), [(None, True), (1, True), (2, False)])
def test_windows_loads_a_newer_runtime_only(
    windows: Windows, tmp_path: Path, system: int | None, *, loads: bool
) -> None:
    site = tmp_path / "venv/Lib/site-packages"
    [file] = touch(site, "../../Scripts/msvcp140.dll")
    Path(file).write_bytes(version(2))
    if system is not None:
        [own] = touch(tmp_path, "Windows/System32/msvcp140.dll")
        Path(own).write_bytes(version(system))
    autoload.load_group([("newer", "../../Scripts/msvcp140.dll")], [str(site)])

    assert list(windows.loaded.values()) == ([file] if loads else [])


def test_a_c_library_that_does_not_tell_where_a_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_: SimpleNamespace())

    assert autoload.origin(1) == ""


def test_threads_meet_a_list_of_finders_that_does_not_shrink() -> None:
    """A finder that leaves the list makes another thread skip the one after it."""
    finder = SimpleNamespace(waiting={"onnxruntime"})
    before = list(sys.meta_path)
    sys.meta_path.insert(0, finder)
    try:
        real = SimpleNamespace(exec_module=lambda _: None)
        loader = demand.Loader(finder, real, "onnxruntime")
        module = SimpleNamespace(__spec__=None, __file__="/nowhere/__init__.py")
        thread = threading.Thread(target=loader.exec_module, args=(module,))
        thread.start()
        thread.join()

        assert sys.meta_path == [finder, *before]
        assert not finder.waiting
    finally:
        sys.meta_path.remove(finder)


# A release of the shape that is known: nothing is loaded before CUDA is asked for.

BINDINGS = """
import ctypes, os

class SessionOptions:
    providers = False
    def has_providers(self):
        return self.providers

class InferenceSession:
    "A session."
    def __init__(self, options):
        self.session_options = options
    def initialize_session(self, providers, options=(), disabled=()):
        "Initialize."
        self.providers = provider() if providers != ["CPUExecutionProvider"] else None

class OrtDevice:
    @staticmethod
    def cuda():
        return 1
    @staticmethod
    def gpu():
        return 1
    @staticmethod
    def cpu():
        return 0

def register_execution_provider_library(name, path):
    return provider()

def provider():
    try:
        ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libonnxruntime_providers_cuda.so"))
    except OSError as problem:
        return str(problem)
"""
SHAPED = """
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi._pybind_state import InferenceSession, SessionOptions

def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    return directory

def session(*providers):
    made = InferenceSession(SessionOptions())
    made.initialize_session(list(providers), [], set())
    return made.providers
"""


@pytest.fixture
def shaped(python: Path) -> Path:
    """Give the environment an onnxruntime with a compiled module, as the real ones have it."""
    package = environments.site_packages(python) / "onnxruntime"
    (package / "__init__.py").write_text(SHAPED)
    (package / "capi/__init__.py").touch()
    (package / "capi/_pybind_state.py").write_text(BINDINGS)
    return python


def mapped_by(python: Path, code: str, **environ: str) -> list[str]:
    """Return the libraries that are loaded after `code` ran in an application."""
    report = "\nprint(json.dumps(mapped()))"
    return names(answer(python, f"import onnxruntime\n{code}{report}", **environ))


@pytest.mark.parametrize(
    "code",
    [
        "assert onnxruntime.session('CPUExecutionProvider') is None",
        "onnxruntime.InferenceSession(onnxruntime.SessionOptions())",
        "onnxruntime.preload_dlls(directory='/opt')",
    ],
)
def test_without_a_wish_for_cuda_nothing_is_loaded(shaped: Path, code: str) -> None:
    assert mapped_by(shaped, code) == []


@pytest.mark.parametrize(
    "code",
    [
        "assert onnxruntime.session('CUDAExecutionProvider', 'CPUExecutionProvider') is None",
        "onnxruntime.SessionOptions.providers = True; assert onnxruntime.session() is None",
        "del onnxruntime.SessionOptions.has_providers; assert onnxruntime.session() is None",
        "assert onnxruntime.C.OrtDevice.cuda() == 1",
        "assert onnxruntime.C.register_execution_provider_library('x', 'y') is None",
        "assert onnxruntime.preload_dlls() is None",
    ],
)
def test_whatever_asks_for_cuda_finds_the_libraries(shaped: Path, code: str) -> None:
    assert mapped_by(shaped, code)[:4] == ALL


@pytest.mark.parametrize("gone", ["class InferenceSession", "def cuda"])
def test_a_release_of_another_shape_loads_at_the_import(shaped: Path, gone: str) -> None:
    bindings = environments.site_packages(shaped) / "onnxruntime/capi/_pybind_state.py"
    bindings.write_text(BINDINGS.replace(gone, f"{gone}s"))
    package = bindings.parents[1] / "__init__.py"
    package.write_text("from onnxruntime.capi import _pybind_state as C\n")

    assert mapped_by(shaped, "") == ALL


def test_a_plugin_finds_the_libraries_when_it_is_registered(shaped: Path) -> None:
    """The set is for the plain onnxruntime: nothing but the registration is for CUDA."""
    site = environments.site_packages(shaped)
    (site / "_ortgpu_fix_libraries/release.txt").write_text("onnxruntime 1.32.0\n")
    (site / "onnxruntime-1.32.0.dist-info").mkdir()
    registers = "assert onnxruntime.C.register_execution_provider_library('x', 'y') is None"

    assert mapped_by(shaped, "onnxruntime.session('CPUExecutionProvider')") == []
    assert mapped_by(shaped, registers)[:4] == ALL


def test_a_switch_turns_it_off(shaped: Path) -> None:
    code = "assert 'cannot open' in onnxruntime.session('CUDAExecutionProvider')"

    assert mapped_by(shaped, code, ORTGPU_FIX_AUTOLOAD="0") == []
    assert len(mapped_by(shaped, "onnxruntime.C.OrtDevice.cuda()", ORTGPU_FIX_AUTOLOAD="1")) == 4


def test_sessions_in_threads_and_in_forks(shaped: Path) -> None:
    code = """
import os, threading
def work():
    found.append(onnxruntime.session("CUDAExecutionProvider"))
found = []
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
child = os.fork()
if not child:
    os._exit(0 if onnxruntime.session("CUDAExecutionProvider") is None else 1)
assert os.waitpid(child, 0)[1] == 0
[thread.join() for thread in threads]
assert found == [None] * 8, found
"""
    assert mapped_by(shaped, code)[:4] == ALL


def test_a_release_that_looks_for_the_libraries_at_its_import_is_asked_again(shaped: Path) -> None:
    """onnxruntime 1.11 to 1.15: without them it never creates the provider."""
    package = environments.site_packages(shaped) / "onnxruntime"
    (package / "capi/_ld_preload.py").write_text(
        "import ctypes, os\ntry:\n    ctypes.CDLL('libcublas.so.12', mode=ctypes.RTLD_GLOBAL)\n"
        "except OSError:\n    os.environ['ORT_CUDA_UNAVAILABLE'] = '1'\n"
    )
    (package / "capi/_pybind_state.py").write_text(f"from . import _ld_preload\n{BINDINGS}")
    code = """
import os
assert os.environ["ORT_CUDA_UNAVAILABLE"] == "1"
assert onnxruntime.session("CUDAExecutionProvider") is None
assert "ORT_CUDA_UNAVAILABLE" not in os.environ
"""
    assert mapped_by(shaped, code)[:4] == ALL


LINKING = """
import ctypes, os
try:
    ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libonnxruntime_providers_cuda.so"))
except OSError as problem:
    raise ImportError(str(problem))
"""


def test_a_compiled_module_that_links_them_is_imported_again(shaped: Path) -> None:
    package = environments.site_packages(shaped) / "onnxruntime"
    (package / "capi/_pybind_state.py").write_text(LINKING + BINDINGS)

    assert mapped_by(shaped, "") == [*ALL, "libonnxruntime_providers_cuda.so"][:4]


def test_an_import_that_fails_for_another_reason_fails(shaped: Path) -> None:
    package = environments.site_packages(shaped) / "onnxruntime"
    (package / "capi/_pybind_state.py").write_text("raise ImportError('numpy is too old')")
    finished = run(shaped, "import onnxruntime")

    assert finished.returncode == 1
    assert finished.stderr.rstrip().endswith("ImportError: numpy is too old")


def test_onnxruntime_1_27_finds_what_it_links_at_its_import(shaped: Path) -> None:
    site = environments.site_packages(shaped)
    (site / "onnxruntime/capi/build_and_package_info.py").write_text("__version__ = '1.27.0'")
    runtime = "nvidia/cu13/lib/libcudart.so.13"
    (site / runtime).parent.mkdir(parents=True)
    make = ["gcc", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{Path(runtime).name}"]
    subprocess.run([*make, "-o", site / runtime], check=True)
    with (site / "_ortgpu_fix_libraries/libraries.txt").open("a") as file:
        file.write(f"always nvidia-cuda-runtime {runtime}\n")

    assert mapped_by(shaped, "") == ["libcudart.so.13"]
    asked = mapped_by(shaped, "onnxruntime.session('CUDAExecutionProvider')")
    assert {*ALL, "libcudart.so.13"} <= set(asked)
    (site / PROVIDER).unlink()
    assert mapped_by(shaped, "") == []


# Others that need the same libraries.

EXTENSION = """
class Translator:
    def __init__(self, *given, **named):
        "__init__(self, model_path: str, device: str = 'cpu')"
class Plain:
    pass
"""


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("Translator('m', device='cpu')", False),
        ("Translator('m', 'cuda')", True),
        ("Translator('m', device='auto')", True),
    ],
)
def test_ctranslate2_finds_them_for_a_gpu(python: Path, code: str, *, loaded: bool) -> None:
    package = environments.site_packages(python) / "ctranslate2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_ext.py").write_text(EXTENSION)
    code = f"from ctranslate2._ext import *\n{code}\nprint(json.dumps(mapped()))"

    assert names(answer(python, code)) == (ALL if loaded else [])


@pytest.mark.parametrize("cuda", [True, False])
def test_genai_for_cuda_finds_them_at_its_import(python: Path, *, cuda: bool) -> None:
    package = environments.site_packages(python) / "onnxruntime_genai"
    package.mkdir()
    (package / "__init__.py").touch()
    if cuda:
        (package / "libonnxruntime-genai-cuda.so").touch()
    code = "import onnxruntime_genai; print(json.dumps(mapped()))"

    assert names(answer(python, code)) == (ALL if cuda else [])
