"""The command line as a user meets it: exit codes, one sentence and a hint.

Most run in the process of the tests; where a process of its own shows more, it is one.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command import run_here

import synthetic
from ortgpu_fix.cli import console
from ortgpu_fix.cli import parser as cli
from ortgpu_fix.cli.guests import COMMANDS
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from support.standin_wheels import clean_environment

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(home: Path, env: Mapping[str, str] | None) -> dict[str, str]:
    clean = clean_environment() | {"HOME": str(home), "LANG": "C.UTF-8"}
    return clean | dict(env or {})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command in an empty folder, with an empty home."""

    def start(*argv: str, env: Mapping[str, str] | None = None, text_in: str = "") -> Any:
        return run_here(*argv, cwd=tmp_path, env=environment(tmp_path, env), text_in=text_in)

    return start


@pytest.fixture
def process(tmp_path: Path) -> Run:
    """Run the command as `run` does, in a process of its own."""

    def start(*argv: str, env: Mapping[str, str] | None = None, text_in: str = "") -> Any:
        return subprocess.run(
            [sys.executable, "-m", "ortgpu_fix", *argv],
            cwd=tmp_path,
            env=environment(tmp_path, env),
            input=text_in,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    return start


def machine(tmp_path: Path, **changes: Any) -> str:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(synthetic.document(**changes)))
    return str(path)


