"""The text of a lock out of a file, and out of a commit of git."""

from __future__ import annotations

import subprocess
from pathlib import Path, PureWindowsPath

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.guests.machines import lock_text
from ortgpu_fix.guests.machines.lock_text import mentions, read_included, read_lock_text
from ortgpu_fix.utils.process import Finished


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A commit has another `uv.lock` than the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uv.lock").write_bytes(b"one\r\ntwo\rthree\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.autocrlf=false"]
    for words in (["init", "-q"], ["add", "uv.lock"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], check=True)
    (tmp_path / "uv.lock").write_text("new\n")
    return tmp_path


def test_a_file_of_a_commit(repository: Path) -> None:
    assert read_lock_text("HEAD:uv.lock") == "one\ntwo\nthree\n"
    assert read_lock_text("uv.lock") == "new\n"
    (repository / "HEAD:uv.lock").write_text("a file of that name\n")
    assert read_lock_text("HEAD:uv.lock") == "a file of that name\n"


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("HEAD:absent.lock", "absent.lock"),
        ("HEAD:", "No such file"),
        ("-p:uv.lock", "No such file"),
    ],
)
def test_what_no_commit_has(name: str, said: str) -> None:
    with pytest.raises(Error) as caught:
        read_lock_text(name)

    assert caught.value.code == "lock-unreadable"
    assert caught.value.values["file"] == name
    assert said in str(caught.value.values["cause"])
    assert "\n" not in str(caught.value.values["cause"])


class OfWindows(type(Path())):  # type: ignore[misc]
    drive = property(lambda self: PureWindowsPath(str(self)).drive)


@pytest.mark.parametrize("name", ["c:gone.lock", "\\\\host\\share\\HEAD:uv.lock"])
def test_a_drive_of_windows_is_no_revision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_text, "Path", OfWindows)
    with pytest.raises(Error) as caught:
        read_lock_text(name)

    assert caught.value.values["cause"] == "No such file or directory"


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Error) as caught:
        read_lock_text("HEAD:uv.lock")
    assert caught.value.values["cause"] == "git: No such file or directory"


def test_a_git_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    quiet = Finished(("git",), 1, "", "")
    monkeypatch.setattr(lock_text, "run", lambda *_, **__: quiet)
    with pytest.raises(Error) as caught:
        read_lock_text("HEAD:uv.lock")
    assert caught.value.values["cause"] == "git: 1"


def test_what_a_requirements_file_includes(repository: Path) -> None:
    """`-r gpu.txt` was skipped: "Nothing changes for the GPU", whatever changed in it."""
    (repository / "more").mkdir()
    (repository / "r.txt").write_text("-r more/a.txt\n-c limits.txt\n-r https://x.example/b.txt\n")
    (repository / "more" / "a.txt").write_text("a==1\n-r ../r.txt\n-r b.txt\n")
    (repository / "more" / "b.txt").write_text("\ufeffb==1\n")

    found = read_included("r.txt", read_lock_text("r.txt"))

    a, b, again = (str(Path(name)) for name in ("more/a.txt", "more/b.txt", "r.txt"))
    assert {name: inside for name, (inside, _) in found.items()} == {
        ("r.txt", "more/a.txt"): a,
        (a, "../r.txt"): again,
        (a, "b.txt"): b,
    }
    assert found[a, "b.txt"][1] == "b==1\n"


def test_what_a_file_of_a_commit_includes_is_of_that_commit(repository: Path) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    (repository / "su:b").mkdir()
    (repository / "su:b" / "r.txt").write_text("-r ../g.txt\n")
    (repository / "g.txt").write_bytes(b"\xef\xbb\xbfold==1\n")
    for words in (["add", "."], [*who, "commit", "-q", "-m", "two"]):
        subprocess.run(["git", *words], check=True)
    (repository / "g.txt").write_text("new==1\n")

    found = read_included("HEAD:su:b/r.txt", read_lock_text("HEAD:su:b/r.txt"))

    assert found == {("HEAD:su:b/r.txt", "../g.txt"): ("HEAD:g.txt", "old==1\n")}


def test_nothing_that_a_repository_names_is_run_for_a_file_of_a_commit(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial clone fetches what it lacks, with the program that its configuration names."""
    ran = repository / "ran"
    blob = subprocess.check_output(["git", "rev-parse", "HEAD:uv.lock"], text=True).strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    hook = repository / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    for name, value in (
        ("remote.origin.url", str(repository)),
        ("remote.origin.uploadpack", str(hook)),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
        ("core.fsmonitor", str(hook)),
        ("protocol.allow", "always"),
        ("protocol.file.allow", "always"),
    ):
        subprocess.run(["git", "config", name, value], check=True)

    with pytest.raises(Error, match="lock-unreadable"):
        read_lock_text("HEAD:uv.lock")
    assert not ran.exists()

    monkeypatch.setattr(lock_text, "child_environment", lambda environ, _: dict(environ))
    with pytest.raises(Error, match="lock-unreadable"):
        read_lock_text("HEAD:uv.lock")
    assert ran.exists(), "without that it is run"


def test_a_bare_repository_that_lies_in_a_checkout_is_not_taken_up(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", ".", "inner"], check=True)
    monkeypatch.chdir(repository / "inner")

    with pytest.raises(Error, match="lock-unreadable"):
        read_lock_text("HEAD:uv.lock")


@pytest.mark.parametrize("coding", ["cp037", "no-such"])
def test_a_file_that_pip_reads_in_another_encoding_is_refused(coding: str, tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    file.write_text(f"a==1\n# -*- coding: {coding} -*-\n+AG8-nnxruntime==1.22.1\n")

    with pytest.raises(Error, match="lock-unreadable") as caught:
        read_lock_text(str(file))

    assert caught.value.values["cause"] == cause("text-not-utf8")


@pytest.mark.parametrize("text", ["OnnxRuntime-GPU==1.26.0\n", "onnx\\\nruntime-gpu==1.26.0\n"])
def test_a_name_is_found_however_it_is_written(text: str) -> None:
    assert mentions(["onnxruntime"], text, {})
