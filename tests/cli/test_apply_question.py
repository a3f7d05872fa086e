"""What an apply shows before it asks, and in its document: every file that the matrix lacks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from lacking import install_all_but
from stand import Stand

from ortgpu_fix.cli import described
from ortgpu_fix.cli.commands import apply as applying
from ortgpu_fix.verify.verification import Verification
from support.standin_wheels import clean_environment, state_of

LACKS = "flatbuffers"


@pytest.fixture
def lacking(stand: Stand, tmp_path: Path) -> Stand:
    """An environment that is right for the example machine, but for one ordinary requirement."""
    install_all_but(LACKS, stand.venv, tmp_path / "wheels")
    stand.before = state_of(stand.venv.folder)
    return stand


def arguments(stand: Stand, *more: str) -> list[str]:
    python = ["--python", str(stand.venv.folder), "--index-url", stand.server.url]
    bare = ["--no-autoload", "--no-provide", "--allow", "conflicts"]
    return ["--apply", "--facts", "example", *python, *bare, *more]


def environment(folder: Path) -> dict[str, str]:
    environ = clean_environment() | {"HOME": str(folder), "LANG": "C.UTF-8"}
    return environ | {"TERM": "dumb", "COLUMNS": "200"}


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
@pytest.mark.parametrize(
    ("verbose", "answer", "code", "said_last"),
    [
        ((), b"n\n", 2, "error: Nothing was changed"),
        (("-v",), b"\x03", 130, "hint: Run it again at any time"),
    ],
)
def test_a_file_that_the_matrix_lacks_is_shown_before_the_question(
    lacking: Stand,
    tmp_path: Path,
    *,
    verbose: tuple[str, ...],
    answer: bytes,
    code: int,
    said_last: str,
) -> None:
    """Its hash with `-v`: many of them would push the question off the screen."""
    import pty

    home = tmp_path / "home"
    home.mkdir()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # `nohup` and `&` may have it ignored
        argv = [sys.executable, "-m", "ortgpu_fix", *arguments(lacking), *verbose]
        os.execve(argv[0], argv, environment(home))  # noqa: S606 - no shell
    said, answers, end = b"", 0, time.monotonic() + 120
    with contextlib.suppress(OSError):  # it has ended
        while time.monotonic() < end:
            if select.select([terminal], [], [], 5)[0]:
                said += os.read(terminal, 4096)
            elif b"[y/N] " in said:
                answers = 0  # a Ctrl-C in the microsecond before it reads is not heard: again
            if b"[y/N] " in said and not answers:
                assert not list(lacking.state.glob("stage/wheels/*"))
                time.sleep(0.2)  # as a person, who sees the question first
                answers = os.write(terminal, answer)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL if time.monotonic() > end else 0)
    os.close(terminal)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    before, question, after = said.decode().partition("Apply this plan? [y/N] ")
    digest = hashlib.sha256(lacking.wheels[f"{LACKS} 25.9.23"].read_bytes()).hexdigest()
    assert question, said
    assert re.search(rf"\+ {LACKS} 25.9.23 +from {lacking.server.url}", before)
    assert (f"sha256:{digest}" in before) is bool(verbose)
    assert (ended, after.splitlines()[-1]) == (code, said_last)
    assert lacking.unchanged()
    assert not lacking.state.exists()


def test_who_interrupts_it_before_the_change_is_told_so(
    lacking: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(applying, "apply", interrupted)

    done = run_here(*arguments(lacking, "--yes"), cwd=tmp_path, env=environment(tmp_path))

    assert done.returncode == 130
    said = "Run it again at any time"
    assert done.stderr == f"error: Interrupted; nothing was changed\n\nhint: {said}\n"


@pytest.mark.parametrize(
    ("words", "errors"),
    [
        (("apply",), "error: Interrupted; nothing was changed"),
        (("download", "-d", "wheels"), "error: Interrupted; `wheels` is incomplete"),
        (("plan",), ""),
    ],
)
def test_who_interrupts_the_look_at_the_machine_is_told_too(
    words: tuple[str, ...], errors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(described, "start_probe", interrupted)

    done = run_here(*words, cwd=tmp_path, env=environment(tmp_path))
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.partition("\n")[0] == errors
    if errors:
        document = run_here(*words, "--json", cwd=tmp_path, env=environment(tmp_path))
        error = json.loads(document.stdout)["error"]
        assert (document.returncode, f"error: {error['message']}") == (130, errors)


def test_and_in_the_document(
    lacking: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Verification(verdict="works")
    monkeypatch.setattr(applying, "verify", lambda *_, **__: good)
    argv = arguments(lacking, "--json", "--yes")

    done = run_here(*argv, cwd=tmp_path, env=environment(tmp_path))

    assert done.returncode == 0, done
    (row,) = json.loads(done.stdout)["resolved"]
    wheel = lacking.wheels[f"{LACKS} 25.9.23"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert row == {
        "name": LACKS,
        "version": "25.9.23",
        "index": lacking.server.url,
        "file": wheel.name,
        "sha256": digest,
        "size": None,  # this index does not say it
    }
    begin = json.loads((lacking.state / "1" / "journal").read_text().split("\n")[1])
    assert [LACKS, "25.9.23", "pypi", digest] in begin["packages"]


def test_a_check_that_crashes_is_told_with_its_last_words(
    lacking: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ("import onnxruntime", "it printed last: ImportError: DLL load failed")
    bad = Verification(verdict="crashed", evidence=said)
    monkeypatch.setattr(applying, "verify", lambda *_, **__: bad)

    done = run_here(*arguments(lacking, "--yes"), cwd=tmp_path, env=environment(tmp_path))

    assert done.returncode == 4
    assert f"The GPU check failed or crashed: {said[1]}" in done.stderr
    assert "import onnxruntime" not in done.stderr
    assert lacking.unchanged()
