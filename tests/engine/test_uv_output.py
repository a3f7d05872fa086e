"""uv's words, read and written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ortgpu_fix.engine.uv_output import parse_uv_output, uv_platform
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.facts.wheel_tags import tags_of
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
        (machine(libc="glibc 2.30"), "x86_64-manylinux_2_28"),
        (machine(libc="glibc 2.43", name="aarch64"), "aarch64-manylinux_2_40"),
    ],
)
def test_a_machine_has_a_word(facts: Facts, word: str) -> None:
    assert uv_platform(facts) == word


def test_the_wheels_that_fit_come_the_best_first() -> None:
    text = ANSWER.format(tag="manylinux_2_28_x86_64", **VALUES)

    found = list(parse_uv_output(text, Path("/work/here"), list(tags_of(machine())), {}, LINUX))

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

    found = list(
        parse_uv_output(text, Path("/w"), list(tags_of(machine())), {"native": "2.0"}, None)
    )

    assert [one.wheel.name for one in found] == ["pyreadline3"]


def test_a_release_without_a_wheel_that_fits_is_no_answer() -> None:
    text = ANSWER.format(tag="win_amd64", **VALUES).replace(
        'py3-none-any.whl", size', 'cp39-none-any.whl", size'
    )

    with pytest.raises(KeyError, match="no wheel of native"):
        list(parse_uv_output(text, Path("/w"), list(tags_of(machine())), {}, LINUX))
