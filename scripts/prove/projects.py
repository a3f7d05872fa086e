"""Prove that the lines for a project's own tool keep the CPU build away, with the real tools.

    python scripts/prove/projects.py [--only uv,pdm,poetry,poetry-classic,pip] [--results DIR]

A project requires fastembed, which requires onnxruntime by name. Its lock is made and installed as
it stands, and once more with the lines that the plan prints; the wheels are small stand-ins of
those names and versions, from an index on this machine. PDM and Poetry come from the package index.
The dated result goes to scripts/prove/results/; the exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from ortgpu_fix.companions import build as companion_wheels
from ortgpu_fix.companions import contents as companions
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix import load as data_files
from ortgpu_fix.messages import catalog
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from prove.outcomes import RESULTS, write
from support import standin_fleet, standin_wheels
from support.local_index import LocalIndex, make_wheel
from support.prover import call

RELEASE = "1.26.0"
BARE = '"fastembed", "onnxruntime-gpu", "numpy"'
WITH_CPU = '"fastembed", "onnxruntime"'
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
REQUIRED = {"flatbuffers": "25.2.10", "numpy": "2.2.6", "packaging": "25.0", "protobuf": "6.31.1"}
"""Ordinary requirements of onnxruntime-gpu, which a lock takes from the index."""
TOOLS = {"pdm": "pdm[locked]", "poetry": "poetry"}
"""What the package index is asked for; PDM's newest requirements do not work with each other."""
VARIABLES = {"PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE"}


