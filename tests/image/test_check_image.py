"""`check-image`: roots of many kinds, from a folder, a `docker save` tar and an OCI layout."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import images
import pytest
from command import run_here
from environments import put, put_onnxruntime
from images import SET, make_root, make_venv_files, put_nvidia, put_set, write

Make = Callable[[Path], None]
OLD_DRIVER = ("--driver", "535.104.12", "--gpu", "8.0")
RUNTIME = "usr/local/cuda-12.4"


def right(root: Path) -> None:
    put_set(make_venv_files(root, "opt/venv"))


def cpu_build(root: Path) -> None:
    put_onnxruntime(make_venv_files(root, "opt/venv"), "onnxruntime", "1.26.0", None)


def both(root: Path) -> None:
    right(root)
    site = root / "opt/venv/lib/python3.11/site-packages"
    put_onnxruntime(site, "onnxruntime", "1.22.1", None)


def two_cudas(root: Path) -> None:
    """The wheels are whole; the base image brings a CUDA that nobody needs."""
    right(root)
    write(root / RUNTIME / "version.json", b'{"cuda": {"version": "12.4.1"}}')
    library = root / RUNTIME / "lib64/libcublas.so.12.4.5.8"
    write(library, b"x" * 4000)
    library.with_name("libcublas.so").hardlink_to(library)  # its bytes count once
    (root / RUNTIME / "lib64/libcublas.so.12").symlink_to("libcublas.so.12.4.5.8")
    (root / "usr/local/cuda").symlink_to("cuda-12.4")


def cudnn_8(root: Path) -> None:
    site = make_venv_files(root, "opt/venv")
    put_set(site, [row for row in SET if "cudnn" not in row[0]])
    put_nvidia(site, [("nvidia-cudnn-cu12", "8.9.7.29")])


def conda(root: Path) -> None:
    site = root / "opt/conda/lib/python3.12/site-packages"
    put_set(site)
    write(root / "opt/conda/conda-meta/history", b"")
    write(root / "opt/conda/bin/python3.12", b"")


def system(root: Path) -> None:
    write(root / "usr/bin/python3.11", b"")
    (root / "usr/lib/python3.11").mkdir(parents=True)
    write(root / "usr/lib/python3.11/EXTERNALLY-MANAGED", b"")
    put_set(root / "usr/lib/python3/dist-packages")
    put(root / "usr/local/lib/python3.11/dist-packages", "numpy", "2.0.1")


def tensorrt(root: Path) -> None:
    """1.26 loads TensorRT 10."""
    right(root)
    put(root / "opt/venv/lib/python3.11/site-packages", "tensorrt-cu12", "8.6.1")


def prefix(root: Path) -> None:
    put_set(make_venv_files(root, "srv/a b/env", "3.12.3"))


def several(root: Path) -> None:
    right(root)
    put_onnxruntime(make_venv_files(root, "opt/other", "3.10.2"), "onnxruntime", "1.20.0", None)
    put(make_venv_files(root, "opt/tools"), "black", "24.1")


def musl(root: Path) -> None:
    (root / images.LOADER).unlink()
    write(root / "lib/ld-musl-x86_64.so.1", b"")
    write(root / "lib/apk/db/installed", b"C:Q1\nP:musl\nV:1.2.4-r2\n\nP:zlib\nV:1.3\n")
    right(root)


def aarch64(root: Path) -> None:
    (root / images.LOADER).unlink()
    write(root / "lib/ld-linux-aarch64.so.1", b"")
    right(root)


CPU_ALONE = {"cpu-build-installed", "gpu-build-missing", "library-missing", "requirement-missing"}
ROOTS: dict[str, tuple[Make, int, dict[str, set[str]]]] = {
    "right": (right, 0, {"/opt/venv": set()}),
    "cpu": (cpu_build, 1, {"/opt/venv": CPU_ALONE}),
    "both": (both, 1, {"/opt/venv": {"cpu-build-installed", "folder-overwritten"}}),
    "two-cudas": (two_cudas, 0, {"/opt/venv": set()}),
    "cudnn-8": (cudnn_8, 1, {"/opt/venv": {"library-unfit"}}),
    "conda": (conda, 0, {"/opt/conda": set()}),
    "system": (system, 0, {"/usr": set()}),
    "tensorrt": (tensorrt, 0, {"/opt/venv": set()}),
    "prefix": (prefix, 0, {"/srv/a b/env": set()}),
    "several": (
        several,
        1,
        {"/opt/other": CPU_ALONE, "/opt/venv": set()},
    ),
    "musl": (musl, 3, {"/opt/venv": {"musl", "library-glibc"}}),
    "aarch64": (aarch64, 3, {"/opt/venv": {"no-wheel-platform", "release-unread"}}),
}


def as_folder(root: Path) -> Path:
    return root


def architecture(root: Path) -> str:
    return "arm64" if (root / "lib/ld-linux-aarch64.so.1").exists() else "amd64"


def as_docker(root: Path) -> Path:
    layers = [images.layer_of(root)]
    return images.docker_save(root.with_name("i.tar"), layers, architecture=architecture(root))


def as_oci(root: Path) -> Path:
    layers = [images.layer_of(root)]
    return images.oci_layout(root.with_name("oci"), layers, architecture=architecture(root))


def checked(path: Path, *argv: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the document of `check-image`."""
    argv = ("check-image", str(path), "--json", "--no-autoload", "--no-provide", *argv)
    done = run_here(*argv, cwd=path.parent, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def codes(document: dict[str, Any], *severities: str) -> dict[str, set[str]]:
    """Return the codes of the findings of each environment, on all machines."""
    return {
        one["path"]: {
            row["code"]
            for each in one["machines"]
            for row in each["findings"]
            if row["severity"] in (severities or {"error"})
        }
        for one in document["environments"]
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path / "root")


@pytest.mark.parametrize("form", [as_folder, as_docker, as_oci])
@pytest.mark.parametrize("kind", ROOTS)
def test_twelve_roots(root: Path, kind: str, form: Callable[[Path], Path]) -> None:
    make, exit_code, expected = ROOTS[kind]
    make(root)
    code, document = checked(form(root), *OLD_DRIVER)

    assert codes(document) == expected
    assert code == exit_code
    warnings = codes(document, "warning")
    assert [path for path in warnings if "tensorrt-unfit" in warnings[path]] == (
        ["/opt/venv"] if kind == "tensorrt" else []
    )
    assert {row["code"] for row in document["findings"]} == (
        {"image-cuda-unused", "image-cuda-twice"} if kind == "two-cudas" else set()
    )


def test_what_an_environment_serves(root: Path) -> None:
    """1.26.0 has code for 6.0 and newer and CUDA 12; its cuDNN 9.10 still serves Pascal."""
    right(root)
    code, document = checked(root)
    [one] = document["environments"]

    assert code == 0
    assert document["verdict"] == "healthy"
    assert one["python"] == "3.11.7"
    assert one["onnxruntime"] == {
        "distribution": "onnxruntime-gpu",
        "version": "1.26.0",
        "intact": True,
    }
    serves = one["serves"]
    assert (serves["release"], serves["cuda"], serves["driver"]) == ("1.26.0", "12", "525.60.13")
    assert (serves["gpus"][0], serves["gpus"][-1]) == ("6.0", "12.0")
    assert not {"6.2", "7.2", "12.1"} & {*serves["gpus"]}
    assert [row["verdict"] for row in one["machines"]] == ["healthy"]
    assert codes(document, "warning") == {"/opt/venv": {"preload-line"}}


def test_a_driver_of_the_hosts_that_is_too_old(root: Path, tmp_path: Path) -> None:
    right(root)
    old: dict[str, Any] = {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64"},
        "driver": {"version": "470.256.02", "cuda": "11.4", "error": None},
        "gpus": [{"name": None, "compute_capability": "7.5"}],
        "python": {"version": "3.10"},
        "packages": [],
    }
    (tmp_path / "old.json").write_text(json.dumps(old))
    new = old | {"driver": {"version": "580.65.06", "cuda": "13.0", "error": None}}
    (tmp_path / "new.json").write_text(json.dumps(new))
    arm = new | {"platform": {"system": "linux", "machine": "aarch64"}}
    (tmp_path / "arm.json").write_text(json.dumps(arm))
    windows = new | {"platform": {"system": "windows", "machine": "x86_64"}}
    (tmp_path / "windows.json").write_text(json.dumps(windows))
    names = ("old", "new", "arm", "windows")
    flags = [word for name in names for word in ("--facts", str(tmp_path / f"{name}.json"))]
    code, document = checked(root, *flags)
    machines = {row["name"]: row for row in document["environments"][0]["machines"]}

    assert code == 3
    assert document["verdict"] == "impossible"
    assert {name: row["verdict"] for name, row in machines.items()} == {
        "old": "fixable",
        "new": "healthy",
        "arm": "impossible",
        "windows": "healthy",
    }
    assert {row["code"] for row in machines["old"]["findings"]} >= {"driver-too-old"}
    assert [row["summary"] for row in machines["arm"]["findings"]] == [
        "It is built for x86_64, and this machine has aarch64"
    ]


@pytest.mark.parametrize(
    ("gpu", "make", "expected"),
    [
        ("GH200", right, {"other-processor"}),
        ("A100", aarch64, {"no-wheel-platform", "release-unread"}),
    ],
)
def test_which_processor_a_gpu_tells(root: Path, gpu: str, make: Make, expected: set[str]) -> None:
    """Hopper beside Grace has aarch64; an A100 may stand beside any processor."""
    make(root)
    code, document = checked(root, "--driver", "580.65.06", "--gpu", gpu)

    assert (code, codes(document)) == (3, {"/opt/venv": expected})
    assert document["matrix"]["digest"].startswith("sha256:")


def host_file(folder: Path, name: str, *gpus: str | None, **fields: Any) -> str:
    """Write the facts of a machine; a GPU without compute capability is one that nobody knows."""
    document: dict[str, Any] = {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64"},
        "driver": {"version": "580.65.06", "cuda": "13.0", "error": None},
        "gpus": [{"name": None, "compute_capability": gpu} for gpu in gpus],
        "python": {"version": "3.10"},
        "packages": [],
    }
    path = folder / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document | fields))
    return str(path)


