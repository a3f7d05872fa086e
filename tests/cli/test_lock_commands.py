"""lock and download as a user runs them, with an index on this machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from tables import pages_of_the_matrix

import synthetic
from ortgpu_fix.cli.commands import download as download_commands
from ortgpu_fix.cli.commands import lock as lock_commands
from ortgpu_fix.lock.groups import Group
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import clean_environment, make_venv

SHA256 = "0" * 64
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIndex]:
    """An index that lists what the matrix knows, and has tiny wheels of the ordinary names."""
    folder = tmp_path_factory.mktemp("index")
    for name, version in (
        *(("flatbuffers", "25.9.23"), ("numpy", "1.26.4"), ("packaging", "26.3")),
        *(("protobuf", "6.33.0"), ("sympy", "1.14.0"), ("coloredlogs", "15.0.1")),
        *(("onnxruntime", "1.26.0"), ("onnxruntime", "1.31.1")),
    ):
        make_wheel(folder, name, version)
    with LocalIndex(folder) as served:
        served.behaviour.listed = pages_of_the_matrix()
        yield served


@pytest.fixture
def run(tmp_path: Path, index: LocalIndex) -> Run:
    def start(*words: str) -> subprocess.CompletedProcess[str]:
        env = clean_environment() | {"LANG": "C.UTF-8", "HOME": str(tmp_path)}
        return run_here(*words, "--index-url", index.url, cwd=tmp_path, env=env)

    return start


def machine(folder: Path, name: str, **changes: Any) -> list[str]:
    (folder / f"{name}.json").write_text(json.dumps(synthetic.document(**changes)))
    return ["--facts", f"{name}.json"]


def test_the_same_input_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    first = run("lock", "--facts", "example", "--format", "uv")
    again = run("lock", "--facts", "example", "--format", "uv", "-o", "lock.txt")

    assert first.returncode == 0, first.stderr
    assert again.stderr == "Written: lock.txt\n"
    assert (tmp_path / "lock.txt").read_text() == first.stdout
    assert "onnxruntime-gpu==1.26.0" in first.stdout


def test_a_lock_says_what_made_it(run: Run, tmp_path: Path) -> None:
    facts = machine(tmp_path, "a b")

    done = run("lock", *facts, "--ort", "<1.27", "--ignore-gpu", "6.1", "--no-provide", "-o", "x")

    assert done.returncode == 0, done.stderr
    made = (tmp_path / "x").read_text().splitlines()[1]
    assert made.startswith(
        "# made by: ortgpu-fix lock --facts 'a b.json' --ignore-gpu 6.1 --ort '<1.27' --no-provide"
    )


def test_a_lock_with_tensorrt_has_it_by_its_address_and_hash(run: Run, tmp_path: Path) -> None:
    wheels, name = tmp_path / "nvidia", "tensorrt-cu12-libs"
    tag = "py3-none-manylinux_2_28_x86_64"
    wheel = make_wheel(wheels, name, "10.16.1.11", tag=tag)
    wish = ("--ort", "1.26.0", "--provider", "tensorrt")
    with LocalIndex(wheels) as nvidia:
        url = nvidia.url.removesuffix("/simple")
        index = ("--tensorrt-index-url", url)
        done = run("lock", *machine(tmp_path, "a"), *wish, *index, "-o", "x")

    assert done.returncode == 0, done.stderr
    _, made, *lines = (tmp_path / "x").read_text().splitlines()
    assert "--provider tensorrt" in made
    assert f"--tensorrt-index-url {url}" in made
    at = next(at for at, line in enumerate(lines) if line.startswith(name))
    assert f"{name} @ {url}/files/{wheel.name}" in lines[at]
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() in lines[at + 1]


def test_companions_travel_where_they_are_told_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()

    done = run("lock", "--facts", "example", "-d", "share/wheels", "-o", "locks/gpu.txt")

    assert done.returncode == 0, done.stderr
    text = (tmp_path / "locks" / "gpu.txt").read_text()
    made = sorted(path.name for path in (tmp_path / "share" / "wheels").iterdir())
    assert [name.partition("-")[0] for name in made] == ["onnxruntime", "ortgpu_fix_libraries"]
    assert all(f"\n../share/wheels/{name} \\" in text for name in made)


def test_a_link_of_the_name_of_a_companion_is_not_followed(run: Run, tmp_path: Path) -> None:
    run("lock", "--facts", "example", "-d", "share", "-o", "gpu.txt")
    companion = next((tmp_path / "share").glob("ortgpu_fix_libraries-*.whl"))
    content = companion.read_bytes()
    (tmp_path / "document").write_text("mine")
    companion.unlink()
    companion.symlink_to(tmp_path / "document")

    assert run("lock", "--facts", "example", "-d", "share", "-o", "gpu.txt").returncode == 0

    assert (tmp_path / "document").read_text() == "mine"
    assert companion.read_bytes() == content
    assert not companion.is_symlink()


def test_a_document_for_programs(run: Run) -> None:
    done = run("lock", "--facts", "example", "--json")
    document = json.loads(done.stdout)
    [lock] = document["locks"]

    assert document["schema"] == 1
    assert lock["release"] == "onnxruntime-gpu 1.26.0"
    assert lock["file"] is None
    assert lock["text"].startswith("# onnxruntime-gpu 1.26.0 for CUDA 12")


SPLIT = {"old": {"driver": "11.4"}, "new": {"driver": "13.0", "python": "3.13.1"}}


def test_groups_get_a_file_each(run: Run, tmp_path: Path) -> None:
    facts = [flag for name, row in SPLIT.items() for flag in machine(tmp_path, name, **row)]
    facts += machine(tmp_path, "ci", driver=None, gpus=())

    refused = run("lock", *facts, "--with-cpu")
    done = run("lock", *facts, "--with-cpu", "-o", "gpu.txt")

    assert refused.returncode == 2
    assert "3 locks" in refused.stderr
    assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in tmp_path.glob("gpu.*"))
    assert files == ["gpu.cpu.txt", "gpu.cuda11.txt", "gpu.cuda13.txt"]
    [cpu, older, newer] = [(tmp_path / name).read_text() for name in files]
    assert "# for ci: " in cpu
    assert "# for old: " in older
    assert "# for new: " in newer


def test_a_group_of_a_pylock_has_a_name_of_pep_751(tmp_path: Path) -> None:
    """uv and pip refused `pylock.1.26.0.toml`: a name has no more dots."""
    groups = [
        Group(distribution="onnxruntime-gpu", version=version, cuda="12", targets=())
        for version in ("1.26.0", "1.19.2")
    ]
    one, two = [name.version for name in groups]

    def names(output: str) -> list[str]:
        return [path.name for path in lock_commands._paths(tmp_path / output, groups) if path]

    assert names("pylock.toml") == ["pylock.1-26-0.toml", "pylock.1-19-2.toml"]
    assert names("pylock.gpu.toml") == ["pylock.gpu-1-26-0.toml", "pylock.gpu-1-19-2.toml"]
    assert names("gpu.txt") == [f"gpu.{one}.txt", f"gpu.{two}.txt"]


@pytest.mark.parametrize("output", ["absent/gpu.txt", "."])
def test_nothing_is_made_where_a_lock_cannot_be_written(
    output: str, run: Run, tmp_path: Path
) -> None:
    """`-o .` was an internal error, and the companions of a lock in no folder were left behind."""
    (tmp_path / "taken.cuda11.txt").mkdir()
    (tmp_path / "taken.txt").touch()
    facts = [flag for name, row in SPLIT.items() for flag in machine(tmp_path, name, **row)]

    done = run("lock", *facts, "-o", output, "-d", "wheels")

    assert done.returncode == 7
    assert "cannot be written" in done.stderr
    assert not (tmp_path / "wheels").exists()
    assert not list(tmp_path.glob("*.cuda13*"))


def test_one_lock_for_two_systems(run: Run, tmp_path: Path) -> None:
    windows = {"system": "windows", "machine": "x86_64"}
    facts = [*machine(tmp_path, "server"), *machine(tmp_path, "laptop", platform=windows)]

    done = run("lock", *facts)
    docker = run("lock", *facts, "--format", "dockerfile")

    assert done.returncode == 0, done.stderr
    assert "; sys_platform == 'win32'" in done.stdout
    assert docker.returncode == 2
    assert "needs Linux machines with the same Python" in docker.stderr


def test_where_nothing_works_the_plan_is_shown(run: Run, tmp_path: Path) -> None:
    old = machine(tmp_path, "old", driver="10.1")
    without = machine(tmp_path, "without", driver=None, gpus=())

    assert run("lock", *old).returncode == 3
    assert run("lock", *old, *without).returncode == 3
    assert not (tmp_path / "wheels").exists()


def test_what_was_downloaded_is_told_file_by_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the gigabytes themselves; what this program makes is there."""
    monkeypatch.setattr(download_commands, "download_all", lambda *_: [])

    done = run("download", "--facts", "example", "-d", "wheels", "--json")

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["folder"]) == (1, "wheels")
    files = document["files"]
    assert [row["name"] for row in files] == sorted(row["name"] for row in files)
    assert {frozenset(row) for row in files} == {
        frozenset({"name", "version", "file", "size", "sha256"})
    }
    rows = {row["name"]: row for row in files}
    gpu = rows["onnxruntime-gpu"]
    assert gpu["version"] == "1.26.0"
    assert gpu["file"].startswith("onnxruntime_gpu-1.26.0-cp")
    assert gpu["size"] > 100_000_000
    assert len(gpu["sha256"]) == len(SHA256)
    for name in ("onnxruntime", "ortgpu-fix-libraries"):
        content = (tmp_path / "wheels" / rows[name]["file"]).read_bytes()
        assert rows[name]["size"] == len(content)
        assert rows[name]["sha256"] == hashlib.sha256(content).hexdigest()
    assert rows["onnxruntime"]["version"] == "1.26.0"

    shown = run("download", "--facts", "example", "-d", "wheels")
    assert f"Files in wheels: {len(files)}, " in shown.stderr


