"""Resolving for machines that are not here, with the real uv and the real pip."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from stand import PIP

from ortgpu_fix.engine.choose import Resolver, choose_resolver
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.errors import Error
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.utils.process import run
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import clean_environment, find_uv
from synthetic import machine

LINUX = machine()
OLD_LINUX = machine(libc="glibc 2.31")
WINDOWS = machine("windows", None, version="3.12.1")
ARM = machine(name="aarch64")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIndex]:
    folder = tmp_path_factory.mktemp("shelf")
    needs = ["native", "windows-only ; sys_platform == 'win32'", "packaging"]
    make_wheel(folder, "app", "1.0", requires=needs)
    make_wheel(folder, "windows-only", "3.0", requires=["deep"])
    make_wheel(folder, "deep", "0.1")
    make_wheel(folder, "packaging", "99.0")
    make_wheel(folder, "packaging", "98.0")
    for version, tag in (
        ("2.0", "cp311-cp311-manylinux_2_17_x86_64"),
        ("2.0", "cp311-cp311-manylinux_2_34_x86_64"),
        ("2.0", "cp312-cp312-win_amd64"),
        ("2.0", "cp313-cp313t-manylinux_2_17_x86_64"),
        ("2.0", "cp313-cp313-manylinux_2_17_x86_64"),
        ("1.0", "cp311-cp311-manylinux_2_28_aarch64"),
    ):
        make_wheel(folder, "native", version, tag=tag)
    with LocalIndex(folder) as index:
        yield index


@pytest.fixture(params=["uv", "pip"])
def engine(request: pytest.FixtureRequest) -> Resolver:
    env = clean_environment()
    if request.param == "pip":
        command = (sys.executable, "-I", "-m", "pip")
        return Pip(command=command, version=metadata.version("pip"), environ=env, runner=run)
    env["PATH"] = f"{Path(find_uv()).parent}{os.pathsep}{env['PATH']}"
    chosen = choose_resolver(env, run)
    assert chosen.name.startswith("uv ")
    return chosen


@pytest.mark.parametrize("engine", ["uv", PIP], indirect=True)
@pytest.mark.parametrize(
    ("facts", "files"),
    [
        (LINUX, ["native-2.0-cp311-cp311-manylinux_2_34_x86_64.whl"]),
        (OLD_LINUX, ["native-2.0-cp311-cp311-manylinux_2_17_x86_64.whl"]),
        (ARM, ["native-1.0-cp311-cp311-manylinux_2_28_aarch64.whl"]),
        (
            WINDOWS,
            [
                "deep-0.1-py3-none-any.whl",
                "native-2.0-cp312-cp312-win_amd64.whl",
                "windows_only-3.0-py3-none-any.whl",
            ],
        ),
        (
            machine(version="3.13.0", free_threaded=True),
            ["native-2.0-cp313-cp313t-manylinux_2_17_x86_64.whl"],
        ),
    ],
    ids=["linux", "older-linux", "arm", "windows", "free-threaded"],
)
def test_each_machine_gets_what_fits_it(
    shelf: LocalIndex, engine: Resolver, facts: object, files: list[str], tmp_path: Path
) -> None:
    sources = IndexConfig(index_url=shelf.url, origin="flag")

    pinned = engine.resolve_for(["app"], [], facts, sources, tmp_path)  # type: ignore[arg-type]

    # packaging is installed in the environment that runs this: it is chosen all the same
    common = ["app-1.0-py3-none-any.whl", "packaging-99.0-py3-none-any.whl"]
    first = {one.wheel.name: one.wheel.file for one in reversed(pinned)}
    assert sorted(first.values()) == sorted([*common, *files])
    assert all(len(one.wheel.sha256) == 64 for one in pinned)


def test_limits_are_kept(shelf: LocalIndex, engine: Resolver, tmp_path: Path) -> None:
    sources = IndexConfig(index_url=shelf.url, origin="flag")

    pinned = engine.resolve_for(["app"], ["packaging<99"], LINUX, sources, tmp_path)

    assert {one.wheel.version for one in pinned if one.wheel.name == "packaging"} == {"98.0"}


def test_a_folder_is_enough_without_network(
    shelf: LocalIndex, engine: Resolver, tmp_path: Path
) -> None:
    sources = IndexConfig(find_links=shelf.folder, offline=True)

    pinned = engine.resolve_for(["native"], [], WINDOWS, sources, tmp_path)

    assert [one.url for one in pinned] == [
        (shelf.folder / "native-2.0-cp312-cp312-win_amd64.whl").as_uri()
    ]


def test_what_cannot_be_had_is_said(shelf: LocalIndex, engine: Resolver, tmp_path: Path) -> None:
    sources = IndexConfig(index_url=shelf.url, origin="flag")

    with pytest.raises(Error, match="requirements-impossible"):
        engine.resolve_for(["native>2"], [], LINUX, sources, tmp_path)


def test_nothing_is_asked_for_nothing(engine: Resolver, tmp_path: Path) -> None:
    nowhere = IndexConfig(index_url="http://127.0.0.1:9/simple", origin="flag")

    assert engine.resolve_for([], [], LINUX, nowhere, tmp_path) == ()


def test_pip_serves_where_there_is_no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortgpu_fix.engine.choose.find_uv", lambda *_: None)

    assert choose_resolver({}, run).name == f"pip {metadata.version('pip')}"
