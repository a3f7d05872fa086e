"""What a text says of other machines than the writer's, of wishes, and of what was before."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.facts.model import OTHER_PACKAGES
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.pasted.machine import ToldMachine, told_machine
from ortgpu_fix.pasted.reader import MachineReader
from ortgpu_fix.report.told import told_sections

PINS = "numpy==1.23.5\nonnxruntime-gpu==1.15.1\nrich==13.0\n"
TABLE = "Package Version\n------- -------\nnumpy 2.1.1\nonnxruntime-gpu 1.18.1\n"
FREEZE = "$ pip freeze\nnumpy==2.1.1\nonnxruntime-gpu==1.18.1\n"
LIBRARY = "libcudnn.so.9: cannot open shared object file: No such file or directory"


def machine(*texts: str) -> ToldMachine:
    reader = MachineReader()
    for text in texts:
        reader.feed(f"{text}\n")
        reader.end_text()
    return told_machine(reader, load_table("gpus"), "3.12.0")


def said(text: str) -> list[str]:
    found = machine(text)
    told = [f"{each.fact}: {each.value}" for each in found.told]
    return told + [f"{each.fact}? {', '.join(each.values)}" for each in found.contradictions]


def installed(*texts: str) -> dict[str, str]:
    return {row.name: row.version for row in machine(*texts).facts.packages}


@pytest.mark.parametrize(
    "text",
    [
        "implementation 'com.microsoft.onnxruntime:onnxruntime_gpu:1.20.0'",
        "Microsoft.ML.OnnxRuntime.Gpu, the same as onnxruntime-gpu 1.20.0",
    ],
)
def test_a_package_of_another_language_is_none_of_pythons(text: str) -> None:
    assert installed(text) == {}


# Lists


@pytest.mark.parametrize(
    "listed",
    [
        TABLE,
        FREEZE,
        FREEZE.replace("pip", "pip3"),
        FREEZE.replace("pip freeze", "uv pip list --format=freeze"),
        "[pip3] numpy==2.1.1\n[conda] onnxruntime-gpu==1.18.1",
        "numpy  2.1.1\nonnxruntime-gpu  1.18.1",
        "Name: numpy\nVersion: 2.1.1\n\nName: onnxruntime-gpu\nVersion: 1.18.1",
        "# Name  Version  Build  Channel\nnumpy 2.1.1 py39_0\nonnxruntime-gpu 1.18.1 pypi_0 pypi",
    ],
)
@pytest.mark.parametrize("apart", ["", "\n\n\n\n\n"])
def test_what_is_installed_counts_before_what_is_asked_for(listed: str, apart: str) -> None:
    right = {"numpy": "2.1.1", "onnxruntime-gpu": "1.18.1", "rich": "13.0"}

    assert installed(f"{PINS}{apart}{listed}") == right
    assert machine(f"{PINS}{apart}{listed}").contradictions == ()
    assert installed(f"{listed}\n{apart}\n{PINS}" if apart else "", PINS, listed) == right


def test_a_list_that_contradicts_the_first_tells_nothing_at_all() -> None:
    other = "\n\n\n\n\nPackage Version\nnumpy 2.2.0\ntorch 2.4.1\n"

    assert installed(TABLE, other) == {"numpy": "2.1.1", "onnxruntime-gpu": "1.18.1"}


def test_of_two_that_may_be_asked_for_neither_is_taken_beside_a_list() -> None:
    found = machine(PINS, "\n\n\n\n\nrich==14.0", TABLE)

    assert [(each.package, each.taken) for each in found.contradictions] == [("rich", False)]
    assert "rich" not in {row.name for row in found.facts.packages}


def test_what_is_asked_for_counts_where_nothing_else_is_told() -> None:
    assert installed(PINS) == {"numpy": "1.23.5", "onnxruntime-gpu": "1.15.1", "rich": "13.0"}


def test_a_list_begins_soon_after_its_command() -> None:
    late = FREEZE.replace("\n", "\n\n\n\n", 1)
    soon = FREEZE.replace("\n", "\n\n\n", 1)

    assert installed(PINS + "\n" * 5 + late)["numpy"] == "1.23.5"
    assert installed(PINS + "\n" * 5 + soon)["numpy"] == "2.1.1"
    assert installed("$ pip freeze", PINS, TABLE)["numpy"] == "2.1.1"


@pytest.mark.parametrize(
    "between",
    ["", "\n", "$ cat req\n", "$ cat requirements.txt\n", "requirements.in:\n"],
)
@pytest.mark.parametrize("listed", [TABLE, FREEZE])
def test_pins_right_below_a_list_are_no_part_of_it(listed: str, between: str) -> None:
    found = f"{listed}\n{between}onnxruntime-gpu==1.15.1\nnumpy==1.23.5\n"

    assert installed(found) == installed(listed)
    assert machine(found).contradictions == ()


def test_pins_of_other_packages_are_no_part_of_the_list_above_their_file_s_name() -> None:
    pins = "torch==2.0.1\ntorch==2.0.2\n"

    assert "torch" not in installed(f"{FREEZE}# requirements-dev.txt\n{pins}")
    assert installed(f"{FREEZE}torch==2.0.1  # requirements.txt")["torch"] == "2.0.1"


def test_a_second_list_right_below_the_first_is_one_of_its_own() -> None:
    found = machine("$ pip freeze\nnumpy==2.1.1\nrich==13.0\n$ pip freeze\nnumpy==1.23.5\n")

    assert {row.name: row.version for row in found.facts.packages} == {
        "numpy": "2.1.1",
        "rich": "13.0",
    }
    assert [(each.package, each.values) for each in found.contradictions] == [
        ("numpy", ("2.1.1", "1.23.5"))
    ]


def test_a_list_stays_one_however_long_it_is() -> None:
    rows = "".join(f"package-{name}==1.0\n" for name in "abcdefgh")

    assert installed(f"torch==2.0\n\n\n\n\n$ pip freeze\n{rows}torch==2.4\n")["torch"] == "2.4"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (PINS * 3, False),
        (TABLE, False),
        (TABLE + "pip 24.0\n", True),
        ("[pip3] torch==2.4\n[pip3] numpy==2.0\n" * 4, False),
        ("$ pip freeze --all\npip==24.0\n", True),
    ],
)
def test_a_list_is_whole_where_it_shows_that(text: str, *, whole: bool) -> None:
    """Some rows of it, as of `pip list | grep`, are no list of all that is installed."""
    assert (OTHER_PACKAGES not in machine(text).facts.sources) is whole


def test_what_a_whole_list_lacks_is_not_installed() -> None:
    whole = TABLE + "pip 24.0\n"

    assert "torch" in installed(f"{TABLE}here torch 2.4.1")
    assert "torch" not in installed(f"{whole}here torch 2.4.1")
    assert "rich" not in installed(PINS, whole)


def test_the_table_of_conda_is_read() -> None:
    head = "# packages in environment at /opt/x:\n#\n# Name   Version   Build  Channel\n"
    rows = "_libgcc_mutex 0.1 main\nnumpy 1.26.4 py39heeff2f4_0\npython 3.9.19 h955ad1f_1\n"
    found = machine(f"{head}{rows}pytorch 2.3.1 py3.9_cuda12.1 pytorch\n")

    packages = {row.name: row.version for row in found.facts.packages}
    assert packages == {"libgcc-mutex": "0.1", "numpy": "1.26.4", "torch": "2.3.1"}
    assert (found.facts.python.version, found.facts.python.environment) == ("3.9.19", "conda")


# Boxes and quotations


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- [ ] I use Windows 10/11\n- [x] Ubuntu 22.04", ["system: Ubuntu 22.04"]),
        ("  * [ ] RTX 3090\n  * [x] RTX 4090", ["gpus: RTX 4090"]),
        ("+ [ ] Python 3.10", []),
        ("> - [ ] Python 3.10", []),
        ("see [ ] Python 3.10", ["python: 3.10"]),
    ],
)
def test_a_box_that_nobody_checked_tells_nothing(text: str, told: list[str]) -> None:
    assert said(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("> I have a Tesla K80 and Python 3.6\n\nRTX 4080, Python 3.12", ["gpus: RTX 4080"]),
        ("RTX 4080, Python 3.12\n  > GPU: K80, Python 3.6", ["gpus: RTX 4080"]),
        ("> RTX 4080\n> Python 3.12", ["gpus: RTX 4080"]),
        ("> RTX 4080\nPython 3.12", ["gpus: RTX 4080"]),
    ],
)
def test_what_another_wrote_counts_where_nothing_else_is_told(text: str, told: list[str]) -> None:
    assert said(text) == [*told, "python: 3.12"]


def test_a_bracket_without_a_blank_is_no_quotation() -> None:
    assert installed(">torch==2.4.1\ntorchvision==0.19.1") == {
        "torch": "2.4.1",
        "torchvision": "0.19.1",
    }


# The system


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("OS: Linux Mint 22.1\n> on Windows 11 it works", ["system: Linux Mint 22.1"]),
        (f"Pop!_OS 22.04. Her Windows 11 is fine\n{LIBRARY}", ["system: Pop!_OS 22.04"]),
        ("Ubuntu. Or Windows 11\nC:\\x\\y.dll", ["system: Windows"]),
        ("Pop!_OS. Or Windows 11\nC:\\x\\y.dll\n/usr/x", ["system? windows, linux"]),
        (f"Windows 11\n{LIBRARY}", ["system: Windows"]),
        ("on Windows 11\ndriver 560.35.03", ["system: Linux", "driver: 560.35.03"]),
        ("on Windows 11\ndriver 570.181", ["system: Linux", "driver: 570.181"]),
        ("on Windows 11\ndriver 560.70", ["system: Windows", "driver: 560.70"]),
        (
            "[MSC v.1937 64 bit (AMD64)] on win32\ndriver 560.35.03",
            ["system: Windows", "driver: 560.35.03"],
        ),
        (
            "Platform: Windows-10\nPlatform: Linux-6.8",
            ["system: Windows", "system? windows, linux"],
        ),
        ("OS: Linux", ["system: Linux"]),
        ("OS: Void Linux", ["system: Linux"]),
        ("Arch Linux", ["system: Linux"]),
        ("openSUSE Leap 15.6", ["system: openSUSE Leap 15.6"]),
        ("EndeavourOS", ["system: Linux"]),
        ("AlmaLinux 9.4", ["system: AlmaLinux 9.4"]),
        ("Gentoo", ["system: Linux"]),
        ("Kali", ["system: Linux"]),
        (
            "Debian 11 builds it, Ubuntu 24.04 runs it",
            ["system: Linux", "system? Debian 11, Ubuntu 24.04"],
        ),
        ("Ubuntu 22.04.5 LTS\nUbuntu 22", ["system: Ubuntu 22.04"]),
        ("gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", ["system: Linux"]),
        ("WSL2 here\nUbuntu 22.04", ["system: Ubuntu 22.04 (WSL)"]),
    ],
)
def test_windows_of_somebody_else_is_not_this_system(text: str, told: list[str]) -> None:
    assert said(text) == told


def test_windows_has_no_distribution() -> None:
    found = machine("Platform: Windows-10\nUbuntu 22.04 in docker")

    assert found.facts.platform.distribution is None
    assert [(each.value, each.line) for each in found.told] == [("Windows", 1)]


def test_the_line_of_a_system_is_the_one_that_names_it() -> None:
    def line(text: str) -> int:
        return machine(text).told[0].line

    assert line("on linux\n/usr/x\nUbuntu 22.04") == 3
    assert line("wsl2 here\nUbuntu 22.04") == 1
    assert line("Ubuntu\nWindows 11\n/usr/x\n/home/y") == 1
    assert line("Windows 11\ndriver 560.35.03") == 2


# The environment


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("/opt/conda/envs/yolo/lib/python3.10/site-packages/onnxruntime/x.py", "conda"),
        ("/opt/conda/lib/python3.10/site-packages/onnxruntime/x.py", "conda"),
        (r"C:\ProgramData\miniconda3\envs\roop\lib\site-packages\onnxruntime\x.py", "conda"),
        (r"C:\Users\me\anaconda3\Lib\site-packages\x.py", "conda"),
        ("/home/me/miniforge3/envs/a/bin/python", "conda"),
        (r"D:\mambaforge\envs\a\python.exe", "conda"),
        ("(base) $ conda activate roop", "conda"),
        ("conda activate roop", "conda"),
        ("then `conda activate roop`", "conda"),
        ("# packages in environment at /opt/x:", "conda"),
        ("not conda activate: no", "venv"),
        ("/opt/conda/lib/python3.10/runpy.py", "venv"),
        ("conda activate x\n/home/me/.venv/bin/python", "venv"),
        ("conda activate x\nC:\\me\\venv\\Scripts\\python.exe", "venv"),
        ("conda activate x\n/a/venv/lib/python3.10/x.py", "venv"),
        ("error: externally-managed-environment", "system"),
        ("error: externally-managed-environment\npython3 -m venv path/to/venv", "system"),
        ("error: externally-managed-environment\nUse path/to/venv/bin/pip", "system"),
        ("error: externally-managed-environment\nso: python3 -m venv mine", "venv"),
        ("error: externally-managed-environment\nso: uv venv", "venv"),
        ("it says error: externally-managed-environment", "venv"),
        ("", "venv"),
    ],
)
def test_the_kind_of_an_environment_is_told(text: str, kind: str) -> None:
    found = machine(f"onnxruntime-gpu 1.20.1\n{text}")
    python = found.facts.python
    told = [(each.value, each.line) for each in found.told if each.fact == "environment"]

    assert (python.environment, python.externally_managed) == (kind, kind == "system")
    assert told == ([] if kind == "venv" else [(kind, 2)])


def test_the_kind_of_an_environment_is_said_between_the_python_and_the_packages() -> None:
    found = machine("conda activate x\nnumpy==1.26.4\nPython 3.10")
    rows = [row.text for row in told_sections(found, load_texts("en"))[0].rows]

    assert [each.fact for each in found.told] == ["python", "environment", "packages"]
    assert "conda (line 1)" in rows[1]


# What was before, and what somebody should have


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("updated the driver from 470.82.01 to 550.120", ["system: Linux", "driver: 550.120"]),
        ("I moved from driver 470.82.01 to driver 550.120", ["system: Linux", "driver: 550.120"]),
        ("driver (updated 528.24 --> 566.36)", ["system: Windows", "driver: 566.36"]),
        ("driver 528.24→566.36", ["system: Windows", "driver: 566.36"]),
        ("went from Python 3.9 to 3.11", []),
        ("Driver -> 566.36", ["system: Windows", "driver: 566.36"]),
        ("GPU ==> RTX 4090", ["gpus: RTX 4090"]),
        ("driver 566.36 -> still broken", ["system: Windows", "driver: 566.36"]),
        ("driver => 566.36", []),
        (
            "<tr><td>Driver</td><td>550.120</td></tr><li>Python 3.10.12</li>",
            ["system: Linux", "driver: 550.120", "python: 3.10.12"],
        ),
        ("<artifactId>onnxruntime_gpu</artifactId><version>1.22.0</version>", []),
        ("RTX 5090 + forge", ["gpus: RTX 5090"]),
        ("driver 560.94 + CUDA 12", ["driver: 560.94"]),
        ("Python 3.10+", []),
        ("After I upgraded to Python 3.10", ["python: 3.10"]),
        ("please think of upgrading to Python 3.10", []),
        ("upgrade to Python 3.10", []),
        ("I had to downgrade to Python 3.10", ["python: 3.10"]),
        ("downgraded to Python 3.10", ["python: 3.10"]),
        ("downgrade to Python 3.10", []),
        ("downgrading to Python 3.10 helps", []),
        ("We use RTX 3090 cards", ["gpus: RTX 3090"]),
        ("they use RTX 3090 cards", []),
    ],
)
def test_a_change_leaves_what_is_now(text: str, told: list[str]) -> None:
    assert said(text) == told


def test_advice_stands_near_what_it_is_about() -> None:
    assert said(f"use {'x' * 20} Python 3.10") == []
    assert said(f"use {'x' * 21} Python 3.10") == ["python: 3.10"]
    assert said(f"Python 3.10{' ' * 12}or newer") == []
    assert said(f"Python 3.10{' ' * 13}or newer") == ["python: 3.10"]


# Names that nvidia-smi cuts

CUT = "|   0  NVIDIA GeForce ...  Off  | 00000000:01:00.0 Off |\n"
READ = "|   1  NVIDIA A10       Off  | 00000000:02:00.0 Off |\n"


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        (CUT, []),
        (f"{CUT}The card is a GeForce RTX 3090", ["RTX 3090"]),
        (f"{CUT}{CUT}The card is a GeForce RTX 3090", []),
        (f"{CUT}GPU 0: NVIDIA GeForce GTX 1080 Ti (UUID: 1)", ["NVIDIA GeForce GTX 1080 Ti"]),
        (f"{CUT}GPU 0: NVIDIA A10 (UUID: 1)\nGPU 1: NVIDIA A10 (UUID: 2)", []),
        (f"{CUT}{READ}", []),
        ("|   0  NVIDIA Whatever 9000  Off  | 00000000:01:00.0 Off |\nMy GPU: RTX 3090", []),
        (f"{CUT}{READ}The card is a GeForce RTX 3090", []),
        (f"{CUT}{READ}GPU 0: Tesla T4\nGPU 1: NVIDIA A10", ["Tesla T4", "NVIDIA A10"]),
    ],
)
def test_a_name_that_is_cut_is_read_elsewhere(text: str, gpus: list[str]) -> None:
    head = "| NVIDIA-SMI 510.108.03   Driver Version: 510.108.03   CUDA Version: 11.6 |\n"

    assert [gpu.name for gpu in machine(head + text).facts.gpus or ()] == gpus
    again = f"{head}{CUT}{head}{CUT}" if text.startswith(f"{CUT}The") else ""
    assert not again or len(machine(f"{again}My GPU: RTX 3090").facts.gpus or ()) == 1
