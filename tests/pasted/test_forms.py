"""Each form in which programs and people name what a machine has, and what is read from it."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.pasted import reader as reading
from ortgpu_fix.pasted.machine import ToldMachine, is_another, told_machine
from ortgpu_fix.pasted.reader import MachineReader
from ortgpu_fix.report.told import told_json, told_sections, unknown_names

ASSUMED = "3.12.0"
FORMS: list[tuple[str, list[str], str, str]] = [
    (
        "NVIDIA GeForce RTX 3090, 535.104.12",
        ["system 1: Linux", "driver 1: 535.104.12", "gpus 1: NVIDIA GeForce RTX 3090"],
        "",
        "",
    ),
    ("GPU 0: NVIDIA A10G\nGPU 1: Tesla T4", ["gpus 1: NVIDIA A10G, Tesla T4"], "", ""),
    (
        "GPU 0: Tesla T4 (UUID: GPU-1)\nGPU 1: Tesla T4 (UUID: GPU-2)\nGPU 0: NVIDIA H100 PCIe",
        ["gpus 1: Tesla T4, Tesla T4"],
        "",
        "",
    ),
    (
        "Device: cuda:0 NVIDIA GeForce RTX 3070 Laptop GPU : cudaMallocAsync",
        ["gpus 1: NVIDIA GeForce RTX 3070 Laptop GPU"],
        "",
        "",
    ),
    ("Nvidia driver version: 550.54.14", ["system 1: Linux", "driver 1: 550.54.14"], "", ""),
    ("I have the 566.36 nvidia driver", ["system 1: Windows", "driver 1: 566.36"], "windows", ""),
    ("Driver 31.0.15.2686", ["system 1: Windows", "driver 1: 526.86"], "windows", ""),
    ("My card is an RTX 4070 Ti SUPER", ["gpus 1: RTX 4070 Ti SUPER"], "", ""),
    ("GPU: A100", ["gpus 1: A100"], "", ""),
    ("AWS g5 with A10G", [], "", ""),
    ("The 4090 is here, 3 s a frame", ["gpus 1: 4090"], "", ""),
    ("On a 4090, 3 s a frame", ["gpus 1: 4090"], "", ""),
    ("My 3080 ti fails", ["gpus 1: 3080 ti"], "", ""),
    ("It works on my 4070ti.\nOn the 5090 it fails", ["gpus neither: 4070ti, 5090"], "", ""),
    *((f"GPU: the {words}", [], "", "") for words in ("2080 x 9", "3060×9", "3060 images", "1080")),
    *((f"GPU: {word} 2080 a", ["gpus 1: 2080"], "", "") for word in ("my", "our", "an", "the")),
    ("INFO:audio_separator:PyTorch Version: 2.3.0", ["packages 1: torch 2.3.0"], "", ""),
    (
        "INFO:x:ONNX Runtime GPU package installed with version: 1.18.0",
        ["packages 1: onnxruntime-gpu 1.18.0"],
        "",
        "",
    ),
    (
        (
            "| Package | Version |\n|---|---|\n| **onnxruntime** | 1.22.0 |\n| other | `1.0` |\n"
            "| GPU | RTX 3090 |\n| next | 1.0 |"
        ),
        ["gpus 5: RTX 3090", "packages 3: onnxruntime 1.22.0, other 1.0"],
        "",
        "",
    ),
    ("| `torch` | 2.6.0+cu124 |", ["packages 1: torch 2.6.0+cu124"], "", ""),
    ("| onnxruntime-gpu | 1.19.2 | 12.x |", [], "", ""),
    ("We use an RTX 3060 and an RTX 4090", ["gpus neither: RTX 3060, RTX 4090"], "", ""),
    ("Two RTX 3090 here, RTX 3080 there", ["gpus 1: RTX 3090"], "", ""),
    (
        "platform: Linux-5.15.0-91-generic-x86_64-with-glibc2.35",
        ["system 1: Linux"],
        "glibc 2.35",
        "",
    ),
    ("Platform: Windows-10-10.0.22631-SP0", ["system 1: Windows"], "windows", ""),
    ("OS: Ubuntu 22.04.3 LTS (x86_64)", ["system 1: Ubuntu 22.04"], "", ""),
    ("Debian 12\nlibc: glibc-2.36", ["system 1: Debian 12"], "glibc 2.36", ""),
    ("FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", ["system 1: Ubuntu 22.04"], "docker", ""),
    ("nvcr.io/nvidia/pytorch:24.05-py3", ["system 1: Linux"], "docker", ""),
    ("running on aarch64, Ubuntu 20.04", ["system 1: Ubuntu 20.04"], "aarch64", ""),
    ("Windows 10\nLinux", ["system neither: windows, linux"], "", ""),
    (
        "uname: Linux x 5.15.90.1-microsoft-standard-WSL2 x86_64",
        ["system 1: Linux (WSL)"],
        "wsl",
        "",
    ),
    ("I use WSL2 with Ubuntu 22.04", ["system 1: Ubuntu 22.04 (WSL)"], "wsl", ""),
    ('Traceback:\n  File "C:\\Users\\me\\app.py"', ["system 2: Windows"], "windows", ""),
    ("/usr/lib/libcudnn.so.9", ["system 1: Linux"], "", ""),
    (
        "Python version: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] (64-bit runtime)",
        ["python 1: 3.10.12"],
        "",
        "3.10.12",
    ),
    (
        (
            "Python 3.11.7 (tags/v3.11.7:fa7a6f2, Dec  4 2023, 19:24:49) [MSC v.1937 64 bit ("
            "AMD64)] on win32"
        ),
        ["system 1: Windows", "python 1: 3.11.7"],
        "windows",
        "3.11.7",
    ),
    ("Python 3.10\nPython 3.12", ["python neither: 3.10, 3.12"], "", ""),
    ("Python 3.10\nPython 3.10.4", ["python 2: 3.10.4"], "", "3.10.4"),
    (
        "/opt/venv/lib/python3.11/site-packages/x.py",
        ["system 1: Linux", "python 1: 3.11"],
        "",
        "3.11",
    ),
    ("C:\\Python312\\lib\\x.py", ["system 1: Windows", "python 1: 3.12"], "windows", "3.12"),
    (
        (
            "Package    Version\n---------- -------\nnumpy      1.26.4\nonnxruntime-gpu 1.20."
            "1\n\nother 1.0\nword one\nlast 2.0"
        ),
        ["packages 3: onnxruntime-gpu 1.20.1, numpy 1.26.4, other 1.0"],
        "",
        "",
    ),
    (
        "[pip3] numpy==1.26.4\n[conda] torch==2.3.0",
        ["packages 1: torch 2.3.0, numpy 1.26.4"],
        "",
        "",
    ),
    (" + onnxruntime-gpu==1.22.0", ["packages 1: onnxruntime-gpu 1.22.0"], "", ""),
    ("Name: onnxruntime-gpu\nVersion: 1.18.1", ["packages 2: onnxruntime-gpu 1.18.1"], "", ""),
    ("Name: torch\nSummary: x\nVersion: 2.1.0", ["packages 3: torch 2.1.0"], "", ""),
    ("onnxruntime-gpu version: 1.23.0", ["packages 1: onnxruntime-gpu 1.23.0"], "", ""),
    ("PyTorch version: 2.4.0+cu121", ["packages 1: torch 2.4.0+cu121"], "", ""),
    (
        "onnxruntime-gpu\nONNX Runtime version: 1.17.1",
        ["packages 2: onnxruntime-gpu 1.17.1"],
        "",
        "",
    ),
    ("ONNX Runtime GPU version: 1.17.1", ["packages 1: onnxruntime-gpu 1.17.1"], "", ""),
    (
        "onnxruntime-gpu\nONNX Runtime Version or Commit ID\n\n1.19.2",
        ["packages 4: onnxruntime-gpu 1.19.2"],
        "",
        "",
    ),
    ("ONNX Runtime Version or Commit ID\n\n1.19.2", [], "", ""),
    (
        "torch 2.4.1, onnxruntime-gpu (1.19.2)",
        ["packages 1: onnxruntime-gpu 1.19.2, torch 2.4.1"],
        "",
        "",
    ),
    (
        "ctranslate2 4.4.0\nnvidia-cudnn-cu12 9.1.0.70",
        ["packages 1: nvidia-cudnn-cu12 9.1.0.70, ctranslate2 4.4.0"],
        "",
        "",
    ),
    (
        (
            "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |\n|   0"
            "  NVIDIA GeForce RTX 3060 ...    On  | 00000000:07:00.0 Off |"
        ),
        ["system 1: Linux", "driver 1: 550.54.14 (CUDA 12.4)", "gpus 2: NVIDIA GeForce RTX 3060"],
        "",
        "",
    ),
    (
        (
            "| NVIDIA-SMI 576.02                 KMD Version: 576.02     CUDA UMD Version: 12"
            ".9     |\n|   0  NVIDIA GeForce RTX 3060      WDDM  | 00000000:07:00.0 Off |"
        ),
        ["system 1: Windows", "driver 1: 576.02 (CUDA 12.9)", "gpus 2: NVIDIA GeForce RTX 3060"],
        "windows",
        "",
    ),
    (
        (
            "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |\n|   0"
            "  NVIDIA Whatever 9000      On  | 00000000:07:00.0 Off |"
        ),
        ["system 1: Linux", "driver 1: 550.54.14 (CUDA 12.4)"],
        "",
        "",
    ),
    ("driver 535.104.12", ["system 1: Linux", "driver 1: 535.104.12"], "", ""),
    ("driver 566.36", ["system 1: Windows", "driver 1: 566.36"], "windows", ""),
    ("driver 570.00", ["driver 1: 570.00"], "", ""),
    ("Jetson AGX Orin", ["gpus 1: Jetson AGX Orin"], "aarch64", ""),
    (
        (
            "onnxruntime_gpu==1.20.0\nnumpy==1.26.0\na==1\nb==2\nc==3\nd==4\ne==5\nf==6\nnvid"
            "ia-cublas-cu12==12.4\ntorch==2.5"
        ),
        [
            (
                "packages 1: onnxruntime-gpu 1.20.0, nvidia-cublas-cu12 12.4, torch 2.5, a 1, b 2,"
                " c 3, d 4, e 5, …"
            )
        ],
        "",
        "",
    ),
]
"""The text; what is told, by line, and what contradicts itself; what differs from an ordinary Linux
with the Python that is assumed."""


def machine(*pieces: str) -> ToldMachine:
    reader = MachineReader()
    for piece in pieces:
        reader.feed(piece)
    return told_machine(reader, load_table("gpus"), ASSUMED)


@pytest.mark.parametrize(("text", "told", "platform", "python"), FORMS)
def test_a_form_is_read(text: str, told: list[str], platform: str, python: str) -> None:
    found = machine(text)
    facts = found.facts
    said = [f"{each.fact} {each.line}: {each.value}" for each in found.told]
    for each in found.contradictions:
        which = "first" if each.taken else "neither"
        said.append(f"{each.fact} {which}: {', '.join(each.values)}")
    where = facts.platform
    words = [
        "windows" if where.system == "windows" else "",
        where.machine if where.machine != "x86_64" else "",
        "wsl" if where.wsl else "",
        where.libc or "",
        where.container or "",
    ]

    assert said == told
    assert " ".join(filter(None, words)) == platform
    assert facts.python.version == (python or ASSUMED)
    assert told_json(found)["told"] == [each._asdict() for each in found.told]
    lines = [row.text for section in told_sections(found, load_texts("en")) for row in section.rows]
    assert len(lines) == len(told)


def test_in_chinese_lists_have_chinese_commas() -> None:
    found, zh = machine("We use an RTX 3060\nand an RTX 4090"), load_texts("zh")
    [said] = [row.text for section in told_sections(found, zh) for row in section.rows]

    assert "RTX 3060、RTX 4090（第 1、2 行）" in said
    assert unknown_names(found, zh) == "系统、驱动、GPU、Python"


def test_a_text_that_comes_in_pieces_has_the_same_lines() -> None:
    assert machine("one\n", "two\nPython 3.10\n", "driver 566.36").told == (
        *machine("one\ntwo\nPython 3.10\ndriver 566.36").told,
    )
    assert machine("x\n\n", "driver 566.36").told[-1].line == 3


def test_so_much_is_read_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 30)
    assert machine("Python 3.10\n" + "x" * 17 + "\ndriver 566.36\n").unknown[1] == "driver"
    assert machine("x" * 40 + "\n", "driver 566.36\n").told == ()
    monkeypatch.setattr(reading, "MOST", 8_000_000)
    monkeypatch.setattr(reading, "KEPT", 1)
    told = machine("Python 3.10\ndriver 566.36\n", "GPU: A100\n")
    assert [each.fact for each in told.told] == ["python"]


def test_the_line_of_a_contradiction_names_both() -> None:
    (section,) = told_sections(machine("numpy==1.0\n\n\n\n\n\nnumpy==2.0\n"), load_texts("en"))
    texts = [row.text for row in section.rows]

    assert any("numpy" in text and "1.0, 2.0" in text and "1, 7" in text for text in texts)
    assert told_sections(machine("nothing"), load_texts("en")) == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(e.g. Python 3.10)", []),
        ("numpy==1.26.4 # onnxruntime-gpu 1.20.1", ["numpy 1.26.4"]),
        ("torch==2.3.0\nhere torch 2.4.1", ["torch 2.3.0"]),
        ("Name: torch  \nVersion: 2.1.0  ", ["torch 2.1.0"]),
        ("Python 3.10.4\nPython 3.10.9", ["3.10.4"]),
        ("Python 3.10\nPython 3.10.9", ["3.10.9"]),
        ("Python version: 3.10\nI also have Python 3.12", ["3.10"]),
        ("onnxruntime-gpu\nONNX Runtime Version or Commit ID\nnone\n1.19.2", []),
        ("I use Python 3.10 here\nand there Python 3.10.9 too", ["3.10.9"]),
        ("Nvidia driver version: 550.54.14\nmy driver 535.104.12", ["Linux", "550.54.14"]),
        ("Windows 10\nLinux\ndriver 535.104.12", ["Linux", "535.104.12"]),
        ("Linux\ndriver 566.36", ["Linux", "566.36"]),
    ],
)
def test_what_counts_more_is_told_alone(text: str, told: list[str]) -> None:
    found = machine(text)

    assert [each.value for each in found.told] == told
    assert found.contradictions == ()


@pytest.mark.parametrize(
    ("lines", "cuda"),
    [
        (["Driver: 566.36", "nvidia-smi shows CUDA 12.7"], "12.7"),
        (["nvidia-smi shows CUDA 12.4", "Driver: 566.36 (CUDA 12.7)"], "12.7"),
        (["Driver: 566.36 (CUDA 12.7)", "nvidia-smi shows CUDA 12.4"], "12.7"),
        (["Driver: 566.36", "nvidia-smi shows CUDA 12.4", "nvidia-smi shows CUDA 12.7"], None),
    ],
)
def test_the_cuda_of_a_driver_is_beside_it_or_the_only_one(
    lines: list[str], cuda: str | None
) -> None:
    driver = machine("\n".join(lines)).facts.driver

    assert driver is not None
    assert (driver.version, driver.cuda) == ("566.36", cuda)


@pytest.mark.parametrize(
    ("head", "wsl"),
    [
        ("NVIDIA-SMI 530.46    Driver Version: 531.61    CUDA Version: 12.1", True),
        ("NVIDIA-SMI 531.61    Driver Version: 531.61    CUDA Version: 12.1", False),
        ("NVIDIA-SMI 470.199.02   Driver Version: 470.161.03   CUDA Version: 11.4", False),
        ("NVIDIA-SMI 531.61    CUDA Version: 12.1", False),
    ],
)
def test_nvidia_smi_of_linux_shows_windows_driver_within_wsl(head: str, *, wsl: bool) -> None:
    assert machine(f"| {head}     |\n").facts.platform.wsl is wsl


def test_a_driver_without_its_cuda_tells_none() -> None:
    reader = MachineReader()
    reader.feed("| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: N/A |\n")

    assert [(each.fact, each.value) for each in reader.seen] == [
        ("driver", "550.54.14"),
    ]


def test_which_of_two_is_taken_is_said() -> None:
    lists = machine("numpy==1.0\n\n\n\n\n\nnumpy==2.0\n")
    drivers = machine("My driver is 535.104.12\nMy driver is 550.54.14\n")
    (row,) = told_sections(drivers, load_texts("en"))[0].rows

    assert [each.taken for each in lists.contradictions] == [True]
    assert "the driver" in row.text
    assert "535.104.12, 550.54.14" in row.text
    assert told_json(drivers)["contradictions"] == [
        {
            "fact": "driver",
            "values": ("535.104.12", "550.54.14"),
            "lines": (1, 2),
            "taken": False,
            "package": None,
        }
    ]


def test_a_machine_is_another_where_a_fact_that_is_told_differs() -> None:
    whole = "Ubuntu 22.04\ndriver 535.104.12\nGPU: A100\n"
    here = machine(whole).facts

    assert not is_another(machine(whole), here)
    assert not is_another(machine("driver 535.104.12"), here)
    assert not is_another(machine("nothing"), machine("GPU: A100\nWindows 11").facts)
    assert not is_another(machine("GPU: A100"), here)
    for other in ("Windows 11", "driver 550.54.14", "GPU: H100"):
        assert is_another(machine(other), here), other
    assert is_another(machine("driver 535.104.12"), machine("Ubuntu").facts)
    assert is_another(machine("GPU: A100"), machine("Ubuntu").facts)


def test_a_card_tells_the_processor() -> None:
    row = "|   0  NVIDIA GH200 480GB      On  | 00000000:07:00.0 Off |\n"

    assert machine(row).facts.platform.machine == "aarch64"


def test_of_many_that_contradict_three_are_told() -> None:
    lines = [f"My driver is 5{number}5.10" for number in range(3, 8)]
    (each,) = machine("\n".join(lines)).contradictions

    assert (each.values, each.lines) == (("535.10", "545.10", "555.10"), (1, 2, 3))


def test_the_source_of_each_fact_is_its_line() -> None:
    found = machine("Ubuntu 22.04\ndriver 535.104.12\nGPU: A100\nPython 3.10\nnumpy==1.26.4\n")

    assert dict(found.document["sources"]) == {
        "platform": "text, line 1",
        "driver": "text, line 2",
        "gpus": "text, line 3",
        "python": "text, line 4",
        "packages": "text, line 5",
        "packages.files": "assumed",
        "packages.others": "assumed",
    }


def test_what_is_taken_first_and_what_not_are_told_apart() -> None:
    def words(text: str) -> str:
        return told_sections(machine(text), load_texts("en"))[0].rows[-1].text

    assert words("numpy==1.0\n\n\n\n\n\nnumpy==2.0\n").endswith("the first is taken")
    neither = words("My driver is 535.104.12\nMy driver is 550.54.14\n")
    assert neither.endswith("none is taken")


@pytest.mark.parametrize(
    "text",
    [
        "Nvidia driver version: 550.54.14",
        "Python 3.10.12 (main, Nov 20 2023) [GCC 11.4.0] on linux",
        "GPU 0: NVIDIA A10G",
    ],
)
def test_what_is_printed_is_seen_once(text: str) -> None:
    reader = MachineReader()
    reader.feed(text)
    seen = [each.fact for each in reader.seen if each.fact != "system"]

    assert len(seen) == 1


def test_pieces_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 30)

    assert machine("x" * 20 + "\n", "x" * 20 + "\n", "driver 566.36\n").told == ()


def test_what_a_plan_takes_besides() -> None:
    facts = machine("Ubuntu 22.04\nnumpy==1.26.4").facts

    assert facts.python.environment == "venv"
    assert facts.platform.distribution == "Ubuntu 22.04"


@pytest.mark.parametrize(
    ("text", "wsl", "system"),
    [
        ("WSL2 here\nPython 3.11.7 (main, Dec 2023) [GCC 11.4.0] on linux", True, "linux"),
        ("WSL2 there\nPython 3.11.7 (main, Dec 2023) [MSC v.1937] on win32", False, "windows"),
    ],
)
def test_wsl_is_believed_where_nothing_surer_speaks_against_it(
    text: str, *, wsl: bool, system: str
) -> None:
    platform = machine(text).facts.platform

    assert (platform.wsl, platform.system) == (wsl, system)


def test_a_release_that_is_named_and_one_that_is_asked_for_contradict_each_other() -> None:
    (each,) = machine("here onnxruntime-gpu 1.20.1\nONNX Runtime version: 1.17.1").contradictions

    assert (each.package, each.values) == ("onnxruntime-gpu", ("1.20.1", "1.17.1"))


def test_a_banner_tells_its_python_without_the_word() -> None:
    told = machine('interpreter "3.10.12 (main, Nov 20 2023)", for python').told

    assert [each.value for each in told] == ["3.10.12"]


def test_lists_before_and_after_a_table_are_two() -> None:
    table = "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |\n"
    found = machine("numpy==1.0\n" + "\n" * 5 + table + "\n" * 5 + "numpy==2.0\ntorch==2.4\n")

    assert [each.package for each in found.contradictions] == ["numpy"]
    assert [row.name for row in found.facts.packages] == ["numpy"]


def test_what_another_command_prints_below_a_table_is_no_package() -> None:
    below = "Python 3.11.7\nNVIDIA-SMI 550.54.14   Driver Version: 550.54.14\nnumpy 1.26.4\n"
    found = machine("Package Version\ntorch 2.4.1\n" + below)

    assert [row.name for row in found.facts.packages] == ["torch", "numpy"]


@pytest.mark.parametrize(
    ("begun", "next_text"),
    [
        ("Package Version", "rich 13.9.4"),
        ("Name: rich", "Version: 13.9.4"),
        ("### ONNX Runtime Version or Commit ID", "1.26.0"),
        ("Python version", "3.10"),
    ],
)
def test_what_one_file_begins_another_does_not_end(begun: str, next_text: str) -> None:
    reader = MachineReader()
    reader.feed(begun + "\n")
    reader.end_text()
    reader.feed(next_text + "\n")

    assert reader.seen == []
    reader.feed(f"{begun}\n{next_text}\n")
    assert len(reader.seen) == 1


def test_the_packages_of_two_texts_are_two_lists() -> None:
    reader = MachineReader()
    reader.feed("numpy==1.0\n")
    reader.end_text()
    reader.feed("numpy==2.0\ntorch==2.4\n")
    found = told_machine(reader, load_table("gpus"), ASSUMED)

    assert [each.package for each in found.contradictions] == ["numpy"]
    assert [row.name for row in found.facts.packages] == ["numpy"]


def test_a_text_after_a_long_one_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 40)
    reader = MachineReader()
    reader.feed("x" * 50 + "\nDriver Version: 550.54.14\n")
    assert reader.seen == []
    reader.end_text()
    reader.feed("Driver Version: 535.104.12\n")

    assert [row.value for row in reader.seen] == ["535.104.12"]


def test_a_table_with_a_card_that_nobody_knows_tells_no_cards() -> None:
    row = "|   0  NVIDIA {}      On  | 00000000:07:00.0 Off |\n"

    assert machine(row.format("GeForce RTX 3060") + row.format("Whatever 9000")).told == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("onnxruntime-gpu\nPackage    Version\n1.19.2", []),
        ("Torch version: 2.4.0, as for onnxruntime-gpu 1.20.1", ["torch 2.4.0"]),
    ],
)
def test_a_number_alone_is_no_release(text: str, told: list[str]) -> None:
    assert [each.value for each in machine(text).told] == told


def test_so_many_lines_are_taken_apart_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LOOKED_AT", 2)
    nothing, driver = "a word\n" * 9, "driver 566.36\n"

    assert "driver" not in machine(f"{nothing}Python 3.10\n{nothing}{driver}").unknown
    assert "driver" in machine(f"Python 3.10\npython 3.10\n{driver}", driver).unknown
    reader = MachineReader()
    reader.feed("Python 3.10\nPython 3.10\n")
    reader.end_text()
    reader.feed(f"Python 3.10\n{driver}")
    assert reader.seen[-1].fact == "driver"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("GPU: NVIDIA GeForce GTX 960M", ["gpus: GTX 960M"]),
        ("GPU: GeForce 940MX", ["gpus: GeForce 940MX"]),
        ("a laptop with an MX150", ["gpus: MX150"]),
        ("GT 1030 here", ["gpus: GT 1030"]),
        ("Quadro P620 in it", ["gpus: Quadro P620"]),
        ("NVIDIA A4000, 16 GB", ["gpus: A4000"]),
        ("NVIDIA RTXA4000", ["gpus: RTXA4000"]),
        ("NVIDIA M60", ["gpus: M60"]),
        ("my V100 box", ["gpus: V100"]),
        ("their V100 box", []),
        ("DGX Spark, NVIDIA GB10", ["gpus: GB10"]),
        ("> GeForce RTX 3090 with CUDA capability sm_86", ["gpus: RTX 3090"]),
        ("OS: Windows", ["system: Windows"]),
        ("**OS**: Windows", ["system: Windows"]),
        ("- Platform: Windows", ["system: Windows"]),
        ("no OS, Windows", []),
        ("wsl --install -d Ubuntu-20.04", ["system: Linux (WSL)"]),
        ("in awsl or /wsl/lib: driver", []),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  460.80  Fri", ["driver: 460.80"]),
        (
            "NVRM version: Open Kernel Module for x86_64  570.86.15",
            ["system: Linux", "driver: 570.86.15"],
        ),
        ("драйвер 576.52", ["system: Windows", "driver: 576.52"]),
        ("nvidia-smi reports CUDA Version: 13.1", ["driver: CUDA 13.1"]),
        ("CUDA Version shown by nvidia-smi: 13.2", ["driver: CUDA 13.2"]),
        ("CUDA: 13.2 (nvidia-smi)", ["driver: CUDA 13.2"]),
        ("Driver: 595.79 (CUDA 13.2)", ["driver: 595.79 (CUDA 13.2)"]),
        ("runs on driver r570 (CUDA 12.8)", []),
        ("nvidia driver == 530", ["driver: 530"]),
        ("nvidia driver version 565.x", ["driver: 565"]),
        ("Driver: R570, on CUDA", ["driver: 570"]),
        ("version of the driver is 525 and", ["driver: 525"]),
        ("Using drivers 580, both work", ["driver: 580"]),
        ("nvidia-driver-550: installed", ["driver: 550"]),
        ("驱动 550", ["driver: 550"]),
        ("driver 550\nand driver 550.54.15", ["system: Linux", "driver: 550.54.15"]),
        ("driver 550.54.15\nand driver 550", ["system: Linux", "driver: 550.54.15"]),
        ("driver 550\nand driver 560", []),
        ("requires driver 570", []),
        ("driver 570 or newer", []),
        ("driver 570+", []),
        ("driver: 404 not found", []),
        ("driver 500, the server said", []),
        ("driver 450 MB of memory", []),
        ("driver 565-1 of it", []),
        ("driver 1570", []),
        ("driver 5701", []),
        ("driver x570", []),
        ("needs CUDA 12.4 by nvidia-smi", []),
        ("Python：3.12", ["python: 3.12"]),
        ("Python 3.10 or more", []),
        ("- PyTorch：2.8.0+cu128", ["packages: torch 2.8.0+cu128"]),
        ("- PyTorch: `2.11.0`", ["packages: torch 2.11.0"]),
        ("torch 2.11 here\nand torch 2.11.0+cu128", ["packages: torch 2.11.0+cu128"]),
        ("torch 2.11.0+cu128 here\nand torch 2.11", ["packages: torch 2.11.0+cu128"]),
        ("torch 2.11.0+cpu here\nand torch 2.11.0+cu128", []),
        ("torch 2.11.0+cpu here\nand torch 2.11", ["packages: torch 2.11.0+cpu"]),
        ("Pytorch 2.10 through 2.12", []),
        ("`torch 2.10.0+cu128` is the last for it", []),
        ("ONNX Runtime GPU version: 1.23.2\nMicrosoft.ML.OnnxRuntime.Gpu", []),
        ("Microsoft.ML.OnnxRuntime.Gpu\nONNX Runtime GPU version: 1.23.2", []),
        ("ONNX Runtime CPU version: 1.23.2\nMicrosoft.ML.OnnxRuntime", []),
        (
            "ONNX Runtime version: 1.23.2\nMicrosoft.ML.OnnxRuntime.Gpu, torch 2.4.1",
            ["packages: torch 2.4.1"],
        ),
    ],
)
def test_what_people_write_is_told(text: str, told: list[str]) -> None:
    assert [f"{each.fact}: {each.value}" for each in machine(text).told] == told


@pytest.mark.parametrize("text", ["| **Architecture** | `aarch64` |", "Architecture: arm64"])
def test_a_form_tells_the_processor(text: str) -> None:
    assert machine(text).document["platform"]["machine"] == "aarch64"
