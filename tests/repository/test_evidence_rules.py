"""From raw readings to rows: supported GPUs, bisection, requirements, TOML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.binaries import gpu_targets
from ortgpu_fix.guests.update import spread

RUNS = [
    ("8.0", (8, 6), True),
    ("9.0a", (9, 0), True),
    ("12.0a", (12, 1), False),
    ("12.0f", (12, 1), True),
    ("10.3f", (10, 0), False),
    ("ptx9.0", (12, 0), True),
    ("ptx9.0", (8, 9), False),
    ("ptx9.0a", (9, 0), True),
]


@pytest.mark.parametrize(("target", "gpu", "expected"), RUNS, ids=str)
def test_where_code_runs(target: str, gpu: tuple[int, int], *, expected: bool) -> None:
    """NVIDIA's rules of compatibility, one example for each."""
    assert gpu_targets.parse(target).runs_on(gpu) is expected


def test_kernels_for_one_gpu_do_not_count() -> None:
    """1.31.1 on Linux: 292 fatbins hold code for 9.0a alone, the general ones all hold it too."""
    groups = {"9.0a": 292, "12.0a 7.5 8.0 8.6 8.9 9.0a": 217, "12.0a 8.0 8.6 8.9 9.0a": 91}

    assert gpu_targets.supported(groups) == (("7.5", "8.0", "8.6", "8.9", "9.0a", "12.0a"), ())


def test_special_kernels_do_not_make_a_gpu_supported() -> None:
    """1.31.1 on Windows: many kernels for 9.0a, none of the general ones."""
    groups = {"9.0a": 290, "12.0a 7.5 8.0 8.6 8.9": 179, "7.5 8.0 8.6 8.9 ptx12.0": 38}

    assert gpu_targets.supported(groups) == (("7.5", "8.0", "8.6", "8.9", "12.0a"), ())


def test_a_gpu_left_out_of_some_files_is_not_supported() -> None:
    """1.29.0 on Windows: 41 of 270 fatbins lack 12.0, and nothing can be compiled for it."""
    groups = {"12.0a 7.5 8.0 8.6 8.9": 181, "12.0a 8.0 8.6 8.9": 48, "7.5 8.0 8.6 8.9": 41}

    assert gpu_targets.supported(groups) == (("7.5", "8.0", "8.6", "8.9"), ())
    assert gpu_targets.partial(groups) == ("12.0a",)


def test_ptx_in_every_file_is_listed() -> None:
    """1.27.0: PTX for 12.0 makes up for the files without machine code for it."""
    groups = {"10.0a 12.0a 7.5 8.0 ptx12.0": 203, "10.0a 7.5 8.0 ptx12.0": 31, "9.0a": 4}

    assert gpu_targets.supported(groups) == (("7.5", "8.0", "10.0a", "12.0a"), ("12.0",))


def test_machine_code_of_an_older_minor_covers() -> None:
    """cuBLAS: 7.5 has its own code in a few files and runs the code for 7.0 in the others."""
    groups = {"5.0 7.0 8.0 ptx8.0": 103, "5.0 7.0 7.5 8.0 ptx8.0": 8, "5.0 6.1": 2}

    assert gpu_targets.supported(groups, with_ptx=False)[0] == ("5.0", "7.0", "7.5", "8.0")


def test_one_target_a_fatbin() -> None:
    """cuFFT: the frequent targets count, those of a few odd kernels do not."""
    groups = {"8.0": 357, "9.0": 393, "5.2": 1, "ptx7.0": 4229, "ptx9.0": 68, "5.0 8.0": 9}

    assert gpu_targets.supported(groups) == (("8.0", "9.0"), ("7.0",))


TARGETS = st.builds(
    "{}{}.{}{}".format,
    st.sampled_from(["", "ptx"]),
    st.integers(3, 12),
    st.integers(0, 9),
    st.sampled_from(["", "a", "f"]),
)
GROUPS = st.dictionaries(
    st.sets(TARGETS, min_size=1, max_size=5).map(lambda group: " ".join(sorted(group))),
    st.integers(1, 300),
    max_size=6,
)


@given(groups=GROUPS, with_ptx=st.booleans())
def test_only_what_is_there_is_supported(groups: dict[str, int], *, with_ptx: bool) -> None:
    """Every listed target is in some fatbin, once, oldest GPU first."""
    sass, ptx = gpu_targets.supported(groups, with_ptx=with_ptx)
    there = {target for group in groups for target in group.split()}

    assert set(sass) | {f"ptx{target}" for target in ptx} <= there
    assert sass == gpu_targets.ordered(sass)


@given(st.lists(st.sampled_from("abc"), max_size=40).map(sorted))
def test_bisection_finds_every_change_that_stays(facts: list[str]) -> None:
    """Facts that change for good are all found, with few questions."""
    asked = []

    def fact(index: int) -> str:
        asked.append(index)
        return facts[index]

    assert spread.by_bisection(range(len(facts)), fact) == facts
    assert len(asked) == len(set(asked))
    assert len(asked) <= 2 + 2 * 6
