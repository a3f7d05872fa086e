"""Prove `check-image` on images of Debian's packages and real wheels, and how long it takes.

    python scripts/prove/images.py [--only SUBSTRING …] [--work DIR]

Each root is a Debian bookworm of mmdebstrap with real wheels in it; `aarch64` is one of arm64, and
`musl` is Debian's package of musl alone. What conda itself installs is not to be had: `conda` has
its folders, and the wheels. It is judged three times: from
its folder, from a tar as `docker save` writes it, and from the OCI layout that Debian's Buildah
writes. All three have to say the same, and what is expected.

`speed` is an image of more than 6 GB: the sets for CUDA 12 and 13, and a layer of random bytes, as
a tar and as an OCI layout that is compressed as Docker and Buildah do. Its files are out of the
cache of the disk before the time is taken. More than 20 s on the clock fails: run it where nothing
else runs; the result has the load, and the seconds of the processors.

Each outcome goes into scripts/prove/results/ at once. Needs Linux, root, uv, mmdebstrap, Buildah, a
network, and 8 GB below DIR, which are removed. The exit code is 1 where something is not as
expected.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import record
from support.debian_image import Builder, in_root, make_base, make_debian, make_musl
from support.pythons import find_python
from support.standin_wheels import find_uv

PYTHON = "3.11"
"""Debian bookworm's."""
MACHINE = ("--driver", "535.104.12", "--gpu", "8.0")
NEWER = ("--driver", "580.65.06", "--gpu", "8.0")
VENV = "opt/venv"
RESTS = 60.0
"""Seconds before a time is taken: after a burst a virtual machine may give less."""
MOST_SECONDS, LEAST_BYTES = 20.0, 6_000_000_000
RANDOM_BYTES = 100_000_000
CPU_ALONE = {"cpu-build-installed", "gpu-build-missing", "library-missing"}


class Failed(Exception):  # noqa: N818 - the outcome of a case
    """A program did not do what it should."""


def run(*argv: object, expect: int = 0) -> str:
    """Run a program, and return what it printed. Raises Failed where it ends otherwise."""
    words = [str(word) for word in argv]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != expect:
        said = (done.stderr.strip() or done.stdout.strip())[-600:]
        raise Failed(f"{shlex.join(words[:6])} … exit {done.returncode}: {said}")
    return done.stdout


