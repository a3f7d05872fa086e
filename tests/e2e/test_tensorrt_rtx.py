"""`--provider tensorrt-rtx` with NVIDIA's real wheels and the real onnxruntime, with pip and uv.

Nothing is made up. Where this runs there is no driver, so a session is as far as it does not go.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import environments
import pytest

from support.prover import Prover, call
from support.pythons import find_python

pytestmark = [*environments.REAL_WHEELS, pytest.mark.timeout(900)]
WISH = ("--provider", "tensorrt-rtx")
STEM = "onnxruntime-ep-nv-tensorrt-rtx-cu"
APPLICATION = """
import onnxruntime, onnxruntime_ep_nv_tensorrt_rtx as plugin
try:
    name, library = plugin.get_ep_name(), plugin.get_library_path()
    onnxruntime.register_execution_provider_library(name, library)
except Exception as error:
    print(error)
print({line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line})
"""


class Case(NamedTuple):
    engine: str
    installed: str
    driver: str
    cuda: str


CASES = (Case("pip", "onnxruntime-gpu==1.26.0", "535.104.12", "12"),)


@pytest.fixture(scope="module")
def prover(tmp_path_factory: pytest.TempPathFactory) -> Prover:
    return Prover(tmp_path_factory.mktemp("rtx"), keep=False)


@pytest.fixture
def made(prover: Prover) -> Iterator[Path]:
    yield prover.work / "env"
    shutil.rmtree(prover.work / "env", ignore_errors=True)


def files(python: Path) -> dict[str, bytes | str]:
    """Return what is in the environment, but for what Python compiles as it goes."""
    site = environments.site_packages(python)
    return {
        str(path.relative_to(site)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in site.rglob("*")
        if (path.is_symlink() or path.is_file()) and path.suffix != ".pyc"
    }


def run(python: Path, environ: dict[str, str], *words: str, code: int) -> dict[str, Any]:
    program = Path(sys.executable).with_name("ortgpu-fix")
    done = call(program, *words, "--python", python, "--json", check=False, environ=environ)
    assert done.returncode == code, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.engine)
def test_the_real_wheels_are_planned_applied_registered_and_undone(
    case: Case, prover: Prover, made: Path
) -> None:
    prover.uv("venv", "--seed", "--python", find_python("3.11") or "", made)
    python = made / "bin" / "python"
    prover.uv("pip", "install", "--python", python, "numpy<2.4", case.installed)
    before = files(python)
    environ = {**prover.environ}
    if case.engine == "pip":
        environ["PATH"] = os.pathsep.join(
            folder
            for folder in environ["PATH"].split(os.pathsep)
            if not Path(folder, "uv").exists()
        )
    machine: tuple[str, ...] = ("--driver", case.driver, "--gpu", "8.9", *WISH)

    plan = run(python, environ, *machine, code=1)

    assert f"{STEM}{case.cuda}" in {row["name"] for row in plan["install"]}
    assert all(row["sha256"] for row in plan["install"])
    gpu_build = "gpu" in case.installed
    assert plan["uninstall"] == (["onnxruntime-gpu"] if gpu_build else [])
    if gpu_build:
        assert "cuda-lost" in {row["code"] for row in plan["findings"]}
        refused = run(python, environ, *machine, "--apply", "--yes", code=2)
        assert refused["error"]["code"] == "would-lose"
        machine = (*machine, "--allow", "provider")
    done = run(python, environ, *machine, "--apply", "--yes", code=0)
    assert done["verification"]["verdict"] in {"no-driver", "no-gpu", "works"}
    assert run(python, environ, *machine, code=0)["verdict"] == "healthy"
    program = Path(sys.executable).with_name("ortgpu-fix")
    checked = call(program, "--check", *machine, "--python", python, environ=environ)
    assert (checked.returncode, checked.stdout[:2]) == (0, "OK")
    said = call(python, "-c", APPLICATION, environ=environ).stdout
    assert f"libcudart.so.{case.cuda}" in said  # loaded when the plugin is registered
    assert "libcudart.so" not in said.partition("{")[0]  # what is missing is the driver's
    verified = run(python, environ, "verify", *WISH, code=6)
    assert verified["verdict"] in {"no-driver", "no-gpu"}
    run(python, environ, "undo", "--yes", code=0)
    run(python, environ, "undo", "--forget", "--yes", code=0)
    assert files(python) == before
