"""Packages out of Debian's archive, unpacked without being installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARCHIVE = "http://deb.debian.org/debian"


class DebianArchive:
    """The lists of some suites, kept in a folder of their own."""

    def __init__(self, folder: Path, suites: Iterable[str], component: str = "main") -> None:
        """Read the lists; `can_be_had` tells whether that was possible."""
        lists, cache, sources = folder / "lists", folder / "cache", folder / "sources.list"
        for place in (lists / "partial", cache / "archives" / "partial"):
            place.mkdir(parents=True, exist_ok=True)
        rows = [f"deb [signed-by={KEY}] {ARCHIVE} {suite} {component}" for suite in suites]
        sources.write_text("\n".join(rows) + "\n")
        settings = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::Lists": lists,
            "Dir::Cache": cache,
            "APT::Sandbox::User": "root",
        }
        self.apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
        there = shutil.which("apt-get") and shutil.which("dpkg")
        self.can_be_had = bool(there) and command(*self.apt, "update")

    def unpack(self, packages: Sequence[str], folder: Path) -> Path:
        """Unpack packages (`libcuda1/bookworm`) into `folder`/root, and return that."""
        folder.mkdir(parents=True, exist_ok=True)
        for package in packages:
            command(*self.apt, "download", package, cwd=folder)
        for file in folder.glob("*.deb"):
            command("dpkg", "-x", str(file), str(folder / "root"))
        return folder / "root"


def command(*argv: str, cwd: Path | None = None) -> bool:
    """Run a command; say what it said where it fails."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{' '.join(argv)}: {(done.stderr or done.stdout)[-800:]}", file=sys.stderr)
    return done.returncode == 0
