"""Prove what becomes of the set when people go on with pip, uv, Poetry, PDM and pipx as usual.

    python scripts/prove/stays.py [--work DIR] [--only copied,overlay …] [--keep] [--results DIR]

Each row gets a fresh environment with magika and the CPU build, one release behind, and
`ortgpu-fix --apply` for a driver 580 and an A100; then one ordinary thing is done with the real
tool. A program asks for a CUDA session: either the set is still there, or the loader says on
standard error what came, and `ortgpu-fix --apply --offline` brings it back, or leaves it, where a
package wants the newer one, and names the flag that it needs. Where a tool has taken the loader
away with all that its lock does not name, nothing is left that could speak: then the plan has named
the tool and the lines that keep the set (`told before`), and with these lines it stays. There is no
GPU: the driver is a stand-in that says so, so that the provider loads its libraries and stops
there. Needs Linux, uv, gcc and a network, and downloads about 3 GB. The dated result goes to
scripts/prove/results/; the exit code is 1 where a row ends in silence, or where the way back takes
more than two seconds, by the clock and of the processors: others may be at work meanwhile.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.applications import DRIVER, NO_GPU
from support.local_index import make_wheel
from support.prover import MODEL, Prover, Run, build_of, call, site_packages
from support.pythons import find_python
from support.standin_wheels import find_uv

PYTHON = "3.11"
APPLICATION = ("magika==1.0.2", "pip")
DEPENDENTS = ("chromadb", "insightface", "fastembed")
"""They require `onnxruntime` by name."""
MOST_SECONDS = 2.0
NEEDS_FLAGS = "needs-flags"
LINE = r"^ortgpu-fix: (.*?)\. To restore the environment"
"""The loader's."""
ASK = """
import sys, onnxruntime
wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
onnxruntime.InferenceSession(sys.argv[1], providers=wanted)
print("has CUDA:", wanted[0] in onnxruntime.get_available_providers())
"""
PROJECT = """[project]
name = "app"
version = "0"
requires-python = "==3.11.*"
dependencies = ["magika==1.0.2"]
"""
POETRY = """[tool.poetry]
package-mode = false
[[tool.poetry.source]]
name = "simple"
url = "https://pypi.org/simple"
"""
TOOLS = {"poetry": "poetry", "pdm": "pdm[locked]", "pipx": "pipx"}
NOBODY = 65534
NO_KEYRING = "keyring.backends.null.Keyring"


class Place(NamedTuple):
    """An environment that has the set, and where it belongs."""

    prover: Prover
    folder: Path
    """Of the row; a project lies in it."""
    python: Path

    def do(self, *words: str | Path, check: bool = True) -> int:
        """Run a tool in the folder, as a user there would."""
        environ = self.prover.environ | {"HOME": str(self.folder), "VIRTUAL_ENV": ""}
        environ |= {"PIPX_HOME": str(self.folder / "pipx"), "PDM_CHECK_UPDATE": "0"}
        environ |= {"POETRY_VIRTUALENVS_IN_PROJECT": "true", "PYTHON_KEYRING_BACKEND": NO_KEYRING}
        environ.pop("PIP_CONFIG_FILE", None)  # the environment's own counts
        return call(*words, environ=environ, cwd=self.folder, check=check).returncode

    def pip(self, *words: str) -> int:
        """Run the pip of the environment; return its exit code."""
        links = ("--find-links", str(self.prover.work / "wheels"))
        more = links if words[0] == "install" else ()
        return self.do(self.python, "-m", "pip", words[0], "-q", *more, *words[1:], check=False)

    def uv(self, *words: str) -> int:
        """Run `uv pip` on the environment."""
        there = ("--python", str(self.python))
        links = ("--find-links", str(self.prover.work / "wheels"))
        return self.do(find_uv(), "-q", "pip", *words, *there, *links)

    def tool(self, name: str, *words: str) -> int:
        """Run Poetry, PDM or pipx."""
        return self.do(self.prover.work / "tools" / name / "bin" / name, *words)


def copied(place: Place) -> Place:
    """Copy the environment elsewhere, as a layer of an image does."""
    goal = place.folder / "copied"
    shutil.copytree(place.python.parents[1], goal, symlinks=True)
    return place._replace(python=goal / "bin" / "python")


