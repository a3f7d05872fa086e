"""The program is watched in every test here: where it writes, and whom it calls."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Iterator

import pytest
import requests
from watched import Watch, addresses_of

INDEX = "https://pypi.org/simple"
SETTINGS = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture(scope="module", autouse=True)
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Watch what runs the program, in the fixtures of a module too; it is told at its end."""
    if shutil.which("strace") is None:
        yield
        return
    watch = Watch(tmp_path_factory.mktemp("watched"))
    with watch.on():
        yield
    if watch.runs:
        addresses = {each for url in servers() for each in addresses_of(url)}
        assert watch.outside(addresses) == []


@functools.cache
def servers() -> list[str]:
    """Return the index that this machine is configured for, where its files are, the way there."""
    index = next((os.environ[name] for name in SETTINGS if os.environ.get(name)), INDEX)
    trusted = os.environ.get("PIP_CERT") or True
    page = requests.get(f"{index.rstrip('/')}/onnxruntime-gpu/", timeout=60, verify=trusted).text
    files = set(re.findall(r'href="(https?://[^/"]+)', page))
    return [index, *files, *(os.environ[name] for name in PROXIES if os.environ.get(name))]
