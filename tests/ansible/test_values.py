"""What a fleet's plan means for each host, what came of it, and what goes to a host."""

from __future__ import annotations

import importlib
import json
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MATRIX = {"date": "2026-11-21", "digest": "sha256:0"}


def part(name: str) -> ModuleType:
    return importlib.import_module(f"ansible_collections.ortgpu.fix.plugins.{name}")


@pytest.fixture
def fleet(collections: Path) -> ModuleType:
    del collections
    return part("plugin_utils.fleet")


def group(cuda: str | None, version: str, *machines: str) -> dict[str, Any]:
    packages = [
        {"name": "onnxruntime-gpu", "version": version},
        {"name": "torch", "version": "2.7.1"},
    ]
    selection = None if cuda is None else {"cuda": cuda, "packages": packages}
    return {
        "distribution": "onnxruntime-gpu" if cuda else "onnxruntime",
        "version": version,
        "cuda": cuda,
        "machines": list(machines),
        "targets": [{"machines": list(machines), "selection": selection}],
    }


def plan(*groups: dict[str, Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    reasons = [{"code": "driver-too-old", "text": "the driver is too old"}]
    impossible = [{"machine": "old", "reasons": reasons}]
    return {
        "groups": list(groups),
        "without_gpu": list(without),
        "impossible": impossible,
        "matrix": MATRIX,
    }


def test_groups_are_called_as_the_locks_are(fleet: ModuleType) -> None:
    cuda12, cuda13, cpu = group("12", "1.26.0"), group("13", "1.31.1"), group(None, "1.31.1")

    assert fleet.group_names([cuda13, cuda12, cpu]) == ["cuda13", "cuda12", "cpu"]
    assert fleet.group_names([cuda12, group("12", "1.23.2")]) == ["1.26.0", "1.23.2"]
    assert fleet.group_names([cuda12, cuda12]) == ["1", "2"]


def test_each_host_gets_the_exact_set_of_its_group(fleet: ModuleType) -> None:
    made = plan(group("13", "1.31.1", "new"), group("12", "1.26.0", "a", "b%2Fc"), group(None, "1"))

    found = fleet.assigned(made, torch=False)

    assert found["new"]["requirements"] == ["onnxruntime-gpu==1.31.1"]
    assert found["b/c"] == {
        "group": "cuda12",
        "release": "1.26.0",
        "requirements": ["onnxruntime-gpu==1.26.0"],
    }
    assert "torch==2.7.1" in fleet.assigned(made, torch=True)["a"]["requirements"]


def test_a_host_without_a_gpu_gets_nothing_but_a_lock(fleet: ModuleType) -> None:
    made = plan(group("12", "1.26.0", "a"), group(None, "1.26.0", "web"), without=("web",))

    assert set(fleet.assigned(made, torch=False)) == {"a"}
    assert fleet.servable(made, with_cpu=True) == {"a", "web"}
    assert fleet.servable(made, with_cpu=False) == {"a"}


def test_every_machine_of_a_plan_is_in_the_report(fleet: ModuleType) -> None:
    made = plan(group("12", "1.26.0", "a", "windows"), without=("web",))
    facts = dict.fromkeys(("a", "windows", "web", "old"), FACTS)

    found = fleet.planned_hosts(
        made, facts, fleet.assigned(made, torch=False), managed={"a", "web", "old"}
    )

    assert {host: row["state"] for host, row in found.items()} == {
        "a": "waiting",
        "windows": "planned",
        "web": "without GPU",
        "old": "impossible",
    }
    assert found["windows"]["group"] == "cuda12"
    assert found["old"]["text"] == "the driver is too old"


@pytest.mark.parametrize("host", ["gpu-1.example", "a/b", "../up", "x y", "[::1]"])
def test_a_host_has_a_file_of_its_own_whatever_it_is_called(host: str, fleet: ModuleType) -> None:
    file = fleet.file_of(host)

    assert Path(file).name == file
    assert fleet.host_of(file.removesuffix(".json")) == host


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (None, "waiting"),
        ({"skipped": True}, "waiting"),
        ({"unreachable": True, "msg": "no route"}, "unreachable"),
        ({"failed": True, "msg": "it failed", "exit_code": 4}, "put back"),
        ({"failed": True, "msg": "it failed", "exit_code": 5}, "broken"),
        ({"failed": True, "msg": "nothing works", "exit_code": 3}, "impossible"),
        ({"failed": True, "msg": "killed", "exit_code": -9}, "failed"),
        ({"failed": True, "msg": "MODULE FAILURE"}, "failed"),
        ({"changed": False}, "ok"),
        ({"changed": True}, "changed"),
    ],
)
def test_what_came_of_a_host(result: dict[str, Any] | None, state: str, fleet: ModuleType) -> None:
    assert fleet.outcome_of(result, check_mode=False)["state"] == state


