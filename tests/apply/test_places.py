"""Environments and machines that are not as they should be: applied all the same, or refused."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from stand import CUDA, GOOD, REQUIRES, Stand

from ortgpu_fix.apply import staged_tree
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.companions.build import stand_in_wheel
from ortgpu_fix.errors import Error
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.utils.files import file_digest
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import Venv, clean_environment, find_uv, state_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts, links and /proc of Linux")
LIBRARY = "nvidia/cudnn/lib/libcudnn.so.9"
MODULE = "onnxruntime/__init__.py"


def inodes(folder: Path) -> dict[str, tuple[int, str]]:
    """Return inode and digest of every file under `folder`."""
    return {
        str(path): (path.stat().st_ino, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize("again", [False, True])
def test_files_that_are_hard_links_into_uv_s_cache(
    quick: Stand, tmp_path: Path, *, again: bool
) -> None:
    """Neither apply nor undo writes into one, and after undo they are links into it again."""
    cache = tmp_path / "cache"
    for name in ("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42"):
        command = [find_uv(), "pip", "install", "-q", "--offline", "--no-deps", "--no-config"]
        command += ["--cache-dir", str(cache), "--link-mode", "hardlink"]
        command += ["--python", str(quick.venv.python), str(quick.wheels[name])]
        subprocess.run(command, check=True, env=clean_environment())
    library = quick.venv.site / LIBRARY
    assert library.stat().st_nlink == 2
    quick.before, before = state_of(quick.venv.folder), inodes(cache)
    own = inodes(quick.venv.folder)

    quick.apply(quick.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13")))
    assert inodes(cache) == before
    assert library.stat().st_nlink == 2  # as uv installs it, from the cache of this user
    if again:
        library.unlink()
        library.write_bytes(b"another program changes it")
    quick.undo(allow_changed=again)

    assert quick.unchanged()
    assert inodes(quick.venv.folder) == own
    assert inodes(cache) == before


def test_what_somebody_changed_in_uv_s_cache_is_not_installed(
    stand_of: Callable[[str], Stand],
) -> None:
    """Who writes into a file of one environment writes into the cache that it is a link to."""
    one = stand_of("uv")
    one.apply(one.plan(*CUDA))
    right = {path: path.read_bytes() for path in (one.venv.site / LIBRARY, one.venv.site / MODULE)}
    for path in right:
        assert path.stat().st_nlink > 1
        path.write_bytes(b"#" + right[path][1:])
    one.undo(allow_changed=True)
    said: list[tuple[str, object]] = []

    one.apply(one.plan(*CUDA), progress=lambda code, **values: said.append((code, values)))

    assert {path: path.read_bytes() for path in right} == right
    names = [values for code, values in said if code == "cache-spoiled"]
    assert names == [{"names": "onnxruntime-gpu, nvidia-cudnn-cu12"}]


@pytest.mark.parametrize(
    ("tool", "own"), [("Poetry 2.5.1", True), ("pdm", True), ("uv", False), (None, False)]
)
def test_who_writes_the_cpu_build_into_the_files_changes_nothing_in_uv_s_cache(
    stand_of: Callable[[str], Stand], tool: str | None, *, own: bool
) -> None:
    """Poetry and PDM do; the set comes back all the same, without the network."""
    one = stand_of("uv")
    one.have("bystander 1.0")
    installer = one.venv.site / "bystander-1.0.dist-info" / "INSTALLER"
    installer.write_text(f"{tool}\n") if tool else installer.unlink()
    one.apply(one.plan(*CUDA))
    module = one.venv.site / MODULE
    right = module.read_bytes()
    assert (module.stat().st_nlink == 1) is own
    if not own:
        return
    module.write_bytes(b"# another build")
    said: list[str] = []

    def note(code: str, /, **_: object) -> None:
        said.append(code)

    offline = IndexConfig(index_url=one.server.url, origin="flag", offline=True)
    one.apply(one.plan(*CUDA), progress=note, index=Index(offline))

    assert module.read_bytes() == right
    assert "cache-spoiled" not in said


def test_the_file_of_all_wheels_of_nvidia_is_one_that_a_wheel_brings(
    stand_of: Callable[[str], Stand],
) -> None:
    """It is run with each of them, and was not looked at: which wheel writes it last is chance."""
    one = stand_of("uv")
    one.apply(one.plan(*CUDA[:2]))
    shared = one.venv.site / "nvidia" / "__init__.py"
    right = shared.read_bytes()
    assert shared.stat().st_nlink > 1
    shared.write_bytes(b"print('evil')\n")
    one.undo(allow_changed=True)
    said: list[str] = []

    def note(code: str, /, **_: object) -> None:
        said.append(code)

    one.apply(one.plan(*CUDA[:2]), progress=note)
    assert shared.read_bytes() == right
    assert said.count("cache-spoiled") == 1
    one.undo()
    said.clear()
    one.apply(one.plan(*CUDA[:2]), progress=note)
    assert shared.read_bytes() == right


def test_an_environment_without_site_packages_gets_the_folder(quick: Stand) -> None:
    """An embeddable Python comes so."""
    target, site = quick.venv.target(), quick.venv.site
    shutil.rmtree(site)

    quick.apply(quick.plan(*CUDA), target=target._replace(installed=()))
    assert (site / LIBRARY).is_file()
    quick.undo()

    assert list(site.iterdir()) == []


@pytest.fixture
def large(quick: Stand, tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Install a wheel with a large library into an environment; return the library."""
    files: dict[str, str | bytes] = {LIBRARY: b"x" * (2 << 20)}
    wheel = make_wheel(tmp_path / "large", "nvidia-cudnn-cu12", "9.1.0", files=files)
    with LocalIndex(wheel.parent) as server:

        def install(venv: Path) -> Path:
            quick.venv = Venv(folder=venv)
            sources = IndexConfig(index_url=server.url, origin="flag", kept=tmp_path / "kept")
            quick.apply(quick.plan(wheel), index=Index(sources))
            return quick.venv.site / LIBRARY

        yield install


