"""What a fleet's plan means for each host, what goes to a host, and by which way."""

from __future__ import annotations

import importlib
import json
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REASONS = [{"code": "driver-too-old", "text": "the driver is too old"}]
PLAN = {
    "groups": [
        {
            "distribution": "onnxruntime-gpu",
            "version": "1.31.1",
            "cuda": "13",
            "machines": ["facts/host:1", "facts/host:0", "here/new"],
            "targets": [
                {
                    "machines": ["facts/host:1", "facts/host:0", "here/new"],
                    "selection": {
                        "packages": [
                            {"name": "onnxruntime-gpu", "version": "1.31.1"},
                            {"name": "nvidia-cudnn-cu13", "version": "9.28.0.42"},
                        ]
                    },
                }
            ],
        },
        {
            "distribution": "onnxruntime",
            "version": "1.31.1",
            "cuda": None,
            "machines": ["facts/host:2"],
            "targets": [{"machines": ["facts/host:2"], "selection": None}],
        },
    ],
    "without_gpu": ["facts/host:2"],
    "impossible": [{"machine": "facts/host:3", "reasons": REASONS}],
}


def part(name: str) -> ModuleType:
    return importlib.import_module(f"ansible_collections.ortgpu.fix.plugins.{name}")


@pytest.fixture(autouse=True)
def ansible_is_there(collections: Path) -> None:
    pytest.importorskip("ansible.module_utils.basic")
    del collections


def test_each_host_gets_the_exact_set_of_its_group_and_machines_that_are_no_hosts_nothing() -> None:
    found = part("action.ortgpu_fix_fleet").meaning(PLAN, ["new", "b/c", "web", "old"])

    pins = ["onnxruntime-gpu==1.31.1", "nvidia-cudnn-cu13==9.28.0.42"]
    assert found["hosts"] == {host: {"requirements": pins} for host in ("new", "b/c")}
    assert found["without_gpu"] == ["web"]
    assert found["impossible"] == {"old": "the driver is too old"}
    assert found["msg"] == (
        "onnxruntime-gpu 1.31.1 for CUDA 13: b/c, new; onnxruntime 1.31.1: web; no GPU: web; "
        "impossible: old"
    )


