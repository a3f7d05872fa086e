"""What an apply looks at before it changes anything, and what it records of the change.

What comes is laid ready by hand here: uv takes no part.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from example_target import target_at

from ortgpu_fix.apply import apply_plan
from ortgpu_fix.apply.apply_plan import Applied, apply
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.apply.history import recorded_changes
from ortgpu_fix.apply.journal import Begin, encode
from ortgpu_fix.apply.staged_tree import StagedTree
from ortgpu_fix.apply.staging import StagedWheels
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the layout of Unix")
SHA = hashlib.sha256(b"new").hexdigest()
NEW = Wheel(name="new", version="2", index_url="https://i", file="new-2.whl", size=1, sha256="ab")


class Stand:
    """An environment with `old`, and `new` laid ready for it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.purelib = folder / "lib"
        (folder / "bin").mkdir(parents=True)
        purelib = str(self.purelib)
        self.site = Site(
            purelib=purelib, platlib=purelib, scripts=str(folder / "bin"), prefix=str(folder)
        )
        self.put("old/a.py", "old")
        self.put("old-1.dist-info/METADATA", "m")
        self.put("old-1.dist-info/RECORD", "old/a.py,,\nold-1.dist-info/RECORD,,\n")
        self.installed: tuple[Installed, ...] = (self.row("old", "1"),)
        self.requires: tuple[str, ...] = ()
        self.said: list[str] = []
        self.error: Error | None = None
        self.target_more: dict[str, Any] = {}
        monkeypatch.setattr(apply_plan, "stage_wheels", self.stage)

    def put(self, name: str, text: str) -> str:
        path = self.purelib / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def row(self, name: str, version: str, *requires: str) -> Installed:
        info = str(self.purelib / f"{name}-{version}.dist-info")
        return Installed(name=name, version=version, metadata_path=info, requires=requires)

    def stage(self, *_: object, **__: object) -> StagedWheels:
        self.put(".ortgpu-fix/stage/wheels/begun.part", "x")
        if self.error is not None:
            raise self.error
        source = self.put(".ortgpu-fix/stage/tree/c.py", "new")
        info = self.put(".ortgpu-fix/stage/tree/METADATA", "new")
        goal, folder = f"{self.purelib}/new/c.py", f"{self.purelib}/new-2.dist-info"
        tree = StagedTree(
            files={goal: source, f"{folder}/METADATA": info},
            hashes={goal: SHA, f"{folder}/METADATA": SHA},
            folders=(),
            infos=(folder,),
            requires=(self.requires,),
        )
        return StagedWheels((NEW,), tree)

    def apply(self, *, allowed: Allowed | None = None, works: bool = True) -> Applied:
        target = target_at(self.site, installed=self.installed)._replace(**self.target_more)
        uv: Any = type("Uv", (), {"name": "uv 9"})()
        plan = Plan(
            verdict="fixable",
            matrix_date="",
            matrix_digest="",
            install=(NEW,),
            uninstall=("old",),
        )
        return apply(
            plan,
            target,
            index=Index(IndexConfig(offline=True)),
            uv=uv,
            verify=lambda: (works, "no GPU"),
            progress=self.hear,
            allowed=allowed,
        )

    def hear(self, step: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        del done, total
        self.said.append(" ".join([step, *map(str, values.values())]))

    def refusal(self, **more: Any) -> tuple[str, dict[str, object]]:
        with pytest.raises(Error) as caught:
            self.apply(**more)
        return caught.value.code, dict(caught.value.values)

    def there(self) -> set[str]:
        return {path.name for path in self.purelib.iterdir()} - {".ortgpu-fix"}


BEFORE = {"old", "old-1.dist-info"}
AFTER = {"new", "new-2.dist-info"}


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(tmp_path / "venv", monkeypatch)


def test_what_was_done_is_told_and_recorded(stand: Stand) -> None:
    done = stand.apply()

    assert done == Applied(removed=("old",), installed=(("new", "2"),), conflicts=(), untidy=0)
    assert stand.there() == AFTER
    assert stand.said == ["sync", "set-aside 3", "verify"]
    [change] = recorded_changes(stand.site)
    begin = change.begin
    assert begin is not None
    assert change.state == "committed"
    assert begin == Begin(
        plan="new 2",
        removed=("old",),
        installed=(("new", "2"),),
        when=begin.when,
        present=("old-1.dist-info",),
        packages=(("new", "2", "https://i", "ab"),),
    )
    when = datetime.fromisoformat(begin.when)
    assert when.microsecond == 0
    assert abs(datetime.now(timezone.utc) - when) < timedelta(minutes=5)
    assert not stand.site.stage.exists()


@pytest.mark.parametrize(
    ("more", "allowed", "code", "named"),
    [
        ({"externally_managed": True}, Allowed(), "externally-managed", "path"),
        ({"externally_managed": True}, Allowed(conda=True), "externally-managed", "path"),
        (
            {"externally_managed": True, "managed_by": "pymanager"},
            Allowed(),
            "externally-managed",
            "path",
        ),
        ({"externally_managed": True}, Allowed(externally_managed=True), None, ""),
        ({"kind": "conda"}, Allowed(externally_managed=True), "conda-environment", "folder"),
        ({"kind": "conda"}, Allowed(conda=True), None, ""),
        (
            {"kind": "user"},
            Allowed(conda=True, externally_managed=True, conflicts=True),
            "user-environment",
            "path",
        ),
    ],
)
def test_whose_environment_is_left_alone(
    stand: Stand, more: dict[str, Any], allowed: Allowed, code: str | None, named: str
) -> None:
    stand.target_more = more
    managed = code == "externally-managed"
    if code is None:
        assert stand.apply(allowed=allowed).removed == ("old",)
    else:
        place = stand.site.prefix if named == "folder" else f"{stand.site.prefix}/bin/python"
        owner = {"owner": cause(more.get("managed_by", "operating-system"))} if managed else {}
        assert stand.refusal(allowed=allowed) == (code, {named: place, **owner})
        assert stand.there() == BEFORE


def test_an_unfinished_change_comes_first(stand: Stand) -> None:
    begun = stand.site.state / "1"
    begun.mkdir(parents=True)
    (begun / "journal").write_text(encode(Begin(plan="x", removed=(), installed=(), present=())))

    assert stand.refusal() == ("unfinished-change", {"folder": stand.site.prefix})
    assert stand.there() == BEFORE


def test_who_would_lose_a_requirement_is_named_unless_that_is_allowed(stand: Stand) -> None:
    stand.installed += (stand.row("app", "3", "old", "odd"), stand.row("b", "4", "new<2"))
    stand.requires = ("missing",)
    rows = "app 3: old; new 2: missing"  # what nothing met before is nobody's loss

    assert stand.refusal() == ("would-conflict", {"conflicts": rows})
    assert stand.refusal(allowed=Allowed(conda=True)) == ("would-conflict", {"conflicts": rows})
    assert stand.there() == BEFORE
    done = stand.apply(allowed=Allowed(conflicts=True))
    assert "; ".join(map(str, done.conflicts)) == rows


def test_an_environment_that_changed_since_it_was_read_is_left_alone(stand: Stand) -> None:
    stand.put("new-2.dist-info/METADATA", "somebody was faster")
    assert stand.refusal() == ("environment-changed", {"name": "new"})
    stand.installed += (stand.row("new", "2"),)
    (stand.purelib / "new-2.dist-info" / "RECORD").write_text("new-2.dist-info/RECORD,,\n")
    assert stand.apply().removed == ("old",)


def test_what_is_gone_since_is_named_where_it_is_in_the_plan(stand: Stand) -> None:
    stand.installed += (stand.row("other", "1"),)  # it is gone too, and is not in the plan
    assert stand.apply().removed == ("old",)
    assert stand.refusal() == ("environment-changed", {"name": "old"})
