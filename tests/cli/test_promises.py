"""What a plan promises, `--apply` does not refuse for anything that the facts told."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import random_machines
import windows_shells
from example_target import TARGET
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortgpu_fix import __main__
from ortgpu_fix.apply.after_change import incoming_distributions
from ortgpu_fix.apply.before_change import check_environment_owner, check_plan_allowed
from ortgpu_fix.cli.commands.apply import allowed_by
from ortgpu_fix.cli.commands.plan import print_plan
from ortgpu_fix.cli.facts_files import capability_of
from ortgpu_fix.cli.inputs import gather_inputs
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.errors import Error
from ortgpu_fix.facts import capture, document
from ortgpu_fix.facts.markers import target_markers
from ortgpu_fix.facts.model import System
from ortgpu_fix.facts.target import Installed, Target
from ortgpu_fix.messages.shells import pasted_commands
from ortgpu_fix.plan.wheels import wheel_on
from ortgpu_fix.resolve.environment import Environment, consequences
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

CAPTURES = sorted(
    path.parent for path in (Path(__file__).parents[1] / "captures").glob("*/capture.json")
)
Document = dict[str, Any]


def captured(folder: Path) -> Document:
    read = capture.from_json(json.loads((folder / "capture.json").read_text("utf-8")))
    return document.to_json(capture.facts(read, capability_of))


def told(
    facts: Document, folder: Path, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, str]:
    (folder / "host.json").write_text(json.dumps(facts))
    code = __main__.main(["--facts", str(folder / "host.json"), *flags])
    return code, capsys.readouterr().out


def example(**python: object) -> Document:
    facts = json.loads(json.dumps(example_machine()))
    facts["python"] |= python
    return facts  # type: ignore[no-any-return]


def requiring(*requires: str, **python: object) -> Document:
    facts = example(**python)
    facts["packages"].append({"name": "app", "version": "2.0", "requires": [*requires]})
    return facts


def with_training() -> Document:
    facts = requiring("onnxruntime-training>=1.17")
    facts["packages"].append({"name": "onnxruntime-training", "version": "1.19.2"})
    return facts


def environment_of(facts: Document) -> Target:
    """Return the environment that `facts` tell of, as `--apply` would find it."""
    python = facts["python"]
    rows = [
        Installed(row["name"], row["version"], "", tuple(row.get("requires", ())))
        for row in facts["packages"]
    ]
    return TARGET._replace(
        version=python["version"],
        kind=python.get("environment") or "venv",
        externally_managed=bool(python.get("externally_managed")),
        installed=tuple(rows),
        platform="win-amd64" if facts["platform"]["system"] == "windows" else "linux-x86_64",
    )


def words_of(command: str, system: str) -> list[str]:
    if system == "windows":
        first = windows_shells.powershell(command, {}, since_7_3=True)
        assert windows_shells.cmd(command, {}) == first
        return first
    return shlex.split(command)


def test_what_apply_would_refuse_is_in_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It promised that all is mended, downloaded two gigabytes, and refused."""
    code, said = told(with_training(), tmp_path, capsys)

    assert code == 1
    assert (
        "would break requirements of installed packages: app 2.0 (onnxruntime-training>=1.17)"
        in said
    )
    assert said.splitlines()[-1].endswith("--allow conflicts --apply")


def test_a_conflict_is_refused_before_anything_is_fetched() -> None:
    facts = document.from_json(with_training())
    plan = resolve(facts, PlanOptions(), random_machines.MATRIX)
    plan = plan._replace(
        findings=tuple(row for row in plan.findings if row.code != "training-lost")
    )

    with pytest.raises(Error, match="would-conflict") as caught:
        check_plan_allowed(plan, allowed_by(()))
    assert dict(caught.value.values) == {"conflicts": "app 2.0 (onnxruntime-training>=1.17)"}
    check_plan_allowed(plan, allowed_by(["conflicts"]))


@pytest.mark.parametrize(
    ("python", "allowed"),
    [
        ({"environment": "conda"}, "--allow conda"),
        ({"environment": "system", "externally_managed": True}, "--allow system"),
    ],
)
def test_the_last_line_has_every_allow_that_it_needs(
    python: Document, allowed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = told(example(**python), tmp_path, capsys)

    assert said.splitlines()[-1] == (
        f"ortgpu-fix --python /opt/app/.venv/bin/python {allowed} --apply"
    )
    _, said = told(example(**python), tmp_path, capsys, *shlex.split(allowed))
    assert said.splitlines()[-1].count("--allow") == 1


def test_an_environment_that_is_not_ours_to_write_to_needs_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = told(example(environment="user"), tmp_path, capsys)

    assert "In your own virtual environment, run:" in said
    assert said.splitlines()[-1] == "ortgpu-fix --python .venv --apply"


def test_the_plan_for_another_machine_names_that_machines_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = told(example(executable="~/my app/.venv/bin/python"), tmp_path, capsys)

    assert "\nRun this on that machine:\n" in said
    assert said.splitlines()[-1] == "ortgpu-fix --python /path/to/python --apply"
    _, said = told(example(executable=None), tmp_path, capsys)
    assert said.splitlines()[-1] == "ortgpu-fix --apply"


def test_several_machines_end_with_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(example()))
    argv = ["--facts", f"{tmp_path}/a.json", "--facts", f"{tmp_path}/b.json", "--cuda", "12"]

    assert __main__.main(argv) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"ortgpu-fix lock {shlex.join(argv)} -o gpu.txt"
    line = parse(shlex.split(last)[1:])
    assert (line.named, line.machine.several) == ("lock", tuple(argv[1:4:2]))
    assert line.options["cuda"] == "12"