def failed(done: subprocess.CompletedProcess[str], code: int) -> str:
    """Return the one sentence of a command that failed as it should."""
    assert done.returncode == code, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    first, _, hint = done.stderr.strip().partition("\n\n")
    assert first.startswith("error: ")
    assert "\n" not in first
    assert hint.startswith("hint: ")
    return first


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "no-driver": (
        {"driver": None, "gpus": ()},
        "No onnxruntime-gpu works without an NVIDIA driver",
        "a visible NVIDIA driver",
    ),
    "no-gpu": (
        {"gpus": ()},
        "No onnxruntime-gpu works without an NVIDIA GPU",
        "a visible NVIDIA GPU",
    ),
    "driver-418": (
        {"driver": "10.1"},
        "No onnxruntime-gpu on PyPI works with this driver",
        "450.80.02 or newer  for onnxruntime-gpu",
    ),
    "alpine": (
        {"platform": {"system": "linux", "machine": "x86_64", "libc": "musl 1.2.4"}},
        "No onnxruntime-gpu on PyPI works on Linux, x86_64, musl 1.2.4",
        "a system with glibc",
    ),
    "python-3.15": (
        {"python": "3.15.0"},
        "No onnxruntime-gpu on PyPI works with Python 3.15.0",
        "Python 3.14",
    ),
    "jetson-orin": (
        {
            "platform": {
                "system": "linux",
                "machine": "aarch64",
                "libc": "glibc 2.35",
                "jetson": "# R36 (release), REVISION: 4.3",
            },
            "driver": "12.6",
            "gpus": ("8.7",),
        },
        "No onnxruntime-gpu on PyPI supports Jetson",
        "the Jetson index",
    ),
    "k80-python-3.11": (
        {"driver": "11.4", "gpus": ("3.7",)},
        "No onnxruntime-gpu on PyPI works with the driver, GPU and Python below",
        "onnxruntime-gpu 1.14.1     Python 3.10",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_machines_say_why_and_what_would_help(
    name: str, run: Run, tmp_path: Path
) -> None:
    changes, first, change = IMPOSSIBLE[name]

    done = run("--facts", machine(tmp_path, **changes))

    assert done.returncode == 3
    assert done.stdout.startswith(f"{first}\n")
    assert change in done.stdout
    assert done.stdout.endswith("\n`--verbose` lists why each version was rejected\n")
    assert len(done.stdout.splitlines()) <= 40


def test_a_driver_without_a_gpu_is_impossible_too(run: Run) -> None:
    done = run("--driver", "418.226", "--gpu", "8.0", "--json")

    assert done.returncode == 3
    assert json.loads(done.stdout)["selection"] is None


def test_the_short_form_plans_for_another_machine(run: Run) -> None:
    done = run("--driver", "535.104.12", "--gpu", "8.0,9.0", "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["selection"]["cuda"] == "12"


def test_a_gpu_with_a_name_only_is_known_by_it(run: Run, tmp_path: Path) -> None:
    document = json.loads(Path(machine(tmp_path)).read_text())
    document["gpus"] = [{"name": "NVIDIA GeForce RTX 5060"}]
    file = tmp_path / "by hand.json"
    file.write_text(json.dumps(document))

    assert "NVIDIA GeForce RTX 5060 (compute capability 12.0)" in run("--facts", str(file)).stdout


def test_the_same_facts_give_the_same_bytes(process: Run, tmp_path: Path) -> None:
    facts = machine(tmp_path)
    first = process("--facts", facts, "--json")
    second = process("--json", "--facts", facts, env={"LANG": "zh_CN.UTF-8", "PYTHONHASHSEED": "7"})

    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("{", "not JSON"),
        ("[]", "the document must be an object"),
        ('{"schema": 1}', "packages is missing"),
        ('{"schema": 2}', "schema is 2"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_facts_file_that_is_none(content: str, part: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    file.write_text(content)

    assert part in failed(run("--facts", str(file)), 7)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_facts_file_as_windows_writes_it(encoding: str, run: Run, tmp_path: Path) -> None:
    document = synthetic.document()
    document["python"]["implementation"] = "CPython"
    (tmp_path / "facts.json").write_text(json.dumps(document), encoding)

    assert run("--facts", "facts.json").returncode == 1


def test_an_unknown_key_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    assert "drivr is not a known key" in failed(run("--facts", machine(tmp_path, drivr=1)), 7)


def test_a_facts_file_that_is_not_there(process: Run) -> None:
    assert "No such file" in failed(process("--facts", "nowhere.json"), 7)


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("#!/bin/sh\necho garbage\n", "garbage"),
        ("#!/bin/sh\nexit 3\n", "exit 3"),
        ("not a program", "Exec format error"),
    ],
)
def test_a_python_that_is_none(text: str, part: str, run: Run, tmp_path: Path) -> None:
    done = run("--python", script(tmp_path / "python", text), "--dry-run")

    assert done.returncode == 7, done
    assert "Traceback" not in done.stderr
    assert part in done.stderr or part == "garbage"


def test_a_python_that_is_not_there(run: Run) -> None:
    failed(run("--python", "/nowhere/python"), 7)


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["--nonsense"], "--nonsense"),
        (["dance"], "Unrecognized command `dance`"),
        (["facts", "extra"], "extra"),
        (["--apply", "--check"], "--apply, --check"),
        (["verify", "--apply"], "verify, --apply"),
        (["--driver", "535"], "`--driver` and `--gpu`"),
        (["--gpu", "8.0"], "`--driver` and `--gpu`"),
        (["--driver", "x", "--gpu", "8.0"], "`--driver x`"),
        (["--driver", "535", "--gpu", "eight"], "`--gpu eight`"),
        (["--driver", "535", "--gpu", "8.0", "--facts", "x", "--facts", "y"], "--driver, --facts"),
        (["--ignore-gpu", "x"], "`--ignore-gpu x`"),
        (["--ort", "latst"], "`--ort latst`"),
        (["--cuda", "twelve"], "`--cuda twelve`"),
        (["--torch", "latest"], "`--torch latest`"),
        (
            ["verify", "--facts", "a"],
            "`--facts` can only be used with `--apply`, `--check`, `facts`",
        ),
        (["--apply", "--facts", "a", "--facts", "b"], "`--apply` works on one machine"),
        (["facts", "--facts", "a", "--facts", "b"], "2 facts files"),
        (["lock", "--check", "l", "--facts", "a", "--facts", "b"], "`lock --check` works on one"),
        (["lock", "l"], "Unexpected argument `l`"),
        (["--facts", "a", "--facts", "./a"], "`./a` was passed twice"),
        (["diff", "x", "y", "--hosts", "a", "--facts", "./a"], "`./a` was passed twice"),
        (["--facts", "a", "--facts", "b", "--python", "x"], "--python, --facts"),
        (["--with-cpu"], "--with-cpu"),
        (["-r", "a.txt", "--write"], "`--write` can only be used with `--apply`"),
        (["--bench", "model.onnx"], "`--bench` can only be used with `verify`"),
        (
            ["verify", "--shape", "x=1"],
            "`--shape` can only be used with `verify MODEL.onnx`, `verify --bench`",
        ),
        (
            ["verify", "--report", "x"],
            "`--report` can only be used with `verify MODEL.onnx`, `verify --bench`",
        ),
        (
            ["--ort-index-url", "https://x"],
            "`--ort-index-url` can only be used with `matrix`",
        ),
        (["--all-platforms"], "`--all-platforms` can only be used with `matrix`"),
        (
            ["matrix", "--all-platforms"],
            "`--all-platforms` can only be used with `matrix --update`",
        ),
        (["facts", "--from-text", "x", "--facts", "y"], "--from-text, --facts"),
        (["apply", "--dry-run"], "apply, --dry-run"),
        (["plan", "--apply"], "plan, --apply"),
        (["matrix", "--update", "--offline"], "--update, --offline"),
        (["matrix", "--update", "--forget"], "--update, --forget"),
        (["matrix", "foo"], "Unexpected argument `foo`"),
        (["--facts", "a", "--facts", "b", "--torch", "match"], "--torch match, several --facts"),
    ],
)
def test_impossible_flags(argv: list[str], part: str, run: Run) -> None:
    assert part in failed(run(*argv), 2)


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["matrix", "9.9.9"], "`ortgpu-fix matrix` lists the versions that it contains"),
        (["matrix", "foo"], "See `ortgpu-fix help matrix`"),
        (["--nonsense"], "See `ortgpu-fix --help`"),
        (["lock", "--frmat", "uv"], "See `ortgpu-fix help lock`"),
        (["--apply", "--live"], "See `ortgpu-fix --help`"),
        (["run", "python", "app.py", "--model", "x"], "ortgpu-fix run -- python app.py"),
        (["run", "--"], "ortgpu-fix run -- python app.py"),
        (["download", "--facts", "example"], "ortgpu-fix download -d wheels"),
        (["lock", "--check"], "ortgpu-fix lock --check gpu.txt"),
        (["diff", "a"], "ortgpu-fix diff HEAD:uv.lock uv.lock"),
        (["-r", "none.txt"], "Pass an existing file, or fix that line, and retry"),
    ],
)
def test_a_mistake_has_its_own_hint(argv: list[str], hint: str, run: Run) -> None:
    assert run(*argv).stderr.endswith(f"\n\nhint: {hint}\n")


