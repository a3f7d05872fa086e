"""The folders of an environment: what is in it, how paths are written down, and what it weighs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ortgpu_fix.apply.state_folder import (
    Site,
    check_state_folder,
    plain_paths,
    remove_tree,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths of Unix")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    prefix = tmp_path / "venv"
    folders = [prefix / "lib" / "pure", tmp_path / "elsewhere" / "plat", prefix / "bin"]
    for folder in folders:
        folder.mkdir(parents=True)
    purelib, platlib, scripts = map(str, folders)
    return Site(purelib=purelib, platlib=platlib, scripts=scripts, prefix=str(prefix))


def test_what_is_in_an_environment(site: Site, tmp_path: Path) -> None:
    inside = (f"{site.prefix}/share/man", f"{site.platlib}/a.so", f"{site.scripts}/tool")
    outside = (f"{site.prefix}x/a", site.prefix, f"{tmp_path}/elsewhere/other", "/")

    assert [site.inside(path) for path in inside] == [True] * 3
    assert [site.inside(path) for path in outside] == [False] * 4
    whole = site._replace(prefix="/")
    assert whole.inside("/usr/bin/tool")


def test_links_of_the_folder_are_followed_and_that_of_the_file_is_not(site: Site) -> None:
    (Path(site.purelib) / "real").mkdir()
    (Path(site.purelib) / "linked").symlink_to("real")
    (Path(site.purelib) / "real" / "file").symlink_to("nowhere")

    file, other, twice = (
        f"{site.purelib}/{path}" for path in ("linked/file", "linked/x", "linked/../linked/x")
    )
    assert plain_paths([file, other, twice]) == {
        file: f"{site.purelib}/real/file",
        other: f"{site.purelib}/real/x",
        twice: f"{site.purelib}/real/x",
    }


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "file").write_text("x")
    (tree / "inner" / "empty").mkdir(parents=True)
    (tree / "inner" / "folder").symlink_to(outside)
    (tree / "inner" / "file").symlink_to(outside / "file")
    (tree / "file").write_text("x")
    (tmp_path / "link").symlink_to(outside)

    assert remove_tree(tree) == 0
    assert not tree.exists()
    remove_tree(tmp_path / "link")
    assert (outside / "file").read_text() == "x"


def test_a_file_with_the_name_of_a_change_is_no_reason_to_refuse(site: Site) -> None:
    assert not check_state_folder(site)
    assert not check_state_folder(site._replace(purelib=f"{site.purelib}/not/made/yet"))

    site.state.mkdir()
    (site.state / "7").touch()

    assert check_state_folder(site)
