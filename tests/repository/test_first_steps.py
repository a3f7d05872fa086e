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
from support.local_index import LocalIndex

ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_ensurepip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Python without ensurepip, as Debian's is without python3-venv."""
    real = first_steps._succeeds
    monkeypatch.setattr(
        first_steps, "_succeeds", lambda *words: "ensurepip" not in words and real(*words)
    )


@pytest.mark.usefixtures("no_ensurepip")
def test_an_index_that_cannot_be_reached_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")

    with pytest.raises(first_steps.CannotSetUpError, match=r"apt install python3-venv.*PIP_INDEX"):
        first_steps.make_venv(tmp_path / "venv")


@pytest.mark.usefixtures("no_ensurepip")
def test_another_pip_than_the_one_known_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / first_steps.PIP[0]).write_bytes(b"another")
    with LocalIndex(wheels) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)

        with pytest.raises(first_steps.CannotSetUpError, match="gives another pip-"):
            first_steps.make_venv(tmp_path / "venv")


@pytest.mark.usefixtures("no_ensurepip")
def test_an_index_without_that_pip_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "pip-1.0-py3-none-any.whl").write_bytes(b"old")
    with LocalIndex(tmp_path / "wheels") as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)

        with pytest.raises(first_steps.CannotSetUpError, match=r"pip-.*whl is not there"):
            first_steps.make_venv(tmp_path / "venv")


def test_a_python_that_is_too_old_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_steps, "OLDEST", (9, 9))

    with pytest.raises(first_steps.CannotSetUpError, match=r"Python 3\.10 or newer"):
        first_steps.run_where_it_can_write(ROOT / "scripts" / "main_job.py")


@pytest.mark.slow
@pytest.mark.online
def test_a_failed_attempt_is_begun_anew(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    kept = venv / "kept"
    kept.touch()

    python = first_steps.make_venv(venv)

    assert not kept.exists()
    subprocess.run([python, "-m", "pip", "--version"], check=True)
    kept.touch()
    assert first_steps.make_venv(venv) == python
    assert kept.exists()


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_the_main_job_runs_on_a_bare_debian(tmp_path: Path, suite: str) -> None:
    """As root; and as nobody, without HOME, in a clone that only root may write."""
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        pytest.skip("needs mmdebstrap and root")
    root = make_debian(tmp_path / suite, run, suite, "python3,git,ca-certificates")
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
    handed = {"PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "PIP_INDEX_URL"}
    env = {name: value for name, value in os.environ.items() if name in handed}
    env["PATH"] = "/usr/bin:/bin"
    for user in ("root", "nobody"):
        done = subprocess.run(
            in_root(root, "python3", "/clone/scripts/main_job.py", user=user),
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr
        assert "onnxruntime-gpu" in done.stdout
        assert ("working in a copy" in done.stdout) == (user == "nobody")


def run(*words: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