def test_what_would_change_is_drift_and_says_what_is_wrong(fleet: ModuleType) -> None:
    findings = [
        {"severity": "error", "summary": "the CPU build is installed"},
        {"severity": "info", "summary": "all is well"},
    ]
    result = {"changed": True, "plan": {"findings": findings}, "changes": {"install": ["x 1"]}}

    found = fleet.outcome_of(result, check_mode=True)

    assert found["state"] == "drifted"
    assert found["text"] == "the CPU build is installed"
    assert found["changes"] == {"install": ["x 1"]}


FACTS = {
    "driver": {"version": "535.104.12", "cuda": "12.2"},
    "gpus": [
        {"name": "Tesla T4"},
        {"name": "Tesla T4"},
        {"name": None, "compute_capability": "8.0"},
    ],
    "python": {"version": "3.11.7"},
}


def test_a_machine_in_a_report(fleet: ModuleType) -> None:
    found = fleet.about_machine(FACTS)

    assert found["gpus"] == ["8.0", "2 x Tesla T4"]
    assert (found["driver"], found["cuda"], found["onnxruntime"]) == ("535.104.12", "12.2", None)


def test_a_plan_for_one_machine_is_a_fleet(fleet: ModuleType) -> None:
    selection = {"cuda": "12", "packages": [{"name": "onnxruntime-gpu", "version": "1.26.0"}]}
    alone = {"matrix": MATRIX, "selection": selection, "findings": []}
    finding = {"code": "driver-too-old", "summary": "the driver is too old"}

    found = fleet.as_fleet(alone, "a", FACTS)

    assert fleet.assigned(found, torch=False)["a"]["requirements"] == ["onnxruntime-gpu==1.26.0"]
    assert fleet.as_fleet(alone, "a", FACTS | {"gpus": []})["without_gpu"] == ["a"]
    assert fleet.as_fleet(alone, "a", FACTS | {"driver": None})["without_gpu"] == ["a"]
    nothing = fleet.as_fleet(alone | {"selection": None, "findings": [finding]}, "a", FACTS)
    assert [row["reasons"][0]["text"] for row in nothing["impossible"]] == ["the driver is too old"]


def test_a_report_counts_and_its_page_shows_what_is_wrong_first(fleet: ModuleType) -> None:
    hosts = {
        "a": {"state": "ok", "text": "", "group": "cuda12", "machine": fleet.about_machine(FACTS)},
        "z<script>": {
            "state": "put back",
            "text": 'it said "<b>"',
            "changes": {"install": ["x 1"]},
        },
    }
    report = fleet.report_of(
        plan(group("12", "1.26.0", "a", "z")), hosts, date="2026-11-22", check_mode=False
    )
    page = part("plugin_utils.page").page_of(report)

    assert report["counts"] == {"ok": 1, "put back": 1}
    assert json.loads(json.dumps(report)) == report
    assert page.index("z&lt;script&gt;") < page.index("<td>a</td>")
    assert "<b>" not in page
    assert "it said &quot;&lt;b&gt;&quot;" in page
    assert "+ x 1" in page
    assert page.count("<tr") == page.count("</tr>") == 5
    assert "<h2>Groups</h2>" in page


def test_a_page_has_no_table_of_groups_where_there_are_none(fleet: ModuleType) -> None:
    hosts = {"gone": {"state": "unreachable", "text": "no route"}}
    report = fleet.report_of(plan(), hosts, date="2026-11-23", check_mode=False)

    page = part("plugin_utils.page").page_of(report)

    assert "<h2>Groups</h2>" not in page
    assert page.count("<table>") == 1
    assert "no route" in page


def test_one_line_names_the_hosts_to_look_at(fleet: ModuleType) -> None:
    hosts = {f"gpu{at:02}": {"state": "failed"} for at in range(12)}
    hosts |= {"far": {"state": "unreachable"}, "a": {"state": "ok"}, "b": {"state": "ok"}}
    report = fleet.report_of(plan(), hosts, date="2026-11-23", check_mode=False)

    named = ", ".join(f"gpu{at:02}" for at in range(10))
    assert fleet.summary(report) == f"2 ok, 12 failed ({named}, 2 more), 1 unreachable (far)"


def test_a_host_is_brought_its_set_and_what_pip_may_choose_from(
    tmp_path: Path, collections: Path
) -> None:
    del collections
    for file in (
        "onnxruntime_gpu-1.26.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "onnxruntime_gpu-1.26.0-cp312-cp312-manylinux_2_28_x86_64.whl",
        "onnxruntime-1.26.0-py3-none-any.whl",
        "nvidia_cudnn_cu12-9.28.0.42-py3-none-manylinux_2_27_x86_64.whl",
        "nvidia_cudnn_cu13-9.28.0.42-py3-none-manylinux_2_27_x86_64.whl",
        "numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl",
        "numpy-2.4.6-cp311-cp311-manylinux_2_28_aarch64.whl",
        "protobuf-6.33.0-cp39-abi3-manylinux2014_x86_64.whl",
        "flatbuffers-25.9.23-py2.py3-none-any.whl",
        "notes.txt",
    ):
        (tmp_path / file).touch()
    names = ("onnxruntime-gpu", "nvidia-cudnn-cu12")
    files = (
        "onnxruntime_gpu-1.26.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "nvidia_cudnn_cu12-9.28.0.42-py3-none-manylinux_2_27_x86_64.whl",
    )
    made = {
        "install": [{"name": name, "file": file} for name, file in zip(names, files, strict=True)],
        "selection": {"packages": [{"name": name} for name in names]},
        "companions": [{"name": "onnxruntime"}],
    }
    target = {"python": "3.11.7", "machine": "x86_64"}

    found = [path.name for path in part("plugin_utils.wheels").wheels_for(tmp_path, made, target)]

    # cuDNN for CUDA 13 is no part of this host's set; pip would not take it, but it is large.
    assert sorted(found) == sorted(
        [
            *files,
            "flatbuffers-25.9.23-py2.py3-none-any.whl",
            "numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
            "protobuf-6.33.0-cp39-abi3-manylinux2014_x86_64.whl",
        ]
    )


