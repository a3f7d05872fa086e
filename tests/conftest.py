"""Fixtures: real environments, and machines whose driver is simulated at the library's boundary."""

from __future__ import annotations

import contextlib
import functools
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import drivers
import environments
import pytest
from disk_steps import Steps, note_steps
from hypothesis import settings
from stand import HANG_UP, Stand

from ortgpu_fix.cli import alive
from support.local_index import LocalIndex
from support.standin_wheels import Venv, make_set, make_venv

# How long an example takes depends on what else the machine does: no reason to fail. The same
# commit draws the same examples everywhere, as hypothesis itself does under `CI=true`;
# `--hypothesis-profile explore` draws others each time.
settings.register_profile("decided", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, derandomize=False)
settings.load_profile("decided")
# A busy machine makes every command slow: `test_alive.py` alone wants to hear that it goes on.
vars(alive)["SILENCE"] = 3600.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Measure no coverage where examples are random: what they reach would be luck.

    Those that are many take a third of the time so. (The marker of pytest-cov does nothing in a
    worker of xdist: another measurement, which the plugin begins there too, goes on.)
    """
    random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if not random and item.get_closest_marker("untraced") is None:
        return (yield)
    with untraced():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None]:
    """Measure no coverage of what the measurement does itself: it writes down what a test ran."""
    with untraced():
        return (yield)


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


@pytest.fixture
def heard() -> Iterator[None]:
    """Let signals be heard here and by children, also where the tests began with `nohup`."""
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    hang_up = signal.signal(HANG_UP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(HANG_UP, hang_up)


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in driver libraries."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("needs gcc, on Linux")
    return drivers.compile_stubs(tmp_path_factory.mktemp("stubs"))


@pytest.fixture
def simulate(stubs: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Make a simulated driver, once a test; returns the environment that meets it."""

    def make(**values: object) -> dict[str, str]:
        return drivers.simulate(stubs, tmp_path / "driver", **values)  # type: ignore[arg-type]

    return make


@pytest.fixture
def empty_root(tmp_path: Path) -> Path:
    """A stand-in for `/`, with nothing in it."""
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_set(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Venv]:
    """Return what gives an environment to copy, with pip or without; it is made when asked for."""
    folder = tmp_path_factory.mktemp("templates")

    @functools.cache
    def made(pip: bool) -> Venv:  # noqa: FBT001
        if pip:
            environments.require_ensurepip()
        return make_venv(folder / str(pip), pip=pip)

    return made


@pytest.fixture
def venv(template: Callable[[bool], Venv], tmp_path: Path) -> Path:
    """The interpreter of a fresh venv without pip, of the Python that runs the tests."""
    venv = Venv(folder=tmp_path / "venv")
    shutil.copytree(template(False).folder, venv.folder, symlinks=True)  # noqa: FBT003
    return venv.python


@pytest.fixture
def stand(
    wheels: dict[str, Path], template: Callable[[bool], Venv], tmp_path: Path
) -> Iterator[Stand]:
    with LocalIndex(next(iter(wheels.values())).parent) as server:
        venv = Venv(folder=tmp_path / "venv")
        shutil.copytree(template(False).folder, venv.folder, symlinks=True)  # noqa: FBT003
        yield Stand(venv, server, wheels)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mount something, where this machine allows it; it is gone afterwards."""
    points: list[Path] = []

    def mount(*command: str) -> Path:
        point = tmp_path / "mounted"
        point.mkdir(exist_ok=True)
        done = subprocess.run(["mount", *command, point], check=False, capture_output=True)
        if done.returncode != 0:
            pytest.skip("this machine does not allow to mount")
        points.append(point)
        return point

    yield mount
    for point in points:
        subprocess.run(["umount", point], check=True)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """What is flushed to the disk and what is moved, in its order."""
    return note_steps(monkeypatch)
