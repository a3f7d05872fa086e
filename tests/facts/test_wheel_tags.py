"""The tags of machines that are not here, held against what packaging says of this one."""

from __future__ import annotations

import platform
import sys

import pytest
from packaging import tags

from ortgpu_fix.facts.wheel_tags import abi, platforms, tags_of
from synthetic import machine


@pytest.mark.skipif(sys.platform != "linux", reason="compares with a Linux interpreter")
def test_of_this_machine_they_are_what_packaging_says() -> None:
    version = platform.python_version()
    here = machine(libc=" ".join(platform.libc_ver()), name=platform.machine(), version=version)

    assert list(tags_of(here)) == list(tags.sys_tags())


def test_windows_has_one_platform() -> None:
    assert platforms(machine("windows", None)) == ("win_amd64",)
    assert platforms(machine("windows", None, "aarch64")) == ("win_arm64",)


def test_a_libc_that_is_not_known_is_taken_as_the_oldest_that_counts() -> None:
    assert platforms(machine(libc=None))[1] == "manylinux_2_28_x86_64"


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