def test_the_plan_takes_the_flag_that_says_what_it_does(run: Run, tmp_path: Path) -> None:
    facts = ("--facts", machine(tmp_path))

    assert run("plan", "--dry-run", *facts).stdout == run("--dry-run", *facts).stdout != ""


def test_an_error_as_json(run: Run) -> None:
    done = run("--json", "--cuda", "x", env={"LANG": "zh_CN.UTF-8"})
    document = json.loads(done.stdout)

    assert done.returncode == 2
    assert document["schema"] == 1
    assert document["error"] == {
        "code": "wish-cuda",
        "message": "`--cuda x` is not supported; CUDA versions with known packages: 11, 12, 13",
        "hint": "For example `--cuda 12`",
    }


def test_an_error_in_chinese(process: Run) -> None:
    done = process("--cuda", "x", env={"LANG": "zh_CN.UTF-8"})

    assert (
        done.stderr == "错误：不支持 `--cuda x`；有已知软件包的 CUDA 版本：11、12、13\n\n"
        "提示：例如 `--cuda 12`\n"
    )


def test_apply_without_a_terminal_wants_a_yes(run: Run, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)

    done = run("--apply", "--facts", machine(tmp_path), "--python", str(venv))

    assert done.returncode == 2
    assert "Not an interactive terminal, so nothing was changed" in done.stderr
    assert "onnxruntime-gpu" in done.stdout


