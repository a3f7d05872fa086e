"""What an engine has installed into a prefix of its own, and where that belongs."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path

import pytest

from ortgpu_fix.apply.staged_tree import (
    StagedTree,
    read_staged_tree,
)
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error
from ortgpu_fix.plan.wheels import Wheel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the layouts of Unix")
VENV = "lib/python3.11/site-packages"


class Tree:
    """A staging prefix as an engine leaves it."""

    def __init__(self, folder: Path, root: str = VENV) -> None:
        self.folder, self.root = folder / "tree", root
        self.environment = folder / "env"
        self.wheels: list[Wheel] = []

    def write(self, path: str, text: str = "x") -> str:
        file = Path(os.path.normpath(self.folder / self.root / path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        return f'"{path}",sha256={digest.rstrip("=")},{len(text)}\n'

    def add(self, name: str, *paths: str, pure: bool = True, text: str = "x") -> None:
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        rows = [self.write(path, text) for path in paths]
        rows.append(self.write(f"{info}/METADATA", "Name: x\nRequires-Dist: b>=1\n"))
        rows.append(self.write(f"{info}/WHEEL", f"Root-Is-Purelib: {str(pure).lower()}\n"))
        self.write(f"{info}/RECORD", "".join(rows) + f"{info}/RECORD,,\n")
        wheel = Wheel(
            name=name, version="1.0.0", index_url="pypi", file=f"{name}.whl", size=1, sha256="0"
        )
        self.wheels.append(wheel)

    def site(self, root: str = VENV, scripts: str = "bin", platlib: str | None = None) -> Site:
        prefix = self.environment
        return Site(
            purelib=str(prefix / root),
            platlib=str(prefix / (platlib or root)),
            scripts=str(prefix / scripts),
            prefix=str(prefix),
        )

    def read(self, site: Site | None = None) -> StagedTree:
        return read_staged_tree(self.folder, site or self.site(), self.wheels)

    def refusal(self) -> Error:
        with pytest.raises(Error) as caught:
            self.read()
        return caught.value

    def goals(self, read: StagedTree) -> set[str]:
        return {os.path.relpath(path, self.environment) for path in read.files}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_prefix_like_the_environment(tree: Tree) -> None:
    tree.add("a-b", "a/x.py", "../../../bin/tool", "../../../share/man/tool.1")
    tree.write("a/__pycache__/x.cpython-311.pyc")
    tree.write("a/left.tmp")  # of the engine: in no RECORD
    tree.write("a/__pycache__/x.cpython-311.pyc.140")  # half written
    (tree.folder / ".lock").touch()
    (tree.folder / VENV / "empty" / "inner").mkdir(parents=True)
    (tree.folder / "include").mkdir()
    record = (tree.folder / VENV / "a_b-1.0.dist-info" / "RECORD").read_bytes()

    read = tree.read()

    info = f"{VENV}/a_b-1.0.dist-info"
    assert tree.goals(read) == {
        f"{VENV}/a/x.py",
        f"{VENV}/a/__pycache__/x.cpython-311.pyc",
        *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD")),
        "bin/tool",
        "share/man/tool.1",
    }
    assert all(Path(source).is_file() for source in read.files.values())
    assert read.infos == (str(tree.environment / info),)
    assert read.folders == (str(tree.environment / VENV / "empty" / "inner"),)
    assert read.requires == (("b>=1",),)
    digests = {
        os.path.relpath(path, tree.environment): digest for path, digest in read.hashes.items()
    }
    assert digests["bin/tool"] == hashlib.sha256(b"x").hexdigest()
    assert not digests[f"{info}/RECORD"]
    assert (tree.folder / info / "RECORD").read_bytes() == record


def test_debian_s_pip_has_a_folder_local_in_every_prefix(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "local/lib/python3.11/dist-packages")
    tree.add("a", "a.py", "../../../bin/tool", "../../../share/x")

    read = tree.read(tree.site("local/lib/python3.11/dist-packages", "local/bin"))

    assert tree.goals(read) >= {
        "local/lib/python3.11/dist-packages/a.py",
        "local/bin/tool",
        "local/share/x",
    }


def test_where_scripts_lie_elsewhere_record_says_so(tree: Tree) -> None:
    tree.add("a", "a, b.py", "../../../bin/tool")

    read = tree.read(tree.site("usr/lib/python3/dist-packages", "usr/local/bin"))

    assert tree.goals(read) >= {"usr/lib/python3/dist-packages/a, b.py", "usr/local/bin/tool"}
    rows = (tree.folder / VENV / "a-1.0.dist-info" / "RECORD").read_text().splitlines()
    digest = "sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE"
    assert rows[:2] == [f'"a, b.py",{digest},1', f"../../../local/bin/tool,{digest},1"]
    assert rows[-1] == "a-1.0.dist-info/RECORD,,"


def test_pure_and_other_modules_may_lie_in_two_folders(tmp_path: Path) -> None:
    """So it is on Fedora; a prefix with one folder for both is told apart by the WHEEL file."""
    for pure, where in ((True, "lib"), (False, "lib64")):
        tree = Tree(tmp_path / where)
        tree.add("a", "a.py", pure=pure)

        read = tree.read(tree.site(platlib="lib64/python3.11/site-packages"))

        assert f"{where}/python3.11/site-packages/a.py" in tree.goals(read)


def test_what_is_not_whole_is_not_installed(tree: Tree) -> None:
    tree.add("a", "a.py")
    (tree.folder / VENV / "a.py").unlink()
    assert tree.refusal().values == {"said": "a.py of a was not installed"}

    (tree.folder / VENV / "a-1.0.dist-info" / "RECORD").unlink()
    assert tree.refusal().values == {"said": "a has no RECORD"}

    tree.wheels.append(tree.wheels[0]._replace(name="c"))
    assert tree.refusal().code == "install-failed"
    assert tree.refusal().values == {"said": "c 1.0.0 was not installed"}


@pytest.mark.parametrize(
    ("path", "goal"),
    [
        ("../../../bin/tool", "usr/local/bin/tool"),
        ("../../../Scripts/tool.exe", "usr/local/bin/tool.exe"),
        ("../../../local/share/x", "usr/local/share/x"),
        ("../../../share/man/x.1", "usr/local/share/man/x.1"),
        ("../../../bin", "usr/local/bin"),
    ],
)
def test_where_what_is_no_module_belongs(tree: Tree, path: str, goal: str) -> None:
    tree.add("a", path)

    read = tree.read(tree.site("usr/lib/python3/dist-packages", "usr/local/bin"))
    assert goal in tree.goals(read)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_no_file(tree: Tree, kind: str) -> None:
    tree.add("a", "a.py")
    path = tree.folder / VENV / "a.py"
    path.unlink()
    path.symlink_to("a-1.0.dist-info/METADATA") if kind == "link" else path.mkdir()

    assert tree.refusal().code == "wheel-odd"


@pytest.mark.parametrize(
    "path", ["../../../../evil.py", ".ortgpu-fix/lock", "../../../.ORTGPU-fix/x"]
)
def test_what_is_not_its_own_to_write(tree: Tree, path: str) -> None:
    tree.add("a", path)

    assert tree.refusal().code == "wheel-escapes"


def test_two_wheels_with_one_path(tree: Tree) -> None:
    tree.add("a", "shared.py", "nvidia/__init__.py")
    tree.add("b", "shared.py")
    assert tree.read().hashes[str(tree.environment / VENV / "shared.py")]

    tree.add("c", "nvidia/__init__.py", text="another")  # every wheel of NVIDIA's has that
    assert not tree.read().hashes[str(tree.environment / VENV / "nvidia/__init__.py")]

    tree.add("d", "shared.py", text="another")
    error = tree.refusal()
    assert (error.code, error.values["owner"]) == ("wheel-overwrites", "d")