def test_an_image_for_aarch64_on_a_jetson(root: Path, tmp_path: Path) -> None:
    aarch64(root)
    platform = {"system": "linux", "machine": "aarch64", "jetson": "# R36 (release)"}
    jetson = host_file(tmp_path, "jetson", "8.7", platform=platform)
    _, document = checked(root, "--facts", jetson)

    assert "jetson" in codes(document)["/opt/venv"]


def test_files_of_the_same_name_are_told_apart(root: Path, tmp_path: Path) -> None:
    right(root)
    files = [host_file(tmp_path / folder, "host", "8.0") for folder in ("a", "b")]
    _, document = checked(root, "--facts", files[0], "--facts", files[1])

    assert [row["name"] for row in document["environments"][0]["machines"]] == ["a/host", "b/host"]


@pytest.mark.parametrize(
    ("capabilities", "found"),
    [
        ("graphics", {"image-without-compute"}),
        ("utility, compute", set()),
        ("all", set()),
        ("", set()),
    ],
)
def test_the_capabilities_of_the_driver(
    root: Path, tmp_path: Path, capabilities: str, found: set[str]
) -> None:
    right(root)
    env = {"NVIDIA_DRIVER_CAPABILITIES": capabilities}
    path = images.docker_save(tmp_path / "i.tar", [images.layer_of(root)], env)
    code, document = checked(path)

    assert {row["code"] for row in document["findings"]} == found
    assert code == int(bool(found))


