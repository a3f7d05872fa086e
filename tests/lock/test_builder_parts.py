"""What a lock is made of, wheel by wheel: no index and no uv, their answers are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import synthetic
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.lock import builder as building
from ortgpu_fix.lock.builder import LockBuilder
from ortgpu_fix.lock.groups import FleetMachine, Group, TargetPlan
from ortgpu_fix.lock.model import LockTarget
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.messages.shells import pasted_commands
from ortgpu_fix.plan.wheels import PYPI, Pinned, Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.uv.project import Question
from support.standin_wheels import as_plan

CU128 = "https://download.example/whl/cu128"


def wheel(name: str, version: str = "1.0", index: str = PYPI) -> Wheel:
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return Wheel(name=name, version=version, index_url=index, file=file, size=5, sha256="0" * 64)


SET = (
    wheel("nvidia-cublas-cu12", "12.8.4"),
    wheel("nvidia-cudnn-cu12", "9.28.0"),
    wheel("onnxruntime-gpu", "1.26.0"),
)
NUMPY, PACKAGING = wheel("numpy", "2.4"), wheel("packaging", "26.0")


class Resolved:
    """A uv that chooses these wheels besides, and remembers what it was asked."""

    def __init__(self, *wheels: Wheel, here: Path | None = None) -> None:
        self.wheels, self.here = wheels, here
        self.asked: list[Question] = []

    def __call__(self, question: Question, _: Index, folder: Path) -> Any:
        assert folder.is_dir()
        self.asked.append(question)
        for row in question.wheels:
            near = self.here and self.here / row.file
            url = near.as_uri() if near else f"https://me:secret@files.example/{row.file}"
            yield Pinned(wheel=row, url=url)
        if question.requires:
            yield from (Pinned(wheel=row, url=f"file:///w/{row.file}") for row in self.wheels)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands for uv answers itself."""
    monkeypatch.setattr(building, "compile_plan", lambda uv, *asked: tuple(uv(*asked)))


def target(*selection: Wheel, facts: Facts | None = None, name: str = "") -> TargetPlan:
    facts = facts or synthetic.facts()
    plan = as_plan([])._replace(selection=selection or SET, requires=("numpy>=1", "flatbuffers"))
    machines = (FleetMachine(name=name, facts=facts),)
    return TargetPlan(
        platform="linux_x86_64", abi="cp311", machines=machines, facts=facts, plan=plan
    )


def group(*targets: TargetPlan, version: str = "1.26.0") -> Group:
    targets = targets or (target(),)
    return Group(distribution="onnxruntime-gpu", version=version, cuda="12", targets=targets)


def builder(
    folder: Path, resolved: Resolved | None = None, *, addresses: bool = False, **sources: Any
) -> LockBuilder:
    return LockBuilder(
        options=PlanOptions(),
        matrix=synthetic.matrix(),
        index=Index(IndexConfig(**sources)),  # no size is missing: it is not asked for anything
        uv=cast("Any", resolved or Resolved()),
        commands=pasted_commands(["ortgpu-fix", "lock"], "linux"),
        folder=folder,
        addresses=addresses,
    )


def locked(made: LockBuilder, *targets: TargetPlan) -> LockTarget:
    return made.lock(group(*targets)).targets[0]


def test_uv_chooses_what_the_plan_requires_beside_it(tmp_path: Path) -> None:
    """As if nothing was installed that the lock has; what others require of the rest counts."""
    demands = ["packaging<27", "numpy", "nvidia-cudnn-cu12<10"]
    rows: list[Any] = [
        {"name": "app", "version": "1", "requires": demands},
        {"name": "old", "version": "1", "requires": ["flatbuffers<1", "numpy<3"]},
        {"name": "flatbuffers", "version": "25.1"},
        {"name": "numpy", "version": "2.0"},
        {"name": "nvidia-cudnn-cu12", "version": "9.1.0"},
    ]
    resolved = Resolved(NUMPY)
    made = locked(builder(tmp_path, resolved), target(facts=synthetic.facts(*rows)))

    [asked] = resolved.asked
    assert asked.requires == ("numpy>=1", "flatbuffers")
    assert asked.within == ("numpy<3", "packaging<27")  # flatbuffers<1 is broken today
    assert (asked.wheels, asked.behind) == (SET, None)
    assert not asked.unread.intersection(row.name for row in SET)
    assert "--python-platform" in asked.python
    assert [pinned.wheel for pinned in made.closure] == [NUMPY]
    assert [pinned.wheel for pinned in made.chosen] == [*SET]
    assert made.ranges == ("numpy>=1", "flatbuffers")


