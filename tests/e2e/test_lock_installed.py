"""A lock of real wheels, installed without network; `scripts/prove/lock.py` does all formats."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from prove import lock as prove_lock
from support.pythons import find_python

pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the example machine is a Linux machine"),
    pytest.mark.skipif(find_python(prove_lock.PYTHON) is None, reason="needs the example's Python"),
]


def can_be_cut_off() -> bool:
    """Tell whether programs can be run here without any network."""
    try:
        done = subprocess.run([*prove_lock.APART, "true"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[prove_lock.Shop]:
    """A folder with the whole set, which `ortgpu-fix download` brought."""
    made = prove_lock.Shop(tmp_path_factory.mktemp("lock"))
    made.fill()
    yield made
    shutil.rmtree(made.folder)


@pytest.mark.skipif(not can_be_cut_off(), reason="needs root, to run without network")
def test_a_lock_is_made_and_installed_without_network(shop: prove_lock.Shop) -> None:
    seen = prove_lock.offline_pylock(shop)

    assert seen["verdict"] in {"no-driver", "no-gpu"}
    assert "unreachable" in str(seen["namespace"])
