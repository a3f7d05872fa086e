"""Which engine is chosen, what it is asked, and how its answers are read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from environments import site_packages
from example_target import TARGET

from ortgpu_fix.engine.choose import Engine, choose_engine
from ortgpu_fix.engine.common import Prefix, StagedFile, constraints
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.engine.uv import Uv
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.process import Finished, own_environment, run
from support.standin_wheels import find_uv

DIGEST = "ab" * 32


class Recorded:
    """A runner that answers as told and remembers what it was asked."""

    def __init__(
        self,
        answer: str | OSError | Callable[[Sequence[str]], str] = "",
        returncode: int = 0,
        *,
        stderr: str | None = None,
    ) -> None:
        self.answer, self.returncode, self.stderr = answer, returncode, stderr
        self.calls: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        text_in: str | None = None,
        lifeline: bool = False,
    ) -> Finished:
        del text_in, lifeline
        self.calls.append((argv, env or {}))
        if isinstance(self.answer, OSError):
            raise self.answer
        said = self.answer if isinstance(self.answer, str) else self.answer(argv)
        return Finished(
            argv=tuple(argv),
            returncode=self.returncode,
            stdout=said,
            stderr=self.stderr if self.stderr is not None else said if self.returncode else "",
            timed_out=timeout == 0,
        )


def installed(name: str, version: str, *requires: str) -> Installed:
    return Installed(name=name, version=version, metadata_path="/x", requires=requires)


@pytest.fixture
def path_with_uv(tmp_path: Path) -> str:
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program.parent)


@pytest.fixture(autouse=True)
def no_uv_beside_us(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "nowhere"))


def test_uv_first(path_with_uv: str) -> None:
    found = choose_engine(TARGET, {"PATH": path_with_uv}, Recorded("uv 0.9.5 (abc 2025-10-21)"))

    assert isinstance(found, Uv)
    assert found.name == "uv 0.9.5"
    assert not found.break_system_packages  # only who asks for it gets it


@pytest.mark.parametrize(
    "runner",
    [
        Recorded("uv 0.4.30"),
        Recorded("rubbish"),
        Recorded("uv x"),
        Recorded("", 1),
        Recorded(OSError(8, "Exec format error")),
    ],
)
def test_a_uv_that_does_not_answer_or_is_old_is_passed_over(
    path_with_uv: str, runner: Recorded
) -> None:
    found = choose_engine(TARGET, {"PATH": path_with_uv}, runner)

    assert isinstance(found, Pip)
    assert found.command == ("/venv/bin/python", "-I", "-B", "-m", "pip")
    assert found.name == "pip 23.2.1"


def test_pip_where_uv_cannot_read_an_environment_that_prints_when_it_starts(venv: Path) -> None:
    target = TARGET._replace(executable=str(venv))
    path = {"PATH": str(Path(find_uv()).parent)}
    subprocess.run([find_uv(), "python", "find", str(venv)], check=True)  # now its cache knows it
    assert isinstance(choose_engine(target, path, run), Uv)

    (site_packages(venv) / "welcome.pth").write_text("import sys; sys.stdout.write('welcome\\n')\n")

    assert isinstance(choose_engine(target, path, run), Pip)


@pytest.mark.parametrize("version", [None, "21.3", "odd"])
def test_our_own_pip_where_the_target_s_is_missing_or_old(version: str | None) -> None:
    found = choose_engine(TARGET._replace(pip_version=version), {}, Recorded())

    assert isinstance(found, Pip)
    assert found.command == (
        sys.executable,
        "-I",
        "-B",
        "-m",
        "pip",
        "--python",
        "/venv/bin/python",
    )


def test_no_engine_for_an_old_python_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    old = TARGET._replace(version="3.8.18", pip_version=None)
    with pytest.raises(Error, match="no-engine"):
        choose_engine(old, {}, Recorded())

    def missing(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "metadata", missing)
    with pytest.raises(Error, match="no-engine"):
        choose_engine(TARGET._replace(pip_version=None), {}, Recorded())


def test_what_is_installed_is_a_constraint_unless_it_has_to_move() -> None:
    there = (
        installed("NumPy", "2.1.0"),
        installed("protobuf", "3.20.0"),
        installed("odd", "not a version"),
        installed("torch", "2.10.0+cu128"),
        installed("numpy", "1.0"),
    )
    target = TARGET._replace(installed=there)

    assert constraints(["protobuf>=4.25", "numpy<3"], target) == (
        "numpy==2.1.0",
        "torch==2.10.0+cu128",
    )
    with pytest.raises(Error, match="requirements-impossible"):
        constraints(["!"], target)


def pylock(*packages: str) -> str:
    return 'lock-version = "1.0"\n' + "\n".join(packages)


def package(name: str, version: str, *files: str) -> str:
    rows = ",".join(
        f'{{url = "https://x/{file}", size = 7, hashes = {{sha256 = "{DIGEST}"}}}}'
        for file in files
    )
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{rows}]\n'


def uv(runner: Recorded, **environ: str) -> Uv:
    return Uv(program="/bin/uv", version="0.9", environ=environ, runner=runner)


def pip(runner: Recorded, **environ: str) -> Pip:
    return Pip(command=("python", "-m", "pip"), version="24", environ=environ, runner=runner)


def resolve(one: Engine, folder: Path, **changes: Any) -> list[tuple[str, str]]:
    target = TARGET._replace(**changes.pop("target", {}))
    found = one.resolve(["protobuf"], target, IndexConfig(**changes), folder)
    return [(pinned.wheel.file, pinned.url) for pinned in found]


def test_of_uv_s_answer_the_wheel_that_fits_best(tmp_path: Path) -> None:
    answer = pylock(
        package(
            "protobuf",
            "6.33.0",
            "protobuf-6.33.0-py3-none-any.whl",
            "protobuf-6.33.0-cp39-abi3-manylinux2014_x86_64.whl",
            "protobuf-6.33.0-cp310-abi3-win_amd64.whl",
        ),
        package("packaging", "25.0", "packaging-25.0-py3-none-any.whl"),
    )
    runner = Recorded(answer)

    found = resolve(uv(runner), tmp_path, target={"installed": (installed("packaging", "25.0"),)})

    name = "protobuf-6.33.0-cp39-abi3-manylinux2014_x86_64.whl"
    assert found == [(name, f"https://x/{name}")]
    free = resolve(uv(runner), tmp_path, target={"free_threaded": True, "version": "3.13.0"})
    assert free[0][0] == "protobuf-6.33.0-py3-none-any.whl"
    assert resolve(uv(runner), tmp_path, target={"implementation": "pypy"})[0] == free[0]
    assert uv(runner).resolve([], TARGET, IndexConfig(), tmp_path) == ()
    assert pip(runner).resolve([], TARGET, IndexConfig(), tmp_path) == ()


def test_a_user_without_a_home_has_no_cache_of_uv(tmp_path: Path) -> None:
    """As a service's: uv itself ends where it cannot make its cache."""
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "home")

    def environment(**environ: str) -> dict[str, str]:
        return uv(Recorded(""), **environ)._environment(IndexConfig())

    assert environment(HOME=nowhere)["UV_NO_CACHE"] == "1"
    assert "UV_NO_CACHE" not in environment(HOME=str(tmp_path / "made" / "later"))
    for name in ("UV_CACHE_DIR", "XDG_CACHE_HOME"):
        assert "UV_NO_CACHE" not in environment(HOME=nowhere, **{name: str(tmp_path)})
        file = str(tmp_path / "file")  # it lies in a folder that could be written to
        assert environment(HOME=str(tmp_path), **{name: file})["UV_NO_CACHE"] == "1"


