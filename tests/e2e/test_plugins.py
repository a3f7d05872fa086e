"""onnxruntime with CUDA as a plugin: the real onnxruntime 1.32.0 and the real nvidia wheels.

The plugin is made up: `stubs/plugin.c`, compiled here against the public headers of onnxruntime
that Debian ships, linked to libcudart.so.12 as one for CUDA is, and packed as upstream packs its
own (a module with `get_library_path`, `get_ep_name`). It computes nothing, and on a machine without
a GPU offers the processor as its device where a test asks for that. So is the build that has it
within: onnxruntime 1.32.0's wheel with that library in `capi`, and with the `if` of its
`__init__.py` changed that looks whether the build has one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import environments
import pytest
from drivers import A100, compile_stubs, simulate

from support.debian_archive import DebianArchive
from support.local_index import make_wheel
from support.prover import MODEL, Prover, call
from support.pythons import find_python

pytestmark = [*environments.REAL_WHEELS, environments.NEEDS_GCC]
LIBRARY = "libonnxruntime_providers_cuda.so"
SOURCE = Path(__file__).parents[1] / "stubs" / "plugin.c"
MODULE = f"""
import os
def get_library_path():
    return os.path.join(os.path.dirname(__file__), "{LIBRARY}")
def get_ep_name():
    return "CUDAExecutionProvider"
"""
REGISTER = """
import onnxruntime as o, onnxruntime_ep_cuda as plugin
o.register_execution_provider_library(plugin.get_ep_name(), plugin.get_library_path())
print("registered")
"""
SESSION = (
    REGISTER
    + """
import sys
options = o.SessionOptions()
devices = [row for row in o.get_ep_devices() if row.ep_name == plugin.get_ep_name()]
options.add_provider_for_devices(devices, {})
o.InferenceSession(sys.argv[1], options)
"""
)
LOADED = 'print("libcudart" in open("/proc/self/maps").read())'
MACHINE = ("--driver", "580.95.05", "--gpu", "8.0", "--allow", "system")


@pytest.fixture(scope="module")
def prover(tmp_path_factory: pytest.TempPathFactory) -> Prover:
    return Prover(tmp_path_factory.mktemp("plugins"), keep=False)


@pytest.fixture(scope="module")
def library(prover: Prover) -> Path:
    """Compile the plugin against the real library of CUDA's runtime."""
    runtime = prover.work / "runtime"
    prover.uv("pip", "install", "--target", runtime, "nvidia-cuda-runtime-cu12==12.8.90")
    archive = DebianArchive(prover.work / "apt", ["forky", "sid"])
    if not archive.can_be_had:
        pytest.skip("the archive of Debian cannot be reached")
    headers = archive.unpack(["libonnxruntime-dev"], prover.work / "headers")
    made = prover.work / LIBRARY
    links = next(runtime.rglob("libcudart.so.12"))
    options = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,--no-undefined"]
    includes = ["-I", str(headers / "usr/include/onnxruntime")]
    subprocess.run(["gcc", *options, *includes, SOURCE, "-o", made, links], check=True)
    return made


def environment(prover: Prover, folder: Path, *wheels: str | Path) -> Path:
    """Make an environment with these wheels."""
    prover.uv("venv", "--python", find_python("3.11") or "", folder)
    python = folder / "bin" / "python"
    prover.uv("pip", "install", "--python", python, "numpy<2.4", *wheels)
    return python


