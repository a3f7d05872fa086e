"""The probe on NVIDIA's own user-mode driver, which Debian carries; nothing of it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.facts import capture
from ortgpu_fix.facts.model import Driver
from ortgpu_fix.probe.background import ProbeProcesses
from ortgpu_fix.probe.machine import probe
from ortgpu_fix.utils import process as run

pytestmark = pytest.mark.online
PACKAGES = {
    "libcuda1": "current",
    "libnvidia-ml1": "current",
    "libnvidia-tesla-470-cuda1": "tesla-470",
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one unpacked package below each name."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip("needs Debian's apt-get and dpkg")
    folder = tmp_path_factory.mktemp("debian")
    line = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)"]
    known = subprocess.run([*line, "Created-By: Packages"], capture_output=True, text=True)  # noqa: PLW1510
    archives = [row.split() for row in known.stdout.splitlines() if row.endswith(" main")]
    archives = [row for row in archives if row[0].rstrip("/").endswith("/debian")]
    if not archives:
        pytest.skip("no archive of Debian in apt's configuration")
    keys = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    uri, release, _ = archives[0]
    (folder / "sources.list").write_text(f"deb {keys} {uri} {release} non-free\n")
    (folder / "lists" / "partial").mkdir(parents=True)
    options = [
        f"-oDir::Etc::sourcelist={folder}/sources.list",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::Lists={folder}/lists",
        f"-oDir::Cache={folder}",
    ]
    for command in (["update"], ["download", *PACKAGES]):
        done = subprocess.run(
            ["apt-get", *options, *command], cwd=folder, capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip("the archive of Debian cannot be reached, or has no such driver")
    for name in PACKAGES:
        archive = next(folder.glob(f"{name}_*.deb"))
        subprocess.run(["dpkg", "-x", archive, folder / name], check=True)
    return folder


@pytest.mark.parametrize(
    ("names", "cuda"),
    [
        (["libcuda1", "libnvidia-ml1"], "12.2"),
        (["libcuda1"], "12.2"),
        (["libnvidia-tesla-470-cuda1"], "11.4"),
        (["libnvidia-ml1"], None),
    ],
    ids=["535", "535-without-nvml", "470", "nvml-alone"],
)
def test_a_real_driver_without_a_gpu(
    packages: Path, empty_root: Path, names: list[str], cuda: str | None
) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("there is a driver here")
    lib = "usr/lib/x86_64-linux-gnu/nvidia"
    folders = [str(packages / name / lib / PACKAGES[name]) for name in names]
    environ = {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}
    seen = probe(
        ProbeProcesses(Path(sys.executable), runner=run.run, environ=environ),
        runner=run.run,
        environ=environ,
        root=empty_root,
    )
    facts = capture.facts(seen.capture, lambda _: None)

    release = next(packages.glob(f"{names[0]}_*.deb")).name.split("_")[1].partition("-")[0]
    assert facts.gpus == ()
    assert facts.driver == (Driver(version=release, cuda=cuda) if cuda else None)
