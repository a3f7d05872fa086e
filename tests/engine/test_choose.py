"""Who installs: which uv is found, whether it can, and whose pip works where there is none."""

from __future__ import annotations

import email.message
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import pytest
from example_target import TARGET

from ortgpu_fix.engine.at_hand import can_install
from ortgpu_fix.engine.choose import choose_engine, choose_resolver, find_uv
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.engine.uv import Uv
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Target
from ortgpu_fix.utils.process import Finished, install_environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")


class Machine:
    """uvs in folders, each with what it says of its version; and what they were asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.says: dict[str, str | OSError] = {}
        self.finds_python = True
        self.calls: list[tuple[list[str], Mapping[str, str], float]] = []
        monkeypatch.setattr("sysconfig.get_path", lambda name: str(folder / name))

    def uv(self, name: str, says: str | OSError) -> Path:
        program = self._folder / name / "uv"
        program.parent.mkdir(exist_ok=True)
        program.touch(mode=0o755)
        self.says[str(program)] = says
        return program

    def __call__(self, argv: Sequence[str], *, timeout: float, env: Mapping[str, str]) -> Finished:
        self.calls.append(([*argv], env, timeout))
        said = self.says[argv[0]] if argv[1] == "--version" else ""
        if isinstance(said, OSError):
            raise said
        fails = said == "fails" or (argv[1] == "python" and not self.finds_python)
        return Finished(argv=tuple(argv), returncode=int(fails), stdout=said, stderr="")

    def engine(self, target: Target = TARGET, *, system: bool = False) -> Uv | Pip:
        return choose_engine(target, self.environ, self, break_system_packages=system)

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self._folder / "path"), "UV_OFFLINE": "1"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("uv 0.8.0 (abc 2025-07-17)", "0.8.0"),
        ("uv 0.9.5", "0.9.5"),  # as distributions build it
        ("uv 1.0", "1.0"),
        ("uv 0.7.22 (abc 2025-07-16)", None),
        ("uv", None),
        ("", None),
        ("fails", None),
        (OSError(8, "Exec format error"), None),
    ],
)
@pytest.mark.parametrize("where", ["path", "scripts"])
def test_a_uv_that_runs_and_is_new_enough(
    machine: Machine, says: str | OSError, version: str | None, where: str
) -> None:
    program = machine.uv(where, says)
    found = find_uv(machine.environ, machine)

    assert (found and (found.program, found.version)) == (version and (str(program), version))
    [(argv, env, seconds)] = machine.calls
    assert argv == [str(program), "--version"]
    assert env == install_environment(machine.environ)
    assert seconds == 5


def test_where_there_is_no_uv_nothing_is_started(machine: Machine) -> None:
    assert find_uv(machine.environ, machine) is None
    assert find_uv({}, machine) is None
    assert machine.calls == []


def test_the_uv_of_the_path_comes_before_that_beside_us(machine: Machine) -> None:
    first, second = machine.uv("path", "uv 0.9.5"), machine.uv("scripts", "uv 0.9.6")

    assert find_uv(machine.environ, machine).program == str(first)  # type: ignore[union-attr]
    for useless in ("uv 0.1", OSError(8, "Exec format error")):
        machine.uv("path", useless)
        assert find_uv(machine.environ, machine).program == str(second)  # type: ignore[union-attr]


def test_one_uv_in_both_places_is_asked_once(machine: Machine) -> None:
    program = machine.uv("scripts", "uv 0.1")

    assert find_uv({"PATH": str(program.parent)}, machine) is None
    assert len(machine.calls) == 1


def test_a_uv_of_a_relative_path_is_found_from_elsewhere_too(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = machine.uv("path", "uv 0.9.5")
    monkeypatch.chdir(tmp_path)
    machine.says["path/uv"] = "uv 0.9.5"

    found = find_uv({"PATH": "path"}, machine)

    assert found is not None
    assert found.program == str(program)


@pytest.mark.parametrize("implementation", ["cpython", "pypy", "graalpy"])
@pytest.mark.parametrize("finds", [True, False])
def test_uv_installs_where_it_can_query_the_python(
    machine: Machine, implementation: str, *, finds: bool
) -> None:
    program = machine.uv("path", "uv 0.9.5")
    machine.finds_python = finds

    found = machine.engine(TARGET._replace(implementation=implementation))

    assert isinstance(found, Uv) == (finds and implementation != "graalpy")
    assert not found.break_system_packages
    if implementation != "graalpy":
        argv, env, seconds = machine.calls[-1]
        assert argv[:3] == [str(program), "python", "find"]
        assert set(argv[3:-1]) == {
            "--offline",  # it brings no Python
            "--no-cache",  # an earlier answer proves nothing
            "--no-project",  # the folder it is started in is of no concern
        }
        assert argv[-1] == TARGET.executable
        assert env == install_environment(machine.environ)
        assert seconds == 60


def test_a_system_s_python_with_leave(machine: Machine) -> None:
    assert machine.engine(system=True).break_system_packages
    machine.uv("path", "uv 0.9.5")
    assert machine.engine(system=True).break_system_packages


@pytest.mark.parametrize(
    ("version", "own"),
    [("22.2", False), ("25.1", False), ("22.1.2", True), (None, True)],
)
def test_the_target_s_pip_where_it_has_report(
    machine: Machine, version: str | None, *, own: bool
) -> None:
    found = machine.engine(TARGET._replace(pip_version=version))

    assert isinstance(found, Pip)
    ours = (sys.executable, "-I", "-B", "-m", "pip", "--python", TARGET.executable)
    assert found.command == (ours if own else (TARGET.executable, "-I", "-B", "-m", "pip"))
    assert found.version == (metadata.version("pip") if own else version)


def pip_for(pythons: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make our own pip one for `pythons`."""
    about = email.message.Message()
    about["Version"] = "99.0"
    if pythons is not None:
        about["Requires-Python"] = pythons
    monkeypatch.setattr(metadata, "metadata", lambda _: about)


@pytest.mark.parametrize(
    ("pythons", "version", "serves"),
    [
        (">=3.9", "3.11.7", True),
        (">=3.9", "3.13.0rc1", True),  # an early version of a Python is one of that Python
        (">=3.9", "3.8.18", False),
        (None, "3.8.18", True),
    ],
)
def test_our_own_pip_for_the_pythons_that_it_names(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    pythons: str | None,
    version: str,
    *,
    serves: bool,
) -> None:
    pip_for(pythons, monkeypatch)
    target = TARGET._replace(version=version, pip_version=None)

    assert can_install(target, machine.environ) == serves
    if serves:
        assert machine.engine(target).version == "99.0"
    else:
        with pytest.raises(Error) as caught:
            machine.engine(target)
        assert caught.value.code == "no-engine"
        assert caught.value.values == {"path": TARGET.executable, "version": version}


def test_a_plan_asks_for_what_could_install(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_for(">=3.12", monkeypatch)
    old = TARGET._replace(pip_version="22.1.2")

    assert not can_install(old, machine.environ)
    assert can_install(old._replace(pip_version="22.2"), machine.environ)
    machine.uv("scripts", "uv 0.9.5")
    assert can_install(old, machine.environ)


def test_to_resolve_our_own_pip_needs_no_target(machine: Machine) -> None:
    found = choose_resolver(machine.environ, machine)
    assert isinstance(found, Pip)
    assert found.command == (sys.executable, "-I", "-m", "pip")
    assert found.version == metadata.version("pip")

    machine.uv("scripts", "uv 0.9.5")
    assert isinstance(choose_resolver(machine.environ, machine), Uv)
