"""Apply and undo as commands: what they refuse, ask, say and print."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import environments
import pytest
from command import run_here
from packaging.requirements import Requirement
from stand import CUDA, Stand

import synthetic
from ortgpu_fix import __main__
from ortgpu_fix.apply import history as kept
from ortgpu_fix.apply import state_folder
from ortgpu_fix.apply.environment_files import metadata_folders
from ortgpu_fix.apply.journal import Begin
from ortgpu_fix.apply.journaled_change import JournaledChange
from ortgpu_fix.apply.state_folder import Site, prepare_state_folder
from ortgpu_fix.cli.commands import apply as changing
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.verify.verification import Verification
from support.local_index import make_wheel
from support.standin_wheels import clean_environment, state_of

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run the command in an empty folder, with an empty home and a place for temporary files."""
    (tmp_path / "home").mkdir()
    (tmp_path / "temporary").mkdir()

    def start(*argv: str, env: Mapping[str, str] | None = None) -> Any:
        environ = clean_environment() | {"HOME": str(tmp_path / "home")}
        environ |= {"LANG": "C.UTF-8", "TMPDIR": str(tmp_path / "temporary")} | dict(env or {})
        done = run_here(*argv, cwd=tmp_path / "home", env=environ)
        assert "Traceback" not in done.stderr
        assert list((tmp_path / "temporary").iterdir()) == []
        return done

    return start


