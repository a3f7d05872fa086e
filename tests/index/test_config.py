"""Where packages come from: flags, uv's configuration, pip's configuration, PyPI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.index.config import IndexConfig, is_trusted, load_index_config, require_secure


def config(home: Path, *, pip: str = "", uv: str = "") -> dict[str, str]:
    """Write configuration files of a user and return the environment in which they count."""
    for name, text in (("pip/pip.conf", pip), ("uv/uv.toml", uv)):
        path = home / ".config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"HOME": str(home)}


def test_the_indexes_that_no_other_tool_names_have_variables_of_their_own() -> None:
    environ = {
        "ORTGPU_FIX_TORCH_INDEX_URL": "https://me:secret@t.example/whl",
        "ORTGPU_FIX_TENSORRT_INDEX_URL": "https://me:secret@n.example/",
    }

    found = load_index_config({**NO_FILES, **environ})
    assert found.torch_index == "https://me:secret@t.example/whl"
    assert found.tensorrt_index == "https://me:secret@n.example/"
    flag = load_index_config({**NO_FILES, **environ}, torch_index="https://flag.example/whl")
    assert flag.torch_index == "https://flag.example/whl"


@pytest.mark.parametrize(
    ("environ", "pip", "uv", "asked"),
    [
        ({"PIP_KEYRING_PROVIDER": "subprocess"}, "", "", True),
        ({}, "[global]\nkeyring-provider = subprocess\n", "", True),
        ({}, "", 'keyring-provider = "subprocess"', True),
        ({"UV_KEYRING_PROVIDER": "disabled"}, "", 'keyring-provider = "subprocess"', False),
        ({}, "", "", False),
    ],
)
def test_who_wants_the_keyring_asked(
    tmp_path: Path, environ: dict[str, str], pip: str, uv: str, *, asked: bool
) -> None:
    """Either of pip and uv: the index is the same."""
    keyring = tmp_path / "keyring"
    keyring.touch(mode=0o755)
    files = config(tmp_path, pip=pip, uv=uv) | {"PATH": str(tmp_path)}

    sources = load_index_config(files | environ)

    assert sources.keyring == (str(keyring) if asked else None)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read, in their order; there is none of them."""
    paths: list[str] = []

    def absent(path: Path, **_: object) -> str:
        paths.append(str(path))
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", absent)
    return paths