class Shop:
    """The folder where roots are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = make_base(folder / "debian", run)
        self.architecture = "amd64"

    def root(self, base: str = "debian") -> Path:
        """Return a new root, whose files are links to those of the base."""
        self.base = self._made(base)
        self.architecture = "arm64" if base == "arm64" else "amd64"
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        run("cp", "-al", self.base, root)
        return root

    def _made(self, base: str) -> Path:
        root = self.folder / base
        if base == "arm64" and not root.is_dir():
            make_debian(root, run, "bookworm", "python3,ca-certificates", "arm64")
        if base == "musl" and not root.is_dir():
            make_musl(root, run)
        return root

    def venv(self, root: Path, prefix: str = VENV) -> Path:
        """Make a venv with the root's own Python; return its site-packages."""
        run(*in_root(root, "python3", "-m", "venv", "--without-pip", f"/{prefix}"))
        return root / prefix / f"lib/python{PYTHON}/site-packages"

    def foreign_venv(self, root: Path) -> Path:
        """Make the files of a venv whose Python cannot run here; return its site-packages."""
        venv = root / VENV
        (venv / "bin").mkdir(parents=True)
        (venv / "bin/python").symlink_to(f"/usr/bin/python{PYTHON}")
        (venv / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {PYTHON}.2\n")
        return venv / f"lib/python{PYTHON}/site-packages"

    def install(self, site: Path, *wanted: str) -> None:
        """Install into a folder, from uv's cache where it has the wheels."""
        python = find_python(PYTHON) or ""
        words = ("pip", "install", "--quiet", "--link-mode", "hardlink", "--python", python)
        run(find_uv(), *words, "--target", site, *wanted)

    def pins(self, *machine: str) -> list[str]:
        """Return the set that a plan has for a machine."""
        argv = (sys.executable, "-m", "ortgpu_fix", *machine, "--python", PYTHON, "--json")
        plan = json.loads(run(*argv, "--no-autoload", "--no-provide", expect=1))
        return [f"{row['name']}=={row['version']}" for row in plan["selection"]["packages"]]


class Kind(NamedTuple):
    """A root, and what has to be said of it."""

    make: Callable[[Shop, Path], Sequence[str]]
    """Makes it, and returns the paths that are new in it."""
    exit_code: int
    expected: dict[str, set[str]]
    """The codes of the errors of each environment."""
    of_image: frozenset[str] = frozenset()
    """The codes of the findings of the image."""
    base: str = "debian"


def right(shop: Shop, root: Path) -> Sequence[str]:
    """Make a venv with the set of the plan."""
    shop.install(shop.venv(root), *shop.pins(*MACHINE))
    return [VENV]


def cpu_build(shop: Shop, root: Path) -> Sequence[str]:
    """Make a venv with the CPU build."""
    shop.install(shop.venv(root), "onnxruntime==1.22.1")
    return [VENV]


def both(shop: Shop, root: Path) -> Sequence[str]:
    """Install the CPU build over the set."""
    right(shop, root)
    shop.install(root / VENV / f"lib/python{PYTHON}/site-packages", "onnxruntime==1.22.1")
    return [VENV]


def system(shop: Shop, root: Path) -> Sequence[str]:
    """Install the set where Debian's pip puts what root installs."""
    site = f"usr/local/lib/python{PYTHON}/dist-packages"
    shop.install(root / site, *shop.pins(*MACHINE))
    return [site]


def cudnn_8(shop: Shop, root: Path) -> Sequence[str]:
    """Install cuDNN 8 beside a release that was built with cuDNN 9."""
    pins = [pin for pin in shop.pins(*MACHINE) if "cudnn" not in pin]
    shop.install(shop.venv(root), *pins, "nvidia-cudnn-cu12==8.9.7.29")
    return [VENV]


def two_cudas(shop: Shop, root: Path) -> Sequence[str]:
    """Put a cuBLAS into /usr/local too, as a base image with CUDA has it."""
    toolkit = "usr/local/cuda-12.4"
    (root / toolkit).mkdir()
    (root / toolkit / "version.json").write_text('{"cuda": {"version": "12.4.0"}}')
    shop.install(root / "tmp/toolkit", "nvidia-cublas-cu12==12.4.2.65")
    (root / "tmp/toolkit/nvidia/cublas/lib").rename(root / toolkit / "lib64")
    shutil.rmtree(root / "tmp/toolkit")
    return [*right(shop, root), toolkit]


def several(shop: Shop, root: Path) -> Sequence[str]:
    """Make three environments: the set, the CPU build under another prefix, and a tool."""
    right(shop, root)
    shop.install(shop.venv(root, "srv/other env"), "onnxruntime==1.22.1")
    shop.install(shop.venv(root, "opt/tools"), "packaging")
    return [VENV, "opt/tools", "srv/other env"]


def conda(shop: Shop, root: Path) -> Sequence[str]:
    """Install the set where conda has its Python's packages."""
    (root / "opt/conda/conda-meta").mkdir(parents=True)
    (root / "opt/conda/conda-meta/history").touch()
    (root / "opt/conda/bin").mkdir()
    shutil.copy2(root / f"usr/bin/python{PYTHON}", root / "opt/conda/bin")
    shop.install(root / f"opt/conda/lib/python{PYTHON}/site-packages", *shop.pins(*MACHINE))
    return ["opt/conda"]


def prefix(shop: Shop, root: Path) -> Sequence[str]:
    """Make the venv below another folder, with a blank in its name."""
    shop.install(shop.venv(root, "srv/a b/env"), *shop.pins(*MACHINE))
    return ["srv/a b/env"]


def tensorrt_8(shop: Shop, root: Path) -> Sequence[str]:
    """Install TensorRT 8 beside a release that loads TensorRT 10; its wheel is for Python 3.10."""
    right(shop, root)
    site = root / VENV / f"lib/python{PYTHON}/site-packages"
    shop.install(site, "tensorrt==8.6.0", "--no-deps", "--python-version", "3.10")
    return [VENV]


def musl(shop: Shop, root: Path) -> Sequence[str]:
    """Install the set where there is no glibc."""
    shop.install(shop.foreign_venv(root), *shop.pins(*MACHINE))
    return [VENV]


def aarch64(shop: Shop, root: Path) -> Sequence[str]:
    """Install the CPU build for another machine: there is no GPU build for it."""
    site = shop.foreign_venv(root)
    shop.install(site, "onnxruntime==1.22.1", "--python-platform", "aarch64-manylinux_2_28")
    return [VENV]


KINDS = {
    "right": Kind(right, 0, {"/opt/venv": set()}),
    "cpu": Kind(cpu_build, 1, {"/opt/venv": CPU_ALONE}),
    "both": Kind(both, 1, {"/opt/venv": {"cpu-build-installed", "folder-overwritten"}}),
    "system": Kind(system, 0, {"/usr": set()}),
    "cudnn-8": Kind(cudnn_8, 1, {"/opt/venv": {"library-unfit"}}),
    "two-cudas": Kind(
        two_cudas,
        0,
        {"/opt/venv": set()},
        frozenset({"image-cuda-unused", "image-cuda-twice"}),
    ),
    "conda": Kind(conda, 0, {"/opt/conda": set()}),
    "prefix": Kind(prefix, 0, {"/srv/a b/env": set()}),
    "tensorrt-8": Kind(tensorrt_8, 0, {"/opt/venv": {"tensorrt-unfit"}}),
    "musl": Kind(musl, 3, {"/opt/venv": {"musl", "library-glibc"}}, base="musl"),
    "aarch64": Kind(aarch64, 3, {"/opt/venv": CPU_ALONE - {"library-missing"}}, base="arm64"),
    "several": Kind(several, 1, {"/opt/venv": set(), "/srv/other env": CPU_ALONE}),
}


def checked(path: Path, *machine: str) -> tuple[int, dict[str, Any], dict[str, float]]:
    """Return exit code and document of `check-image`, and the seconds that it took."""
    argv = [sys.executable, "-m", "ortgpu_fix", "check-image", str(path), "--json"]
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*argv, "--no-autoload", "--no-provide", *machine],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.stderr:
        raise Failed(done.stderr[-600:])
    took = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    times = {"seconds": round(seconds, 1), "processor seconds": round(took, 1)}
    return done.returncode, json.loads(done.stdout), times


