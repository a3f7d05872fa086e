"""Wheels that one named index must serve: found there by name, version and tags, nowhere else."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag

from ortgpu_fix.errors import Error
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.page import IndexFile
from ortgpu_fix.index.pinning import check_offered, wheel_target_of
from ortgpu_fix.index.wheel_choice import WheelTarget, find_exact, find_newest
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils.process import run
from support.local_index import LocalIndex
from support.torch_index import TorchIndex, make_index

PAGE = "https://user:secret@example.org/whl/cu128/torch/"
DIGEST = "ab" * 32
FIT = WheelTarget(
    python="3.11.7",
    tags=(
        Tag("cp311", "cp311", "manylinux_2_28_x86_64"),
        Tag("cp311", "cp311", "manylinux2014_x86_64"),
        Tag("cp311", "abi3", "manylinux2014_x86_64"),
        Tag("py3", "none", "any"),
    ),
)


def files(*names: str, **changes: object) -> list[IndexFile]:
    return [IndexFile(name=name, url=f"https://x/{name}", **changes) for name in names]  # type: ignore[arg-type]


def chosen(*names: str, version: str = "2.7.1+cu128") -> str:
    return find_exact(files(*names), "torch", version, FIT, PAGE).name


def refused(*names: str, version: str = "2.7.1+cu128", **changes: object) -> tuple[str, str]:
    with pytest.raises(Error) as caught:
        find_exact(files(*names, **changes), "torch", version, FIT, PAGE)
    assert caught.value.values["url"] == "https://example.org/whl/cu128/torch/"
    return caught.value.code, str(caught.value.values["offers"])


def linux(version: str, python: str = "cp311", platform: str = "manylinux_2_28_x86_64") -> str:
    return f"torch-{version}-{python}-{python}-{platform}.whl"


def test_the_version_is_the_whole_version() -> None:
    assert chosen(linux("2.7.1"), linux("2.7.1+cu126"), linux("2.7.1+cu128")) == linux(
        "2.7.1+cu128"
    )


def test_of_one_version_the_best_tag_and_then_the_newest_build() -> None:
    older, newer = linux("2.7.1", platform="manylinux2014_x86_64"), linux("2.7.1")
    rebuilt = linux("2.7.1-3")

    assert chosen(older, newer, version="2.7.1") == newer
    assert chosen(newer, older, version="2.7.1") == newer
    assert chosen(rebuilt, newer, version="2.7.1") == rebuilt
    assert chosen("torch-2.7.1-py3-none-any.whl", "rubbish.whl", version="2.7.1").startswith("to")


def test_what_was_taken_back_or_is_for_another_python_is_not_there() -> None:
    for change in ({"yanked": True}, {"requires_python": ">=3.12"}):
        code, _ = refused(linux("2.7.1+cu128"), **change)
        assert code in {"index-lacks-version", "index-lacks-build"}
    fine = files(linux("2.7.1+cu128"), requires_python="rubbish")

    assert find_exact(fine, "torch", "2.7.1+cu128", FIT, PAGE) == fine[0]


def test_the_nearest_versions_and_every_variant_of_the_wanted_one_are_named() -> None:
    there = [linux(f"2.{minor}.0+cu128") for minor in range(1, 12) if minor != 7]
    there += [linux("2.7.0+cu118"), linux("2.7.0+cu126"), linux("2.12.0+cu128", "cp314")]

    assert refused(*there, version="2.7.0+cu128") == (
        "index-lacks-version",
        "2.6.0+cu128, 2.7.0+cu118, 2.7.0+cu126, 2.8.0+cu128, 2.9.0+cu128, 2.10.0+cu128",
    )
    assert refused(linux("2.7.0+cu128", "cp314")) == ("index-lacks-version", "-")
    assert refused("torchvision-2.7.1+cu128-py3-none-any.whl") == ("index-lacks-version", "-")


def test_the_newest_within_a_specifier() -> None:
    there = files(linux("2.7.0"), linux("2.7.1"), linux("2.8.0.dev1"), linux("2.9.0", "cp314"))

    found = find_newest(there, "torch", SpecifierSet(">=2.7"), FIT)

    assert found is not None
    assert found.name == linux("2.7.1")
    assert find_newest(there, "torch", SpecifierSet("==2.9.0"), FIT) is None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TorchIndex]:
    running = TorchIndex(make_index(tmp_path / "served"))
    with running:
        yield running


def index(server: LocalIndex, **changes: object) -> Index:
    sources = IndexConfig(index_url="https://pypi.invalid/simple", torch_index=server.url)
    return Index(replace(sources, **changes), Limits(connect=2, read=2, pauses=(0.01,)))  # type: ignore[arg-type]


def wanted(server: TorchIndex, name: str = "torch", version: str = "2.10.0+cu128") -> Wheel:
    return Wheel(name=name, version=version, index_url=server.url, file="", size=0, sha256="")


def replace_file(wheel: Wheel, file: str, sha256: str) -> Wheel:
    return wheel._replace(file=file, sha256=sha256)


TARGET = target_of(sys.executable, environ=os.environ, cwd=Path(), runner=run)
HERE = wheel_target_of(TARGET)


def test_a_release_that_is_gone_names_what_is_there(server: TorchIndex) -> None:
    with pytest.raises(Error) as caught:
        check_offered(wanted(server, version="2.10.1+cu128"), index(server), HERE)

    assert caught.value.code == "index-lacks-version"
    assert caught.value.values["offers"] == "2.9.1+cu128, 2.10.0+cu128"
    with pytest.raises(Error, match="index-refused"):
        check_offered(wanted(server, name="torchtext"), index(server), HERE)
    check_offered(wanted(server), index(server), HERE)


def test_a_file_that_the_plan_knows_and_the_index_lacks_is_named(server: TorchIndex) -> None:
    file = next(server.folder.glob("nvidia_cudnn*"))
    known = replace_file(wanted(server, name="nvidia-cudnn-cu12"), file.name, DIGEST)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()

    check_offered(known, index(server), HERE)
    check_offered(replace_file(known, "renamed.whl", digest), index(server), HERE)
    with pytest.raises(Error) as caught:
        check_offered(replace_file(known, "other.whl", DIGEST), index(server), HERE)
    assert caught.value.code == "file-not-on-index"
    assert caught.value.values == {
        "file": "other.whl",
        "url": f"{server.url}/nvidia-cudnn-cu12/",
    }


def test_what_does_not_count_hides_nothing_that_comes_after_it() -> None:
    wanted = linux("2.7.1")
    there = [
        *files("rubbish.whl", "torchvision-2.7.1-py3-none-any.whl"),
        *files(wanted, yanked=True),
        *files(wanted, size=5),
    ]

    assert find_exact(there, "Torch", "2.7.1", FIT, PAGE).size == 5
