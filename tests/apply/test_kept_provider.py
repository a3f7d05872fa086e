"""The CUDA provider that is still in the environment is linked, or stays where it is."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from stand import GOOD, PIP, Kind, Stand

from ortgpu_fix.apply import kept_provider
from ortgpu_fix.apply.kept_provider import (
    LeanWheel,
    install_lean,
    is_layered,
    lean_wheel,
    leave_in_place,
)
from ortgpu_fix.apply.staged_tree import StagedTree, read_staged_tree
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.engine.choose import Engine
from ortgpu_fix.engine.common import Prefix, StagedFile
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.engine.uv import Uv
from ortgpu_fix.plan.wheels import PYPI, Wheel
from ortgpu_fix.utils.process import run
from support.local_index import make_wheel
from support.standin_wheels import clean_environment, find_uv, make_venv, state_of

NAME = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
BYTES = b"machine code" * 1000
SCRIPTS = {"onnxruntime_test": "onnxruntime:main"}


def staged(folder: Path, **files: bytes) -> StagedFile:
    """Return a wheel of the GPU build whose provider is `files["provider"]`."""
    content = {"onnxruntime/__init__.py": b"def main(): ..."}
    content |= {NAME: files["provider"]} if "provider" in files else {}
    content["onnxruntime/capi/_pybind_state.py"] = b""
    content["onnxruntime/vendored-1.dist-info/RECORD"] = b"a,,"
    path = make_wheel(folder, "onnxruntime-gpu", "1.26.0", files=content, scripts=SCRIPTS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    wheel = Wheel("onnxruntime-gpu", "1.26.0", PYPI, path.name, path.stat().st_size, digest)
    return StagedFile(wheel=wheel, path=path)


def site_with(folder: Path, content: bytes | None) -> Site:
    if content is not None:
        file = folder / NAME
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    return Site(purelib="", platlib=str(folder), scripts="", prefix="")


def test_the_same_file_is_left_out_and_the_rest_stays(tmp_path: Path) -> None:
    whole = staged(tmp_path / "wheels", provider=BYTES)

    found = lean_wheel(whole, site_with(tmp_path / "site", BYTES), tmp_path / "lean" / "er")

    assert found.present == str(tmp_path / "site" / NAME)
    assert found.row[0] == NAME
    assert found.staged.path == tmp_path / "lean" / "er" / whole.path.name
    content = found.staged.path.read_bytes()
    assert found.staged.wheel == whole.wheel._replace(sha256=hashlib.sha256(content).hexdigest())
    with zipfile.ZipFile(whole.path) as before, zipfile.ZipFile(found.staged.path) as after:
        assert set(before.namelist()) - set(after.namelist()) == {NAME}
        assert all(before.read(name) == after.read(name) for name in after.namelist())
        assert {info.compress_type for info in after.infolist()} == {zipfile.ZIP_STORED}


@pytest.mark.parametrize("there", [None, b"another", BYTES[::-1]])
def test_where_it_is_gone_or_another_the_wheel_stays_whole(
    tmp_path: Path, there: bytes | None, hashed: list[Path]
) -> None:
    """Of another size, it is not even read."""
    whole = staged(tmp_path / "wheels", provider=BYTES)

    assert lean_wheel(whole, site_with(tmp_path / "s", there), tmp_path) == LeanWheel(whole)
    assert len(hashed) == (there == BYTES[::-1])


def test_several_wheels_are_written_to_one_folder(tmp_path: Path) -> None:
    site = site_with(tmp_path / "site", BYTES)
    for name in ("first", "second"):
        found = lean_wheel(staged(tmp_path / name, provider=BYTES), site, tmp_path / "lean")
        assert found.staged.path.parent == tmp_path / "lean"


def test_a_wheel_without_a_provider_stays_whole(tmp_path: Path) -> None:
    whole = staged(tmp_path / "wheels")

    assert lean_wheel(whole, site_with(tmp_path / "s", BYTES), tmp_path) == LeanWheel(whole)


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a right there")
def test_a_link_to_it_elsewhere_is_not_the_file(tmp_path: Path) -> None:
    whole = staged(tmp_path / "wheels", provider=BYTES)
    site = site_with(tmp_path / "site", BYTES)
    there = tmp_path / "site" / NAME
    there.rename(tmp_path / "elsewhere")
    there.symlink_to(tmp_path / "elsewhere")

    assert lean_wheel(whole, site, tmp_path) == LeanWheel(whole)


def rewritten(file: StagedFile, lines: bytes) -> StagedFile:
    """Return the wheel with these `lines` at the head of its RECORD."""
    path = file.path.with_name("other-" + file.path.name)
    with zipfile.ZipFile(file.path) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            own = name == "onnxruntime_gpu-1.26.0.dist-info/RECORD"
            after.writestr(name, (lines if own else b"") + before.read(name))
    return StagedFile(wheel=file.wheel, path=path.replace(file.path))


@pytest.mark.parametrize(
    "lines",
    [b"\n", b"\n\n", f"{NAME}\n".encode(), f"{NAME},\n".encode(), b"\xff,,\n", b"a,,,b\n"],
)
def test_odd_rows_are_passed_over(tmp_path: Path, lines: bytes) -> None:
    """A blank line is no row to any engine, and ended an apply with a traceback."""
    whole = rewritten(staged(tmp_path / "wheels", provider=BYTES), lines)

    found = lean_wheel(whole, site_with(tmp_path / "site", BYTES), tmp_path / "lean")

    assert (found.row[0], len(found.row)) == (NAME, 3)
    bare = rewritten(staged(tmp_path / "bare"), lines)
    assert lean_wheel(bare, site_with(tmp_path / "s", BYTES), tmp_path) == LeanWheel(bare)


@pytest.mark.parametrize("before", ["a.py,,\n", ""])
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("layered", [False, True])
def test_the_file_is_another_name_of_the_one_there_and_listed_once(
    tmp_path: Path, before: str, *, listed: bool, layered: bool
) -> None:
    """In layers an empty file stands for it.

    pip copies the wheel's RECORD, and uv writes one of what it found in the wheel.
    """
    whole = staged(tmp_path / "wheels", provider=BYTES)
    found = lean_wheel(whole, site_with(tmp_path / "site", BYTES), tmp_path / "lean")
    info = tmp_path / "tree" / "lib" / "onnxruntime_gpu-1.26.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "tree" / "lib" / "onnxruntime" / "capi").mkdir(parents=True)
    other = tmp_path / "tree" / "lib" / "numpy-2.0.dist-info"
    other.mkdir()
    row = ",".join(found.row)
    (info / "RECORD").write_text(f"{before}{row}\n" if listed else before)

    found.complete(tmp_path / "tree", layered=layered)

    assert (info.parent / NAME).samefile(tmp_path / "site" / NAME) is not layered
    assert (info.parent / NAME).read_bytes() == (b"" if layered else BYTES)
    assert (info / "RECORD").read_text() == f"{before}{row}\n"
    assert not list(other.iterdir())


def test_a_whole_wheel_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime_gpu-1.26.0.dist-info").mkdir()

    LeanWheel(staged(tmp_path / "wheels")).complete(tmp_path, layered=True)

    assert not list((tmp_path / "onnxruntime_gpu-1.26.0.dist-info").iterdir())


class Unpacking:
    """An engine that unpacks."""

    def install(self, staged: Sequence[StagedFile], _: object, into: Prefix) -> None:
        self.paths = [file.path for file in staged]
        for path in self.paths:
            with zipfile.ZipFile(path) as file:
                file.extractall(into.folder / "lib")


@pytest.mark.parametrize("layered", [False, True])
def test_an_engine_gets_the_lean_wheel_and_the_others_as_they_are(
    tmp_path: Path, *, layered: bool
) -> None:
    whole = staged(tmp_path / "wheels", provider=BYTES)
    path = make_wheel(tmp_path / "wheels", "numpy", "2.0")
    other = StagedFile(wheel=whole.wheel._replace(name="numpy"), path=path)
    site = site_with(tmp_path / "site", BYTES)
    into = Prefix(tmp_path / "tree", tmp_path / "work", tmp_path / "lock")
    engine = Unpacking()

    nothing = cast("Any", None)
    present = install_lean([whole, other], nothing, site, into, cast("Engine", engine), layered)

    assert engine.paths == [tmp_path / "work" / "lean" / whole.path.name, path]
    assert present == ({str(tmp_path / "site" / NAME)} if layered else set())
    assert (into.folder / "lib" / NAME).samefile(tmp_path / "site" / NAME) is not layered


@pytest.mark.slow
@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("kind", ["pip", "uv"])
def test_either_engine_installs_what_is_left(tmp_path: Path, kind: str, *, layered: bool) -> None:
    venv = make_venv(tmp_path / "venv", pip=kind == "pip")
    whole = staged(tmp_path / "wheels", provider=BYTES)
    venv.install(whole.path)
    target = venv.target()
    site = Site.of(target)
    environ = clean_environment()
    engine = (
        Uv(program=find_uv(), version="0", environ=environ, runner=run)
        if kind == "uv"
        else Pip(
            command=(target.executable, "-m", "pip"), version="25", environ=environ, runner=run
        )
    )
    into = Prefix(tmp_path / "tree", tmp_path / "work", tmp_path / "lock")

    present = install_lean([whole], target, site, into, engine, layered)

    tree = read_staged_tree(into.folder, site, [whole.wheel])
    provider = str(venv.site.resolve() / NAME)
    if layered:
        tree = leave_in_place(tree, present)
        assert tree.in_place == {provider}
    else:
        assert Path(tree.files[provider]).samefile(provider)
    assert tree.hashes[provider] == hashlib.sha256(BYTES).hexdigest()
    assert {Path(path).name for path in tree.files} >= {"__init__.py", "onnxruntime_test"}


def staged_tree(folder: Path, name: str) -> tuple[StagedTree, Path, Path]:
    """Return a tree of one file, where that lies, and where it belongs."""
    source, there = folder / "tree" / name, folder / "site" / name
    source.parent.mkdir(parents=True)
    there.parent.mkdir(parents=True)
    source.write_bytes(BYTES)
    hashes = {str(there): hashlib.sha256(BYTES).hexdigest()}
    return StagedTree({str(there): str(source)}, hashes, (), (), ()), source, there


def test_what_an_engine_has_brought_and_is_there_is_left_there(tmp_path: Path) -> None:
    tree, _, there = staged_tree(tmp_path, NAME)
    there.write_bytes(BYTES)

    left = leave_in_place(tree, ())

    assert left == tree._replace(files={}, in_place=frozenset({str(there)}))


@pytest.mark.parametrize(
    ("name", "content"),
    [(NAME, None), (NAME, BYTES[::-1]), (NAME, b"another"), ("onnxruntime/__init__.py", BYTES)],
)
def test_another_file_comes(tmp_path: Path, name: str, content: bytes | None) -> None:
    tree, _, there = staged_tree(tmp_path, name)
    if content is not None:
        there.write_bytes(content)

    assert leave_in_place(tree, ()) == tree


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a right there")
def test_in_the_place_of_a_link_comes_the_file(tmp_path: Path) -> None:
    """It may lead into a cache that is cleaned tomorrow."""
    tree, source, there = staged_tree(tmp_path, NAME)
    there.symlink_to(source)

    assert leave_in_place(tree, ()) == tree


@pytest.mark.skipif(sys.platform != "linux", reason="no layers")
@pytest.mark.parametrize("kind", ["uv", PIP])
def test_in_a_layer_over_an_image_it_is_not_copied(
    stand_of: Callable[[Kind], Stand], mounted: Callable[..., Path], kind: Kind, tmp_path: Path
) -> None:
    """It stays in the layer below; and undo has nothing to put back."""
    stand = stand_of(kind)
    stand.have(GOOD)
    stand.have("onnxruntime 1.22.1")
    assert not is_layered(str(stand.venv.site))
    upper, inner = tmp_path / "layer" / "upper", tmp_path / "layer" / "inner"
    upper.mkdir(parents=True)
    inner.mkdir()
    layers = f"lowerdir={stand.venv.folder},upperdir={upper},workdir={inner}"
    merged = mounted("-t", "overlay", "overlay", "-o", layers)
    stand.venv = replace(stand.venv, folder=merged)
    assert is_layered(str(stand.venv.site))
    stand.before = state_of(merged)

    stand.apply(stand.plan(GOOD, uninstall=("onnxruntime",)))

    build = stand.venv.target().build
    assert build is not None
    assert (build.distribution, build.intact) == ("onnxruntime-gpu", True)
    copies = [path.name for path in upper.rglob("*") if path.is_file()]
    assert not [name for name in copies if "providers_cuda" in name]
    stand.undo()
    assert stand.unchanged()
    copies = [path.name for path in upper.rglob("*") if path.is_file()]
    assert not [name for name in copies if "providers_cuda" in name]


@pytest.mark.skipif(sys.platform == "win32", reason="no numbers of devices")
@pytest.mark.parametrize(
    ("kind", "other", "layered"),
    [
        ("overlay overlay", 0, True),
        ("fuse.fuse-overlayfs fuse-overlayfs", 0, True),
        ("ext4 overlay", 0, False),
        ("overlay overlay", 1, False),
    ],
)
def test_the_filesystem_of_a_folder_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, other: int, *, layered: bool
) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:0 / / rw - ext4 /dev/sda rw\n"
        f"36 22 {os.major(device)}:{os.minor(device) + other} / / rw shared:1 - {kind} rw,x=y\n"
    )
    monkeypatch.setattr(kept_provider, "_MOUNTS", mounts)

    assert is_layered(str(tmp_path)) is layered
    assert not is_layered(str(tmp_path / "none"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(sys, "platform", "win32")
        assert is_layered(str(tmp_path)) is False
    mounts.unlink()
    assert not is_layered(str(tmp_path))


@pytest.mark.parametrize("kind", ["uv", PIP])
def test_elsewhere_undo_brings_it_back_whatever_was_done(
    stand_of: Callable[[Kind], Stand], kind: Kind
) -> None:
    """What was there is set aside: a user who has uninstalled the build gets it back."""
    stand = stand_of(kind)
    stand.have(GOOD)
    stand.have("onnxruntime 1.22.1")
    stand.apply(stand.plan(GOOD, uninstall=("onnxruntime",)))
    (stand.venv.site / NAME).unlink()

    stand.undo(allow_changed=True)

    assert stand.unchanged()