@pytest.mark.parametrize("size", [2 << 20, 2 << 10])
@pytest.mark.parametrize("restored", [False, True])
def test_an_older_library_copied_over_one_is_not_installed_into_the_next_environment(
    quick: Stand, tmp_path: Path, large: Callable[[Path], Path], size: int, *, restored: bool
) -> None:
    """`cp -p` keeps the time of what it copies, `touch -r` brings back that of before."""
    shutil.copytree(quick.venv.folder, tmp_path / "next", symlinks=True)
    library = large(quick.venv.folder)
    right, before = library.read_bytes(), library.stat()
    (tmp_path / "older").write_bytes(b"#" * size)
    shutil.copyfile(tmp_path / "older", library)
    moment = before.st_mtime_ns if restored else 0
    os.utime(library, ns=(moment, moment))
    assert before.st_nlink > 1

    assert large(tmp_path / "next").read_bytes() == right


def test_what_nobody_changed_is_not_read_again_for_the_next_environment(
    quick: Stand, tmp_path: Path, large: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def digest(path: Path) -> str:
        read.append(path.name)
        return file_digest(path)

    monkeypatch.setattr(staged_tree, "file_digest", digest)
    shutil.copytree(quick.venv.folder, tmp_path / "next", symlinks=True)
    large(quick.venv.folder)
    first = read.copy()
    read.clear()

    large(tmp_path / "next")

    assert set(first) - set(read) == {Path(LIBRARY).name}


def test_an_environment_on_another_filesystem_than_everything_else(
    stand: Stand, mounted: Callable[..., Path]
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
    stand.apply(plan, index=Index(sources))

    assert stand.names().keys() >= {"onnxruntime-gpu", "nvidia-cudnn-cu12", "protobuf"}
    assert all(path.stat().st_nlink == 1 for path in stand.venv.site.glob("onnxruntime/*.py"))
    stand.undo()
    assert stand.unchanged()


def test_scripts_on_another_filesystem_than_site_packages(
    quick: Stand, mounted: Callable[..., Path]
) -> None:
    """A rename cannot do it there: files are copied with mode and times, and go back so."""
    quick.have("onnxruntime 1.22.1")
    disk = mounted("-t", "tmpfs", "-o", "size=16m", "tmpfs")
    scripts = quick.venv.folder / "bin"
    shutil.copytree(scripts, disk / "bin", symlinks=True)
    shutil.rmtree(scripts)
    scripts.symlink_to(disk / "bin")
    quick.before, inner = state_of(quick.venv.folder), state_of(disk / "bin")

    quick.apply(quick.plan(*CUDA, uninstall=("onnxruntime",)))
    assert (disk / "bin" / "onnxruntime_test").exists()
    quick.undo()

    assert quick.unchanged()
    assert state_of(disk / "bin") == inner


def test_a_process_that_has_a_library_mapped_is_named_and_keeps_it(quick: Stand) -> None:
    quick.have("nvidia-cudnn-cu13 9.28.0.42")
    library = quick.venv.site / LIBRARY
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
        quick.apply(
            quick.plan("nvidia-cudnn-cu12 9.28.0.42", uninstall=("nvidia-cudnn-cu13",)),
            progress=progress,
        )
        assert library.read_bytes() != content
        kept, _ = user.communicate("\n")

    [values] = said
    assert f"({user.pid})" in str(values["processes"])
    assert kept.encode() == content


def test_a_library_that_is_mapped_is_put_back_by_undo(quick: Stand) -> None:
    """Undo while the new library is in use: what has it keeps it, and the old one is back."""
    quick.have("nvidia-cudnn-cu13 9.28.0.42")
    library = quick.venv.site / LIBRARY
    quick.apply(quick.plan("nvidia-cudnn-cu12 9.28.0.42", uninstall=("nvidia-cudnn-cu13",)))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        new = seen[:]
        quick.undo()

        assert seen[:] == new
    assert quick.unchanged()


@pytest.mark.parametrize("when", [0, 4_102_444_800], ids=["1970", "2100"])
def test_a_clock_that_is_wrong(stand: Stand, when: int) -> None:
    """Files from long ago or from the future: times come back to the nanosecond, bytecode too."""
    stand.have("onnxruntime 1.22.1")
    subprocess.run([stand.venv.python, "-c", "import onnxruntime.tools.check"], check=True)
    for path in stand.venv.site.rglob("*"):
        os.utime(path, ns=(when * 10**9 + 1, when * 10**9 + 1), follow_symlinks=False)
    stand.before = state_of(stand.venv.folder)

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))
    code = "import onnxruntime.capi.build_and_package_info as about; print(about.package_name)"
    shown = subprocess.run(
        [stand.venv.python, "-B", "-c", code], check=True, capture_output=True, text=True
    )
    assert shown.stdout == "onnxruntime-gpu\n"
    stand.undo()

    assert stand.unchanged()


