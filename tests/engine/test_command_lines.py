"""What pip and uv are told: every option and variable matters to somebody, and its name says whom.

Sources: https://pip.pypa.io/en/stable/cli/pip_install/, https://docs.astral.sh/uv/reference/cli/
"""

from __future__ import annotations

import email
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import example_target
import pytest
from other_user import closed, with_others
from packaging.utils import parse_wheel_filename

from ortgpu_fix.engine.choose import Engine
from ortgpu_fix.engine.common import Prefix, StagedFile, constraints, write_installed_as_wheels
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.engine.uv import Uv, _may_cache
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.page import IndexFile
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.process import Finished, install_environment, own_environment
from synthetic import machine

DIGEST = "ab" * 32
DEEP = 5000
"""Parentheses in each other, more than Python's stack holds."""
PYTHON = "/venv/bin/python"
HOME = tempfile.gettempdir()
"""A folder that can be written to: uv can have its cache there."""
EMPTY = 'lock-version = "1.0"\n'
NUMPY = Installed(name="numpy", version="2.1.0", metadata_path="/x", requires=())
TARGET = example_target.TARGET._replace(installed=(NUMPY,))
FREE = machine(version="3.13.0+", free_threaded=True)


class Recorded:
    """A runner in the place of `process.run` that remembers how it was called."""

    def __init__(self, returncode: int = 0, stdout: str = EMPTY, stderr: str = "") -> None:
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr
        self.calls: list[tuple[list[str], dict[str, str], float, dict[str, object]]] = []

    def __call__(
        self, argv: Sequence[str], *, timeout: float, env: Mapping[str, str], **how: object
    ) -> Finished:
        self.calls.append((list(argv), dict(env), timeout, how))
        if "--report" in argv:
            Path(argv[argv.index("--report") + 1]).write_text(json.dumps({"install": []}))
        return Finished(
            argv=tuple(argv), returncode=self.returncode, stdout=self.stdout, stderr=self.stderr
        )


def uv(runner: Recorded, **environ: str) -> Uv:
    return Uv(program="/bin/uv", version="0.9", environ={"HOME": HOME, **environ}, runner=runner)


def pip(runner: Recorded, **environ: str) -> Pip:
    command = (PYTHON, "-I", "-B", "-m", "pip")
    return Pip(command=command, version="24", environ={"HOME": HOME, **environ}, runner=runner)


def has(argv: Sequence[str], *words: str) -> bool:
    """Return whether `words` follow each other in `argv`."""
    return any(tuple(argv[at : at + len(words)]) == words for at in range(len(argv)))


def resolving(
    make: Callable[..., Engine], folder: Path, *requires: str, **changes: Any
) -> list[str]:
    runner = Recorded()
    make(runner).resolve(requires or ("torch",), TARGET, IndexConfig(**changes), folder)
    [(argv, _, seconds, how)] = runner.calls
    assert (seconds, how) == (300, {})  # five minutes, and it may end without us
    return argv


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("/bin/uv", "pip", "compile"), id="which-leaves-no-lock-in-the-environment"),
        pytest.param(("--quiet",), id="what-it-says-is-parsed-or-shown-where-it-fails"),
        pytest.param(("--no-progress",), id="no-bar-in-what-is-shown-where-it-fails"),
        pytest.param(("--format", "pylock.toml"), id="which-has-sizes-and-hashes"),
        pytest.param(("--only-binary", ":all:"), id="nothing-is-built"),
        pytest.param(("--python", PYTHON), id="for-the-target-not-for-what-uv-would-find"),
        pytest.param(("--find-links", "{here}/installed"), id="what-is-installed-is-offered"),
    ],
)
def test_uv_resolves(tmp_path: Path, words: tuple[str, ...]) -> None:
    argv = resolving(uv, tmp_path)

    assert has(argv, *(word.format(here=tmp_path.as_uri(), folder=tmp_path) for word in words))
    assert argv[-1] == str(tmp_path / "requires.txt")
    assert not {"--offline", "--no-index"} & {*argv}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((PYTHON, "-I", "-B", "-m", "pip", "install"), id="with-the-pip-of-the-target"),
        pytest.param(("--dry-run",), id="nothing-is-installed-yet"),
        pytest.param(("--quiet",), id="what-it-says-is-shown-where-it-fails"),
        pytest.param(("--report", "{folder}/report.json"), id="which-has-the-hashes"),
        pytest.param(("--no-input",), id="nobody-is-there-to-answer-and-it-would-wait-forever"),
        pytest.param(("--disable-pip-version-check",), id="its-notice-is-no-reason-of-a-failure"),
        pytest.param(("--only-binary", ":all:"), id="nothing-is-built"),
        pytest.param(("--ignore-installed",), id="the-target-says-what-is-installed"),
        pytest.param(("--find-links", "{here}/installed"), id="what-is-installed-is-offered"),
        pytest.param(("--constraint", "{folder}/constraints.txt"), id="and-stays"),
        pytest.param(("--requirement", "{folder}/requires.txt"), id="what-is-asked-for"),
    ],
)
def test_pip_resolves(tmp_path: Path, words: tuple[str, ...]) -> None:
    argv = resolving(pip, tmp_path)

    assert has(argv, *(word.format(here=tmp_path.as_uri(), folder=tmp_path) for word in words))
    assert not {"--no-index", "--break-system-packages"} & {*argv}