def test_in_ci_without_a_gpu_a_lock_is_held_against_the_machines_that_it_is_for(
    run: Run, tmp_path: Path
) -> None:
    """`lock --check gpu.txt  # in CI`: what is installed there still counts."""
    done = run("lock", "--facts", "example", "-o", "gpu.txt")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "gpu.txt").read_text()
    older = text.replace("535.104.12, CUDA 12.2", "470.57.02, CUDA 11.4")
    (tmp_path / "older.txt").write_text(older)
    elsewhere = text.replace("# for linux", "# for windows")
    (tmp_path / "elsewhere.txt").write_text(elsewhere)

    make_venv(tmp_path / ".venv", pip=False)

    def check(file: str, *flags: str) -> subprocess.CompletedProcess[str]:
        return run("lock", "--check", file, "--python", ".venv", *flags)

    held, told = check("gpu.txt", "--json"), check("gpu.txt")
    too_old, no_line = check("older.txt", "--json"), check("elsewhere.txt", "--json")

    document = json.loads(held.stdout)
    assert document["reasons"] == []
    assert (held.returncode, document["verdict"]) == (1, "drifted")  # nothing is installed here
    assert document["machine"].endswith("; driver 535.104.12, CUDA 12.2; GPU 8.0")
    assert (
        "No GPU on this machine. Checked against the machine in the lock's header: `linux"
        in told.stdout
    )
    assert too_old.returncode == 3
    assert {row["code"] for row in json.loads(too_old.stdout)["reasons"]} == {"driver-too-old"}
    assert json.loads(no_line.stdout)["machine"] is None
    assert no_line.returncode == 3


