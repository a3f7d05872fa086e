"""What of the user's environment reaches our own children, and what does not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import get_args

import environments
import pytest
from command import run_here

from ortgpu_fix.utils.child_environment import ChildPurpose, child_environment
from support.local_index import make_wheel
from support.standin_wheels import find_uv

PURPOSES: tuple[ChildPurpose, ...] = get_args(ChildPurpose)


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize(
    "name",
    [
        *("FORCE_COLOR", "TERM", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"),
        *("PIP_INDEX_URL", "UV_INDEX", "UV_CONFIG_FILE", "LD_SHOW_AUXV", "SECRET"),
    ],
)
def test_what_changes_how_a_child_behaves_or_prints_reaches_none(
    name: str, purpose: ChildPurpose
) -> None:
    assert name not in child_environment({name: "1", "PATH": "/bin"}, purpose)


@pytest.mark.parametrize(
    ("name", "purposes"),
    [
        *((name, PURPOSES) for name in ("PATH", "HOME", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR")),
        *((name, PURPOSES) for name in ("SystemRoot", "LOCALAPPDATA", "ProgramFiles(x86)")),
        ("PYTHONUSERBASE", ("look", "compute", "index")),
        ("PYTHONNOUSERSITE", ("look", "compute", "index")),
        *((name, ("compute",)) for name in ("CUDA_VISIBLE_DEVICES", "ORTGPU_FIX_AUTOLOAD")),
        *((name, ("compute",)) for name in ("OMP_NUM_THREADS", "NVIDIA_TF32_OVERRIDE")),
        *((name, ("index",)) for name in ("https_proxy", "NO_PROXY", "SSL_CERT_FILE", "NETRC")),
        *((name, ("index",)) for name in ("UV_CACHE_DIR", "UV_HTTP_TIMEOUT", "GNUPGHOME")),
        ("GIT_DIR", ("git",)),
    ],
)
def test_what_a_child_needs_reaches_it_and_no_other(
    name: str, purposes: tuple[ChildPurpose, ...]
) -> None:
    environ = {name: "value"}

    found = [
        purpose for purpose in PURPOSES if child_environment(environ, purpose).get(name) == "value"
    ]

    assert found == [purpose for purpose in PURPOSES if purpose in purposes]


def test_uv_does_not_colour_the_lock_that_is_read(tmp_path: Path) -> None:
    """As CI systems set it: a lock ended "No versions … fit"."""
    make_wheel(tmp_path, "packaging", "26.0")
    argv = [find_uv(), "pip", "compile", "--format", "pylock.toml", "--offline", "--no-index"]
    argv += ["--find-links", str(tmp_path), "--python", str(environments.own_base()), "-"]

    def printed(env: dict[str, str]) -> bytes:
        done = subprocess.run(argv, input=b"packaging", env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    theirs = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FORCE_COLOR": "1"}
    assert b"\x1b" in printed(theirs)
    assert b"\x1b" not in printed(child_environment(theirs, "index"))


def test_packages_in_a_user_base_of_the_users_are_seen(tmp_path: Path) -> None:
    """`PYTHONUSERBASE`: their CPU build is what this Python imports."""
    python = environments.own_base()
    asked = "import sys; print('lib/python%d.%d/site-packages' % sys.version_info[:2])"
    inner = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    site = tmp_path / "base" / inner.stdout.strip()
    site.mkdir(parents=True)
    environments.put(site, "onnxruntime", "1.22.1")

    def seen(**more: str) -> set[str]:
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **more}
        done = run_here("facts", "--json", "--python", str(python), cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        return {line.strip() for line in done.stdout.splitlines() if '"onnxruntime"' in line}

    assert '"name": "onnxruntime",' in seen(PYTHONUSERBASE=str(tmp_path / "base"))
    assert '"name": "onnxruntime",' not in seen()
