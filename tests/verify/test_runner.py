"""The check in real environments: stand-ins for onnxruntime, and one real CPU build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import environments
import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.utils.process import Finished, run
from ortgpu_fix.verify.runner import verify
from ortgpu_fix.verify.verification import Verification
from support.pythons import find_python

NUMPY = """
float32 = "float32"


class array:
    def __init__(self, values, dtype=None):
        self.values, self.shape = list(values), (len(values),)

    def reshape(self, shape):
        self.shape = tuple(shape)
        return self

    def __sub__(self, other):
        return array([a - b for a, b in zip(self.values, other.values)])

    def max(self):
        return max(self.values)

    def all(self):
        return all(self.values)


def abs(a):
    return array([-value if value < 0 else value for value in a.values])


def isfinite(a):
    return array([value == value and value not in (1e999, -1e999) for value in a.values])
"""
ONNXRUNTIME = """
import json, os, sys
__version__ = "{version}"
cuda_version = "12.8"
print("a greeting on stdout")


class SessionOptions:
    pass


class InferenceSession:
    def __init__(self, path, options, providers, enable_fallback):
        self.options, self.providers = options, providers
        {on_create}

    def disable_fallback(self):
        pass

    def get_modelmeta(self):
        self.custom_metadata_map = {{
            "input": '{{"shape": [2], "values": [1, 2]}}',
            "expected": '{{"shape": [2], "values": [2, 4]}}',
        }}
        return self

    def run(self, names, feed):
        {on_run}
        return [type(feed["input"])([value * 2 for value in feed["input"].values])]

    def end_profiling(self):
        path = self.options.profile_file_prefix + "_2026.json"
        kernel = {{"op_name": "Conv", "provider": self.providers[0]}}
        rows = [{{"cat": "Session", "name": "model_run"}}]
        fence = {{"op_name": "Conv"}}
        for run in (1, 2):
            rows.append({{"cat": "Node", "name": "conv_fence_before", "args": fence}})
            rows.append({{"cat": "Node", "name": "conv_kernel_time", "args": kernel}})
        with open(path, "w") as file:
            json.dump(rows, file)
        return path
"""

Plant = Callable[..., Path]


@pytest.fixture
def site(venv: Path) -> Path:
    return environments.site_packages(venv)


@pytest.fixture
def plant(site: Path) -> Plant:
    """Put a stand-in for onnxruntime there, which does what a test wants; returns its folder."""

    def put(
        version: str = "1.26.0", more: str = "", on_create: str = "pass", on_run: str = "pass"
    ) -> Path:
        (site / "numpy.py").write_text(NUMPY)
        package = site / "onnxruntime"
        (package / "capi").mkdir(parents=True)
        code = ONNXRUNTIME.format(version=version, on_create=on_create, on_run=on_run)
        (package / "__init__.py").write_text(code + more)
        return package

    return put


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, in this test; what is left in it would stay for ever."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def check(
    venv: Path,
    *,
    plain: bool = False,
    timeout: float = 300,
    environ: Mapping[str, str] | None = None,
) -> Verification:
    merged = {**os.environ, **(environ or {})}
    return verify(venv, driver=None, runner=run, environ=merged, plain=plain, timeout=timeout)


def notes(found: Verification) -> list[str]:
    return [note.code for note in found.notes]


def test_right_numbers_on_the_gpu(venv: Path, plant: Plant) -> None:
    plant()
    found = check(venv)
    assert found.verdict == "works"
    assert [run.name for run in found.models] == ["conv", "matmul", "fft"]
    for model in found.models:
        assert model.nodes == (("Conv", "CUDAExecutionProvider"),)
        assert (model.deviation, model.correct, model.error) == (0.0, True, None)
        assert None not in (model.create_ms, model.first_ms, model.second_ms)


TORCH = """
import os, sys, types
log = os.path.join(os.path.dirname(__file__), "log")
with open(log, "a") as file:
    file.write("after " if "onnxruntime" in sys.modules else "before ")
class cuda:
    is_available = staticmethod(lambda: False)
    @staticmethod
    def init():
        raise RuntimeError("Found no NVIDIA driver on your system.")
