"""`--keep`: pip itself leaves the set, until `--no-keep` or `undo`; with the real pip."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from lacking import install_all_but
from stand import Stand

from ortgpu_fix.cli.commands import apply as applying
from ortgpu_fix.cli.keeping import CONFIGURATION
from ortgpu_fix.verify.verification import Verification
from support.local_index import make_wheel
from support.standin_wheels import Venv, make_venv, state_of

KEEP = "ortgpu-fix-keep"
CONSTRAINTS = "_ortgpu_fix_keep/constraints.txt"


class Kept:
    """An environment with pip that is right for the example machine, and the command in it."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.stand, self.folder = stand, folder
        self.home = folder / "home"
        self.home.mkdir()
        install_all_but("flatbuffers", stand.venv, folder / "set")
        stand.have("flatbuffers 25.9.23")
        self.file = stand.venv.folder / CONFIGURATION

    def environment(self) -> dict[str, str]:
        clean = {name: text for name, text in os.environ.items() if not name.startswith("PIP_")}
        return clean | {"HOME": str(self.home), "LANG": "C.UTF-8"}

    def command(self, *argv: str, env: Mapping[str, str] | None = None) -> Any:
        python = ["--python", str(self.stand.venv.folder)]
        machine = [] if "undo" in argv else ["--facts", "example"]
        environ = self.environment() | dict(env or {})
        return run_here(*argv, *machine, *python, cwd=self.home, env=environ)

    def apply(self, *flags: str) -> Any:
        index = ("--index-url", self.stand.server.url)
        return self.command("--apply", "--yes", *index, *flags)

    def pip(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run the pip of the environment on the wheels of `folder`, with its own configuration."""
        command = [str(self.stand.venv.python), "-m", "pip", "install", "--no-index"]
        shops = (
            self.folder / "shop",
            self.folder / "set",
            next(iter(self.stand.wheels.values())).parent,
        )
        command += [word for shop in shops for word in ("--find-links", str(shop))]
        command += ["--disable-pip-version-check", *argv]
        return subprocess.run(
            command, capture_output=True, text=True, env=self.environment(), check=False
        )


@pytest.fixture
def kept(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr(applying, "verify", lambda *_, **__: Verification(verdict="works"))
    stand.venv = Venv(folder=tmp_path / "with-pip")
    make_venv(stand.venv.folder, pip=True)
    made = Kept(stand, tmp_path)
    for version in ("1.26.0", "1.32.0"):
        make_wheel(
            tmp_path / "shop", "onnxruntime", version, files={"onnxruntime/__init__.py": "# CPU"}
        )
    make_wheel(tmp_path / "shop", "reader", "1.0", requires=["onnxruntime>=1.20"])
    make_wheel(tmp_path / "shop", "newer", "1.0", requires=["onnxruntime>=1.30"])
    return made


@pytest.mark.slow
def test_pip_leaves_the_set_and_says_why(kept: Kept) -> None:
    module = kept.stand.venv.site / "onnxruntime" / "__init__.py"
    assert kept.apply().returncode == 0
    assert not kept.file.exists()

    done = kept.apply("--keep")

    assert done.returncode == 0, done.stderr
    assert "tells pip to leave onnxruntime-gpu in its place" in done.stdout
    assert kept.stand.names()[KEEP] == "1.26.0"
    for wish in (["reader"], ["--force-reinstall", "reader"], ["-U", "onnxruntime"]):
        assert kept.pip(*wish).returncode == 0
        assert (module.read_text(), kept.stand.names()["onnxruntime"]) == ("", "1.26.0")
    for other in ("newer", "onnxruntime==1.32.0"):
        refused = kept.pip(other)
        assert refused.returncode == 1
        assert "(constraint)" in refused.stdout + refused.stderr
    assert module.read_text() == ""
    assert kept.command("--check").returncode == 0

    ended = kept.apply("--no-keep")
    assert ended.returncode == 0, ended.stderr
    assert not kept.file.exists()
    assert KEEP not in kept.stand.names()
    assert not (kept.stand.venv.site / CONSTRAINTS).exists()
    assert kept.pip("newer").returncode == 0


def test_undo_takes_it_out_to_the_byte(kept: Kept) -> None:
    assert kept.apply().returncode == 0
    before = state_of(kept.stand.venv.folder)
    assert kept.apply("--keep").returncode == 0
    assert "[install]\nconstraint = file:///" in kept.file.read_text()
    assert (kept.stand.venv.site / CONSTRAINTS).read_text().startswith("onnxruntime @ file:///")

    assert kept.command("undo", "--yes").returncode == 0

    assert state_of(kept.stand.venv.folder) == before


def test_what_the_user_adds_is_not_lost(kept: Kept) -> None:
    assert kept.apply("--keep").returncode == 0
    mine = kept.file.read_text() + "[global]\ntimeout = 9\n"
    kept.file.write_text(mine)

    assert kept.command("undo", "--yes").returncode == 2
    refused = kept.apply("--no-keep")
    assert (refused.returncode, str(kept.file) in refused.stderr) == (2, True)
    assert kept.file.read_text() == mine
    assert kept.command("--check", "--keep").returncode == 0
    ours = mine.removesuffix("[global]\ntimeout = 9\n")
    kept.file.write_text(ours)
    assert kept.command("--check", "--no-keep").returncode == 1
    moved = ours.replace(str(kept.stand.venv.folder), "/where/it/was")
    assert moved != ours
    kept.file.write_text(moved)
    assert kept.command("--check", "--no-keep").returncode == 1
    again = kept.command("--keep")
    assert (again.returncode, "--no-keep --apply" in again.stderr) == (2, True)
    kept.file.write_text(moved.replace("[install]", "[install]\ntimeout = 9"))
    assert kept.command("--check", "--no-keep").returncode == 2
    kept.file.unlink()
    assert kept.command("--check", "--no-keep").returncode == 1
    assert kept.apply("--keep").returncode == 0  # nothing to do: the wheel is there


def test_a_configuration_of_the_user_is_left_alone(kept: Kept) -> None:
    kept.file.write_text("[global]\ntimeout = 9\n")

    for argv in (["--keep"], ["--check", "--keep"], ["--apply", "--yes", "--keep"]):
        done = kept.command(*argv)
        assert (done.returncode, str(kept.file) in done.stderr) == (2, True)
    assert kept.file.read_text() == "[global]\ntimeout = 9\n"
    assert kept.command("--no-keep").returncode == 1  # of what is missing here


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_configuration_that_cannot_be_read_is_the_users(kept: Kept, kind: str) -> None:
    nowhere = kept.folder / "not mounted" / CONFIGURATION
    if kind == "folder":
        kept.file.mkdir()
    else:
        kept.file.symlink_to(nowhere)

    done = kept.apply("--keep")

    assert (done.returncode, str(kept.file) in done.stderr) == (2, True), done.stderr
    assert kept.file.is_dir() or kept.file.readlink() == nowhere
    assert kept.command("--no-keep").returncode == 1  # of what is missing here


@pytest.mark.parametrize("place", ["variable", "file"])
def test_no_constraint_of_the_user_is_hidden(kept: Kept, place: str) -> None:
    corporate = kept.home / "corporate.txt"
    variable = {"PIP_CONSTRAINT": str(corporate)} if place == "variable" else {}
    if place == "file":
        folder = kept.home / ".config" / "pip"
        folder.mkdir(parents=True)
        (folder / "pip.conf").write_text(f"[install]\nconstraint = {corporate}\n")

    done = kept.command("--keep", env=variable)

    assert (done.returncode, str(corporate) in done.stderr) == (2, True)


@pytest.mark.parametrize(("version", "code"), [("21.0.1", 2), ("21.1", 1)])
def test_an_old_pip_would_install_nothing_any_more(kept: Kept, version: str, code: int) -> None:
    (metadata,) = kept.stand.venv.site.glob("pip-*.dist-info")
    text = (metadata / "METADATA").read_text()
    number = metadata.name.removeprefix("pip-").removesuffix(".dist-info")
    (metadata / "METADATA").write_text(text.replace(f"Version: {number}", f"Version: {version}", 1))

    assert kept.command("--keep").returncode == code


@pytest.mark.parametrize(
    ("argv", "clash"),
    [
        (("matrix", "--update", "--offline"), "--update, --offline"),
        (("matrix", "--update", "--forget"), "--update, --forget"),
        (("--keep", "--no-keep"), "--keep, --no-keep"),
        (("run", "--pid", "1", "--live"), "--pid, --live"),
    ],
)
def test_flags_that_exclude_each_other(tmp_path: Path, argv: tuple[str, ...], clash: str) -> None:
    done = run_here(*argv, cwd=tmp_path, env=os.environ | {"LANG": "C"})

    assert (done.returncode, clash in done.stderr) == (2, True)


def test_both_wishes_are_none(kept: Kept) -> None:
    done = kept.command("--keep", "--no-keep")

    assert (done.returncode, "--keep, --no-keep" in done.stderr) == (2, True)
