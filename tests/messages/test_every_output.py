"""Nasty strings through every command, as text and as JSON, and into every file."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from nasty import NASTY, is_clean
from stand import Stand

from ortgpu_fix.apply.journal import Begin, Mark, MovedFiles, encode
from ortgpu_fix.data_files import example_machine
from support.standin_wheels import clean_environment

pytestmark = pytest.mark.untraced
SOME = NASTY[::5]
"""Strings that share one facts file, or one environment; `test_foreign_text` has them all."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def output(home: Path, *argv: str, text_in: str = "", **env: str) -> str:
    """Run a command; what it says must be clean, and no defect. Return its standard output."""
    environ = clean_environment() | {"HOME": str(home), "LANG": "C.UTF-8"}
    done = run_here(*argv, cwd=home, env=environ | env, text_in=text_in)
    for said in (done.stdout, done.stderr):
        assert is_clean(said), (argv, said)
        assert "Internal error" not in said
        assert '"internal"' not in said
    if "--json" in argv:
        check(json.loads(done.stdout))
    return done.stdout


def check(value: object) -> None:
    """Hold every string in a document against the rule: JSON would show controls as escapes."""
    if isinstance(value, str):
        assert is_clean(value), value
    elif isinstance(value, dict):
        for key, item in value.items():
            check(key)
            check(item)
    elif isinstance(value, list):
        for item in value:
            check(item)


def documents(strings: list[str]) -> Iterator[dict[str, Any]]:
    """Yield facts in which each string stands in every place that takes any text."""
    base: Any = copy.deepcopy(example_machine())
    base["python"]["version"] = "3.11.7"
    base["packages"] += [
        {"name": f"p{at}", "version": text, "requires": [text, f"onnxruntime>=1.17 ; {text}"]}
        for at, text in enumerate(strings)
    ]
    base["toolkits"] = [{"version": "12.4", "path": text} for text in strings]
    base["libraries"] = [
        {"name": "libcudnn.so.9", "path": text, "version": text} for text in strings
    ]
    base["environment"] = {"LD_LIBRARY_PATH": ":".join(strings), "CUDA_PATH": strings[0]}
    base["sources"] = dict.fromkeys(("python", "driver", "gpus"), strings[0])
    yield base
    for text in strings[::40]:
        one: Any = copy.deepcopy(example_machine())
        one["platform"]["distribution"] = text
        one["gpus"][0]["name"] = text
        one["driver"] = {"version": None, "cuda": None, "error": text}
        one["python"]["executable"] = text
        one["python"]["shadow"] = text
        one["onnxruntime"] = {"distribution": "onnxruntime", "version": text, "intact": False}
        yield one


def test_what_facts_say(home: Path) -> None:
    files = []
    for at, document in enumerate(documents(SOME)):
        files.append(f"facts-{at}.json")
        (home / files[-1]).write_text(json.dumps(document))
        output(home, "--facts", files[-1], "--verbose")
        output(home, "--facts", files[-1], "--json")
    output(home, "--facts", files[0], "--apply", "--json")
    output(home, "--facts", files[0], "--check")
    both = ("--facts", files[0], "--facts", files[1])
    output(home, *both, "--json")
    output(home, *both, "--verbose")
    for name in ("lock", "download"):
        output(home, name, "--facts", files[0], "--offline", "-d", "wheels", "--json")


def test_what_a_log_says(home: Path) -> None:
    lines = [
        f"[E:onnxruntime] {text}: Failed to load library {text}libonnxruntime_providers_cuda.so "
        f"with error: libcudnn.so.9{text}: cannot open shared object file: No such file {text}\n"
        for text in SOME
    ]
    (home / "log").write_text("".join(lines), encoding="utf-8")

    for flags in (("--text-only",), ("--facts", "example")):
        output(home, "explain", "log", *flags)
        output(home, "explain", "log", *flags, "--json")
    for text in SOME[::10]:
        output(home, "explain", "--text-only", "--json", text_in=f"CUDA error: {text}\n")


