"""Who is believed about driver and GPUs, without any machine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.facts.driver import Evidence, Reading, judge_driver
from ortgpu_fix.facts.driver_replies import LibraryReply, cuda_version, parse_reply, release
from ortgpu_fix.facts.model import Driver, Gpu

ABSENT = LibraryReply(state="absent")
A100 = Gpu(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", memory_mib=81920)
NAMELESS = Gpu(name="NVIDIA A100-SXM4-80GB")
NVML = LibraryReply(state="answered", driver="535.104.12", cuda="12.2", gpus=(A100,))
LIBCUDA = LibraryReply(state="answered", cuda="12.2", gpus=(A100,), file="/x/libcuda.so.535.104.12")


def read(nvml: LibraryReply = ABSENT, libcuda: LibraryReply = ABSENT, **more: Any) -> Reading:
    names = {"NVIDIA A100-SXM4-80GB": "8.0"}
    return judge_driver(Evidence(nvml=nvml, libcuda=libcuda, **more), names.get)


def test_both_answer() -> None:
    reading = read(NVML, LIBCUDA)

    assert reading.driver == Driver(version="535.104.12", cuda="12.2")
    assert reading.gpus == (A100,)
    assert reading.sources == {
        "driver.version": "nvml",
        "driver.cuda": "libcuda",
        "gpus": "nvml",
    }


def test_cuda_of_nvml_where_libcuda_does_not_say() -> None:
    reading = read(NVML, LibraryReply(state="hangs", call="cuDriverGetVersion"))

    assert reading.driver is not None
    assert reading.driver.cuda == "12.2"
    assert reading.sources["driver.cuda"] == "nvml"


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


def test_devices_of_libcuda_where_nothing_else_knows_them() -> None:
    """Jetson: no NVML, no nvidia-smi, no /proc/driver/nvidia/gpus."""
    orin = Gpu(name="Orin", compute_capability="8.7", memory_mib=62841)
    reading = read(libcuda=LibraryReply(state="answered", cuda="12.6", gpus=(orin,)))

    assert reading.driver == Driver(cuda="12.6")
    assert reading.gpus == (orin,)
    assert reading.sources["gpus"] == "libcuda"


def test_a_name_that_only_libcuda_can_resolve() -> None:
    """NVML of JetPack 6 knows the integrated GPU by another name, and no capability."""
    nvml = LibraryReply(state="answered", driver="540.4.0", gpus=(Gpu(name="Orin (nvgpu)"),))
    libcuda = LibraryReply(
        state="answered", cuda="12.6", gpus=(Gpu(name="Orin", compute_capability="8.7"),)
    )

    assert read(nvml, libcuda).gpus == (Gpu(name="Orin (nvgpu)", compute_capability="8.7"),)


def test_a_capability_from_libcuda_by_name_goes_before_the_table() -> None:
    nvml = LibraryReply(state="answered", gpus=(NAMELESS, Gpu(name="other"), Gpu()))
    newer = Gpu(name=NAMELESS.name, compute_capability="8.9")
    gpus = read(nvml, LibraryReply(state="answered", gpus=(newer,))).gpus

    assert gpus == (newer, Gpu(name="other"), Gpu())


def test_mig_is_noted() -> None:
    assert read(NVML._replace(mig=(0, 3)), LIBCUDA).sources["mig"] == "nvml: on for GPU 0, 3"


def test_a_gpu_on_the_bus_without_a_driver() -> None:
    reading = read(pci=(Gpu(name="NVIDIA GPU (PCI 10de:20b2)"),))

    assert reading.driver is None
    assert reading.gpus == (Gpu(name="NVIDIA GPU (PCI 10de:20b2)"),)
    assert reading.sources["gpus"] == "/sys/bus/pci/devices"


def test_nvml_that_counts_none_and_libcuda_that_has_one() -> None:
    assert read(LibraryReply(state="answered", gpus=()), LIBCUDA).gpus == (A100,)


def test_proc_knows_more_gpus_than_libcuda() -> None:
    reading = read(
        LibraryReply(state="crashed", call="nvmlInit"), LIBCUDA, proc_gpus=(NAMELESS, NAMELESS)
    )

    assert reading.gpus is not None
    assert [gpu.compute_capability for gpu in reading.gpus] == ["8.0", "8.0"]
    assert reading.sources["gpus"] == "/proc/driver/nvidia/gpus"


def test_release_of_nvidia_smi() -> None:
    reading = read(libcuda=LIBCUDA, smi=((A100, None), (A100, "535.104.12")))

    assert reading.driver == Driver(version="535.104.12", cuda="12.2")
    assert reading.sources["driver.version"] == "nvidia-smi"


@pytest.mark.parametrize(
    ("evidence", "error", "source"),
    [
        (
            {"nvml": LibraryReply(state="answered", code=18, problem="x")},
            "version-mismatch",
            "nvml",
        ),
        ({"libcuda": LibraryReply(state="answered", code=803)}, "version-mismatch", "libcuda"),
        ({"nvml": LibraryReply(state="hangs", call="nvmlInit")}, "no-answer", "nvml"),
        ({"nvml": NVML, "libcuda": LibraryReply(state="crashed")}, "crashed", "libcuda"),
        ({"libcuda": LibraryReply(state="unloadable", problem="x")}, "unloadable", "libcuda"),
        ({"nvml": LibraryReply(state="unasked")}, "unasked", "nvml"),
        ({"nvml": LibraryReply(state="answered", code=4)}, "nvml-4", "nvml"),
        ({"nvml": NVML, "libcuda": ABSENT}, "libcuda-missing", "libcuda"),
        (
            {
                "nvml": LibraryReply(state="answered", gpus=(Gpu(),), lost="GPU is lost"),
                "libcuda": LIBCUDA,
            },
            "gpu-lost",
            "nvml",
        ),
        (
            {
                "nvml": LibraryReply(state="answered", code=9),
                "libcuda": LIBCUDA,
                "pci": (NAMELESS,),
            },
            "not-loaded",
            "nvml",
        ),
        (
            {"nvml": NVML, "libcuda": LibraryReply(state="answered", code=999)},
            "cuinit-999",
            "libcuda",
        ),
    ],
)
def test_errors(evidence: dict[str, Any], error: str, source: str) -> None:
    reading = read(**evidence)

    assert reading.driver is not None
    assert reading.driver.error is not None
    assert reading.driver.error.split(":")[0] == error
    assert reading.sources["driver.error"] == source


@pytest.mark.parametrize(
    "nvml",
    [
        LibraryReply(state="unasked"),
        LibraryReply(state="answered", code=999, problem="Unknown Error"),
    ],
)
def test_nvidia_smi_makes_up_for_nvml(nvml: LibraryReply) -> None:
    assert read(nvml, LIBCUDA, smi=((A100, "535.104.12"),)).driver == Driver(
        version="535.104.12", cuda="12.2"
    )


def test_gpus_are_not_known_where_nothing_answers() -> None:
    assert read(LibraryReply(state="hangs"), LibraryReply(state="absent")).gpus is None
    assert read(LibraryReply(state="answered", code=999), LibraryReply(state="absent")).gpus is None
    assert read(LibraryReply(state="answered", code=9), LibraryReply(state="crashed")).gpus is None
    assert (
        read(LibraryReply(state="answered", code=9), LibraryReply(state="answered", code=999)).gpus
        is None
    )


def test_no_gpus() -> None:
    assert read().gpus == ()
    assert read(LibraryReply(state="answered", code=9)).gpus == ()
    for code in (0, 34, 100):
        assert read(libcuda=LibraryReply(state="answered", code=code, gpus=())).gpus == ()
    assert read(LibraryReply(state="answered", gpus=())).gpus == ()


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


def test_a_library_that_is_not_there_has_no_more_to_say() -> None:
    text = lines({"library": "nvml", "state": "absent"})

    assert parse_reply(text, "nvml", returncode=0, timed_out=False) == ABSENT


@pytest.mark.parametrize(
    ("memory", "mib"),
    [(80 * 2**30, 81920), (2**20, 1), (2**20 - 1, None), (0, None), (-1, None), (None, None)],
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


@pytest.mark.parametrize(
    ("number", "version"),
    [
        *((12020, "12.2"), (13000, "13.0"), (11080, "11.8"), (12100, "12.10")),
        *((1000, "1.0"), (99999, "99.99"), (999, None), (100_000, None)),
        *((0, None), (None, None), (10**9, None)),
    ],
)
def test_cuda_version(number: int | None, version: str | None) -> None:
    assert cuda_version(number) == version


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("535.104.12", "535.104.12"),
        ("576.80", "576.80"),
        ("R610 (610.43.02)", "610.43.02"),
        ("libcuda.so.1", None),
        ("", None),
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3.4.5", None),
        ("12345.6", None),
        ("535", None),
    ],
)
def test_release(text: str, found: str | None) -> None:
    assert release(text) == found


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