class Project:
    """A project of one tool, in a folder of its own."""

    def __init__(self, folder: Path, index: str, tool: Path, base: Path, program: Path) -> None:
        """`program` is the interpreter of an ortgpu-fix that takes the stand-ins for the wheels."""
        self.folder, self.index, self.tool = folder, index, tool
        folder.mkdir(parents=True)
        self.python = folder / ".venv" / "bin" / "python"
        self.base = base
        self.renew()
        kept = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        self.ours: tuple[str | Path, ...] = (program, "-m", "ortgpu_fix")
        self.environ = kept | {
            "HOME": str(folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PDM_CHECK_UPDATE": "0",
            "POETRY_VIRTUALENVS_IN_PROJECT": "true",
        }

    def renew(self) -> None:
        """Make its environment anew; who takes the CPU build away leaves a gutted folder."""
        subprocess.run([self.base, "-m", "venv", "--clear", self.folder / ".venv"], check=True)

    def write(self, *parts: str, dependencies: str = BARE) -> None:
        """Write its pyproject.toml."""
        head = '[project]\nname = "app"\nversion = "0"\n'
        head += f'requires-python = "=={PYTHON}.*"\ndependencies = [{dependencies}]\n'
        (self.folder / "pyproject.toml").write_text("\n".join([head, *parts, ""]))

    def run(self, *words: str | Path) -> None:
        """Run the tool there."""
        call(self.tool, *words, cwd=self.folder, environ=self.environ)

    def state(self) -> dict[str, str]:
        """Return which distributions are there, and `folder`: whose build is in onnxruntime."""
        there = ("--python", self.python)
        listed = self.uv("list", "--format", "json", *there).stdout
        found = {row["name"]: row["version"] for row in json.loads(listed)}
        [about] = self.folder.glob(
            ".venv/lib/python*/site-packages/onnxruntime/capi/build_and_package_info.py"
        )
        [build] = re.findall("package_name = '(.*)'", about.read_text())
        return {
            "folder": build,
            "onnxruntime": found.get("onnxruntime", "absent"),
            "loader": found.get(companions.LIBRARIES, "absent"),
            "check": self.uv("check", *there).stderr.strip().rpartition("\n")[2],
        }

    def uv(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Ask uv what is there: some tools remove pip."""
        command = [standin_wheels.find_uv(), "--no-config", "pip", *words]
        return subprocess.run(
            command, env=self.environ, capture_output=True, text=True, check=False
        )


def machine(tool: str) -> dict[str, object]:
    """Return the facts of an environment that belongs to a project of `tool`."""
    return {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64"},
        "driver": {"version": "570.10"},
        "gpus": [{"compute_capability": "8.6"}],
        "python": {"version": f"{PYTHON}.0", "project": tool},
        "packages": [
            {"name": "fastembed", "version": "0.9.1", "requires": ["onnxruntime>=1.17"]},
            {"name": "onnxruntime", "version": "1.22.1"},
        ],
    }


def planned(tool: str) -> Plan:
    """Return the plan for it."""
    options = PlanOptions(onnxruntime=f"=={RELEASE}")
    return resolve(facts_json.from_json(machine(tool)), options, data_files.load_matrix())


def make_index(folder: Path, program: Path) -> None:
    """Write the stand-ins: both builds, who requires them, and what they require and link.

    `program`, the interpreter of an ortgpu-fix of its own, takes them for the real wheels.
    """
    standin_wheels.make_set(folder)
    for name, version in REQUIRED.items():
        make_wheel(folder, name, version)
    rows = [{"file": wheel.file} for wheel in planned("uv").selection]
    standin_fleet.make_stand_ins(program, rows, folder, {"onnxruntime-gpu": [*REQUIRED]})


def put_companions(folder: Path) -> tuple[Path, Path]:
    """Write the companions of the plan and return their files: what loads, and the stand-in."""
    folder.mkdir()
    made = companion_wheels.build_companions(
        planned("uv").selection,
        data_files.load_matrix(),
        "linux_x86_64",
        data_files.companion_modules(),
    )
    for wheel in made:
        (folder / wheel.file).write_bytes(wheel.content)
    loader, stand_in = (folder / wheel.file for wheel in made)
    return loader, stand_in


def remedy(tool: str) -> str:
    """Return what the plan says to the keeper of a project of `tool`."""
    [finding] = [row for row in planned(tool).findings if row.code == f"managed-by-{tool}"]
    return catalog.load_texts("en").remedy(finding)


def lines(tool: str, name: str) -> str:
    """Return what the plan's remedy says `name` is to be: the text of a list or table."""
    said = remedy(tool)
    found = re.search(rf"(?<![\w-]){name} = (\[.*?\]|\{{.*?\}})(?=[\s.,]|$)", said)
    if found is None:
        sys.exit(f"the remedy for {tool} says nothing of {name}: {said}")
    return found[1]


def of_uv(make: Callable[[str], Project]) -> dict[str, dict[str, str]]:
    """Lock and sync with uv: the plan names `lock --format uv`, and its lines are pasted."""
    project = make("uv")
    index = f'[[tool.uv.index]]\nurl = "{project.index}"\ndefault = true\n'
    project.write(index)
    project.run("sync", "--quiet", "--python", project.python)
    found = {"as it stands": project.state()}
    [command] = re.findall(r"`(ortgpu-fix lock .*?)`", remedy("uv"))
    (project.folder / "host.json").write_text(json.dumps(machine("uv")))
    wishes = ("--facts", "host.json", "--ort", RELEASE, "--index-url", project.index)
    call(*project.ours, *command.split()[1:], *wishes, cwd=project.folder, environ=project.environ)
    project.write(index, (project.folder / "gpu.toml").read_text("utf-8"))
    project.run("sync", "--quiet")
    found["with the lines"] = project.state()
    check = (*project.ours, "--check", "--facts", "host.json", "--python", ".venv")
    call(*check, cwd=project.folder, environ=project.environ)  # ends where it is not right
    project.run("sync", "--quiet")
    found["sync again"] = project.state()
    return found


def of_pdm(make: Callable[[str], Project]) -> dict[str, dict[str, str]]:
    """Lock and sync with PDM."""
    project = make("pdm")
    settings = "[tool.pdm]\ndistribution = false\n"
    index = f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{project.index}"\nverify_ssl = false\n'
    project.write(settings, index)
    project.run("use", "--quiet", "--first", project.python)
    project.run("install", "--quiet")
    found = {"as it stands": project.state()}
    excludes = f"[tool.pdm.resolution]\nexcludes = {lines('pdm', 'excludes')}\n"
    wanted = f'"fastembed", {lines("pdm", "dependencies")[1:-1]}'
    project.write(settings, index, excludes, dependencies=wanted)
    project.renew()
    project.run("lock", "--quiet")
    project.run("sync", "--quiet")
    found["with the lines"] = project.state()
    loader, _ = put_companions(project.folder / "gpu-wheels")
    base: tuple[str | Path, ...] = (project.python, "-m", "pip", "install", "-q", "--no-deps")
    call(*base, loader, environ=project.environ)
    project.run("sync", "--quiet")
    found["sync"] = project.state()
    project.run("sync", "--quiet", "--clean")
    found["sync --clean"] = project.state()
    return found


def of_poetry(make: Callable[[str], Project]) -> dict[str, dict[str, str]]:
    """Lock and sync with Poetry, where the dependencies are those of [project]."""
    project = make("poetry")
    named = f"[tool.poetry.dependencies]\nonnxruntime = {lines('poetry', 'onnxruntime')}\n"
    project.write(*poetry_settings(project))
    return with_poetry(
        project, lambda: project.write(*poetry_settings(project), named, dependencies=WITH_CPU)
    )


def of_classic_poetry(make: Callable[[str], Project]) -> dict[str, dict[str, str]]:
    """Lock and sync with Poetry, where all is in its own tables."""
    project = make("poetry-classic")
    path = project.folder / "pyproject.toml"
    head = '[tool.poetry]\nname = "app"\nversion = "0"\npackage-mode = false\n'
    wanted = f'[tool.poetry.dependencies]\npython = "{PYTHON}.*"\nfastembed = "*"\n'
    _, index = poetry_settings(project)
    named = f"onnxruntime = {lines('poetry', 'onnxruntime')}\n"
    path.write_text(head + wanted + 'onnxruntime-gpu = "*"\nnumpy = "*"\n' + index)
    return with_poetry(project, lambda: path.write_text(head + wanted + named + index))


def poetry_settings(project: Project) -> tuple[str, str]:
    """Return the tables of a project of Poetry that is no package and asks its index alone."""
    index = f'[[tool.poetry.source]]\nname = "here"\nurl = "{project.index}"\n'
    return "[tool.poetry]\npackage-mode = false\n", f'{index}priority = "primary"\n'


def with_poetry(project: Project, edit: Callable[[], object]) -> dict[str, dict[str, str]]:
    """Lock and sync as the project stands, then after `edit` and the command of the plan."""
    project.run("lock", "--quiet")
    project.run("sync", "--quiet")
    found = {"as it stands": project.state()}
    loader, _ = put_companions(project.folder / "gpu-wheels")
    edit()
    project.renew()
    [command] = re.findall(r"`poetry (add .*?)`", remedy("poetry"))
    project.run(*shlex.split(command), "--quiet")
    project.run("sync", "--quiet")
    found["with the lines"] = project.state()
    base: tuple[str | Path, ...] = (project.python, "-m", "pip", "install", "-q", "--no-deps")
    call(*base, loader, environ=project.environ)
    project.run("install", "--quiet")
    found["install"] = project.state()
    project.run("sync", "--quiet")
    found["sync"] = project.state()
    return found


def of_pip(make: Callable[[str], Project]) -> dict[str, dict[str, str]]:
    """Install with pip and constraints: they cannot exclude, and may name a file."""
    found: dict[str, dict[str, str]] = {}
    for kind in ("as it stands", "with a marker that never holds", "with the lines"):
        project = make(f"pip {kind}")
        _, stand_in = put_companions(project.folder / "gpu-wheels")
        constraint = {
            "as it stands": "",
            "with a marker that never holds": "onnxruntime; sys_platform == 'never'",
            "with the lines": f"onnxruntime @ {stand_in.as_uri()}",
        }[kind]
        (project.folder / "constraints.txt").write_text(constraint)
        words = ("-m", "pip", "install", "-q", "-i", project.index, "-c", "constraints.txt")
        project.run(*words, "fastembed", f"onnxruntime-gpu=={RELEASE}")
        found[kind] = project.state()
    return found


PARTS: dict[str, Callable[[Callable[[str], Project]], dict[str, dict[str, str]]]] = {
    "uv": of_uv,
    "pdm": of_pdm,
    "poetry": of_poetry,
    "poetry-classic": of_classic_poetry,
    "pip": of_pip,
}


def wrong(tool: str, found: dict[str, dict[str, str]]) -> list[str]:
    """Return what is not as it must be."""
    says = []
    if found["as it stands"]["onnxruntime"] != "1.22.1":
        says.append("nothing brought the CPU build, so nothing is proven")
    for step, state in list(found.items())[1:]:
        if "marker" not in step and state["folder"] != "onnxruntime-gpu":
            says.append(f"{step}: the folder holds {state['folder']}")
    stand_in = "absent" if tool == "pdm" else RELEASE
    if found["with the lines"]["onnxruntime"] != stand_in:
        says.append(f"onnxruntime is {found['with the lines']['onnxruntime']}")
    for step, stays in (
        ("sync again", True),
        ("sync --clean", False),
        ("install", True),
        ("sync", tool == "pdm"),
    ):
        if step in found and (found[step]["loader"] != "absent") is not stays:
            says.append(f"{step}: what loads the libraries is {found[step]['loader']}")
    return says


def tool_of(name: str, work: Path) -> tuple[Path, str]:
    """Return the program, installed where it has to be, and its version."""
    if name == "uv":
        program = Path(standin_wheels.find_uv())
    elif name == "pip":
        program = Path(sys.executable)
    else:
        home = work / f"tool-{name}"
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        python = home / "bin" / "python"
        asked = name.partition("-")[0]
        call(python, "-m", "pip", "install", "-q", TOOLS[asked], environ=dict(os.environ))
        program = home / "bin" / asked
    words = ("-m", "pip", "--version") if name == "pip" else ("--version",)
    said = call(program, *words, environ=dict(os.environ)).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return program, found[0] if found else said


def main() -> int:
    """Do all of it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS), help="tools, with commas")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="prove-projects-") as temporary:
        work = Path(temporary)
        (work / "index").mkdir()
        base = Path(sys.executable)
        ours = standin_fleet.make_controller(work / "program", base)
        make_index(work / "index", ours)
        with LocalIndex(work / "index") as index:
            for name in options.only.split(","):
                program, version = tool_of(name, work)

                def make(folder: str, program: Path = program) -> Project:
                    project = Project(work / folder, index.url, program, base, ours)
                    if program == base:  # pip is the environment's own
                        project.tool = project.python
                    return project

                found = PARTS[name](make)
                says = wrong(name, found)
                rows.append(
                    {"tool": name, "version": version, "good": not says, "wrong": says, **found}
                )
                print(f"{'ok  ' if not says else 'FAIL'} {name} {version}: {says}", flush=True)
    write("projects", {"rows": rows}, options.results)
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
