"""`facts --from-text` and `explain --text-only`: the machine that a text tells of, as a command."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from hypothesis import given
from hypothesis import strategies as st

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.pasted.machine import ToldMachine, is_another, told_machine
from ortgpu_fix.pasted.reader import MachineReader
from support.standin_wheels import clean_environment

CPU_ALONE = (
    "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider names."
    "Available providers: 'AzureExecutionProvider, CPUExecutionProvider'"
)
RIGHT = """Package Version
------- -------
flatbuffers 24.3.25
numpy 1.26.4
onnxruntime-gpu 1.20.1
packaging 24.0
protobuf 5.26.1
sympy 1.13
coloredlogs 15.0.1
nvidia-cublas-cu12 12.4.5.8
nvidia-cudnn-cu12 9.1.0.70
nvidia-cufft-cu12 11.2.1.3
nvidia-curand-cu12 10.3.5.147
nvidia-cuda-runtime-cu12 12.4.127
nvidia-cuda-nvrtc-cu12 12.4.127
nvidia-nvjitlink-cu12 12.4.127

"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]

LOG = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot"
    " open shared object file: No such file or directory\n"
)
SMI = (
    "| NVIDIA-SMI 535.104.12             Driver Version: 535.104.12   CUDA Version: 12.2     |\n"
    "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
)
PYTHON = "Python 3.11.7 (main, Dec  8 2023, 18:56:58) [GCC 11.2.0] on linux\n"
ISSUE = f"{LOG}{SMI}{PYTHON}onnxruntime==1.22.1\nnumpy==2.2.3\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command in an empty folder, with an empty home."""
    home = tmp_path / "home"
    home.mkdir()

    def start(*argv: str, text_in: str = "", env: Mapping[str, str] | None = None) -> Any:
        environ = clean_environment() | {"HOME": str(home), "LANG": "C.UTF-8"}
        done = run_here(*argv, cwd=home, env=environ | dict(env or {}), text_in=text_in)
        assert "Traceback" not in done.stderr
        return done

    return start


def machine(text: str) -> ToldMachine:
    reader = MachineReader()
    reader.feed(text)
    return told_machine(reader, load_table("gpus"), "3.12.0")


def test_the_file_that_is_written_plans_as_explain_does(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    wrote = run("facts", "--from-text", "-", "-o", str(file), text_in=ISSUE)
    assert wrote.returncode == 0, wrote.stderr
    document = json.loads(file.read_text())
    assert document["driver"]["version"] == "535.104.12"
    assert document["gpus"][0]["compute_capability"] == "8.0"
    assert document["sources"]["driver"] == "text, line 2"

    by_text = json.loads(run("explain", "--text-only", "--json", text_in=ISSUE).stdout)
    by_file = json.loads(run("explain", "--facts", str(file), "--json", text_in=ISSUE).stdout)

    assert by_text["mending"] == by_file["mending"]
    assert by_text["explanations"] == by_file["explanations"]
    assert by_text["mending"]["command"] == "ortgpu-fix --apply"
    assert by_text["mending"]["code"] == "mend-there"
    assert run("--facts", str(file)).returncode == 1


@pytest.mark.parametrize(
    ("language", "words"), [("C.UTF-8", "From this text"), ("zh_CN.UTF-8", "文本所述")]
)
def test_each_fact_is_told_with_its_line(language: str, words: str, run: Run) -> None:
    done = run("explain", "--text-only", text_in=ISSUE, env={"LANG": language})

    told = [line for line in done.stdout.splitlines() if words in line]
    assert len(told) == 5
    assert any("535.104.12 (CUDA 12.2)" in line and "2" in line for line in told)
    assert done.stdout.splitlines()[-1].strip() == "ortgpu-fix --apply"


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (LOG + PYTHON, ["driver", "gpus"]),
        (LOG + SMI, ["python"]),
        (LOG + SMI.splitlines()[0] + "\n" + PYTHON, ["gpus"]),
        ("libcudnn.so.9: cannot open shared object file\n", ["driver", "gpus", "python"]),
    ],
)
def test_what_is_not_told_is_named_and_nothing_is_promised(
    text: str, unknown: list[str], run: Run
) -> None:
    document = json.loads(run("explain", "--text-only", "--json", text_in=text).stdout)

    assert document["machine"]["unknown"] == unknown
    assert document["mending"]["code"] == "mend-depends"
    assert "--apply" not in document["mending"]["command"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--driver", "580.65.06", "--gpu", "12.0", "--platform", "windows"),
        ("--facts", "example"),
        ("--driver", "580.65.06", "--gpu", "12.0", "--python", "3.13"),
    ],
)
def test_the_command_is_for_the_machine_of_the_text_alone(flags: tuple[str, ...], run: Run) -> None:
    said = run("explain", "--text-only", *flags, "--ort", "1.26.0", "--json", text_in=ISSUE)
    unknown = run("explain", "--text-only", *flags, "--json", text_in=LOG)

    assert json.loads(said.stdout)["mending"]["command"] == "ortgpu-fix --ort 1.26.0 --apply"
    assert json.loads(unknown.stdout)["mending"]["command"] == "ortgpu-fix"


