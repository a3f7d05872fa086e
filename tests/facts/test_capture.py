"""Facts out of what was captured, and the captures that are kept beside these tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortgpu_fix.errors import Error
from ortgpu_fix.facts import capture
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.capture import Capture, Child
from ortgpu_fix.facts.model import Library, Platform

FOLDER = Path(__file__).parents[1] / "captures"
RECORDED = sorted(path.parent.name for path in FOLDER.glob("*/capture.json"))
NAMES = {"Tesla T4": "7.5", "NVIDIA GeForce RTX 3080": "8.6"}


def document(name: str, file: str) -> Any:
    return json.loads((FOLDER / name / file).read_text("utf-8"))


def recorded(name: str) -> Capture:
    return capture.from_json(document(name, "capture.json"))


@pytest.fixture(name="plain", scope="module")
def plain_capture() -> Capture:
    return recorded("linux-container-without-driver")


@pytest.mark.parametrize("name", RECORDED)
def test_the_facts_of_every_recorded_machine(name: str) -> None:
    found = capture.facts(recorded(name), NAMES.get)

    assert document(name, "expected.json")["facts"] == json.loads(
        json.dumps(facts_json.to_json(found))
    )


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_machine_is_written_as_it_was_read(name: str) -> None:
    written = json.loads(json.dumps(capture.to_json(recorded(name))))

    assert document(name, "capture.json") == written


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.json")), ids=lambda path: path.parent.name)
def test_nothing_private_is_kept(path: Path) -> None:
    text = path.read_text("utf-8")

    for private in ("/root", "/home", "/tmp/", "\\\\Users\\\\", ".pyenv", "GPU-", "@"):  # noqa: S108
        assert private not in text


def test_the_first_library_of_a_name_is_the_one_that_is_loaded(plain: Capture) -> None:
    libraries = (
        ("/first/libcudnn.so.9", "/first/libcudnn.so.9.1.0"),
        ("/second/libcudnn.so.9", "/second/libcudnn.so.9.8.0"),
        ("C:\\CUDA\\bin\\cublas64_12.dll", "C:\\CUDA\\bin\\cublas64_12.dll"),
    )
    found = capture.facts(plain._replace(libraries=libraries), NAMES.get)

    assert found.libraries == (
        Library(name="cublas64_12.dll", path="C:\\CUDA\\bin\\cublas64_12.dll"),
        Library(name="libcudnn.so.9", path="/first/libcudnn.so.9", version="9.1.0"),
    )


def test_windows(plain: Capture) -> None:
    windows = plain._replace(
        system="win32",
        machine="AMD64",
        inside=plain.inside.replace('"linux-x86_64"', '"win-amd64"').replace(
            "glibc 2.36", "glibc 1"
        ),
        texts={"windows": "10.0.22631"},
        libraries=(("C:\\S32\\msvcp140.dll", "C:\\S32\\msvcp140.dll"),),
        versions={"C:\\S32\\msvcp140.dll": "14.42.34438.0"},
    )
    found = capture.facts(capture.from_json(capture.to_json(windows)), NAMES.get)
    platform = found.platform

    assert (platform.system, platform.machine) == ("windows", "x86_64")
    assert platform.distribution == "Windows 10.0.22631"
    assert platform.container is None
    assert [row.version for row in found.libraries] == ["14.42.34438.0"]
    assert found.sources["libraries"] == "search"


@pytest.mark.parametrize(
    ("system", "change"),
    [
        ("darwin", ("linux-x86_64", "macosx-14.0-arm64")),
        ("linux", ("linux-x86_64", "linux-ppc64le")),
        ("linux", ('"bits": 64', '"bits": 32')),
    ],
)
def test_systems_without_a_wheel(plain: Capture, system: str, change: tuple[str, str]) -> None:
    inside = plain.inside.replace(*change)

    with pytest.raises(Error, match="platform-unsupported"):
        capture.facts(plain._replace(system=system, inside=inside), NAMES.get)


def test_a_mac_can_stand_for_another_machine(plain: Capture) -> None:
    inside = plain.inside.replace("linux-x86_64", "macosx-14.0-arm64")
    mac = plain._replace(system="darwin", machine="arm64", inside=inside)

    platform = capture.facts(mac, NAMES.get, elsewhere=True).platform

    assert platform == Platform(system="linux", machine="x86_64")


def test_libcuda_in_a_child_of_its_own(plain: Capture) -> None:
    asking = '{"library": "nvml", "state": "asking", "call": "nvmlInit"}\n'
    answered = '{"library": "libcuda", "state": "answered", "code": 100, "cuda": 12020}\n'
    children = {
        "gpu_query": Child(stdout=asking, returncode=-11),
        "gpu_query libcuda": Child(stdout=answered, returncode=0),
    }
    driver = capture.facts(plain._replace(children=children), NAMES.get).driver

    assert driver is not None
    assert driver.cuda == "12.2"
    assert driver.error == "crashed: NVML crashes in nvmlInit"


def test_an_nvidia_smi_that_failed_says_nothing(plain: Capture) -> None:
    row = "NVIDIA A10, 8.6, 24564, 535.104.12\n"
    children = {**plain.children, "nvidia-smi": Child(stdout=row, returncode=9)}

    assert capture.facts(plain._replace(children=children), NAMES.get).driver is None


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"children": {"gpu_query": {"unknown": 1}}},
        {"libraries": [["one"]]},
        {"unknown": 1},
    ],
)
def test_a_recording_that_is_none(change: dict[str, Any]) -> None:
    values = document("linux-container-without-driver", "capture.json")

    with pytest.raises(Error, match="capture-invalid"):
        capture.from_json({**values, **change})


@pytest.mark.parametrize("value", [None, "text"])
def test_no_recording_at_all(value: object) -> None:
    with pytest.raises(Error, match="capture-invalid"):
        capture.from_json(value)


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "/proc/driver/nvidia/version",
                "/proc/driver/nvidia/gpus/0/information",
                "/etc/os-release",
                "/etc/nv_tegra_release",
                "/sys/bus/pci/devices",
            ]
        ),
        st.text() | st.text("NVRM version: Kernel Module Model: 0x10de 0123456789.\n"),
    ),
    st.text() | st.text("NVIDIA A10, 8.6[N/A]0123456789.\n"),
)
def test_facts_of_any_texts_can_be_written_and_read(texts: dict[str, str], rows: str) -> None:
    plain = recorded("linux-container-without-driver")
    children = {**plain.children, "nvidia-smi": Child(stdout=rows, returncode=0)}
    found = capture.facts(plain._replace(texts=texts, children=children), NAMES.get)

    assert facts_json.from_json(json.loads(json.dumps(facts_json.to_json(found)))) == found
