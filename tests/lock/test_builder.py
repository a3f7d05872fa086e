"""Locks of stand-in wheels, installed by the real pip and the real uv; and tampered with."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import shelf
from shelf import COMPANIONS, ORDINARY, SET, Shelf

import synthetic
from ortgpu_fix.errors import Error
from ortgpu_fix.lock.formats.pylock import pylock
from ortgpu_fix.lock.formats.requirements_txt import requirements
from ortgpu_fix.lock.model import Lock, locked_distributions
from ortgpu_fix.plan.wheels import Wheel
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import as_wheel, clean_environment, find_uv

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the plan is for Linux"
)
Tool = Callable[..., "subprocess.CompletedProcess[str]"]
EVERYTHING = sorted([*SET, *ORDINARY, *COMPANIONS])


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder = tmp_path_factory.mktemp("shelf")
    wheels = shelf.fill(folder)
    with LocalIndex(folder) as index:
        yield Shelf(index, wheels)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be where the locks are made: what is given as a relative path is seen from there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["uv", pytest.param("pip", marks=pytest.mark.slow)])
def install(request: pytest.FixtureRequest, venv: Path, things: Shelf, tmp_path: Path) -> Tool:
    """Install a lock that lies in `tmp_path`, with the tool and nothing of the user's own."""

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        sources = ["--index-url", things.index.url, "--no-cache-dir"]
        if request.param == "pip":
            argv = [sys.executable, "-m", "pip", "--python", str(venv), "install", *sources]
        else:
            argv = [find_uv(), "pip", "install", "--python", str(venv), *sources]
            argv += ["--link-mode", "copy"]
        return subprocess.run(
            [*argv, *words],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def made(things: Shelf, folder: Path) -> Lock:
    """Write the companions into `folder`/wheels, and return the lock that names them there."""
    maker = things.maker(folder, companions="wheels")
    group = things.group()
    (folder / "wheels").mkdir(exist_ok=True)
    for wheel in maker.companion_wheels(group.targets[0]):
        (folder / "wheels" / wheel.file).write_bytes(wheel.content)
    return maker.lock(group)


def site_of(folder: Path) -> Path:
    return next(folder.glob("venv/lib/python*/site-packages"))


def installed(folder: Path) -> list[str]:
    return sorted(
        path.name.partition("-")[0].replace("_", "-")
        for path in site_of(folder).glob("*.dist-info")
    )


def texts(lock: Lock) -> dict[str, str]:
    return {"requirements.txt": requirements(lock), "pylock.toml": pylock(lock)}


def flags(name: str) -> list[str]:
    return ["-r", name] if name == "pylock.toml" else ["--require-hashes", "-r", name]


@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_a_lock_brings_the_whole_set_and_keeps_the_cpu_build_out(
    name: str, install: Tool, things: Shelf, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(texts(made(things, tmp_path))[name])

    done = install(*flags(name))
    assert done.returncode == 0, done.stderr
    found = installed(tmp_path)
    later = install("fastembed")
    assert later.returncode == 0, later.stderr
    site = site_of(tmp_path)

    assert found == EVERYTHING
    assert (site / "onnxruntime" / "gpu.so").is_file()
    assert not (site / "onnxruntime" / "cpu.so").exists()
    asked = [row for row in things.index.behaviour.requests if "ortgpu-fix" in row.lower()]
    assert asked == []


def other_hash(text: str) -> str:
    """Return `text` with another hash for numpy, the first of them."""
    before, found, after = re.split(r"([0-9a-f]{64})", text[text.index("numpy") :], maxsplit=1)
    return text[: text.index("numpy")] + before + found[::-1] + after


@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_a_lock_that_was_tampered_with_installs_nothing(
    name: str, install: Tool, things: Shelf, tmp_path: Path
) -> None:
    text = texts(made(things, tmp_path))[name]
    (tmp_path / name).write_text(other_hash(text))

    done = install(*flags(name))

    assert other_hash(text) != text
    assert done.returncode != 0
    assert re.search("hash|numpy", done.stderr, re.IGNORECASE)
    assert installed(tmp_path) == []


@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_where_one_file_is_missing_nothing_is_installed(
    name: str, install: Tool, things: Shelf, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(texts(made(things, tmp_path))[name])
    for path in (tmp_path / "wheels").glob("nvidia_cudnn_cu12-*"):
        path.unlink()
    faults = things.index.behaviour.faults
    faults["nvidia_cudnn_cu12-9.28.0-py3-none-any.whl"] = "missing"

    done = install(*flags(name))
    faults.clear()

    assert done.returncode != 0
    assert installed(tmp_path) == []


def test_the_bytes_are_the_same_again(things: Shelf, tmp_path: Path) -> None:
    assert texts(made(things, tmp_path)) == texts(made(things, tmp_path))


@pytest.mark.parametrize("install", ["uv", "pip"], indirect=True)
def test_a_lock_of_a_folder_needs_no_index(install: Tool, things: Shelf, tmp_path: Path) -> None:
    maker = things.maker(tmp_path, find_links=things.index.folder, offline=True)
    text = pylock(maker.lock(things.group()))
    (tmp_path / "pylock.toml").write_text(text)
    before = len(things.index.behaviour.requests)

    done = install("-r", "pylock.toml")

    assert "http" not in text
    assert done.returncode == 0, done.stderr
    assert installed(tmp_path) == sorted([*SET, *ORDINARY])
    assert len(things.index.behaviour.requests) == before


def test_offline_says_what_is_not_there(things: Shelf, tmp_path: Path) -> None:
    for path in things.index.folder.glob("*.whl"):
        if "cudnn" not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    maker = things.maker(tmp_path, find_links=tmp_path, offline=True)

    with pytest.raises(Error, match="files-not-here") as caught:
        maker.lock(things.group())

    assert caught.value.values["files"] == "nvidia_cudnn_cu12-9.28.0-py3-none-any.whl"


def test_a_private_index_is_named_without_its_password(things: Shelf, tmp_path: Path) -> None:
    secret = things.index.url.replace("http://", "http://me:secret@")
    maker = things.maker(tmp_path, index_url=secret, companions="https://me:pw@share.example/w/")

    text = pylock(maker.lock(things.group()))

    assert "secret" not in text
    assert "pw@" not in text
    assert "https://share.example/w/ortgpu_fix_libraries-1.26.0%2Bset" in text


def test_what_installed_distributions_require_of_the_closure_counts(
    things: Shelf, tmp_path: Path
) -> None:
    make_wheel(things.index.folder, "packaging", "24.2")
    rows = [
        {"name": "old-app", "version": "1.0", "requires": ["packaging<25", "flatbuffers<1"]},
        {"name": "flatbuffers", "version": "25.9.23"},
    ]
    facts = synthetic.facts(*rows, python=synthetic.here())  # type: ignore[arg-type]
    lock = things.maker(tmp_path).lock(things.group(facts))

    versions = {pin.name: pin.version for pin in locked_distributions(lock)}

    assert versions["packaging"] == "24.2"
    assert versions["flatbuffers"] == "25.9.23"  # what is broken already forbids nothing


def test_torch_brings_what_it_requires(things: Shelf, tmp_path: Path) -> None:
    """From an index of its own, whose word for the hash is taken; PyPI's name is never asked."""
    folder = tmp_path / "whl" / "cu128" / "torch"
    make_wheel(folder, "torch", "2.10.0+cu128", requires=["networkx", "nvidia-cublas-cu12==12.8.4"])
    make_wheel(things.index.folder, "networkx", "3.6")
    [path] = folder.glob("*.whl")
    (folder / "index.html").write_text(f'<a href="{path.name}">{path.name}</a>')
    index = folder.parent.as_uri()
    torch = Wheel(name="torch", version="2.10.0+cu128", index_url=index, file="", size=0, sha256="")
    group = things.group()
    [target] = group.targets
    plan = target.plan._replace(selection=(*target.plan.selection, torch))
    group = replace(group, targets=(replace(target, plan=plan),))

    found = {pin.name: pin for pin in locked_distributions(things.maker(tmp_path).lock(group))}

    [file] = found["torch"].files
    assert found["networkx"].version == "3.6"
    assert found["torch"].index == index
    assert file.pinned.wheel == as_wheel(next(folder.glob("*.whl")))._replace(index_url=index)
    assert file.pinned.url.startswith("./whl/cu128/torch/torch-2.10.0")