def test_an_impossible_plan_is_not_applied(run: Run, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    facts = machine(tmp_path, driver=None, gpus=())

    assert run("--apply", "--yes", "--facts", facts, "--python", str(venv)).returncode == 3


def test_facts_are_written_and_read_back(process: Run, tmp_path: Path) -> None:
    written = process("facts", "-o", "facts.json")

    assert written.returncode == 0
    assert written.stderr == "Written: facts.json\n"
    assert json.loads((tmp_path / "facts.json").read_text()) == json.loads(process("facts").stdout)
    assert process("--facts", "facts.json").returncode in {0, 1, 3}


@pytest.mark.skipif(sys.platform != "linux", reason="paths are bytes on Linux")
def test_facts_with_a_path_that_is_no_text(process: Run, tmp_path: Path) -> None:
    env = {"LD_LIBRARY_PATH": "/opt/\udcff"}

    assert process("facts", "-o", "facts.json", env=env).returncode == 0
    written = (tmp_path / "facts.json").read_text("ascii")
    assert written == process("facts", env=env).stdout
    assert json.loads(written)["environment"]["LD_LIBRARY_PATH"] == "/opt/\udcff"
    assert process("--facts", "facts.json", "--json").returncode in {0, 1, 3}


def test_a_file_that_cannot_be_written(run: Run) -> None:
    failed(run("facts", "-o", "/nowhere/facts.json"), 7)


@pytest.mark.parametrize("argv", [["facts", "--from-text"], ["explain"]])
def test_a_text_that_is_not_there(argv: list[str], run: Run) -> None:
    done = run(*argv, "none.txt")

    assert failed(done, 7).startswith("error: The file `none.txt` cannot be read: No such file")
    assert done.stderr.endswith("hint: Pass an existing file, or pipe the text in and pass `-`\n")


def test_check_says_in_one_line_what_is_wrong(run: Run, tmp_path: Path) -> None:
    facts = machine(tmp_path)
    done = run("--check", "--facts", facts)

    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (1, "", 1)
    assert done.stdout == (f"Not OK: `ortgpu-fix --facts {facts}` shows the problems\n")
    chinese = run("check", "--facts", facts, env={"LANG": "zh_CN.UTF-8"}).stdout
    assert chinese.startswith("不正常：")


@pytest.mark.parametrize("quiet", ["--quiet", "-q"])
def test_a_quiet_check_says_nothing(quiet: str, run: Run, tmp_path: Path) -> None:
    done = run("--check", quiet, "--facts", machine(tmp_path))

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_check_of_a_machine_where_nothing_works_names_the_command_that_says_why(
    run: Run, tmp_path: Path
) -> None:
    facts = machine(tmp_path, driver="10.1")
    done = run("--check", "--facts", facts)

    assert done.returncode == 3
    assert done.stdout == (
        f"Not OK: no version of onnxruntime-gpu works; `ortgpu-fix --facts {facts}` shows why\n"
    )


def test_check_says_the_verdict_to_a_program(run: Run, tmp_path: Path) -> None:
    words = fleet(tmp_path, a={}, b={"driver": "13.0"}, c={"driver": "10.1"})

    for given, code, verdict in ((words[:2], 1, "fixable"), (words, 3, "impossible")):
        done = run("check", *given, "--json")
        assert (done.returncode, done.stderr) == (code, "")
        assert json.loads(done.stdout) == {"schema": 1, "verdict": verdict}


def test_verify_without_onnxruntime(run: Run) -> None:
    done = run("verify", "--json")

    assert done.returncode == 6
    assert json.loads(done.stdout)["verdict"] == "crashed"


def test_undo_with_nothing_to_undo(run: Run, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)

    done = run("undo", "--yes", "--python", str(venv))

    assert done.returncode in {2, 7}
    assert "Traceback" not in done.stderr


def test_a_requirements_file_is_respected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("onnxruntime<1.24\nnumpy\n# a comment\n")
    done = run("--facts", machine(tmp_path), "-r", "requirements.txt", "--json")
    packages = json.loads(done.stdout)["selection"]["packages"]

    assert {"name": "onnxruntime-gpu", "version": "1.23.2", "index": "pypi"} in packages


def test_an_exact_pin_of_a_requirements_file_is_answered_by_the_nearest_gpu_build(
    run: Run, tmp_path: Path
) -> None:
    """As one in a project is. The line can stay, for the placeholder has its version."""
    (tmp_path / "requirements.txt").write_text("onnxruntime==1.22.1\n")
    done = run("--facts", machine(tmp_path), "-r", "requirements.txt", "--json")
    document = json.loads(done.stdout)

    packages = {row["name"]: row["version"] for row in document["selection"]["packages"]}
    assert packages["onnxruntime-gpu"] == "1.22.0"
    assert [row["severity"] for row in document["findings"] if row["code"] == "pin-nearest"] == [
        "warning"
    ]
    lines = document["project"]["files"][0]["diff"]
    assert [line for line in lines if line.startswith("-")] == []
    assert "+ onnxruntime==1.22.1+ortgpu ; " in "\n".join(lines)


def test_a_pin_without_any_gpu_build_asks_for_a_permission(run: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("onnxruntime==1.32.0\n")
    done = run("--facts", machine(tmp_path), "-r", "requirements.txt")

    assert done.returncode == 1
    command = done.stdout.splitlines()[-1]
    assert "--allow conflicts" in command

    done = run("--facts", machine(tmp_path), "-r", "requirements.txt", "--allow", "conflicts")
    assert "+ onnxruntime-gpu 1.26.0" in done.stdout
    assert "+ onnxruntime==1.32.0 ; sys_platform != " in done.stdout
    assert done.stdout.splitlines()[-1] == command


def test_a_requirements_file_is_read_for_the_machine_that_is_planned_for(
    run: Run, tmp_path: Path
) -> None:
    """Constraints count, lines for the other system do not, and pip is told both."""
    windows = {"system": "windows", "machine": "x86_64"}
    (tmp_path / "requirements.txt").write_text("-c limits.txt\n-e .\n./libs/own\nonnxruntime\n")
    (tmp_path / "limits.txt").write_text(
        "numpy<2\n"
        "onnxruntime-gpu<1.24 ; sys_platform == 'win32'\n"
        "onnxruntime-gpu<1.23 ; sys_platform != 'win32'\n"
    )
    found = {}
    for system, changes in {"linux": {}, "windows": {"platform": windows}}.items():
        facts = machine(tmp_path, packages=[], gpus=("8.6",), **changes)
        plan = json.loads(run("--facts", facts, "-r", "requirements.txt", "--json").stdout)
        names = {row["name"]: row["version"] for row in plan["selection"]["packages"]}
        found[system] = names["onnxruntime-gpu"]
        assert "numpy<2,>=1.21.6" in plan["requires"]

    assert found == {"linux": "1.22.0", "windows": "1.23.2"}


@pytest.mark.parametrize("marker", ["", '; python_version >= "3"'])
def test_a_line_that_holds_releases_back_is_named_with_its_file(
    run: Run, tmp_path: Path, marker: str
) -> None:
    (tmp_path / "r.txt").write_text(f"onnxruntime-gpu<1.20{marker}\n")
    document = json.loads(run("--facts", machine(tmp_path), "-r", "r.txt", "--json").stdout)

    [rejected] = [row for row in document["rejected"] if row["version"] == "1.26.0"]
    said = [row["text"] for row in rejected["reasons"] if row["code"] == "demand-conflict"]
    assert said == ["r.txt requires onnxruntime-gpu<1.20"]
    changes = [row["change"] for row in document["unlock"]]
    assert f"a change to `onnxruntime-gpu<1.20{marker}` in r.txt" in changes


def test_what_a_requirements_file_should_say_is_shown(run: Run, tmp_path: Path) -> None:
    """A line that the plan does not meet is for other machines; the loader brings all the rest."""
    before = "numpy\nonnxruntime>=1.32.0  # fast\n"
    (tmp_path / "r.txt").write_text(before)
    facts = ("--facts", machine(tmp_path))

    told = run(*facts, "-r", "r.txt").stdout
    linux = "sys_platform == 'linux' and platform_machine == 'x86_64' and python_version >= '3.11'"
    elsewhere = 'sys_platform != "linux" or platform_machine != "x86_64" or python_version < "3.11"'
    assert "- onnxruntime>=1.32.0  # fast\n" in told
    assert f"+ onnxruntime>=1.32.0 ; {elsewhere}  # fast\n" in told
    assert "+ --find-links gpu-wheels\n" in told
    assert f"+ onnxruntime==1.26.0+ortgpu ; {linux}\n" in told
    assert told.splitlines()[-1].endswith("--apply --write")
    assert (tmp_path / "r.txt").read_text() == before
    assert "project" not in json.loads(run(*facts, "--json").stdout)


def test_a_file_that_cannot_be_changed_hinders_no_plan(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(f"numpy==2.2.6 --hash=sha256:{'0' * 64}\n")

    told = run("--facts", machine(tmp_path), "-r", "r.txt")
    assert told.returncode == 1, told
    assert "Project (requirements): `--apply --write` cannot change it" in told.stdout
    assert "The requirements file uses hashes" in told.stdout
    assert told.stdout.splitlines()[-1].endswith("--apply")


def test_an_upper_bound_of_the_project_is_a_wish(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "a"\ndependencies = ["onnxruntime>=1.20,<1.24"]\n'
    )
    facts = ("--facts", machine(tmp_path))
    document = json.loads(run(*facts, "-r", "pyproject.toml", "--json").stdout)
    assert "1.23.2" in {row["version"] for row in document["install"]}
    [lines, *wheels] = document["project"]["files"]
    assert lines["diff"][0] == '- dependencies = ["onnxruntime>=1.20,<1.24"]'
    assert [row["diff"] for row in wheels] == [[], []]


@pytest.mark.parametrize(
    "content",
    [
        *(None, "[", "\udcff"),
        pytest.param(f"a = {'[' * 100_000}", id="deep"),
        pytest.param(f"a = {'1' * 5000}", id="endless"),
    ],
)
def test_a_project_file_that_is_none(content: str | None, run: Run, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "p.toml").write_bytes(content.encode(errors="surrogateescape"))

    failed(run("--facts", machine(tmp_path), "-r", "p.toml"), 7)


@pytest.mark.parametrize("content", [None, "onnxruntime ~~ what\n"])
def test_a_requirements_file_that_is_none(content: str | None, run: Run, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "r.txt").write_text(content)

    failed(run("--facts", machine(tmp_path), "-r", "r.txt"), 7)


def test_every_command_has_its_function() -> None:
    for name, row in COMMANDS.items():
        assert name == "help" or callable(import_module(row.module).run), name


def fleet(tmp_path: Path, **machines: dict[str, Any]) -> list[str]:
    """Write facts files and return the flags that name them."""
    flags: list[str] = []
    for name, changes in machines.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(synthetic.document(**changes)))
        flags += ["--facts", f"{name}.json"]
    return flags


def test_one_plan_for_several_machines(run: Run, tmp_path: Path) -> None:
    machines = fleet(tmp_path, old={"driver": "12.2"}, new={"driver": "13.0"})

    told, document = run(*machines), run("--json", *machines)

    assert told.returncode == document.returncode == 0
    assert "The same packages for all machines (2): onnxruntime-gpu 1.26.0, CUDA 12" in told.stdout
    assert json.loads(document.stdout)["groups"][0]["machines"] == ["new", "old"]


def test_a_machine_that_is_left_without_anything_is_exit_code_3(run: Run, tmp_path: Path) -> None:
    machines = fleet(tmp_path, server={}, ci={"driver": None, "gpus": ()})

    assert run(*machines).returncode == 3
    assert run(*machines, "--with-cpu").returncode == 0


def test_the_worst_of_several_machines_decides_the_check(run: Run, tmp_path: Path) -> None:
    broken = fleet(tmp_path, a={}, b={"driver": "13.0"})
    hopeless = fleet(tmp_path, a={}, c={"driver": "10.1"})

    assert run("--check", *broken).returncode == 1
    assert run("--check", *hopeless).returncode == 3
    assert run("--check", *hopeless).stdout.startswith("c: Not OK: no version")
    assert run("--check", "--quiet", *hopeless).stdout == ""


def test_a_bad_file_among_several_is_named(run: Run, tmp_path: Path) -> None:
    machines = fleet(tmp_path, a={}, b={"drivr": 1})

    assert "b.json: drivr is not a known key" in failed(run(*machines), 7)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["--json", "facts"], ["facts", "--json"]),
        (["--python", "X", "lock"], ["lock", "--python", "X"]),
        (["--facts", "a", "lock", "--facts", "b"], ["lock", "--facts", "a", "--facts", "b"]),
        (["-vo", "f", "lock"], ["lock", "-v", "-o", "f"]),
        (["--format=uv", "lock"], ["lock", "--format", "uv"]),
        (["--live", "run", "--", "x", "-v"], ["run", "--live", "--", "x", "-v"]),
        (["-r", "a.txt", "--apply", "-r", "b.txt"], ["apply", "-r", "a.txt", "-r", "b.txt"]),
        (["explain", "a", "--json", "b"], ["--json", "explain", "a", "b"]),
    ],
)
def test_flags_stand_before_and_after_the_command(before: list[str], after: list[str]) -> None:
    """`--python X lock` must not lose X in silence, nor `--facts a lock --facts b` a machine."""
    one, other = cli.parse(before), cli.parse(after)

    assert one.machine == other.machine
    without = [{**each.options, "apply": True} for each in (one, other)]
    assert (one.command, without[0]) == (other.command, without[1])
    assert getattr(one.request, "words", ()) == getattr(other.request, "words", ())
    assert getattr(one.request, "rest", ()) == getattr(other.request, "rest", ())


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["undo", "--ort", "1.22.0"], "`--ort` can only be used with `--apply`"),
        (["facts", "-d", "x"], "`--directory` can only be used with `lock`, `download`"),
        (["verify", "--quiet"], "`--quiet` can only be used with `--apply`, `--check`"),
        (["cache", "-z"], "Unrecognized option `-z`"),
    ],
)
def test_a_flag_of_another_command_is_refused_with_the_name_of_that(
    argv: list[str], part: str, run: Run
) -> None:
    assert part in failed(run(*argv), 2)


