"""The whole role in waves, on hosts that differ, each of which stands for a simulated machine.

Two generations of GPUs with two drivers, a host without a GPU, one that is unreachable, and one
whose environment is not there. The index is on this machine; the wheels are stand-ins.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_hosts import Fleet, add_host

from support import standin_fleet
from support.local_index import LocalIndex, make_wheel
from support.standin_fleet import (
    APPLIES,
    SOME_UNREACHABLE,
    bring_wheels,
    make_controller,
)
from support.standin_wheels import state_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""The exit code of ansible-playbook; that of unreachable hosts goes before."""
WAVES = '{"ortgpu_fix_waves": [1, "100%"]}'
A100 = replace(standin_fleet.A100, python=VERSION)
L4 = replace(standin_fleet.L4, python=VERSION)
SECRET = "https://me:vaulted-secret@localhost/whl"  # noqa: S105
WITHOUT = A100.facts() | {"driver": None, "gpus": []}
REQUIRED = {
    "coloredlogs": "15.0.1",
    "flatbuffers": "25.9.23",
    "numpy": "2.2.6",
    "packaging": "26.0",
    "protobuf": "6.33.0",
    "sympy": "1.14.0",
}
"""What releases of onnxruntime-gpu require besides."""

NUMPY = """
float32 = "float32"

class array(list):
    def __init__(self, values, dtype=None):
        super().__init__(values)
        self.shape = (len(self),)

    def reshape(self, shape):
        self.shape = tuple(shape)
        return self

    def __sub__(self, other):
        return array(mine - its for mine, its in zip(self, other))

    def all(self):
        return False not in self

    def max(self):
        return sorted(self)[-1]

def abs(values):
    return array(value if value > 0 else -value for value in values)

def isfinite(values):
    return array(True for value in values)
"""
"""As much of numpy as the verification asks for."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Six hosts, three of which can have a set; the first by name is not one of them."""
    pytest.importorskip("ansible.release")
    folder = tmp_path_factory.mktemp("waves")
    controller = make_controller(folder / "controller", Path(sys.executable))
    machines = {"gpu1": A100.facts(), "gpu2": L4.facts(), "gpu3": A100.facts()}
    about: dict[str, dict[str, object]] = {
        "cpu1": {"ortgpu_fix_machine": WITHOUT},
        "far1": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9},
        "lost1": {"ortgpu_fix_machine": A100.facts(), "ortgpu_fix_python": "/nowhere"},
        **{name: {"ortgpu_fix_machine": machine} for name, machine in machines.items()},
    }
    for name in about:
        (folder / "hosts" / name).mkdir(parents=True)
        add_host(folder / "hosts" / name, requires=L4.requires if name == "gpu2" else None)
    bring_wheels(controller, (A100, L4), folder)
    for name, version in REQUIRED.items():
        text = NUMPY if name == "numpy" else ""
        make_wheel(folder / "index", name, version, files={f"{name}/__init__.py": text})
    return Fleet(folder=folder, controller=controller, about=about)


def recap(said: str) -> dict[str, dict[str, int]]:
    """Return what the recap counts for each host."""
    lines = said[said.index("PLAY RECAP") :].splitlines()[1:]
    rows = [line.partition(":") for line in lines if ":" in line]
    return {
        host.strip(): {key: int(count) for key, count in re.findall(r"(\w+)=(\d+)", counts)}
        for host, _, counts in rows
    }


def waves(said: str) -> list[set[str]]:
    """Return the hosts of each wave that were changed or found right."""
    parts = said[: said.index("PLAY RECAP")].split(APPLIES)[1:]
    tasks = [part.partition("\nTASK ")[0] for part in parts]
    return [set(re.findall(r"^(?:ok|changed): \[(\w+)\]", task, re.MULTILINE)) for task in tasks]


PLANNED = "for CUDA 13: gpu2; onnxruntime-gpu 1.26.0 for CUDA 12: gpu1, gpu3; no GPU: cpu1"


def test_hosts_that_differ_get_the_sets_of_their_machines_in_waves(fleet: Fleet) -> None:
    alone = state_of(fleet.venv("cpu1"))
    mine = dict.fromkeys(("ortgpu-fleet/facts/mine.json", "ortgpu-fleet/gpu.txt", "gpu1.json"), "")
    for name, text in mine.items():
        (fleet.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (fleet.folder / name).write_text(text)
    secret: Any = {f"ortgpu_fix_{name}_index_url": SECRET for name in ("torch", "tensorrt")}
    with LocalIndex(fleet.folder / "index") as index:
        address = index.url.replace("//", "//me:vaulted-secret@")
        here = {path.name for path in fleet.folder.iterdir()} | {"home", "inventory.json"}
        code, said = fleet.run("-vvv", "-e", WAVES, ortgpu_fix_index_url=address, **secret)

        assert code == SOME_UNREACHABLE
        assert waves(said) == [{"gpu1"}, {"gpu2", "gpu3"}], said
        assert PLANNED in said
        assert "vaulted-secret" not in said
        assert {name: (fleet.folder / name).read_text() for name in mine} == mine
        assert {path.name for path in fleet.folder.iterdir()} == here, "a file was left"
        old, new = fleet.installed("gpu1"), fleet.installed("gpu2")
        assert old == fleet.installed("gpu3")
        assert any(name.startswith("nvidia_cudnn_cu12-") for name in old)
        assert any(name.startswith("nvidia_cudnn_cu13-") for name in new)
        assert "onnxruntime-1.22.1" not in old | new
        assert state_of(fleet.venv("cpu1")) == alone
        counts = recap(said)
        assert (counts["far1"]["unreachable"], counts["far1"]["failed"]) == (1, 0)
        assert (counts["lost1"]["unreachable"], counts["lost1"]["failed"]) == (0, 1)
        assert {host: row["changed"] for host, row in counts.items() if row["changed"]} == {
            "gpu1": 1,
            "gpu2": 1,
            "gpu3": 1,
        }
        assert not fleet.left_behind()