@pytest.fixture
def changed(stand: Stand) -> Stand:
    """An environment after a good apply."""
    stand.have("onnxruntime 1.22.1")
    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))
    return stand


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the findings about a change: their codes and what is said."""
    rows = json.loads(done.stdout)["findings"]
    return {row["code"]: row["summary"] for row in rows if row["code"].startswith("change-")}


def test_undo(changed: Stand, command: Command) -> None:
    python = ("--python", str(changed.venv.folder))
    shown = command("--facts", "example", "--json", *python)
    assert findings(shown) == {
        "change-kept": f"The last apply can be undone; its backup uses {kept_size(changed)}"
    }

    assert command("undo", *python).returncode == 2
    done = command("undo", "--yes", *python)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{changed.venv.folder} is back to its state before the last apply\n"
    assert changed.unchanged()
    assert findings(command("--facts", "example", "--json", *python)) == {}
    again = command("undo", "--yes", "--json", *python)
    assert again.returncode == 2
    assert json.loads(again.stdout)["error"]["code"] == "nothing-to-undo"


def without_gpu(folder: Path) -> Path:
    """Write the facts of the example without its GPU."""
    file = folder / "without.json"
    machine: Any = example_machine()
    file.write_text(json.dumps(machine | {"gpus": []}))
    return file


def test_the_undo_that_a_plan_tells_is_of_the_environment_that_was_named(
    changed: Stand, command: Command
) -> None:
    python = ("--python", str(changed.venv.folder))

    told = command("--facts", "example", *python)

    undo = f"`ortgpu-fix {' '.join(python)} undo` undoes it"
    assert undo in told.stdout
    assert f"`{undo[1:-1].partition('` ')[0]} --forget` deletes the backup" in told.stdout
    impossible = ("--facts", str(without_gpu(changed.venv.folder.parent)), "--apply")
    done = command(*impossible, *python)
    assert (done.returncode, undo in done.stdout) == (3, True)
    (changed.venv.site / "onnxruntime" / "__init__.py").write_text("# mine")
    refused = command("undo", "--yes", *python)
    restores = f"`ortgpu-fix {' '.join(python)} undo --allow changed` restores"
    assert restores in refused.stderr


def test_an_undo_says_what_stays_that_the_user_installed(stand: Stand, command: Command) -> None:
    stand.apply(stand.plan(*CUDA, requires=("flatbuffers",)))
    site, python = stand.venv.site, ("--python", str(stand.venv.folder))
    for path in site.glob("flatbuffers*"):
        shutil.rmtree(path)
    text = {"flatbuffers/__init__.py": b"# another"}
    environments.put(site, "flatbuffers", "25.2.10", files=text)
    environments.put(site, "bystander", "1.0")
    below = site.parent / "below"
    environments.put(below, "flatbuffers", "24.3.25")
    (site / "below.pth").write_text(str(below))
    for path in site.glob("onnxruntime*"):
        shutil.rmtree(path)
    environments.put_onnxruntime(site, version="1.25.0")  # in the shared folder: it goes

    assert command("undo", "--yes", *python).returncode == 2
    done = command("undo", "--yes", "--allow", "changed", *python)

    assert done.stdout == (
        f"{stand.venv.folder} is back to its state before the last apply, except for what was "
        "installed since and was kept: flatbuffers 25.2.10\n"
    )
    assert done.returncode == 0
    left = {path.name for path in site.glob("*.dist-info")}
    assert left == {"bystander-1.0.dist-info", "flatbuffers-25.2.10.dist-info"}


def kept_size(stand: Stand) -> str:
    """Return the size of the state folder as `du` counts it, in words."""
    total = sum(path.lstat().st_size for path in stand.state.rglob("*") if path.is_file())
    return f"{total / 1000:.0f} kB"


def test_forget(changed: Stand, command: Command) -> None:
    python = ("--python", str(changed.venv.folder))
    after = state_of(changed.venv.folder)
    size = kept_size(changed)

    assert command("undo", "--forget", *python).returncode == 2
    done = command("undo", "--forget", "--yes", *python)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Deleted the backup ({size}); there is nothing left to undo\n"
    assert not changed.state.exists()
    assert state_of(changed.venv.folder) == after
    assert command("undo", "--yes", *python).returncode == 2
    again = command("undo", "--forget", *python)
    assert (again.returncode, again.stdout) == (
        0,
        "Deleted the backup (0 B); there is nothing left to undo\n",
    )
    document = json.loads(command("undo", "--forget", "--json", *python).stdout)
    assert document == {"schema": 1, "forgotten": True, "freed": 0}


def test_what_was_changed_since_is_undone_on_request_alone(
    changed: Stand, command: Command
) -> None:
    changed.venv.install(changed.wheels["onnxruntime-gpu 1.31.1"])
    python = ("--python", str(changed.venv.folder))

    assert findings(command("--facts", "example", "--json", *python)) == {
        "change-changed": "The last apply can be undone, but packages that it installed have "
        f"changed since; its backup uses {kept_size(changed)}"
    }
    assert command("undo", "--yes", *python).returncode == 2
    assert command("undo", "--allow=changed", "--yes", *python).returncode == 0
    assert changed.unchanged()
    assert findings(command("--facts", "example", "--json", *python)) == {}


def interrupt(stand: Stand, path: str = "onnxruntime/__init__.py") -> None:
    """Leave a change half done, as a power cut would."""
    stand.have("onnxruntime 1.22.1")
    site = Site.of(stand.venv.target())
    prepare_state_folder(site)
    change = JournaledChange(site)
    present = tuple(map(site.relative, metadata_folders(site)))
    change.begin(Begin(plan="x", removed=(), installed=(), present=present))
    change.back_up([str(stand.venv.site / path)])


def test_every_run_says_that_a_change_was_interrupted(stand: Stand, command: Command) -> None:
    interrupt(stand)
    python = ("--python", str(stand.venv.folder))

    shown = command("--facts", "example", *python)
    assert (
        "This environment is being changed right now, or a change was interrupted" in shown.stdout
    )
    assert command("--facts", "example", "--check", *python).returncode == 1
    assert "a change was interrupted" in command("verify", *python).stderr
    assert command("undo", "--forget", "--yes", *python).returncode == 2
    assert command("undo", *python).returncode == 2  # nobody said yes
    done = command("undo", "--yes", *python)

    assert done.returncode == 0
    assert "An earlier run was interrupted" in done.stdout
    assert stand.unchanged()
    assert not stand.state.exists()


def test_apply_puts_back_first_what_was_interrupted(stand: Stand, command: Command) -> None:
    """And looks at the environment again: at first it had no readable CPU build."""
    interrupt(stand, "onnxruntime-1.22.1.dist-info/METADATA")

    argv = ("--apply", "--facts", "example", "--offline", "--python", str(stand.venv.folder))
    half = state_of(stand.venv.folder)

    assert command(*argv).returncode == 2  # nobody said yes to putting back
    assert state_of(stand.venv.folder) == half
    done = command(*argv, "--yes")

    assert done.returncode == 7  # there are no wheels
    assert "An earlier run was interrupted" in done.stderr
    assert "onnxruntime 1.22.1 is the CPU-only package" in done.stdout
    assert stand.unchanged()


def test_a_repair_by_hand_is_not_put_back_over(stand: Stand, command: Command) -> None:
    """Neither by undo nor by the next apply, unless that is allowed."""
    interrupt(stand)
    (stand.venv.site / "onnxruntime" / "__init__.py").write_text("repaired")
    repaired = state_of(stand.venv.folder)
    python = ("--python", str(stand.venv.folder))

    for argv in (("undo",), ("--apply", "--facts", "example", "--offline")):
        done = command(*argv, "--yes", *python)
        assert done.returncode == 2
        assert "onnxruntime/__init__.py" in done.stderr
        assert "--allow changed" in done.stderr
        assert state_of(stand.venv.folder) == repaired
    assert command("undo", "--yes", "--allow", "changed", *python).returncode == 0
    assert stand.unchanged()


def test_a_repair_by_hand_is_kept_on_request(stand: Stand, command: Command) -> None:
    interrupt(stand)
    (stand.venv.site / "onnxruntime" / "__init__.py").write_text("repaired")
    repaired = state_of(stand.venv.folder)
    argv = ("undo", "--forget", "--yes", "--python", str(stand.venv.folder))

    assert command(*argv).returncode == 2
    assert command(*argv, "--allow", "changed").returncode == 0

    assert state_of(stand.venv.folder) == repaired
    assert not stand.state.exists()


def test_undo_after_a_killed_download(stand: Stand, command: Command) -> None:
    stand.have("onnxruntime 1.22.1")
    wheels = stand.state / "stage" / "wheels"
    wheels.mkdir(parents=True)
    (wheels / "onnxruntime_gpu.whl.part").write_bytes(bytes(3000))

    done = command("undo", "--python", str(stand.venv.folder))

    assert done.returncode == 0
    assert "had not been changed; the downloads were removed (3 kB)" in done.stdout
    assert not stand.state.exists()
    assert stand.unchanged()


def test_what_could_not_be_removed_is_a_warning(
    changed: Stand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the tidying failed: the exit code is that of success."""
    from ortgpu_fix import __main__

    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    monkeypatch.setattr(state_folder, "_unlink", lambda *_: None)

    assert __main__.main(["undo", "--yes", "--python", str(changed.venv.folder)]) == 0
    monkeypatch.undo()

    assert changed.unchanged()
    said = capsys.readouterr()
    assert "is back to its state before the last apply" in said.out
    assert said.err.startswith("Warning: ")
    assert "could not be removed; the next run tries again" in said.err
    kept.discard_undo_data(Site.of(changed.venv.target()))