@pytest.mark.slow
def test_what_goes_to_a_host_is_all_that_the_program_needs(tmp_path: Path) -> None:
    archive = part("plugin_utils.bundle").bundle_in(tmp_path)

    with zipfile.ZipFile(archive) as zipped:
        names = set(zipped.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {"ortgpu_fix", "packaging", "requests", "rich", "pynvml.py"} <= tops
    assert {"urllib3", "certifi", "idna", "charset_normalizer"} <= tops, "what requests requires"
    assert "ortgpu_fix/data/texts.toml" in names
    assert not {name for name in names if name.endswith((".so", ".pyc")) or ".." in name}
    assert list(tmp_path.iterdir()) == [archive]
    assert part("plugin_utils.bundle").bundle_in(tmp_path) == archive


@pytest.mark.slow
def test_uv_goes_to_a_host_with_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uv")
    bundle = part("plugin_utils.bundle")
    monkeypatch.setattr(bundle, "PROGRAM", "uv")

    with zipfile.ZipFile(bundle.bundle_in(tmp_path)) as zipped:
        assert zipped.read("bin/uv").startswith(b"\x7fELF")
        assert "uv/__init__.py" in zipped.namelist()


@pytest.mark.parametrize(("program", "stays"), [("#!/bin/sh\n", True), ("\x7fELF other", False)])
def test_uv_stays_on_a_host_where_it_runs(tmp_path: Path, program: str, *, stays: bool) -> None:
    module = Module(tmp_path, {})
    bundle = tmp_path / "ortgpu-fix.zip"
    with zipfile.ZipFile(bundle, "w") as zipped:
        zipped.writestr("bin/uv", program)
    module.params["bundle"] = str(bundle)
    made = part("module_utils.program").Program(module)

    [site] = Path(made.folder).glob("lib/python*/site-packages")
    assert (site / "bin" / "uv").exists() == stays


Answer = tuple[int, dict[str, Any]]
"""An exit code, and a document."""


class Module:
    """As much of AnsibleModule as a module asks for; the program answers with `documents`."""

    check_mode = False
    _diff = False

    def __init__(self, folder: Path, params: dict[str, Any], *documents: Answer) -> None:
        self.tmpdir = str(folder)
        self.params = {
            "python": "/opt/app",
            "state": "present",
            "flags": [],
            "requirements": [],
            "facts": None,
            "bundle": "ortgpu-fix.zip",
            "index_url": None,
            "torch_index_url": None,
            "tensorrt_index_url": None,
            **params,
        }
        self.documents = list(documents)
        self.ran: list[list[str]] = []
        self.environ: dict[str, str] = {}
        self.answer: dict[str, Any] = {}

    def run_command(
        self,
        argv: list[str],
        environ_update: dict[str, str] | None = None,
        *,
        handle_exceptions: bool = True,
    ) -> tuple[int, str, str]:
        if "venv" in argv:  # the place for the program
            (Path(argv[-1]) / "lib" / "python3.11").mkdir(parents=True)
            return 0, "", ""
        if not handle_exceptions:  # as Ansible's, it raises OSError then
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr
        self.ran.append(argv)
        self.environ |= environ_update or {}
        code, document = self.documents.pop(0)
        return code, json.dumps(document), ""

    def exit_json(self, **answer: object) -> None:
        self.answer = answer
        raise SystemExit

    def fail_json(self, **answer: object) -> None:
        self.exit_json(failed=True, **answer)


def run(folder: Path, params: dict[str, Any], *documents: Answer, check: bool = False) -> Module:
    """Run the module `ortgpu_fix` up to its answer."""
    (folder / "program").mkdir()
    module = Module(folder, params, *documents)
    module.check_mode = check
    found: Any = part("modules.ortgpu_fix")
    found.AnsibleModule = lambda **_: module
    with pytest.raises(SystemExit):
        found.main()
    return module


WRONG = {
    "verdict": "fixable",
    "findings": [
        {"severity": "error", "summary": "the CPU build is installed"},
        {"severity": "info", "summary": "not this"},
    ],
}
RIGHT = {"verdict": "healthy", "findings": []}
SECRET = "vaulted-secret"  # noqa: S105


def test_an_index_address_is_on_no_command_line(tmp_path: Path) -> None:
    urls = {
        name: f"https://me:{SECRET}@{name}.example/"
        for name in ("index_url", "torch_index_url", "tensorrt_index_url")
    }

    module = run(tmp_path, urls, (1, WRONG), (0, {**RIGHT, "verification": {}}))

    assert module.answer["changed"] is True
    assert "--apply" in module.ran[-1]
    assert SECRET not in json.dumps(module.ran)
    assert module.environ == {
        "PIP_INDEX_URL": urls["index_url"],
        "UV_INDEX_URL": urls["index_url"],
        "ORTGPU_FIX_TORCH_INDEX_URL": urls["torch_index_url"],
        "ORTGPU_FIX_TENSORRT_INDEX_URL": urls["tensorrt_index_url"],
    }
    spec = part("modules.ortgpu_fix").SPEC
    assert all(spec[name]["no_log"] for name in urls)


@pytest.mark.parametrize("flag", ["--index-url=https://x", "--torch-index-url"])
def test_an_index_address_among_the_flags_is_refused(tmp_path: Path, flag: str) -> None:
    module = run(tmp_path, {"flags": [flag, "https://x"]})

    assert module.answer["failed"]
    assert "goes into index_url" in module.answer["msg"]
    assert module.ran == []


def test_flags_and_requirements_are_those_of_the_program(tmp_path: Path) -> None:
    params = {
        "flags": ["--ort=<1.27", "--allow=conda"],
        "requirements": ["onnxruntime-gpu==1.26.0"],
        "facts": {"schema": 1},
    }

    module = run(tmp_path, params, (0, RIGHT))

    [argv] = module.ran
    assert argv[4:] == [
        *("--facts", f"{tmp_path}/facts.json", "--ort=<1.27", "--allow=conda"),
        *("--requirement", f"{tmp_path}/requirements.txt", "--json", "--python", "/opt/app"),
    ]
    assert (tmp_path / "requirements.txt").read_text() == "onnxruntime-gpu==1.26.0\n"
    assert module.answer["changed"] is False


def test_check_mode_changes_nothing_and_says_what_would_be_changed(tmp_path: Path) -> None:
    module = run(tmp_path, {}, (1, WRONG), check=True)

    assert module.answer["changed"] is True
    assert len(module.ran) == 1


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        ([(3, {**WRONG, "verdict": "impossible"})], 3),
        ([(1, {**WRONG, "verdict": "healthy"})], 1),  # what only a person can mend
        ([(1, WRONG), (3, {**WRONG, "verdict": "impossible"})], 3),  # after what was put back
    ],
)
def test_what_does_not_end_right_is_a_failure_with_the_programs_words(
    tmp_path: Path, documents: list[Answer], code: int
) -> None:
    answer = run(tmp_path, {}, *documents).answer

    assert answer["failed"]
    assert (answer["exit_code"], answer["msg"]) == (code, "the CPU build is installed")


ERROR = {"error": {"code": "verification-failed", "message": "It failed", "hint": "Look"}}


def test_an_error_of_the_program_is_handed_on_with_its_code(tmp_path: Path) -> None:
    answer = run(tmp_path, {}, (1, WRONG), (4, ERROR)).answer

    assert answer["failed"]
    assert (answer["msg"], answer["exit_code"]) == ("It failed. Look", 4)
    assert answer["code"] == "verification-failed"


NOTHING = {"error": {"code": "nothing-to-undo", "message": "There is nothing to undo"}}


@pytest.mark.parametrize(
    ("document", "changed"), [((0, {"undone": True}), True), ((2, NOTHING), False)]
)
def test_undo_is_the_programs(tmp_path: Path, document: Answer, *, changed: bool) -> None:
    module = run(tmp_path, {"state": "absent"}, document)

    assert module.answer["changed"] is changed
    assert module.ran[0][4:6] == ["undo", "--yes"]
