"""What differs from a journal, one path at a time."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ortgpu_fix.apply.environment_files import fingerprint
from ortgpu_fix.apply.journal import (
    Begin,
    Fingerprint,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    Written,
)
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.apply.undo_check import Comparison, compare

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links")
BEGIN = Begin(plan="x", removed=(), installed=(), present=())
COMMIT = Mark(step="commit")


@dataclass
class Tree:
    """An environment, and the folder of a change."""

    site: Site
    folder: Path
    records: list[Record] = field(default_factory=lambda: [BEGIN])

    def path(self, name: str) -> Path:
        path = Path(self.site.purelib, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, name: str, text: str = "old") -> Fingerprint:
        """Write a file with a certain time."""
        self.path(name).write_text(text)
        os.utime(self.path(name), ns=(10**18, 10**18))
        found = fingerprint(str(self.path(name)))
        assert found is not None
        return found

    def set_aside(self, name: str) -> Path:
        """Set a file aside; return where it is now."""
        seen = (self.put(name),)
        aside = self.folder / "aside" / "0"
        self.path(name).rename(aside)
        self.records.append(MovedFiles(moves=((name, "0"),), seen=seen))
        return aside

    def come(self, name: str, text: str = "new", *, seen: bool = True) -> None:
        """Let a file come."""
        made = self.put(name, text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.records += [
            Install(created=(name,), whole=(), standing=(), sizes=(len(text),), hashes=(digest,)),
            Written(seen=(made,) if seen else ()),
        ]

    def compared(self, *more: Record) -> dict[str, set[str]]:
        """Return what differs, relative to the packages."""
        found = compare(self.site, self.folder, (*self.records, *more))
        rows = {name: getattr(found, name) for name in Comparison.__slots__}
        return {
            name: {os.path.relpath(path, self.site.purelib) for path in paths}
            for name, paths in rows.items()
            if paths
        }


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    purelib, folder = tmp_path / "lib", tmp_path / "lib" / ".ortgpu-fix" / "1"
    (folder / "aside").mkdir(parents=True)
    site = Site(
        purelib=str(purelib),
        platlib=str(purelib),
        scripts=str(tmp_path / "bin"),
        prefix=str(tmp_path),
    )
    return Tree(site, folder)


def test_without_records_nothing_differs(tree: Tree) -> None:
    assert compare(tree.site, tree.folder, ()) == Comparison()


@pytest.mark.parametrize("end", [(), (COMMIT,)])
def test_what_was_set_aside_and_is_there_differs_in_nothing(
    tree: Tree, end: tuple[Record, ...]
) -> None:
    tree.set_aside("a.py")

    assert tree.compared(*end) == {}


def test_something_else_in_its_place_has_changed(tree: Tree) -> None:
    tree.set_aside("a.py")
    tree.put("a.py", "a user's")

    assert tree.compared() == {"changed": {"a.py"}}


def test_the_same_size_and_time_are_not_the_same_bytes(tree: Tree) -> None:
    tree.set_aside("a.py")
    tree.put("a.py", "OLD")

    assert tree.compared() == {"changed": {"a.py"}}


def test_a_copy_that_a_kill_left_beside_the_original_is_none(tree: Tree) -> None:
    tree.set_aside("a.py")
    tree.put("a.py")

    assert tree.compared() == {}


def test_links_are_compared_by_where_they_lead(tree: Tree) -> None:
    aside = tree.folder / "aside" / "0"
    tree.path("link").symlink_to("one")
    seen = fingerprint(str(tree.path("link")))
    assert seen is not None
    tree.path("link").rename(aside)
    tree.records.append(MovedFiles(moves=(("link", "0"),), seen=(seen,)))
    tree.path("link").symlink_to("two")
    os.utime(tree.path("link"), ns=(seen[2], seen[2]), follow_symlinks=False)

    assert tree.compared() == {"changed": {"link"}}
    tree.path("link").unlink()
    tree.path("link").symlink_to("one")
    os.utime(tree.path("link"), ns=(seen[2], seen[2]), follow_symlinks=False)
    assert tree.compared() == {}


def test_what_is_back_already_is_lost_of_a_change_that_was_done(tree: Tree) -> None:
    """While it goes on, or back, the last step may be missing; afterwards nobody moves it."""
    tree.set_aside("a.py").rename(tree.path("a.py"))

    assert tree.compared() == {}
    assert tree.compared(Mark(step="undo")) == {}
    assert tree.compared(COMMIT) == {"lost": {"a.py"}}


@pytest.mark.parametrize("text", [None, "another file"])
def test_what_is_nowhere_or_another_is_lost(tree: Tree, text: str | None) -> None:
    tree.set_aside("a.py").unlink()
    if text is not None:
        tree.put("a.py", text)

    assert tree.compared() == {"lost": {"a.py"}}


@pytest.mark.parametrize("text", ["longer than before", None])
def test_what_is_aside_must_be_what_was_set_aside(tree: Tree, text: str | None) -> None:
    aside = tree.set_aside("a.py")
    if text is None:
        aside.unlink()
        aside.symlink_to("old")
    else:
        aside.write_text(text)

    assert tree.compared() == {"lost": {"a.py"}}


def test_what_comes_in_the_place_of_what_went_is_ours(tree: Tree) -> None:
    tree.set_aside("a.py")
    tree.come("a.py")

    assert tree.compared() == {}
    assert tree.compared(COMMIT) == {}


@pytest.mark.parametrize("seen", [True, False])
def test_what_has_come_is_known_by_its_bytes(tree: Tree, *, seen: bool) -> None:
    tree.come("new.py", seen=seen)
    assert tree.compared() == {}

    os.utime(tree.path("new.py"), ns=(1, 1))  # written again, or a copy
    assert tree.compared() == {}
    tree.path("new.py").write_text("NEW")
    assert tree.compared() == {"changed": {"new.py"}}
    tree.path("new.py").write_text("much longer")
    assert tree.compared() == {"changed": {"new.py"}}


def test_a_link_in_the_place_of_a_file_that_came_is_no_such_file(tree: Tree) -> None:
    tree.come("new.py")
    tree.path("new.py").rename(tree.path("other.py"))
    tree.path("new.py").symlink_to("other.py")

    assert tree.compared() == {"changed": {"new.py"}}


def test_a_file_of_unknown_hash_is_ours_only_as_it_was_seen(tree: Tree) -> None:
    made = tree.put("new.py")
    install = Install(created=("new.py",), whole=(), standing=(), sizes=(3,), hashes=("",))
    tree.records += [install, Written(seen=(made,))]

    assert tree.compared() == {}
    os.utime(tree.path("new.py"), ns=(1, 1))
    assert tree.compared() == {"changed": {"new.py"}}


def test_what_has_come_and_is_gone_has_changed_once_all_was_done(tree: Tree) -> None:
    tree.come("new.py")
    tree.path("new.py").unlink()

    assert tree.compared() == {}
    assert tree.compared(COMMIT) == {"changed": {"new.py"}}


def test_what_was_not_written_and_is_there_belongs_to_somebody_else(tree: Tree) -> None:
    install = Install(created=("lock",), whole=(), standing=(), sizes=(-1,), hashes=("",))
    tree.records += [install, Written(seen=(None,))]
    assert tree.compared(COMMIT) == {}

    tree.put("lock", "")
    assert tree.compared(COMMIT) == {"stays": {"lock"}}


def test_a_file_among_the_metadata_that_did_not_come_is_named(tree: Tree) -> None:
    info = "new-1.dist-info"
    tree.put(f"{info}/METADATA", "m")
    tree.put(f"{info}/METADATA.ortgpu-fix.tmp", "a copy that was cut")
    digest = hashlib.sha256(b"m").hexdigest()
    tree.records.append(
        Install(
            created=(f"{info}/METADATA",),
            whole=(info,),
            standing=(),
            sizes=(1,),
            hashes=(digest,),
        )
    )
    assert tree.compared() == {}

    tree.put(f"{info}/direct_url.json", "{}")
    assert tree.compared() == {"changed": {f"{info}/direct_url.json"}}


def test_a_file_in_the_place_of_a_folder_that_went_is_named(tree: Tree) -> None:
    tree.records.append(RemovedFolders(folders=(("gone", 0o755),), names=("folder-0",)))
    assert tree.compared() == {}

    tree.path("gone").mkdir()
    assert tree.compared() == {}
    tree.path("gone").rmdir()
    tree.put("gone")
    assert tree.compared() == {"changed": {"gone"}}


def test_a_link_in_the_place_of_a_folder_leads_nothing_anywhere(tree: Tree) -> None:
    tree.set_aside("package/a.py")
    tree.path("package").rmdir()
    tree.path("elsewhere").mkdir()
    tree.path("package").symlink_to("elsewhere")

    assert tree.compared() == {"lost": {"package"}}


def test_the_most_telling_difference_comes_first(tree: Tree) -> None:
    root = tree.site.purelib
    found = Comparison(
        changed={f"{root}/b.py", f"{root}/a.py"},
        lost={f"{root}/z.py"},
        came={f"{root}/onnxruntime-1.dist-info"},
        theirs={f"{root}/theirs.py"},
    )

    assert found.differences(tree.site) == ("onnxruntime-1.dist-info", "z.py", "a.py", "b.py")


def distribution(tree: Tree, name: str, *files: str) -> None:
    info = f"{name}-1.dist-info"
    for file in files:
        tree.put(file)
    tree.put(f"{info}/RECORD", "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD")))


def test_who_came_later_and_shares_the_folder_is_named_with_all_its_files(tree: Tree) -> None:
    tree.set_aside("onnxruntime/old.py")
    distribution(tree, "onnxruntime", "onnxruntime/theirs.py")
    distribution(tree, "other", "other/a.py")

    assert tree.compared() == {
        "came": {"onnxruntime-1.dist-info"},
        "theirs": {
            "onnxruntime/theirs.py",
            "onnxruntime-1.dist-info",
            "onnxruntime-1.dist-info/RECORD",
        },
    }


def test_who_was_there_before_has_not_come(tree: Tree) -> None:
    tree.set_aside("onnxruntime/old.py")
    distribution(tree, "onnxruntime", "onnxruntime/theirs.py")
    tree.records[0] = Begin(
        plan="x", removed=(), installed=(), present=("onnxruntime-1.dist-info",)
    )

    assert tree.compared() == {}


def test_a_file_of_the_change_that_another_owns_as_well_stays(tree: Tree) -> None:
    tree.come("shared/licence")
    distribution(tree, "later", "shared/own.py")
    tree.put("later-1.dist-info/RECORD", "shared/own.py,,\nshared/licence,,\n")

    assert tree.compared() == {"stays": {"shared/licence"}}


def test_nobody_s_other_files_go_with_who_came_later(tree: Tree) -> None:
    """What another distribution owns as well, and Python itself."""
    tree.set_aside("onnxruntime/old.py")
    distribution(tree, "onnxruntime", "onnxruntime/theirs.py", "common/both.py")
    distribution(tree, "other", "common/both.py")
    tree.put("../pyvenv.cfg", "home = /usr")
    tree.put(
        "onnxruntime-1.dist-info/RECORD", "onnxruntime/t.py,,\ncommon/both.py,,\n../pyvenv.cfg,,\n"
    )

    theirs = tree.compared()["theirs"]
    assert "onnxruntime/t.py" in theirs
    assert not {"common/both.py", "../pyvenv.cfg"} & theirs