def judge(shop: Shop, kind: Kind) -> dict[str, Any]:
    """Make a root, judge its three forms, and return what was seen. Raises Failed."""
    root = shop.root(kind.base)
    new = kind.make(shop, root)
    seen: dict[str, Any] = {}
    documents = []
    for form, make in (("folder", _folder), ("docker", _docker), ("oci", _oci)):
        path = make(shop, root, new)
        code, document, times = checked(path, *MACHINE)
        if form != "folder":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        documents.append(document)
        errors = {
            one["path"]: {
                row["code"]
                for machine in one["machines"]
                for row in machine["findings"]
                if row["severity"] == "error" or row["code"] == "tensorrt-unfit"
            }
            for one in document["environments"]
        }
        found = frozenset(row["code"] for row in document["findings"])
        seen[form] = times | {"GB": round(document["size"] / 1e9, 2)}
        if (code, errors, found) != (kind.exit_code, kind.expected, kind.of_image):
            raise Failed(f"{form}: exit {code}, {errors}, {sorted(found)}")
    for name in ("environments", "findings", "without_onnxruntime"):
        if any(document[name] != documents[0][name] for document in documents):
            raise Failed(f"the forms differ in {name}")
    shutil.rmtree(root)
    return seen


def _folder(shop: Shop, root: Path, new: Sequence[str]) -> Path:
    del shop, new
    return root


def _docker(shop: Shop, root: Path, new: Sequence[str]) -> Path:
    layers = [lambda tar: tar.add(shop.base, "."), lambda tar: _add(tar, root, new)]
    return docker_save(shop.folder / "image.tar", layers, shop.architecture)


def _add(tar: tarfile.TarFile, root: Path, new: Sequence[str]) -> None:
    for path in new:
        tar.add(root / path, path)


def _oci(shop: Shop, root: Path, new: Sequence[str]) -> Path:
    builder = Builder(shop.folder, run)
    try:
        return builder.pack(shop.base, root, new, shop.folder / "oci", shop.architecture)
    finally:
        builder.remove()


Fill = Callable[[tarfile.TarFile], None]


def configuration(architecture: str) -> bytes:
    """Return the configuration of an image."""
    return json.dumps({"architecture": architecture, "os": "linux", "config": {"Env": []}}).encode()


