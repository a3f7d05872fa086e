"""The command line as a user meets it: exit codes, one sentence and a hint.

Most run in the process of the tests; where a process of its own shows more, it is one.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import run_here

import synthetic
from ortgpu_fix.cli import console
from ortgpu_fix.cli import parser as cli
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


def test_the_same_facts_give_the_same_bytes(process: Run, tmp_path: Path) -> None:
    facts = machine(tmp_path)
    first = process("--facts", facts, "--json")
    second = process("--json", "--facts", facts, env={"LANG": "zh_CN.UTF-8", "PYTHONHASHSEED": "7"})

    assert first.stdout == second.stdout


def test_a_facts_file_as_windows_writes_it(run: Run, tmp_path: Path) -> None:
    document = synthetic.document()
    document["python"]["implementation"] = "CPython"
    (tmp_path / "facts.json").write_text(json.dumps(document), "utf-16")

    assert run("--facts", "facts.json").returncode == 1


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["--nonsense"], "--nonsense"),
        (["dance"], "Unrecognized command `dance`"),
        (["--apply", "--check"], "--apply, --check"),
        (["--driver", "535"], "`--driver` and `--gpu`"),
        (["--driver", "x", "--gpu", "8.0"], "`--driver x`"),
        (["--driver", "535", "--gpu", "eight"], "`--gpu eight`"),
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
            ["matrix", "--all-platforms"],
            "`--all-platforms` can only be used with `matrix --update`",
        ),
        (["facts", "--from-text", "x", "--facts", "y"], "--from-text, --facts"),
        (["matrix", "--update", "--offline"], "--update, --offline"),
        (["--facts", "a", "--facts", "b", "--torch", "match"], "--torch match, several --facts"),
    ],
)
def test_impossible_flags(argv: list[str], part: str, run: Run) -> None:
    assert part in failed(run(*argv), 2)


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["matrix", "9.9.9"], "`ortgpu-fix matrix` lists the versions that it contains"),
        (["lock", "--frmat", "uv"], "See `ortgpu-fix help lock`"),
        (["run", "python", "app.py", "--model", "x"], "ortgpu-fix run -- python app.py"),
        (["download", "--facts", "example"], "ortgpu-fix download -d wheels"),
        (["diff", "a"], "ortgpu-fix diff HEAD:uv.lock uv.lock"),
        (["-r", "none.txt"], "Pass an existing file, or fix that line, and retry"),
    ],
)
def test_a_mistake_has_its_own_hint(argv: list[str], hint: str, run: Run) -> None:
    assert run(*argv).stderr.endswith(f"\n\nhint: {hint}\n")


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


@pytest.mark.skipif(sys.platform != "linux", reason="paths are bytes on Linux")
def test_facts_with_a_path_that_is_no_text(run: Run, tmp_path: Path) -> None:
    env = {"LD_LIBRARY_PATH": "/opt/\udcff"}

    assert run("facts", "-o", "facts.json", env=env).returncode == 0
    written = (tmp_path / "facts.json").read_text("ascii")
    assert written == run("facts", env=env).stdout
    assert json.loads(written)["environment"]["LD_LIBRARY_PATH"] == "/opt/\udcff"
    assert run("--facts", "facts.json", "--json").returncode in {0, 1, 3}


def test_a_text_that_is_not_there(run: Run) -> None:
    done = run("explain", "none.txt")

    assert failed(done, 7).startswith("error: The file `none.txt` cannot be read: No such file")
    assert done.stderr.endswith("hint: Pass an existing file, or pipe the text in and pass `-`\n")


def test_check_says_in_one_line_what_is_wrong(run: Run, tmp_path: Path) -> None:
    facts = machine(tmp_path)
    done = run("--check", "--facts", facts)

    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (1, "", 1)
    assert done.stdout == (f"Not OK: `ortgpu-fix --facts {facts}` shows the problems\n")
    chinese = run("check", "--facts", facts, env={"LANG": "zh_CN.UTF-8"}).stdout
    assert chinese.startswith("不正常：")


def test_a_quiet_check_says_nothing(run: Run, tmp_path: Path) -> None:
    done = run("--check", "-q", "--facts", machine(tmp_path))

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


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


@pytest.mark.parametrize("content", ["\udcff", pytest.param(f"a = {'[' * 100_000}", id="deep")])
def test_a_project_file_that_is_none(content: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(content.encode(errors="surrogateescape"))

    failed(run("--facts", machine(tmp_path), "-r", "p.toml"), 7)


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
        (["--facts", "a", "lock", "--facts", "b"], ["lock", "--facts", "a", "--facts", "b"]),
        (["-vo", "f", "lock"], ["lock", "-v", "-o", "f"]),
        (["--live", "run", "--", "x", "-v"], ["run", "--live", "--", "x", "-v"]),
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
        (["cache", "-z"], "Unrecognized option `-z`"),
    ],
)
def test_a_flag_of_another_command_is_refused_with_the_name_of_that(
    argv: list[str], part: str, run: Run
) -> None:
    assert part in failed(run(*argv), 2)


def test_what_follows_two_dashes_is_no_flag() -> None:
    assert cli.parse(["explain", "--json", "--", "-a.log"]).request.words == ("-a.log",)


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
    [("--facts example --json >&-", 1), ("explain <&-", 0)],
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
def test_output_that_finds_no_room(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ortgpu_fix", "--facts", "example", "--json"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 7
    assert done.stderr.startswith("error: The output cannot be written: No space left")
    assert "Traceback" not in done.stderr


def test_what_the_launcher_of_windows_takes_is_no_flag_after_python() -> None:
    assert cli.parse(["--python", "-V:3.12", "--json"]).machine.python == "-V:3.12"
    assert cli.parse(["facts", "--python=-V:3.12"]).machine.python == "-V:3.12"
    with pytest.raises(Error, match="value-missing"):
        cli.parse(["--python", "-V"])
    with pytest.raises(Error, match="usage"):
        cli.parse(["--index-url", "-V:3.12"])
    line = cli.parse(["run", "--python", "-V:3.12", "--", "x", "--python", "-V:3.13"])
    assert (line.machine.python, line.request.rest) == ("-V:3.12", ("x", "--python", "-V:3.13"))


def test_a_flag_is_written_whole() -> None:
    """What is short for one flag today is short for two tomorrow."""
    with pytest.raises(Error, match="usage"):
        cli.parse(["--driv=535.104.12"])