def test_an_image_without_onnxruntime(root: Path) -> None:
    put(make_venv_files(root, "opt/tools"), "black", "24.1")
    code, document = checked(root)

    assert code == 1
    assert document["environments"] == []
    assert document["without_onnxruntime"] == ["/opt/tools"]
    assert [row["code"] for row in document["findings"]] == ["image-without-onnxruntime"]


def test_bytes_by_layer(root: Path, tmp_path: Path) -> None:
    """A layer that replaces a library keeps the old one in the image."""
    two_cudas(root)
    site = "opt/venv/lib/python3.11/site-packages"
    second = images.tar_of((f"{site}/nvidia/cudnn/lib/libcudnn.so.9", b"\x7fELF" * 500))
    path = images.docker_save(tmp_path / "i.tar", [images.layer_of(root), second])
    _, document = checked(path)
    cuda = {row["path"]: row for row in document["cuda"]}

    assert [row["lost"] for row in document["layers"]] == [0, 2000]
    toolkit, cublas = cuda[f"/{RUNTIME}"], cuda[f"/{site}/nvidia/cublas/lib"]
    assert toolkit["used"] is False
    assert cublas["used"] is True
    assert toolkit["twice"] == cublas["twice"] == ["libcublas.so.12"]
    assert (toolkit["twice_size"], cublas["twice_size"]) == (4000, 2000)
    assert toolkit["size"] == 4000 + len(b'{"cuda": {"version": "12.4.1"}}')
    assert cuda[f"/{site}/nvidia/cudnn/lib"]["layers"] == [{"layer": 1, "size": 2000}]


