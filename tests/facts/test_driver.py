"""Who is believed about driver and GPUs, without any machine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.facts.driver import Evidence, Reading, judge_driver
from ortgpu_fix.facts.driver_replies import LibraryReply, parse_reply
from ortgpu_fix.facts.model import Driver, Gpu

ABSENT = LibraryReply(state="absent")
A100 = Gpu(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", memory_mib=81920)
NVML = LibraryReply(state="answered", driver="535.104.12", cuda="12.2", gpus=(A100,))
LIBCUDA = LibraryReply(state="answered", cuda="12.2", gpus=(A100,), file="/x/libcuda.so.535.104.12")


def read(nvml: LibraryReply = ABSENT, libcuda: LibraryReply = ABSENT, **more: Any) -> Reading:
    names = {"NVIDIA A100-SXM4-80GB": "8.0"}
    return judge_driver(Evidence(nvml=nvml, libcuda=libcuda, **more), names.get)


def test_a_driver_library_of_another_release_is_noted() -> None:
    """cuda-compat, before the driver's own on the loader's path."""
    other = LIBCUDA._replace(cuda="13.0", file="/usr/local/cuda/compat/libcuda.so.580.95.05")

    assert read(NVML, other).sources["driver.library"] == "libcuda.so.580.95.05"
    assert "driver.library" not in read(NVML, LIBCUDA).sources
    named_alike = LIBCUDA._replace(file="/x/libcuda.so.1.d/libcuda.so.535.104.12")
    assert read(libcuda=named_alike).driver == Driver(version="535.104.12", cuda="12.2")
    assert "driver.library" not in read(NVML, LIBCUDA._replace(file="/x/libcuda.so.1")).sources


def test_the_stub_of_a_toolkit_is_no_driver() -> None:
    """`/usr/local/cuda/lib64/stubs` on the loader's path: cuInit error 34."""
    stub = LibraryReply(state="answered", code=34, cuda="12.4")

    assert read(libcuda=stub).driver is None
    beside = read(NVML._replace(cuda="11.7"), stub)
    assert beside.driver is not None
    assert (beside.driver.cuda, beside.sources["driver.cuda"]) == ("11.7", "nvml")


def test_a_name_that_only_libcuda_can_resolve() -> None:
    """NVML of JetPack 6 knows the integrated GPU by another name, and no capability."""
    nvml = LibraryReply(state="answered", driver="540.4.0", gpus=(Gpu(name="Orin (nvgpu)"),))
    libcuda = LibraryReply(
        state="answered", cuda="12.6", gpus=(Gpu(name="Orin", compute_capability="8.7"),)
    )

    assert read(nvml, libcuda).gpus == (Gpu(name="Orin (nvgpu)", compute_capability="8.7"),)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_the_last_word_of_a_library_counts() -> None:
    text = lines(
        {"library": "nvml", "state": "asking", "call": "nvmlInit"},
        {
            "library": "nvml",
            "state": "answered",
            "code": 0,
            "driver": " 535.104.12 ",
            "cuda": 12020,
            "gpus": [
                {"name": "A", "compute_capability": [8, 0], "memory": 1 << 30, "mig": True},
                {"name": 1, "compute_capability": [8], "memory": -1},
                {"problem": "GPU is lost"},
                "nonsense",
            ],
        },
        {"library": "libcuda", "state": "absent"},
    )
    asked = parse_reply(text + "noise\n[]\n", "nvml", returncode=0, timed_out=False)

    assert asked == LibraryReply(
        state="answered",
        driver="535.104.12",
        cuda="12.2",
        gpus=(Gpu(name="A", compute_capability="8.0", memory_mib=1024), Gpu(), Gpu(), Gpu()),
        lost="GPU is lost",
        mig=(0,),
    )


@pytest.mark.parametrize(
    ("memory", "mib"),
    [(80 * 2**30, 81920), (2**20 - 1, None), (None, None)],
)
def test_memory_is_told_in_mebibytes(memory: int | None, mib: int | None) -> None:
    text = lines({"library": "nvml", "state": "answered", "gpus": [{"memory": memory}]})
    reply = parse_reply(text, "nvml", returncode=0, timed_out=False)

    assert reply.gpus == (Gpu(memory_mib=mib),)


@pytest.mark.parametrize(
    ("returncode", "timed_out", "state"),
    [(0, False, "hangs"), (-9, True, "hangs"), (-11, False, "crashed"), (1, False, "crashed")],
)
def test_how_it_ended(returncode: int, timed_out: bool, state: str) -> None:  # noqa: FBT001
    text = lines({"library": "nvml", "state": "asking", "call": "nvmlInit"})
    asked = parse_reply(text, "nvml", returncode=returncode, timed_out=timed_out)

    assert (asked.state, asked.call) == (state, "nvmlInit")


def test_no_word_at_all() -> None:
    assert parse_reply("", "nvml", returncode=None, timed_out=False).state == "unasked"
    assert parse_reply("", "nvml", returncode=-9, timed_out=True).state == "hangs"
    strange = lines({"library": "nvml", "state": []}, {"library": "libcuda", "state": "well"})
    assert parse_reply(strange, "nvml", returncode=0, timed_out=False).state == "unasked"
    assert parse_reply(strange, "libcuda", returncode=0, timed_out=False).state == "unasked"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["library", "state", "code", "gpus", "name", "compute_capability", "cuda"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)


@given(st.lists(JSON, max_size=3), st.text(), st.sampled_from([0, 1, -11, None]), st.booleans())
def test_any_answer_is_read(
    rows: list[Any],
    text: str,
    returncode: int | None,
    timed_out: bool,  # noqa: FBT001
) -> None:
    stdout = "".join(json.dumps(row) + "\n" for row in rows) + text
    nvml = parse_reply(stdout, "nvml", returncode=returncode, timed_out=timed_out)

    judge_driver(Evidence(nvml=nvml, libcuda=ABSENT), lambda _: None)
