"""What is shown before a download, and what the metadata of torch add to it; without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from example_target import TARGET
from packaging.specifiers import SpecifierSet

from ortgpu_fix.apply import chosen_wheels
from ortgpu_fix.apply.chosen_wheels import ChosenWheel, resolve_torch_closure
from ortgpu_fix.evidence.wheels import EvidenceError
from ortgpu_fix.facts.target import Installed, Target
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Pinned, Wheel
from ortgpu_fix.utils.progress import silent

INDEX = "https://t.example/whl/cu128"


def wheel(name: str, version: str = "1", index: str = "pypi", sha256: str = "ab") -> Wheel:
    file = f"{name}-{version}.whl"
    return Wheel(name=name, version=version, index_url=index, file=file, size=9, sha256=sha256)


class Index:
    """An index that knows where files are."""

    def __init__(self, **sources: Any) -> None:
        self.sources = IndexConfig(**{"index_url": "https://me:secret@a.example/simple", **sources})

    def find(self, row: Wheel) -> str:
        return f"https://files.example/{row.file}"


class Engine:
    """An engine that chooses what it is told to, and remembers what it was asked."""

    def __init__(self, *pinned: Pinned) -> None:
        self.pinned, self.asked = pinned, ([""], frozenset[str]())

    def resolve(
        self,
        requires: Sequence[str],
        _target: object,
        _sources: object,
        _folder: object,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        self.asked = ([*requires], movable)
        return self.pinned


def target(*installed: tuple[str, str]) -> Target:
    rows = [Installed(name=name, version=version, metadata_path="") for name, version in installed]
    return TARGET._replace(pip_version=None, installed=tuple(rows))


def plan(*install: Wheel, requires: tuple[str, ...] = ()) -> Plan:
    return Plan(
        verdict="fixable", matrix_date="", matrix_digest="", install=install, requires=requires
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    monkeypatch.setattr(
        chosen_wheels, "pin_from_index", lambda row, *_: row._replace(sha256=row.sha256 or "cd")
    )
    return tmp_path


def choose(folder: Path, made: Plan, engine: Engine, index: Index) -> tuple[Any, Any, Any]:
    """Return the wheels, their addresses, and what was shown."""
    shown: list[Sequence[ChosenWheel]] = []
    wheels, urls = chosen_wheels.choose_wheels(
        made,
        target(),
        cast("Any", index),
        cast("Any", engine),
        folder / "work",
        silent,
        shown.append,
    )
    [rows] = shown
    return wheels, urls, [(row.wheel.name, row.place) for row in rows]


def test_what_an_index_or_an_engine_chose_is_shown_with_its_place(folder: Path) -> None:
    (folder / "near").mkdir()
    (folder / "near" / "near-1.whl").touch()
    engine = Engine(
        Pinned(wheel=wheel("flatbuffers"), url="https://files.example/f.whl"),
        Pinned(wheel=wheel("near"), url="https://files.example/n.whl"),
        Pinned(wheel=wheel("local"), url="file:///srv/wheels/local-1.whl"),
    )
    made = plan(
        wheel("known"), wheel("torchlike", index=INDEX, sha256=""), requires=("flatbuffers",)
    )
    wheels, urls, shown = choose(folder, made, engine, Index(find_links=folder / "near"))

    assert shown == [
        ("torchlike", INDEX),
        ("flatbuffers", "https://a.example/simple"),
        ("near", str(folder / "near")),
        ("local", "/srv/wheels"),
    ]
    assert [row.name for row in wheels] == ["known", "torchlike", "flatbuffers", "near", "local"]
    assert wheels[1].sha256 == "cd"
    assert urls == {pin.wheel.file: pin.url for pin in engine.pinned}
    assert engine.asked[0] == ["flatbuffers"]


def test_only_what_belongs_to_the_plan_is_left_of_earlier_downloads(folder: Path) -> None:
    for name in ("known-1.whl", "chosen-1.whl.part", "other-1.whl", "other-2.whl.part"):
        (folder / "wheels" / name).touch()

    choose(
        folder, plan(wheel("known")), Engine(Pinned(wheel("chosen"), "https://x/c.whl")), Index()
    )

    assert {path.name for path in (folder / "wheels").iterdir()} == {
        *("known-1.whl", "chosen-1.whl.part"),
    }


TORCH = wheel("torch", "2.7.1+cu128", INDEX)


class Closure:
    """What the metadata say of wheels, and what torch's index and the default one have."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requires: dict[str, tuple[str, ...]] = {}
        self.on_torch_index: dict[str, Wheel] = {}
        self.on_default: set[str] = set()
        self.read: list[str] = []
        monkeypatch.setattr(chosen_wheels, "_requires", self.requires_of)
        monkeypatch.setattr(chosen_wheels, "index_has", self.has)
        monkeypatch.setattr(chosen_wheels, "newest_from_index", self.newest)

    def requires_of(self, row: Wheel, *_: object) -> tuple[str, ...]:
        self.read.append(row.name)
        return self.requires.get(row.name, ())

    def has(self, name: str, _specifier: SpecifierSet, base: str, *_: object) -> bool:
        assert base == "pypi"
        return name in self.on_default

    def newest(self, name: str, _specifier: SpecifierSet, base: str, *_: object) -> Wheel | None:
        assert base == INDEX
        return self.on_torch_index.get(name)

    def resolve(
        self, made: Plan, wheels: list[Wheel], *installed: tuple[str, str], **sources: Any
    ) -> tuple[list[str], tuple[list[str], frozenset[str]]]:
        engine = Engine()
        resolve_torch_closure(
            made,
            wheels,
            target(*installed),
            cast("Any", Index(**sources)),
            cast("Any", engine),
            Path("/wheels"),
            Path("/work"),
            silent,
        )
        return [row.name for row in wheels], engine.asked