def shown(path: Path, *argv: str, lang: str = "en") -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ORTGPU_FIX_LANG": lang}
    return run_here("check-image", str(path), *argv, cwd=path.parent, env=env)


def test_the_words(root: Path) -> None:
    several(root)
    two_cudas_of = root / RUNTIME / "lib64/libcublas.so.12"
    write(two_cudas_of, b"x" * 4000)
    done = shown(root, *OLD_DRIVER)

    assert done.returncode == 1
    assert (
        "/opt/other (Python 3.10.2)\n  No build of onnxruntime-gpu that is known\n" in done.stdout
    )
    assert "CUDA 12: driver 525.60.13 or newer; GPUs 6.0, " in done.stdout
    assert "Environments without onnxruntime  /opt/tools (3.11.7)" in done.stdout
    assert f"/{RUNTIME}  4 kB, layer 1; 4 kB of it lies elsewhere too; not used\n" in done.stdout
    in_chinese = shown(root, *OLD_DRIVER, lang="zh").stdout
    assert f"/{RUNTIME}  4 kB，第 1 层；其中 4 kB 在别处也有；未使用\n" in in_chinese
    assert "In the Dockerfile, after the packages are installed:\n" in done.stdout
    commands = [line for line in done.stdout.splitlines() if line.startswith("ortgpu-fix ")]
    flags = "--driver 535.104.12 --gpu 8.0 --apply --yes"
    assert commands == [
        f"ortgpu-fix --python {path} {flags}" for path in ("/opt/other", "/opt/venv")
    ]


def test_the_words_where_all_is_right(root: Path) -> None:
    right(root)
    done = shown(root, "--no-autoload", "--facts", "example", lang="zh")

    assert done.returncode == 0
    assert done.stdout.startswith("/opt/venv (Python 3.11.7)\n  onnxruntime-gpu 1.26.0，CUDA 12：")
    assert "\n\nexample\n" in done.stdout
    assert done.stdout.endswith("\n镜像正常\n")
    assert "ortgpu-fix --python" not in done.stdout


def test_the_page_of_the_folder_one_is_in_names_it_as_it_was_given(
    root: Path, tmp_path: Path
) -> None:
    right(root)
    page = tmp_path / "page.html"
    run_here("check-image", ".", "--report", str(page), cwd=root, env={"LANG": "C"})

    assert "<title>The image .</title>" in page.read_text("utf-8")


@pytest.mark.parametrize(("argv", "code"), [((), 2), (("/none.tar",), 7), (("/etc",), 7)])
def test_what_is_no_image(tmp_path: Path, argv: tuple[str, ...], code: int) -> None:
    done = run_here("check-image", *argv, cwd=tmp_path, env={"LANG": "C.UTF-8"})

    assert done.returncode == code
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("kind", ["aarch64", "right"])
def test_where_no_set_works_it_is_said_why(root: Path, kind: str) -> None:
    ROOTS[kind][0](root)
    done = run_here(
        *("check-image", str(root), *OLD_DRIVER), cwd=root, env={"PATH": os.environ["PATH"]}
    )
    why = "there is no wheel for linux_aarch64"

    assert done.stdout.count("No set of packages can use the GPU there") == (kind == "aarch64")
    assert (why in done.stdout) is (kind == "aarch64")


