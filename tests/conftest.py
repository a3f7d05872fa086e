"""Fixtures: real environments, and machines whose driver is simulated at the library's boundary."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import drivers
import environments
import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does: no reason to fail.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in driver libraries."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("needs Linux and gcc to build the stand-ins for the driver's libraries")
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


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """The interpreter of a fresh venv without pip, of the Python that runs the tests."""
    return environments.make_venv(environments.own_base(), tmp_path / "venv")