@pytest.mark.usefixtures("heard")
def test_a_signal_leaves_nothing_in_the_temporary_folder(tmp_path: Path) -> None:
    """While the check runs, in an onnxruntime that never ends."""
    python = environments.make_venv(environments.own_base(), tmp_path / "venv")
    package = environments.site_packages(python) / "onnxruntime"
    package.mkdir()
    began = tmp_path / "began"
    code = f"import time; open({str(began)!r}, 'w').close(); time.sleep(60)"
    (package / "__init__.py").write_text(code)
    (tmp_path / "temporary").mkdir()
    env = clean_environment() | {"TMPDIR": str(tmp_path / "temporary")}
    argv = [sys.executable, "-m", "ortgpu_fix", "verify", "--python", str(python)]
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not began.exists() and time.monotonic() < end:
            time.sleep(0.02)
        assert list((tmp_path / "temporary").iterdir())
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=50)

    assert (process.returncode, said) == (130, "")
    assert list((tmp_path / "temporary").iterdir()) == []


PLANNED = ("--facts", "example", "--apply", "--yes", "--offline")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """The interpreter of a Python that is no venv."""
    if sys.platform != "linux":
        pytest.skip("links to the library of a Python are made for Linux")
    return environments.make_prefix(tmp_path / "prefix")


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the code of the error that a command with `--json` ended with."""
    code: str = json.loads(done.stdout)["error"]["code"]
    return code


@pytest.mark.parametrize(
    ("mark", "code", "allow"),
    [
        ("lib/{python}/EXTERNALLY-MANAGED", "externally-managed", "system"),
        ("conda-meta/pixi", "pixi-environment", "conda"),
    ],
)
def test_a_python_of_another_tool(
    prefix: Path, command: Command, mark: str, code: str, allow: str
) -> None:
    folder = prefix.parents[1]
    path = folder / mark.format(python=prefix.name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("[externally-managed]\nError=no\n")
    before = state_of(folder)

    shown = command("--facts", "example", "--json", "--python", str(prefix))
    assert code in [row["code"] for row in json.loads(shown.stdout)["findings"]]
    done = command(*PLANNED, "--json", "--python", str(prefix))
    assert (done.returncode, refusal(done)) == (2, code)
    hint = load_texts("en").table["errors"][code]["hint"]["en"]
    assert f"--allow {allow}" in hint

    # With the flag it goes on, as far as a machine without wheels and network goes, or its disk.
    done = command(*PLANNED, "--json", "--allow", allow, "--python", str(prefix))
    assert done.returncode == 7
    assert refusal(done) in {"files-not-kept", "no-space"}
    assert state_of(folder) == before


def test_the_wheels_of_another_system_are_not_applied_here(
    command: Command, tmp_path: Path
) -> None:
    platform = {"system": "windows", "machine": "x86_64"}
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(synthetic.document(platform=platform, driver="13.0")))

    done = command("--facts", str(file), "--apply", "--yes", "--json")

    assert (done.returncode, refusal(done)) == (2, "other-platform")


def test_what_would_be_lost_is_refused_before_an_index_is_asked(
    prefix: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = environments.site_packages(prefix)
    environments.put(folder, "onnxruntime-training-cpu", "1.19.2")
    before = state_of(prefix.parents[1])

    done = command(*PLANNED, "--json", "--python", str(prefix))
    assert (done.returncode, refusal(done)) == (2, "would-lose")
    assert state_of(prefix.parents[1]) == before
    done = command(*PLANNED, "--json", "--allow", "provider", "--python", str(prefix))
    assert refusal(done) in {"files-not-kept", "no-space"}

    assert __main__.main([*PLANNED, "--json", "--python", str(prefix)]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "would-lose"


def healthy(stand: Stand, folder: Path) -> None:
    """Put in what a healthy environment of the example machine has, as far as it is looked at."""
    about = "package_name = 'onnxruntime-gpu'\n__version__ = '1.26.0'\n"
    files = {"onnxruntime/__init__.py": "", "onnxruntime/capi/build_and_package_info.py": about}
    example = from_json(example_machine())._replace(packages=(), onnxruntime=None)
    version = ".".join(stand.venv.target().version.split(".")[:2])
    python = example.python._replace(version=f"{version}.0")
    made = resolve(example._replace(python=python), PlanOptions(), load_matrix())
    rows = [(wheel.name, wheel.version) for wheel in made.selection]
    rows += [(Requirement(line).name, "99") for line in made.requires]
    stand.venv.install(
        *(
            make_wheel(folder, name, number, files=files if name == "onnxruntime-gpu" else {})
            for name, number in rows
        )
    )


def test_an_apply_that_nobody_confirms_shows_the_plan_and_changes_nothing(
    stand: Stand, command: Command
) -> None:
    before = state_of(stand.venv.folder)

    done = command("--apply", "--facts", "example", "--python", str(stand.venv.folder))

    assert done.returncode == 2
    assert "+ onnxruntime-gpu" in done.stdout
    assert "ortgpu-fix --apply" not in done.stdout  # that is what runs
    assert "--yes" in done.stderr
    assert state_of(stand.venv.folder) == before


def works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the verification find all well: the stand-ins compute nothing."""
    monkeypatch.setattr(changing, "verify", lambda *_, **__: Verification(verdict="works"))