def test_what_follows_two_dashes_is_no_flag() -> None:
    assert cli.parse(["explain", "--json", "--", "-a.log"]).request.words == ("-a.log",)


def test_a_dash_as_the_output_is_standard_output(run: Run, tmp_path: Path) -> None:
    facts = machine(tmp_path)
    written, printed = (run("facts", *words, "--facts", facts) for words in ((), ("-o", "-")))

    assert (printed.returncode, printed.stdout, printed.stderr) == (0, written.stdout, "")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN"}, "en"),
        ({"ORTGPU_FIX_LANG": "zh", "LC_ALL": "C"}, "zh"),
    ],
)
def test_the_language_of_the_user(environ: dict[str, str], language: str) -> None:
    assert console.user_language(environ) == language


def test_a_defect_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from ortgpu_fix import __main__

    def broken(*_: object) -> Plan:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(cli, "run_command", broken)

    assert __main__.main([]) == 7
    assert capsys.readouterr().err.startswith("error: Internal error: ZeroDivisionError: planted")


def test_ctrl_c_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from ortgpu_fix import __main__

    def interrupted(*_: object) -> Plan:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_command", interrupted)

    assert __main__.main([]) == 130


def test_a_terminal_that_is_gone_takes_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process gets SIGHUP; the exit code is what is left."""
    from ortgpu_fix import __main__

    def gone(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(console, "print_error", gone)
    monkeypatch.setattr(console, "detach_stdout", lambda: None)

    assert __main__.main(["--cuda", "x"]) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of the shell")
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m ortgpu_fix --facts example --verbose --json | head -c 10"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="the shell closes the streams")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--facts example >&-", 1),
        ("--facts example --json >&-", 1),
        ("--facts nowhere.json 2>&-", 7),
        ("explain <&-", 0),
    ],
)
def test_a_stream_that_is_closed_takes_all_and_gives_nothing(
    command: str, code: int, tmp_path: Path
) -> None:
    shell = ["sh", "-c", f"{sys.executable} -m ortgpu_fix {command}"]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == code
    assert done.stderr == ""
    said = load_texts("en").label("explained-nothing") if "explain" in command else ""
    assert done.stdout.partition("\n")[0] == said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a full disk")
@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["--facts", "example"], "The output cannot be written: No space left"),
        (["--facts", "example", "--json"], "The output cannot be written: No space left"),
        (["--facts", "nowhere.json", "--json"], "The facts file `nowhere.json`"),
    ],
)
def test_output_that_finds_no_room(argv: list[str], part: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ortgpu_fix", *argv],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 7
    assert done.stderr.startswith(f"error: {part}")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "gbk"])
def test_an_encoding_that_lacks_a_character(encoding: str, process: Run, tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    facts = machine(tmp_path, environment={"LD_LIBRARY_PATH": "/opt/图"})

    done = process("--facts", facts, env=env)
    assert "x  onnxruntime-gpu is not installed" in done.stdout
    assert done.returncode == 1
    plain = process("--facts", facts, "--json").stdout
    assert process("--facts", facts, "--json", env=env).stdout == plain


def test_an_error_inside_an_error_is_said_in_words() -> None:
    inner = Error("wish-cuda", value="x", known="11, 12")

    message = load_texts("en").error(Error("apply-failed", cause=inner))

    assert "`--cuda x` is not supported; CUDA versions with known packages: 11, 12" in message.text


def test_what_the_launcher_of_windows_takes_is_no_flag_after_python() -> None:
    assert cli.parse(["--python", "-V:3.12", "--json"]).machine.python == "-V:3.12"
    assert cli.parse(["facts", "--python=-V:3.12"]).machine.python == "-V:3.12"
    with pytest.raises(Error, match="value-missing"):
        cli.parse(["--python", "-V"])
    with pytest.raises(Error, match="usage"):
        cli.parse(["--index-url", "-V:3.12"])
    line = cli.parse(["run", "--python", "-V:3.12", "--", "x", "--python", "-V:3.13"])
    assert (line.machine.python, line.request.rest) == ("-V:3.12", ("x", "--python", "-V:3.13"))


@pytest.mark.parametrize("short", ["--offl", "--jso", "--driv=535.104.12"])
def test_a_flag_is_written_whole(short: str) -> None:
    """What is short for one flag today is short for two tomorrow."""
    with pytest.raises(Error, match="usage"):
        cli.parse([short])
