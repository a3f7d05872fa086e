"""`facts --from-text`: what programs print of a machine, and nothing that a sentence says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import run_here

from ortgpu_fix.data_files import load_table
from ortgpu_fix.facts.outputs import read_outputs
from support.standin_wheels import clean_environment

LINUX = """\
Tue Nov 10 09:12:01 2026
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.12             Driver Version: 535.104.12   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:00:04.0 Off |                    0 |
| N/A   35C    P0              52W / 400W |      0MiB / 40960MiB |      0%      Default |
|                                         |                      |             Disabled |
+-----------------------------------------+----------------------+----------------------+
|   1  Tesla T4                       On  | 00000000:00:05.0 Off |                    0 |
| N/A   35C    P0              26W /  70W |      0MiB / 15360MiB |      0%      Default |
+-----------------------------------------+----------------------+----------------------+
"""
WINDOWS = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 566.36                 Driver Version: 566.36         CUDA Version: 12.7     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                  Driver-Model | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GeForce RTX 3060 ...  WDDM  |   00000000:01:00.0  On |                  N/A |
|  0%   39C    P8             12W /  170W |     703MiB /  12288MiB |      4%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
IN_WSL = LINUX.replace("Driver Version: 535.104.12", "Driver Version: 566.36    ")
CSV = """\
name, driver_version, compute_cap, memory.total [MiB]
NVIDIA GeForce RTX 5060, 581.29, 12.0, 8151 MiB
"""
TABLE = """\
Package         Version
--------------- -----------
numpy           1.26.4
onnxruntime-gpu 1.20.1
pip             24.0
torch           2.5.1+cu121
"""
FROZEN = """\
numpy==1.26.4
onnxruntime-gpu==1.20.1
-e git+https://example.org/app@abc#egg=app
other @ file:///home/me/other
"""
LISTED = (
    '[{"name": "numpy", "version": "1.26.4"}, {"name": "onnxruntime-gpu", "version": "1.20.1"}]\n'
)
INSPECTED = json.dumps(
    {
        "version": "1",
        "pip_version": "24.0",
        "installed": [
            {
                "metadata": {
                    "name": "fastembed",
                    "version": "0.9.1",
                    "requires_dist": ["x"],
                }
            },
            {"metadata": {"name": "pip", "version": "24.0"}, "installer": "pip"},
        ],
        "environment": {
            "platform_system": "Linux",
            "platform_machine": "x86_64",
            "python_full_version": "3.11.7",
        },
    },
    indent=2,
)
CONDA = """\
# packages in environment at /opt/conda/envs/app:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                 conda_forge    conda-forge
onnxruntime-gpu           1.20.1                   pypi_0    pypi
python                    3.10.12         hd12c33a_0_cpython    conda-forge
pytorch                   2.5.1           py3.10_cuda12.1_0    pytorch
"""
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run `facts --from-text`; the text comes on standard input."""

    def start(text: str, *flags: str) -> Any:
        environ = clean_environment() | {"HOME": str(tmp_path), "LANG": "C.UTF-8"}
        done = run_here(
            "facts", "--from-text", "-", *flags, cwd=tmp_path, env=environ, text_in=text
        )
        assert "Traceback" not in done.stderr
        return done

    return start


def document(done: Any) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def packages(read: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["version"] for row in read["packages"]}