def mending(path: Path, *argv: str) -> list[str]:
    """Return the commands that are told, and what is told instead of one."""
    lines = shown(path, "--no-autoload", "--no-provide", *argv).stdout.splitlines()
    starts = ("ortgpu-fix ", "No one set", "The command that")
    return [line for line in lines if line.startswith(starts)]


def test_the_command_has_what_its_apply_needs(root: Path) -> None:
    system(root)
    put_onnxruntime(root / "usr/lib/python3/dist-packages", "onnxruntime", "1.22.1", None)
    own = root / "opt/conda/lib/python3.12/site-packages"
    conda(root)
    put_onnxruntime(own, "onnxruntime", "1.22.1", None)
    flags = "--driver 535.104.12 --gpu 8.0 --no-autoload --no-provide"

    assert mending(root, *OLD_DRIVER) == [
        f"ortgpu-fix --python /opt/conda {flags} --allow conda --apply --yes",
        f"ortgpu-fix --python /usr {flags} --allow system --apply --yes",
    ]


OLD = {"version": "535.104.12", "cuda": "12.2", "error": None}
KEPLER = {"version": "470.256.02", "cuda": "11.4", "error": None}
WINDOWS = {"system": "windows", "machine": "x86_64"}


def test_one_command_for_all_machines(root: Path, tmp_path: Path) -> None:
    """`--apply` takes one machine: that with the oldest driver and all GPUs."""
    both(root)
    new = ("--facts", host_file(tmp_path, "new", "12.0", "9.0"))
    old = ("--facts", host_file(tmp_path, "old", "8.0", driver=OLD))
    kepler = ("--facts", host_file(tmp_path, "kepler", "3.7", driver=KEPLER))
    windows = ("--facts", host_file(tmp_path, "windows", "8.9", platform=WINDOWS))
    unknown = ("--facts", host_file(tmp_path, "unknown", gpus=None))
    nameless = ("--facts", host_file(tmp_path, "nameless", "8.0", driver={**OLD, "version": None}))
    begin, end = "ortgpu-fix --python /opt/venv", "--no-autoload --no-provide --apply --yes"
    apart = "No one set of packages serves all of these machines"

    assert mending(root, *new) == [f"{begin} {' '.join(new)} {end}"]
    assert mending(root, *windows) == [f"{begin} --driver 580.65.06 --gpu 8.9 {end}"]
    told = f"{begin} --driver 535.104.12 --gpu 8.0,9.0,12.0 {end}"
    assert mending(root, *new, *old) == mending(root, *new, *kepler, *old) == [told]
    older = ("--facts", host_file(tmp_path, "older", "8.0", driver={**OLD, "version": "535.86.10"}))
    assert " --driver 535.86.10 --gpu 8.0 " in mending(root, *old, *older)[0]
    ancient = ("--facts", host_file(tmp_path, "ancient", "8.0", driver=KEPLER))
    [line] = mending(root, *new, *ancient)
    assert line.startswith(apart)
    bare = ("--facts", host_file(tmp_path, "bare", platform=WINDOWS, gpus=None))
    for flags in ((*new, *unknown), (*new, *nameless), (*new, *bare), bare):
        [line] = mending(root, *flags)
        assert "needs the driver's release and each GPU's compute capability: " in line


def test_the_python_is_that_of_each_environment(root: Path) -> None:
    right(root)
    done = shown(root, "--python", "/opt/venv")

    assert done.returncode == 2
    assert "cannot be combined: check-image, --python\n" in done.stderr


def test_what_pip_put_into_a_folder_of_pythonpath_is_in_use(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    write(root / "usr/local/bin/python3.11", b"")
    put_set(root / "app/libs")
    image = images.oci_layout(
        tmp_path / "image", [images.layer_of(root)], {"PYTHONPATH": "/app/libs"}
    )
    code, document = checked(image, *OLD_DRIVER)

    assert (code, codes(document)) == (0, {"/usr/local": set()})
    assert document["findings"] == []
