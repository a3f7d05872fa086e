"""The folder for what a child leaves: whoever is killed, somebody removes it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.verify import child
from ortgpu_fix.verify.child import scratch_folder

CHILDREN = Path(child.__file__).with_name("children")


def test_only_its_child_makes_it_and_we_remove_it() -> None:
    with scratch_folder("python") as folder:
        assert not Path(folder).exists()
        Path(folder, "profiles").mkdir(parents=True)

    assert not Path(folder).exists()


def test_nothing_is_left_where_an_interrupt_comes() -> None:
    def interrupted() -> None:
        with scratch_folder("python") as folder:
            Path(folder).mkdir()
            made.append(Path(folder))
            raise KeyboardInterrupt

    made: list[Path] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert not made[0].exists()


def test_a_machine_without_a_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)

    with pytest.raises(Error, match="verify-not-started"), scratch_folder("python"):
        pass


@pytest.mark.parametrize("script", ["smoke", "measure"])
def test_a_child_whose_starter_was_killed_before_it_began_leaves_nothing(
    script: str, tmp_path: Path
) -> None:
    """Its standard input has ended when it looks at it first."""
    folder = tmp_path / "scratch"
    last = "{}" if script == "measure" else "x.onnx"
    argv = [sys.executable, "-B", str(CHILDREN / f"{script}.py"), "--lifeline", "--scratch"]

    subprocess.run(
        [*argv, str(folder), last], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )

    assert not folder.exists()


def test_a_child_makes_it_for_nobody_else_and_ends_with_its_starter(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    code = (
        f"import sys, pathlib, time; sys.path.insert(0, {str(CHILDREN.parent)!r}); "
        "from children import common; "
        f"common.begin(pathlib.Path({str(folder)!r}), lifeline=True); "
        "print('made', flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-B", "-c", code]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == "made\n"
    assert folder.stat().st_mode & 0o777 == 0o700

    process.stdin.close()
    ends = time.monotonic() + 30
    while folder.exists() and time.monotonic() < ends:
        time.sleep(0.02)

    assert process.wait(30) == 1
    assert not folder.exists()
    process.stdout.close()
