"""Every command that the READMEs and the help tell, as it stands: nothing in them is out of date.

The environment has the real CPU build, the driver is a simulated 535.104.12 with an A100, and
nobody is there to be asked, so that `--apply` ends with 2. What it does is in test_main_job.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from drivers import A100, simulate
from environments import path_without_ours

from ortgpu_fix.cli.guests import NAMES as COMMANDS
from ortgpu_fix.data_files import example_machine, load_table
from support.standin_wheels import find_uv

pytestmark = [pytest.mark.slow, pytest.mark.online]
ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "python -m venv .venv",  # Python's own
    "python3 scripts/main_job.py",  # tests/repository/test_first_steps.py
    "python3 scripts/test.py",  # runs this
    "ortgpu-fix --python .venv --apply --yes --json",  # test_main_job.py
    "ortgpu-fix diff OLD NEW",  # tests/lock/test_difference.py
    "ortgpu-fix download -d gpu-libraries --libraries --for PROGRAM",  # tests/guests/libraries
    "ortgpu-fix download -d gpu-libraries --libraries --ort 1.22.0",  # there, too
    "pip install ansible-core tomli .",  # tests/ansible/test_collection.py, and the three below
    "ansible-galaxy collection install ./scripts/ansible",
    "ansible-playbook -i inventory site.yml",
    "ansible-playbook -i inventory site.yml --check --diff",
}
"""What other tests run."""
ENDS = {
    "ortgpu-fix": 1,
    "ortgpu-fix --facts example": 1,
    "ortgpu-fix --python .venv": 1,
    "ortgpu-fix --python python_embeded/python.exe": 7,  # there is none
    "ortgpu-fix --driver 535.104.12 --gpu A100": 1,
    "ortgpu-fix --driver 522.06 --gpu 3070 --platform windows --python 3.10": 1,
    "ortgpu-fix --driver 576.02 --gpu 3060 --platform windows --python 3.12": 1,
    "ortgpu-fix --driver 576.02 --gpu 5060 --platform windows --python 3.12 --torch match": 1,
    "ortgpu-fix --torch match": 1,
    "ortgpu-fix --provider tensorrt": 1,
    "ortgpu-fix --provider tensorrt-rtx": 3,  # an A100 is none of its GPUs
    "ortgpu-fix --check --facts production.json": 1,
    "ortgpu-fix run -- python app.py": 1,
    "ortgpu-fix run --python .venv -- rembg i in.png out.png": 2,
    "ortgpu-fix run --require-gpu -- uvicorn app:app --workers 2": 2,
    "ortgpu-fix run --require-gpu -- python app.py": 1,
    "ortgpu-fix facts -o FILE": 0,
    "ortgpu-fix facts -o production.json": 0,
    "ortgpu-fix facts -o server.json": 0,
    "ortgpu-fix facts --from-text outputs.txt -o machine.json": 0,
    "ortgpu-fix diff HEAD:uv.lock uv.lock --hosts server.json --hosts laptop.json": 1,
    "ortgpu-fix diff origin/main:uv.lock uv.lock --hosts production.json": 1,
    "ortgpu-fix explain issue.txt --text-only": 0,
    "ortgpu-fix facts -o host.json": 0,
    "ortgpu-fix --facts host.json": 1,
    'ortgpu-fix --driver 551.61 --gpu "RTX 4060" --platform windows': 1,
    "ortgpu-fix --driver 535.104.12 --gpu A100 --cuda 12": 1,
    "ortgpu-fix --facts laptop.json --facts server.json --facts ci.json --with-cpu": 0,
    "ortgpu-fix --check": 1,
    "ortgpu-fix --check --python .venv --facts production.json": 1,
    "ortgpu-fix download -d wheels": 0,
    "ortgpu-fix download -d wheels --facts host.json": 0,
    "ortgpu-fix download -d wheels --facts facts": 0,
    "ortgpu-fix lock --facts laptop.json --facts server.json -d gpu-wheels -o gpu.txt": 0,
    "ortgpu-fix lock --facts host1.json --facts host2.json -o gpu.txt": 0,
    "ortgpu-fix lock -o gpu.txt": 0,
    "ortgpu-fix lock --check gpu.txt": 1,
    "ortgpu-fix lock --driver 535.104.12 --gpu A100 --format dockerfile -o Dockerfile": 0,
    "ortgpu-fix lock --driver 535.104.12 --gpu A100 --format dockerfile -d gpu-wheels "
    "-o Dockerfile": 0,
    "ortgpu-fix --apply --allow conda": 2,
    "ortgpu-fix --torch match --apply": 2,
    "ortgpu-fix --python .venv --apply": 2,
    "ortgpu-fix --apply": 2,
    "ortgpu-fix --apply --write": 2,
    "ortgpu-fix --apply --python .venv": 2,
    "ortgpu-fix --apply --offline --find-links wheels": 2,
    "ortgpu-fix undo": 2,
    "ortgpu-fix undo --python .venv": 2,
    "ortgpu-fix undo --forget": 0,
    "ortgpu-fix verify --python .venv": 6,
    "ortgpu-fix verify --bench model.onnx": 6,
    "ortgpu-fix verify model.onnx --shape x=1x3x640x640": 6,
    "ortgpu-fix verify --bench model.onnx --report page.html": 6,
    "ortgpu-fix explain error.log": 0,
    "python app.py 2>&1 | ortgpu-fix explain -": 0,
    "ortgpu-fix matrix": 0,
    "ortgpu-fix matrix 1.26.0": 0,
    "ortgpu-fix matrix --update": 0,
    "ortgpu-fix matrix --update -o team.json": 0,
    "ortgpu-fix matrix --forget": 0,
    "ortgpu-fix cache info": 0,
    "ortgpu-fix cache purge": 0,
    "ortgpu-fix facts -o NAME.json": 0,
    "ortgpu-fix --python .venv --json": 1,
    "ortgpu-fix --check --python .venv": 1,
    "ortgpu-fix run --json -o run.json --python .venv -- python app.py": 1,
    "ortgpu-fix undo --yes --python .venv": 2,
    "ortgpu-fix explain error.log --json": 0,
    **{f"ortgpu-fix help {command}": 0 for command in COMMANDS},
}
"""What each ends with; in this order."""
GIT = (
    ("init", "-q", "-b", "main"),
    ("add", "uv.lock"),
    ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "one"),
    ("update-ref", "refs/remotes/origin/main", "HEAD"),
)
NEEDS_ONE = (
    *("ortgpu-fix", "ortgpu-fix --torch match"),
    *("ortgpu-fix --provider tensorrt", "ortgpu-fix --provider tensorrt-rtx"),
    *("ortgpu-fix --check", "ortgpu-fix undo --forget"),
)
NOWHERE = ENDS | {
    **dict.fromkeys(NEEDS_ONE, 2),
    "ortgpu-fix lock --check gpu.txt": 7,  # there is none
    **{command: 2 for command in ENDS if command.startswith("ortgpu-fix verify")},
    **{command: 7 for command in ENDS if "--python .venv" in command},
}
"""What ends otherwise after `uv tool install .`, with no environment in the folder: what is for one
needs one, and what plans for another machine, locks or downloads does not."""


def told() -> set[str]:
    """Return the commands in the READMEs and in the help."""
    table = load_table("help")
    rows = (*table["commands"].values(), *table["more"].values())
    found = {words for row in rows for words in row.get("examples", ())}
    names = ("AGENTS.md", "README.md", "README.zh-CN.md", "scripts/ansible/README.md")
    pages = [*(ROOT / name for name in names), *(ROOT / "data" / "docs").rglob("*.md")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        lines = "".join(re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL))
        found |= {line.partition("  #")[0].strip() for line in lines.splitlines()} - {""}
        found |= set(re.findall(r"`(ortgpu-fix(?: [^`]*)?)`", text))
    found = {command.replace("-- COMMAND", "-- python app.py") for command in found}
    for command in [each for each in found if "COMMAND" in each]:
        found |= {command.replace("COMMAND", name) for name in COMMANDS} - {command}
        found.remove(command)
    optional = {each for each in found if "[" in each}
    found |= {re.sub(r"[\[\]]", "", each) for each in optional}
    found |= {re.sub(r" \[.*?\]", "", each) for each in optional}
    return found - optional


def test_each_is_tried() -> None:
    assert told() - ELSEWHERE == ENDS.keys()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands name."""
    project = tmp_path_factory.mktemp("told") / "project"
    write_named_files(project)
    uv = find_uv()
    subprocess.run([uv, "venv", "-q", ".venv"], cwd=project, check=True)
    words = ["pip", "install", "-q", "--python", ".venv", "onnxruntime==1.22.1"]
    subprocess.run([uv, *words], cwd=project, check=True)
    return project


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without an environment; the program is in `bin` beside it, as uv installs it."""
    work = tmp_path_factory.mktemp("installed")
    write_named_files(work / "project")
    places = {"UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin"}
    env = os.environ | {name: str(work / place) for name, place in places.items()}
    env |= {"UV_PYTHON": sys.executable}
    words = [find_uv(), "tool", "install", "."]
    subprocess.run(words, cwd=ROOT, env=env, check=True, capture_output=True)
    return work / "project"


def write_named_files(project: Path) -> None:
    """Write the files that the commands name."""
    project.mkdir()
    machine: Any = example_machine()
    for name in ("host1", "host2", "laptop", "production"):
        (project / f"{name}.json").write_text(json.dumps(machine))
    (project / "facts").mkdir()
    (project / "facts" / "gpu1.json").write_text(json.dumps(machine))
    (project / "ci.json").write_text(json.dumps({**machine, "driver": None, "gpus": []}))
    log = "libcublasLt.so.12: cannot open shared object file: No such file or directory\n"
    for name in ("LOG", "error.log", "issue.txt"):
        (project / name).write_text(log)
    (project / "outputs.txt").write_text("name, driver_version\nNVIDIA A10G, 535.104.12\n")
    (project / "app.py").write_text(f"raise ImportError({log.strip()!r})\n")
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        model (float[n, 3, h, w] x) => (float[n, 2, h, w] y)
        <float[2, 3, 1, 1] k = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}> { y = Conv(x, k) }
    """)
    for name in ("model.onnx", "MODEL.onnx"):
        onnx.save(model, project / name)
    for version in ("1.26.0", "1.29.0"):
        package = f'[[package]]\nname = "onnxruntime-gpu"\nversion = "{version}"\n'
        (project / "uv.lock").write_text(f"version = 1\n{package}")
        if not (project / ".git").exists():
            for words in GIT:
                subprocess.run(["git", *words], cwd=project, check=True)