def test_flags_describe_the_machine_where_the_text_is_not_asked_for_it(run: Run) -> None:
    flags = ("--driver", "535.104.12", "--gpu", "8.0", "--json")

    document = json.loads(run("explain", *flags, text_in=LOG).stdout)

    assert "--driver 535.104.12" in document["mending"]["command"]


@pytest.mark.parametrize(
    ("torch", "flags"), [("torch==2.5.1+cu124\n", ()), ("", ("--torch", "2.8.0"))]
)
def test_a_torch_of_the_text_is_judged_by_its_table(
    torch: str, flags: tuple[str, ...], run: Run
) -> None:
    card = ISSUE.replace("A100-SXM4-80GB ", "GeForce RTX 5090").replace("535.104.12", "580.95.05")
    text = card.replace("12.2", "13.0").replace(LOG, "") + torch
    text += "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"

    document = json.loads(run("explain", "--text-only", *flags, "--json", text_in=text).stdout)

    assert document["machine"]["unknown"] == []
    assert "--torch" in document["mending"]["command"]
    if torch:
        assert document["explanations"][0]["here"]["findings"] == ["torch-no-gpu-code"]


def test_where_nothing_can_work_nothing_is_promised(run: Run) -> None:
    old = ISSUE.replace("535.104.12", "390.157").replace("12.2", "9.1")

    document = json.loads(run("explain", "--text-only", "--json", text_in=old).stdout)

    assert document["mending"]["command"] is None


def test_the_owner_of_another_machine_is_told_no_flags(run: Run) -> None:
    """A log from another machine is what it is."""
    old = ISSUE.replace("535.104.12", "390.157").replace("12.2", "9.1")

    there = json.loads(run("explain", "--text-only", "--json", text_in=old).stdout)["mending"]
    driver = ("--driver", "390.157", "--gpu", "3.0", "--json")
    here = json.loads(run("explain", *driver, text_in=LOG).stdout)["mending"]

    assert there["code"] == "mend-owner-there"
    assert "--text-only" not in there["text"]
    assert here["code"] == "mend-owner"


@pytest.mark.parametrize(
    ("flags", "code"),
    [(("--facts", "example"), "mend-there"), (("--driver", "580", "--gpu", "8.0"), "mend-here")],
)
def test_a_command_is_told_where_it_is_typed(flags: tuple[str, ...], code: str, run: Run) -> None:
    """The command for the environment of a facts file ends with `--python`, of that machine."""
    mends = json.loads(run("explain", *flags, "--json", text_in=LOG).stdout)["mending"]

    assert mends["code"] == code


def test_a_text_whose_packages_look_right_is_no_proof_that_they_are(run: Run) -> None:
    """The folder may hold another build, which no list of packages tells."""
    machine = "Ubuntu 22.04, driver 550.54.14, RTX 4090, Python 3.11"
    text = f"{machine}\n{RIGHT}{CPU_ALONE}\n"

    document = json.loads(run("explain", "--text-only", "--json", text_in=text).stdout)

    assert document["explanations"][0]["here"]["state"] != "not-so"
    assert document["mending"]["code"] == "mend-depends"
    assert "which files are there" in document["mending"]["text"]
    assert document["mending"]["command"] == "ortgpu-fix"


