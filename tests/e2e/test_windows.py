"""Windows, as far as Wine is Windows: what only it does, and an apply that is killed and undone.

`scripts/prove/windows.py` does the same with the real wheels.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ortgpu_fix
from support import windows_python

TOOLS = ("pytest", "pytest-timeout", "hypothesis", "jsonschema")
ALSO = (
    "companions/test_lost.py::test_who_brought_it_is_named_where_the_real_tool_did",
    "guests/run/test_command.py::test_python_names_whose_commands_come_first",
    "guests/run/test_watching.py::test_processes_by_spawn_and_subprocess_are_seen_on_every_system",
    "guests/run/test_watching.py::test_what_is_said_meanwhile_is_told_and_comes_out_unchanged",
)
"""Of the tests for every system those that begin where Windows differs."""
NOT_STARTED = b"[WinError 1359]"
"""Of CreateProcess: on a busy machine Wine starts no process now and then, or waits for ever."""
ROOT = Path(__file__).resolve().parents[2]
MISSING = None if sys.platform != "linux" else windows_python.what_is_missing()
pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="this is Windows, or nothing like it"),
    pytest.mark.skipif(MISSING is not None, reason=f"Windows is left out: {MISSING}"),
]


def test_windows(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("windows")
    wine = windows_python.make(folder)
    try:
        needs = ["packaging>=26", "requests", "nvidia-ml-py", "rich", "tomli"]
        python = wine.venv(folder / "venv 环境", *needs, *TOOLS, pip=True)
        python.with_name("uv.exe").write_bytes(wine.uv.read_bytes())
        library = windows_python.windows(Path(ortgpu_fix.__file__).parents[1])
        (folder / "venv 环境" / "Lib" / "site-packages" / "ours.pth").write_text(library + "\n")
        words: tuple[str | Path, ...] = (
            *("-X", "utf8", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--rootdir", ROOT, "-c", ROOT / "pyproject.toml", "-m", "not online"),
            *(ROOT / "tests" / name for name in ("windows", *ALSO)),
        )
        tests = wine.run(python, *words)
        if NOT_STARTED in tests.stdout:
            tests = wine.run(python, *words)
        said = tests.stdout.decode(errors="replace")
        assert tests.returncode == 0, said[-4000:]
        assert "tests\\windows" not in "".join(re.findall("^SKIPPED.*$", said, re.MULTILINE))
        rows, error = _rounds(wine, python, folder / "rounds")
        if "kills" not in rows[-1] and not any(row.get("problems") for row in rows):
            windows_python.end(wine)
            rows, error = _rounds(windows_python.make(folder), python, folder / "again")
        last = rows[-1]
        assert (last.get("kills"), last.get("bad")) == (5, 0), (rows, error)
    finally:
        windows_python.end(wine)


def _rounds(
    wine: windows_python.WindowsPython, python: Path, folder: Path
) -> tuple[list[dict[str, object]], str]:
    """Kill five applies; return what was told of each and of all, and what went wrong.

    The last is missing where Wine started no process. An apply that hangs ends itself before, says
    where, and counts as wrong.
    """
    script = ROOT / "scripts" / "prove" / "windows_rounds.py"
    words = ("-X", "utf8", script, "--count", "5", folder)
    try:
        done = wine.run(python, *words, seconds=300)
        out, error = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        out, error = late.output or b"", late.stderr or b""
    return [json.loads(line) for line in out.splitlines()] or [{}], error.decode(errors="replace")
