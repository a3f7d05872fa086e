"""Environments and machines that are not as they should be: applied all the same, or refused."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from stand import CUDA, REQUIRES, Stand

from ortgpu_fix.errors import Error
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from support.standin_wheels import Venv, clean_environment, find_uv, state_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts, links and /proc of Linux")
LIBRARY = "nvidia/cudnn/lib/libcudnn.so.9"


def inodes(folder: Path) -> dict[str, tuple[int, str]]:
    """Return inode and digest of every file under `folder`."""
    return {
        str(path): (path.stat().st_ino, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_files_that_are_hard_links_into_uv_s_cache(stand: Stand, tmp_path: Path) -> None:
    """Neither apply nor undo writes into one, and after undo they are links into it again."""
    cache = tmp_path / "cache"
    for name in ("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42"):
        command = [find_uv(), "pip", "install", "-q", "--offline", "--no-deps", "--no-config"]
        command += ["--cache-dir", str(cache), "--link-mode", "hardlink"]
        command += ["--python", str(stand.venv.python), str(stand.wheels[name])]
        subprocess.run(command, check=True, env=clean_environment())
    library = stand.venv.site / LIBRARY
    assert library.stat().st_nlink == 2
    stand.before, before = state_of(stand.venv.folder), inodes(cache)
    own = inodes(stand.venv.folder)

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13")))
    assert inodes(cache) == before
    assert library.stat().st_nlink == 2  # as uv installs it, from the cache of this user
    library.unlink()
    library.write_bytes(b"another program changes it")
    stand.undo(allow_changed=True)

    assert stand.unchanged()
    assert inodes(stand.venv.folder) == own
    assert inodes(cache) == before


def test_an_environment_without_site_packages_gets_the_folder(stand: Stand) -> None:
    """An embeddable Python comes so."""
    target, site = stand.venv.target(), stand.venv.site
    shutil.rmtree(site)

    stand.apply(stand.plan(*CUDA), target=target._replace(installed=()))
    assert (site / LIBRARY).is_file()
    stand.undo()

    assert list(site.iterdir()) == []


def test_an_environment_on_another_filesystem_than_everything_else(
    stand: Stand, mounted: Callable[..., Path], tmp_path: Path
) -> None:
    """The cache, the folder of wheels and the temporary folder are elsewhere."""
    disk = mounted("-t", "tmpfs", "-o", "size=256m", "tmpfs")
    shutil.copytree(stand.venv.folder, disk / "venv", symlinks=True)
    links = stand.server.folder
    assert disk.stat().st_dev != links.stat().st_dev
    stand.venv = Venv(folder=disk / "venv")
    stand.have("onnxruntime 1.22.1")

    sources = IndexConfig(offline=True, find_links=links)
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES)
    uv = stand.uv()
    environ = {**uv.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}
    stand.apply(plan, index=Index(sources), uv=replace(uv, environ=environ))

    assert stand.names().keys() >= {"onnxruntime-gpu", "nvidia-cudnn-cu12", "protobuf"}
    assert all(path.stat().st_nlink == 1 for path in stand.venv.site.glob("onnxruntime/*.py"))
    stand.undo()
    assert stand.unchanged()


def test_a_process_that_has_a_library_mapped_is_named_and_keeps_it(stand: Stand) -> None:
    stand.have("nvidia-cudnn-cu13 9.28.0.42")
    library = stand.venv.site / LIBRARY
    content = library.read_bytes()
    code = (
        "import mmap, sys; f = open(sys.argv[1], 'rb');"
        "m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); print(1, flush=True);"
        "input(); sys.stdout.write(m[:].decode())"
    )
    said: list[dict[str, object]] = []

    def progress(step: str, /, **values: object) -> None:
        if step == "in-use":
            said.append(values)

    with subprocess.Popen(
        [sys.executable, "-c", code, str(library)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as user:
        assert user.stdout is not None
        user.stdout.readline()
        stand.apply(
            stand.plan("nvidia-cudnn-cu12 9.28.0.42", uninstall=("nvidia-cudnn-cu13",)),
            progress=progress,
        )
        assert library.read_bytes() != content
        kept, _ = user.communicate("\n")

    [values] = said
    assert f"({user.pid})" in str(values["processes"])
    assert kept.encode() == content


def test_a_limit_of_the_size_of_files(stand: Stand) -> None:
    """`ulimit -f`, in a child."""
    stand.have("onnxruntime 1.22.1")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
            stand.apply(plan)
        except Error as error:
            status = 0 if error.code == "disk-full" else 2
        finally:
            os._exit(status)

    assert os.waitpid(child, 0)[1] == 0
    assert stand.unchanged()


def test_the_configuration_of_the_current_folder_names_no_index(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ordinary requirements come from the chosen index alone, also of an environment beside it."""
    stand.have("onnxruntime 1.22.1")
    text = 'index-url = "http://127.0.0.1:9/simple"\n'
    for folder in (tmp_path, stand.venv.folder):
        (folder / "uv.toml").write_text(text)
        (folder / "pyproject.toml").write_text(f"[tool.uv]\n{text}")
    monkeypatch.chdir(tmp_path)

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES))

    assert stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}


def test_odd_characters_in_the_path_of_the_environment(stand: Stand, tmp_path: Path) -> None:
    venv = Venv(folder=tmp_path / "a, b%20ä@#'=" / "venv")
    venv.folder.parent.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv.folder], check=True)
    stand.venv = venv
    stand.have("onnxruntime 1.22.1")

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES))

    assert stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}
    stand.undo()
    assert stand.unchanged()


def test_the_folder_of_nvidia_is_a_mount_of_its_own(
    stand: Stand, mounted: Callable[..., Path]
) -> None:
    """Files are copied to it and from it, and the point where it is mounted stays."""
    stand.have("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42")
    point = stand.venv.site / "nvidia"
    other = mounted("-t", "tmpfs", "-o", "size=64m", "tmpfs")
    shutil.copytree(point, other / "nvidia", symlinks=True)
    shutil.rmtree(point)
    point.mkdir()
    subprocess.run(["mount", "--bind", other / "nvidia", point], check=True)
    try:
        before = state_of(stand.venv.folder)

        stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13")))
        assert (point / "cublas").is_dir()
        stand.undo()

        assert state_of(stand.venv.folder) == before
        assert os.path.ismount(point)
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def test_a_daemon_that_the_environment_starts_does_not_block_the_roll_back(
    stand: Stand, tmp_path: Path
) -> None:
    """A `.pth` starts it with each Python, so also with what uv starts."""
    stand.have("onnxruntime 1.22.1")
    pids = tmp_path / "pids"
    (stand.venv.site / "daemon.py").write_text(
        "import os, time\n"
        "if os.environ.get('LANG') == 'daemon' and not os.fork():\n"
        "    os.setsid()\n"
        "    for number in range(3):\n"
        "        os.dup2(os.open(os.devnull, os.O_RDWR), number)\n"
        f"    with open({str(pids)!r}, 'a') as file:\n"
        "        print(os.getpid(), file=file)\n"
        "    time.sleep(90)\n"
        "    os._exit(0)\n"
    )
    (stand.venv.site / "daemon.pth").write_text("import daemon\n")
    stand.before = state_of(stand.venv.folder)
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))
    target, uv = stand.venv.target(), stand.uv()
    uv = replace(uv, environ={**uv.environ, "LANG": "daemon"})
    began = time.monotonic()
    try:
        stand.fails(plan, target=target, uv=uv, verify=lambda: (False, "no"))
        assert time.monotonic() - began < 60
        assert pids.read_text()
    finally:
        for pid in pids.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
