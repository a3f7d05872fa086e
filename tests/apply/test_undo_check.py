"""Each state in which a file of a change may be found, and whether it counts as a difference.

The tests of `test_undo_after_changes` do it with real changes and kills; these put each file as it
may be.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.apply.environment_files import COPY, fingerprint
from ortgpu_fix.apply.journal import (
    Begin,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    Written,
)
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.apply.undo_check import Comparison, compare

if sys.platform == "win32":
    pytest.skip("links need a right there", allow_module_level=True)

SECOND = 1_000_000_000
BEFORE, RAN, AFTER = (at * 1000 * SECOND for at in (1, 2, 3))
"""When a file was there before the change, the change wrote it, and somebody else did."""
OLD, NEW = b"from before", b"of the wheel"
DIGEST = hashlib.sha256(NEW).hexdigest()
MOVED, CREATED = "p/moved.py", "p/created.py"
BEGIN = Begin(plan="x", removed=("a",), installed=(("b", "1"),), when="now", present=())


def write(path: Path, data: bytes, when: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(when, when))


def a_link(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("/nowhere")


PUT: dict[str, Callable[[Path], None]] = {
    "nothing": lambda _: None,
    "old": lambda path: write(path, OLD, BEFORE),
    "old again": lambda path: write(path, OLD, AFTER),
    "as large and old": lambda path: write(path, OLD.upper(), BEFORE),
    "new": lambda path: write(path, NEW, RAN),
    "new again": lambda path: write(path, NEW, AFTER),
    "as large": lambda path: write(path, NEW.upper(), RAN),
    "as large, later": lambda path: write(path, NEW.upper(), AFTER),
    "longer": lambda path: write(path, NEW + b"!", RAN),
    "another": lambda path: write(path, b"x", AFTER),
    "link": a_link,
    "folder": lambda path: path.mkdir(parents=True),
}


class Change:
    """An environment with a change that has not come to its end."""

    def __init__(self, root: Path) -> None:
        root = Path(os.path.realpath(root))
        self.purelib = root / "lib/site"
        (self.purelib / "p").mkdir(parents=True)
        (root / "bin").mkdir()
        purelib = str(self.purelib)
        self.site = Site(
            purelib=purelib, platlib=purelib, scripts=str(root / "bin"), prefix=str(root)
        )
        self.folder = self.site.state / "1"
        (self.folder / "aside").mkdir(parents=True)
        self.old = self._of(OLD, BEFORE)
        self.new = self._of(NEW, RAN)

    def _of(self, data: bytes, when: int) -> Any:
        write(self.folder / "seen", data, when)
        return fingerprint(str(self.folder / "seen"))

    def compare(self, *records: Record, committed: bool = False) -> Comparison:
        end = [Mark(step="commit")] if committed else []
        return compare(self.site, self.folder, (BEGIN, *records, *end))

    def differs(self, *records: Record, committed: bool = False) -> list[str]:
        """Return what differs: its kind, as `changed`, and the name."""
        found = self.compare(*records, committed=committed)
        rows = [(kind, path) for kind in Comparison.__slots__ for path in getattr(found, kind)]
        return sorted(f"{kind} {Path(path).name}" for kind, path in rows)


@pytest.mark.parametrize(
    ("aside", "here", "open_", "committed"),
    [
        # It was set aside, and its place is free.
        ("old", "nothing", "", ""),
        # Or a copy to another filesystem was killed before its last step.
        ("old", "old", "", ""),
        ("old", "as large and old", "changed", "changed"),
        ("old", "old again", "changed", "changed"),
        ("old", "another", "changed", "changed"),
        ("old", "link", "changed", "changed"),
        ("old", "folder", "changed", "changed"),
        # A copy with other times is still what was set aside; another file is not.
        ("old again", "nothing", "", ""),
        ("another", "nothing", "lost", "lost"),
        ("link", "nothing", "lost", "lost"),
        ("another", "old", "lost", "lost"),
        # It was not moved yet, or moved back already: only before the change was committed.
        ("nothing", "old", "", "lost"),
        ("nothing", "another", "lost", "lost"),
        ("nothing", "nothing", "lost", "lost"),
    ],
)
def test_a_file_that_was_set_aside(
    tmp_path: Path, aside: str, here: str, open_: str, committed: str
) -> None:
    change = Change(tmp_path)
    PUT[aside](change.folder / "aside/0-moved.py")
    PUT[here](change.purelib / MOVED)
    moved = MovedFiles(moves=((MOVED, "0-moved.py"),), seen=(change.old,))

    assert change.differs(moved) == ([f"{open_} moved.py"] if open_ else [])
    expected = [f"{committed} moved.py"] if committed else []
    assert change.differs(moved, committed=True) == expected


@pytest.mark.parametrize(
    ("here", "differs"), [("new", False), ("new again", False), ("as large, later", True)]
)
def test_what_the_wheel_brings_in_the_place_of_what_was_set_aside(
    tmp_path: Path, here: str, *, differs: bool
) -> None:
    change = Change(tmp_path)
    PUT["old"](change.folder / "aside/0-created.py")
    PUT[here](change.purelib / CREATED)
    moved = MovedFiles(moves=((CREATED, "0-created.py"),), seen=(change.old,))
    written = Written(seen=(change.new,))

    assert change.differs(moved, install(), written) == (["changed created.py"] if differs else [])


def install(size: int = len(NEW), digest: str = DIGEST, **more: Any) -> Install:
    values: dict[str, Any] = {"whole": (), "standing": (), **more}
    return Install(created=(CREATED,), sizes=(size,), hashes=(digest,), **values)


@pytest.mark.parametrize(
    ("here", "size", "digest", "differs"),
    [
        ("nothing", len(NEW), DIGEST, False),
        ("new", len(NEW), DIGEST, False),
        ("new again", len(NEW), DIGEST, False),
        ("as large", len(NEW), DIGEST, True),
        ("longer", len(NEW), DIGEST, True),
        ("new", len(NEW) + 1, DIGEST, True),
        ("new", 0, DIGEST, True),
        # Nobody can tell whose it is.
        ("new", len(NEW), "", True),
        ("new", -1, "", True),
        ("link", len(NEW), DIGEST, True),
        ("folder", -1, "", True),
    ],
)
def test_a_file_of_a_change_that_was_killed(
    tmp_path: Path, here: str, size: int, digest: str, *, differs: bool
) -> None:
    change = Change(tmp_path)
    PUT[here](change.purelib / CREATED)

    found = change.differs(install(size, digest))

    assert found == (["changed created.py"] if differs else [])


@pytest.mark.parametrize(
    ("here", "digest", "differs"),
    [
        ("new", DIGEST, False),
        ("new again", DIGEST, False),  # written again with the same bytes
        ("new again", "", True),
        ("as large, later", DIGEST, True),
        ("longer", DIGEST, True),
        ("another", DIGEST, True),
        ("link", DIGEST, True),
        ("nothing", DIGEST, False),
    ],
)
def test_a_file_of_a_change_that_came_to_its_end(
    tmp_path: Path, here: str, digest: str, *, differs: bool
) -> None:
    change = Change(tmp_path)
    PUT[here](change.purelib / CREATED)
    records = install(digest=digest), Written(seen=(change.new,))

    assert change.differs(*records) == (["changed created.py"] if differs else [])
    gone = here == "nothing"  # whoever removed a file of a change that is done has changed it
    expected = ["changed created.py"] if differs or gone else []
    assert change.differs(*records, committed=True) == expected


def test_a_file_that_was_not_written_and_that_is_there_stays(tmp_path: Path) -> None:
    change = Change(tmp_path)
    PUT["another"](change.purelib / CREATED)
    found = change.compare(install(), Written(seen=(None,)), committed=True)

    assert found.stays == {str(change.purelib / CREATED)}
    assert not found.changed | found.lost


def test_a_file_among_the_metadata_that_nobody_wrote_for_the_change(tmp_path: Path) -> None:
    change = Change(tmp_path)
    PUT["another"](change.purelib / "b.dist-info/direct_url.json")

    records = install(whole=("b.dist-info", "p")), Written(seen=(None,))

    assert change.differs(*records) == ["changed direct_url.json"]
    PUT["another"](change.purelib / f"{CREATED}{COPY}")  # of which the kill made half
    assert change.differs(*records) == ["changed direct_url.json"]


@pytest.mark.parametrize(
    ("here", "differs"), [("nothing", False), ("folder", False), ("another", True), ("link", True)]
)
def test_the_place_of_a_folder_that_was_removed(
    tmp_path: Path, here: str, *, differs: bool
) -> None:
    change = Change(tmp_path)
    PUT[here](change.purelib / "gone")
    removed = RemovedFolders(folders=(("gone", 0o755),), names=("f-0",))

    assert change.differs(removed) == (["changed gone"] if differs else [])


def test_a_link_in_the_place_of_a_folder_would_lead_elsewhere(tmp_path: Path) -> None:
    change = Change(tmp_path)
    (change.purelib / "p").rename(change.purelib / "q")
    (change.purelib / "p").symlink_to("q")
    PUT["old"](change.folder / "aside/0-moved.py")

    assert change.differs(MovedFiles(moves=((MOVED, "0-moved.py"),), seen=(change.old,))) == [
        "lost p"
    ]


def test_links_are_compared_by_where_they_lead(tmp_path: Path) -> None:
    change = Change(tmp_path)
    aside, here = change.folder / "aside/0-moved.py", change.purelib / MOVED
    aside.symlink_to("one")
    seen = fingerprint(str(aside))
    assert seen is not None
    moved = MovedFiles(moves=((MOVED, "0-moved.py"),), seen=(seen,))
    for leads, differs in (("two", ["changed moved.py"]), ("one", [])):
        here.unlink(missing_ok=True)
        here.symlink_to(leads)
        os.utime(here, ns=(seen[2], seen[2]), follow_symlinks=False)

        assert change.differs(moved) == differs


def test_the_most_telling_difference_comes_first(tmp_path: Path) -> None:
    site = Change(tmp_path).site
    changed, lost, came = (
        {f"{site.purelib}/{name}" for name in names}
        for names in (("b.py", "a.py"), ("z.py",), ("onnxruntime-1.dist-info",))
    )
    found = Comparison(changed=changed, lost=lost, came=came)

    assert found.differences(site) == ("onnxruntime-1.dist-info", "z.py", "a.py", "b.py")