@pytest.mark.parametrize("make", [uv, pip])
def test_what_is_asked_for_is_in_files(tmp_path: Path, make: Callable[..., Engine]) -> None:
    folder = tmp_path / "not" / "there"
    for _ in range(2):  # the second time it is there
        resolving(make, folder, "torch>=2", "numpy<3")

    limits = "-c constraints.txt\n" if make is uv else ""
    assert (folder / "requires.txt").read_text() == f"{limits}torch>=2\nnumpy<3\n"
    assert (folder / "constraints.txt").read_text() == "numpy==2.1.0\n"
    assert [path.name for path in (folder / "installed").iterdir()] == [
        "numpy-2.1.0-99999-py3-none-any.whl"
    ]


@pytest.mark.parametrize("make", [uv, pip])
def test_a_folder_of_wheels_is_searched_too_and_offline_alone(
    tmp_path: Path, make: Callable[..., Engine]
) -> None:
    wheels = tmp_path / "a,b"  # uv would split that at its comma

    found = resolving(make, tmp_path, find_links=wheels)
    assert has(found, "--find-links", wheels.as_uri())
    assert not {"--offline", "--no-index"} & {*found}
    found = resolving(make, tmp_path, find_links=wheels, offline=True)
    assert has(found, "--find-links", wheels.as_uri())
    assert "--no-index" in found
    assert ("--offline" in found) == (make is uv)  # pip has no such option


def test_a_system_s_python_only_with_leave(tmp_path: Path) -> None:
    runner = Recorded()
    one = replace(pip(runner), break_system_packages=True)
    one.resolve(["torch"], TARGET, IndexConfig(), tmp_path)

    assert "--break-system-packages" in runner.calls[0][0]


def elsewhere(make: Callable[..., Engine], facts: Any, folder: Path) -> list[str]:
    runner = Recorded()
    make(runner).resolve_for(["app"], ["numpy<3"], facts, IndexConfig(), folder)
    assert (folder / "constraints.txt").read_text() == "numpy<3\n"
    return runner.calls[0][0]


def test_uv_resolves_for_another_machine(tmp_path: Path) -> None:
    argv = elsewhere(uv, machine(libc="glibc 2.28"), tmp_path)

    assert has(argv, "--python-version", "3.11.7")
    assert has(argv, "--python", sys.executable)  # else uv would look for, and bring, a 3.11
    assert (tmp_path / "requires.txt").read_text().startswith("-c constraints.txt\n")
    assert has(argv, "--python-platform", "x86_64-manylinux_2_28")
    assert "--universal" not in argv


def test_uv_resolves_for_all_platforms_where_it_has_no_option_for_one(tmp_path: Path) -> None:
    argv = elsewhere(uv, FREE, tmp_path)

    assert "--universal" in argv
    assert "--python-platform" not in argv
    assert has(argv, "--python-version", "3.13.0")  # the `+` of a development version is none


def test_pip_resolves_for_another_machine(tmp_path: Path) -> None:
    argv = elsewhere(pip, machine(libc="glibc 2.18"), tmp_path)

    assert has(argv, "--target", str(tmp_path / "nowhere"))  # pip wants one with the options below
    assert "--ignore-installed" in argv
    assert has(argv, "--constraint", str(tmp_path / "constraints.txt"))
    assert has(argv, "--python-version", "3.11.7")
    assert has(argv, "--implementation", "cp")
    assert has(argv, "--abi", "cp311")
    assert has(
        argv,
        *("--platform", "manylinux_2_18_x86_64", "--platform", "manylinux_2_17_x86_64"),
        *("--platform", "manylinux2014_x86_64"),
    )
    free = elsewhere(pip, FREE, tmp_path)
    assert has(free, "--abi", "cp313t")
    assert has(free, "--python-version", "3.13.0")