WISHES = ("-r", "r.txt", "--write", "--yes", "--facts", "example", "--python")


def test_requirements_files_change_with_the_environment_and_go_back_with_it(
    stand: Stand, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works(monkeypatch)
    healthy(stand, tmp_path)
    home = tmp_path / "home"
    text = "# mine\nonnxruntime-gpu[cuda]==1.25.0 ; sys_platform == 'linux'  # fast\nnumpy\n"
    (home / "r.txt").write_text(text)
    (home / "r.txt").chmod(0o640)

    done = command("--apply", *WISHES, str(stand.venv.folder))
    assert done.returncode == 0, done
    assert "commit them together with the small directory `gpu-wheels`" in done.stdout
    written = (home / "r.txt").read_text()
    assert written.startswith(
        '# mine\nonnxruntime-gpu[cuda]==1.26.0 ; sys_platform == "linux"  # fast\nnumpy\n# '
    )
    wheels = sorted(path.name for path in (home / "gpu-wheels").iterdir())
    assert [name.partition("-1.26.0+")[0] for name in wheels] == [
        "onnxruntime",
        "ortgpu_fix_libraries",
    ]
    assert (home / "r.txt").stat().st_mode & 0o777 == 0o640

    assert command("--apply", *WISHES, str(stand.venv.folder)).returncode == 0
    assert (home / "r.txt").read_text() == written

    undone = command("undo", "--yes", "--python", str(stand.venv.folder))
    assert undone.returncode == 0, undone
    assert (home / "r.txt").read_text() == text
    assert not (home / "gpu-wheels").exists()


def buffered() -> dict[str, str]:
    """Return an environment in which standard output has its buffer, as users have it."""
    return {name: text for name, text in clean_environment().items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells of a closed pipe otherwise")
def test_an_apply_whose_reader_went_away_did_nothing_and_says_so(stand: Stand) -> None:
    """`ortgpu-fix --apply --yes | head -1`: it is not done, so it is not 0."""
    stand.have("onnxruntime 1.22.1")
    words = ["--apply", "--yes", "--offline", "--facts", "example"]
    argv = [sys.executable, "-m", "ortgpu_fix", *words, "--python", str(stand.venv.folder)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        argv, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=buffered()
    )
    os.close(writer)

    assert done.returncode == 4
    assert "Interrupted, and the environment was restored" in done.stderr
    assert stand.unchanged()
    assert not stand.state.exists()


def test_a_reader_that_goes_away_during_an_apply_is_no_broken_disk(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")
    codes = []

    def progress(code: str, /, **_: object) -> None:
        codes.append(code)
        if code == "set-aside":
            raise BrokenPipeError(32, "Broken pipe")

    error = stand.fails(stand.plan(*CUDA, uninstall=("onnxruntime",)), progress=progress)

    assert (error.code, "set-aside" in codes) == ("apply-interrupted", True)