def plant(stand: Stand, strings: list[str]) -> None:
    """Install distributions that say nasty things of themselves."""
    for at, text in enumerate(strings):
        info = stand.venv.site / f"p{at}-1.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: p{at}\nVersion: 1.0\n"
        plain = text.replace("\n", " ")
        (info / "METADATA").write_text(
            f"{head}Requires-Dist: {plain}\nRequires-Dist: onnxruntime>=1 ; {plain}\n",
            encoding="utf-8",
        )
        (info / "RECORD").write_text(f"{plain},,\n", encoding="utf-8")
        (info / "INSTALLER").write_text(plain, encoding="utf-8")
    shared = stand.venv.site / "onnxruntime" / "capi"
    shared.mkdir(parents=True, exist_ok=True)
    (shared.parent / "__init__.py").touch()
    text = strings[0].replace("\n", " ")
    about = f"package_name = 'onnxruntime-gpu{text}'\n__version__ = '1.26.0{text}'\n"
    (shared / "build_and_package_info.py").write_text(about, encoding="utf-8")


def test_what_an_environment_says(stand: Stand, home: Path) -> None:
    plant(stand, SOME)
    python = ("--python", str(stand.venv.folder))
    path = SOME[0].replace("\0", "")

    output(home, "facts", *python, LD_LIBRARY_PATH=path)
    output(home, "facts", *python, "-o", "facts.json", LD_LIBRARY_PATH=path)
    written = (home / "facts.json").read_text()
    assert is_clean(written)
    check(json.loads(written))
    output(home, *python, "--driver", "570.86.10", "--gpu", "8.0", "--json", PYTHONPATH=path)
    output(home, *python, "--driver", "570.86.10", "--gpu", "8.0", "--verbose")


def test_what_a_verification_says(stand: Stand, home: Path) -> None:
    """An onnxruntime whose every word is another's."""
    text = "".join(SOME)
    package = stand.venv.site / "onnxruntime"
    (package / "capi").mkdir(parents=True)
    (package / "__init__.py").write_text(
        f"import sys\nprint({text!r})\nprint({text!r}, file=sys.stderr)\nraise OSError({text!r})\n",
        encoding="utf-8",
    )
    python = ("--python", str(stand.venv.folder))

    output(home, "verify", *python)
    output(home, "verify", *python, "--json")


def journal(text: str, *, torn: bool) -> str:
    begin = Begin(plan=text, removed=(text,), installed=((text, text),), when=text, present=(text,))
    moved = MovedFiles(moves=((f"p/{text}".replace("\0", ""), "000000-x"),), seen=(("file", 3, 1),))
    rows = [encode(begin), encode(moved), *([] if torn else [encode(Mark(step="commit"))])]
    return "".join(rows)


@pytest.mark.parametrize("torn", [False, True])
def test_what_a_journal_says(stand: Stand, home: Path, *, torn: bool) -> None:
    change = stand.state / "1"
    change.mkdir(parents=True)
    python = ("--python", str(stand.venv.folder))
    for text in SOME[::40]:
        plain = text.replace("\0", "")
        (change / "journal").write_text(journal(plain, torn=torn), encoding="utf-8")
        output(home, "undo", "--yes", *python)
        output(home, "undo", "--yes", "--json", *python)
        output(home, "--facts", "example", "--json", *python)
        (stand.state / "lock").write_text(json.dumps({"pid": 1, "command": plain}))


def test_what_an_index_and_flags_say(stand: Stand, home: Path) -> None:
    argv = ("download", "--facts", "example", "-d", "wheels", "--index-url")
    for text in SOME[::40]:
        row = {"filename": f"onnxruntime_gpu-1.26.0-{text}.whl", "url": text, "yanked": text}
        page = json.dumps({"meta": {"api-version": text}, "files": [row]})
        stand.server.behaviour.page = ("application/vnd.pypi.simple.v1+json", page)
        output(home, *argv, stand.server.url, "--json")
        output(home, *argv, stand.server.url)
        plain = text.replace("\0", "")
        for flags in (("--index-url", plain), ("--ort", plain), ("--find-links", plain)):
            output(home, "--facts", "example", "--json", *flags)
            output(home, "--facts", "example", *flags)
        output(home, "--facts", plain)
        output(home, "--python", plain, "--json")
        output(home, "lock", "--check", plain, "--facts", "example")
        output(home, "--facts", "example", "-r", plain)


def test_what_requirements_files_and_locks_say(home: Path) -> None:
    for text in SOME[::40]:
        (home / "r.txt").write_text(f"onnxruntime-gpu==1.0 # {text}\n{text}\n", encoding="utf-8")
        output(home, "--facts", "example", "-r", "r.txt")
        output(home, "--facts", "example", "-r", "r.txt", "--json")
        output(home, "lock", "--check", "r.txt", "--facts", "example", "--json")