@pytest.mark.parametrize("folder", CAPTURES, ids=lambda path: path.name)
def test_the_last_line_of_a_plan_is_a_command_that_its_owner_may_give(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = captured(folder)
    for flags in ((), ("--torch", "match")):
        code, said = told(facts, tmp_path, capsys, *flags)
        lines = said.splitlines()
        if code != 1 or not lines[-1].startswith("ortgpu-fix "):
            assert "--apply" not in lines[-1]
            continue
        words = words_of(lines[-1], facts["platform"]["system"])
        for system in get_args(System):
            [pasted] = pasted_commands(words, system)
            assert words_of(pasted.text, system) == words
        line = parse(words[1:])
        assert line.command == "apply"
        assert line.machine.python in {facts["python"]["executable"], ".venv", "/path/to/python"}
        target = environment_of(facts)
        if line.machine.python == ".venv":
            target = target._replace(kind="venv", externally_managed=False)
        check_environment_owner(target, allowed_by(line.options.get("allow", ())))


@given(
    facts=random_machines.documents(),
    wants=st.lists(st.sampled_from(random_machines.WISHES), max_size=3, unique=True),
    torch=st.sampled_from(["keep", "keep", "match"]),
)
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_apply_refuses_nothing_that_the_facts_told(
    facts: Document, wants: list[str], torch: str
) -> None:
    facts["packages"].append({"name": "app-one", "version": "1.0", "requires": wants})
    read = document.from_json(facts)
    plan = resolve(read, PlanOptions(torch=torch), random_machines.MATRIX)
    if plan.verdict != "fixable":
        return
    target = environment_of(facts)
    made = [wheel_on("", row.name, row.version, None) for row in plan.companions]
    coming = dict.fromkeys((*plan.install, *made), ())
    before = Environment(target.in_use, target_markers(target))
    refused = consequences(before, plan.uninstall, incoming_distributions(coming)).unmet

    assert ("conflicts" in plan.allowances) == bool(refused), refused
    allowing = PlanOptions(torch=torch, conflicts=True)
    assert resolve(read, allowing, random_machines.MATRIX) == plan


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the machines that are made have Linux")
def test_the_command_that_ends_a_plan_is_not_refused(tmp_path: Path) -> None:
    """A sample of the proof, whose machines are real environments with stand-ins for wheels."""
    script = Path(__file__).parents[2] / "scripts" / "prove" / "promises.py"
    words = [sys.executable, str(script), "--count", "12", "--results", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(next(tmp_path.glob("promises-*.json")).read_text())["promises"]["kept"] >= 4


@pytest.mark.parametrize(
    ("kind", "cause"), [("a file", "Not a directory"), ("nothing", "No such file or directory")]
)
def test_a_folder_of_wheels_that_is_none_is_refused_at_once(
    kind: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was passed over, and the wheels came from the index."""
    folder = tmp_path / "wheels"
    if kind == "a file":
        folder.touch()
    words = ["lock", "--driver", "535.104.12", "--gpu", "8.0", "--python", sys.executable]

    assert __main__.main([*words, "--find-links", str(folder)]) == 7

    shown = capsys.readouterr()
    assert f"`--find-links {folder}` cannot be read: {cause}" in shown.out + shown.err


def test_what_needs_the_network_is_not_promised_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = parse(["--facts", "example", "--offline", "--find-links", str(tmp_path)]).request
    there = gather_inputs(line, {})
    plan = resolve(there.facts, there.options, there.matrix)
    plan = plan._replace(requires=("flatbuffers", "protobuf>=4.25.8"))

    def told(target: Target | None) -> tuple[bool, bool]:
        """Return whether the promised command is --offline, and whether all wheels are here."""
        inputs = there._replace(target=target, elsewhere=target is None)
        print_plan(plan, inputs, line, "en")
        text = capsys.readouterr().out
        return "--offline" in text.strip().splitlines()[-1], "nothing to download" in text

    assert told(TARGET) == (False, False)
    for wheel in plan.install:
        with (tmp_path / wheel.file).open("wb") as file:
            file.truncate(wheel.size)
    assert told(TARGET) == (False, True)  # what uv chooses comes from that folder, too
    for name in ("flatbuffers-25-py3-none-any.whl", "protobuf-4-py3-none-any.whl"):
        (tmp_path / name).touch()
        assert told(TARGET) == (False, True)
    (tmp_path / "protobuf-5-py3-none-any.whl").touch()
    assert told(TARGET) == (True, True)
    line = parse(["--facts", "example", "--find-links", str(tmp_path)]).request
    assert told(TARGET) == (False, True)
    line = parse(["--facts", "example", "--offline", "--find-links", str(tmp_path)]).request
    first = tmp_path / plan.install[0].file
    first.rename(tmp_path / "elsewhere")
    assert told(TARGET) == (False, False)
    (tmp_path / "elsewhere").rename(first)
    assert told(TARGET) == (True, True)
    assert told(None) == (True, False)  # of another machine nobody knows what it has
