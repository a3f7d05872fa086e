"""Each setting of an index's configuration: where it may stand, and which place goes first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.index.config import IndexConfig, is_trusted, load_index_config, require_secure

NO_FILES = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def with_files(home: Path, pip: str = "", uv: str = "") -> dict[str, str]:
    """Write a user's files; return the environment in which they count."""
    for name, text in (("pip/pip.conf", pip), ("uv/uv.toml", uv)):
        path = home / ".config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"HOME": str(home)}


def test_what_the_flags_say_is_kept(tmp_path: Path) -> None:
    found = load_index_config(
        NO_FILES,
        index_url="https://me:secret@a.example/simple/",
        torch_index="https://t.example/whl/",
        tensorrt_index="https://n.example/",
        find_links=tmp_path,
        kept=tmp_path / "kept",
        offline=True,
    )

    assert found == IndexConfig(
        index_url="https://me:secret@a.example/simple/",
        origin="flag",
        torch_index="https://t.example/whl/",
        tensorrt_index="https://n.example/",
        find_links=tmp_path,
        kept=tmp_path / "kept",
        offline=True,
    )
    assert found.flagged == (
        *("https://a.example/simple", "https://t.example/whl", "https://n.example"),
    )
    assert load_index_config(NO_FILES) == IndexConfig()


def test_a_wheel_that_is_near_is_a_file_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a.whl").touch()
    (tmp_path / "folder.whl").mkdir()
    sources = IndexConfig(find_links=tmp_path)

    assert sources.near("a.whl") == tmp_path / "a.whl"
    assert (sources.near("b.whl"), sources.near("folder.whl")) == (None, None)
    assert IndexConfig().near("a.whl") is None


def test_uv_s_own_certificates_go_first_where_uv_names_the_index() -> None:
    environ = NO_FILES | {"PIP_CERT": "/pip.pem", "SSL_CERT_FILE": "/uv.pem"}

    assert load_index_config(environ | {"UV_INDEX_URL": "https://a/"}).cert == "/uv.pem"
    assert load_index_config(environ | {"PIP_INDEX_URL": "https://a/"}).cert == "/pip.pem"


def test_hosts_that_are_trusted_add_up(tmp_path: Path) -> None:
    files = with_files(tmp_path, "[global]\ntrusted-host =\n    a\n    b:8443\n")
    environ = {"PIP_TRUSTED_HOST": "c d", "UV_INSECURE_HOST": "e"}

    assert load_index_config(files | environ).trusted_hosts == {"a", "b:8443", "c", "d", "e"}
    assert load_index_config(NO_FILES).trusted_hosts == frozenset()


@pytest.mark.parametrize(
    ("url", "secure"),
    [
        ("https://a.example/simple", True),
        ("file:///srv/index", True),
        ("http://localhost:8080/simple", True),
        ("http://[::1]:8080/simple", True),
        ("http://127.8.9.1/simple", True),
        ("http://trusted:80/simple", True),
        ("http://me:secret@trusted:80/simple", True),
        ("http://trusted/simple", False),
        ("http://a.example/simple", False),
        ("http://10.127.0.1/simple", False),
        ("ftp://localhost/simple", False),
        ("ftp://trusted:80/simple", False),
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

    with pytest.raises(Error) as caught:
        require_secure("simple", IndexConfig())
    assert caught.value.values == {"url": "simple", "host": "?"}


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
    found = load_index_config(with_files(tmp_path, uv=text))

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
    found = load_index_config(with_files(tmp_path, pip=text))

    assert (found.index_url, found.origin) == (index, "pip")
