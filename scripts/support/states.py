"""A tiny environment whose user and whose applies do what they like, and what must come of it.

The disk is real, and so is all of `resolver/apply`: only what uv would unpack is written by
hand. What is to be expected is computed from snapshots and from the promises, not by the program.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ortgpu_fix.apply import apply_plan
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.apply.files_to_remove import installed_in_site
from ortgpu_fix.apply.history import discard_undo_data
from ortgpu_fix.apply.rollback import pending_recovery, recover_interrupted, undo_last
from ortgpu_fix.apply.staged_tree import read_staged_tree
from ortgpu_fix.apply.staging import StagedWheels
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.facts.target import Installed, Target
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.progress import silent
from support.dying_child import counting
from support.standin_wheels import as_plan

About = tuple[int, int, bytes]
"""Mode, time and bytes of a file; mode and text of a link or of a folder."""
Files = dict[str, About]
SITE, SHARED = "lib/site", "lib/site/onnxruntime/"
LONG = "\N{ROCKET}" * 63 + ".py"
"""A name of 255 bytes, and of 66 characters."""
FOLDER = "\N{CJK UNIFIED IDEOGRAPH-540D}" * 85
"""A folder's name of 255 bytes."""
OURS = (
    ".ortgpu-fix/lock",
    ".ortgpu-fix/1/journal",
    "../site/.ortgpu-fix/2/aside",
    "../../bin/python",
)
"""What a RECORD may name, and nobody may move for that."""
FILES = {
    "onnxruntime 1.22.1": ("onnxruntime/__init__.py", "onnxruntime/capi/a.py", "../../bin/tool"),
    "onnxruntime 1.22.2": ("onnxruntime/__init__.py", f"onnxruntime/{FOLDER}/{LONG}"),
    "onnxruntime 1.23.0": ("onnxruntime/__init__.py", "onnxruntime/capi/b.py"),
    "onnxruntime-gpu 1.25.0": ("onnxruntime/__init__.py", "onnxruntime/capi/gpu"),
    "onnxruntime-gpu 1.26.0": (
        *("onnxruntime/__init__.py", "onnxruntime/capi/a.py"),
        *("onnxruntime/capi/gpu", "../../bin/tool", f"onnxruntime/{LONG}"),
    ),
    "nvidia-cudnn-cu12 9.1": ("nvidia/__init__.py", "nvidia/cudnn/lib/one"),
    "nvidia-cudnn-cu12 9.2": ("nvidia/__init__.py", "nvidia/cudnn/lib/one", "nvidia/cudnn/two"),
    "nvidia-curand-cu12 1.0": ("nvidia/__init__.py", "nvidia/curand/one"),
    "bystander 1.0": ("bystander/__init__.py", "bystander/inner/one"),
    "bystander 2.0": ("bystander/__init__.py",),
}
ODD = frozenset({"onnxruntime 1.22.1", "bystander 2.0"})
"""Releases whose RECORD names `OURS` as well; a user alone has them."""
PLANS = (
    ("onnxruntime-gpu 1.26.0", "nvidia-cudnn-cu12 9.2"),
    ("onnxruntime-gpu 1.25.0", "nvidia-cudnn-cu12 9.1"),
    ("onnxruntime-gpu 1.26.0",),
    ("nvidia-cudnn-cu12 9.2",),
    ("onnxruntime 1.23.0",),
)


def info_of(release: str) -> str:
    """Return the metadata folder of a release, below the environment."""
    return f"{SITE}/{release.replace('-', '_').replace(' ', '-')}.dist-info/"


def wheel_of(release: str) -> dict[str, bytes]:
    """Return the files of a release by their paths below the environment."""
    name, version = release.split()
    info = info_of(release).removeprefix(f"{SITE}/")
    found = {
        path: b"" if path == "nvidia/__init__.py" else f"{release} {path}".encode()
        for path in FILES[release]
    }
    found[f"{info}METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    found[f"{info}WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    found[f"{info}INSTALLER"] = b"uv"
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode()[:-1]},"
        for path, text in found.items()
    ]
    rows += [f"{path},," for path in OURS] if release in ODD else []
    found[f"{info}RECORD"] = "\n".join([*rows, f"{info}RECORD,,", ""]).encode()
    return {os.path.normpath(f"{SITE}/{path}"): text for path, text in found.items()}


