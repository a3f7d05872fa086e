"""The collection as Ansible's own tools see it: its form, its documentation, its installation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.standin_wheels import find_uv

COLLECTION = Path(__file__).parents[2] / "scripts" / "ansible"
SANITY = [
    "action-plugin-docs",
    "compile",
    "empty-init",
    "ignores",
    "line-endings",
    "no-assert",
    "no-illegal-filenames",
    "no-smart-quotes",
    "shebang",
    "symlinks",
    "use-argspec-type-path",
]
"""What ansible-test finds without further tools; scripts/prove/collection.py runs all of it."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection where Ansible looks for it."""
    pytest.importorskip("ansible.release")
    folder = tmp_path_factory.mktemp("place") / "ansible_collections" / "ortgpu" / "fix"
    shutil.copytree(COLLECTION, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def ansible(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module of this Python beside the collection, with nothing of the user's Ansible."""
    collections = place.parents[2]
    environ = {name: text for name, text in os.environ.items() if "ANSIBLE" not in name} | {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_HOME": str(collections / "home"),
        "HOME": str(collections / "home"),
        "PATH": f"{Path(find_uv()).parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_collection_is_clean_for_the_linter(place: Path) -> None:
    pytest.importorskip("ansiblelint")

    found = ansible(place, "ansiblelint", "--nocolor", "--profile", "production", "--strict")

    assert found.returncode == 0, found.stdout + found.stderr


def sanity(place: Path) -> subprocess.CompletedProcess[str]:
    """Run what ansible-test finds without further tools."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    words = [word for name in SANITY for word in ("--test", name)]
    return ansible(
        place, "ansible", "test", "sanity", "--local", "--color", "no", "--python", python, *words
    )


def test_the_collection_is_sane_and_what_is_not_is_noticed(place: Path, tmp_path: Path) -> None:
    found = sanity(place)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("Running sanity test") == len(SANITY)

    wrong = tmp_path / "ansible_collections" / "ortgpu" / "fix"
    shutil.copytree(place, wrong)
    (wrong / "plugins" / "modules" / "no_documentation.py").write_bytes(b"print(1)\r\n")
    said = sanity(wrong).stdout
    assert "no_documentation.py" in said
    assert "line-endings" in said


def test_the_role_says_what_it_takes(place: Path) -> None:
    done = ansible(place, "ansible", "doc", "--json", "-t", "role", "ortgpu.fix.fleet")

    [found] = json.loads(done.stdout).values()
    defaults = (place / "roles" / "fleet" / "defaults" / "main.yml").read_text()
    named = {line.partition(":")[0].strip("# ") for line in defaults.splitlines() if ": " in line}
    named = {name for name in named if name.startswith("ortgpu_fix_")}
    for entry in ("main", "plan", "apply"):
        assert set(found["entry_points"][entry]["options"]) == named | {"ortgpu_fix_machine"}


def test_the_collection_installs_from_a_clone(place: Path) -> None:
    where = place.parents[2] / "installed"

    words = ("collection", "install", str(COLLECTION), "-p", str(where), "--force")
    done = ansible(place, "ansible", "galaxy", *words)

    assert done.returncode == 0, done.stderr
    fix = where / "ansible_collections" / "ortgpu" / "fix"
    assert (fix / "roles" / "fleet" / "meta" / "argument_specs.yml").is_file()
    assert (fix / "playbooks" / "fleet.yml").is_file()