def overlaid(place: Place) -> Place:
    """Put an image's layer on top, and install into that."""
    upper, inner, goal = (place.folder / name for name in ("upper", "inner", "merged"))
    for folder in (upper, inner, goal):
        folder.mkdir()
    layers = f"lowerdir={place.python.parents[1]},upperdir={upper},workdir={inner}"
    place.do("mount", "-t", "overlay", "overlay", "-o", layers, goal)
    above = place._replace(python=goal / "bin" / "python")
    above.pip("install", "-U", "onnxruntime")
    return above


def renewed(place: Place) -> Place:
    """Upgrade the environment in place."""
    place.do(str(find_python(PYTHON)), "-m", "venv", "--upgrade", place.python.parents[1])
    return place


def with_requirements(place: Place) -> Place:
    """Install from a file of requirements."""
    (place.folder / "requirements.txt").write_text("magika\nonnxruntime\nnumpy\n")
    place.pip("install", "-U", "-r", "requirements.txt")
    return place


Thing = Callable[[Place], "Place | int"]
THINGS: dict[str, tuple[str, Thing]] = {
    "pip install -U magika": ("venv", lambda at: at.pip("install", "-U", "magika")),
    "pip install -U --upgrade-strategy eager magika": (
        *("venv", lambda at: at.pip("install", "-U", "--upgrade-strategy", "eager", "magika")),
    ),
    "pip install newer-app": ("venv", lambda at: at.pip("install", "newer-app")),
    "pip install pinned-app": ("venv", lambda at: at.pip("install", "pinned-app")),
    "pip install chromadb insightface fastembed": (
        *("venv", lambda at: at.pip("install", "--prefer-binary", *DEPENDENTS)),
    ),
    "pip install --force-reinstall magika": (
        *("venv", lambda at: at.pip("install", "--force-reinstall", "magika==1.0.2")),
    ),
    "pip install -U onnxruntime": ("venv", lambda at: at.pip("install", "-U", "onnxruntime")),
    "pip install -U -r requirements.txt": ("venv", with_requirements),
    "pip uninstall onnxruntime": ("venv", lambda at: at.pip("uninstall", "-y", "onnxruntime")),
    "python -m venv --upgrade": ("venv", renewed),
    "uv pip install -U magika": ("venv", lambda at: at.uv("install", "-U", "magika")),
    "uv pip install newer-app": ("venv", lambda at: at.uv("install", "newer-app")),
    "uv pip install chromadb insightface fastembed": (
        *("venv", lambda at: at.uv("install", *DEPENDENTS)),
    ),
    "uv pip install pinned-app": ("venv", lambda at: at.uv("install", "pinned-app")),
    "uv pip install --reinstall magika": (
        *("venv", lambda at: at.uv("install", "--reinstall", "magika==1.0.2")),
    ),
    "uv run": ("uv", lambda at: at.do(find_uv(), "-q", "run", "python", "-c", "")),
    "uv add rich": ("uv", lambda at: at.do(find_uv(), "-q", "add", "rich")),
    "uv sync": ("uv", lambda at: at.do(find_uv(), "-q", "sync")),
    "poetry add rich": ("poetry", lambda at: at.tool("poetry", "add", "-q", "rich")),
    "poetry update": ("poetry", lambda at: at.tool("poetry", "update", "-q")),
    "pdm add rich": ("pdm", lambda at: at.tool("pdm", "add", "-q", "rich")),
    "pdm update": ("pdm", lambda at: at.tool("pdm", "update", "-q")),
    "pipx upgrade magika": ("pipx", lambda at: at.tool("pipx", "upgrade", "magika")),
    "a copy": ("venv", copied),
    "another user": ("venv", lambda _: 0),
    "a layer on top, pip install -U onnxruntime": ("venv", overlaid),
}


