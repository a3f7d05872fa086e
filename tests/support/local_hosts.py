"""Hosts of a fleet that are local connections, each with an environment of its own.

The Python of a host begins with its home, its temporary folder and, where it has one, its simulated
driver. The wheels are stand-ins that the controller's matrix names.
"""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import environments
from drivers import Card

from support.local_index import make_wheel
from support.standin_fleet import ansible, stand_in_files


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The controller and its hosts."""

    folder: Path
    controller: Path
    about: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """What the inventory says of a host besides."""

    def inventory(self, **variables: object) -> str:
        """Write the inventory, with `variables` for all hosts, and return its path."""
        hosts = {}
        for home in sorted((self.folder / "hosts").iterdir()):
            hosts[home.name] = {
                "ansible_python_interpreter": str(home / "python"),
                "ansible_remote_tmp": str(home / "tmp"),
                "ortgpu_fix_python": str(home / "venv"),
                **self.about.get(home.name, {}),
            }
        wheels = f"--find-links={self.folder / 'wheels'}"
        common = {"ansible_connection": "local", "ortgpu_fix_flags": [wheels], **variables}
        path = self.folder / "inventory.json"
        path.write_text(json.dumps({"all": {"vars": common, "hosts": hosts}}))
        return str(path)

    def run(
        self, *arguments: str, book: str = "ortgpu.fix.fleet", **variables: object
    ) -> tuple[int, str]:
        """Run a playbook, and return its exit code and what it said."""
        words = [book, "-i", self.inventory(**variables), *arguments]
        with ansible(self.controller, "playbook", *words, folder=self.folder) as process:
            said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def venv(self, host: str) -> Path:
        """Return the environment of a host."""
        return self.folder / "hosts" / host / "venv"

    def installed(self, host: str) -> set[str]:
        """Return the distributions that are installed on a host."""
        folders = self.venv(host).glob("lib/python*/site-packages/*.dist-info")
        return {folder.name.removesuffix(".dist-info") for folder in folders}

    def left_behind(self) -> list[Path]:
        """Return what lies in the hosts' folders for temporary files."""
        return [path for home in (self.folder / "hosts").iterdir() for path in home.glob("tmp/*")]


def add_host(
    folder: Path, driver: tuple[Path, Card] | None = None, requires: str | None = None
) -> None:
    """Make a host with the CPU build installed.

    `driver` are the stand-ins for its libraries, and its GPU; `requires` is what an application
    that is installed there requires.
    """
    venv = folder / "venv"
    environments.make_venv(environments.own_base(), venv)
    site = environments.site_packages(venv / "bin" / "python")
    wheel = make_wheel(
        folder, "onnxruntime", "1.22.1", files=stand_in_files("onnxruntime", "1.22.1")
    )
    with zipfile.ZipFile(wheel) as zipped:
        zipped.extractall(site)
    wheel.unlink()
    if requires is not None:
        environments.put(site, "some-app", "1.0", requires=[requires])
    lines = [f"export HOME={shlex.quote(str(folder))}"]
    if driver is not None:
        stubs, card = driver
        text = f"release 535.104.12\ncuda 12020\ngpu {card.line()}\n"
        (folder / "driver.txt").write_text(text)
        lines.append(f"export LD_LIBRARY_PATH={stubs} ORTGPU_STUB={folder / 'driver.txt'}")
    python = folder / "python"
    python.write_text("\n".join(["#!/bin/sh", *lines, f'exec {environments.own_base()} "$@"', ""]))
    python.chmod(0o755)