def test_nothing_new_for_pip_check_and_uv_pip_check(stand: Stand) -> None:
    """What was wrong before stays as wrong as it was; who is not in the plan keeps every byte."""
    stand.have("bystander 1.0", "protobuf 6.33.0", "fastembed 0.9.1", "onnxruntime 1.22.1")
    stand.have("flatbuffers 25.9.23", "packaging 25.0")
    others = ("bystander", "google", "flatbuffers", "packaging", "fastembed.py")

    def digests() -> dict[str, object]:
        rows = state_of(stand.venv.site)
        return {path: what for path, what in rows.items() if path.startswith(others)}

    def complaints() -> set[str]:
        checks = [[find_uv(), "pip", "check", "--python", str(stand.venv.python)]]
        if stand.kind == "pip":
            checks.append([str(stand.venv.python), "-m", "pip", "check"])
        said = [
            subprocess.run(check, check=False, capture_output=True, text=True, env=environ)
            for environ in [clean_environment()]
            for check in checks
        ]
        (stand.venv.folder / ".lock").unlink(missing_ok=True)
        lines = {line for one in said for line in (one.stdout + one.stderr).splitlines()}
        return {line for line in lines if "requires" in line}

    before, kept = complaints(), digests()
    assert [line for line in before if "protobuf" in line]

    stand.apply(stand.plan(GOOD), companions=[stand_in_wheel("1.26.0")], allowed=Allowed())

    assert complaints() == before
    assert digests() == kept


def test_a_limit_of_the_size_of_files(quick: Stand) -> None:
    """`ulimit -f`, in a child; a quota that is used up is met in scripts/prove/faults.py."""
    quick.have("onnxruntime 1.22.1")
    plan = quick.plan(*CUDA, uninstall=("onnxruntime",))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
            quick.apply(plan)
        except Error as error:
            status = 0 if error.code == "disk-full" else 2
        finally:
            os._exit(status)

    assert os.waitpid(child, 0)[1] == 0
    assert quick.unchanged()


@pytest.mark.parametrize("file", ["uv.toml", "pyproject.toml"])
def test_the_configuration_of_the_current_folder_names_no_index(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Ordinary requirements come from the chosen index alone, also of an environment beside it."""
    stand.have("onnxruntime 1.22.1")
    table = "[tool.uv]\n" if file == "pyproject.toml" else ""
    text = f'{table}index-url = "http://127.0.0.1:9/simple"\n'
    for folder in (tmp_path, stand.venv.folder):
        (folder / file).write_text(text)
    monkeypatch.chdir(tmp_path)

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES))

    assert stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}


@pytest.mark.parametrize(
    "name",
    [
        *("a, b", "a%20b", "ä@b"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("a b", "a#b", "a'b", "a=b")),
    ],
)
def test_odd_characters_in_the_path_of_the_environment(
    stand_of: Callable[..., Stand], tmp_path: Path, name: str
) -> None:
    stand = stand_of("uv")
    venv = Venv(folder=tmp_path / name / "venv")
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
    """A `.pth` starts it with each Python, so also with what the engine starts."""
    stand.have("onnxruntime 1.22.1")
    pids = tmp_path / "pids"
    (stand.venv.site / "daemon.py").write_text(
        "import os, time\n"
        "if os.environ.get('DAEMON') and not os.fork():\n"
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
    target, engine = stand.venv.target(), stand.engine()
    engine = replace(engine, environ={**engine.environ, "DAEMON": "1"})
    began = time.monotonic()
    try:
        stand.fails(plan, target=target, engine=engine, verify=lambda: (False, "no"))
        assert time.monotonic() - began < 60
        assert pids.read_text()
    finally:
        for pid in pids.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