def test_what_goes_to_a_host_is_all_that_the_program_needs(
    tmp_path: Path, collections: Path
) -> None:
    del collections
    archive = part("plugin_utils.bundle").bundle_in(tmp_path)

    with zipfile.ZipFile(archive) as zipped:
        names = set(zipped.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {"ortgpu_fix", "packaging", "requests", "rich", "pip", "pip_api", "pynvml.py"} <= tops
    assert {"urllib3", "certifi", "idna", "charset_normalizer"} <= tops, "what requests requires"
    assert "ortgpu_fix/data/texts.toml" in names
    assert not {name for name in names if name.endswith((".so", ".pyc")) or ".." in name}
    assert list(tmp_path.iterdir()) == [archive]
    assert part("plugin_utils.bundle").bundle_in(tmp_path) == archive


def test_a_program_that_is_not_there_is_one_sentence(
    tmp_path: Path, collections: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del collections
    bundle = part("plugin_utils.bundle")
    monkeypatch.setattr(bundle, "PROGRAM", "no-such-program")

    with pytest.raises(bundle.BundleError, match="is not installed beside Ansible"):
        bundle.bundle_in(tmp_path)


PARAMS: dict[str, Any] = {
    "ort": "<1.27",
    "cuda": None,
    "torch": "keep",
    "torch_index_url": None,
    "ignore_gpus": ["6.1", "5.2"],
    "autoload": False,
    "provide": True,
    "find_links": "/srv/wheels",
    "offline": True,
    "allow": ["conda"],
    "index_url": "https://reader:secret@packages.example/simple",
}


@pytest.fixture
def module(collections: Path) -> ModuleType:
    pytest.importorskip("ansible.module_utils.basic")
    del collections
    return part("modules.ortgpu_fix")


def test_parameters_are_the_flags_of_the_program(module: ModuleType) -> None:
    found = module.wishes(PARAMS, "/tmp/r.txt")  # noqa: S108

    assert found == [
        *("--ort", "<1.27", "--torch", "keep", "--ignore-gpu", "6.1", "--ignore-gpu", "5.2"),
        *("--allow", "conda", "--requirement", "/tmp/r.txt", "--no-autoload"),  # noqa: S108
    ]


def test_credentials_are_on_no_command_line(module: ModuleType) -> None:
    flags, environ = module.sources(PARAMS)

    assert flags == ["--find-links", "/srv/wheels", "--offline"]
    assert environ == dict.fromkeys(("PIP_INDEX_URL", "UV_INDEX_URL"), PARAMS["index_url"])


def test_changes_say_what_was_there(module: ModuleType) -> None:
    packages = {"onnxruntime": "1.22.1", "nvidia-cudnn-cu12": "9.1.0", "numpy": "2.0"}
    facts = {"packages": [{"name": key, "version": text} for key, text in packages.items()]}
    made = {
        "uninstall": ["onnxruntime"],
        "install": [
            {"name": "onnxruntime-gpu", "version": "1.26.0"},
            {"name": "nvidia-cudnn-cu12", "version": "9.28.0.42"},
        ],
        "companions": [{"name": "onnxruntime", "version": "1.26.0"}],
        "requires": ["protobuf>=4"],
    }

    found = module.changes(made, facts)

    assert found["uninstall"] == ["nvidia-cudnn-cu12 9.1.0", "onnxruntime 1.22.1"]
    assert found["install"] == [
        "nvidia-cudnn-cu12 9.28.0.42",
        "onnxruntime 1.26.0",
        "onnxruntime-gpu 1.26.0",
        "protobuf>=4",
    ]
    assert module.as_diff(found)["before"] == "nvidia-cudnn-cu12 9.1.0\nonnxruntime 1.22.1\n"


def test_why_nothing_works_comes_with_what_would_change_that(module: ModuleType) -> None:
    made = {
        "findings": [
            {"severity": "warning", "summary": "not this"},
            {"severity": "error", "summary": "The driver is too old"},
        ],
        "unlock": [{"change": "driver >= 580", "gains": "onnxruntime-gpu 1.31.1"}],
    }

    assert module.why_not(made) == (
        "The driver is too old. What would change that: driver >= 580 (onnxruntime-gpu 1.31.1)"
    )
