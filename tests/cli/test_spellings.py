"""What people type and write: GPU names of clouds, platforms as they are printed, several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_here

from ortgpu_fix.cli.options import capability
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.errors import Error
from ortgpu_fix.utils.toml import tomllib

NAMES: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).parents[1] / "cases/gpu_names.toml").read_text(encoding="utf-8")
)
HOST: dict[str, Any] = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64"},
    "driver": {"version": "535.104.12"},
    "gpus": [{"compute_capability": "8.0"}],
    "python": {"version": "3.11"},
    "packages": [],
}


@pytest.mark.parametrize("known", sorted(NAMES.keys() - {"refused"}))
def test_the_gpu_names_of_a_public_table(known: str) -> None:
    assert {name: capability(name, "--gpu") for name in NAMES[known]} == dict.fromkeys(
        NAMES[known], known
    )


@pytest.mark.parametrize("name", NAMES["refused"])
def test_what_is_no_name_of_one_gpu_is_refused(name: str) -> None:
    with pytest.raises(Error, match=r"wish-gpu"):
        capability(name, "--gpu")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "8.0"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", "9.0"),
        ("8x H100", "9.0"),
    ],
)
def test_the_labels_of_a_cluster(name: str, known: str) -> None:
    assert capability(name, "--gpu") == known


def refusal(*words: str, cwd: Path) -> str:
    done = run_here(*words, cwd=cwd, env={"LANG": "C.UTF-8"})
    assert done.returncode == 2
    return done.stderr


@pytest.mark.parametrize(("written", "read"), [("2.35", "glibc 2.35"), ("musl 1.2", "musl 1.2")])
def test_a_c_library_written_by_hand(written: str, read: str, tmp_path: Path) -> None:
    platform = {**HOST["platform"], "libc": written}
    (tmp_path / "host.json").write_text(json.dumps({**HOST, "platform": platform}))
    done = run_here("facts", "--facts", "host.json", cwd=tmp_path, env={})

    assert json.loads(done.stdout)["platform"]["libc"] == read


@pytest.mark.parametrize(
    ("words", "facts", "argument"),
    [
        (["--facts", "a.json", "b.json", "c.json"], ("a.json", "b.json", "c.json"), None),
        (["lock", "--facts", "a.json", "b.json", "-o", "x"], ("a.json", "b.json"), None),
        (["explain", "--facts", "a.json", "error.log"], ("a.json",), "error.log"),
        (["lock", "--check", "--facts", "a.json", "./b.lock"], ("a.json",), "./b.lock"),
    ],
)
def test_several_files_after_one_flag(
    words: list[str], facts: tuple[str, ...], argument: str | None
) -> None:
    line = parse(words)

    assert line.machine.facts == facts
    assert getattr(line.request, "words", ()) == (() if argument is None else (argument,))


def test_a_word_that_is_no_file_is_still_a_wrong_command(tmp_path: Path) -> None:
    assert "plann" in refusal("--facts", "example", "plann", cwd=tmp_path)


@pytest.mark.parametrize(
    ("gpu", "shown"),
    [
        ("RTX4060Ti", "RTX4060Ti (compute capability 8.9)"),
        ("sm_89", "compute capability 8.9"),
        ("compute_89", "compute capability 8.9"),
        ("A100, sm_75", "A100 (compute capability 8.0), compute capability 7.5"),
    ],
)
def test_a_gpu_may_be_spelled_as_people_do(gpu: str, shown: str, tmp_path: Path) -> None:
    done = run_here("--driver", "580.95.05", "--gpu", gpu, cwd=tmp_path, env={"LANG": "C.UTF-8"})

    head = "GPUs" if "," in gpu else "GPU "
    assert f" {head}         {shown}, from --gpu\n" in done.stdout


@pytest.mark.parametrize(
    ("label", "code", "release"), [("cu128", 1, ["2.11.0+cu128"]), ("cu999", 3, [])]
)
def test_torch_may_be_asked_for_by_its_cuda(
    label: str, code: int, release: list[str], tmp_path: Path
) -> None:
    done = run_here("--facts", "example", "--torch", label, "--json", cwd=tmp_path, env={})
    rows = (json.loads(done.stdout)["selection"] or {"packages": []})["packages"]

    assert done.returncode == code
    assert [row["version"] for row in rows if row["name"] == "torch"] == release
