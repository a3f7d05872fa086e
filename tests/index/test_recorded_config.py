"""Which index is asked and how, as a reader accepted it last: what changes in it is seen, and read.

Every setting alone and every two of them; the other tests say why one goes before another. Where a
change is wanted, `ORTGPU_FIX_RECORD=1` writes `tests/recordings/config.txt` anew, and what git
shows is to be read.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from odd import check_recorded

from ortgpu_fix.errors import Error
from ortgpu_fix.index.config import IndexConfig, is_trusted, load_index_config, require_secure

if sys.platform == "win32":
    pytest.skip("the folders of Linux", allow_module_level=True)

PIP = "[global]\nindex-url = https://pip.example/simple\ncert = /c/pip\nproxy = http://p:1\n"
UV = (
    'exclude-newer = "2026-01-01T00:00:00Z"\nkeyring-provider = "subprocess"\n'
    '[[index]]\nurl = "https://no.example/simple"\n'
    '[[index]]\nurl = "https://uv.example/simple"\ndefault = true\n'
)
FILES = {
    "home/.pip/pip.conf": PIP.replace("pip.example", "old.example"),
    "home/.config/pip/pip.conf": PIP,
    "home/.config/uv/uv.toml": UV,
    "xdg/pip/pip.conf": "[install]\nindex_url = https://xdg.example/simple\n"
    "trusted-host = a.example b.example\nkeyring-provider = subprocess\nclient-cert = /k/pip\n",
    "xdg/uv/uv.toml": '[pip]\nindex-url = "https://uvpip.example/simple"\n',
    "prefix/pip.conf": "[global]\nindex-url = https://prefix.example/simple\n",
    "chosen.conf": "[global]\nindex-url = https://chosen.example/simple\nno-index = true\n",
    "chosen.toml": 'index-url = "http://insecure.example/simple"\n[[index]]\nurl = 3\n',
    "broken.conf": "index-url = https://broken.example/simple\n",
    "broken.toml": "index-url = [",
    "bin/keyring": "#!/bin/sh\n",
}
SETTINGS: tuple[Mapping[str, str], ...] = (
    {"HOME": "home"},
    {"XDG_CONFIG_HOME": "xdg"},
    {"HOME": "home", "XDG_CONFIG_HOME": "xdg"},
    {"PIP_CONFIG_FILE": "chosen.conf"},
    {"PIP_CONFIG_FILE": "broken.conf"},
    {"PIP_CONFIG_FILE": "/dev/null"},
    {"UV_CONFIG_FILE": "chosen.toml"},
    {"UV_CONFIG_FILE": "broken.toml"},
    {"UV_NO_CONFIG": "1"},
    {"PIP_INDEX_URL": "https://user:word@pipenv.example/simple/"},
    {"UV_INDEX_URL": "https://uvold.example/simple"},
    {"UV_DEFAULT_INDEX": "https://uvnew.example/simple"},
    {"PIP_INDEX_URL": "http://localhost:3141/simple"},
    {"PIP_INDEX_URL": "http://insecure.example:81/simple"},
    {"PIP_TRUSTED_HOST": "insecure.example other.example"},
    {"UV_INSECURE_HOST": "insecure.example:81"},
    {"PIP_CERT": "/c/env"},
    {"REQUESTS_CA_BUNDLE": "/c/requests"},
    {"CURL_CA_BUNDLE": "/c/curl"},
    {"SSL_CERT_FILE": "/c/ssl"},
    {"PIP_CLIENT_CERT": "/k/env"},
    {"SSL_CLIENT_CERT": "/k/ssl"},
    {"PIP_PROXY": "http://proxy:2"},
    {"PIP_KEYRING_PROVIDER": "subprocess"},
    {"UV_KEYRING_PROVIDER": "subprocess"},
    {"PIP_KEYRING_PROVIDER": "disabled"},
    {"UV_EXCLUDE_NEWER": "2025-05-05"},
)
FLAGS: tuple[dict[str, Any], ...] = (
    {},
    {"index_url": "http://flag.example/simple/"},
    {"torch_index": "https://torch.example/whl/"},
    {"offline": True},
    {"find_links": Path("/w"), "kept": Path("/kept")},
)
URLS = (
    "https://x",
    "http://a.example/x",
    "http://insecure.example:81/",
    "http://127.0.0.1:1/",
    "http://[::1]/",
    "http://localhost.example/",
    "file:///x",
    "http://u:p@LOCALHOST/",
)


def said(environ: Mapping[str, str], folder: Path, **flags: Any) -> str:
    places = {
        name: value if "://" in value or value.startswith("/") or name.startswith(("PIP_T", "UV_I"))
        or value in {"1", "subprocess", "disabled", "2025-05-05"} else str(folder / value)
        for name, value in environ.items()
    }  # fmt: skip
    try:
        found = load_index_config({"PATH": str(folder / "bin"), **places}, **flags)
    except Error as error:
        return str(error)
    default = IndexConfig(index_url="", origin="default")
    shown = {
        field: sorted(value) if isinstance(value, frozenset) else value
        for field in default.__slots__
        if (value := getattr(found, field)) != getattr(default, field)
    }
    secure = [url for url in URLS if is_safe(url, found)]
    trusted = [url for url in URLS if is_trusted(url, found)]
    return f"{shown} {found.flagged} {secure} {trusted}".replace(str(folder), "…")


def is_safe(url: str, sources: IndexConfig) -> bool:
    try:
        require_secure(url, sources)
    except Error:
        return False
    return True


def configurations(folder: Path) -> Iterator[str]:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "bin/keyring").chmod(0o755)
    for flags in FLAGS:
        yield f"{flags}: {said({}, folder, **flags)}"
    for setting, flags in itertools.product(SETTINGS, FLAGS[:2]):
        yield f"{setting} {flags}: {said(setting, folder, **flags)}"
    for one, other in itertools.combinations(SETTINGS, 2):
        if not one.keys() & other.keys():
            yield f"{one} {other}: {said({**one, **other}, folder)}"
    for one in SETTINGS:
        found = said({**one, "HOME": "home"}, folder, prefix=folder / "prefix")
        yield f"{one} prefix: {found}"


def test_a_configuration_is_the_one_that_was_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the files of this machine in `/etc`."""
    read = Path.read_text

    def elsewhere(path: Path, **options: Any) -> str:
        if not path.is_relative_to(tmp_path):
            raise FileNotFoundError
        return read(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", elsewhere)
        lines = [*configurations(tmp_path)]
    check_recorded("config.txt", lines)
