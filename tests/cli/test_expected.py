"""What people type and expect, and what was not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix import __main__
from ortgpu_fix.data_files import example_machine

Facts = dict[str, Any]


def told(
    facts: Facts, folder: Path, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, str]:
    (folder / "host.json").write_text(json.dumps(facts))
    code = __main__.main(["--facts", str(folder / "host.json"), *flags])
    return code, capsys.readouterr().out


def example(*packages: Facts, **more: object) -> Facts:
    facts: Facts = json.loads(json.dumps(example_machine()))
    return facts | {"packages": [*packages]} | more


@pytest.mark.parametrize(
    ("gpu", "shown"),
    [
        ("RTX4060", "RTX4060 (compute capability 8.9)"),
        ("RTX4060Ti", "RTX4060Ti (compute capability 8.9)"),
        ("sm_89", "compute capability 8.9"),
        ("compute_89", "compute capability 8.9"),
        ("SM_120a", "compute capability 12.0"),
        ("A100, sm_75", "A100 (compute capability 8.0), compute capability 7.5"),
    ],
)
def test_a_gpu_may_be_spelled_as_people_do(
    gpu: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    __main__.main(["--driver", "580.95.05", "--gpu", gpu])

    head = "GPUs" if "," in gpu else "GPU "
    assert f" {head}         {shown}, from --gpu\n" in capsys.readouterr().out


@pytest.mark.parametrize("gpu", ["89", "4060Titan"])
def test_what_is_no_gpu_is_still_refused(gpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--driver", "580.95.05", "--gpu", gpu]) == 2
    assert "is not a compute capability or a known GPU" in capsys.readouterr().err


def test_a_release_that_is_not_known_names_what_reads_newer_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert __main__.main(["matrix", "1.99"]) == 2
    assert "`ortgpu-fix matrix --update` reads newer versions" in capsys.readouterr().err


def test_what_is_chosen_later_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = told(example(), tmp_path, capsys)

    assert (
        "+ 4 dependencies: flatbuffers, numpy>=1.21.6, packaging, protobuf (uv picks the versions)"
    ) in said
    assert said.count("uv picks") == 1


@pytest.mark.parametrize(
    ("label", "code", "release"),
    [("cu128", 1, "+cu128"), ("cu999", 3, None)],
)
def test_torch_may_be_asked_for_by_its_cuda(
    label: str, code: int, release: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said = told(example(), tmp_path, capsys, "--torch", label, "--json")
    plan = json.loads(said)
    rows = (plan["selection"] or {"packages": []})["packages"]
    torch = [row["version"] for row in rows if row["name"] == "torch"]

    assert found == code
    assert [row.endswith(release or "-") for row in torch] == ([True] if release else [])
