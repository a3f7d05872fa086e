"""The answer of the target's interpreter, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import OnnxRuntime, Package
from ortgpu_fix.facts.target import packages_of, parse_target

ANSWER: dict[str, Any] = {
    "version": "3.11.7",
    "implementation": "cpython",
    "free_threaded": False,
    "platform": "linux-x86_64",
    "bits": 64,
    "executable": "/srv/me/.venv/bin/python",
    "prefix": "/srv/me/.venv",
    "base_prefix": "/usr",
    "purelib": "/srv/me/.venv/lib/python3.11/site-packages",
    "platlib": "/srv/me/.venv/lib/python3.11/site-packages",
    "scripts": "/srv/me/.venv/bin",
    "environment": "venv",
    "externally_managed": False,
    "managed_by": None,
    "pth": True,
    "libc": "glibc 2.35",
    "onnxruntime": {
        "distribution": "onnxruntime-gpu",
        "version": "1.26.0",
        "cuda": "12.8",
        "intact": True,
    },
    "installed": [
        {"name": "NumPy", "version": "2.0", "path": "/a/NumPy", "requires": []},
        {"name": "numpy", "version": "1.26.4", "path": "/b/numpy"},
        {"name": "app", "version": "1", "path": "/b/app", "requires": ["x @ file:///srv/me/x"]},
        {"name": "~umpy", "version": None, "path": "/b/~umpy"},
    ],
}


def answer(**changes: object) -> str:
    return json.dumps({**ANSWER, **changes})


def test_a_whole_answer() -> None:
    target = parse_target(f"noise\n{answer()}\nmore noise\n", "python")

    assert target.version == "3.11.7"
    assert target.kind == "venv"
    assert target.broken == ("/b/~umpy",)
    assert [one.key for one in target.installed] == ["numpy", "numpy", "app"]
    assert target.build == OnnxRuntime(
        distribution="onnxruntime-gpu", version="1.26.0", cuda="12.8", intact=True
    )


def test_the_first_of_a_name_is_in_use() -> None:
    target = parse_target(answer(), "python")
    numpy = target.find("numpy")

    assert numpy is not None
    assert numpy.version == "2.0"
    assert target.find("torch") is None
    assert packages_of(target, "/srv/me") == (
        Package(name="app", version="1", requires=("x @ file://~/x",), outside=True),
        Package(name="numpy", version="2.0", outside=True),
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": "three"}, "version"),
        ({"bits": True}, "bits"),
        ({"environment": "tent"}, "environment"),
        ({"libc": "newlib 4"}, "libc"),
        ({"installed": {}}, "installed"),
        ({"installed": [[]]}, "installed[0]"),
        ({"installed": [{"name": "x", "version": "1"}]}, "installed[0].path"),
        ({"onnxruntime": {"version": "1.26.0"}}, "onnxruntime.intact"),
    ],
)
def test_fields_that_are_wrong(change: dict[str, Any], field: str) -> None:
    with pytest.raises(Error) as caught:
        parse_target(answer(**change), "/the/python")

    assert caught.value.code == "python-garbage"
    assert caught.value.values == {"path": "/the/python", "field": field}


@pytest.mark.parametrize("text", ["", '{"version": ', '{"version": ' + "[" * 100_000])
def test_what_is_no_answer_is_told_as_none(text: str) -> None:
    with pytest.raises(Error) as caught:
        parse_target(text, "/the/python")

    assert caught.value.code == "python-garbage"
    assert caught.value.values == {"path": "/the/python", "field": "no answer"}


@pytest.mark.parametrize("name", sorted(ANSWER))
def test_a_field_that_is_missing_is_named_unless_it_need_not_be_there(name: str) -> None:
    text = json.dumps({key: value for key, value in ANSWER.items() if key != name})
    missing = None
    try:
        parse_target(text, "python")
    except Error as error:
        missing = error.values["field"]

    if name in {"libc", "managed_by", "onnxruntime"}:
        assert missing is None
    else:
        assert missing == ("no answer" if name == "version" else name)


def test_too_old() -> None:
    with pytest.raises(Error) as caught:
        parse_target(answer(version="3.7.16"), "python")

    assert caught.value.code == "python-too-old"


@given(st.text() | st.text().map('{"version": '.__add__))
def test_no_output_is_another_exception(text: str) -> None:
    with pytest.raises(Error, match="python-garbage"):
        parse_target(text, "python")


@given(
    st.sampled_from(sorted(ANSWER)),
    st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text() | st.none()),
)
def test_no_field_is_another_exception(name: str, value: object) -> None:
    try:
        target = parse_target(answer(**{name: value}), "python")
    except Error:
        return
    packages_of(target)


def test_what_is_linked_and_what_a_user_installed_belong_to_the_environment() -> None:
    row = {"name": "app", "version": "1", "path": "/srv/me/src/app.egg-info", "editable": True}
    linked = parse_target(answer(installed=[row]), "python")
    users = parse_target(answer(environment="user"), "python")

    assert [package.outside for package in packages_of(linked)] == [False]
    assert {package.outside for package in packages_of(users)} == {False}


@pytest.mark.parametrize(
    ("row", "held"),
    [
        ({"installer": "pip"}, None),
        ({"installer": "conda"}, "conda"),
        ({"installer": "conda", "editable": True}, "editable"),
    ],
)
def test_what_holds_a_distribution(row: dict[str, object], held: str | None) -> None:
    row = {"name": "app", "version": "1", "path": "/app.egg-info"} | row
    (package,) = packages_of(parse_target(answer(installed=[row]), "python"))

    assert package.held == held


def test_in_an_environment_of_pixi_it_holds_what_is_of_conda() -> None:
    row = {"name": "app", "version": "1", "path": "/app.egg-info", "installer": "conda"}
    (package,) = packages_of(parse_target(answer(installed=[row], managed_by="pixi"), "python"))

    assert package.held == "pixi"


def test_a_folder_whose_name_only_begins_alike_is_another_environment() -> None:
    folder = "-of-another"
    purelib = parse_target(answer(), "python").purelib
    row = {"name": "app", "version": "1", "path": f"{purelib}{folder}/app-1.dist-info"}
    (package,) = packages_of(parse_target(answer(installed=[row]), "python"))
    assert package.outside


def test_what_lies_in_either_folder_of_the_environment_is_its_own_also_on_windows() -> None:
    folders = {"purelib": "C:\\env\\Lib", "platlib": "C:\\env\\Lib64"}
    rows = [
        {"name": name, "version": "1", "path": f"{folder}\\{name}-1.dist-info"}
        for name, folder in (*folders.items(), ("other", "C:\\env\\Lib640"))
    ]
    found = packages_of(parse_target(answer(**folders, installed=rows), "python"))

    assert {package.name: package.outside for package in found} == {
        "purelib": False,
        "platlib": False,
        "other": True,
    }