@pytest.mark.parametrize(
    "answer",
    [
        "rubbish",
        pylock("[[packages]]\nname = 'x'\n"),
        pylock(package("x", "1", "x-1-cp27-none-win32.whl")),
        pylock(package("x", "1", "x.whl")),
        pylock("[[packages]]\nname = 'x'\nversion = '1'\n"),
    ],
)
def test_an_answer_of_uv_that_cannot_be_used(tmp_path: Path, answer: str) -> None:
    with pytest.raises(Error, match="requirements-impossible"):
        resolve(uv(Recorded(answer)), tmp_path)


@pytest.mark.parametrize("told", ["{}", '{md5 = "0"}'])
def test_uv_up_to_0_11_gives_no_hash_of_a_file_of_this_machine(tmp_path: Path, told: str) -> None:
    """An index that gives none is refused; no file of another Python is read."""
    wheel = tmp_path / "a b" / "x-1-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"wheel")
    other = wheel.with_name("x-1-cp27-none-win32.whl")
    files = [f'{{url = "{path.as_uri()}", hashes = {told}}}' for path in (other, wheel)]
    answer = pylock(f'[[packages]]\nname = "x"\nversion = "1"\nwheels = [{", ".join(files)}]\n')

    [pinned] = uv(Recorded(answer)).resolve(["x"], TARGET, IndexConfig(), tmp_path)

    assert pinned.url == wheel.as_uri()
    assert pinned.wheel.sha256 == hashlib.sha256(b"wheel").hexdigest()

    wheel.unlink()
    with pytest.raises(Error, match="requirements-impossible"):
        resolve(uv(Recorded(answer)), tmp_path)
    with pytest.raises(Error, match="index-no-hash") as caught:
        resolve(uv(Recorded(answer.replace("file://", "https://me:se@cret@w.example"))), tmp_path)
    page = wheel.parent.as_uri().replace("file://", "https://w.example")
    assert caught.value.values == {"file": wheel.name, "url": page}