def made(prover: Prover, kind: str, folder: Path) -> Place:
    """Make the environment as the tool makes it."""
    folder.mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    place = Place(prover, folder, python)
    if kind == "venv":
        place.do(find_uv(), "-q", "venv", "--python", str(find_python(PYTHON)), ".venv")
        place.uv("install", *APPLICATION)
    elif kind == "pipx":
        place.tool("pipx", "install", "--python", str(find_python(PYTHON)), "magika==1.0.2")
        python = folder / "pipx" / "venvs" / "magika" / "bin" / "python"
    else:
        (folder / "pyproject.toml").write_text(PROJECT + (POETRY if kind == "poetry" else ""))
        place.do(find_uv(), "-q", "venv", "--seed", "--python", str(find_python(PYTHON)), ".venv")
        sync = (find_uv(), "-q", "sync", "--inexact", "--python", str(find_python(PYTHON)))
        place.do(*sync) if kind == "uv" else place.tool(kind, "install", "-q")
    return place._replace(python=python)


def asked(place: Place, *, user: int = 0) -> tuple[bool, str]:
    """Ask for a CUDA session; return whether the set is there, and what the loader said."""
    python = place.python
    become = ["setpriv", f"--reuid={user}", "--clear-groups"] if user else []
    environ = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": place.prover.driver}
    done = subprocess.run(
        [*become, str(python), "-c", ASK, str(MODEL)],
        env=environ,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    line = re.search(LINE, done.stderr, re.MULTILINE)
    return "has CUDA: True" in text and NO_GPU in text, line[1] if line else ""


def processor_seconds() -> float:
    """Return what all children that have ended spent of a processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def prove(prover: Prover, name: str) -> None:
    """Do one thing."""
    kind, thing = THINGS[name]
    folder = prover.work / re.sub(r"\W+", "-", name)
    place = made(prover, kind, folder)
    applied = prover.tool(place.python, "--apply", "--yes", driver=DRIVER)
    told = any(row["code"].startswith("managed-by") for row in applied.get("findings", ()))
    outcome = thing(place)
    code, place = (0, outcome) if isinstance(outcome, Place) else (outcome, place)
    stays, line = asked(place, user=NOBODY * (name == "another user"))
    check = prover.check(place.python, DRIVER)
    ours = [one.name for one in site_packages(place.python).glob("ortgpu_fix_libraries-*")]
    back, seconds, spent, against = stays, 0.0, 0.0, ""
    if not stays:
        os.sync()  # nobody waits for the gigabytes that the tool has written
        began, before = time.monotonic(), processor_seconds()
        again = prover.tool(place.python, "--apply", "--yes", "--offline", driver=DRIVER)
        seconds = round(time.monotonic() - began, 2)
        spent = round(processor_seconds() - before, 2)
        back, _ = asked(place)
        if again.get("error", {}).get("code") == NEEDS_FLAGS:  # what came in wants the newer one
            against = again["error"]["message"]
    swept = told and not ours
    silent = not (stays or line or swept)
    soon = swept or min(seconds, spent) <= MOST_SECONDS
    prover.say(
        kind,
        name,
        good=applied["exit"] == 0 and bool(back or against) and not silent and soon,
        stays=stays,
        refused=bool(code),
        line=line,
        told_before=told,
        check=check,
        back_in_seconds=seconds,
        of_processor=spent,
        against=against,
        build=build_of(place.python)["package"],
    )
    if (folder / "merged").is_mount():
        subprocess.run(["umount", folder / "merged"], check=True)
    if not prover.keep:
        shutil.rmtree(folder)


def fill(wheels: Path) -> None:
    """Make the wheels that no index has."""
    for name, wish in (("newer-app", ">=1.32"), ("pinned-app", "==1.32.0")):
        make_wheel(wheels, name, "1.0", requires=[f"onnxruntime{wish}"])


def main() -> int:
    """Do all of it; return the exit code."""
    run = Run(__doc__, "stays")
    prover = run.prover
    prover.work.chmod(0o755)  # another user reads it
    fill(prover.work / "wheels")
    chosen = [name for name in THINGS if run.wants(name)]
    for name in {THINGS[row][0] for row in chosen} & TOOLS.keys():
        prover.uv("venv", "--python", sys.executable, prover.work / "tools" / name)
        prover.install(prover.work / "tools" / name / "bin" / "python", TOOLS[name])
    for name in chosen:
        prove(prover, name)
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
