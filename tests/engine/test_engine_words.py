"""What pip and uv are asked in so many words, and which variables of the user's reach them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.engine.common import Prefix, StagedFile
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.engine.uv import Uv
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Installed, Target
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.process import Finished

DIGEST = "ab" * 32
TARGET = Target(
    executable="/venv/bin/python",
    version="3.11.7",
    implementation="cpython",
    free_threaded=False,
    platform="linux-x86_64",
    bits=64,
    prefix="/venv",
    base_prefix="/usr",
    purelib="/venv/lib/python3.11/site-packages",
    platlib="/venv/lib/python3.11/site-packages",
    scripts="/venv/bin",
    kind="venv",
    externally_managed=False,
    pip_version="23.2.1",
    pth=True,
    libc="glibc 2.35",
    build=None,
    installed=(Installed(name="numpy", version="2.1.0", metadata_path="/x"),),
    broken=(),
)
WHEEL = Wheel(name="a", version="1", index_url="pypi", file="a-1.whl", size=9, sha256=DIGEST)
ANSWERS = {"pip": '{"install": []}', "uv": 'lock-version = "1.0"\n'}


class Asked:
    """A runner that remembers what it was asked, and answers as an engine does."""

    def __init__(self, *, fails: bool = False) -> None:
        self.argv: Sequence[str] = ()
        self.env: Mapping[str, str] = {}
        self.more: dict[str, Any] = {}
        self._fails = fails

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Finished:
        self.argv, self.env, self.more = argv, env or {}, {**more, "timeout": timeout}
        if "--report" in argv:
            Path(self.value("--report")).write_text(ANSWERS["pip"])
        return Finished(
            argv=tuple(argv),
            returncode=int(self._fails),
            stdout=ANSWERS["uv"],
            stderr="",
            timed_out=False,
        )

    def value(self, flag: str) -> str:
        """Return the word after a flag."""
        return self.argv[self.argv.index(flag) + 1]


def uv(asked: Asked, **environ: str) -> Uv:
    return Uv(program="/bin/uv", version="0.9", environ={"HOME": "/", **environ}, runner=asked)


def pip(asked: Asked, **environ: str) -> Pip:
    return Pip(command=("py", "-m", "pip"), version="24", environ=environ, runner=asked)


def into(folder: Path) -> Prefix:
    return Prefix(folder / "tree", folder / "work", folder / "engine.lock")


def test_pip_chooses_without_installing_or_building_anything(tmp_path: Path) -> None:
    asked = Asked()
    pip(asked).resolve(["b>=1"], TARGET, IndexConfig(), tmp_path)

    assert list(asked.argv[:3]) == ["py", "-m", "pip"]
    assert {"install", "--dry-run", "--quiet", "--no-input"} <= set(asked.argv)
    assert {"--disable-pip-version-check", "--ignore-installed"} <= set(asked.argv)
    assert asked.value("--only-binary") == ":all:"
    assert Path(asked.value("--constraint")).read_text() == "numpy==2.1.0\n"
    assert Path(asked.value("--requirement")).read_text() == "b>=1\n"
    assert asked.value("--find-links") == (tmp_path / "installed").as_uri()
    assert not {"--no-index", "--break-system-packages"} & set(asked.argv)
    one = replace(pip(asked), break_system_packages=True)
    one.resolve(["b"], TARGET, IndexConfig(offline=True, find_links=tmp_path), tmp_path)
    assert {"--no-index", "--break-system-packages", tmp_path.as_uri()} <= set(asked.argv)


def test_pip_is_told_what_the_user_configured(tmp_path: Path) -> None:
    asked = Asked()
    sources = IndexConfig(
        index_url="https://a.example/simple",
        cert="/c.pem",
        client_cert="/k.pem",
        proxy="http://p/",
        keyring="/bin/keyring",
        trusted_hosts=frozenset({"b", "a"}),
    )
    pip(asked, PIP_PROXY="http://own/").resolve(["b"], TARGET, sources, tmp_path)

    told = {name: value for name, value in asked.env.items() if name.startswith("PIP_")}
    assert told == {
        "PIP_INDEX_URL": "https://a.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.example/simple",
        "PIP_FIND_LINKS": (tmp_path / "installed").as_uri(),
        "PIP_CERT": "/c.pem",
        "PIP_CLIENT_CERT": "/k.pem",
        "PIP_PROXY": "http://own/",
        "PIP_TRUSTED_HOST": "a b",
        "PIP_KEYRING_PROVIDER": "subprocess",
    }
    pip(asked).resolve(["b"], TARGET, IndexConfig(), tmp_path)
    assert not {"PIP_CERT", "PIP_TRUSTED_HOST", "PIP_KEYRING_PROVIDER"} & set(asked.env)


def test_pip_installs_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    asked = Asked()
    pip(asked, PIP_INDEX_URL="https://x/").install(
        [StagedFile(wheel=WHEEL, path=tmp_path / "wheels" / "a-1.whl")], TARGET, into(tmp_path)
    )

    assert {"install", "--no-input", "--no-cache-dir", "--no-compile", "--quiet"} <= set(asked.argv)
    assert {"--no-warn-script-location", "--disable-pip-version-check"} <= set(asked.argv)
    assert {"--ignore-installed", "--no-index", "--no-deps", "--require-hashes"} <= set(asked.argv)
    assert asked.value("--only-binary") == ":all:"
    assert asked.value("--prefix") == str(tmp_path / "tree")
    assert asked.value("--find-links") == (tmp_path / "wheels").as_uri()
    assert Path(asked.value("-r")).read_text() == f"a==1 --hash=sha256:{DIGEST}\n"
    assert asked.env["PIP_CONFIG_FILE"] == os.devnull
    assert (asked.env["PIP_DISABLE_PIP_VERSION_CHECK"], asked.env["PIP_NO_INPUT"]) == ("1", "1")
    assert "PIP_INDEX_URL" not in asked.env


def test_uv_chooses_without_installing_or_building_anything(tmp_path: Path) -> None:
    asked = Asked()
    uv(asked, VIRTUAL_ENV="/v").resolve(["b>=1"], TARGET, IndexConfig(), tmp_path)

    assert list(asked.argv[:3]) == ["/bin/uv", "pip", "compile"]
    assert {"--quiet", "--no-progress"} <= set(asked.argv)
    assert (asked.value("--format"), asked.value("--only-binary")) == ("pylock.toml", ":all:")
    assert asked.value("--python") == TARGET.executable
    assert Path(asked.value("--constraints")).read_text() == "numpy==2.1.0\n"
    assert Path(asked.argv[-1]).read_text() == "b>=1\n"
    assert asked.value("--find-links") == (tmp_path / "installed").as_uri()
    assert not {"--offline", "--no-index"} & set(asked.argv)
    assert "VIRTUAL_ENV" not in asked.env
    sources = IndexConfig(offline=True, find_links=tmp_path / "near")
    uv(asked).resolve(["b"], TARGET, sources, tmp_path)
    assert {"--offline", "--no-index", (tmp_path / "near").as_uri()} <= set(asked.argv)


CONFIGURED = IndexConfig(
    index_url="https://a.example/simple",
    origin="pip",
    cert="/c.pem",
    client_cert="/k.pem",
    proxy="http://p/",
    keyring="/bin/keyring",
    trusted_hosts=frozenset({"b", "a"}),
    exclude_newer="2026-01-01",
)
AS_UV_NAMES_IT = {
    "UV_DEFAULT_INDEX": "https://a.example/simple",
    "SSL_CERT_FILE": "/c.pem",
    "SSL_CLIENT_CERT": "/k.pem",
    "ALL_PROXY": "http://p/",
    "UV_KEYRING_PROVIDER": "subprocess",
    "UV_INSECURE_HOST": "a b",
}


def test_uv_is_told_what_the_user_configured(tmp_path: Path) -> None:
    asked = Asked()
    uv(asked, UV_INDEX="https://more/").resolve(["b"], TARGET, CONFIGURED, tmp_path)

    expected = {**AS_UV_NAMES_IT, "UV_EXCLUDE_NEWER": "2026-01-01", "UV_NO_CONFIG": "1"}
    assert {name: asked.env.get(name) for name in expected} == expected
    assert "UV_INDEX" not in asked.env
    uv(asked, ALL_PROXY="http://own/").resolve(["b"], TARGET, CONFIGURED, tmp_path)
    assert asked.env["ALL_PROXY"] == "http://own/"


def test_uv_installs_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    asked = Asked()
    uv(asked).install(
        [StagedFile(wheel=WHEEL, path=tmp_path / "wheels" / "a-1.whl")], TARGET, into(tmp_path)
    )

    assert {"/bin/uv", "pip", "install", "--no-progress", "--no-config"} <= set(asked.argv)
    assert {"--offline", "--no-build", "--no-index", "--no-deps"} <= set(asked.argv)
    assert {"--require-hashes", "--quiet"} <= set(asked.argv)
    assert asked.value("--python") == TARGET.executable
    assert asked.value("--cache-dir") == str(tmp_path / "work" / "cache")
    assert asked.value("--link-mode") == "hardlink"
    assert asked.value("--prefix") == str(tmp_path / "tree")


def fetch(
    asked: Asked, folder: Path, sources: IndexConfig = CONFIGURED, index: str = "pypi", **env: str
) -> tuple[bool, list[str]]:
    """Let uv bring a wheel; return whether it did, and the steps that were told."""
    told: list[str] = []

    def progress(step: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        del done, total, values
        told.append(step)

    wheel = WHEEL._replace(index_url=index)
    place = {"UV_CACHE_DIR": str(folder), **env}
    done = uv(asked, **place).fetch([wheel], TARGET, sources, into(folder), progress)
    return done, told


def test_uv_brings_wheels_through_the_user_s_cache(tmp_path: Path) -> None:
    asked = Asked()
    names = {
        *("UV_LINK_MODE", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_CONCURRENT_DOWNLOADS"),
        *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    }
    user: Any = {**dict.fromkeys(names, "7"), "UV_INDEX_STRATEGY": "first-index"}
    done, told = fetch(asked, tmp_path, **user)

    assert (done, told[0]) == (True, "install")
    assert {"/bin/uv", "pip", "install", "--no-build", "--no-deps"} <= set(asked.argv)
    assert {"--require-hashes"} <= set(asked.argv)
    assert asked.value("--index-strategy") == "unsafe-best-match"
    assert asked.value("--python") == TARGET.executable
    assert not {"--offline", "--cache-dir"} & set(asked.argv)
    expected = {**AS_UV_NAMES_IT, **dict.fromkeys(names, "7"), "UV_CACHE_DIR": str(tmp_path)}
    assert {name: asked.env.get(name) for name in expected} == expected
    assert (asked.env["TERM"], asked.env["NO_COLOR"]) == ("xterm", "1")
    gone = {"UV_EXCLUDE_NEWER", "UV_INDEX", "UV_INDEX_STRATEGY", "UV_NO_CACHE"}
    assert not gone & set(asked.env)


def test_uv_is_told_the_other_index_that_a_wheel_comes_from(tmp_path: Path) -> None:
    asked = Asked()
    fetch(asked, tmp_path, index="https://t.example/whl/cu128")
    assert asked.env["UV_INDEX"] == "https://t.example/whl/cu128"

    with pytest.raises(Error, match="index-insecure"):
        fetch(asked, tmp_path, index="http://t.example/whl/cu128")


def test_a_cache_that_is_linked_to_symbolically_is_copied_from(tmp_path: Path) -> None:
    """Who cleans the cache would break what is here."""
    asked = Asked()
    fetch(asked, tmp_path, UV_LINK_MODE="symlink")
    assert asked.env["UV_LINK_MODE"] == "copy"


def test_without_a_network_uv_brings_what_its_cache_has(tmp_path: Path) -> None:
    asked = Asked()
    done, told = fetch(asked, tmp_path, replace(CONFIGURED, offline=True))

    assert (done, told) == (True, [])
    assert "--offline" in asked.argv
    assert "drawn" not in asked.more


def test_where_uv_fails_somebody_else_downloads(tmp_path: Path) -> None:
    assert fetch(Asked(fails=True), tmp_path)[0] is False


def test_without_a_place_for_a_cache_uv_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    asked = Asked()
    fetch(asked, tmp_path, UV_CACHE_DIR=str(tmp_path / "file"))

    assert asked.env["UV_NO_CACHE"] == "1"


def test_an_engine_holds_its_lock_and_has_its_own_temporary_folder(tmp_path: Path) -> None:
    for make in (uv, pip):
        asked = Asked()
        make(asked).install(
            [StagedFile(wheel=WHEEL, path=tmp_path / "a-1.whl")], TARGET, into(tmp_path)
        )
        assert str(tmp_path / "engine.lock") in asked.argv
        assert asked.env["TMPDIR"] == str(tmp_path / "work" / "tmp")
        assert asked.more["lifeline"] is True
