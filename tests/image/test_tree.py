"""The tree of an image: links that stay inside, and what no honest image holds."""

from __future__ import annotations

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.image import tree as tree_module
from ortgpu_fix.image.tree import File, Folder, Tree, size_of

ONE = File(1, 0, b"one\r\ntwo")


@pytest.fixture
def tree() -> Tree:
    made = Tree()
    made.put("/usr/lib/a.so", ONE)
    made.put("lib", "usr/lib")
    made.put("opt/app/up", "../../usr/lib")
    made.put("opt/out", "/../../etc/passwd")
    made.put("opt/absolute", "/usr")
    made.put("loop", "loop")
    return made


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/usr/lib/a.so", "/usr/lib/a.so"),
        ("lib/./a.so", "/usr/lib/a.so"),
        ("/opt/app/up/a.so", "/usr/lib/a.so"),
        ("/opt/absolute/lib/a.so", "/usr/lib/a.so"),
        ("/../usr", "/usr"),
        ("", "/"),
        ("/opt/out", None),
        ("/loop", None),
        ("/usr/lib/a.so/below", None),
        ("/none", None),
    ],
)
def test_links_are_followed_inside(tree: Tree, path: str, real: str | None) -> None:
    assert tree.real(path) == real
    assert (tree.find(path) is None) == (real is None)


def test_as_many_links_as_linux_follows(tree: Tree) -> None:
    for at in range(41):
        tree.put(f"l{at}", f"l{at + 1}")
    tree.put("l41", ONE)

    assert tree.find("l1") == ONE
    assert tree.find("l0") is None


def test_names_and_texts(tree: Tree) -> None:
    assert tree.put("../x", ONE) is None
    assert tree.real("x") == "/x"
    assert tree.names("/lib") == ["a.so"]
    assert tree.names("/opt") == ["absolute", "app", "out"]
    assert tree.names("/usr/lib/a.so") == tree.names("/none") == []
    assert tree.text("/lib/a.so") == "one\ntwo"
    assert tree.text("/lib") == tree.text("/none") == ""


def test_what_is_put_goes_where_a_link_leads(tree: Tree) -> None:
    assert tree.put("lib/b.so", File(2, 1)) is None
    assert tree.put("usr/lib/a.so", File(3, 1)) == ONE
    assert tree.names("/usr/lib") == ["a.so", "b.so"]


def test_a_folder_stays_and_replaces_what_is_none(tree: Tree) -> None:
    assert tree.put("usr", Folder()) is None
    assert tree.names("usr") == ["lib"]
    assert tree.put("lib", Folder()) == "usr/lib"
    assert tree.names("lib") == []


@pytest.mark.parametrize(
    "path", ["", "/", "a/..", "a/.", "usr/lib/a.so/x", f"{'x' * 256}", "x/" * 200 + "x"]
)
def test_impossible_paths_change_nothing(tree: Tree, path: str) -> None:
    before = [(name, dict(folder)) for name, folder in tree.folders()]

    assert tree.put(path, ONE) is None
    assert [(name, dict(folder)) for name, folder in tree.folders() if name != "/a"] == before or (
        path in {"a/..", "a/."}
    )


def test_the_longest_name_and_the_deepest_folder(tree: Tree) -> None:
    tree.put("x" * 255, ONE)
    tree.put("y/" * 199 + "z", ONE)

    assert tree.find("x" * 255) == ONE
    assert tree.find("y/" * 199 + "z") == ONE


def test_removing_takes_the_link_and_not_what_it_leads_to(tree: Tree) -> None:
    assert tree.remove("/lib") == "usr/lib"
    assert tree.find("usr/lib/a.so") == ONE
    assert tree.remove("usr/lib/a.so/x") is None
    assert tree.remove("none") is None
    assert isinstance(tree.remove("usr"), Folder)
    assert tree.names("/") == ["loop", "opt"]


def test_too_many_files(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first folders and files of the tree are ten."""
    monkeypatch.setattr(tree_module, "MOST_NODES", 11)
    tree.put("one", ONE)

    with pytest.raises(Error, match="image-too-large"):
        tree.put("two", ONE)


def test_sizes_of_what_was_there_before() -> None:
    folder = Folder(a=File(1, 0), b=Folder(c=File(2, 0), d="a", e=File(4, 1)))

    assert size_of(folder, 1) == 3
    assert size_of(folder, 2) == 7
    assert size_of(None, 1) == 0
