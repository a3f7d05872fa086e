"""What speaks against `--keep` and `--no-keep`, case by case."""

# A wish is said, not said, or said to be none.
# ruff: noqa: FBT001, FBT003
from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ortgpu_fix.cli.keeping import CONFIGURATION, keep_moved, pip_configuration, wheels_to_keep
from ortgpu_fix.companions.contents import KEEP
from ortgpu_fix.companions.keep import configuration_text, constraint_address, is_ours
from ortgpu_fix.errors import Error
from ortgpu_fix.plan.wheels import Companion
from ortgpu_fix.resolve.options import PlanOptions

MOVED = configuration_text(Path("/where/it/was"))
THEIRS = "[global]\ntimeout = 9\n"


@pytest.fixture
def answer(tmp_path: Path) -> Any:
    """Return what is answered: `ours`, the text that stays, or the code of the Error."""
    ours = configuration_text(tmp_path / "lib")

    def ask(keep: bool | None, text: str | None = None, *, here: bool = False, **more: Any) -> str:
        environ = {"HOME": str(tmp_path / "home"), **more.pop("environ", {})}
        target: Any = SimpleNamespace(
            prefix=str(tmp_path),
            purelib=str(tmp_path / "lib"),
            find=lambda name: name if here and name == KEEP else None,
            **{"kind": "venv", "pip_version": "25.0", **more},
        )
        if text is not None:
            (tmp_path / CONFIGURATION).write_text(text.replace("OURS", ours))
        try:
            found = pip_configuration(target, PlanOptions(keep=keep), environ)
        except Error as error:
            return error.code
        return "ours" if found == ours else found

    return ask


@pytest.mark.parametrize("keep", [None, True])
@pytest.mark.parametrize("here", [True, False])
def test_where_no_file_is_ours_comes(answer: Any, keep: bool | None, here: bool) -> None:
    assert answer(keep, here=here) == "ours"


def test_without_a_wish_whatever_is_there_stays(answer: Any) -> None:
    assert answer(None, THEIRS) == THEIRS
    assert answer(None, THEIRS, here=True, kind="system", pip_version="9.0") == THEIRS
    assert answer(None, "", here=True) == ""


def test_with_the_wish_a_file_stays_that_still_has_the_line(answer: Any, tmp_path: Path) -> None:
    line = f"constraint = {constraint_address(tmp_path / 'lib')}\n"
    assert answer(True, f"[install]\n{line}{THEIRS}", here=True) == f"[install]\n{line}{THEIRS}"
    assert answer(True, f"[install]\n{line}") == "keep-own"
    assert answer(True, "OURS", here=True) == "ours"
    assert answer(True, "OURS") == "keep-own"


def test_a_file_of_the_users_is_not_changed(answer: Any) -> None:
    assert answer(True, THEIRS) == answer(True, THEIRS, here=True) == "keep-own"
    assert answer(True, MOVED) == "keep-own"
    assert answer(True, MOVED, here=True) == "keep-moved"
    assert answer(True, MOVED + THEIRS, here=True) == "keep-own"


def test_what_goes_must_be_what_was_written(answer: Any) -> None:
    assert answer(False) == answer(False, here=True) == "ours"
    assert answer(False, "OURS", here=True) == answer(False, MOVED, here=True) == "ours"
    assert answer(False, THEIRS, here=True) == "keep-changed"
    assert answer(False, "OURS" + THEIRS, here=True) == "keep-changed"
    assert answer(False, THEIRS) == "ours"  # nothing of ours goes


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"kind": "conda"}, "ours"),
        ({"kind": "system"}, "keep-system"),
        ({"kind": "user"}, "keep-system"),
        ({"pip_version": None}, "ours"),
        ({"pip_version": "21.1"}, "ours"),
        ({"pip_version": "21.0.1"}, "keep-pip-old"),
        ({"environ": {"PIP_CONSTRAINT": "/etc/a.txt /etc/b.txt"}}, "keep-hides"),
    ],
)
def test_where_it_cannot_be(answer: Any, more: dict[str, Any], code: str) -> None:
    assert answer(True, **more) == code
    assert answer(None, **more) == answer(False, **more) == "ours"


def test_a_constraint_of_ours_is_not_another(answer: Any, tmp_path: Path) -> None:
    ours = constraint_address(tmp_path / "lib")

    assert answer(True, environ={"PIP_CONSTRAINT": ours}) == "ours"
    assert answer(True, environ={"PIP_CONSTRAINT": f"{ours} /etc/a.txt"}) == "keep-hides"


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (MOVED, True),
        (MOVED.replace("_ortgpu_fix_keep/", "other/"), False),
        (MOVED + "\n", False),
        (MOVED.removesuffix("\n"), False),
        ("\n" + MOVED, False),
        (MOVED.replace("constraints.txt", "constraintsXtxt"), False),
        (MOVED.replace("/where", "/with blank"), False),
    ],
)
def test_what_was_written_is_known_wherever_it_was(text: str, ours: bool) -> None:
    assert is_ours(text) is ours


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        (None, False),
        (THEIRS, False),
        (MOVED, True),
        (MOVED + THEIRS, False),  # what the user has changed is not judged
        ("OURS", False),
    ],
)
def test_what_was_written_for_another_place_is_seen(
    tmp_path: Path, text: str | None, moved: bool
) -> None:
    purelib = tmp_path / "with blank" / "lib"
    purelib.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "with blank", target_is_directory=True)
    if text is not None:
        text = text.replace("OURS", configuration_text(purelib))
        (tmp_path / CONFIGURATION).write_text(text)

    for folder in (purelib, tmp_path / "link" / "lib"):  # another name of the same place
        target: Any = SimpleNamespace(prefix=str(tmp_path), purelib=str(folder))
        assert keep_moved(target) is moved


def test_the_wheel_comes_where_the_plan_has_it(tmp_path: Path) -> None:
    target: Any = SimpleNamespace(
        prefix=str(tmp_path), purelib=str(tmp_path), kind="venv", pip_version=None, find=str
    )
    rows = (Companion(name="onnxruntime", version="1.26.0"), Companion(name=KEEP, version="1.26.0"))
    plan: Any = SimpleNamespace(companions=rows)

    [wheel] = wheels_to_keep(plan, target, PlanOptions(), {})
    assert (wheel.name, wheel.version, wheel.has_data) == (KEEP, "1.26.0", True)
    assert wheels_to_keep(SimpleNamespace(companions=rows[:1]), target, PlanOptions(), {}) == []  # type: ignore[arg-type]


def test_a_file_of_any_bytes_is_the_users(answer: Any, tmp_path: Path) -> None:
    (tmp_path / CONFIGURATION).write_bytes(b"[global]\nproxy = \xff\n")

    assert answer(True) == "keep-own"


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of Unix")
def test_a_pipe_in_the_place_of_the_configuration_is_not_waited_for(
    answer: Any, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / CONFIGURATION)

    assert answer(True) == "keep-own"
