"""Product names to compute capabilities."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.facts.gpu_names import capability_by_name, with_capabilities
from ortgpu_fix.facts.model import Gpu

LOOK_UP = capability_by_name(load_table("gpus"))


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA GeForce RTX 5060", "12.0"),
        ("NVIDIA GeForce RTX 5060 Laptop GPU", "12.0"),
        ("NVIDIA GeForce GTX 1660 SUPER", "7.5"),
        ("Tesla K80", "3.7"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("GRID A100-3-20C", "8.0"),
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA B200", "10.0"),
        ("GRID V100D-8Q", "7.0"),
        ("GRID V100DX-32C", "7.0"),
        ("GRID A100D-1-10CME", "8.0"),
        ("NVIDIA H100XM-80C", "9.0"),
        ("H100XM", "9.0"),
        ("Orin (nvgpu)", "8.7"),
        ("NVIDIA Tegra Orin (nvgpu)", "8.7"),
        ("NVIDIA RTX PRO 500 Blackwell Generation Laptop GPU", "12.0"),
        ("NVIDIA RTX PRO 1000 Blackwell Laptop GPU", "12.0"),
        ("NVIDIA RTX PRO 3000 Blackwell Laptop GPU", "12.0"),
        ("NVIDIA GeForce GT 730", None),
        ("Voodoo 2", None),
        ("", None),
    ],
)
def test_names_as_drivers_report_them(name: str, capability: str | None) -> None:
    assert LOOK_UP(name) == capability


def test_a_machine_written_by_hand_with_names_only() -> None:
    gpus = (Gpu(name="NVIDIA GeForce RTX 5060"), Gpu(compute_capability="8.6"), Gpu(name="Voodoo"))
    machine = synthetic.facts()
    named = with_capabilities(machine._replace(gpus=gpus), LOOK_UP)

    assert [gpu.compute_capability for gpu in named.gpus or ()] == ["12.0", "8.6", None]
    assert with_capabilities(machine._replace(gpus=None), LOOK_UP).gpus is None