@pytest.mark.parametrize("by_file", [False, True])
def test_what_its_gpu_has_code_for_is_no_proof_either(
    run: Run, tmp_path: Path, *, by_file: bool
) -> None:
    """Also where the machine of the text is a file of facts."""
    log = "[E:onnxruntime] no kernel image is available for execution on the device\n"
    text = "Ubuntu 22.04, driver 550.54.14, RTX 4090, Python 3.11\n" + RIGHT
    flags: tuple[str, ...] = ("--text-only",)
    if by_file:
        run("facts", "--from-text", "-", "-o", str(tmp_path / "m.json"), text_in=text)
        flags = ("--facts", str(tmp_path / "m.json"))

    document = json.loads(run("explain", *flags, "--json", text_in=text + log).stdout)

    assert document["explanations"][0]["here"]["state"] == "not-so"
    assert document["mending"]["code"] == "mend-depends"
    assert document["mending"]["command"].startswith("ortgpu-fix")


@pytest.mark.parametrize(
    ("log", "code", "command"),
    [
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
            "mend-depends",
            "ortgpu-fix --torch match",
        ),
        ("libnvidia-ml.so: Driver/library version mismatch\n", "mend-by-hand", None),
    ],
)
def test_of_an_unknown_machine_a_remedy_depends_where_packages_mend_it(
    run: Run, log: str, code: str, command: str | None
) -> None:
    mending = json.loads(run("explain", "--text-only", "--json", text_in=log).stdout)["mending"]

    assert (mending["code"], mending["command"]) == (code, command)


