"""Layers applied in order, from the real formats, and tars that mean harm."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import threading
import zlib
from pathlib import Path
from typing import Any

import images
import pytest
from images import docker_save, link, oci_layout, tar_of

from ortgpu_fix.errors import Cause, Error
from ortgpu_fix.image import archive as archive_module
from ortgpu_fix.image import layers as layers_module
from ortgpu_fix.image.archive import read_image
from ortgpu_fix.image.layers import read_layer
from ortgpu_fix.image.tree import File, Tree

CONFIG = "opt/pyvenv.cfg"
"""A file that is read."""


def tree_of(*layers: bytes) -> Tree:
    """Return the tree that these layers leave."""
    tree = Tree()
    for number, layer in enumerate(layers):
        read_layer(io.BytesIO(layer), "layer", tree, number)
    return tree


def test_a_layer_replaces_removes_and_counts_what_it_loses() -> None:
    tree = Tree()
    below = tar_of((CONFIG, b"old"), ("opt/b", b"12"), ("gone/c", b"1234"), ("gone/d/e", b"12345"))
    above = tar_of(
        (CONFIG, b"new!"), ("opt/.wh.b", b""), ("gone/.wh..wh..opq", b""), ("gone/f", b"1")
    )
    first = read_layer(io.BytesIO(below), "one", tree, 0)
    second = read_layer(io.BytesIO(above), "two", tree, 1)

    assert (first.name, first.size, first.lost) == ("one", 14, 0)
    assert (second.name, second.size, second.lost) == ("two", 5, 14)
    assert tree.text(CONFIG) == "new!"
    assert tree.names("opt") == ["pyvenv.cfg"]
    assert tree.names("gone") == ["f"]


def test_a_whiteout_leaves_what_its_own_layer_brings() -> None:
    tree = tree_of(tar_of(("a/b", b"1")), tar_of(("a/b", b"22"), (".wh.a", b"")))

    assert tree.find("a/b") == File(2, 1)


@pytest.mark.parametrize("name", [".wh..", ".wh...", ".wh.", "x/.wh..wh..opq"])
def test_whiteouts_of_parents_remove_nothing(name: str) -> None:
    tree = tree_of(tar_of(("a/b", b"1")), tar_of((name, b""), (f"a/{name}", b"")))

    assert tree.find("a/b") == File(1, 0)


def test_hard_links_are_one_file_and_links_stay_inside() -> None:
    folder = tarfile.TarInfo("a")
    folder.type = tarfile.DIRTYPE
    device = tarfile.TarInfo("dev")
    device.type = tarfile.CHRTYPE
    tree = tree_of(
        tar_of(
            ("./a/b", b"12"),
            link("c", "./a/b", hard=True),
            link("d", "/a"),
            link("e", "none", hard=True),
            link("f", "a", hard=True),
            folder,
            device,
        )
    )

    assert tree.find("c") is tree.find("d/b") is tree.find("/a/b")
    assert tree.names("/") == ["a", "c", "d"]


def test_compressed_layers() -> None:
    assert tree_of(gzip.compress(tar_of((CONFIG, b"x")))).text(CONFIG) == "x"
    with pytest.raises(Error) as caught:
        tree_of(b"\x28\xb5\x2f\xfd and more")
    assert caught.value.values["cause"] == Cause("image-zstd")


def test_a_bomb_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_module, "MOST_UNPACKED", 5000)
    tree_of(gzip.compress(tar_of(("a", bytes(3000)), ("b", b"1"))))

    with pytest.raises(Error, match="image-unreadable"):
        tree_of(gzip.compress(tar_of(("a", bytes(6000)), ("b", b"1"))))


def test_a_head_that_is_too_long() -> None:
    head = tarfile.TarInfo("././@LongLink")
    head.type = tarfile.GNUTYPE_LONGNAME
    head.size = layers_module.MOST_AT_ONCE + 512

    with pytest.raises(Error, match="image-unreadable"):
        tree_of(head.tobuf() + bytes(head.size))


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_module, "MOST_NODES", 2)
    tree_of(tar_of(("a", b""), ("b", b"")))

    with pytest.raises(Error, match="image-too-large"):
        tree_of(tar_of(("a", b""), ("b", b""), ("c", b"")))


def test_what_is_kept_of_all_layers_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata of zeros cost an archive next to nothing."""
    layers = [tar_of((f"{name}/pyvenv.cfg", bytes(100)), ("big", bytes(900))) for name in "abc"]
    path = oci_layout(tmp_path / "oci", layers)
    monkeypatch.setattr(layers_module, "MOST_KEPT", 300)
    assert read_image(path).tree.names("/") == ["a", "b", "big", "c"]
    monkeypatch.setattr(layers_module, "MOST_KEPT", 299)
    with pytest.raises(Error, match="image-unreadable") as caught:
        read_image(path)
    assert caught.value.values["cause"] == Cause("image-texts", (("size", "299 B"),))


