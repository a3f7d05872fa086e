"""Product names to compute capabilities."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.facts.gpu_names import (
    capability_by_name,
    gpus_like,
    product_name,
    with_capabilities,
)
from ortgpu_fix.facts.model import Gpu

LOOK_UP = capability_by_name(load_table("gpus"))


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA GeForce RTX 5060 Laptop GPU", "12.0"),
        ("Tesla K80", "3.7"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("GRID V100D-8Q", "7.0"),
        ("H100XM", "9.0"),
        ("NVIDIA GeForce GT 730", None),
        ("", None),
    ],
)
def test_names_as_drivers_report_them(name: str, capability: str | None) -> None:
    assert LOOK_UP(name) == capability


@pytest.mark.parametrize(
    "name",
    [
        *("NVIDIA A1", "Tesla A1", "Tegra A1", "A1 (nvgpu)", "GRID A1", "A1 GPU", "A1 Laptop GPU"),
        *("A1 Mobile", "A1 with Max-Q Design", "A1 Max Q", "A1 Workstation Edition"),
        *("A1 Server Edition", "A1 Generation", "A1 SFF", "A1 Embedded", "A1-AC", "A1 Active"),
        *("A1 NVL", "A1-DGXS-32GB", "A1-FHHL-16GB", "A1-PCIE-40GB", "A1 HBM2", "A1 HBM2e"),
        *(
            "A1 HBM3",
            "A1 HBM3e",
            "A1 SXM",
            "A1-SXM4-80GB",
            "A1 141GB",
            "A1 512 MB",
            "A1 MIG 1g.5gb",
        ),
        *("A1-8Q", "A1-2-10C", "A1-1-10CME", "a1/PCIe", "A1 64G"),
    ],
)
def test_what_is_not_a_part_of_a_product_s_name(name: str) -> None:
    assert product_name(name) == "a1"


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA GeForce RTX 4090 D", "geforce rtx 4090 d"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx 6000 ada"),
        ("SXMX 1", "sxmx 1"),
    ],
)
def test_what_is_a_part_of_it(name: str, product: str) -> None:
    assert product_name(name) == product


def test_a_name_means_its_own_product_or_else_all_that_have_its_words() -> None:
    table = {
        "family": [
            {"compute_capability": "10.0", "names": ["X1 Super"]},
            {"compute_capability": "9.0", "names": ["X1 Ti", "Y1"]},
            {"compute_capability": "8.9", "names": ["X1 Max-Q Mini"]},
        ]
    }

    assert gpus_like(table, "x1") == {
        "8.9": ["X1 Max-Q Mini"],
        "9.0": ["X1 Ti"],
        "10.0": ["X1 Super"],
    }
    assert list(gpus_like(table, "x1")) == ["8.9", "9.0", "10.0"]
    assert gpus_like(table, "NVIDIA X1 Ti") == {"9.0": ["X1 Ti"]}
    assert gpus_like(table, "super x1") == {"10.0": ["X1 Super"]}
    table["family"].append({"compute_capability": "8.0", "names": ["Y1 Ti"]})
    assert gpus_like(table, "NVIDIA Y1") == {"9.0": ["Y1"]}  # and not the other with its word
    assert gpus_like(table, "NVIDIA") == {}
    assert gpus_like(table, "z9") == {}


def test_a_machine_written_by_hand_with_names_only() -> None:
    gpus = (
        Gpu(name="NVIDIA GeForce RTX 5060"),
        Gpu(compute_capability="8.6"),
        Gpu(name="Voodoo"),
        Gpu(),
        Gpu(name="NVIDIA GeForce RTX 5060", compute_capability="8.6"),  # what is said stays
    )
    machine = synthetic.facts()
    named = with_capabilities(machine._replace(gpus=gpus), LOOK_UP)

    assert [gpu.compute_capability for gpu in named.gpus or ()] == [
        *("12.0", "8.6", None, None, "8.6"),
    ]
    assert with_capabilities(machine._replace(gpus=None), LOOK_UP).gpus is None