@pytest.fixture
def closure(monkeypatch: pytest.MonkeyPatch) -> Closure:
    return Closure(monkeypatch)


def test_what_torch_requires_is_asked_of_the_default_index_first(closure: Closure) -> None:
    closure.requires = {"torch": ("sympy>=1.13", "triton==3.3.1", "jinja2; extra == 'x'")}
    closure.on_torch_index = {name: wheel(name, "3.3.1", INDEX) for name in ("sympy", "triton")}
    closure.on_default = {"sympy"}
    made = plan(TORCH, requires=("flatbuffers",))

    names, (requires, _) = closure.resolve(made, [TORCH])

    assert names == ["torch", "triton"]
    assert requires == ["flatbuffers", "sympy>=1.13"]
    assert closure.read == ["torch", "triton"]  # what comes of torch's index is read as well


def test_without_a_network_nothing_more_comes_of_torch_s_index(closure: Closure) -> None:
    closure.requires = {"torch": ("triton==3.3.1",)}
    closure.on_torch_index = {"triton": wheel("triton", "3.3.1", INDEX)}

    names, (requires, _) = closure.resolve(plan(TORCH), [TORCH], offline=True)
    assert (names, requires) == (["torch"], ["triton==3.3.1"])


def test_a_torch_of_the_default_index_asks_no_other(closure: Closure) -> None:
    closure.requires = {"torch": ("triton==3.3.1",)}
    closure.on_torch_index = {"triton": wheel("triton", "3.3.1", INDEX)}
    torch = TORCH._replace(index_url="pypi")

    assert closure.resolve(plan(torch), [torch])[0] == ["torch"]


def test_what_only_the_torch_before_had_may_move(closure: Closure) -> None:
    names = ("nvidia-cusparse-cu12", "cuda-toolkit", "triton", "pytorch-triton", "nvidia-planned")
    made = plan(TORCH, wheel("nvidia-planned"))
    there = [(name, "1") for name in (*names, "numpy")]

    _, (_, movable) = closure.resolve(made, [TORCH], *there)
    assert movable == {*names[:4]}


def requires_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, index: Index, *, parts: bool = True
) -> list[str]:
    """Return where the metadata of a wheel were read from."""
    said: list[str] = []

    def remote(url: str, _: object) -> tuple[str, ...]:
        if not parts:
            raise EvidenceError(url)
        said.append(url)
        return ()

    def download(_: object, wheels: Sequence[Wheel], into: Path, *__: object) -> list[Path]:
        said.extend(f"download {row.file}" for row in wheels)
        return [into / row.file for row in wheels]

    contents = type("Contents", (), {"requires": ()})()
    monkeypatch.setattr(chosen_wheels, "_remote_requires", remote)
    monkeypatch.setattr(chosen_wheels, "download_all", download)
    monkeypatch.setattr(chosen_wheels, "read_wheel_contents", lambda _: contents)
    chosen_wheels._requires(TORCH, cast("Any", index), folder, silent)
    return said


def test_metadata_are_read_in_parts_where_the_wheel_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [f"download {TORCH.file}"]
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / TORCH.file).touch()
    near = Index(find_links=tmp_path / "near")
    local = Index()
    monkeypatch.setattr(local, "find", lambda _: "file:///srv/t.whl")

    assert requires_of(tmp_path, monkeypatch, Index()) == [f"https://files.example/{TORCH.file}"]
    assert requires_of(tmp_path, monkeypatch, Index(), parts=False) == whole
    assert requires_of(tmp_path, monkeypatch, near) == whole
    assert requires_of(tmp_path, monkeypatch, Index(offline=True)) == whole
    assert requires_of(tmp_path, monkeypatch, local) == whole
    (tmp_path / TORCH.file).touch()
    assert requires_of(tmp_path, monkeypatch, Index()) == whole