def test_all_layers_together_have_only_so_many_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = oci_layout(tmp_path / "oci", [tar_of(("a", b"")), tar_of(("b", b""))])
    monkeypatch.setattr(layers_module, "MOST_NODES", 2)
    assert read_image(path).tree.names("/") == ["a", "b"]
    monkeypatch.setattr(layers_module, "MOST_NODES", 1)
    with pytest.raises(Error, match="image-too-large"):
        read_image(path)


def test_after_the_end_nothing_is_allowed() -> None:
    allowance = layers_module.Allowance()
    allowance.take(1)
    allowance.end()
    with pytest.raises(Error, match="image-too-large"):
        allowance.take(0)


def test_layers_are_read_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is damaged ends the reading of the others."""
    meet = threading.Barrier(2, timeout=20)
    read = layers_module.read_members

    def together(*arguments: Any) -> Any:
        meet.wait()
        return read(*arguments)

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(archive_module, "read_members", together)
    path = docker_save(tmp_path / "i.tar", [tar_of(("a", b"1")), tar_of(("b", b"22"))])
    assert [layer.size for layer in read_image(path).layers] == [1, 2]
    path = docker_save(tmp_path / "j.tar", [tar_of(("a", b"1")), b"no tar"])
    with pytest.raises(Error, match="image-unreadable"):
        read_image(path)


@pytest.mark.parametrize("form", [docker_save, oci_layout])
def test_the_largest_layer_is_read_first(
    form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [10, 90_000, 40_000]
    layers = [tar_of((f"file{size}", os.urandom(size))) for size in sizes]
    form(tmp_path / "image", layers)
    seen: list[int] = []
    read = layers_module.read_members

    def noted(stream: Any, name: str, number: int, allowance: Any) -> Any:
        seen.append(number)
        return read(stream, name, number, allowance)

    monkeypatch.setattr(archive_module, "read_members", noted)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)

    assert [layer.size for layer in read_image(tmp_path / "image").layers] == sizes
    assert seen == [1, 2, 0]


@pytest.mark.parametrize("kind", [OSError, ValueError, EOFError, zlib.error, RecursionError])
def test_whatever_its_stream_raises_the_layer_is_named(kind: type[Exception]) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise kind(size)

    with pytest.raises(Error, match="image-unreadable") as caught:
        read_layer(Broken(), "the layer", Tree(), 0)
    assert "the layer" in str(caught.value)


def test_damaged_layers() -> None:
    whole = gzip.compress(tar_of(("a", os.urandom(9000)), ("b", b"")))
    for broken in (
        whole[:4000],
        whole[:40] + bytes(900) + whole[940:],
        b"no tar",
        tar_of(("a", bytes(5000)))[:2000],
    ):
        with pytest.raises(Error, match="image-unreadable"):
            tree_of(broken)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    images.write(folder / CONFIG, b"x")
    images.write(folder / "usr/a.so", b"123")
    (folder / "lib").symlink_to("usr")
    (folder / "out").symlink_to("/etc")
    os.link(folder / "usr/a.so", folder / "usr/b.so")
    images.write(folder / "proc/1/maps", b"1")
    return folder


def test_the_three_forms_give_the_same_tree(root: Path, tmp_path: Path) -> None:
    layers = [images.layer_of(root), tar_of(("usr/c.so", b"1"))]
    env = {"LD_LIBRARY_PATH": "/x=y"}
    docker = docker_save(tmp_path / "docker.tar", layers, env)
    oci = oci_layout(tmp_path / "oci", layers, env)
    flat = tmp_path / "export.tar"
    flat.write_bytes(layers[0])
    packed = tmp_path / "oci.tar"
    packed.write_bytes(images.layer_of(oci))
    for path in (docker, oci, packed):
        image = read_image(path)
        assert image.environment == env
        assert image.architecture == "amd64"
        assert [layer.size for layer in image.layers] == [5, 1]
        assert image.tree.names("/lib") == ["a.so", "b.so", "c.so"]
        assert image.tree.find("/lib/a.so") is image.tree.find("/lib/b.so")
    for path in (root, flat):
        image = read_image(path)
        assert image.environment == {}
        assert image.architecture == ""
        assert image.tree.names("/lib") == ["a.so", "b.so"]
        assert image.tree.text(CONFIG) == "x"
        assert image.tree.find("/out") is None
    assert read_image(root).tree.names("/proc") == []
    assert read_image(root).layers == (("/", 4, 0),)


def test_a_folder_that_cannot_be_read_is_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("usr"):
            raise PermissionError
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert read_image(root).tree.names("/usr") == []


def test_an_index_of_several_images_and_one_in_another(tmp_path: Path) -> None:
    one = oci_layout(tmp_path / "one", [tar_of(("a", b""))])
    index = json.loads((one / "index.json").read_text())
    manifest = index["manifests"][0]
    inner = json.dumps({"manifests": [manifest]}).encode()
    images.write(one / "blobs/sha256/inner", inner)
    kind = "application/vnd.oci.image.index.v1+json"
    outer = {"manifests": [{"mediaType": kind, "digest": "sha256:inner"}]}
    (one / "index.json").write_text(json.dumps(outer))
    assert read_image(one).tree.names("/") == ["a"]

    (one / "index.json").write_text(json.dumps({"manifests": [manifest, manifest]}))
    with pytest.raises(Error, match="image-several"):
        read_image(one)

    images.write(one / "blobs/sha256/inner", json.dumps(outer).encode())
    (one / "index.json").write_text(json.dumps(outer))
    with pytest.raises(Error, match="image-several"):
        read_image(one)


@pytest.mark.parametrize(
    "manifest",
    [
        b"{",
        b"[]",
        b"[1]",
        b'[{"Config": "config.json", "Layers": ["none"]}]',
        b'[{"Config": "config.json", "Layers": ["folder"]}]',
        b"[" * 100_000,
    ],
)
def test_archives_that_are_none(tmp_path: Path, manifest: bytes) -> None:
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    path = tmp_path / "image.tar"
    path.write_bytes(tar_of(("config.json", b"{}"), ("manifest.json", manifest), folder))

    with pytest.raises(Error, match=r"image-(unreadable|several)"):
        read_image(path)


def test_nothing_outside_of_a_layout_is_opened(tmp_path: Path) -> None:
    images.write(tmp_path / "secret", b"{}")
    layout = tmp_path / "oci"
    images.write(layout / "index.json", b'{"manifests": [{"digest": "../../secret"}]}')

    with pytest.raises(Error, match="image-unreadable"):
        read_image(layout)
    images.write(tmp_path / "layer", tar_of(("a", b"1")))
    images.write(layout / "config.json", b"{}")
    row = {"Config": "/config.json", "Layers": [str(tmp_path / "layer")]}
    images.write(layout / "manifest.json", json.dumps([row]).encode())
    with pytest.raises(Error, match="image-unreadable"):
        read_image(layout)
    images.write(layout / "layer", tar_of(("a", b"1")))
    row["Layers"] = ["/layer"]
    images.write(layout / "manifest.json", json.dumps([row]).encode())
    image = read_image(layout)
    assert (image.environment, image.layers[0].size) == ({}, 1)
    with pytest.raises(Error, match="image-unreadable"):
        read_image(tmp_path / "none")
