"""Which files are set aside of what goes, and which stay."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from example_target import target_at

from ortgpu_fix.apply.environment_files import (
    derived,
)
from ortgpu_fix.apply.files_to_remove import files_to_remove, installed_in_site
from ortgpu_fix.apply.state_folder import Site, plain_paths
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Installed, Target

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the layout of Unix")
ROOT = "lib/python3.11/site-packages"


class Tree:
    """An environment of a few distributions."""

    def __init__(self, prefix: Path) -> None:
        self.prefix, self.purelib = prefix, prefix / ROOT
        self.purelib.mkdir(parents=True)
        (prefix / "bin").mkdir()
        purelib = str(self.purelib)
        self.site = Site(
            purelib=purelib, platlib=purelib, scripts=str(prefix / "bin"), prefix=str(prefix)
        )
        self.installed: list[Installed] = []
        self.kind: Any = "venv"

    def put(self, name: str, text: str = "x") -> Path:
        path = Path(os.path.normpath(self.purelib / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def have(self, name: str, *files: str, record: bool = True, **more: Any) -> Installed:
        """Install a distribution of these files."""
        info = f"{name}-1.dist-info"
        for file in files:
            self.put(file)
        if record:
            rows = "".join(f'"{file}",,\n' for file in (*files, f"{info}/RECORD"))
            self.put(f"{info}/RECORD", rows)
        self.put(f"{info}/METADATA", "m")
        row = Installed(name=name, version="1", metadata_path=str(self.purelib / info))
        self.installed.append(row._replace(**more))
        return self.installed[-1]

    def target(self) -> Target:
        return target_at(self.site, kind=self.kind, installed=tuple(self.installed))

    def removed(
        self,
        *names: str,
        coming: tuple[str, ...] = (),
        incoming: Mapping[str, str] | None = None,
        whole: tuple[str, ...] = (),
    ) -> set[str]:
        """Return what is set aside, relative to the packages."""
        places = {path: str(self.purelib / path) for path in incoming or {}}
        real = plain_paths(places.values())
        arriving = {real[places[path]]: digest for path, digest in (incoming or {}).items()}
        found = files_to_remove(
            self.target(),
            self.site,
            frozenset(names),
            coming=frozenset(coming),
            incoming=arriving,
            whole=[str(self.purelib / path) for path in whole],
        )
        assert list(found) == sorted(found)
        return {os.path.relpath(path, self.purelib) for path in found}

    def refusal(self, *names: str, **more: Any) -> tuple[str, dict[str, object]]:
        with pytest.raises(Error) as caught:
            self.removed(*names, **more)
        return caught.value.code, dict(caught.value.values)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "venv")


def test_all_that_record_lists_goes_and_all_of_the_metadata(tree: Tree) -> None:
    tree.have("old", "old/a.py", "old/data.bin", "../../../bin/old")
    tree.put("old-1.dist-info/direct_url.json")
    tree.put("old/__pycache__/a.cpython-311.pyc")
    tree.put("old/__pycache__/user.cpython-311.pyc")
    tree.put("old/mine.txt")

    assert tree.removed("old") == {
        *("old/a.py", "old/data.bin", "../../../bin/old", "old/__pycache__/a.cpython-311.pyc"),
        *(f"old-1.dist-info/{name}" for name in ("METADATA", "RECORD", "direct_url.json")),
    }


def test_what_another_distribution_owns_too_stays(tree: Tree) -> None:
    tree.have("old", "shared/both.py", "shared/own.py")
    tree.have("other", "shared/both.py")

    removed = tree.removed("old")
    assert "shared/own.py" in removed
    assert "shared/both.py" not in removed
    assert "shared/both.py" in tree.removed("old", "other")


def test_what_record_names_outside_of_the_environment_stays(tree: Tree) -> None:
    tree.have("old", "a.py", "../../../../outside.txt")

    assert tree.removed("old") == {
        *("a.py", "old-1.dist-info/METADATA", "old-1.dist-info/RECORD"),
    }


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"editable": True}, "installed-editable"),
        ({"installer": "conda"}, "installed-conda"),
        ({"installer": "pixi"}, "installed-pixi"),
    ],
)
def test_what_cannot_be_removed_file_by_file_is_named(
    tree: Tree, more: dict[str, Any], code: str
) -> None:
    tree.have("first", "first.py")
    row = tree.have("Old", "a.py", **more)

    assert tree.refusal("old") == (code, {"name": "Old", "path": row.metadata_path})
    assert tree.refusal("old", coming=("old",))[0] == code
    assert tree.removed(coming=("old",)) == set()


@pytest.mark.parametrize(
    ("name", "kind", "coming", "removed"),
    [
        ("old", "venv", (), False),
        ("old", "venv", ("old",), True),
        ("old", "system", ("old",), False),
        ("onnxruntime", "venv", (), True),
        ("ort-nightly", "venv", (), True),
        ("onnxruntime", "system", (), False),
    ],
)
def test_without_a_record_what_is_known_without_it_goes(
    tree: Tree, name: str, kind: str, coming: tuple[str, ...], *, removed: bool
) -> None:
    row = tree.have(name, record=False)
    tree.kind = kind

    if removed:
        assert tree.removed(name, coming=coming) == {f"{name}-1.dist-info/METADATA"}
    else:
        assert tree.refusal(name, coming=coming) == (
            "no-record",
            {"name": name, "path": row.metadata_path},
        )


def test_what_lies_elsewhere_can_only_be_hidden_by_what_comes(tree: Tree, tmp_path: Path) -> None:
    row = tree.have("old", "a.py", metadata_path=str(tmp_path / "base" / "old-1.dist-info"))

    assert tree.refusal("old") == (
        "installed-outside",
        {"name": "old", "path": row.metadata_path},
    )
    assert tree.removed("old", coming=("old",)) == set()
    assert installed_in_site(tree.target(), tree.site) == []


@pytest.mark.parametrize("held", [False, True])
def test_what_lies_below_the_environments_own_stays(
    tree: Tree, tmp_path: Path, *, held: bool
) -> None:
    """As after `--system-site-packages`; one that is imported first would be in the way."""
    tree.have("old")
    below = str(tmp_path / "base" / "old-1.dist-info")
    tree.have("old", metadata_path=below, editable=held)

    assert tree.removed("old") == {"old-1.dist-info/METADATA", "old-1.dist-info/RECORD"}
    tree.installed.reverse()
    assert tree.refusal("old") == ("installed-outside", {"name": "old", "path": below})


SHA = hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize(
    ("path", "digest", "owner"),
    [
        ("theirs.py", "ab", "other"),
        ("theirs.py", SHA, None),  # the same bytes may belong to two
        ("nvidia/__init__.py", "ab", None),
        ("nobody.py", "ab", None),
        (".ortgpu-fix/lock", "ab", "ortgpu-fix"),
        (".ortgpu-fixed/x", "ab", None),
        ("../../../bin/python3.11", "ab", "Python"),
        ("../../../bin/activate", "ab", "Python"),
        ("../../../pyvenv.cfg", "ab", "Python"),
        ("../../../bin/python-argcomplete", "ab", None),
    ],
)
def test_whose_files_nothing_is_written_over(
    tree: Tree, path: str, digest: str, owner: str | None
) -> None:
    tree.have("other", "theirs.py", "nvidia/__init__.py")
    where = str(Path(os.path.normpath(tree.purelib / path)))

    if owner is None:
        tree.removed(incoming={path: digest})
    else:
        assert tree.refusal(incoming={path: digest}) == (
            "wheel-overwrites",
            {"path": where, "owner": owner},
        )


def test_nothing_is_written_outside_nor_over_a_folder(tree: Tree, tmp_path: Path) -> None:
    (tree.purelib / "folder").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tree.purelib / "linked").symlink_to(tmp_path / "elsewhere")

    assert tree.refusal(incoming={"folder": ""})[0] == "path-outside"
    code, values = tree.refusal(incoming={"linked/a.py": ""})
    assert (code, values) == ("path-outside", {"path": str(tmp_path / "elsewhere" / "a.py")})
    assert tree.removed(incoming={"linked": ""}) == {"linked"}


def test_what_came_of_files_since_is_bytecode_and_links_beside_them(tree: Tree) -> None:
    """NVIDIA's TensorRT-RTX makes such links when it is imported."""
    for name in ("p/lib.so.1.7", "p/other.so.1", "p/a.py", "p/__pycache__/a.cpython-311.pyc"):
        tree.put(name)
    folder = tree.purelib / "p"
    for name, leads in (
        *(("lib.so.1", "lib.so.1.7"), ("lib.so", str(folder / "lib.so.1.7"))),
        *(("other.so", "other.so.1"), ("gone.so", "nothing.so.1.7")),
    ):
        (folder / name).symlink_to(leads)
    paths = {str(folder / "lib.so.1.7"), str(folder / "a.py"), str(tree.purelib / "q/x.so.1")}

    assert {Path(path).name for path in derived(paths)} == {
        *("lib.so.1", "lib.so", "a.cpython-311.pyc"),
    }
    assert [Path(path).name for path in derived({str(folder / "a.py")})] == ["a.cpython-311.pyc"]