def reporting(**archive: Any) -> Callable[[Sequence[str]], str]:
    """Answer as pip does: into the file that it is told to report to."""

    def answer(argv: Sequence[str]) -> str:
        rows = [
            {
                "metadata": {"name": name, "version": "1.0"},
                "download_info": {"url": f"https://x/{name}-1.0-py3-none-any.whl", **archive},
            }
            for name in ("a.b", "here")
        ]
        Path(argv[argv.index("--report") + 1]).write_text(json.dumps({"install": rows}))
        return ""

    return answer


@pytest.mark.parametrize(
    "archive", [{"hash": f"sha256={DIGEST}"}, {"hash": "md5=0", "hashes": {"sha256": DIGEST}}]
)
def test_pip_s_report_old_and_new(tmp_path: Path, archive: dict[str, object]) -> None:
    runner = Recorded(reporting(archive_info=archive))
    target = TARGET._replace(installed=(installed("here", "1.0"),))

    (found,) = pip(runner).resolve(["a.b"], target, IndexConfig(), tmp_path)

    assert found.wheel.sha256 == DIGEST
    assert found.wheel.name == "a-b"


@pytest.mark.parametrize("archive", [{}, {"archive_info": {}}, {"archive_info": {"hash": "md5=0"}}])
def test_a_report_of_pip_that_cannot_be_used(tmp_path: Path, archive: dict[str, Any]) -> None:
    with pytest.raises(Error, match="requirements-impossible"):
        resolve(pip(Recorded(reporting(**archive))), tmp_path)


