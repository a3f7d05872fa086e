"""Wheels that one named index must serve: found there by name, version and tags, nowhere else."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.version import Version

from ortgpu_fix.errors import Error
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download_all
from ortgpu_fix.index.page import IndexFile
from ortgpu_fix.index.pinning import index_has, newest_from_index, pin_from_index, wheel_target_of
from ortgpu_fix.index.wheel_choice import WheelTarget, find_exact, find_newest
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils.process import run
from ortgpu_fix.utils.progress import silent
from support.local_index import Fault, LocalIndex, make_wheel
from support.torch_index import CUDNN, TorchIndex, make_index, make_torch

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


def test_an_early_version_of_a_python_is_one_of_that_python() -> None:
    early = WheelTarget(python="3.11.0rc1", tags=FIT.tags)
    there = files(linux("2.7.1+cu128"), requires_python=">=3.8")

    assert find_exact(there, "torch", "2.7.1+cu128", early, PAGE) == there[0]


def test_a_version_that_is_there_for_others_alone() -> None:
    there = (linux("2.7.1+cu128", "cp310"), linux("2.7.1+cu128", platform="win_amd64"))

    assert refused(*there) == (
        "index-lacks-build",
        "cp310-cp310-manylinux_2_28_x86_64, cp311-cp311-win_amd64",
    )


def test_the_newest_within_a_specifier() -> None:
    there = files(linux("2.7.0"), linux("2.7.1"), linux("2.8.0.dev1"), linux("2.9.0", "cp314"))

    found = find_newest(there, "torch", SpecifierSet(">=2.7"), FIT)

    assert found is not None
    assert found.name == linux("2.7.1")
    assert find_newest(there, "torch", SpecifierSet("==2.9.0"), FIT) is None


def test_the_texts_name_what_to_do() -> None:
    with pytest.raises(Error) as caught:
        find_exact(files(linux("2.7.1")), "torch", "2.7.1+cu128", FIT, PAGE)
    message = load_texts("en").error(caught.value)

    assert message.exit_code == 7
    assert message.text == (
        "torch 2.7.1+cu128 is not on https://example.org/whl/cu128/torch/, though it should be: "
        "for this Python and platform it has 2.7.1"
    )


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


TARGET = target_of(sys.executable, environ=os.environ, cwd=Path(), runner=run)
HERE = wheel_target_of(TARGET)


@pytest.mark.parametrize("links", ["root", "other host", "json"])
def test_a_wheel_of_the_named_index_arrives_checked(
    server: TorchIndex, tmp_path: Path, links: str
) -> None:
    server.behaviour.json = links == "json"
    with LocalIndex(server.folder) as other:
        if links == "other host":
            server.host = other.url.removesuffix("/simple")
        asked = index(server)
        wheel = pin_from_index(wanted(server), asked, HERE)
        (path,) = download_all(asked, [wheel], tmp_path / "into", silent)
        elsewhere = [line for line in other.behaviour.requests if line.startswith("GET")]

    made = (server.folder / path.name).read_bytes()
    assert path.name.startswith("torch-2.10.0+cu128-cp3")
    assert path.name.endswith("_x86_64.whl")
    assert (wheel.sha256, wheel.size) == (hashlib.sha256(made).hexdigest(), len(made))
    assert path.read_bytes() == made
    assert bool(elsewhere) is (links == "other host")


def test_a_wheel_that_the_matrix_knows_stays_as_it_is(server: TorchIndex) -> None:
    known = wanted(server)._replace(sha256="ab" * 32)

    assert pin_from_index(known, index(server), HERE) == known
    assert server.behaviour.requests == []


def test_an_index_without_hashes_is_refused(server: TorchIndex) -> None:
    server.behaviour.hashes = False

    with pytest.raises(Error, match="index-no-hash"):
        pin_from_index(wanted(server), index(server), HERE)


def test_a_release_that_is_gone_names_what_is_there(server: TorchIndex) -> None:
    with pytest.raises(Error) as caught:
        pin_from_index(wanted(server, version="2.10.1+cu128"), index(server), HERE)

    assert caught.value.values["offers"] == "2.9.1+cu128, 2.10.0+cu128"
    with pytest.raises(Error, match="index-refused"):
        pin_from_index(wanted(server, name="torchtext"), index(server), HERE)


def test_a_file_that_is_not_what_the_index_says_is_not_taken(
    server: TorchIndex, tmp_path: Path
) -> None:
    asked = index(server)
    wheel = pin_from_index(wanted(server), asked, HERE)
    server.behaviour.faults[wheel.file] = "other-bytes"

    with pytest.raises(Error, match="download-hash-mismatch"):
        download_all(asked, [wheel], tmp_path / "into", silent)


@pytest.mark.parametrize("offline", [False, True])
def test_a_folder_of_wheels_comes_first(
    server: TorchIndex, tmp_path: Path, *, offline: bool
) -> None:
    made = make_torch(tmp_path / "wheels", "torch", "2.10.0+cu128")
    make_torch(tmp_path / "wheels", "torch", "2.11.0+cu128")
    asked = index(server, find_links=tmp_path / "wheels", offline=offline)

    wheel = pin_from_index(wanted(server), asked, HERE)
    (path,) = download_all(asked, [wheel], tmp_path / "into", silent)

    assert path.read_bytes() == made.read_bytes()
    assert server.behaviour.requests == []


def test_offline_without_the_file(server: TorchIndex, tmp_path: Path) -> None:
    with pytest.raises(Error) as caught:
        pin_from_index(wanted(server), index(server, find_links=tmp_path, offline=True), HERE)

    assert caught.value.code == "files-not-here"
    assert caught.value.values == {"files": "torch 2.10.0+cu128", "folder": str(tmp_path)}


def test_an_index_that_is_a_folder_of_this_machine(server: TorchIndex, tmp_path: Path) -> None:
    made = make_torch(tmp_path / "index" / "torch", "torch", "2.10.0+cu128")
    local = wanted(server)._replace(index_url=(tmp_path / "index").as_uri())
    asked = index(server)

    wheel = pin_from_index(local, asked, HERE)
    (path,) = download_all(asked, [wheel], tmp_path / "into", silent)

    assert path.read_bytes() == made.read_bytes()


def test_what_an_index_has_of_a_project(server: TorchIndex) -> None:
    asked = index(server)
    found = newest_from_index("nvidia-cudnn-cu12", SpecifierSet(">=9"), server.url, asked, HERE)

    assert found is not None
    assert Version(found.version) == Version(CUDNN)
    assert index_has("nvidia-cudnn-cu12", SpecifierSet("<10"), server.url, asked, HERE)
    assert not index_has("triton", SpecifierSet(""), server.url, asked, HERE)
    assert newest_from_index("triton", SpecifierSet(""), server.url, asked, HERE) is None
    assert newest_from_index("torch", SpecifierSet("==9"), server.url, asked, HERE) is None
    server.behaviour.faults["filelock"] = "busy"
    with pytest.raises(Error, match="index-refused"):
        newest_from_index("filelock", SpecifierSet(""), server.url, asked, HERE)


def test_a_named_index_with_a_login(server: TorchIndex, tmp_path: Path) -> None:
    """They are in the flag, and never in the plan."""
    server.behaviour.login = "name:secret"
    asked = index(server, torch_index=server.base.replace("//", "//name:secret@"))
    wheel = pin_from_index(wanted(server), asked, HERE)

    assert len(download_all(asked, [wheel], tmp_path / "into", silent)) == 1


def test_a_size_that_the_server_does_not_say(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "1.0")
    with LocalIndex(tmp_path) as server:
        assert index(server).size(server.url.replace("simple", "files/none.whl")) == 0


def test_the_tags_of_other_implementations() -> None:
    assert (
        wheel_target_of(TARGET._replace(implementation="pypy", version="3.10.1"))
        .tags[0]
        .interpreter
        == "py310"
    )
    assert any(
        tag.abi == "cp313t"
        for tag in wheel_target_of(TARGET._replace(version="3.13.0", free_threaded=True)).tags
    )


@pytest.mark.parametrize("fault", ["denied", "missing", "busy", "reset"])
def test_an_index_that_has_no_such_project(tmp_path: Path, fault: Fault) -> None:
    """A bucket without a listing answers 403 for what it does not have."""
    folder = tmp_path / "served"
    make_wheel(folder, "one", "1.0", files={"one.py": ""})
    with LocalIndex(folder) as server:
        sources = IndexConfig(index_url=server.url, origin="flag")
        asked = Index(sources, Limits(connect=2, read=2, pauses=(0.01,)))
        found = newest_from_index("one", SpecifierSet(), server.url, asked, HERE)
        assert found is not None
        assert found.version == "1.0"

        server.behaviour.faults["one"] = fault
        again = Index(sources, Limits(connect=2, read=2, pauses=(0.01,)))
        if fault in {"busy", "reset"}:
            with pytest.raises(Error, match=r"index-(refused|unreachable)"):
                newest_from_index("one", SpecifierSet(), server.url, again, HERE)
        else:
            assert newest_from_index("one", SpecifierSet(), server.url, again, HERE) is None


def test_the_hash_of_a_folder_s_own_page_counts_and_not_that_of_the_file(
    server: TorchIndex, tmp_path: Path
) -> None:
    """Whoever damages a file of the folder cannot change what the page says of it."""
    made = make_torch(tmp_path / "index" / "torch", "torch", "2.10.0+cu128")
    page = f'<a href="{made.name}#sha256={DIGEST}">'
    (made.parent / "index.html").write_text(page)
    local = wanted(server)._replace(index_url=(tmp_path / "index").as_uri())

    wheel = pin_from_index(local, index(server), HERE)

    assert (wheel.sha256, wheel.size) == (DIGEST, made.stat().st_size)


def test_a_size_that_the_page_has_is_not_asked_for(server: TorchIndex) -> None:
    row = {"filename": linux("2.10.0+cu128"), "url": "x", "hashes": {"sha256": DIGEST}, "size": 7}
    page = json.dumps({"files": [row]})
    server.behaviour.page = ("application/vnd.pypi.simple.v1+json", page)

    assert pin_from_index(wanted(server), index(server), FIT).size == 7
    assert len(server.behaviour.requests) == 1


def test_of_two_places_of_a_file_the_first_counts() -> None:
    there = [*files(linux("2.7.1")), IndexFile(name=linux("2.7.1"), url="https://mirror/x")]

    assert find_exact(there, "torch", "2.7.1", FIT, PAGE) == there[0]


def test_of_the_wanted_release_every_variant_is_named_however_many() -> None:
    there = [f"2.7.0+cu{number}" for number in (111, 118, 121, 124, 126)]

    code, offers = refused(*map(linux, [*there, "2.6.0", "2.8.0"]), version="2.7.0+cu130")

    assert (code, offers) == ("index-lacks-version", ", ".join([*there, "2.8.0"]))


def test_what_does_not_count_hides_nothing_that_comes_after_it() -> None:
    wanted = linux("2.7.1")
    there = [
        *files("rubbish.whl", "torchvision-2.7.1-py3-none-any.whl"),
        *files(wanted, yanked=True),
        *files(wanted, size=5),
    ]

    assert find_exact(there, "Torch", "2.7.1", FIT, PAGE).size == 5


def test_a_wheel_of_several_tags_is_as_good_as_its_best() -> None:
    both = "torch-2.7.1-cp311-cp311-manylinux2014_x86_64.manylinux_2_28_x86_64.whl"
    one = linux("2.7.1", platform="manylinux2014_x86_64")

    assert chosen(one, both, version="2.7.1") == both
    assert chosen(both, one, version="2.7.1") == both


@pytest.mark.parametrize(
    ("specifier", "newest"),
    [(">=2.7", "2.8.0"), (">=2.7.0.dev0", "2.9.0rc1"), ("==2.9.0rc1", "2.9.0rc1"), ("", "2.8.0")],
)
def test_an_early_version_is_chosen_where_the_specifier_names_one(
    specifier: str, newest: str
) -> None:
    there = files(linux("2.7.0"), linux("2.9.0rc1"), linux("2.8.0"))

    found = find_newest(there, "torch", SpecifierSet(specifier), FIT)

    assert found is not None
    assert found.name == linux(newest)


@pytest.mark.parametrize(
    ("count", "wanted", "named"),
    [
        (8, 4, [1, 2, 3, 5, 6, 7]),
        (8, 0, [1, 2, 3]),
        (8, 9, [6, 7, 8]),
        (2, 9, [1, 2]),
    ],
)
def test_three_versions_below_and_above_are_named(
    count: int, wanted: int, named: list[int]
) -> None:
    there = [linux(f"2.{minor}.0") for minor in range(1, count + 1) if minor != wanted]

    _, offers = refused(*there, version=f"2.{wanted}.0")

    assert offers == ", ".join(f"2.{minor}.0" for minor in named)


def test_errors_of_pinning_name_what_and_where(server: TorchIndex) -> None:
    wheel = wanted(server)
    with pytest.raises(Error) as caught:
        pin_from_index(wheel, index(server, offline=True), HERE)
    assert caught.value.values == {"files": "torch 2.10.0+cu128"}

    server.behaviour.hashes = False
    with pytest.raises(Error) as caught:
        pin_from_index(wheel, index(server), HERE)
    page = f"{server.url}/torch/"
    assert caught.value.values["url"] == page
    assert str(caught.value.values["file"]).startswith("torch-2.10.0+cu128-")
