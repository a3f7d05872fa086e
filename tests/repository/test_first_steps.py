"""The README's commands begin on machines that have Python and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import first_steps
from support.debian_image import in_root, make_debian

ROOT = Path(__file__).parents[2]
NO_PYTHONS = {
    "python3.8": "echo 'pyenv: python3.8: command not found' >&2; exit 127",
    "python3.9": "echo 'Fatal Python error: init_fs_encoding' >&2; exit 1",
    "python3.10": "exec sleep 86400",
}
"""What may stand on PATH under such a name: a shim, one that is broken, one that hangs."""


def test_a_python_that_is_too_old_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_steps, "OLDEST", (9, 9))

    with pytest.raises(first_steps.CannotSetUpError, match=r"Python 3\.10 or newer"):
        first_steps.run_where_it_can_write(ROOT / "scripts" / "main_job.py")


@pytest.mark.slow
@pytest.mark.online
def test_the_main_job_runs_on_a_bare_debian(tmp_path: Path) -> None:
    """As nobody, without HOME, in a clone that only root may write or read whole."""
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        pytest.skip("needs mmdebstrap and root")
    root = make_debian(tmp_path / "debian", run, "bookworm", "python3,git,ca-certificates")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (root / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / "clone" / name)
    (root / "clone" / ".hypothesis").mkdir(mode=0o700)
    (root / "shims").mkdir()
    for name, does in NO_PYTHONS.items():
        (root / "shims" / name).write_text(f"#!/bin/sh\n{does}\n")
        (root / "shims" / name).chmod(0o755)
    handed = {"PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "PIP_INDEX_URL"}
    env = {name: value for name, value in os.environ.items() if name in handed}
    env["PATH"] = "/shims:/usr/bin:/bin"
    done = subprocess.run(
        in_root(root, "python3", "/clone/scripts/main_job.py", user="nobody"),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "onnxruntime-gpu" in done.stdout
    assert done.stdout.endswith("/clone/.venv/bin/ortgpu-fix --python ENVIRONMENT\n")
    assert "working in a copy" in done.stdout


def run(*words: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_step_that_takes_long_shows_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    slow = "import sys, time; time.sleep(4.5); sys.exit('no index')"

    code, complaints = first_steps._run(sys.executable, "-c", slow)

    assert (code, complaints) == (1, "no index\n")
    assert capsys.readouterr().err.splitlines()[:2] == ["Still working: 2 s", "Still working: 4 s"]
