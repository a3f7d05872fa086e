"""The sdist and the wheel: the same bytes from the same commit, and ready for `uvx` and `pipx`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from environments import path_without_ours

from support.first_steps import NOT_COPIED
from support.local_index import LocalIndex

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.online]


def copy(folder: Path) -> Path:
    """Make the repository anew in `folder`, as a clone has it."""
    return shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED, ".hypothesis"))


def built(source: Path, into: Path) -> dict[str, str]:
    """Build sdist and wheel; return their SHA-256 by name."""
    words = [sys.executable, "-m", "build", "--quiet", "--outdir", str(into), str(source)]
    subprocess.run(words, check=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in into.iterdir()}


def test_a_build_gives_the_same_bytes_anywhere_at_any_time(tmp_path: Path) -> None:
    first = built(copy(tmp_path / "a"), tmp_path / "first")
    other = copy(tmp_path / "elsewhere")
    for path in other.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)

    assert built(other, tmp_path / "second") == first
    assert sorted(Path(name).suffix for name in first) == [".gz", ".whl"]
    [archive] = (tmp_path / "first").glob("*.tar.gz")
    with tarfile.open(archive) as files:
        tops = {Path(name).parts[1] for name in files.getnames()}
    assert {
        "README.md",
        "LICENSE",
        "data",
        "pyproject.toml",
        "resolver",
        "scripts",
        "tests",
    } <= tops
    assert not {".git", ".venv-test", "dist"} & tops


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel."""
    folder = tmp_path_factory.mktemp("wheels")
    words = [
        sys.executable,
        "-m",
        "build",
        "--quiet",
        "--wheel",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(words, check=True)
    return folder


def ran(words: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as a user without an active environment does, in an empty folder."""
    outside = home / "project"
    outside.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    env |= {"HOME": str(home), "LANG": "C.UTF-8", "PATH": path_without_ours()}
    return subprocess.run(
        words, cwd=outside, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_uvx_runs_it_from_an_index(tmp_path: Path, wheels: Path) -> None:
    uv = shutil.which("uv")
    assert uv is not None
    with LocalIndex(wheels) as index:
        words = [uv, "tool", "run", "--index", index.url, "ortgpu-fix", "--facts", "example"]
        done = ran(words, tmp_path)

    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith("\nortgpu-fix --python /opt/app/.venv/bin/python --apply\n")


def test_pipx_runs_it_from_an_index(tmp_path: Path, wheels: Path) -> None:
    """Its own environment is not the one that somebody wants fixed."""
    pipx = tmp_path / "pipx"
    subprocess.run([sys.executable, "-m", "venv", pipx], check=True)
    subprocess.run([pipx / "bin/python", "-m", "pip", "install", "-q", "pipx"], check=True)
    with LocalIndex(wheels) as index:
        extra = f"--pip-args=--extra-index-url={index.url}"
        done = ran([str(pipx / "bin/pipx"), "run", extra, "ortgpu-fix"], tmp_path)

    assert done.returncode == 2, done.stderr
    assert "--python" in done.stdout + done.stderr