@pytest.mark.parametrize("index", [PYPI, CU128])
def test_of_torch_uv_reads_what_it_requires(tmp_path: Path, index: str) -> None:
    resolved = Resolved()
    torch = wheel("torch", "2.10.0", index)
    builder(tmp_path, resolved).lock(group(target(*SET, torch)))

    [asked] = resolved.asked
    assert asked.wheels == (*SET, torch)
    assert "torch" in asked.unread
    assert asked.behind == (None if index == PYPI else CU128)
    assert sorted(asked.within) == [
        *("nvidia-cublas-cu12==12.8.4", "nvidia-cudnn-cu12==9.28.0", "onnxruntime-gpu==1.26.0"),
        "torch==2.10.0",
    ]


@pytest.mark.parametrize(
    ("libc", "free", "parts"),
    [
        ("glibc 2.28", False, 1),
        ("glibc 2.27", False, 2),
        ("glibc 2.17", False, 1),
        ("musl 1.2", False, 1),
        ("glibc 2.27", True, 1),
    ],
)
def test_a_glibc_that_uv_has_no_word_for(
    tmp_path: Path, libc: str, parts: int, *, free: bool
) -> None:
    """The plan's wheels fit 2.27, and uv takes that as 2.17: they are looked up by themselves."""
    facts = synthetic.facts()
    facts = facts._replace(
        platform=facts.platform._replace(libc=libc),
        python=facts.python._replace(free_threaded=free),
    )
    resolved = Resolved(NUMPY)

    made = locked(builder(tmp_path, resolved), target(facts=facts))

    assert len(resolved.asked) == parts
    assert ("--universal" in resolved.asked[0].python) == (parts == 2 or free)
    assert [pinned.wheel for pinned in (*made.chosen, *made.closure)] == [*SET, NUMPY]


def test_what_is_downloaded_is_the_set_and_the_best_wheel_of_all_else(tmp_path: Path) -> None:
    worse = NUMPY._replace(file="numpy-2.4-py2-none-any.whl")
    made = builder(tmp_path, Resolved(NUMPY, worse, PACKAGING))

    found = made.files(group(target(SET[2]), target(SET[0])))

    assert [pinned.wheel for pinned in found] == [
        *(SET[2], NUMPY, PACKAGING),
        *(SET[0], NUMPY, PACKAGING),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("wheels", "./wheels/"),
        ("/srv/w", "/srv/w/"),
        ("https://me:pw@share.example/w/", "https://share.example/w/"),
    ],
)
def test_where_the_companions_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made = replace(builder(tmp_path), companions=given)
    own = [pinned for pinned in locked(made).chosen if pinned.wheel not in SET]
    files = [pinned.wheel.file.replace("+", "%2B" if "://" in given else "+") for pinned in own]

    assert [pinned.wheel.name for pinned in own] == ["ortgpu-fix-libraries", "onnxruntime"]
    assert [pinned.url for pinned in own] == [f"{expected}{file}" for file in files]
    content = {one.name: one.content for one in made.companion_wheels(target())}
    assert [pinned.wheel.size for pinned in own] == [len(content[one.wheel.name]) for one in own]


@pytest.mark.parametrize(("version", "preload"), [("1.18.0", False), ("1.31.0", True)])
def test_preload_dlls_is_of_the_release_on_these_platforms(
    tmp_path: Path, version: str, *, preload: bool
) -> None:
    tables = synthetic.tables()
    for row in tables["onnxruntime"]["build"]:
        row["preload_dlls"] = row["preload_dlls"] and row["platform"] == synthetic.LINUX
    matrix = matrix_parse.parse(tables, "sha256:invented")

    made = replace(builder(tmp_path), matrix=matrix).lock(group(version=version))

    assert made.preload_dlls is preload


def test_a_lock_knows_the_oldest_python_that_its_wheels_fit(tmp_path: Path) -> None:
    """That of the release on its platforms; of the machines where another wheel fits one alone."""
    made = builder(tmp_path)

    def at(version: str, *more: Wheel) -> TargetPlan:
        facts = synthetic.facts(python=version)
        return target(*SET, *more, facts=facts)

    numpy = wheel("numpy", "2.2.6")._replace(file="numpy-2.2.6-cp312-cp312-linux_x86_64.whl")
    rows = [at(version, numpy) for version in ("3.12.1", "3.9.1", "3.10.1")]

    assert made.lock(group(at("3.12.1"))).python == "3.10"
    assert made.lock(group(at("3.12.1"), version="1.31.0")).python == "3.11"
    assert made.lock(group(*rows[:1])).python == "3.12"
    assert made.lock(group(*rows)).python == "3.9"
    assert made.lock(group(*rows, version="9.9")).python == "3.9"
