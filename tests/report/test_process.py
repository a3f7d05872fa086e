"""A running process as text and as JSON, whole."""

from __future__ import annotations

import documents
import pytest

from ortgpu_fix.facts.running import GpuMemory, RunningProcess, loaded_files
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.report.running import running_json, running_sections

CAPI = "/v/lib/python3.11/site-packages/onnxruntime/capi"
FILES = (
    f"{CAPI}/onnxruntime_pybind11_state.so",
    f"{CAPI}/libonnxruntime_providers_cuda.so",
    "/other/libonnxruntime_providers_cuda.so (deleted)",
    "/usr/lib/libcudnn.so.9",
)
TEXTS = load_texts("en")


def process(**changes: object) -> RunningProcess:
    seen = RunningProcess(
        pid=7,
        command="python app.py",
        executable="/usr/bin/python3.11",
        files=loaded_files(FILES),
        can_cuda=True,
        environment={"VIRTUAL_ENV": "/v", "LD_LIBRARY_PATH": "/opt"},
        devices=("/dev/nvidia0",),
        gpus=(GpuMemory(1, 900), GpuMemory(2, None)),
    )
    return seen._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("libcublas.so.13.1.0.3", "libcublas.so.13"),
        ("libcudnn_graph.so.9.14.0", "libcudnn_graph.so.9"),
        ("libcudart.so.11.0", "libcudart.so.11.0"),
        ("libcudart.so.13.0.96", "libcudart.so.13"),
        ("libcudart.so.13", "libcudart.so.13"),
        ("cudnn64_9.dll", "cudnn64_9.dll"),
        ("libonnxruntime.so.1.26.0", "libonnxruntime.so.1.26.0"),
    ],
)
def test_a_systems_library_has_the_name_that_is_asked_for(file: str, name: str) -> None:
    [found] = loaded_files((f"/usr/lib/{file}",))

    assert (found.name, found.path) == (name, f"/usr/lib/{file}")


@pytest.mark.parametrize(
    "file", ["libc.so.6.1", "libcublas.so", "libx.so.1.2.3", "libcudnn.so.9.so.9"]
)
def test_other_files_are_none(file: str) -> None:
    assert loaded_files((f"/usr/lib/{file}",)) == ()


def test_one_of_the_system_and_one_of_a_wheel_are_two() -> None:
    files = loaded_files(("/usr/lib/libcudnn.so.9.14.0", "/v/nvidia/cudnn/lib/libcudnn.so.9"))

    assert process(files=files).twice == ("libcudnn.so.9",)


def test_the_text() -> None:
    shown = running_sections(process(), "not-on-gpu", "ortgpu-fix --python /v", TEXTS)

    assert (
        plain(shown)
        == f"""\
Process 7: python app.py
  The CUDA provider is loaded, and the process does not hold a GPU: its sessions run on the CPU
  See what is wrong in its environment
  GPU 1: 900 MiB
  GPU 2: ? MiB
  libonnxruntime_providers_cuda.so: loaded from several places, which must not be

Loaded
  onnxruntime_pybind11_state.so     {FILES[0]}
  libonnxruntime_providers_cuda.so  {FILES[2][:-10]} (replaced since it began: restart it)
  libonnxruntime_providers_cuda.so  {FILES[1]}
  libcudnn.so.9                     {FILES[3]}

Its variables
  LD_LIBRARY_PATH  /opt
  VIRTUAL_ENV      /v

Next
  ortgpu-fix --python /v"""
    )
    assert {row.style for row in shown[0].rows} == {"bold red", "", "red"}


@pytest.mark.parametrize(
    ("verdict", "style"),
    [("on-gpu", "bold green"), ("cpu-build", "bold red"), ("not-loaded", "bold yellow")],
)
def test_the_verdict_has_its_colour(verdict: str, style: str) -> None:
    shown = running_sections(process(), verdict, "", TEXTS)  # type: ignore[arg-type]

    assert shown[0].rows[0].style == style
    assert [section.heading for section in shown][1:] == ["Loaded", "Its variables"]


def test_what_is_not_there_has_no_heading() -> None:
    bare = process(files=(), environment=None, gpus=None)
    shown = running_sections(bare, "no-onnxruntime", "", TEXTS)

    assert [len(section.rows) for section in shown] == [2]


def test_the_document() -> None:
    found = running_json(process(), "not-on-gpu", "ortgpu-fix --python /v", TEXTS)
    unseen = process(environment=None, devices=None, gpus=None)
    less = running_json(unseen, "not-known", "", TEXTS)

    documents.check(found, "process")
    documents.check(less, "process")
    cuda = "libonnxruntime_providers_cuda.so"
    assert found == {
        "schema": 1,
        "pid": 7,
        "command": "python app.py",
        "executable": "/usr/bin/python3.11",
        "verdict": "not-on-gpu",
        "text": (
            "The CUDA provider is loaded, and the process does not hold a GPU:"
            " its sessions run on the CPU"
        ),
        "onnxruntime": [
            {"name": "onnxruntime_pybind11_state.so", "path": FILES[0], "replaced": False}
        ],
        "providers": [
            {"name": cuda, "path": f"/other/{cuda}", "replaced": True},
            {"name": cuda, "path": FILES[1], "replaced": False},
        ],
        "libraries": [{"name": "libcudnn.so.9", "path": FILES[3], "replaced": False}],
        "twice": [cuda],
        "environment": {"VIRTUAL_ENV": "/v", "LD_LIBRARY_PATH": "/opt"},
        "devices": ["/dev/nvidia0"],
        "gpus": [{"gpu": 1, "mib": 900}, {"gpu": 2, "mib": None}],
        "commands": ["ortgpu-fix --python /v"],
    }
    assert (less["environment"], less["devices"], less["gpus"]) == (None, None, None)
    assert less["commands"] == []