def environment(
    make: Callable[..., Engine], folder: Path, environ: Mapping[str, str], **how: Any
) -> dict[str, str]:
    runner = Recorded()
    make(runner, **environ).resolve(["torch"], TARGET, IndexConfig(**how), folder)
    return runner.calls[0][1]


INDEX = "https://me:secret@mirror.example/simple"
CONFIGURED: dict[str, Any] = {
    "index_url": INDEX,
    "cert": "/authority.pem",
    "client_cert": "/client.pem",
    "proxy": "http://proxy:3128",
    "keyring": "/bin/keyring",
    "trusted_hosts": frozenset({"b.example", "a.example:8443"}),
}
OF_UV = {
    "UV_DEFAULT_INDEX": INDEX,
    "SSL_CERT_FILE": "/authority.pem",
    "SSL_CLIENT_CERT": "/client.pem",
    "ALL_PROXY": "http://proxy:3128",
    "UV_KEYRING_PROVIDER": "subprocess",
    "UV_INSECURE_HOST": "a.example:8443 b.example",
    "UV_EXCLUDE_NEWER": "2026-01-01",
}
OF_PIP = {
    "PIP_INDEX_URL": INDEX,
    "PIP_EXTRA_INDEX_URL": INDEX,
    "PIP_CERT": "/authority.pem",
    "PIP_CLIENT_CERT": "/client.pem",
    "PIP_PROXY": "http://proxy:3128",
    "PIP_TRUSTED_HOST": "a.example:8443 b.example",
    "PIP_KEYRING_PROVIDER": "subprocess",
}


def test_what_the_user_configured_for_pip_reaches_uv(tmp_path: Path) -> None:
    found = environment(uv, tmp_path, {}, **CONFIGURED, exclude_newer="2026-01-01")

    assert found == own_environment({"HOME": HOME}) | OF_UV | {"UV_NO_CONFIG": "1"}


def test_what_the_user_configured_for_uv_reaches_pip(tmp_path: Path) -> None:
    found = environment(pip, tmp_path, {}, **CONFIGURED)

    assert found == own_environment({"HOME": HOME}) | OF_PIP | {
        "PIP_FIND_LINKS": (tmp_path / "installed").as_uri()
    }


@pytest.mark.parametrize("name", [*OF_UV, *OF_PIP])
def test_the_user_s_own_variables_count_before_that_but_for_the_index(
    tmp_path: Path, name: str
) -> None:
    make = uv if name in OF_UV else pip
    index = {"UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"}

    found = environment(
        make, tmp_path, {name: "their own"}, **CONFIGURED, exclude_newer="2026-01-01"
    )

    assert found[name] == (INDEX if name in index else "their own")


@pytest.mark.parametrize("make", [uv, pip])
def test_what_is_not_configured_is_not_said(tmp_path: Path, make: Callable[..., Engine]) -> None:
    """An empty PIP_CERT or ALL_PROXY is not none: it fails."""
    found = environment(make, tmp_path, {})

    assert {name for name in found if name in OF_UV or name in OF_PIP} == (
        {"UV_DEFAULT_INDEX"} if make is uv else {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"}
    )


@pytest.mark.parametrize(
    "name",
    [
        *("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE"),
        pytest.param("VIRTUAL_ENV", id="VIRTUAL_ENV-is-the-shell-s-not-the-target"),
    ],
)
def test_uv_resolves_without_it(tmp_path: Path, name: str) -> None:
    assert name not in environment(uv, tmp_path, {name: "https://more.example"})


NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC"]
NAMES += ["SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT"]
NAMES += ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]


def wheel(name: str, index: str = "pypi", version: str = "1") -> Wheel:
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return Wheel(name=name, version=version, index_url=index, file=file, size=1, sha256=DIGEST)


