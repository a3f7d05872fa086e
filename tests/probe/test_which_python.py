"""Whose a Python is that is no virtual environment, by its files and by Windows' registry."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from other_user import closed, with_others

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import OWN_ENVIRONMENT
from ortgpu_fix.facts.target import Target, parse_target, python_of
from ortgpu_fix.probe import interpreter
from ortgpu_fix.probe.children import describe_target as inside
from ortgpu_fix.probe.interpreter import chosen_by, find_interpreter, is_private

if TYPE_CHECKING:
    from typing_extensions import Self

USER, MACHINE = "HKEY_CURRENT_USER", "HKEY_LOCAL_MACHINE"
CORE = "Software\\Python\\PythonCore\\"
Registry = dict[tuple[str, str], dict[str, Any]]


class Opened:
    """An open key of a registry that is a table."""

    def __init__(self, registry: Registry, hive: str, key: str) -> None:
        self.values = registry.get((hive, key.rstrip("\\")))
        start = key.rstrip("\\") + "\\"
        rest = [
            path[len(start) :] for at, path in registry if at == hive and path.startswith(start)
        ]
        self.below = list(dict.fromkeys(name.partition("\\")[0] for name in rest))
        if self.values is None and not self.below:
            raise FileNotFoundError(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def value(self, name: str) -> Any:
        if name not in (self.values or {}):
            raise FileNotFoundError(name)
        return (self.values or {})[name], 1


def have(monkeypatch: pytest.MonkeyPatch, registry: Registry) -> None:
    winreg = SimpleNamespace(
        HKEY_CURRENT_USER=USER,
        HKEY_LOCAL_MACHINE=MACHINE,
        OpenKey=lambda hive, key: Opened(registry, hive, key),
        QueryInfoKey=lambda key: (len(key.below), 0, 0),
        EnumKey=lambda key, at: key.below[at],
        QueryValueEx=lambda key, name: key.value(name),
    )
    monkeypatch.setitem(sys.modules, "winreg", winreg)


def release(hive: str, tag: str, folder: object, **values: Any) -> Registry:
    """Return the keys of a release; python.org's folder ends with a backslash."""
    key = f"{CORE}{tag}"
    return {(hive, key): values, (hive, f"{key}\\InstallPath"): {"": f"{folder}{os.sep}"}}


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a Python, as which this one describes itself."""
    folder = tmp_path / "Python 3"
    folder.mkdir()
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(folder))
    return folder


@pytest.fixture
def told(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], Target]:
    """Return what this Python says of itself; with a file `registered` in its folder it is that."""
    paths = dict.fromkeys(("purelib", "platlib", "scripts", "stdlib"), str(prefix / "lib"))
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)

    def tell() -> Target:
        registered = (prefix / "registered").exists()
        have(monkeypatch, release(USER, "3.12", prefix) if registered else {})
        inside.main()
        return parse_target(capsys.readouterr().out, "python")

    return tell


def be(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, folder)


@pytest.mark.parametrize(
    ("hive", "values", "owner"),
    [
        (USER, {}, "python-org-user"),
        (MACHINE, {}, "python-org-machine"),
        (USER, {"ManagedByPyManager": 1}, "pymanager"),
        (USER, {"ManagedByPyManager": 0}, "python-org-user"),
    ],
)
def test_who_registered_a_python(
    hive: str, values: dict[str, Any], owner: str, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = release(USER, "3.8", prefix.parent / "other") | {(USER, f"{CORE}3.9"): {}}
    empty = {(USER, f"{CORE}3.10\\InstallPath"): {"": ""}}
    have(monkeypatch, others | empty | release(hive, "3.12", prefix, **values))

    assert inside.registered() == owner
    assert inside.owner(None) == owner


def test_a_python_that_nobody_registered_is_nobodys(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WinPython's, NuGet's, a folder that was copied; the current folder is no place of any."""
    monkeypatch.chdir(prefix)
    empty = {(USER, f"{CORE}3.10\\InstallPath"): {"": ""}}
    have(monkeypatch, empty | release(MACHINE, "3.12", prefix.parent / "other"))
    assert inside.owner(None) is None
    have(monkeypatch, {})
    assert inside.owner(None) is None
    monkeypatch.setitem(sys.modules, "winreg", None)
    assert inside.owner(None) is None


