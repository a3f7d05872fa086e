"""Images in their three forms, made of a root folder: it as it is, a `docker save` tar, OCI."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from environments import put, put_onnxruntime

LOADER = "lib64/ld-linux-x86-64.so.2"
GLIBC = b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n\0"
SET = (
    *(("nvidia-cublas-cu12", "12.9.1.4"), ("nvidia-cuda-nvrtc-cu12", "12.9.86")),
    *(("nvidia-cuda-runtime-cu12", "12.9.79"), ("nvidia-cudnn-cu12", "9.10.2.21")),
    *(("nvidia-cufft-cu12", "11.4.1.4"), ("nvidia-curand-cu12", "10.3.10.19")),
    *(("nvidia-nvjitlink-cu12", "12.9.86"),),
)
"""NVIDIA's wheels for onnxruntime-gpu 1.26.0; the files in them are stand-ins."""

REQUIRED = (("numpy", "1.26.4"), ("flatbuffers", "25.1"), ("protobuf", "6.31"), ("packaging", "25"))


def make_root(folder: Path, loader: str = LOADER) -> Path:
    """Make the root of a system of Debian's kind, without a Python."""
    write(folder / loader, b"")
    write(folder / "usr/lib/x86_64-linux-gnu/libc.so.6", GLIBC)
    write(folder / "etc/os-release", b'NAME="Debian GNU/Linux"\nVERSION_ID="12"\n')
    return folder


def write(path: Path, content: bytes) -> None:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def make_venv_files(root: Path, prefix: str, version: str = "3.11.7") -> Path:
    """Make a venv as far as an image shows it, and return its site-packages."""
    short = ".".join(version.split(".")[:2])
    config = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n"
    write(root / prefix / "pyvenv.cfg", config.encode())
    site = root / prefix / f"lib/python{short}/site-packages"
    site.mkdir(parents=True)
    return site


def put_set(site: Path, wheels: Iterable[tuple[str, str]] = SET) -> None:
    """Put a complete set there: the GPU build, NVIDIA's wheels, what loads them, requirements."""
    put_onnxruntime(site)
    put_nvidia(site, wheels)
    for name, version in REQUIRED:
        put(site, name, version)


def put_nvidia(site: Path, wheels: Iterable[tuple[str, str]]) -> None:
    """Put stand-ins of NVIDIA's wheels there, each with a library."""
    for name, version in wheels:
        short = name.removeprefix("nvidia-").rpartition("-")[0]
        soname = f"lib{short.removeprefix('cuda-')}.so.{version.partition('.')[0]}"
        put(site, name, version, files={f"nvidia/{short}/lib/{soname}": b"\x7fELF" * 500})


def layer_of(folder: Path) -> bytes:
    """Return the tar of a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return out.getvalue()


def tar_of(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    """Return a tar of these members: files by path and content, others as they are."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def link(path: str, target: str, *, hard: bool = False) -> tarfile.TarInfo:
    """Return a link as a member of a tar."""
    info = tarfile.TarInfo(path)
    info.type = tarfile.LNKTYPE if hard else tarfile.SYMTYPE
    info.linkname = target
    return info


def config_of(env: Mapping[str, str], architecture: str) -> dict[str, Any]:
    """Return the configuration of an image."""
    rows = [f"{name}={text}" for name, text in env.items()]
    return {"architecture": architecture, "os": "linux", "config": {"Env": rows}}


def docker_save(
    path: Path,
    layers: Iterable[bytes],
    env: Mapping[str, str] | None = None,
    architecture: str = "amd64",
) -> Path:
    """Write the tar of `docker save`."""
    layers = list(layers)
    names = [f"{at}/layer.tar" for at in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["app:1"], "Layers": names}]
    config = json.dumps(config_of(env or {}, architecture)).encode()
    members = [*zip(names, layers, strict=True), ("config.json", config)]
    path.write_bytes(tar_of(*members, ("manifest.json", json.dumps(manifest).encode())))
    return path


def oci_layout(
    folder: Path,
    layers: Iterable[bytes],
    env: Mapping[str, str] | None = None,
    architecture: str = "amd64",
) -> Path:
    """Write an OCI layout, its layers compressed."""

    def blob(content: bytes, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        write(folder / "blobs/sha256" / digest, content)
        return {"digest": f"sha256:{digest}", "size": len(content), **more}

    rows = [blob(gzip.compress(layer, 1)) for layer in layers]
    config = blob(json.dumps(config_of(env or {}, architecture)).encode())
    manifest = blob(json.dumps({"config": config, "layers": rows}).encode())
    attests = {"digest": "sha256:0", "platform": {"os": "unknown", "architecture": "unknown"}}
    index = {"schemaVersion": 2, "manifests": [manifest, attests]}
    write(folder / "index.json", json.dumps(index).encode())
    write(folder / "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    return folder