def installing(
    make: Callable[..., Engine], folder: Path, *names: str, runner: Recorded, **environ: str
) -> Prefix:
    staged = [
        StagedFile(wheel=wheel(name), path=folder / "stage" / wheel(name).file) for name in names
    ]
    into = Prefix(folder / "tree", folder / "work", folder / "lock")
    make(runner, **environ).install(staged, TARGET, into)
    return into


@pytest.mark.parametrize("make", [uv, pip])
@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_who_installs_gets_no_settings_of_the_network(
    tmp_path: Path, make: Callable[..., Engine], case: Callable[[str], str]
) -> None:
    runner = Recorded()
    installing(make, tmp_path, "a", runner=runner, **{case(name): "x" for name in NAMES})

    argv, env, seconds, how = runner.calls[0]
    assert str(tmp_path / "lock") in argv  # it is held while the engine runs
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path / "work" / "tmp"))
    assert env == install_environment({"HOME": HOME}) | temporary
    assert seconds == 3600  # an hour
    assert how == {"lifeline": True}  # it ends with us
    assert (tmp_path / "work" / "tmp").is_dir()


COMMON = [
    pytest.param(("--quiet",), id="what-it-says-is-shown-where-it-fails"),
    pytest.param(("--no-index",), id="the-staged-files-and-nothing-else"),
    pytest.param(("--find-links", "{stage}"), id="from-their-folder"),
    pytest.param(("--prefix", "{folder}/tree"), id="beside-the-environment"),
    pytest.param(("--no-deps",), id="everything-was-resolved"),
    pytest.param(("--require-hashes",), id="each-with-its-hash"),
    pytest.param(("-r", "{folder}/work/install.txt"), id="by-name-which-pip-freeze-shows"),
]


def assert_installs(make: Callable[..., Engine], folder: Path, words: tuple[str, ...]) -> None:
    runner = Recorded()
    installing(make, folder, "a", "b", runner=runner)
    stage = (folder / "stage").as_uri()
    [(argv, *_)] = runner.calls  # and nothing is compiled

    assert has(argv, *(word.format(stage=stage, folder=folder) for word in words))
    assert "--break-system-packages" not in argv
    rows = [f"{name}==1 --hash=sha256:{DIGEST}\n" for name in "ab"]
    assert (folder / "work" / "install.txt").read_text() == "".join(rows)


@pytest.mark.parametrize(
    "words",
    [
        *COMMON,
        pytest.param(("/bin/uv", "pip", "install"), id="uv"),
        pytest.param(("--no-progress",), id="no-bar-in-what-is-shown-where-it-fails"),
        pytest.param(("--no-config",), id="no-uv-toml-and-no-pyproject-counts"),
        pytest.param(("--python", PYTHON), id="the-scripts-name-the-target"),
        pytest.param(("--offline",), id="no-network"),
        pytest.param(("--no-build",), id="nothing-is-built"),
        pytest.param(("--cache-dir", "{folder}/work/cache"), id="uv-s-own-cache-does-not-grow"),
        pytest.param(("--link-mode", "hardlink"), id="nothing-is-copied"),
    ],
)
def test_uv_installs(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert_installs(uv, tmp_path, words)


@pytest.mark.parametrize(
    "words",
    [
        *COMMON,
        pytest.param((PYTHON, "-I", "-B", "-m", "pip", "install"), id="pip"),
        pytest.param(("--no-cache-dir",), id="pip-s-cache-is-neither-read-nor-grows"),
        pytest.param(("--no-compile",), id="bytecode-is-made-when-it-is-used"),
        pytest.param(("--no-warn-script-location",), id="the-prefix-is-on-no-path"),
        pytest.param(("--only-binary", ":all:"), id="nothing-is-built"),
        pytest.param(("--ignore-installed",), id="the-environment-s-own-is-not-removed"),
    ],
)
def test_pip_installs(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert_installs(pip, tmp_path, words)


@pytest.mark.parametrize("make", [uv, pip])
@pytest.mark.parametrize("code", [0, 1])
def test_modules_are_compiled(tmp_path: Path, make: Callable[..., Engine], code: int) -> None:
    """That it cannot be done is no failure."""
    runner = Recorded(returncode=code)
    there, into = tmp_path / "tree", Prefix(*(tmp_path / name for name in ("t", "w", "l")))

    make(runner).compile_modules(there, TARGET, into)

    [(argv, env, seconds, how)] = runner.calls
    words = ["-m", "compileall", "-q", "-d", TARGET.purelib]  # what a traceback names
    assert argv[-9:] == [PYTHON, "-I", "-S", *words, str(there)]
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path / "w" / "tmp"))
    assert env == install_environment({"HOME": HOME}) | temporary
    assert seconds == 3600  # an hour
    assert how == {"lifeline": True}  # it ends with us


