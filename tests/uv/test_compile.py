"""A plan compiled by real uv, from indexes on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from example_target import TARGET

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.facts.wheel_tags import tags_of
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.process import Finished, Runner, run
from ortgpu_fix.uv.compile import compile_plan, write_installed_as_wheels
from ortgpu_fix.uv.program import Uv
from ortgpu_fix.uv.project import Question, constraints
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import as_wheel, clean_environment, find_uv
from synthetic import here, machine

DEEP = 100_000
HERE = machine(version=here())


class Shop:
    """The default index, one more, and what is asked of them."""

    def __init__(self, folder: Path, main: LocalIndex, other: LocalIndex) -> None:
        self.folder, self.main, self.other = folder, main, other
        self.runner: Runner = run

    def asked(self, **more: object) -> Question:
        python = ("--python", sys.executable)
        plain = Question(wheels=(), python=python, version=here(), tags=tuple(tags_of(HERE)))
        return replace(plain, **more)  # type: ignore[arg-type]

    def compile(self, question: Question, **sources: object) -> dict[str, tuple[str, str]]:
        """Return version and server of everything that was found, by name."""
        environ = clean_environment() | {"UV_CACHE_DIR": str(self.folder / "cache")}
        uv = Uv(program=find_uv(), version="0", environ=environ, runner=self.runner)
        config = replace(IndexConfig(index_url=self.main.url, origin="flag"), **sources)  # type: ignore[arg-type]
        index = Index(config, Limits(read=2, pauses=(0.01,)))
        found = compile_plan(uv, question, index, self.folder / "work")
        servers = {self.main.port: "main", self.other.port: "other"}
        return {
            pin.wheel.name: (
                pin.wheel.version,
                next((name for port, name in servers.items() if f":{port}/" in pin.url), "folder"),
            )
            for pin in found
        }

    def refusal(self, question: Question, **sources: object) -> Error:
        with pytest.raises(Error) as caught:
            self.compile(question, **sources)
        return caught.value

    def at_other(self, path: Path) -> Wheel:
        return as_wheel(path)._replace(index_url=self.other.url)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    main, other = tmp_path / "main", tmp_path / "other"
    main.mkdir()
    other.mkdir()
    with LocalIndex(main) as first, LocalIndex(other) as second:
        yield Shop(tmp_path, first, second)


def test_the_metadata_of_a_wheel_of_the_plan_are_not_read(shop: Shop) -> None:
    """What it requires is in the plan already; its file is not touched."""
    path = make_wheel(shop.main.folder, "gpu", "1.0", requires=["nobody-has-this"])
    make_wheel(shop.main.folder, "plain", "2.0")

    found = shop.compile(shop.asked(wheels=(as_wheel(path),), requires=("plain",)))

    assert found == {"gpu": ("1.0", "main"), "plain": ("2.0", "main")}
    assert not [line for line in shop.main.behaviour.requests if path.name in line]


def test_what_a_torch_requires_comes_from_the_default_index_where_that_has_it(
    shop: Shop,
) -> None:
    requires = ["both", "alone==3.0", "older==1.0"]
    torch = shop.at_other(make_wheel(shop.other.folder, "torch", "2.0+cu128", requires=requires))
    for folder, version in ((shop.main.folder, "1.0"), (shop.other.folder, "9.0")):
        make_wheel(folder, "both", version)
    make_wheel(shop.other.folder, "alone", "3.0")
    make_wheel(shop.main.folder, "older", "2.0")  # another version than is required
    make_wheel(shop.other.folder, "older", "1.0")

    found = shop.compile(
        shop.asked(wheels=(torch,), unread=frozenset({"torch"}), behind=shop.other.url)
    )

    assert found == {
        "torch": ("2.0+cu128", "other"),
        "both": ("1.0", "main"),
        "alone": ("3.0", "other"),
        "older": ("1.0", "other"),
    }


def test_who_may_log_in_where_is_in_no_file(shop: Shop) -> None:
    path = make_wheel(shop.other.folder, "tensorrt-x", "1.0")
    make_wheel(shop.main.folder, "plain", "2.0")
    shop.main.behaviour.login, shop.other.behaviour.login = "me:p/1", "you:p@2"
    seen: list[str] = []

    def looking(argv: list[str], **how: object) -> Finished:
        work = shop.folder / "work"
        seen.extend([*argv, *(path.read_text() for path in work.glob("*.toml"))])
        return run(argv, **how)  # type: ignore[arg-type]

    shop.runner = looking
    question = shop.asked(wheels=(shop.at_other(path),), requires=("plain",))
    found = shop.compile(
        question,
        index_url=shop.main.url.replace("//", "//me:p%2F1@"),
        tensorrt_index=shop.other.url.replace("//", "//you:p%402@"),
    )

    assert found == {"tensorrt-x": ("1.0", "other"), "plain": ("2.0", "main")}
    assert seen
    assert not [text for text in seen if "p/1" in text or "p%2F1" in text or "p@2" in text]


def test_a_limit_of_dates_is_for_what_uv_chooses(shop: Shop) -> None:
    """The pages of this index have no dates: nothing is older than the limit."""
    path = make_wheel(shop.main.folder, "gpu", "1.0")
    make_wheel(shop.main.folder, "plain", "2.0")
    known = shop.asked(wheels=(as_wheel(path),))

    assert shop.compile(known, exclude_newer="2020-01-01") == {"gpu": ("1.0", "main")}
    error = shop.refusal(replace(known, requires=("plain",)), exclude_newer="2020-01-01")
    assert error.code == "requirements-impossible"


def test_what_is_preferred_is_kept_unless_something_requires_another(shop: Shop) -> None:
    for name in ("free", "bound"):
        for version in ("1.0", "2.0"):
            make_wheel(shop.main.folder, name, version)
    make_wheel(shop.main.folder, "asks", "1.0", requires=["free", "bound>=2"])
    question = shop.asked(requires=("asks",), preferred={"free": "1.0", "bound": "1.0"})

    found = shop.compile(question)

    assert (found["free"][0], found["bound"][0]) == ("1.0", "2.0")


def test_an_index_that_fails_names_the_flag_for_another(shop: Shop) -> None:
    path = make_wheel(shop.other.folder, "torch", "1.0")
    wheel = shop.at_other(path)
    shop.other.behaviour.faults["torch"] = "denied"

    error = shop.refusal(shop.asked(wheels=(wheel,)))

    assert (error.code, error.values["status"]) == ("index-refused", 403)
    assert error.values["flag"] == "--torch-index-url"


def test_the_words_of_uv_say_why_versions_do_not_fit(shop: Shop) -> None:
    make_wheel(shop.main.folder, "plain", "2.0", requires=["other-thing>=2"])
    make_wheel(shop.main.folder, "other-thing", "1.0")

    error = shop.refusal(shop.asked(requires=("plain",)))

    assert (error.code, error.values["requires"]) == ("requirements-impossible", "plain")
    assert "other-thing>=2" in str(error.values["said"])


@pytest.mark.parametrize("text", ["no = [", "[[packages]]\nname = 'plain'\n"])
def test_an_answer_of_uv_that_cannot_be_read_is_no_answer(shop: Shop, text: str) -> None:
    def other(argv: list[str], **how: object) -> Finished:
        done = run(argv, **how)  # type: ignore[arg-type]
        (shop.folder / "work" / "pylock.toml").write_text(text)
        return done

    make_wheel(shop.main.folder, "plain", "2.0")
    path = make_wheel(shop.main.folder, "gpu", "1.0")
    shop.runner = other

    error = shop.refusal(shop.asked(wheels=(as_wheel(path),), requires=("plain",)))

    assert error.code == "requirements-impossible"
    assert error.values["said"].code == "uv-answer-unreadable"  # type: ignore[attr-defined]


def test_a_uv_without_end_is_said_to_have_none(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortgpu_fix.uv.compile.RESOLVE_SECONDS", 0.0)

    said = shop.refusal(shop.asked(requires=("plain",))).values["said"]

    assert said.code == "engine-endless"  # type: ignore[attr-defined]


def test_from_an_address_that_others_could_change_nothing_comes(shop: Shop) -> None:
    wheel = Wheel("torch", "1.0", "http://mirror.example/whl/cu128", "", 0, "")

    assert shop.refusal(shop.asked(wheels=(wheel,))).code == "index-insecure"


def test_what_is_installed_is_offered_as_wheels_without_content(tmp_path: Path) -> None:
    """uv takes the first of two that have one name, as an import does."""
    there = (
        Installed(name="A.b", version="1.0", metadata_path="/x", requires=("c>=1", "d")),
        Installed(name="a-b", version="0.9", metadata_path="/y", requires=()),
    )

    folder = write_installed_as_wheels(TARGET._replace(installed=there), tmp_path / "new")

    [path] = folder.iterdir()
    assert path.name == "a_b-1.0-99999-py3-none-any.whl"


@pytest.mark.parametrize(
    ("requires", "kept"),
    [
        (["a>=1"], True),
        (["a>=1", "a<3"], True),
        (["a>=1", "a<2"], False),
        (["A[extra] ; python_version > '3'"], True),
        (["b"], True),
    ],
)
def test_what_is_installed_stays_where_all_allow_it(requires: list[str], *, kept: bool) -> None:
    early = Installed(name="a", version="2.5rc1", metadata_path="/x", requires=())
    odd = Installed(name="odd", version="not a version", metadata_path="/x", requires=())

    found = constraints(requires, TARGET._replace(installed=(early, odd)))

    assert found == (("a==2.5rc1",) if kept else ())
    assert constraints(requires, TARGET._replace(installed=(early,)), {"a"}) == ()


@pytest.mark.parametrize("line", ["a >=", f"a ; {'(' * DEEP}python_version > '3'{')' * DEEP}"])
def test_a_requirement_that_is_none_is_named(line: str) -> None:
    with pytest.raises(Error) as caught:
        constraints(["fine", line], TARGET)

    assert caught.value.code == "requirements-impossible"
    assert caught.value.values["requires"] == line
    assert caught.value.values["said"]
