"""The loader says once that another build is in the place of the set's, or that libraries went."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import environments
import pytest

from ortgpu_fix.companions.build import library_wheel, placeholder_wheel
from ortgpu_fix.companions.library_list import Entry
from ortgpu_fix.companions.loader import lost
from ortgpu_fix.matrix.load import companion_modules
from support.local_index import make_wheel
from support.pythons import find_python
from support.standin_wheels import clean_environment, find_uv

RELEASE = "1.26.0"
LIBRARY = "nvidia/cublas/lib/libcublas.so.12"
BINDINGS = """
class InferenceSession:
    def initialize_session(self, providers=(), options=(), disabled=()):
        pass
class OrtDevice:
    @staticmethod
    def cuda(): ...
def get_available_providers():
    return {providers}
"""
ONNXRUNTIME = """
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi._pybind_state import get_available_providers
__version__ = "{version}"
def get_device():
    return "CPU"
class InferenceSession:
    def __init__(self, path, sess_options=None, providers=None, provider_options=None):
        names = [row if isinstance(row, str) else row[0] for row in providers or ()]
        names = [name for name in names if name in C.get_available_providers()]
        C.InferenceSession().initialize_session(names)
"""
"""As onnxruntime's own: a provider that its build lacks is dropped with a warning."""
CPU, BOTH = ["CPUExecutionProvider"], ["CUDAExecutionProvider", "CPUExecutionProvider"]
ASKS = f"import onnxruntime; onnxruntime.InferenceSession('m.onnx', providers={BOTH})"
LISTS = "[['CUDAExecutionProvider', {}]]"


@pytest.fixture(params=["3.8", f"{sys.version_info[0]}.{sys.version_info[1]}"])
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make an environment with the set for onnxruntime-gpu 1.26.0."""
    found = find_python(request.param)
    if found is None:
        pytest.skip(f"no Python {request.param} on this machine")
    made = environments.make_venv(found, tmp_path / "a venv")
    site = environments.site_packages(made)
    entry = Entry(when="always", distribution="nvidia-cublas-cu12", path=LIBRARY)
    for wheel in (
        library_wheel(RELEASE, [entry], companion_modules()),
        placeholder_wheel(RELEASE),
    ):
        with zipfile.ZipFile(io.BytesIO(wheel.content)) as file:
            file.extractall(site)
    library = site / LIBRARY
    library.parent.mkdir(parents=True)
    if sys.platform == "win32":  # any DLL will do
        shutil.copy(Path(sys.base_prefix, "vcruntime140.dll"), library)
    else:
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    install(site, "onnxruntime_gpu", RELEASE, BOTH)
    return made


def install(site: Path, name: str, version: str, providers: list[str], tool: str = "") -> None:
    """Write a build of onnxruntime over what is there, as an installer does."""
    capi = site / "onnxruntime/capi"
    capi.mkdir(parents=True, exist_ok=True)
    (capi / "__init__.py").write_text("")
    (capi / "_pybind_state.py").write_text(BINDINGS.format(providers=providers))
    (capi.parent / "__init__.py").write_text(ONNXRUNTIME.format(version=version))
    if len(providers) > 1:
        (capi / "libonnxruntime_providers_cuda.so").write_bytes(b"")
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "RECORD").write_text("onnxruntime/__init__.py,,\n")
    if tool:
        (metadata / "INSTALLER").write_text(tool + "\n")
        os.utime(metadata, (2_000_000_000, 2_000_000_000))  # after what was there


def said(python: Path, code: str, **environ: str) -> tuple[int, str]:
    """Run code there; return the exit code and what it says on standard error."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [python, "-c", code], env=kept | environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def came(python: Path) -> str:
    quote = '"' if sys.platform == "win32" else "'"  # there is a blank in it
    prefix = f"{quote}{python.parents[1]}{quote}"
    return (
        "ortgpu-fix: onnxruntime 1.32.0 (by uv), built without CUDA, has replaced"
        " onnxruntime-gpu 1.26.0. To restore the environment, run:"
        f" ortgpu-fix --python {prefix} --apply\n"
    )