@pytest.mark.parametrize(
    ("folder", "owner"),
    [
        (r"C:\Users\me\.pyenv\pyenv-win\versions\3.11.9", "pyenv-win"),
        (r"C:\pyenv-win\apps\3.11.9", None),
        (r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.11_3.11_x64", "store"),
        (r"C:\Users\me\WindowsApps2\python", None),
        ("/home/me/.pyenv/versions/3.11.9", None),
    ],
)
def test_who_is_known_by_the_folder(
    folder: str, owner: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, folder)
    monkeypatch.setitem(sys.modules, "winreg", None)

    assert inside.owner(None) == owner


@pytest.mark.parametrize(
    ("writable", "users", "kind"),
    [(True, True, "system"), (False, True, "user")],
)
def test_an_embeddable_python_has_no_site_packages_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, writable: bool, users: bool, kind: str
) -> None:
    be(monkeypatch, str(tmp_path))
    monkeypatch.setattr(site, "ENABLE_USER_SITE", users)
    monkeypatch.setattr(os, "access", lambda *asked: writable and asked == (str(tmp_path), os.W_OK))

    assert inside.kind_of_environment(str(tmp_path / "Lib" / "site-packages")) == kind


def test_on_windows_a_file_tells_whether_a_folder_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.access` says yes to `C:\\Program Files`, too."""
    really_open, temporary, asked = os.open, 1 << 30, []

    def make(path: str, flags: int, mode: int) -> int:
        asked.append((path, flags, mode))
        return really_open(path, flags & ~temporary, mode)

    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(os, "O_TEMPORARY", temporary, raising=False)
    monkeypatch.setattr(os, "open", make)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | temporary
    file = str(tmp_path / f".ortgpu-fix-probe-{os.getpid()}")

    assert inside.writable(str(tmp_path))
    assert asked == [(file, flags, 0o600)]
    assert not inside.writable(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("name", "owner"),
    [("python312._pth", "embeddable"), ("mypython312._pth", None)],
)
def test_an_embeddable_python_is_its_application_s(
    name: str, owner: str | None, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the install manager put it (`py install 3.14-embed`)."""
    have(monkeypatch, {})
    (prefix / name).touch()
    assert inside.owner(None) == owner
    have(monkeypatch, release(USER, "3.12", prefix, ManagedByPyManager=1))
    assert inside.owner(None) == (owner or "pymanager")


def test_uv_s_mark_names_uv(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, release(USER, "3.12", prefix))
    mark = "[externally-managed]\nError=This Python installation is managed by uv and should not\n"

    assert inside.owner(mark) == "uv"
    assert inside.owner("[externally-managed]\nError=no\n") == "python-org-user"


@pytest.mark.parametrize(
    ("files", "managed", "owner"),
    [
        (["registered"], True, "python-org-user"),
        (["registered", "python312._pth"], False, "embeddable"),
        (["registered", "conda-meta/history"], False, None),
        (["lib/EXTERNALLY-MANAGED"], True, None),
    ],
)
def test_what_others_share_is_managed_elsewhere(
    files: list[str], owner: str | None, prefix: Path, told: Callable[[], Target], *, managed: bool
) -> None:
    for file in files:
        (prefix / file).parent.mkdir(exist_ok=True)
        (prefix / file).touch()
    python = python_of(told())

    assert (python.externally_managed, python.managed_by) == (managed, owner)


def test_a_virtual_environment_of_any_of_these_is_free(
    prefix: Path, told: Callable[[], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    (prefix / "lib").mkdir()
    (prefix / "lib/EXTERNALLY-MANAGED").touch()
    assert told().externally_managed
    monkeypatch.setattr(sys, "base_prefix", "/elsewhere")

    venv = told()
    assert (venv.kind, venv.externally_managed, venv.managed_by) == ("venv", False, None)


def test_the_store_s_python_is_told_without_the_flag(
    told: Callable[[], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--allow system would allow nothing there."""
    be(monkeypatch, r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.11_x64")
    target = told()

    assert (target.kind, target.externally_managed, target.managed_by) == ("user", False, "store")


# What `--python` may be.


def launcher(folder: Path, text: str) -> dict[str, str]:
    """Put a `py` into `folder`, and return the variables of a shell that finds it."""
    program = folder / "py"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"}


@pytest.mark.parametrize(
    ("python", "asked"),
    [("py:3.11", "-3.11"), ("-V:Astral/CPython3.12", "-V:Astral/CPython3.12")],
)
def test_what_the_launcher_knows_a_python_by(python: str, asked: str, tmp_path: Path) -> None:
    file = tmp_path / "Python é" / "python.exe"
    file.parent.mkdir()
    file.touch()
    environ = launcher(
        tmp_path,
        f'echo "$* | $PYTHON_MANAGER_AUTOMATIC_INSTALL $PYTHONUTF8 $PYLAUNCHER_ALLOW_INSTALL $HOME"'
        f" > {tmp_path}/asked; echo '{file}'",
    )
    environ |= {"PYLAUNCHER_ALLOW_INSTALL": "1", "PYTHON_MANAGER_AUTOMATIC_INSTALL": "true"}
    environ["HOME"] = "/home/me"

    assert find_interpreter(python, environ, tmp_path) == file
    said = (tmp_path / "asked").read_text()
    assert said == f"{asked} -c import sys; print(sys.executable) | false 1  /home/me\n"


def test_a_launcher_that_hangs_is_given_half_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert interpreter.SECONDS == 30
    monkeypatch.setattr(interpreter, "SECONDS", 0.2)
    with pytest.raises(Error, match="python-not-launched"):
        find_interpreter("py:3.11", launcher(tmp_path, "sleep 60"), tmp_path)


@pytest.mark.parametrize("text", ["exit 103", None])
def test_a_python_that_the_launcher_does_not_know(text: str | None, tmp_path: Path) -> None:
    environ = {"PATH": "/nowhere"} if text is None else launcher(tmp_path, text)
    if text == "not a program":
        (tmp_path / "py").write_bytes(b"\x7fELF")
    for python in ("py:3.11", "-V:3.12"):
        with pytest.raises(Error) as caught:
            find_interpreter(python, environ, tmp_path)
        assert (caught.value.code, caught.value.values) == (
            "python-not-launched",
            {"python": python},
        )


@pytest.mark.parametrize("python", ["py:", "py", "xpy:3.11"])
def test_what_is_no_form_of_the_launcher_is_a_path(python: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match="python-not-found"):
        find_interpreter(python, {"PATH": "/nowhere"}, tmp_path)


@with_others
def test_a_folder_that_this_user_may_not_look_into_has_no_environment(tmp_path: Path) -> None:
    """`sudo -u` starts a program in root's folder."""
    for mark in (".venv/pyvenv.cfg", "uv-receipt.toml"):
        (tmp_path / mark).parent.mkdir(exist_ok=True)
        (tmp_path / mark).touch()
    assert (chosen_by(None, {}, tmp_path), is_private(tmp_path)) == (".venv", True)

    with closed(tmp_path):
        assert (chosen_by(None, {}, tmp_path), is_private(tmp_path)) == (OWN_ENVIRONMENT, False)
        with pytest.raises(PermissionError):  # what is named is not passed over
            find_interpreter(str(tmp_path / ".venv"), {}, Path("/"))