"""
VERSION = "__version__ = '2.10.0+cu128'\ndebug = False\ncuda: Optional[str] = '12.8'\nhip = None\n"


def plant_torch(site: Path, version: str = VERSION) -> Path:
    """Put a stand-in for torch there, which writes when it was imported into the file returned."""
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text(TORCH)
    (site / "torch/version.py").write_text(version)
    return site / "torch/log"


def test_both_orders_with_torch_where_there_is_no_gpu(venv: Path, plant: Plant, site: Path) -> None:
    plant(on_create="raise RuntimeError('CUDA failure 100: no CUDA-capable device is detected')")
    log = plant_torch(site)

    found = check(venv)

    assert found.verdict == "no-gpu"
    assert log.read_text().split() == ["before", "after"]
    assert notes(found) == ["torch-loads"]
    assert [order for order, _ in found.orders] == ["first", "last"]


@pytest.mark.parametrize("version", ["__version__ = '2.10.0+cpu'\ncuda = None\n", None])
def test_a_torch_for_the_cpu_or_without_a_version_is_not_imported(
    venv: Path, plant: Plant, site: Path, version: str | None
) -> None:
    plant()
    log = plant_torch(site, version or "")
    if version is None:
        log.with_name("version.py").unlink()

    found = check(venv)

    assert (found.verdict, found.build, notes(found)) == ("works", None, [])
    assert not log.exists()


def test_no_numbers(venv: Path, plant: Plant) -> None:
    plant(on_run="return [type(feed['input'])([2, float('nan')])]")
    found = check(venv)
    assert found.verdict == "wrong-result"
    assert found.models[0].deviation is None


def test_a_crash(venv: Path, plant: Plant, temporary: Path) -> None:
    plant(on_create="import signal; os.kill(os.getpid(), signal.SIGSEGV)")
    found = check(venv)
    assert list(temporary.iterdir()) == []
    assert found.evidence[-1] == "inference conv: ended by SIGSEGV"
    assert (found.verdict, notes(found)) == ("no-driver", ["crash-without-driver"])


def test_a_hang_ends_with_the_time_limit(venv: Path, plant: Plant, temporary: Path) -> None:
    plant(on_create="import time; time.sleep(60)")
    found = check(venv, timeout=2)
    assert list(temporary.iterdir()) == []
    assert (found.verdict, notes(found)) == ("crashed", ["timed-out"])


def test_nothing_installed(venv: Path) -> None:
    found = check(venv)
    assert (found.verdict, notes(found)) == ("crashed", ["import-failed"])
    assert "No module named 'onnxruntime'" in found.evidence[0]


def test_an_import_that_ends_the_process(venv: Path, site: Path) -> None:
    environments.put_onnxruntime(site)
    found = check(venv)
    assert (found.verdict, notes(found)) == ("crashed", ["import-failed"])


def test_preload_is_called_as_documented(venv: Path, plant: Plant) -> None:
    report = "open(os.path.join(os.path.dirname(__file__), 'called'), 'a').write(repr(directory))"
    package = plant(more=f"\ndef preload_dlls(directory=None):\n    {report}\n")
    assert check(venv, plain=True).verdict == "works"
    assert not (package / "called").exists()
    assert check(venv).verdict == "works"
    assert (package / "called").read_text() == "''"


def test_neither_this_program_nor_the_current_folder_nor_pythonpath_is_imported(
    venv: Path, plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(more="\nfor name in ('verdict', 'smoke', 'here', 'there'):\n    __import__(name)\n")
    (tmp_path / "here.py").write_text("")
    (tmp_path / "verdict.py").write_text("")
    monkeypatch.chdir(tmp_path)
    found = check(venv, environ={"PYTHONPATH": str(tmp_path)})
    assert "No module named 'verdict'" in found.evidence[0]


def test_an_interpreter_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(Error, match="verify-not-started"):
        check(tmp_path / "python")


def test_the_child_gets_models_and_a_chosen_environment() -> None:
    seen: list[tuple[Sequence[str], Mapping[str, str] | None, float]] = []

    def runner(
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        lifeline: bool,
    ) -> Finished:
        assert lifeline
        seen.append((argv, env, timeout))
        return Finished(argv=tuple(argv), returncode=0, stdout="", stderr="")

    environ = {"PATH": "/bin", "PYTHONHOME": "/x", "LD_LIBRARY_PATH": "/y"}
    found = verify("/t/python", driver=None, runner=runner, environ=environ, plain=True)
    assert found.verdict == "crashed"
    [(argv, env, timeout)] = seen
    names = [Path(word).name for word in argv]
    scratch = names.pop(4)
    assert names == [
        *("python", "-B", "smoke.py", "--scratch", "--lifeline", "--provider=cuda", "--plain"),
        *("conv.onnx", "matmul.onnx", "fft.onnx"),
    ]
    assert not Path(tempfile.gettempdir(), scratch).exists()
    folder = str(Path(tempfile.gettempdir(), scratch))
    chosen = {"PATH": "/bin", "LD_LIBRARY_PATH": "/y", "PYTHONDONTWRITEBYTECODE": "1"}
    assert env == chosen | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
    assert timeout == 600


def compile_library(path: Path, *links: Path, soname: str | None = None) -> None:
    """Compile an empty library that links others by their soname."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text("int nothing_at_all;\n")
    options = [f"-Wl,-soname,{soname or path.name}", "-Wl,--no-as-needed"]
    argv = ["gcc", "-shared", "-fPIC", *options, "-o", str(path), str(source), *map(str, links)]
    subprocess.run(argv, check=True)
    source.unlink()