@pytest.mark.parametrize(
    "code",
    [ASKS, "import onnxruntime; onnxruntime.get_available_providers(); onnxruntime.get_device()"],
)
def test_a_whole_set_is_silent(python: Path, code: str) -> None:
    assert said(python, code) == (0, "")


@pytest.mark.parametrize(
    "code",
    [
        ASKS + f"; onnxruntime.InferenceSession('n.onnx', None, {BOTH})",
        f"import onnxruntime; onnxruntime.InferenceSession('m.onnx', None, {LISTS})",
        "import onnxruntime; onnxruntime.get_device()",
    ],
)
def test_the_build_for_cpus_that_came_is_named_once_with_the_way_back(
    python: Path, code: str
) -> None:
    install(environments.site_packages(python), "onnxruntime", "1.32.0", CPU, "uv")

    assert said(python, code) == (0, came(python))


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_who_brought_it_is_named_where_the_real_tool_did(
    python: Path, tool: str, tmp_path: Path
) -> None:
    if tool == "pip" and environments.site_packages(python).parent.name == "python3.8":
        pytest.skip("pip of today does not work on that")
    files: dict[str, str | bytes] = {
        "onnxruntime/__init__.py": ONNXRUNTIME.format(version="1.32.0"),
        "onnxruntime/capi/__init__.py": "",
        "onnxruntime/capi/_pybind_state.py": BINDINGS.format(providers=CPU),
    }
    wheel = make_wheel(tmp_path / "wheels", "onnxruntime", "1.32.0", files=files)
    uv = [find_uv(), "pip", "install", "-q", "--no-config", "--offline", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index"]
    command = [*(uv if tool == "uv" else pip), "-U", str(wheel)]
    subprocess.run(command, check=True, env=clean_environment())

    assert said(python, ASKS) == (0, came(python).replace("(by uv)", f"(by {tool})"))


def test_who_wants_the_cpu_hears_nothing(python: Path) -> None:
    install(environments.site_packages(python), "onnxruntime", "1.32.0", CPU, "uv")

    assert said(
        python, f"import onnxruntime; onnxruntime.InferenceSession('m.onnx', providers={CPU})"
    ) == (0, "")
    assert said(python, ASKS, ORTGPU_FIX_NOTICE="0") == (0, "")
    assert said(python, ASKS, ORTGPU_FIX_AUTOLOAD="0") == (0, "")


def test_a_service_that_requires_cuda_gets_an_error_that_says_what_came(python: Path) -> None:
    """Onnxruntime drops a provider that it lacks before it begins a session."""
    install(environments.site_packages(python), "onnxruntime", "1.32.0", CPU, "uv")
    code, text = said(python, ASKS, ORTGPU_FIX_REQUIRE="cuda")

    assert code == 1
    assert text.count("cannot use it (ORTGPU_FIX_REQUIRE=cuda): onnxruntime 1.32.0 (by uv)") == 2
    assert came(python).removeprefix("ortgpu-fix: ").strip() in text


def test_a_session_that_names_no_provider_asked_where_a_service_gives_it_cuda(
    python: Path,
) -> None:
    install(environments.site_packages(python), "onnxruntime", "1.32.0", CPU, "uv")
    names_none = "import onnxruntime; onnxruntime.InferenceSession('m.onnx'{})"
    own = ", Own()); print(1"
    begin = "class Own:\n    def has_providers(self): return True\n"
    both = {"ORTGPU_FIX_REQUIRE": "cuda", "ORTGPU_FIX_PROVIDERS": "cuda"}

    code, text = said(python, names_none.format(""), ORTGPU_FIX_PROVIDERS="cuda")
    assert (code, text.splitlines()[0] + "\n") == (0, came(python))
    code, text = said(python, names_none.format(""), **both)
    assert (code, "cannot use it (ORTGPU_FIX_REQUIRE=cuda): onnxruntime 1.32.0" in text) == (
        1,
        True,
    )
    for options in (own, own.replace(", ", ", sess_options=")):
        code, text = said(python, begin + names_none.format(options), **both)
        assert "has replaced" not in text
    code, text = said(python, names_none.format(f", None, {CPU}"), **both)
    assert (code, text) == (0, "")


def test_another_release_that_came_is_named(python: Path) -> None:
    site = environments.site_packages(python)
    (site / f"onnxruntime_gpu-{RELEASE}.dist-info").rename(site / "gone")
    install(site, "onnxruntime_gpu", "1.31.1", BOTH, "pip")
    code, text = said(python, ASKS)

    assert code == 0
    came = "ortgpu-fix: onnxruntime-gpu 1.31.1 (by pip) has replaced onnxruntime-gpu"
    assert text.startswith(came)
    assert text.count("\n") == 1
    service = {"ORTGPU_FIX_REQUIRE": "cuda"}
    assert "cannot use it" not in said(python, ASKS, **service)[1]


def test_files_that_nobody_claims_are_named_by_their_folder(python: Path) -> None:
    site = environments.site_packages(python)
    (site / "onnxruntime/capi/_pybind_state.py").write_text(BINDINGS.format(providers=CPU))
    _, text = said(python, ASKS)

    built = "built without CUDA, has replaced"
    begin = f"ortgpu-fix: the onnxruntime in {site / 'onnxruntime'}, {built}"
    assert text.startswith(begin)
    (site / f"onnxruntime_gpu-{RELEASE}.dist-info").rename(site / "gone")
    assert said(python, ASKS)[1].startswith(begin)


def test_libraries_that_went_are_named(python: Path) -> None:
    (environments.site_packages(python) / LIBRARY).unlink()
    code, text = said(python, ASKS + "; " + ASKS)

    assert code == 0
    assert "CUDA libraries of this environment are missing: libcublas.so.12. To restore" in text
    assert text.count("\n") == 1
    wants_none = f"import onnxruntime; onnxruntime.InferenceSession('m.onnx', None, {CPU})"
    assert said(python, wants_none) == (0, "")


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.parametrize("version", ["1.22.1", "1.32.0"])
def test_the_real_build_for_cpus_is_told_by_the_real_onnxruntime(
    python: Path, version: str
) -> None:
    """It drops CUDA before it begins the session: the line is all that is left of the wish."""
    if environments.site_packages(python).parent.name == "python3.8":
        pytest.skip("its last onnxruntime is 1.19")
    shutil.rmtree(environments.site_packages(python) / "onnxruntime")
    uv = [find_uv(), "pip", "install", "-q", "--no-config", "--python", str(python)]
    subprocess.run([*uv, f"onnxruntime=={version}"], check=True, env=clean_environment())
    model = Path(__file__).parents[1] / "models/half.onnx"
    asks = ASKS.replace("m.onnx", str(model)) + "; print(onnxruntime.get_device())"
    code, text = said(python, asks)

    assert code == 0
    assert text.count("ortgpu-fix: ") == 1
    assert came(python).replace("1.32.0", version).strip() in text
    code, text = said(python, asks, ORTGPU_FIX_REQUIRE="cuda")
    assert (code, "cannot use it (ORTGPU_FIX_REQUIRE=cuda)" in text) == (1, True)


@pytest.mark.parametrize("there", [True, False])
def test_a_plugin_beside_onnxruntime_is_the_sets_own(python: Path, *, there: bool) -> None:
    """CUDA may be registered later: that the plain onnxruntime has none is no loss."""
    site = environments.site_packages(python)
    shutil.rmtree(site / f"onnxruntime_gpu-{RELEASE}.dist-info")
    (site / "_ortgpu_fix_libraries/release.txt").write_text("onnxruntime 1.32.0\n")
    install(site, "onnxruntime", "1.32.0" if there else "1.33.0", CPU, "uv")
    code, text = said(python, ASKS)

    assert code == 0
    assert ("onnxruntime 1.33.0 (by uv), built without CUDA, has replaced onnxruntime 1.32.0"
            in text) is not there  # fmt: skip
    assert there is not bool(text)


def test_the_way_back_can_be_pasted_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        windows.setattr(sys, "prefix", r"C:\my env")
        said = lost.way_back()

    assert said.endswith(r': ortgpu-fix --python "C:\my env" --apply')
