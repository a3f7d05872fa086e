"""Which uv installs, and what it is told of the user's world."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.utils.process import run
from ortgpu_fix.uv.compile import may_cache
from ortgpu_fix.uv.environment import uv_environment
from ortgpu_fix.uv.program import find_uv
from support.standin_wheels import find_uv as uv_beside


@pytest.fixture
def without_the_dependency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)


def program(folder: Path, text: str) -> str:
    """Write a `uv`, and return the PATH on which it is found."""
    folder.mkdir()
    (folder / "uv").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "uv").chmod(0o755)
    return str(folder)


def test_the_uv_that_came_with_this_program_is_taken_whatever_path_has(tmp_path: Path) -> None:
    found = find_uv({"PATH": program(tmp_path / "bin", "echo uv 99.0")}, run)

    assert found.program == uv_beside()
    assert found.name == f"uv {found.version}"
    done = run([found.program, "--version"], timeout=60, env=os.environ)
    assert done.stdout.split()[1] == found.version


@pytest.mark.usefixtures("without_the_dependency")
def test_without_it_that_of_path_is(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "echo 'uv 0.13.0 (abc 2026-10-21)'")

    found = find_uv({"PATH": path}, run)

    assert (found.program, found.name) == (str(tmp_path / "bin" / "uv"), "uv 0.13.0")


@pytest.mark.usefixtures("without_the_dependency")
@pytest.mark.parametrize("text", ["echo uv 0.12.24", "echo uv x", "exit 1"])
def test_one_that_is_old_or_does_not_answer_is_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(Error, match="uv-missing"):
        find_uv({"PATH": program(tmp_path / "bin", text)}, run)


@pytest.mark.usefixtures("without_the_dependency")
def test_a_program_that_cannot_be_started_is_none(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "")
    (tmp_path / "bin" / "uv").write_bytes(b"\x7fELF")

    with pytest.raises(Error, match="uv-missing"):
        find_uv({"PATH": path}, run)
    with pytest.raises(Error, match="uv-missing"):
        find_uv({}, run)


def test_what_is_configured_for_pip_reaches_uv_by_its_variables() -> None:
    sources = IndexConfig(
        cert="/ca.pem",
        client_cert="/me.pem",
        proxy="http://proxy:3128",
        keyring="/bin/keyring",
        trusted_hosts=frozenset({"b.example", "a.example:8080"}),
        timeout="180",
        retries="9",
    )

    made = uv_environment({"UV_HTTP_TIMEOUT": "5"}, sources, {}, cache=False)

    expected = {
        "SSL_CERT_FILE": "/ca.pem",
        "SSL_CLIENT_CERT": "/me.pem",
        "ALL_PROXY": "http://proxy:3128",
        "UV_KEYRING_PROVIDER": "subprocess",
        "UV_INSECURE_HOST": "a.example:8080 b.example",
        "UV_HTTP_TIMEOUT": "180",
        "UV_HTTP_RETRIES": "9",
        "UV_NO_CACHE": "1",
    }
    assert expected.items() <= made.items()


def test_under_sudo_nobody_else_s_cache_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner could not use what root leaves there."""
    place = {"UV_CACHE_DIR": str(tmp_path)}
    assert may_cache(place | {"SUDO_UID": "1000"})  # it is our own

    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert may_cache(place)
    assert not may_cache(place | {"SUDO_UID": "1000"})


@pytest.mark.skipif(sys.platform == "win32", reason="owners of Unix")
def test_root_with_the_home_of_a_user_leaves_no_cache_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `su` or a container comes to it, without a word of sudo."""
    if os.geteuid() == 0:
        assert may_cache({"HOME": str(tmp_path)})
        os.chown(tmp_path, 4321, 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert not may_cache({"HOME": str(tmp_path)})


def test_where_uv_s_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: https://docs.astral.sh/uv/concepts/cache/#cache-directory."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".cache").touch()
    bad = str(tmp_path / "home")
    good = str(tmp_path)

    assert not may_cache({"HOME": bad})
    assert may_cache({"HOME": bad, "XDG_CACHE_HOME": good})
    assert may_cache({"HOME": bad, "XDG_CACHE_HOME": f"{bad}/.cache", "UV_CACHE_DIR": good})
    assert not may_cache({"HOME": good, "XDG_CACHE_HOME": f"{bad}/.cache"})
    assert not may_cache({"HOME": good, "UV_NO_CACHE": "1"})
    monkeypatch.chdir(bad)
    assert not may_cache({"HOME": good, "UV_CACHE_DIR": ".cache/uv"})
    monkeypatch.setenv("HOME", bad)  # the password database's, where the variable is empty
    assert not may_cache({"HOME": ""})