def asked(prover: Prover, python: Path, *words: str, code: int) -> dict[str, Any]:
    """Run our own program on it for a machine with an A100; return its document."""
    program = Path(sys.executable).with_name("ortgpu-fix")
    machine = () if "undo" in words else MACHINE
    done = call(program, "--python", python, *machine, "--json", *words, check=False,
                environ=prover.environ)  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def files(python: Path) -> Mapping[str, bytes]:
    """Return what is in the environment, but for what Python compiles as it goes."""
    site = environments.site_packages(python)
    return {
        str(path.relative_to(site)): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def run(prover: Prover, python: Path, code: str) -> str:
    done = call(python, "-c", code, check=False, environ=prover.environ)
    return str(done.stdout + done.stderr)


@pytest.fixture(scope="module")
def wheel(prover: Prover, library: Path) -> Path:
    files: dict[str, str | bytes] = {
        "onnxruntime_ep_cuda/__init__.py": MODULE,
        f"onnxruntime_ep_cuda/{LIBRARY}": library.read_bytes(),
    }
    return make_wheel(prover.work, "onnxruntime-ep-cuda12", "0.1.0", files=files)


def test_a_plugin_is_judged_completed_loaded_and_undone(prover: Prover, wheel: Path) -> None:
    """The plan was to take onnxruntime out and to put onnxruntime-gpu 1.26.0 in its place."""
    python = environment(prover, prover.work / "apart", "onnxruntime==1.32.0", wheel)
    before = files(python)
    assert "libcudart.so.12: cannot open shared object file" in run(prover, python, REGISTER)

    plan = asked(prover, python, code=1)

    assert [row["name"] for row in plan["install"]] == ["nvidia-cuda-runtime-cu12"]
    assert plan["uninstall"] == []
    kept = {row["name"]: row["index"] for row in plan["selection"]["packages"]}
    assert kept["onnxruntime"] == kept["onnxruntime-ep-cuda12"] == "installed"
    done = asked(prover, python, "--apply", "--yes", code=0)
    assert done["verification"]["verdict"] in {"no-driver", "no-gpu"}
    assert run(prover, python, REGISTER) == "registered\n"
    assert run(prover, python, f"import onnxruntime\n{LOADED}") == "False\n"
    assert run(prover, python, f"{REGISTER}{LOADED}") == "registered\nTrue\n"
    assert asked(prover, python, code=0)["verdict"] == "healthy"
    asked(prover, python, "undo", "--yes", code=0)
    assert files(python) == before


def test_one_within_onnxruntime_is_completed_and_loaded_at_its_import(
    prover: Prover, library: Path
) -> None:
    prover.uv("pip", "install", "--target", prover.work / "real", "--no-deps",
              "--python", find_python("3.11") or "", "onnxruntime==1.32.0")  # fmt: skip
    folder = prover.work / "real"
    module = folder / "onnxruntime" / "__init__.py"
    text = module.read_text(encoding="utf-8")
    looks = '", cuda-plugin-ep=" not in get_build_info()'
    assert looks in text
    module.unlink()  # uv's cache has the same file
    module.write_text(text.replace(looks, "False"), encoding="utf-8")
    shutil.copy(library, folder / "onnxruntime" / "capi")
    contents = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "onnxruntime").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    wheel = make_wheel(prover.work, "onnxruntime", "1.32.0", files=contents)
    assert zipfile.is_zipfile(wheel)
    python = environment(prover, prover.work / "within", wheel, "flatbuffers", "protobuf")

    plan = asked(prover, python, code=1)

    assert [row["name"] for row in plan["install"]] == ["nvidia-cuda-runtime-cu12"]
    assert [row["code"] for row in plan["findings"] if row["code"] == "build-kept"]
    asked(prover, python, "--apply", "--yes", code=0)
    assert run(prover, python, f"import onnxruntime\n{LOADED}") == "True\n"
    assert asked(prover, python, code=0)["verdict"] == "healthy"


def test_where_the_nodes_of_a_plugin_ran_is_what_counts(
    prover: Prover, wheel: Path, tmp_path: Path
) -> None:
    """It offers a device, and a session lists it; every node is left to the CPU."""
    python = environment(prover, prover.work / "nodes", "onnxruntime==1.32.0", wheel,
                         "nvidia-cuda-runtime-cu12==12.8.90")  # fmt: skip
    (stubs := tmp_path / "stubs").mkdir()
    driver = simulate(
        compile_stubs(stubs), tmp_path / "driver", release="580.95.05", cuda=13000, cards=[A100]
    )
    program = Path(sys.executable).with_name("ortgpu-fix")

    def verified(**environ: str) -> tuple[int, dict[str, Any]]:
        done = call(program, "verify", "--json", "--python", python, check=False,
                    environ=prover.environ | driver | environ)  # fmt: skip
        return done.returncode, json.loads(done.stdout)

    code, without = verified()
    assert (code, without["verdict"]) == (6, "no-gpu"), without
    code, on_cpu = verified(ORTGPU_PLUGIN_ON_CPU="1")
    assert (code, on_cpu["verdict"]) == (6, "cpu-fallback"), on_cpu
    runtime = next(environments.site_packages(python).rglob("libcudart.so.12")).parent
    found = {
        "ORTGPU_PLUGIN_ON_CPU": "1",
        "LD_LIBRARY_PATH": f"{driver['LD_LIBRARY_PATH']}:{runtime}",
    }
    (app := tmp_path / "app.py").write_text(SESSION)
    done = call(program, "run", "--json", "--python", python, "--", "python", app, MODEL,
                check=False, environ=prover.environ | driver | found)  # fmt: skip
    [session] = json.loads(done.stdout.splitlines()[-1])["sessions"]
    assert session["verdict"] == "got"
    assert session["asked"] == [{"name": "CUDAExecutionProvider", "options": {}}]
    assert session["got"] == ["CUDAExecutionProvider", "CPUExecutionProvider"]