def test_the_user_s_index_reaches_the_engine_that_does_not_know_it(tmp_path: Path) -> None:
    empty, url = pylock(), "https://user:secret@mirror/simple"

    def uv_env(origin: str, **more: Any) -> Mapping[str, str]:
        runner = Recorded(empty)
        resolve(
            uv(runner, UV_INDEX_URL="https://own/"), tmp_path, origin=origin, index_url=url, **more
        )
        assert "secret" not in " ".join(runner.calls[0][0])
        return runner.calls[0][1]

    assert uv_env("pip")["UV_DEFAULT_INDEX"] == url
    assert "UV_INDEX_URL" not in uv_env("flag")
    plain = {"UV_DEFAULT_INDEX": url, "UV_NO_CONFIG": "1"}  # no other index counts
    assert uv_env("uv") == own_environment({}) | plain
    assert uv_env("uv", exclude_newer="2026-01-01")["UV_EXCLUDE_NEWER"] == "2026-01-01"
    more = uv_env("uv", cert="/c.pem", proxy="http://p", trusted_hosts=frozenset({"b", "a"}))
    assert more["SSL_CERT_FILE"] == "/c.pem"
    assert more["ALL_PROXY"] == "http://p"
    assert more["UV_INSECURE_HOST"] == "a b"

    def pip_env(origin: str) -> Mapping[str, str]:
        runner = Recorded(reporting(archive_info={"hash": f"sha256={DIGEST}"}))
        resolve(pip(runner), tmp_path, origin=origin, index_url=url)
        assert "secret" not in " ".join(runner.calls[0][0])
        return runner.calls[0][1]

    for origin in ("uv", "pip"):
        env = pip_env(origin)
        assert env["PIP_INDEX_URL"] == env["PIP_EXTRA_INDEX_URL"] == url


@pytest.mark.parametrize("kind", ["uv", "pip"])
def test_offline_no_index_is_asked(tmp_path: Path, kind: str) -> None:
    runner = Recorded(
        pylock() if kind == "uv" else reporting(archive_info={"hash": f"sha256={DIGEST}"})
    )
    one = uv(runner) if kind == "uv" else replace(pip(runner), break_system_packages=True)

    resolve(one, tmp_path, offline=True, find_links=tmp_path, index_url="https://x/", origin="flag")

    [(argv, _)] = runner.calls
    assert "--no-index" in argv
    assert tmp_path.as_uri() in argv


@pytest.mark.parametrize("make", [uv, pip])
@pytest.mark.parametrize("system", [False, True])
def test_while_it_installs_an_engine_sees_no_configuration_and_no_index(
    tmp_path: Path, make: Callable[..., Uv | Pip], *, system: bool
) -> None:
    runner = Recorded()
    environ = {"PIP_FIND_LINKS": "/opt/wheels", "UV_INDEX": "x", "PYTHONPATH": "/x", "HOME": "/h"}
    one = replace(make(runner, **environ), break_system_packages=system)
    wheel = Wheel(name="a", version="1", index_url="pypi", file="a-1.whl", size=1, sha256=DIGEST)

    one.install(
        [StagedFile(wheel=wheel, path=tmp_path / "a-1.whl")],
        TARGET,
        Prefix(tmp_path / "tree", tmp_path / "f", tmp_path / "lock"),
    )

    argv, env = runner.calls[0]
    assert {"--no-index", "--no-deps", "--require-hashes", str(tmp_path / "tree")} <= set(argv)
    assert ("--break-system-packages" in argv) == system
    assert not {"PIP_FIND_LINKS", "UV_INDEX", "PYTHONPATH"} & set(env)
    assert env["PIP_CONFIG_FILE"] == os.devnull
    assert env["TMPDIR"] == str(tmp_path / "f" / "tmp")
    assert (tmp_path / "f" / "install.txt").read_text() == f"a==1 --hash=sha256:{DIGEST}\n"


LAST = "\n".join(f"line {at}" for at in range(8, 20))


