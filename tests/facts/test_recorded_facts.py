"""Facts as a reader accepted them last: what changes in any of them is seen, and read.

The other tests look at one thing and say why it is so; these look at all the rest. Where a change
is wanted, `ORTGPU_FIX_RECORD=1` writes the files of `tests/recordings/facts` anew, and what git
shows is to be read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from odd import check_recorded, odd

from ortgpu_fix.errors import Error
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.driver import Evidence, judge_driver
from ortgpu_fix.facts.driver_replies import LibraryReply
from ortgpu_fix.facts.model import Gpu

BUILD = {
    "distribution": "onnxruntime-gpu",
    "version": "1.26.0",
    "cuda": "12.8",
    "intact": True,
    "provider": {
        "links": ["libcublas.so.12"],
        "names": ["libcudnn.so.9"],
        "sass": ["8.0", "9.0a"],
        "ptx": ["9.0"],
        "toolset": "14.40",
        "preload_dlls": True,
    },
}
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "platform": {
        "system": "linux",
        "machine": "x86_64",
        "libc": "glibc 2.35",
        "distribution": "Ubuntu 22.04",
        "wsl": True,
        "container": "docker",
        "jetson": "36.4",
    },
    "driver": {"version": "535.104.12", "cuda": "12.2", "error": "no-answer: x"},
    "gpus": [{"name": "NVIDIA A100", "compute_capability": "8.0", "memory_mib": 81920}],
    "toolkits": [{"version": "12.4", "path": "/usr/local/cuda-12.4"}],
    "libraries": [{"name": "libcudnn.so.9", "path": "/usr/lib/libcudnn.so.9", "version": "9.1.0"}],
    "python": {
        "version": "3.11.7",
        "implementation": "CPython",
        "free_threaded": True,
        "executable": "/x/bin/python",
        "environment": "venv",
        "externally_managed": True,
        "autoload": False,
        "project": "uv",
        "locked": "1.26.0",
        "shadow": "/y",
        "command": "~/bin/x",
        "moved_from": "/old",
        "change": "kept",
        "change_size": 5,
    },
    "packages": [
        {
            "name": "Fast_Embed",
            "version": "0.9.1",
            "requires": ["onnxruntime>=1.17"],
            "provided": True,
            "intact": False,
            "libraries": ["a/b.so"],
            "outside": True,
        }
    ],
    "onnxruntime": BUILD,
    "environment": {"LD_LIBRARY_PATH": "/x"},
    "sources": {"gpus": "nvml"},
}
"""Every key, with a value that is not what stands for a missing one."""


def outcome(document: Any) -> str:
    """Return why a document is refused, or what is read otherwise than of the whole one."""
    try:
        read = facts_json.from_json(document)
    except Error as error:
        return str(error)
    whole = facts_json.from_json(DOCUMENT)._asdict()
    differs = {name: repr(now) for name, now in read._asdict().items() if now != whole[name]}
    return json.dumps(differs)


def documents() -> Iterator[str]:
    """The whole document, and each key left out, null, of another kind, odd, and unknown."""
    yield repr(facts_json.from_json(DOCUMENT))
    yield json.dumps(facts_json.to_json(facts_json.from_json(DOCUMENT)))
    for change, document in odd(DOCUMENT):
        yield f"{change}: {outcome(document)}"


A100 = Gpu(name="NVIDIA A100", compute_capability="8.0", memory_mib=81920)
NAMELESS = Gpu(compute_capability="9.0")
NAMED = Gpu(name="NVIDIA A100")
ABSENT = LibraryReply(state="absent")
NVML = LibraryReply(state="answered", driver="535.104.12", cuda="12.2", gpus=(A100,))
CUDA = LibraryReply(state="answered", cuda="12.4", gpus=(A100,), file="/x/libcuda.so.535.104.12")
NVMLS = (
    ABSENT,
    NVML,
    NVML._replace(gpus=(), mig=(0, 2)),
    NVML._replace(gpus=(NAMED, NAMELESS), cuda=None),
    *(LibraryReply(state="answered", code=code) for code in (9, 12, 15, 18, 999)),
    LibraryReply(state="hangs", call="nvmlInit"),
    LibraryReply(state="crashed", call="nvmlInit"),
    LibraryReply(state="unloadable", problem="wrong ELF class"),
    LibraryReply(state="unasked"),
    NVML._replace(gpus=None, lost="GPU is lost"),
)
CUDAS = (
    ABSENT,
    CUDA,
    CUDA._replace(file="/compat/libcuda.so.580.95.05", cuda="13.0"),
    CUDA._replace(gpus=(A100, NAMELESS)),
    *(LibraryReply(state="answered", code=code, cuda="12.4") for code in (34, 100, 802, 803, 804)),
    LibraryReply(state="answered", code=999, cuda="12.4", gpus=()),
    LibraryReply(state="hangs", call="cuInit"),
    LibraryReply(state="crashed", call="cuInit"),
    LibraryReply(state="unloadable", problem="wrong ELF class"),
    LibraryReply(state="unasked"),
)
OTHERS: tuple[dict[str, Any], ...] = (
    {},
    {"smi": ((A100, "550.90.07"),), "proc_version": "550.90.07"},
    {"proc_version": "550.90.07", "proc_gpus": (NAMED,), "pci": (NAMED, NAMELESS)},
    {"pci": (Gpu(),), "proc_gpus": ()},
)


def drivers() -> Iterator[str]:
    """What is believed of every mix of answers."""
    for number, (nvml, cuda) in enumerate(itertools.product(NVMLS, CUDAS)):
        for other in OTHERS:
            read = judge_driver(
                Evidence(nvml=nvml, libcuda=cuda, **other), {"NVIDIA A100": "8.0"}.get
            )
            driver = read.driver and list(read.driver)
            gpus = read.gpus and [list(gpu) for gpu in read.gpus]
            yield f"{number} {list(other)}: {json.dumps([driver, gpus, dict(read.sources)])}"


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    made.__name__: made for made in (documents, drivers)
}


@pytest.mark.parametrize("kind", KINDS)
def test_facts_are_those_that_were_accepted(kind: str) -> None:
    check_recorded(f"facts/{kind}.txt", KINDS[kind]())