def test_where_no_environment_is_named_the_lock_alone_is_looked_at(
    run: Run, tmp_path: Path
) -> None:
    done = run("lock", "--facts", "example", "-o", "gpu.txt")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "gpu.txt").read_text()
    [line] = [line for line in text.splitlines() if line.startswith("# for linux")]
    older = line.replace("535.104.12, CUDA 12.2", "470.57.02, CUDA 11.4")
    (tmp_path / "both.txt").write_text(text.replace(line, f"{line}\n{older}"))
    (tmp_path / "nobody.txt").write_text(text.replace(f"{line}\n", ""))
    (tmp_path / "wrong.txt").write_text(text.replace("--hash=sha256:", "--hash=sha256:0", 1))

    def check(file: str, *flags: str) -> tuple[int, str]:
        done = run("lock", "--check", file, "--python", "3.11", *flags)
        return done.returncode, done.stdout

    code, told = check("gpu.txt")
    assert code == 0, told
    assert "No environment was specified. Checked against the machine in the lock's header" in told
    assert f"header: `{line.removeprefix('# for ')}`\n" in told
    assert told.endswith("\nThe lock works on that machine\n")
    assert json.loads(check("gpu.txt", "--json")[1])["environment"] == []
    code, told = check("gpu.txt", "--python", "3.12")  # the last one counts
    assert code == 3
    assert "onnxruntime-gpu 1.26.0 lacks the hash of its wheel for linux_x86_64, cp312" in told
    code, told = check("both.txt")
    assert (code, told.endswith("\nThe lock does not work on that machine\n")) == (3, True)
    code, told = check("wrong.txt")
    assert (
        code,
        told.endswith("\nThe lock differs from the compatibility data (see above)\n"),
    ) == (
        1,
        True,
    )
    described = ("--driver", "535.104.12", "--gpu", "A100")
    for file in ("nobody.txt", "both.txt"):
        code, told = check(file, *described)
        assert (code, told.endswith("\nThe lock works on that machine\n")) == (0, True)
        assert "No environment was specified" not in told
    assert check("nobody.txt")[0] == 3  # this machine has no GPU