@pytest.mark.parametrize("make", [uv, pip])
def test_while_it_installs_an_engine_knows_no_network(
    tmp_path: Path, make: Callable[..., Uv | Pip]
) -> None:
    names = {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC", "SSL_CERT_FILE"),
        *("SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    }
    runner = Recorded()
    wheel = Wheel(name="a", version="1", index_url="pypi", file="a-1.whl", size=1, sha256=DIGEST)

    make(runner, **dict.fromkeys(names, "x"), LANG="C").install(
        [StagedFile(wheel=wheel, path=tmp_path / "a-1.whl")],
        TARGET,
        Prefix(tmp_path / "tree", tmp_path / "f", tmp_path / "lock"),
    )

    [(_, env)] = runner.calls
    assert not names & set(env)
    assert env["LANG"] == "C"


@pytest.mark.parametrize(
    ("runner", "said"),
    [
        (Recorded("WARNING: Location x\nline\n\nlast", 1), "line\nlast"),
        (Recorded("", 3), "exit status 3"),
        (Recorded(" \n", 3), "exit status 3"),
        (Recorded("\n".join(f"line {at}" for at in range(20)), 1), LAST),
        (Recorded("out", 1, stderr="err  \nWARNING: Location y\n"), "err"),
        (Recorded("out", 1, stderr="\n"), "out"),
        (Recorded(OSError(2, "No such file or directory")), "No such file or directory"),
    ],
)
def test_what_a_failing_engine_said_is_kept(tmp_path: Path, runner: Recorded, said: str) -> None:
    with pytest.raises(Error) as caught:
        resolve(pip(runner), tmp_path)

    assert caught.value.code == "requirements-impossible"
    assert caught.value.values["said"] == said


def test_an_engine_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortgpu_fix.engine.common.RESOLVE_SECONDS", 0)

    with pytest.raises(Error) as caught:
        resolve(pip(Recorded("x", -9)), tmp_path)

    assert caught.value.values["said"] == cause("engine-endless", seconds="0")


def test_what_came_with_another_torch_is_no_constraint(tmp_path: Path) -> None:
    there = (installed("numpy", "2.1.0"), installed("triton", "3.5.0"))
    target = TARGET._replace(installed=there)

    assert constraints(["torch"], target, frozenset({"triton"})) == ("numpy==2.1.0",)
    for one in (
        uv(Recorded(pylock())),
        pip(Recorded(reporting(archive_info={"hash": f"sha256={DIGEST}"}))),
    ):
        one.resolve(["torch"], target, IndexConfig(), tmp_path, frozenset({"triton"}))

        assert (tmp_path / "constraints.txt").read_text() == "numpy==2.1.0\n"


CONFIGURED = {
    "PIP_EXTRA_INDEX_URL": "https://more.example/simple",
    "PIP_FIND_LINKS": "/elsewhere",
    "UV_INDEX": "https://more.example/simple",
    "UV_EXTRA_INDEX_URL": "https://more.example/simple",
    "UV_FIND_LINKS": "/elsewhere",
    "UV_CONFIG_FILE": "/elsewhere/uv.toml",
    "UV_HTTP_TIMEOUT": "7",
}


def test_no_other_index_counts_than_the_chosen_one(tmp_path: Path) -> None:
    runner = Recorded(pylock())
    uv(runner, **CONFIGURED).resolve(["torch"], TARGET, IndexConfig(), tmp_path)
    [(_, env)] = runner.calls

    assert {name: value for name, value in env.items() if name.startswith("UV_")} == {
        "UV_DEFAULT_INDEX": "https://pypi.org/simple",
        "UV_NO_CONFIG": "1",
        "UV_HTTP_TIMEOUT": "7",
    }
    runner = Recorded(reporting(archive_info={"hash": f"sha256={DIGEST}"}))
    pip(runner, **CONFIGURED).resolve(["torch"], TARGET, IndexConfig(), tmp_path)
    [(_, env)] = runner.calls
    assert env["PIP_EXTRA_INDEX_URL"] == env["PIP_INDEX_URL"] == "https://pypi.org/simple"
    assert env["PIP_FIND_LINKS"] == (tmp_path / "installed").as_uri()
