"""A release of each CUDA major loads with every symbol bound, and when CUDA is asked for.

`scripts/prove/loading.py` does all releases with the same code.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from prove.loading import (
    builds,
    make,
    prove_application,
    prove_demand,
)
from prove.verify import debian_drivers
from support.prover import Prover

pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the sets are for Linux"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, on Linux"),
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a real driver: with a stub some releases crash."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip("needs Debian's apt-get and dpkg")
    found = debian_drivers(tmp_path_factory.mktemp("debian"), ["550"])
    if not found:
        pytest.skip("the archive of Debian cannot be reached")
    return next(iter(found.values()))


@pytest.mark.parametrize("release", ["1.16.3", pytest.param("1.31.1", marks=pytest.mark.alone)])
def test_a_release_of_each_cuda_major_finds_its_real_libraries(
    release: str, driver: str, tmp_path: Path
) -> None:
    prover = Prover(tmp_path, keep=False)
    prover.driver = driver
    [build] = (build for build in builds(prover) if build.version == release)

    python, chosen = make(prover, build)
    prove_application(prover, build, python, chosen)
    if release == "1.31.1":
        prove_demand(prover, build, python, chosen)
    shutil.rmtree(tmp_path)

    assert [row["part"] for row in prover.rows if not row["good"]] == []