def test_the_table_of_nvidia_smi_on_linux_says_system_driver_and_gpus(run: Run) -> None:
    read = document(run(f"My program fails:\n\n{LINUX}"))

    assert read["platform"] == {"system": "linux", "machine": None, "wsl": False}
    assert read["driver"] == {"version": "535.104.12", "cuda": "12.2"}
    assert read["gpus"] == [
        {"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "memory_mib": 40960},
        {"name": "Tesla T4", "compute_capability": "7.5", "memory_mib": 15360},
    ]
    assert read["python"] == {"version": None, "environment": None}
    assert read["packages"] == []
    assert read["sources"]["driver"] == "text, line 5"


def test_on_windows_its_table_cuts_a_name_and_the_card_is_known_all_the_same(run: Run) -> None:
    read = document(run(WINDOWS))

    assert read["platform"] == {"system": "windows", "machine": None, "wsl": False}
    assert read["gpus"] == [
        {"name": "NVIDIA GeForce RTX 3060", "compute_capability": "8.6", "memory_mib": 12288}
    ]


def test_in_wsl_the_driver_is_the_one_of_windows(run: Run) -> None:
    read = document(run(IN_WSL))

    assert read["platform"] == {"system": "linux", "machine": None, "wsl": True}
    assert read["driver"]["version"] == "566.36"


@pytest.mark.parametrize("text", [TABLE, FROZEN, LISTED])
def test_lists_of_pip_are_packages(run: Run, text: str) -> None:
    read = packages(document(run(text)))

    assert read.items() >= {"numpy": "1.26.4", "onnxruntime-gpu": "1.20.1"}.items()
    assert "other" not in read


def test_conda_list_says_the_python_and_what_is_conda_s(run: Run) -> None:
    read = document(run(CONDA))

    assert read["python"] == {"version": "3.10.12", "environment": "conda"}
    assert {row["name"]: row.get("held") for row in read["packages"]} == {
        "libgcc-mutex": "conda",
        "onnxruntime-gpu": None,
        "torch": "conda",
    }


def test_several_outputs_are_one_machine_and_can_be_planned_for(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    file.write_text(run(LINUX + INSPECTED).stdout)
    planned = run_here(
        *("--facts", str(file), "--json"),
        cwd=tmp_path,
        env=clean_environment() | {"HOME": str(tmp_path)},
    )

    assert json.loads(planned.stdout)["verdict"] == "fixable"


def test_what_is_not_shown_is_named_with_the_flags_that_say_it(run: Run) -> None:
    said = run(CSV).stderr
    flags = ("--platform", "windows", "--python", "3.12")
    completed = run(CSV, *flags)

    assert "do not show the system, the architecture, the Python" in said
    assert "--platform NAME --python VERSION" in said
    assert completed.stderr == ""
    read = document(completed)
    assert (read["platform"]["system"], read["platform"]["machine"]) == ("windows", "x86_64")
    assert read["python"]["version"] == "3.12"


def test_flags_complete_and_change_nothing_that_is_shown(run: Run) -> None:
    read = document(run(LINUX, "--driver", "390.10", "--gpu", "6.1", "--platform", "windows"))

    assert read["platform"]["system"] == "linux"
    assert read["driver"]["version"] == "535.104.12"
    assert read["gpus"][0]["compute_capability"] == "8.0"
    alone = document(run(TABLE, "--gpu", "RTX 3060"))
    assert [card["name"] for card in alone["gpus"]] == ["RTX 3060"]
    assert alone["driver"]["version"] is None


@pytest.mark.parametrize(
    "text",
    [
        "I have an RTX 4090 with driver 535.104.12 on Ubuntu 22.04, Python 3.10",
        "We pin these:\nonnxruntime-gpu==1.20.1\ntorch==2.5.1\n",
        "name, age\nbob, 12\n",
        '{"version": "1", "installed": [',
    ],
)
def test_a_text_without_outputs_is_refused_in_one_sentence(run: Run, text: str) -> None:
    done = run(text)

    assert (done.returncode, done.stdout) == (7, "")
    assert "contains no output of nvidia-smi, pip or conda" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (LINUX + WINDOWS, "the driver, the driver's CUDA, the system, the GPU"),
        (TABLE + "\n" + TABLE.replace("1.20.1", "1.19.2"), "the packages"),
        (CONDA + "\n" + INSPECTED, "the Python"),
    ],
)
def test_outputs_of_two_machines_are_refused_with_what_differs(
    run: Run, text: str, facts: str
) -> None:
    done = run(text)

    assert done.returncode == 7
    assert f"contains outputs of two machines: they differ in {facts}\n" in done.stderr


OLD_SMI = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.130                Driver Version: 384.130                   |
|-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
"""
OF_OTHERS = json.dumps(
    {
        "version": "1",
        "installed": [
            {"metadata": {"version": "1.0"}},
            {"metadata": {"name": "pip", "version": "24.0"}},
        ],
        "environment": {
            "platform_system": "Darwin",
            "platform_machine": "riscv64",
            "python_full_version": 3,
        },
    },
    indent=2,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (OLD_SMI, {"driver": "384.130"}),
        (
            "driver_version, memory.total [MiB]\n581.29, 8151 MiB\n",
            {"driver": "581.29"},
        ),
        (
            "name, driver_version\nTesla T4, [N/A]\n",
            {"gpus": [{"name": "Tesla T4", "compute_capability": "7.5"}]},
        ),
        (
            CONDA.replace("python  ", "perl  "),
            {
                "packages": {
                    "libgcc-mutex": {"version": "0.1", "held": "conda"},
                    "onnxruntime-gpu": {"version": "1.20.1"},
                    "perl": {"version": "3.10.12", "held": "conda"},
                    "torch": {"version": "2.5.1", "held": "conda"},
                }
            },
        ),
        ('{\n  "name": "mine"\n}\n', {}),
        (OF_OTHERS, {"packages": {"pip": {"version": "24.0"}}}),
        ('{"version": "1", "installed": [], "environment": null}\n', {}),
    ],
)
def test_what_an_output_does_not_say_is_not_known(text: str, shown: dict[str, Any]) -> None:
    read = read_outputs(text, load_table("gpus"))

    assert {name: row.value for name, row in read.shown.items()} == shown


def test_a_cut_name_that_begins_several_products_of_one_capability_is_known() -> None:
    cut = WINDOWS.replace("NVIDIA GeForce RTX 3060 ...", "NVIDIA GeForce GTX 106...  ")
    read = read_outputs(cut, load_table("gpus"))

    [card] = read.shown["gpus"].value
    assert (card["name"], card["compute_capability"]) == ("NVIDIA GeForce GTX 106", "6.1")
