"""The tags of machines that are not here, held against what packaging says of this one."""

from __future__ import annotations

import platform
import sys

import pytest
from packaging import tags

from ortgpu_fix.facts.wheel_tags import abi, platforms, tags_of, tags_on
from synthetic import machine


@pytest.mark.skipif(sys.platform != "linux", reason="compares with a Linux interpreter")
def test_of_this_machine_they_are_what_packaging_says() -> None:
    version = platform.python_version()
    here = machine(libc=" ".join(platform.libc_ver()), name=platform.machine(), version=version)

    assert list(tags_of(here)) == list(tags.sys_tags())


def test_windows_has_one_platform() -> None:
    assert platforms(machine("windows", None)) == ("win_amd64",)
    assert platforms(machine("windows", None, "aarch64")) == ("win_arm64",)


def test_arm_has_no_platform_older_than_its_first() -> None:
    names = platforms(machine(libc="glibc 2.18", name="aarch64"))

    assert names == (
        "linux_aarch64",
        "manylinux_2_18_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
    )


def test_musl_has_platforms_of_its_own() -> None:
    assert platforms(machine(libc="musl 1.2.4")) == (
        "linux_x86_64",
        "musllinux_1_2_x86_64",
        "musllinux_1_1_x86_64",
        "musllinux_1_0_x86_64",
    )


def test_a_free_threaded_python_has_another_abi() -> None:
    free = machine(version="3.13.0", free_threaded=True)

    assert abi(free.python.version, free_threaded=free.python.free_threaded) == "cp313t"
    assert {tag.abi for tag in tags_of(free)} - {"abi3t"} == {"cp313t", "none"}


def test_a_libc_without_a_minor_is_its_oldest() -> None:
    assert platforms(machine(libc="musl 1")) == ("linux_x86_64", "musllinux_1_0_x86_64")
    assert platforms(machine(libc="glibc 2")) == ("linux_x86_64",)


def test_platforms_that_had_names_of_their_own_stand_beside_the_same_glibc() -> None:
    names = platforms(machine(libc="glibc 2.17.1"))

    assert names[1:4] == (
        *("manylinux_2_17_x86_64", "manylinux2014_x86_64"),
        "manylinux_2_16_x86_64",
    )
    at = names.index("manylinux2010_x86_64")
    assert names[at - 1 : at + 2 : 2] == ("manylinux_2_12_x86_64", "manylinux_2_11_x86_64")
    assert names[-2:] == ("manylinux_2_5_x86_64", "manylinux1_x86_64")
    assert len(names) == 1 + 13 + 3


def test_what_is_written_in_python_alone_fits_other_pythons_too() -> None:
    of_pypy = list(tags_on(["linux_x86_64"], "3.10.12", implementation="pypy"))
    of_cpython = list(tags_on(["linux_x86_64"], "3.10.12"))

    assert {tag.interpreter for tag in of_pypy if tag.interpreter[:2] != "py"} == {"pp310"}
    assert {tag.abi for tag in of_pypy} == {"none"}
    assert {"pp310-none-any", "py3-none-any", "py310-none-linux_x86_64"} <= {*map(str, of_pypy)}
    assert "cp310-cp310-linux_x86_64" in {*map(str, of_cpython)}
    assert {tag.abi for tag in of_cpython} == {"cp310", "abi3", "none"}