def test_what_a_requirements_file_includes_is_held_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gpu.txt").write_text("onnxruntime-gpu==1.26.0\n")
    (tmp_path / "requirements.txt").write_text("requests==2.32.3\n-r gpu.txt\n")
    (tmp_path / "newer.txt").write_text("-r newer-gpu.txt\n")
    (tmp_path / "newer-gpu.txt").write_text("onnxruntime-gpu==1.31.1\n")

    held = run("lock", "--check", "requirements.txt", "--facts", "example", "--json")
    done = run("diff", "requirements.txt", "newer.txt")

    document = json.loads(held.stdout)
    assert document["file"] == "requirements.txt"
    assert document["release"]["version"] == "1.26.0"
    assert "1.26.0 → 1.31.1" in done.stdout


def test_a_lock_of_another_project_has_nothing_to_hold(run: Run, tmp_path: Path) -> None:
    """Nor is a Python looked for, or a GPU; a lock of ours without its release is still wrong."""
    (tmp_path / "other.txt").write_text("requests==2.32.3\n")
    (tmp_path / "ours.txt").write_text("# ortgpu-fix lock\nrequests==2.32.3\n")

    done = run("lock", "--check", "other.txt", "--python", "nowhere")
    told = run("lock", "--check", "other.txt", "--python", "nowhere", "--json")
    ours = run("lock", "--check", "ours.txt", "--facts", "example", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "other.txt does not contain onnxruntime, so there is nothing to check\n"
    assert told.returncode == 0
    document = json.loads(told.stdout)
    assert document.keys() == json.loads(ours.stdout).keys()
    assert {name for name, value in document.items() if value} == {"schema", "file", "verdict"}
    assert (document["verdict"], document["file"]) == ("holds", "other.txt")
    assert (document["reasons"], document["release"]) == ([], None)
    assert ours.returncode == 3