@pytest.fixture(scope="module")
def driver(stubs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    at = tmp_path_factory.mktemp("driver") / "it"
    return simulate(stubs, at, release="535.104.12", cuda=12020, cards=[A100])


@pytest.mark.parametrize("command", ENDS)
def test_it_does_what_is_told(folder: Path, driver: dict[str, str], command: str) -> None:
    done = typed(command, folder, Path(sys.executable).parent, driver)

    assert done.returncode == ENDS[command], done.stdout + done.stderr
    of_the_program = command.endswith("-- python app.py")  # which is passed on
    assert of_the_program or "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [each for each in NOWHERE if NOWHERE[each] != ENDS[each]])
def test_it_does_what_is_told_where_no_environment_is(
    installed: Path, driver: dict[str, str], command: str
) -> None:
    done = typed(command, installed, installed.parent / "bin", driver)

    assert done.returncode == NOWHERE[command], done.stdout + done.stderr
    of_the_program = command.endswith("-- python app.py")
    assert of_the_program or "Traceback" not in done.stderr


def typed(
    command: str, folder: Path, programs: Path, driver: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command as it is typed in `folder`, by somebody whose home lies beside it."""
    path = os.pathsep.join([driver["PATH"], str(programs), path_without_ours()])
    handed = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    home = folder.parent / "home"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=handed | driver | {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
