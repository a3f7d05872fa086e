"""What the files of an image tell of its system and of its Pythons, one small root a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import images
import pytest
from environments import put, put_onnxruntime
from images import make_root, make_venv_files, put_nvidia, write

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import Library, OnnxRuntime, Toolkit
from ortgpu_fix.image.archive import Image, read_image
from ortgpu_fix.image.environments import Environment, environments_of
from ortgpu_fix.image.system import platform_of
from ortgpu_fix.image.tree import File, Tree
from ortgpu_fix.image.wanted import most_bytes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path / "root")


def found(root: Path, env: Mapping[str, str] | None = None) -> dict[str, Environment]:
    """Return the environments in a root, by their paths."""
    image = read_image(root)._replace(environment=env or {})
    return {row.path: row for row in environments_of(image)}


def only(root: Path, env: Mapping[str, str] | None = None) -> Environment:
    """Return the one environment in a root."""
    [one] = found(root, env).values()
    return one


def tree_of(files: Mapping[str, bytes]) -> Tree:
    tree = Tree()
    for path, content in files.items():
        tree.put(path, File(len(content), 0, content))
    return tree


MUSL = "lib/ld-musl-x86_64.so.1"


@pytest.mark.parametrize(
    ("files", "architecture", "machine", "libc"),
    [
        ({images.LOADER: b"", "lib64/libc.so.6": images.GLIBC}, "", "x86_64", "glibc 2.36"),
        ({images.LOADER: b"", "lib/libc.so.6": b"?"}, "", "x86_64", None),
        ({images.LOADER: b""}, "arm64", "aarch64", None),
        ({}, "amd64", "x86_64", None),
        ({"lib/ld-linux-aarch64.so.1": b""}, "", "aarch64", None),
        ({MUSL: b""}, "", "x86_64", "musl 1"),
        ({MUSL: b"", "lib/apk/db/installed": b"P:musl\nV:1.2.4-r2\n"}, "", "x86_64", "musl 1.2.4"),
        ({MUSL: b"", images.LOADER: b""}, "", "x86_64", None),
    ],
)
def test_the_platform(
    files: dict[str, bytes], architecture: str, machine: str, libc: str | None
) -> None:
    platform = platform_of(tree_of(files), architecture)

    assert (platform.system, platform.machine, platform.libc) == ("linux", machine, libc)


@pytest.mark.parametrize("architecture", ["", "riscv64"])
def test_no_system(architecture: str) -> None:
    with pytest.raises(Error, match="image-without-system"):
        platform_of(Tree(), architecture)


@pytest.mark.parametrize("file", ["etc/os-release", "usr/lib/os-release"])
def test_the_distribution(file: str) -> None:
    tree = tree_of({images.LOADER: b"", file: b"NAME=Fedora\nVERSION_ID=43\n"})

    assert platform_of(tree, "").distribution == "Fedora 43"


def test_toolkits_and_libraries_in_the_order_of_the_loader(root: Path) -> None:
    make_venv_files(root, "opt/venv")
    write(root / "usr/local/cuda-12.4/version.json", b'{"cuda": {"version": "12.4.1"}}')
    write(root / "usr/local/cuda-12.4/lib64/libcublas.so.12.4.5", b"")
    (root / "usr/local/cuda-12.4/lib64/libcublas.so.12").symlink_to("libcublas.so.12.4.5")
    (root / "usr/local/cuda").symlink_to("cuda-12.4")
    write(root / "usr/local/cuda-11/none", b"")
    write(root / "etc/ld.so.conf", b"include /etc/ld.so.conf.d/*.conf\n/opt/first/\n")
    write(root / "etc/ld.so.conf.d/cuda.conf", b"/usr/local/cuda/lib64\n")
    for path in (
        "opt/first/libcufft.so.11",
        "opt/env/libcufft.so.11",
        "usr/local/lib/libcurand.so.10",
    ):
        write(root / path, b"")
    write(root / "usr/lib/x86_64-linux-gnu/libcudnn.so.9", b"")
    (root / "usr/lib/libcudart.so.12").symlink_to("gone")
    facts = only(root, {"LD_LIBRARY_PATH": ":relative;/opt/env/"}).facts

    assert facts.toolkits == (Toolkit("12.4", "/usr/local/cuda-12.4"),)
    assert facts.libraries == (
        Library("libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.12", "12.4.5"),
        Library("libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"),
        Library("libcufft.so.11", "/opt/env/libcufft.so.11"),
        Library("libcurand.so.10", "/usr/local/lib/libcurand.so.10"),
    )
    assert only(root).facts.libraries[2].path == "/opt/first/libcufft.so.11"


def test_the_environment_of_the_image_that_matters(root: Path) -> None:
    make_venv_files(root, "opt/venv")
    env = {"CUDA_VISIBLE_DEVICES": "", "SECRET": "x"}

    assert dict(only(root, env).facts.environment) == {"CUDA_VISIBLE_DEVICES": ""}


def test_a_venv(root: Path) -> None:
    put(make_venv_files(root, "opt/venv"), "Numpy", "1.26.4", requires=["a"])
    one = only(root)
    python = one.facts.python

    assert one.sites == ("/opt/venv/lib/python3.11/site-packages",)
    assert (python.version, python.environment, python.free_threaded) == ("3.11.7", "venv", False)
    assert python.executable == "/opt/venv/bin/python"
    assert python.autoload is True
    assert python.implementation == "cpython"
    assert not python.externally_managed
    assert [(row.name, row.version, row.requires) for row in one.facts.packages] == [
        ("numpy", "1.26.4", ("a",))
    ]


@pytest.mark.parametrize(
    ("config", "version"),
    [
        ("version_info = 3.11.2.final.0", "3.11.2"),
        ("Version = 3.11.9", "3.11.9"),
        ("home = /usr/bin", "3.11"),
    ],
)
def test_how_venvs_are_written(root: Path, config: str, version: str) -> None:
    make_venv_files(root, "opt/venv")
    write(root / "opt/venv/pyvenv.cfg", config.encode())

    assert only(root).facts.python.version == version


def test_a_venv_that_reads_its_base(root: Path) -> None:
    write(root / "usr/bin/python3.11", b"")
    (root / "usr/lib/python3.11").mkdir()
    put(root / "usr/lib/python3/dist-packages", "numpy", "1.24.2")
    put_onnxruntime(root / "usr/lib/python3/dist-packages", "onnxruntime", "1.20.0", None)
    site = make_venv_files(root, "opt/venv")
    put(site, "numpy", "2.0.1")
    config = "home = /usr/bin\ninclude-system-site-packages = True\n"
    write(root / "opt/venv/pyvenv.cfg", config.encode())
    one = found(root)["/opt/venv"]

    assert [(row.name, row.version, row.outside) for row in one.facts.packages] == [
        ("numpy", "2.0.1", False),
        ("onnxruntime", "1.20.0", True),
    ]
    assert one.facts.onnxruntime is not None
    write(
        root / "opt/venv/pyvenv.cfg",
        b"home = /elsewhere/bin\ninclude-system-site-packages = true\n",
    )
    assert found(root)["/opt/venv"].facts.onnxruntime is None


def test_pythons_that_are_no_venv(root: Path) -> None:
    for prefix, name in (
        ("usr", "python3.11"),
        ("usr/local", "python3.13"),
        ("opt/pypy", "pypy3.10"),
    ):
        write(root / prefix / "bin" / name, b"")
        write(root / prefix / "lib" / name / "os.py", b"")
    (root / "usr/lib/python3.9").mkdir()  # without its program
    put(root / "usr/lib/python3/dist-packages", "a", "1")
    put(root / "usr/local/lib/python3.11/dist-packages", "a", "2")
    put(root / "root/.local/lib/python3.11/site-packages", "a", "3")
    put(root / "usr/local/lib/python3.13/site-packages", "b", "1")
    write(root / "usr/lib/python3.11/EXTERNALLY-MANAGED", b"")
    write(root / "usr/local/lib/python3.13t/site-packages/README", b"")
    write(root / "opt/pypy/lib/pypy3.10/site-packages/README", b"")
    write(root / "opt/odd-packages/x", b"")
    rows = environments_of(read_image(root))
    pythons = [(row.path, row.facts.python) for row in rows]

    assert [(path, python.version, python.free_threaded) for path, python in pythons] == [
        ("/opt/pypy", "3.10", False),
        ("/usr", "3.11", False),
        ("/usr/local", "3.13", False),
        ("/usr/local", "3.13", True),
    ]
    assert [python.implementation for _, python in pythons] == ["pypy", *["cpython"] * 3]
    assert [python.externally_managed for _, python in pythons] == [False, True, False, False]
    assert [python.environment for _, python in pythons] == ["system"] * 4
    assert rows[1].sites == (
        "/root/.local/lib/python3.11/site-packages",
        "/usr/local/lib/python3.11/dist-packages",
        "/usr/lib/python3/dist-packages",
    )
    assert [(row.name, row.version) for row in rows[1].facts.packages] == [("a", "3")]


def test_conda_has_its_libraries_first(root: Path) -> None:
    write(root / "opt/conda/lib/python3.12/site-packages/README", b"")
    write(root / "opt/conda/conda-meta/history", b"")
    write(root / "opt/conda/lib/libcudnn.so.9", b"")
    write(root / "usr/lib/libcudnn.so.9", b"")
    facts = only(root).facts

    assert facts.python.environment == "conda"
    assert [row.path for row in facts.libraries] == ["/opt/conda/lib/libcudnn.so.9"]


@pytest.mark.parametrize(
    ("mark", "read"),
    [
        ("opt/conda/conda-meta/history", False),
        ("opt/conda/pkgs/numpy-2-py312/info/index.json", False),
        ("opt/conda/pkgs/numpy-2-py312/README", True),
    ],
)
def test_the_cache_of_conda_is_no_environment(root: Path, mark: str, *, read: bool) -> None:
    cached = "/opt/conda/pkgs/numpy-2-py312"
    write(root / f"{cached[1:]}/lib/python3.12/site-packages/README", b"")
    write(root / "opt/conda/lib/python3.12/site-packages/README", b"")
    write(root / mark, b"")

    assert list(found(root)) == ["/opt/conda", *[cached][:read]]


def test_the_folders_of_pythonpath_are_those_of_the_python_that_starts(root: Path) -> None:
    write(root / "usr/bin/python3.9", b"")
    write(root / "usr/lib/python3.9/site-packages/README", b"")
    write(root / "usr/local/bin/python3.11", b"")
    site = root / "usr/local/lib/python3.11/site-packages"
    put(site, "numpy", "1.26.4")
    put(site, "ortgpu-fix-libraries", "1.25.0")
    put(root / "app/libs", "numpy", "2.0.1")
    put_onnxruntime(root / "app/libs")
    put(root / "app/libs", "ortgpu-fix-libraries", "1.26.0")  # its .pth is not read there
    write(root / "app/src/main.py", b"")
    path = "/app/src:/app/libs:libs:/no:/usr/local/lib/python3.11/site-packages"
    rows = found(root, {"PYTHONPATH": path})
    one = rows["/usr/local"]

    assert one.sites == ("/app/libs", "/usr/local/lib/python3.11/site-packages")
    assert [(row.name, row.version) for row in one.facts.packages] == [
        ("numpy", "2.0.1"),
        ("onnxruntime-gpu", "1.26.0"),
        ("ortgpu-fix-libraries", "1.25.0"),
    ]
    assert one.facts.onnxruntime is not None
    assert rows["/usr"].sites == ("/usr/lib/python3.9/site-packages",)
    other = found(root, {"PYTHONPATH": path, "PATH": "/opt:/usr/bin"})
    assert other["/usr"].sites[0] == "/app/libs"
    assert other["/usr/local"].sites == ("/usr/local/lib/python3.11/site-packages",)
    own = found(root, {"PYTHONPATH": "/app/src:app/libs"})
    assert own["/usr/local"].sites == ("/usr/local/lib/python3.11/site-packages",)


def test_pythonpath_of_a_python_without_packages(root: Path) -> None:
    write(root / "opt/py/bin/python3.12-config", b"")
    write(root / "opt/py/bin/python3.12", b"")
    write(root / "opt/py/bin/python3.13", b"")
    (root / "opt/py/bin/python3").symlink_to("python3.13")
    put(root / "app/libs", "numpy", "2.0.1")
    one = only(root, {"PYTHONPATH": "/app/libs", "PATH": "/opt/py/bin"})

    assert (one.path, one.facts.python.version, one.sites) == ("/opt/py", "3.13", ("/app/libs",))
    assert found(root, {"PATH": "/opt/py/bin"}) == {}
    assert found(root, {"PYTHONPATH": "/app/libs", "PATH": "/opt"}) == {}


def test_metadata_of_all_kinds(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    write(site / "old.egg-info/PKG-INFO", b"Name: old\nVersion: 1\n\nName: no\n")
    write(site / "older-1.egg-info", b"Name: older\nVersion: 2\n")
    write(site / "broken-1.dist-info/METADATA", b"Name: broken\n")
    write(site / "nameless-1.dist-info/METADATA", b"Version: 1\n")
    write(site / "notes.txt", b"Name: notes\nVersion: 1\n")
    write(site / "~left-1.dist-info/METADATA", b"Name: left\nVersion: 1\n")
    put(site, "onnxruntime", "1.26.0", extra={"ORTGPU_FIX_PROVIDED": ""})

    assert [(row.name, row.version, row.provided) for row in only(root).facts.packages] == [
        ("old", "1", False),
        ("older", "2", False),
        ("onnxruntime", "1.26.0", True),
    ]


@pytest.mark.parametrize("stand_in", ["1.18.1", "1.9.0"])
def test_a_stand_in_beside_a_real_one_is_not_in_use(root: Path, stand_in: str) -> None:
    """A layer brings the CPU build, and the metadata of the stand-in stays in the one below."""
    site = make_venv_files(root, "opt/venv")
    put(site, "onnxruntime", stand_in, extra={"ORTGPU_FIX_PROVIDED": ""})
    put(site, "onnxruntime", "1.30.0")

    [row] = only(root).facts.packages

    assert (row.version, row.provided) == ("1.30.0", False)


def test_nvidia_wheels_that_lost_a_library(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    put_nvidia(site, [("nvidia-cublas-cu12", "12.9.1"), ("nvidia-cufft-cu12", "11.4.1")])
    put_nvidia(site, [("nvidia-curand-cu12", "10.3.10")])
    (site / "nvidia/cufft/lib/libcufft.so.11").unlink()
    write(site / "nvidia/curand/lib/libcurand.so.10", b"other")
    packages = only(root).facts.packages

    assert {row.name: row.intact for row in packages} == {
        "nvidia-cublas-cu12": True,
        "nvidia-cufft-cu12": False,
        "nvidia-curand-cu12": False,
    }
    assert packages[0].libraries == ("nvidia/cublas/lib/libcublas.so.12",)


BUILD = OnnxRuntime("onnxruntime-gpu", "1.26.0", "12.8")


def test_the_build_in_the_shared_folder(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    assert only(root).facts.onnxruntime is None
    put_onnxruntime(site)
    assert only(root).facts.onnxruntime == BUILD
    (site / "onnxruntime/capi/onnxruntime_pybind11_state.so").unlink()
    assert only(root).facts.onnxruntime == BUILD._replace(intact=False)
    put_onnxruntime(site, "onnxruntime", "1.22.1", None)
    assert only(root).facts.onnxruntime == OnnxRuntime("onnxruntime", "1.22.1", None)


def test_a_build_that_says_nothing_belongs_to_the_owner_of_its_files(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    put_onnxruntime(site, version="1.16.3", described=False)
    assert only(root).facts.onnxruntime == OnnxRuntime("onnxruntime-gpu", "1.16.3", None)
    write(site / "onnxruntime/capi/build_and_package_info.py", b"__version__ = '1.17.0'\n")
    assert only(root).facts.onnxruntime == OnnxRuntime(
        "onnxruntime-gpu", "1.17.0", None, intact=False
    )


def test_a_folder_that_nobody_owns(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    (site / "onnxruntime").mkdir()
    assert only(root).facts.onnxruntime == OnnxRuntime(None, None, None, intact=False)
    put_onnxruntime(root / "opt/venv/lib64/python3.11/site-packages")
    assert only(root).facts.onnxruntime == BUILD


def test_lines_of_record_that_tell_nothing(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    info = put_onnxruntime(site)
    more = "../../../bin/x,sha256=a,1\n/abs,,1\nonnxruntime/a.pyc,,5\nonnxruntime/b,sha256=x,\n"
    more += f"{info.name}/RECORD,,9\nonnxruntime/e,,²\nonnxruntime/f,,{'1' * 5000}\n"
    (info / "RECORD").write_text((info / "RECORD").read_text() + more)
    assert only(root).facts.onnxruntime == BUILD
    (info / "RECORD").write_text((info / "RECORD").read_text() + '"onnxruntime/c,d",,1\n')
    assert only(root).facts.onnxruntime == BUILD._replace(intact=False)
    write(site / "onnxruntime/c,d", b"1")
    assert only(root).facts.onnxruntime == BUILD


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("a/x-1.dist-info/METADATA", 262144),
        ("a/x.egg-info", 262144),
        ("a/x.egg-info/PKG-INFO", 262144),
        ("a/x-1.dist-info/RECORD", 0),
        ("a/onnxruntime_gpu-1.dist-info/RECORD", 4_000_000),
        ("a/nvidia_cublas_cu12-1.dist-info/RECORD", 4_000_000),
        ("a/onnxruntime/capi/build_and_package_info.py", 262144),
        ("opt/pyvenv.cfg", 262144),
        ("opt/xpyvenv.cfg", 0),
        ("etc/os-release", 262144),
        ("usr/lib/os-release", 262144),
        ("a/etc/os-release", 0),
        ("etc/ld.so.conf", 262144),
        ("etc/ld.so.conf.d/a.conf", 262144),
        ("usr/local/cuda-12.4/version.json", 262144),
        ("usr/local/cuda/version.txt", 262144),
        ("lib/x86_64-linux-gnu/libc.so.6", 4_000_000),
        ("lib/x86_64-linux-gnu/libc-2.31.so", 4_000_000),
        ("lib/apk/db/installed", 4_000_000),
        ("usr/lib/python3.11/EXTERNALLY-MANAGED", 0),
        ("model.onnx", 0),
    ],
)
def test_what_is_read_of_an_image(path: str, most: int) -> None:
    assert most_bytes(path) == most


def test_no_layers_is_an_image_too() -> None:
    assert environments_of(Image(tree_of({images.LOADER: b""}), ())) == ()