@pytest.mark.parametrize("make", [uv, pip])
def test_who_cannot_install_says_why(tmp_path: Path, make: Callable[..., Engine]) -> None:
    with pytest.raises(Error) as caught:
        installing(make, tmp_path, "a", runner=Recorded(2, "", "no room\n"))

    assert (caught.value.code, caught.value.values) == ("install-failed", {"said": "no room"})


@pytest.mark.parametrize(
    ("stdout", "stderr", "said"),
    [
        ("on one", "on the other\n", "on the other"),
        ("on one\n\n  indented  \n", " \n", "on one\n  indented"),
        ("", "\n".join(map(str, range(20))), "\n".join(map(str, range(8, 20)))),
        ("", "WARNING: Location 'x' is ignored\nERROR: no", "ERROR: no"),
        ("", "", "exit status 2"),
    ],
)
def test_of_a_failure_the_last_lines_of_where_it_says_something(
    tmp_path: Path, stdout: str, stderr: str, said: str
) -> None:
    with pytest.raises(Error) as caught:
        pip(Recorded(2, stdout, stderr)).resolve(["a", "b"], TARGET, IndexConfig(), tmp_path)

    assert caught.value.code == "requirements-impossible"
    assert caught.value.values == {"said": said, "requires": "a, b"}


@pytest.mark.parametrize(
    ("said", "offline", "status", "code"),
    [
        ("none", False, 401, "index-refused"),
        ("none", False, None, "index-refused"),
        ("none", False, 404, "requirements-impossible"),
        ("none", True, 401, "requirements-impossible"),
        ("1.0", False, 401, "requirements-impossible"),
    ],
)
def test_pip_does_not_say_why_an_index_gives_nothing(  # noqa: PLR0917
    said: str,
    offline: bool,  # noqa: FBT001
    status: int | None,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its last line is that no distribution matches; the index is asked for that, a dependency."""
    asked = []

    class Refusing(Index):
        def project(self, base: str, name: str) -> tuple[str, tuple[IndexFile, ...]]:
            asked.append((self.sources.index_url, base, name))
            raise Error("index-refused", **({"status": status} if status else {}))

    monkeypatch.setattr("ortgpu_fix.engine.pip.Index", Refusing)
    sources = IndexConfig(index_url="https://i.example/simple", offline=offline)

    with pytest.raises(Error, match=code):
        pip(Recorded(1, "", f"the requirement a.b-c>=2 (from b) (from versions: {said})")).resolve(
            ["a", "b"], TARGET, sources, tmp_path
        )

    where = ("https://i.example/simple", "pypi", "a.b-c")
    assert asked == ([where] if said == "none" and not offline else [])


def test_where_the_index_answers_what_pip_says_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ortgpu_fix.engine.pip.Index.project", lambda *_: ("", ()))

    with pytest.raises(Error, match="requirements-impossible"):
        pip(Recorded(1, "", "the requirement a (from versions: none)")).resolve(
            ["a"], TARGET, IndexConfig(), tmp_path
        )


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError(13, "Permission denied"), "Permission denied"), (OSError("odd"), "odd")],
)
def test_of_a_program_that_does_not_start_the_reason(
    tmp_path: Path, error: OSError, said: str
) -> None:
    def runner(*_: object, **__: object) -> Finished:
        raise error

    one = Uv(program="/bin/uv", version="0.9", environ={"HOME": HOME}, runner=runner)
    with pytest.raises(Error) as caught:
        one.resolve(["a"], TARGET, IndexConfig(), tmp_path)

    assert caught.value.values == {"said": said, "requires": "a"}


def test_of_an_answer_that_cannot_be_read_whose_and_why(tmp_path: Path) -> None:
    with pytest.raises(Error) as caught:
        uv(Recorded(stdout="packages = [{}]")).resolve(["a"], TARGET, IndexConfig(), tmp_path)

    assert caught.value.values == {
        "said": cause("uv-answer-unreadable", problem="'name'"),
        "requires": "a",
    }


@pytest.mark.parametrize(
    "stdout",
    [
        "packages = ['x']",
        "packages = [{name = 'a', version = '1', wheels = ['x']}]",
        "packages = [{name = 'a', version = '1', wheels = [{url = 'https://x/x.whl'}]}]",
        "packages = 3",
        "no toml",
        f"packages = {'[' * DEEP}",
    ],
)
def test_an_answer_of_another_shape_is_none(tmp_path: Path, stdout: str) -> None:
    with pytest.raises(Error, match="requirements-impossible"):
        uv(Recorded(stdout=stdout)).resolve(["a"], TARGET, IndexConfig(), tmp_path)


@pytest.mark.parametrize("text", [None, "{}", "[]", '{"install": ["x"]}', "[" * 100_000, "no"])
def test_a_report_of_another_shape_is_none(tmp_path: Path, text: str | None) -> None:
    class Reporting(Recorded):
        def __call__(self, argv: Sequence[str], **how: Any) -> Finished:
            done = super().__call__(argv, **how)
            report = tmp_path / "report.json"
            report.unlink() if text is None else report.write_text(text)
            return done

    with pytest.raises(Error) as caught:
        pip(Reporting()).resolve(["a"], TARGET, IndexConfig(), tmp_path)
    assert caught.value.values["said"].code == "pip-report-unreadable"  # type: ignore[attr-defined]


def test_pip_is_asked_again_for_what_only_the_other_machine_requires(tmp_path: Path) -> None:
    """pip evaluates markers for the Python that runs it."""
    lines = {
        "humanfriendly": ['pyreadline3 ; sys_platform == "win32"', 'uvloop ; os_name == "posix"'],
        "uvloop": [],
        "pyreadline3": [],
    }
    asked: list[list[str]] = []

    class Reporting(Recorded):
        def __call__(self, argv: Sequence[str], **how: Any) -> Finished:
            done = super().__call__(argv, **how)
            asked.append((tmp_path / "requires.txt").read_text().split())
            rows = [
                {
                    "metadata": {"name": name, "version": "1", "requires_dist": lines[name]},
                    "download_info": {
                        "url": f"https://x/{name}-1-py3-none-any.whl",
                        "archive_info": {"hashes": {"sha256": DIGEST}},
                    },
                }
                for name in dict.fromkeys([*asked[-1], "uvloop"])
            ]
            (tmp_path / "report.json").write_text(json.dumps({"install": rows}))
            return done

    found = pip(Reporting()).resolve_for(
        ["humanfriendly"], [], machine("windows", None), IndexConfig(), tmp_path
    )

    assert asked == [["humanfriendly"], ["humanfriendly", "pyreadline3"]]
    assert [one.wheel.name for one in found] == ["humanfriendly", "pyreadline3"]


@pytest.mark.parametrize("make", [uv, pip])
def test_nothing_is_asked_for_nothing(tmp_path: Path, make: Callable[..., Engine]) -> None:
    runner = Recorded()
    engine = make(runner)

    assert engine.resolve([], TARGET, IndexConfig(), tmp_path) == ()
    assert engine.resolve_for([], ["a"], machine(), IndexConfig(), tmp_path) == ()
    assert runner.calls == []


class Fetch:
    """uv brings two wheels, one of PyPI and one of another index."""

    def __init__(
        self, folder: Path, *, code: int = 0, url: str = "https://t.example/cu128"
    ) -> None:
        self.runner, self.folder = Recorded(code), folder
        self.wheels = [wheel("a"), wheel("torch", url), wheel("b", url)]
        self.heard: list[tuple[str, dict[str, object]]] = []

    def __call__(self, environ: Mapping[str, str] | None = None, **sources: Any) -> bool:
        into = Prefix(self.folder / "tree", self.folder / "work", self.folder / "lock")

        def progress(code: str, /, **values: object) -> None:
            self.heard.append((code, values))

        one = uv(self.runner, **(environ or {}))
        return one.fetch(self.wheels, TARGET, IndexConfig(**sources), into, progress)

    @property
    def argv(self) -> list[str]:
        return self.runner.calls[0][0]

    @property
    def env(self) -> dict[str, str]:
        temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.folder / "work" / "tmp"))
        found = self.runner.calls[0][1]
        assert temporary.items() <= found.items()
        return {name: value for name, value in found.items() if name not in temporary}


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    return Fetch(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("/bin/uv", "pip", "install"), id="uv"),
        pytest.param(("--python", PYTHON), id="the-scripts-name-the-target"),
        pytest.param(("--no-build",), id="nothing-is-built"),
        pytest.param(("--index-strategy", "unsafe-best-match"), id="the-hashes-decide"),
        *COMMON[3:],
    ],
)
def test_uv_fetches(fetch: Fetch, words: tuple[str, ...]) -> None:
    assert fetch()
    assert has(fetch.argv, *(word.format(folder=fetch.folder) for word in words))
    assert not {"--offline", "--no-index", "--quiet", "--no-progress"} & {*fetch.argv}


def test_what_uv_fetches_with(fetch: Fetch) -> None:
    assert fetch(**CONFIGURED, exclude_newer="2026-01-01")

    plain = install_environment({"HOME": HOME})
    drawing = {"TERM": "xterm", "NO_COLOR": "1"}  # a bar, without colours: it is read
    configured = {name: OF_UV[name] for name in OF_UV if name != "UV_EXCLUDE_NEWER"}
    assert fetch.env == plain | configured | drawing | {"UV_INDEX": "https://t.example/cu128"}
    assert fetch.heard == [("install", {"engine": "uv 0.9", "count": 3})]
    assert callable(fetch.runner.calls[0][3]["drawn"])


def test_from_pypi_alone_no_other_index_is_named(fetch: Fetch) -> None:
    fetch.wheels = [wheel("a")]

    assert fetch()
    assert "UV_INDEX" not in fetch.env


def test_offline_uv_fetches_from_its_cache_and_draws_nothing(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path, url="http://t.example/cu128")  # of no concern, as it is not asked

    assert fetch(offline=True)
    assert "--offline" in fetch.argv
    assert not {"TERM", "NO_COLOR"} & {*fetch.env}
    assert fetch.heard == []
    assert fetch.runner.calls[0][3] == {"lifeline": True}


@pytest.mark.parametrize(
    "name",
    [
        *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_LINK_MODE"),
        *("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_CONCURRENT_DOWNLOADS"),
        *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    ],
)
def test_a_user_s_own_setting_of_the_download_counts(fetch: Fetch, name: str) -> None:
    assert fetch({name: "/their", "UV_TARGET": "/elsewhere"})

    assert fetch.env[name] == "/their"
    assert "UV_TARGET" not in fetch.env


def test_links_into_uv_s_cache_would_break_when_it_is_cleaned(fetch: Fetch) -> None:
    assert fetch({"UV_LINK_MODE": "symlink"})

    assert fetch.env["UV_LINK_MODE"] == "copy"


def test_a_cache_that_cannot_be_is_not_used(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert fetch({"HOME": str(tmp_path / "file" / "home")})
    assert fetch.env["UV_NO_CACHE"] == "1"


def test_a_fetch_that_fails_is_no_error(tmp_path: Path) -> None:
    assert not Fetch(tmp_path, code=1)()


def test_pip_fetches_nothing(tmp_path: Path) -> None:
    runner = Recorded()
    into = Prefix(tmp_path, tmp_path, tmp_path / "lock")

    assert not pip(runner).fetch([wheel("a")], TARGET, IndexConfig(), into, lambda *_, **__: None)
    assert runner.calls == []


def test_nothing_is_fetched_from_an_address_that_others_could_change(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path, url="http://t.example/cu128")

    with pytest.raises(Error) as caught:
        fetch()

    assert (caught.value.code, caught.value.values["host"]) == ("index-insecure", "t.example")
    assert fetch.runner.calls == []


def may_cache(folder: Path, environ: Mapping[str, str]) -> bool:
    return "UV_NO_CACHE" not in environment(uv, folder, environ)


def test_under_sudo_nobody_else_s_cache_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner could not use what root leaves there."""
    place = {"UV_CACHE_DIR": str(tmp_path)}
    assert may_cache(tmp_path, place | {"SUDO_UID": "1000"})  # it is our own

    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert may_cache(tmp_path, place)
    assert not may_cache(tmp_path, place | {"SUDO_UID": "1000"})


@pytest.mark.skipif(sys.platform == "win32", reason="owners of Unix")
def test_root_with_the_home_of_a_user_leaves_no_cache_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `su` or a container comes to it, without a word of sudo."""
    if os.geteuid() == 0:
        assert may_cache(tmp_path, {"HOME": str(tmp_path)})
        os.chown(tmp_path, 4321, 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert not may_cache(tmp_path, {"HOME": str(tmp_path)})


def test_a_cache_that_cannot_be_written_to_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path)

    assert not may_cache(tmp_path, {"UV_CACHE_DIR": str(tmp_path)})
    assert not may_cache(tmp_path, {"UV_CACHE_DIR": str(tmp_path / "made" / "later")})
    assert may_cache(tmp_path, {"UV_CACHE_DIR": str(tmp_path.parent)})


@with_others
def test_a_home_that_this_user_may_not_look_into_has_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(os, "access", lambda path, _: asked.append(path))  # it asks for root
    place = tmp_path / "home" / ".cache"
    place.mkdir(parents=True)
    with closed(place.parent):
        assert not _may_cache({"UV_CACHE_DIR": str(place)})
    assert place not in asked


def test_where_uv_s_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: https://docs.astral.sh/uv/concepts/cache/#cache-directory"""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".cache").touch()
    bad = str(tmp_path / "home")
    good = str(tmp_path)

    assert not may_cache(tmp_path, {"HOME": bad})
    assert may_cache(tmp_path, {"HOME": bad, "XDG_CACHE_HOME": good})
    assert may_cache(
        tmp_path, {"HOME": bad, "XDG_CACHE_HOME": f"{bad}/.cache", "UV_CACHE_DIR": good}
    )
    assert not may_cache(tmp_path, {"HOME": good, "XDG_CACHE_HOME": f"{bad}/.cache"})
    monkeypatch.chdir(bad)
    assert not may_cache(tmp_path, {"HOME": good, "UV_CACHE_DIR": ".cache/uv"})
    monkeypatch.setenv("HOME", bad)  # the password database's, where the variable is empty
    assert not may_cache(tmp_path, {"HOME": ""})


