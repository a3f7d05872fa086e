"""What becomes of the set on Windows when people go on with pip and uv: `stays.py` under Wine.

    python scripts/prove/windows_stays.py --work DIR [--only TEXT]

An environment with an application that wants `onnxruntime` gets the real set of CUDA 13 by
`--apply`; then one ordinary thing after another is done to it with the Windows pip or uv. After
each a script asks for a CUDA session: either the set is there, or the loader says on standard error
what came, and `ortgpu-fix --apply --offline` brings it back, or says which package wants the newer
one. No server can be reached on the way back.

Needs what `windows.py` needs, and a wheel in dist. The dated result goes to scripts/prove/results;
the exit code is 1 where a row ends in silence, or the set is not back. How long the way back takes
is told beside what a start of Python takes there, and not judged: Wine is not Windows, and two
seconds, as `stays.py` asks on Linux, are four of its starts.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.stays import IMPOSSIBLE, LINE, fill
from prove.windows import NUMPY, ROOT, SETS, Proof, remove
from prove.windows_edges import DEAD, MACHINE, QUIET
from support.local_index import make_wheel
from support.windows_python import prove as run_cases

RELEASE, _, LOADED = SETS["13"]
EARLIER = "onnxruntime==1.30.0"
THINGS = {
    "install -U onnxruntime": ("install", "-U", "onnxruntime"),
    "install -U, all that the app wants": ("install", "-U", "app"),
    "install newer-app": ("install", "newer-app"),
    "install pinned-app": ("install", "pinned-app"),
    "install the app once more": ("install", "app"),
    "uninstall onnxruntime": ("uninstall", "onnxruntime"),
}
MORE = {"pip": ("--upgrade-strategy", "eager"), "uv": ("--upgrade",)}
AGAIN = {"pip": "--force-reinstall", "uv": "--reinstall"}
UPGRADED, COPIED = "python -m venv --upgrade", "a copy"
ORDER = (*(f"{tool} {name}" for tool in MORE for name in THINGS), UPGRADED, COPIED)


class Place(NamedTuple):
    """An environment that has the set."""

    proof: Proof
    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "Scripts" / "python.exe"

    def do(self, tool: str, verb: str, *words: str) -> None:
        """Install or uninstall, as the user does; whether it may is the tool's affair."""
        wine, own = self.proof.wine, self.proof.work / "apps"
        if verb == "install":
            words = (*words, NUMPY, "--find-links", f"Z:{own}".replace("/", "\\"))
        if words[0] == "-U" and words[1] == "app":
            words = (*words, *MORE[tool])
        if words[0] == "app":
            words = (*words, AGAIN[tool])
        if tool == "uv":
            there = ("--quiet", "--no-config", "--python", self.python)
            wine.run(wine.uv, "pip", verb, *there, *words)
            return
        asked = ("-y",) if verb == "uninstall" else ()
        wine.run(self.python, "-m", "pip", verb, "--quiet", *asked, *words, environ=QUIET)

    def start(self) -> float:
        """Return the seconds that a start of Python takes."""
        began = time.monotonic()
        self.proof.wine.must(self.python, "-c", "")
        return round(time.monotonic() - began, 2)

    def fix(self, *words: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
        """Run the program on it."""
        there = ("--json", "--python", self.folder, *MACHINE[:4])
        return self.proof.fix(*words, *there, **environ)

    def asked(self) -> tuple[bool, str]:
        """Ask for a CUDA session; return whether the set is there, and what the loader said."""
        model = ROOT / "data" / "matmul.onnx"
        done = self.proof.wine.run(self.python, self.proof.script, model, environ=QUIET)
        said = done.stderr.decode(errors="replace").replace("\r", "")
        line = re.search(LINE, said, re.MULTILINE)
        there = re.search(LOADED, said + done.stdout.decode(errors="replace"))
        return bool(there), line[1] if line else ""


def made(proof: Proof) -> Place:
    """Make the environment, and mend it."""
    folder = proof.work / "应用 app"
    remove(folder)
    python = proof.wine.venv(
        folder, NUMPY, EARLIER, proof.work / "apps" / "app-1.0-py3-none-any.whl", pip=True
    )
    place = Place(proof, folder)
    near = ("--find-links", f"Z:{proof.wheels('13')}".replace("/", "\\"))
    done = place.fix("--apply", "--yes", *near)
    if done.returncode != 0 or not place.asked()[0]:
        raise RuntimeError(f"{python}: {done.stdout.decode()[-2000:]}")
    return place


def prove(place: Place, name: str, about: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Do one thing; yield what is not as it must be, and put what was seen into `about`."""
    tool, _, thing = name.partition(" ")
    if name == UPGRADED:
        wine = place.proof.wine
        wine.must(wine.python, "-m", "venv", "--upgrade", place.folder)
    elif name == COPIED:
        goal = place.folder.with_name("copied")
        remove(goal)
        shutil.copytree(place.folder, goal)
        place = place._replace(folder=goal)
    else:
        place.do(tool, *THINGS[thing])
    stays, line = place.asked()
    seen = about[name] = {"stays": stays, "line": line}
    seen["check"] = place.fix("--check").returncode
    if stays:
        return
    seen["start_of_python"] = place.start()
    began = time.monotonic()
    again = place.fix("--apply", "--yes", "--offline", **DEAD)
    seen["back_in_seconds"] = round(time.monotonic() - began, 2)
    document = json.loads(again.stdout)
    if again.returncode == IMPOSSIBLE:  # what came in wants the newer one itself
        seen["against"] = document["rejected"][0]["reasons"][0]["text"]
        place.do(tool, "uninstall", THINGS[thing][-1])
        place.fix("--apply", "--yes", "--offline", **DEAD)
    if not place.asked()[0]:
        yield f"not back: {document.get('error') or document}"
    if not line:
        yield "silent"


def main() -> int:
    """Run the cases and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", help="the cases that have this in their name")
    options = parser.parse_args()
    work = options.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    proof = Proof(work)
    fill(work / "apps")
    make_wheel(work / "apps", "app", "1.0", requires=["onnxruntime"])
    place, about = made(proof), dict[str, dict[str, Any]]()
    cases = {name: partial(prove, place, name, about) for name in ORDER}
    return run_cases("windows-stays", proof.wine, cases, options.only, about)


if __name__ == "__main__":
    sys.exit(main())