@pytest.fixture
def wheels(site: Path) -> Path:
    """The libraries of NVIDIA's wheels, empty, that a provider links; cuBLAS needs cuBLASLt."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("needs gcc, on Linux")
    nvidia = site / "nvidia"
    lt = nvidia / "lt" / "lib" / "libcublasLt.so.98"
    compile_library(lt)
    compile_library(nvidia / "cublas" / "lib" / "libcublas.so.98", lt)
    compile_library(nvidia / "cudnn" / "lib" / "libcudnn.so.98")
    return nvidia


def provider(package: Path, wheels: Path, *names: str) -> None:
    links = [next(wheels.glob(f"*/lib/{name}")) for name in names]
    compile_library(package / "capi" / "libonnxruntime_providers_cuda.so", *links)


LOAD = "import ctypes; ctypes.CDLL(os.path.join(os.path.dirname(__file__), 'capi', '{}'))".format(
    "libonnxruntime_providers_cuda.so"
)


def test_what_the_provider_links_is_loaded_from_the_wheels(
    venv: Path, plant: Plant, wheels: Path
) -> None:
    package = plant(version="1.20.2", on_create=LOAD)
    provider(package, wheels, "libcublas.so.98", "libcudnn.so.98")

    found = check(venv)
    assert found.verdict == "works"
    assert found.helped == ("libcublas.so.98", "libcudnn.so.98")
    assert notes(found) == ["libraries-helped"]
    paths = {row.name: row.path for row in found.libraries}
    assert paths["libcublasLt.so.98"] == str(wheels / "lt" / "lib" / "libcublasLt.so.98")
    assert "libonnxruntime_providers_cuda.so" in paths

    plain = check(venv, plain=True)
    assert plain.helped == ()
    assert "libcublas.so.98: cannot open shared object file" in plain.evidence[2]
    assert "libcublas.so.98: cannot open shared object file" in str(plain.models[0].error)


def test_a_library_whose_own_needs_are_missing_is_missing(
    venv: Path, plant: Plant, wheels: Path
) -> None:
    provider(plant(version="1.20.2"), wheels, "libcublas.so.98")
    shutil.rmtree(wheels / "lt")
    rows = [line for line in check(venv).evidence if line.startswith("libcublas.so.98: ")]
    assert "libcublasLt.so.98: cannot open shared object file" in rows[0]


def test_releases_that_load_by_name_on_import_are_helped_before(
    venv: Path, plant: Plant, wheels: Path
) -> None:
    package = plant(version="1.14.1", more="\nfrom .capi import _ld_preload\n", on_create="pass")
    script = (
        'from ctypes import CDLL, RTLD_GLOBAL\n_a = CDLL("libcublas.so.98", mode=RTLD_GLOBAL)\n'
    )
    (package / "capi" / "_ld_preload.py").write_text(script)
    compile_library(package / "capi" / "libonnxruntime_providers_cuda.so")
    found = check(venv)
    assert (found.verdict, found.helped) == ("works", ("libcublas.so.98",))
    assert (wheels / "cublas").is_dir()
    assert "libcublas.so.98: cannot open" in check(venv, plain=True).evidence[0]


def test_a_provider_that_is_cut_off_is_left_to_onnxruntime(venv: Path, plant: Plant) -> None:
    target = plant() / "capi" / "libonnxruntime_providers_cuda.so"
    for content in (b"", b"\x7fELF" + b"\0" * 60, b"cuda" * 1000):
        target.write_bytes(content)
        assert check(venv).verdict == "works"


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_the_oldest_and_the_newest_target(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    venv = environments.make_venv(python, tmp_path / "other")
    site = environments.site_packages(venv)
    (site / "numpy.py").write_text(NUMPY)
    code = ONNXRUNTIME.format(version="1.19.2", on_create="pass", on_run="pass")
    (site / "onnxruntime.py").write_text(code)
    assert check(venv).verdict == "works"


@pytest.mark.online
def test_a_real_build_for_the_cpu(venv: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv")
    subprocess.run([uv, "pip", "install", "-q", "-p", venv, "onnxruntime==1.23.2"], check=True)
    found = check(venv)
    assert found.verdict == "cpu-fallback"
    conv, matmul, fft = found.models
    assert (conv.correct, matmul.correct, fft.correct) == (True, True, None)
    assert ("MatMul", "CPUExecutionProvider") in matmul.nodes
    assert "Rfft" in str(fft.error)