def test_what_is_installed_is_offered_as_wheels_without_content(tmp_path: Path) -> None:
    """Source: https://packaging.python.org/en/latest/specifications/binary-distribution-format/"""
    there = (
        Installed(name="A.b", version="1.0", metadata_path="/x", requires=("c>=1", "d")),
        Installed(name="a-b", version="0.9", metadata_path="/y", requires=()),  # not imported
    )
    folder = write_installed_as_wheels(TARGET._replace(installed=there), tmp_path / "new" / "one")

    [path] = folder.iterdir()
    assert folder == tmp_path / "new" / "one"
    name, version, build, tags = parse_wheel_filename(path.name)
    assert (name, str(version), build) == ("a-b", "1.0", (99999, ""))
    assert {str(tag) for tag in tags} == {"py3-none-any"}
    with zipfile.ZipFile(path) as wheel:
        info = "a_b-1.0.dist-info"
        assert sorted(wheel.namelist()) == [
            f"{info}/{one}" for one in ("METADATA", "RECORD", "WHEEL")
        ]
        about = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
        kind = email.message_from_bytes(wheel.read(f"{info}/WHEEL"))
    assert (about["Metadata-Version"], about["Name"], about["Version"]) == ("2.1", "a-b", "1.0")
    assert about.get_all("Requires-Dist") == ["c>=1", "d"]
    assert (kind["Wheel-Version"], kind["Root-Is-Purelib"]) == ("1.0", "true")
    assert (kind["Build"], kind["Tag"]) == ("99999", "py3-none-any")


@pytest.mark.parametrize(
    ("requires", "kept"),
    [
        (["a>=1"], True),  # an early version that is there is as good as any
        (["a>=1", "a<3"], True),
        (["a>=1", "a<2"], False),
        (["a<2", "a>=1"], False),
        (["A[extra] ; python_version > '3'"], True),
        (["b"], True),
    ],
)
def test_what_is_installed_stays_where_all_allow_it(requires: list[str], *, kept: bool) -> None:
    early = Installed(name="a", version="2.5rc1", metadata_path="/x", requires=())

    found = constraints(requires, TARGET._replace(installed=(early,)))

    assert found == (("a==2.5rc1",) if kept else ())


@pytest.mark.parametrize("line", ["a >=", f"a ; {'(' * DEEP}python_version > '3'{')' * DEEP}"])
def test_a_requirement_that_is_none_is_named(line: str) -> None:
    with pytest.raises(Error) as caught:
        constraints(["fine", line], TARGET)

    assert caught.value.code == "requirements-impossible"
    assert caught.value.values["requires"] == line
    assert caught.value.values["said"]
