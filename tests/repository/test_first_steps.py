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
NO_PYTHONS = {
    "python3.8": "echo 'pyenv: python3.8: command not found' >&2; exit 127",
    "python3.9": "echo 'Fatal Python error: init_fs_encoding' >&2; exit 1",
    "python3.10": "exec sleep 86400",
}
"""What may stand on PATH under such a name: a shim, one that is broken, one that hangs."""


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


@pytest.fixture
def of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a clone that may not be written, with a script that ends with 3."""
    script = tmp_path / "clone" / "scripts" / "job.py"
    script.parent.mkdir(parents=True)
    script.write_text("raise SystemExit(3)")
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != script.parents[1] and real(path, mode)
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return script


def test_a_clone_of_another_user_is_copied_without_what_its_runs_left(of_another: Path) -> None:
    (of_another.parents[1] / ".hypothesis").mkdir()
    (of_another.parents[1] / ".hypothesis" / "not-readable").symlink_to("nowhere")
    (of_another.parents[1] / "read-me").touch()

    with pytest.raises(SystemExit) as ended:
        first_steps.run_where_it_can_write(of_another)

    assert ended.value.code == 3
    [copy] = of_another.parents[2].glob("cache/*/clone")
    assert sorted(path.name for path in copy.iterdir()) == ["read-me", "scripts"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users of Unix")
def test_who_has_no_cache_has_one_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = first_steps._own_folder()

    assert first_steps._own_folder() == first
    first.chmod(0o777)  # others may write there: it is somebody's trap
    assert first_steps._own_folder() != first
    first.rmdir()
    first.symlink_to(tmp_path)
    assert first_steps._own_folder() != first


def test_a_clone_that_cannot_be_copied_is_one_sentence(of_another: Path) -> None:
    (of_another.parents[1] / "not-readable").symlink_to("nowhere")

    with pytest.raises(first_steps.CannotSetUpError, match=r"clone/not-readable: .*git clone"):
        first_steps.run_where_it_can_write(of_another)


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
    """As root; and as nobody, without HOME, in a clone that only root may write or read whole."""
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
    (root / "clone" / ".hypothesis").mkdir(mode=0o700)
    (root / "shims").mkdir()
    for name, does in NO_PYTHONS.items():
        (root / "shims" / name).write_text(f"#!/bin/sh\n{does}\n")
        (root / "shims" / name).chmod(0o755)
    handed = {"PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "PIP_INDEX_URL"}
    env = {name: value for name, value in os.environ.items() if name in handed}
    env["PATH"] = "/shims:/usr/bin:/bin"
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
        assert done.stdout.endswith("/clone/.venv/bin/ortgpu-fix --python ENVIRONMENT\n")
        assert ("working in a copy" in done.stdout) == (user == "nobody")


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
