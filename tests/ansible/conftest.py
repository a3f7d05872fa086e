"""The collection as Ansible finds it, and the collection's own modules for what is tested alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

COLLECTION = Path(__file__).parents[2] / "scripts" / "ansible"


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for `ANSIBLE_COLLECTIONS_PATH`; what is in it can be imported."""
    folder = tmp_path_factory.mktemp("collections")
    (folder / "ansible_collections" / "ortgpu").mkdir(parents=True)
    (folder / "ansible_collections" / "ortgpu" / "fix").symlink_to(COLLECTION)
    sys.path.append(str(folder))
    return folder