def owned(files: Mapping[str, About], info: str) -> set[str]:
    """Return what the RECORD in `info`, and the folder itself, has of the `files`."""
    rows = files.get(f"{info}RECORD", (0, 0, b""))[2].decode().splitlines()
    names = {row.partition(",")[0] for row in rows}.difference(OURS)
    listed = {os.path.normpath(f"{SITE}/{name}") for name in names}
    return listed | {path for path in files if path.startswith(info)}


def infos(files: Mapping[str, About]) -> dict[str, str]:
    """Return the release of every metadata folder in `files`."""
    known = {info_of(release): release for release in FILES}
    there = {path[: path.index(".dist-info/") + 11] for path in files if ".dist-info/" in path}
    return {info: known[info] for info in sorted(there)}


class World:
    """The environment on the disk."""

    def __init__(self, folder: Path) -> None:
        """Make it, with a build for CPUs and something else in it, and a neighbour outside."""
        self.prefix, self.serial = folder / "venv", 0
        self.folder = folder
        for path in (self.prefix / SITE, self.prefix / "bin", folder / "outside"):
            path.mkdir(parents=True)
        (folder / "outside" / "file").write_text("outside")
        (self.prefix / SITE / "link").symlink_to(folder / "outside")
        (self.prefix / "bin" / "python").write_text("")
        for release in ("onnxruntime 1.22.1", "bystander 1.0"):
            self.install(release)
        for at, path in enumerate(sorted(self.prefix.rglob("*"), reverse=True)):
            if path.is_symlink() or path.name in {"lib", "site", "bin"}:
                continue
            path.chmod((0o750, 0o755, 0o700)[at % 3] if path.is_dir() else 0o600 + at % 64)
            os.utime(path, ns=(at, 10**18 + at * 1001))

    def files(self) -> Files:
        """Return what is there, but for the program's own folder."""
        found: Files = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name != ".ortgpu-fix"]
            for name in (*folders, *names):
                path = os.path.join(folder, name)  # noqa: PTH118
                about = os.lstat(path)
                key = "venv" if path == str(self.prefix) else path
                key = key.removeprefix(f"{self.prefix}{os.sep}")
                if os.path.islink(path):  # noqa: PTH114
                    found[key] = (about.st_mode, 0, os.readlink(path).encode())  # noqa: PTH115
                elif name in folders:
                    found[f"{key}/"] = (about.st_mode, 0, b"")
                else:
                    found[key] = (about.st_mode, about.st_mtime_ns, Path(path).read_bytes())
        return found

    def write(self, path: str, text: bytes) -> None:
        """Write as a tool does: another file takes the place of the old one."""
        goal = self.prefix / path
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.unlink(missing_ok=True)
        goal.write_bytes(text)

    def edit(self, path: str) -> None:
        """Write what is nowhere else."""
        self.serial += 1
        self.write(path, f"mine {self.serial}".encode())

    def remove(self, name: str) -> None:
        """Remove a distribution as pip does, and the folders that are empty then."""
        files = self.files()
        for info in [info for info, row in infos(files).items() if row.split()[0] == name]:
            for path in sorted(owned(files, info)):
                if not (self.prefix / path).is_dir():
                    (self.prefix / path).unlink(missing_ok=True)
                for parent in (self.prefix / path).parents:
                    if parent in {self.prefix / SITE, self.prefix / "bin", self.prefix}:
                        break
                    if parent.is_dir() and not any(parent.iterdir()):
                        parent.rmdir()
            if (self.prefix / info).is_dir():
                (self.prefix / info).rmdir()

    def install(self, release: str) -> None:
        """Install a release as a user does, in the place of another of that name."""
        self.remove(release.split(maxsplit=1)[0])
        for path, text in wheel_of(release).items():
            self.write(path, text)

    def rename(self) -> None:
        """Give the environment another name."""
        self.prefix.rename(self.elsewhere)

    def lose(self) -> None:
        """Remove the program's own folder."""
        shutil.rmtree(self.prefix / SITE / ".ortgpu-fix", ignore_errors=True)

    @property
    def elsewhere(self) -> Path:
        """Where it is when it is renamed."""
        return self.folder / ("venv" if self.prefix.name == "renamed" else "renamed")

    def settle(self) -> None:
        """Look where it is; what was made at its old place since are folders alone."""
        if (self.elsewhere / "bin/python").exists():
            old, self.prefix = self.prefix, self.elsewhere
            left = [path for path in old.rglob("*") if not path.is_dir()]
            assert not left, f"left behind: {left}"  # noqa: S101
            shutil.rmtree(old, ignore_errors=True)

    def target(self) -> Target:
        """Return what the program is told of the environment."""
        nothing: dict[str, Any] = dict.fromkeys(Target._fields)
        there, site = infos(self.files()), str(self.prefix / SITE)
        whole = {info: row for info, row in there.items() if self._has(info)}
        installed = (
            Installed(row.split()[0], row.split()[1], str(self.prefix / info))
            for info, row in whole.items()
        )
        texts = {"prefix": str(self.prefix), "purelib": site, "platlib": site, "kind": "venv"}
        texts |= {"scripts": str(self.prefix / "bin"), "version": f"{sys.version_info[0]}.12.0"}
        texts |= {"executable": str(self.prefix / "bin/python"), "platform": "linux-x86_64"}
        broken = tuple(str(self.prefix / info) for info in there.keys() - whole.keys())
        rows = {"installed": tuple(installed), "broken": broken, "externally_managed": False}
        return Target(**nothing | texts | rows | {"implementation": "cpython", "bits": 64})

    def _has(self, info: str) -> bool:
        return (self.prefix / info / "METADATA").exists()

    @property
    def site(self) -> Site:
        """The folders, for the program."""
        return Site.of(self.target())

    def apply(self, releases: tuple[str, ...], *, works: bool = True) -> None:
        """Apply the plan that installs `releases`, and no other build of onnxruntime.

        The verification, which is a step, too, finds that it `works`.
        """
        target = self.target()
        names = [release.split()[0] for release in releases]
        builds = {row.key for row in target.installed if row.key.startswith("onnxruntime")}
        shared = any(name.startswith("onnxruntime") for name in names)
        going = tuple(sorted(builds - set(names))) if shared else ()
        pairs = (row.split() for row in releases)
        wheels = tuple(Wheel(name, version, "", "", 0, "0") for name, version in pairs)

        def stage(*_: object, **__: object) -> StagedWheels:
            dies = counting.is_set()
            counting.clear()
            tree = Site.of(target).stage / "tree"
            shutil.rmtree(tree, ignore_errors=True)
            for release in releases:
                for path, text in wheel_of(release).items():
                    (tree / path).parent.mkdir(parents=True, exist_ok=True)
                    (tree / path).write_bytes(text)
            staged = StagedWheels(wheels, read_staged_tree(tree, Site.of(target), wheels))
            if dies:
                counting.set()
            return staged

        def verify() -> tuple[bool, str]:
            sys.audit("os.chmod", str(self.prefix), 0, -1)
            return works, "it computes wrongly"

        nowhere = Index(IndexConfig(offline=True))
        options: dict[str, Any] = {"index": nowhere, "uv": type("Uv", (), {"name": "uv"})}
        options |= {"verify": verify, "progress": silent}
        with (
            patch.object(apply_plan, "stage_wheels", stage),
            patch.object(apply_plan, "processes_using", lambda _: ()),
        ):
            plan = as_plan([], going)
            apply_plan.apply(plan, target, allowed=Allowed(conflicts=True), **options)

    def pending(self) -> bool:
        """Tell whether the program says that a change was interrupted."""
        return pending_recovery(self.site)

    def undo(self, *, allow_changed: bool = False) -> None:
        """Do what the command `undo` does."""
        target = self.target()
        site = Site.of(target)
        if not recover_interrupted(site, allow_changed=allow_changed):
            undo_last(site, installed_in_site(target, site), allow_changed=allow_changed)

    def forget(self, *, allow_changed: bool = False) -> None:
        """Do what the command `undo --forget` does."""
        discard_undo_data(self.site, allow_changed=allow_changed)