@pytest.mark.skipif(sys.platform == "win32", reason="the folders of Unix")
def test_the_files_are_those_that_pip_names(looked_at: list[str]) -> None:
    environ = {"HOME": "/home/somebody", "UV_NO_CONFIG": "1", "XDG_CONFIG_HOME": "/elsewhere"}
    command = [sys.executable, "-m", "pip", "config", "debug"]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    of_pip = re.findall(r"^ +(/\S+), exists:", said.stdout, re.MULTILINE)

    load_index_config(environ, prefix=Path(sys.prefix))

    assert sorted(looked_at) == sorted(of_pip)
    assert looked_at[-1] == f"{sys.prefix}/pip.conf"  # what is read last counts
    assert looked_at[:2] == ["/etc/xdg/pip/pip.conf", "/etc/pip.conf"]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The texts of files by their paths; there are no others."""
    texts: dict[str, str] = {}

    def read(path: Path, **_: object) -> str:
        if str(path) not in texts:
            raise FileNotFoundError(path)
        return texts[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    return texts


FLAG, UV_FILE, PIP_FILE = "a flag", "uv's file", "pip's file"
OWN_UV = {"UV_DEFAULT_INDEX": "https://x/"}
ORDERS: list[tuple[str, dict[str, str], list[tuple[str, str]]]] = [
    (
        "index_url",
        {},
        [
            (FLAG, "index-url"),
            ("UV_DEFAULT_INDEX", ""),
            ("UV_INDEX_URL", ""),
            ("PIP_INDEX_URL", ""),
            (UV_FILE, "index-url"),
            (PIP_FILE, "index-url"),
        ],
    ),
    (
        "cert",
        {},
        [
            ("PIP_CERT", ""),
            (PIP_FILE, "cert"),
            ("REQUESTS_CA_BUNDLE", ""),
            ("CURL_CA_BUNDLE", ""),
            ("SSL_CERT_FILE", ""),
        ],
    ),
    ("cert", OWN_UV, [("SSL_CERT_FILE", ""), ("PIP_CERT", ""), (PIP_FILE, "cert")]),
    (
        "client_cert",
        {},
        [("PIP_CLIENT_CERT", ""), (PIP_FILE, "client-cert"), ("SSL_CLIENT_CERT", "")],
    ),
    ("proxy", {}, [("PIP_PROXY", ""), (PIP_FILE, "proxy")]),
    ("exclude_newer", {}, [("UV_EXCLUDE_NEWER", ""), (UV_FILE, "exclude-newer")]),
]


@pytest.mark.skipif(sys.platform == "win32", reason="the folders of Unix")
@pytest.mark.parametrize(
    ("name", "more", "places"),
    [
        pytest.param(name, more, places[at:], id=f"{name}-{places[at][0]}{'-uv' if more else ''}")
        for name, more, places in ORDERS
        for at in range(len(places))
    ],
)
def test_each_setting_is_taken_from_the_first_place_that_has_it(
    written: dict[str, str], name: str, more: dict[str, str], places: list[tuple[str, str]]
) -> None:
    environ = {"HOME": "/h"} | more
    flag: str | None = None
    for at, (place, key) in enumerate(places):
        value = f"https://place{at}.example/"
        if place == FLAG:
            flag = value
        elif place == UV_FILE:
            written["/h/.config/uv/uv.toml"] = f'{key} = "{value}"'
        elif place == PIP_FILE:
            written["/h/.config/pip/pip.conf"] = f"[global]\n{key} = {value}\n"
        else:
            environ[place] = value

    assert getattr(load_index_config(environ, index_url=flag), name) == "https://place0.example/"


def test_what_is_no_address_is_said_to_be_none() -> None:
    address = "https://host:port/simple"
    readings: tuple[Callable[[], object], ...] = (
        lambda: load_index_config({"PIP_INDEX_URL": address}),
        lambda: load_index_config({}, index_url=address),
        lambda: load_index_config({}, torch_index=address),
        lambda: load_index_config({}, tensorrt_index=address),
    )
    for read in readings:
        with pytest.raises(Error) as raised:
            read()
        assert raised.value.code == "index-unreachable"
        assert raised.value.values["url"] == "an address that cannot be read"
        assert raised.value.values["reason"] == cause("address-unreadable")


NO_FILES = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


@pytest.mark.parametrize(
    ("environ", "pip", "expected"),
    [
        ({"PIP_DEFAULT_TIMEOUT": "180", "PIP_RETRIES": "9"}, "", ("180", "9", ())),
        ({}, "[global]\ntimeout = 60.5\nretries = 2\nconstraint = a b\n", ("60", "2", ("a", "b"))),
        (
            {"UV_HTTP_TIMEOUT": "5", "PIP_CONSTRAINT": "c.txt"},
            "[global]\ntimeout = 60\nconstraint = a\n",
            ("5", None, ("c.txt",)),
        ),
        ({"PIP_TIMEOUT": "soon", "UV_HTTP_RETRIES": "-1"}, "", (None, None, ())),
    ],
)
def test_patience_and_constraints_are_those_of_the_user(
    tmp_path: Path,
    environ: dict[str, str],
    pip: str,
    expected: tuple[str | None, str | None, tuple[str, ...]],
) -> None:
    found = load_index_config(config(tmp_path, pip=pip) | environ)

    assert (found.timeout, found.retries, found.constraints) == expected


def test_what_the_flags_say_is_kept(tmp_path: Path) -> None:
    found = load_index_config(
        NO_FILES,
        index_url="https://me:secret@a.example/simple/",
        torch_index="https://t.example/whl/",
        tensorrt_index="https://n.example/",
        find_links=tmp_path,
        offline=True,
    )

    assert found == IndexConfig(
        index_url="https://me:secret@a.example/simple/",
        origin="flag",
        torch_index="https://t.example/whl/",
        tensorrt_index="https://n.example/",
        find_links=tmp_path,
        offline=True,
    )
    assert found.flagged == (
        *("https://a.example/simple", "https://t.example/whl", "https://n.example"),
    )
    assert load_index_config(NO_FILES) == IndexConfig()


@pytest.mark.parametrize(
    ("url", "secure"),
    [
        ("https://a.example/simple", True),
        ("file:///srv/index", True),
        ("http://localhost:8080/simple", True),
        ("http://[::1]:8080/simple", True),
        ("http://trusted:80/simple", True),
        ("http://trusted/simple", False),
        ("http://a.example/simple", False),
        ("http://10.127.0.1/simple", False),
        ("ftp://localhost/simple", False),
    ],
)
def test_who_could_read_or_change_what_comes(url: str, *, secure: bool) -> None:
    sources = IndexConfig(trusted_hosts=frozenset({"trusted:80"}))

    if secure:
        require_secure(url, sources)
    else:
        with pytest.raises(Error, match="index-insecure"):
            require_secure(url, sources)


def test_an_address_that_is_not_secure_is_named_with_its_host_and_no_password() -> None:
    with pytest.raises(Error) as caught:
        require_secure("http://me:secret@a.example:80/simple", IndexConfig())
    assert caught.value.values == {"url": "http://a.example:80/simple", "host": "a.example"}


def test_an_address_without_a_host_is_none() -> None:
    """Its hint was to trust `?`."""
    for url in ("pypi.example.org/simple", "ftp:///simple"):
        with pytest.raises(Error, match="index-unreachable") as caught:
            require_secure(url, IndexConfig())
        assert caught.value.values == {"url": url, "reason": cause("address-unreadable")}


def test_a_host_is_trusted_by_its_name_or_with_its_port() -> None:
    sources = IndexConfig(trusted_hosts=frozenset({"a", "b:1"}))

    assert is_trusted("https://me:x@a:99/y", sources)
    assert is_trusted("https://me:x@b:1/y", sources)
    assert not is_trusted("https://b/y", sources)
    assert not is_trusted("https://b:2/y", sources)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ('index-url = "https://a/"\n[pip]\nindex-url = "https://b/"\n', "https://a/"),
        ('[[index]]\nurl = "https://a/"\ndefault = true\n[pip]\nindex-url = "https://b/"', None),
        ('[[index]]\nurl = "https://c/"\ndefault = "yes"\n[pip]\nindex-url = "https://a/"', None),
        ('[[index]]\nurl = "https://c/"\n[pip]\nindex-url = "https://a/"', None),
        ('index-url = 3\n[pip]\nindex-url = "https://a/"', None),
        (
            'index = [{url = "https://a/", default = true}, {url = "https://b/", default = true}]',
            None,
        ),
    ],
)
def test_the_first_place_in_a_uv_toml_counts(tmp_path: Path, text: str, index: str | None) -> None:
    found = load_index_config(config(tmp_path, uv=text))

    assert (found.index_url, found.origin) == (index or "https://a/", "uv")


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("[global]\nindex-url = https://a/\n[install]\nindex-url = https://b/\n", "https://b/"),
        ("[install]\nindex-url = https://b/\n[global]\nindex-url = https://a/\n", "https://b/"),
        ("[global]\nindex_url = https://a/\n", "https://a/"),
        ("[download]\nindex-url = https://b/\n[global]\nindex-url = https://a/\n", "https://a/"),
        ("[global]\nindex-url = https://%(odd)s/\n", "https://%(odd)s/"),
    ],
)
def test_the_sections_of_a_pip_conf_that_count(tmp_path: Path, text: str, index: str) -> None:
    found = load_index_config(config(tmp_path, pip=text))

    assert (found.index_url, found.origin) == (index, "pip")


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of Unix")
def test_a_configuration_that_is_a_pipe_or_has_no_end_counts_for_nothing(tmp_path: Path) -> None:
    pip, uv = (tmp_path / ".config" / name for name in ("pip/pip.conf", "uv/uv.toml"))
    for path in (pip, uv):
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
    assert load_index_config({"HOME": str(tmp_path)}).origin == "default"
    uv.unlink()
    uv.write_text(f"a = {'[' * 100_000}")
    assert load_index_config({"HOME": str(tmp_path)}).origin == "default"