def docker_save(path: Path, layers: Sequence[Fill], architecture: str = "amd64") -> Path:
    """Write a tar as `docker save` does, each layer straight into it."""
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["app:1"], "Layers": names}]
    with path.open("w+b") as out:
        for name, fill in zip(names, layers, strict=True):
            _member(out, name, lambda fill=fill: _layer(out, fill))  # type: ignore[misc]
        for name, content in (
            ("config.json", configuration(architecture)),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.write(info.tobuf() + content + bytes(-len(content) % 512))
        out.write(bytes(1024))
    return path


def _member(out: IO[bytes], name: str, write: Callable[[], None]) -> None:
    """Write a member whose size is known when it is written."""
    start = out.tell()
    out.write(bytes(512))
    write()
    end = out.tell()
    info = tarfile.TarInfo(name)
    info.size = end - start - 512
    out.seek(start)
    out.write(info.tobuf(tarfile.GNU_FORMAT))
    out.seek(end)


def _layer(out: IO[bytes], fill: Fill) -> None:
    with tarfile.open(fileobj=out, mode="w") as tar:
        fill(tar)


def oci_layout(folder: Path, layers: Sequence[Fill]) -> Path:
    """Write an OCI layout, its layers compressed as Go does by default: level 6."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def packed(number: int) -> dict[str, str]:
        name = hashlib.sha256(str(number).encode()).hexdigest()
        with gzip.open(blobs / name, "wb", compresslevel=6) as out:
            _layer(out, layers[number])  # type: ignore[arg-type]
        return {"digest": f"sha256:{name}"}

    def blob(content: bytes) -> dict[str, str]:
        name = hashlib.sha256(content).hexdigest()
        (blobs / name).write_bytes(content)
        return {"digest": f"sha256:{name}"}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(packed, range(len(layers))))
    manifest = blob(json.dumps({"config": blob(configuration("amd64")), "layers": rows}).encode())
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    return folder


def speed(shop: Shop) -> dict[str, Any]:
    """Time an image of more than 6 GB, as a tar and as an OCI layout. Raises Failed."""
    root = shop.root()
    for prefix, machine in (("opt/cu12", MACHINE), ("opt/cu13", (*NEWER, "--ort", "1.30.0"))):
        shop.install(shop.venv(root, prefix), *shop.pins(*machine))

    def random(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo("srv/model.bin")
        info.size = RANDOM_BYTES
        tar.addfile(info, _Random())

    layers: list[Fill] = [
        lambda tar: tar.add(shop.base, "."),
        lambda tar: _add(tar, root, ["opt/cu12"]),
        lambda tar: _add(tar, root, ["opt/cu13"]),
        random,
    ]
    seen = {}
    for form, write in (("docker", docker_save), ("oci", oci_layout)):
        seen[form] = _timed(write(shop.folder / form, layers))
        print(form, seen[form], flush=True)
    shutil.rmtree(root)
    return {"processors": os.cpu_count(), **seen}


def _timed(path: Path) -> dict[str, Any]:
    """Return how long an image took, and remove it. Raises Failed."""
    files = [one for one in (path, *path.rglob("*")) if one.is_file()]
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    time.sleep(RESTS)
    load, stored = os.getloadavg()[0], sum(file.stat().st_size for file in files)
    code, document, times = checked(path, *NEWER)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    seen = {
        **times,
        "load before": round(load, 2),
        "GB of files": round(document["size"] / 1e9, 2),
        "GB on the disk": round(stored / 1e9, 2),
        "layers, GB": [round(row["size"] / 1e9, 2) for row in document["layers"]],
    }
    served = {one["path"]: one["serves"]["cuda"] for one in document["environments"]}
    if code != 0 or served != {"/opt/cu12": "12", "/opt/cu13": "13"}:
        raise Failed(f"exit {code}, {served}; {seen}")
    if document["size"] < LEAST_BYTES or times["seconds"] >= MOST_SECONDS:
        raise Failed(f"{seen}")
    return seen


class _Random(io.RawIOBase):
    """Random bytes without an end."""

    def read(self, size: int = -1) -> bytes:
        return os.urandom(size)


CASES: dict[str, Callable[[Shop], dict[str, Any]]] = {
    **{name: lambda shop, kind=kind: judge(shop, kind) for name, kind in KINDS.items()},  # type: ignore[misc]
    "speed": speed,
}


def main() -> int:
    """Run the cases, print a line for each, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="SUBSTRING")
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    folder = (arguments.work or Path(tempfile.mkdtemp(prefix="prove-images-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    shop, failed = Shop(folder), 0
    builder = run("buildah", "--version").strip()
    for name, case in CASES.items():
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        outcome: dict[str, Any] = {"name": name, "seen": {}, "problems": []}
        try:
            outcome["seen"] = case(shop)
        except Failed as problem:
            outcome["problems"].append(str(problem))
            failed += 1
        print(f"{name:14} {'; '.join(outcome['problems']) or outcome['seen']}", flush=True)
        record("images", outcome, list(CASES), builder=builder, base="Debian bookworm")
    shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