def test_a_text_that_is_long_is_read_in_pieces(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "issue.txt"
    file.write_text("nothing of ours\n" * 400_000 + SMI)

    done = run("facts", "--from-text", str(file))
    explained = json.loads(run("explain", str(file), "--text-only", "--json").stdout)

    assert json.loads(done.stdout)["sources"]["driver"] == "text, line 400001"
    assert "From this text: driver 535.104.12 (CUDA 12.2)" in done.stderr
    assert explained["machine"]["unknown"] == ["python"]


def test_what_is_assumed_in_the_file_is_said(run: Run) -> None:
    done = run("facts", "--from-text", "-", text_in=LOG)

    assert done.returncode == 0
    assert "does not tell the driver, the GPU, the Python" in done.stderr
    document = json.loads(done.stdout)
    assert (document["driver"], document["gpus"]) == (
        {"version": None, "cuda": None, "error": None},
        None,
    )
    assert document["sources"]["python"] == "assumed"


def test_the_machine_of_another_is_told_where_this_one_is_looked_at(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "machine.json"
    run("facts", "--from-text", "-", "-o", str(file), text_in=ISSUE)
    other = ISSUE.replace("535.104.12", "550.54.14")

    same = run("explain", "--facts", str(file), text_in=ISSUE)
    another = run("explain", "--facts", str(file), text_in=other)

    assert "From this text" not in same.stdout
    assert "From this text: driver 550.54.14" in another.stdout


def test_a_text_that_is_not_there_and_flags_that_clash(run: Run) -> None:
    assert run("facts", "--from-text", "nowhere.txt").returncode == 7
    clash = run("facts", "--from-text", "-", "--driver", "535.104.12", "--gpu", "8.0")
    assert clash.returncode == 2
    assert run("plan", "--from-text", "-").returncode == 2


# Contradictions


def test_of_two_tables_the_first_is_taken_whole() -> None:
    other = SMI.replace("535.104.12", "550.54.14").replace("A100-SXM4-80GB", "H100 PCIe      ")

    told = machine(SMI + other)

    assert told.facts.driver is not None
    assert told.facts.driver.version == "535.104.12"
    assert [gpu.compute_capability for gpu in told.facts.gpus or ()] == ["8.0"]
    assert [(each.fact, each.taken) for each in told.contradictions] == [("driver", True)]


def test_of_two_sentences_neither_is_taken() -> None:
    told = machine("My driver is 535.104.12\nMy driver is 550.54.14\n")

    assert told.unknown == ("system", "driver", "gpus", "python")
    assert [(each.fact, each.taken) for each in told.contradictions] == [("driver", False)]


def test_a_list_that_contradicts_the_first_is_of_another_machine() -> None:
    lists = "numpy==1.26.4\ntorch==2.2.1\n" + "\n" * 5 + "numpy==2.0.0\nonnxruntime==1.22.1\n"

    told = machine(lists)
    packages = {row.name: row.version for row in told.facts.packages}

    assert [each.package for each in told.contradictions] == ["numpy"]
    assert packages == {"numpy": "1.26.4", "torch": "2.2.1"}


@pytest.mark.parametrize(
    "line",
    [
        "requires driver 525.60.13",
        "driver >= 580.65.06",
        "please use Python 3.10",
        "Python 3.10 is required",
        "pip install onnxruntime-gpu==1.20.1",
        "No matching distribution found for onnxruntime-gpu==1.16.3",
        "supports the RTX 3000 series",
    ],
)
def test_advice_is_no_fact(line: str) -> None:
    assert machine(line).told == ()


# Any text


PARTS = st.sampled_from(
    [*ISSUE.splitlines(), "Package Version", "Name: torch", "Version: 2.1", "GPU 0: NVIDIA T4", "|"]
)


@given(st.lists(st.one_of(PARTS, st.text(max_size=60)), max_size=30))
def test_any_text_is_read_and_its_facts_can_be_read_back(lines: list[str]) -> None:
    told = machine("\n".join(lines))

    assert told.facts.platform.system in {"linux", "windows"}
    assert all(1 <= each.line <= sum(1 + part.count("\n") for part in lines) for each in told.told)


@given(st.text(alphabet="|NVIDIA-SMI driver python3.1 GPU:RTX\\/=", max_size=20))
def test_reading_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = (unit or "x") * (size // max(1, len(unit)))
        begun = time.process_time()
        machine(text)
        machine("\n".join(text[at : at + 400] for at in range(0, len(text), 400)))
        return time.process_time() - begun

    assert seconds(100_000) < 1


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("nvidia-smi reports CUDA Version: 12.2", False),
        ("nvidia-smi reports CUDA Version: 13.1", True),
        ("Nvidia driver version: 535.104.12", False),
        ("Nvidia driver version: 550.54.15", True),
        ("no driver", False),
    ],
)
def test_a_cuda_alone_is_held_against_that_of_the_driver_here(text: str, *, other: bool) -> None:
    document = synthetic.document(gpus=None)
    document["driver"] = {"version": "535.104.12", "cuda": "12.2"}

    assert is_another(machine(text), facts_json.from_json(document)) == other


@pytest.mark.parametrize(
    ("text", "other"), [("driver 535", False), ("driver 530", True), ("my driver 535.10", True)]
)
def test_a_branch_is_held_against_the_release_here(text: str, *, other: bool) -> None:
    document = synthetic.document(gpus=None)
    document["driver"] = {"version": "535.104.12", "cuda": "12.2"}

    assert is_another(machine(text), facts_json.from_json(document)) == other


def test_a_cuda_alone_is_another_machine_s_where_no_driver_is_here() -> None:
    document = synthetic.document(gpus=None)
    document["driver"] = None

    assert is_another(
        machine("nvidia-smi reports CUDA Version: 12.2"), facts_json.from_json(document)
    )
    assert is_another(machine("my driver 535.104.12"), facts_json.from_json(document))


def test_a_text_with_torch_s_number_tells_the_cuda_of_its_driver() -> None:
    told = machine("The NVIDIA driver on your system is too old (found version 12040). Please")

    assert (told.facts.driver and told.facts.driver.cuda) == "12.4"
    assert [(each.fact, each.value) for each in told.told] == [("driver", "CUDA 12.4")]


def test_two_cudas_without_a_release_are_told_and_neither_is_taken() -> None:
    told = machine("nvidia-smi shows CUDA 12.4\nnvidia-smi shows CUDA 13.0")

    assert told.told == ()
    assert [each.values for each in told.contradictions] == [("12.4", "13.0")]
    assert told.facts.driver is None or told.facts.driver.cuda is None
