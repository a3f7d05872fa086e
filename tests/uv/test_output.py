"""uv's words, read and written."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_target import TARGET

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.facts.wheel_tags import tags_of
from ortgpu_fix.plan.wheels import PYPI, Pinned, Wheel
from ortgpu_fix.uv.indexes import Indexes
from ortgpu_fix.uv.output import parse_uv_output, uv_platform
from ortgpu_fix.uv.project import Question
from synthetic import machine

ANSWER = """
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "native"
version = "2.0"
wheels = [
    {{ url = "https://a.org/native-2.0-cp311-abi3-{tag}.whl", hashes = {{ sha256 = "{one}" }} }},
    {{ path = "../w/native-2.0-py3-none-any.whl", size = 7, hashes = {{ sha256 = "{two}" }} }},
]

[[packages]]
name = "torch"
archive = {{ url = "https://b.example/torch-2.7.1-py3-none-any.whl" }}

[[packages]]
name = "pyreadline3"
version = "3.5"
marker = "sys_platform == 'win32'"
wheels = [{{ path = "pyreadline3-3.5-py3-none-any.whl", hashes = {{ sha256 = "{two}" }} }}]
"""
VALUES = {"one": "1" * 64, "two": "2" * 64}
LINUX = {"sys_platform": "linux"}


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (machine("windows", None), "x86_64-pc-windows-msvc"),
        (machine(libc="musl 1.2.4"), "x86_64-unknown-linux-musl"),
        (machine(libc="glibc 2.12"), "x86_64-manylinux_2_17"),
        (machine(libc="glibc 2.27"), "x86_64-manylinux_2_17"),
        (machine(libc="glibc 2.31"), "x86_64-manylinux_2_31"),
        (machine(libc="glibc 2.43", name="aarch64"), "aarch64-manylinux_2_40"),
    ],
)
def test_a_machine_has_a_word(facts: Facts, word: str) -> None:
    assert uv_platform(facts) == word


def parse(
    text: str,
    folder: str = "/w",
    *,
    installed: dict[str, str] | None = None,
    markers: dict[str, str] | None = LINUX,
    plan: tuple[Wheel, ...] = (),
) -> list[Pinned]:
    rows = [Installed(name, version, "/x") for name, version in (installed or {}).items()]
    question = Question(
        wheels=plan,
        version="3.11.7",
        tags=tuple(tags_of(machine())),
        markers=markers,
        target=TARGET._replace(installed=tuple(rows)),
    )
    indexes = Indexes(default="https://a.org/simple")
    return list(parse_uv_output(text, Path(folder), question, indexes))


def test_the_wheels_that_fit_come_the_best_first() -> None:
    text = ANSWER.format(tag="manylinux_2_28_x86_64", **VALUES)

    found = parse(text, "/work/here")

    assert [(one.wheel.file, one.wheel.size, one.url) for one in found] == [
        (
            "native-2.0-cp311-abi3-manylinux_2_28_x86_64.whl",
            0,
            "https://a.org/native-2.0-cp311-abi3-manylinux_2_28_x86_64.whl",
        ),
        ("native-2.0-py3-none-any.whl", 7, "file:///work/here/../w/native-2.0-py3-none-any.whl"),
    ]


def test_what_is_installed_already_is_left_out() -> None:
    text = ANSWER.format(tag="win_amd64", **VALUES)

    found = parse(text, installed={"native": "2.0"}, markers=None)

    assert [one.wheel.name for one in found] == ["pyreadline3"]


def test_a_release_without_a_wheel_that_fits_is_no_answer() -> None:
    text = ANSWER.format(tag="win_amd64", **VALUES).replace(
        'py3-none-any.whl", size', 'cp39-none-any.whl", size'
    )

    with pytest.raises(KeyError, match="no wheel of native"):
        parse(text)


def row(name: str, *files: str, **more: str) -> str:
    lines = [f'{key} = "{value}"' for key, value in more.items()]
    wheels = [f'{{ url = "https://a.org/{file}", hashes = {{ sha256 = "0" }} }}' for file in files]
    head = ["[[packages]]", f'name = "{name}"', 'version = "1.0"', *lines]
    return "\n".join([*head, f"wheels = [{', '.join(wheels)}]", ""])


def parsed(text: str, **installed: str) -> list[tuple[str, str]]:
    return [(one.wheel.name, one.wheel.file) for one in parse(text, installed=installed)]


def test_what_is_left_out_hides_nothing_that_comes_after_it() -> None:
    by_address = '[[packages]]\nname = "a"\narchive = { url = "https://b.example/a.whl" }\n'
    there = row("b", "b-1.0-py3-none-any.whl")
    elsewhere = row("c", "c-1.0-py3-none-any.whl", marker="sys_platform == 'win32'")
    here = row("D.d", "D.d-1.0-py3-none-any.whl", marker="sys_platform == 'linux'")

    found = parsed(by_address + there + elsewhere + here, b="1.0")

    assert found == [("d-d", "D.d-1.0-py3-none-any.whl")]
    assert parsed(there, b="0.9") == [("b", "b-1.0-py3-none-any.whl")]


def test_of_the_tags_of_one_wheel_the_best_counts() -> None:
    """`py2.py3` fits as well as `py3`; the platform's own is better than any."""
    files = [
        "a-1.0-py2.py3-none-any.whl",
        "a-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
        "a-1.0-cp311-cp311-win_amd64.whl",
        "a-1.0-cp311-cp311-manylinux_2_28_x86_64.manylinux_2_12_x86_64.whl",
    ]

    assert [file for _, file in parsed(row("a", *files))] == [files[3], files[1], files[0]]


def test_an_index_has_to_tell_the_hash_of_what_is_chosen() -> None:
    text = row("b", "b-1.0-py3-none-any.whl").replace('{ sha256 = "0" }', "{}")

    with pytest.raises(Error) as caught:
        parse(text)

    assert caught.value.code == "index-no-hash"
    assert caught.value.values == {"file": "b-1.0-py3-none-any.whl", "url": "https://a.org"}


def test_a_torch_whose_file_nobody_knows_has_to_have_one_that_fits() -> None:
    torch = Wheel("torch", "1.0", PYPI, "", 0, "")

    with pytest.raises(KeyError, match=r"no wheel of torch 1\.0"):
        parse(row("torch", "torch-1.0-cp39-none-win_amd64.whl"), plan=(torch,))


def test_an_index_with_other_files_lacks_that_of_the_plan() -> None:
    wanted = Wheel("gpu", "1.0", PYPI, "gpu-1.0-py3-none-any.whl", 5, "1" * 64)

    with pytest.raises(Error) as caught:
        parse(row("gpu", "gpu-1.0-2-py3-none-any.whl"), plan=(wanted,))

    assert caught.value.code == "file-not-on-index"
    assert caught.value.values["file"] == "gpu-1.0-py3-none-any.whl"
