"""What others run over their repositories: the action of GitHub, and the hooks of pre-commit.

The steps of the action are run as the scripts that they are, in a clone with the history that a
pull request has there; the runner's own work (expressions, checkout) is done here by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from planted import MODULES
from ruamel.yaml import YAML

import synthetic

pytestmark = [
    pytest.mark.slow,
    pytest.mark.online,
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are for bash"),
]
ROOT = Path(__file__).parents[2]
BUMPS = ("1.26.0", "1.29.0")
"""The first is for CUDA 12, the second for CUDA 13."""
OLD_DRIVER = ("535.104.12", "12.2", "8.0")


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our repository, as a commit of another one that a tool can clone."""
    folder = tmp_path_factory.mktemp("program")
    for name in ("pyproject.toml", "README.md", "LICENSE", "action.yml", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder)
    for name in ("resolver", "data", "scripts/matrix"):
        skip = shutil.ignore_patterns("__pycache__", "compiled.jsonl")
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a lock, and the facts of two machines that run it.

    It has modules of names that a Python which looks there first would run.
    """
    folder = tmp_path / "project"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text("raise SystemExit('run out of the checkout')\n")
    git(folder, "init", "-q", "-b", "main")
    lock_at(folder, BUMPS[0])
    for name, (driver, cuda, gpu) in {
        "old": OLD_DRIVER,
        "new": ("580.65.06", "13.0", "8.0"),
    }.items():
        document = synthetic.document(driver=cuda, gpus=(gpu,))
        document["driver"]["version"] = driver
        (folder / f"{name}.json").write_text(json.dumps(document))
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def lock_at(folder: Path, version: str) -> None:
    rows = {"onnxruntime-gpu": version, "nvidia-cudnn-cu12": "9.10.2.21"}
    rows |= {"nvidia-cublas-cu12": "12.8.4.1", "nvidia-cuda-runtime-cu12": "12.8.90"}
    rows |= {"nvidia-cufft-cu12": "11.3.3.83", "nvidia-curand-cu12": "10.3.9.90"}
    rows |= {"nvidia-cuda-nvrtc-cu12": "12.8.93", "nvidia-nvjitlink-cu12": "12.8.93"}
    rows |= {"flatbuffers": "25.12.19", "numpy": "2.2.6", "packaging": "26.3", "protobuf": "7.36.2"}
    text = "".join(f'[[package]]\nname = "{name}"\nversion = "{at}"\n' for name, at in rows.items())
    (folder / "uv.lock").write_text(f"version = 1\n{text}")


def act(program: Path, project: Path, **inputs: str) -> tuple[list[int], str]:
    """Do the steps of the action; return how each ended but the first, and what they printed."""
    action: Any = YAML(typ="safe").load(program / "action.yml")
    home = program.parent / "runner"
    home.mkdir(exist_ok=True)
    given = {
        name: inputs.get(name, "" if name == "base" else row.get("default", ""))
        for name, row in action["inputs"].items()
    }
    codes, told = [], ""
    for step in action["runs"]["steps"]:
        if "base" in step.get("if", "") and not given["base"]:
            continue
        names = {
            name: value.split("inputs.")[1][:-3] for name, value in step.get("env", {}).items()
        }
        env = os.environ | {name: given[of] for name, of in names.items()}
        env |= {"RUNNER_TEMP": str(home), "GITHUB_ACTION_PATH": str(program), "LANG": "C.UTF-8"}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        if "GITHUB_ACTION_PATH" in step["run"] and (home / "ortgpu-fix").exists():
            continue
        done = subprocess.run(
            words, cwd=project, env=env, capture_output=True, text=True, check=False
        )
        told += done.stdout + done.stderr
        if "GITHUB_ACTION_PATH" in step["run"]:
            assert done.returncode == 0, told
        else:
            codes.append(done.returncode)
    return codes, told


def test_the_action_tells_whom_an_update_costs_the_gpu(program: Path, project: Path) -> None:
    base = git(project, "rev-parse", "HEAD")
    hosts = "old.json\nnew.json\n"
    whole, _ = act(program, project, lock="uv.lock", hosts=hosts, base=base, python="3.12")
    lock_at(project, BUMPS[1])
    broken, told = act(program, project, lock="uv.lock", hosts=hosts, base=base, python="3.12")
    first, new = act(program, project, lock="uv.lock", hosts="new.json", base="0" * 40)
    other, unknown = act(program, project, lock="old.json", hosts="new.json", base="1" * 40)

    assert whole == [0, 0]
    assert broken == [3, 1]
    assert "Required driver  525.60.13 → 580.65.06" in told
    assert "Machines that lose GPU support: 2" in told  # it lacks CUDA 13's libraries
    assert first[1] == 0
    assert "new branch, nothing to compare with" in new
    assert other[1] != 0
    assert "is new" not in unknown


def test_what_the_action_is_given_is_no_option_of_git(program: Path, project: Path) -> None:
    """`git fetch` would run what `--upload-pack` names."""
    git(project, "remote", "add", "origin", str(program))
    base = f"--upload-pack=touch {project / 'planted'};"
    (_, code), told = act(program, project, lock="uv.lock", hosts="new.json", base=base)

    assert not (project / "planted").exists()
    assert (code, "not a commit: --upload-pack" in told) == (2, True)


def test_the_hooks_of_pre_commit(program: Path, project: Path, tmp_path: Path) -> None:
    """The real pre-commit, which makes an environment of its own from the repository."""
    for name in MODULES:  # pre-commit itself would run them: it is `python -m pre_commit` there
        (project / f"{name}.py").unlink()
    revision = git(program, "rev-parse", "HEAD")
    diff = ["HEAD:uv.lock", "uv.lock", "--hosts", "old.json", "--hosts", "new.json"]
    lock = ["uv.lock", "--facts", "new.json", "--python", "3.12"]
    hooks = [{"id": "ortgpu-fix-diff", "args": diff}, {"id": "ortgpu-fix-lock", "args": lock}]
    repos = [{"repo": str(program), "rev": revision, "hooks": hooks}]
    (project / ".pre-commit-config.yaml").write_text(json.dumps({"repos": repos}))
    uvx = shutil.which("uvx") or "uvx"
    env = os.environ | {"PRE_COMMIT_HOME": str(tmp_path / "hooks"), "LANG": "C.UTF-8"}
    call = [uvx, "--python", sys.executable, "pre-commit"]

    def commit(message: str) -> subprocess.CompletedProcess[str]:
        git(project, "add", "-A")
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        words = ["git", *who, "commit", "-m", message]
        return subprocess.run(
            words, cwd=project, env=env, capture_output=True, text=True, check=False
        )

    subprocess.run([*call, "install"], cwd=project, env=env, check=True, capture_output=True)
    (project / "README").write_text("nothing of the lock\n")
    unconcerned = commit("two")
    lock_at(project, BUMPS[1])
    refused = commit("three")

    assert unconcerned.returncode == 0, unconcerned.stderr + unconcerned.stdout
    assert unconcerned.stderr.count("Skipped") == 2
    assert refused.returncode == 1
    assert "Machines that lose GPU support: 2" in refused.stderr
    assert (
        "new  ✗ worked before: nvidia-cudnn-cu13 and nvidia-cudnn-cu12 install the same files"
        in refused.stderr
    )
    assert "old  ✗ worked before: needs driver 580.65.06 or newer for CUDA 13" in refused.stderr
