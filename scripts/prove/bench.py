"""Compare what `verify --bench` measures on the CPU with a script of ten lines, on ten models.

    python scripts/prove/bench.py [--work DIR] [--only NAME …] [--turns 3]

Six models are out of wheels on the index (magika, rapidocr-onnxruntime, silero-vad,
faster-whisper), four are this project's own: a convolutional net, a transformer's block, a loop,
one in float16. Each is checked with `verify MODEL`, and then timed by `verify --bench` and by the
script in turn, with the same shapes, in an environment with the newest onnxruntime. What else runs
on a machine makes times longer, never shorter: the quickest run of all turns counts, and the
quietest turn's median stands beside it. Two agree where their quickest runs are within a tenth of
each other. Needs uv and a network; takes about five minutes on a quiet machine: the load average
stands beside the numbers. The dated result goes to scripts/prove/results/; the exit code is 1 where
two disagree, or a command does not end as it should.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import RESULTS, write

ROOT = Path(__file__).resolve().parents[2]
OWN = """
import json, statistics, sys, time
import numpy, onnxruntime
model, shapes, seconds = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
kinds = {row.name: row.type for row in session.get_inputs()}
made = lambda name, size: numpy.random.random_sample(size).astype(
    {"tensor(float)": "f4", "tensor(float16)": "f2"}[kinds[name]]) if "float" in kinds[name] else (
    numpy.full(size, 16000 if name == "sr" else 1, "i4" if "32" in kinds[name] else "i8"))
feed, times, begin = {name: made(name, size) for name, size in shapes.items()}, [], time.time()
while len(times) < 8 or time.time() < begin + seconds:
    start = time.perf_counter(); session.run(None, feed)
    times.append((time.perf_counter() - start) * 1000)
times = times[3:]
print(json.dumps([min(times), *statistics.quantiles(times, n=4, method="inclusive")]))
"""
"""What a user would write; the first three runs do not count."""
SECONDS = 1.0
"""For which the script runs."""
CLOSE = 1.1
Shapes = Sequence[Mapping[str, Sequence[int]]]


class Model(NamedTuple):
    """A model, where it is from, and the shapes to time it with; none: those that are guessed."""

    name: str
    file: str
    """In a wheel, or in this repository."""
    wheel: str | None = None
    shapes: Shapes = ()


MODELS = (
    Model("magika", "magika/models/standard_v3_3/model.onnx", "magika==1.0.3"),
    Model(
        "rapidocr-det",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "rapidocr-onnxruntime==1.4.4",
        [{"x": (1, 3, 320, 320)}, {"x": (1, 3, 320, 480)}],
    ),
    Model(
        "rapidocr-rec",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "rapidocr-onnxruntime==1.4.4",
        [{"x": (1, 3, 48, 160)}, {"x": (1, 3, 48, 320)}],
    ),
    Model(
        "rapidocr-cls",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "rapidocr-onnxruntime==1.4.4",
        [{"x": (1, 3, 48, 192)}, {"x": (6, 3, 48, 192)}],
    ),
    Model("silero-vad", "silero_vad/data/silero_vad.onnx", "silero-vad==6.2.3"),
    Model("faster-whisper", "faster_whisper/assets/silero_vad_v6.onnx", "faster-whisper==1.2.1"),
    Model("convolutions", "data/bench.onnx", shapes=[{"input": (1, 3, 224, 224)}]),
    Model("transformer", "tests/models/transformer.onnx"),
    Model("loop", "tests/models/loop.onnx"),
    Model("float16", "tests/models/half.onnx"),
)


class Place(NamedTuple):
    """Where everything is."""

    python: Path
    """The environment with onnxruntime."""
    work: Path


def main() -> int:
    """Do all of it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--work", type=Path, help="folder for the environment and the wheels")
    parser.add_argument("--only", action="append", choices=[model.name for model in MODELS])
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-bench-"))
    work.mkdir(parents=True, exist_ok=True)
    place = Place(make_environment(work / "env"), work)
    rows = []
    for model in MODELS:
        if model.name in (options.only or [model.name]):
            rows.append(compare(model, place, options.turns))
            print(json.dumps(rows[-1]), flush=True)
    release = said(place.python, "-c", "import onnxruntime; print(onnxruntime.__version__)").strip()
    about = {"processors": os.cpu_count(), "onnxruntime": release}
    target = write("bench", {**about, "rows": rows}, options.results)
    wrong = [row["model"] for row in rows if not row["agrees"]]
    print(f"{len(rows)} models; not as it should be: {', '.join(wrong) or 'none'}: {target}")
    if options.work is None:
        shutil.rmtree(work)
    return 1 if wrong else 0


def compare(model: Model, place: Place, turns: int) -> dict[str, Any]:
    """Return what both say of a model's times, and whether they agree."""
    file = ROOT / model.file if model.wheel is None else from_wheel(model, place.work)
    begin, load = time.monotonic(), round(os.getloadavg()[0], 2)
    checked, code = ours(place, file, model.shapes)
    seconds = round(time.monotonic() - begin, 1)
    report = checked["model"]
    found: list[dict[str, Any]] = []
    took: list[float] = []
    for _ in range(turns):
        begin = time.monotonic()
        document, _ = ours(place, file, model.shapes, "--bench")
        took.append(round(time.monotonic() - begin, 1))
        bench = document["bench"]
        for number, shapes in enumerate(bench["shapes"]):
            if number == len(found):
                found.append({"shapes": shapes, "bench": [], "script": []})
            [cpu] = bench["configurations"]
            [row] = [each for each in cpu["timings"] if each["shape"] == number]
            shown = [row[f"{name}_ms"] for name in ("least", "low", "median", "high")]
            found[number]["bench"].append(shown)
            found[number]["script"].append(script(place, file, shapes))
    times = [row | judge(row["bench"], row["script"]) for row in found]
    nodes = sum(each["nodes"] for each in report["providers"])
    return {
        "model": model.name,
        "wheel": model.wheel,
        "verdict": report["verdict"],
        "exit_code": code,
        "nodes": nodes,
        "shapes_given": report["shapes_given"],
        "verify_seconds": seconds,
        "bench_seconds": took,
        "load_average": [load, round(os.getloadavg()[0], 2)],
        "times": times,
        "agrees": code == 6 and nodes > 0 and all(row["agrees"] for row in times),  # noqa: PLR2004
    }


def judge(bench: Sequence[Sequence[float]], own: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the ratios of the quickest runs and of the least medians, and whether they agree.

    Rows are the least, the lower quartile, the median and the upper quartile in milliseconds.
    """
    least, _, median, _ = (
        round(min(one) / min(two), 3)
        for one, two in zip(zip(*bench, strict=True), zip(*own, strict=True), strict=True)
    )
    return {"least": least, "median": median, "agrees": 1 / CLOSE <= least <= CLOSE}


def ours(place: Place, file: Path, shapes: Shapes, *more: str) -> tuple[dict[str, Any], int]:
    """Return what `verify` says of a model, and its exit code."""
    given = [
        word
        for each in shapes
        for name, sizes in each.items()
        for word in ("--shape", f"{name}={'x'.join(map(str, sizes))}")
    ]
    argv = [sys.executable, "-m", "ortgpu_fix", "verify", *more, str(file), *given]
    argv += ["--python", str(place.python), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return document, done.returncode


def script(place: Place, file: Path, shapes: Mapping[str, Sequence[int]]) -> list[float]:
    """Return the least and the quartiles of what the script measures."""
    out = said(place.python, "-c", OWN, str(file), json.dumps(shapes), str(SECONDS))
    return [round(ms, 4) for ms in json.loads(out)]


def make_environment(folder: Path) -> Path:
    """Return the interpreter of an environment with the newest onnxruntime for the CPU."""
    python = folder / "bin" / "python"
    if not python.exists():
        said("uv", "venv", "-q", str(folder))
        said("uv", "pip", "install", "-q", "-p", str(python), "onnxruntime", "numpy")
    return python


def from_wheel(model: Model, work: Path) -> Path:
    """Return the model's file, out of its wheel."""
    file = work / model.file
    if not file.exists():
        fetch = ("-m", "pip", "download", "-q", "--no-deps", "-d", str(work / "wheels"))
        said(sys.executable, *fetch, str(model.wheel))
        stem = str(model.wheel).replace("-", "_").replace("==", "-")
        [path] = (work / "wheels").glob(f"{stem}-*.whl")
        with zipfile.ZipFile(path) as wheel:
            wheel.extract(model.file, work)
    return file


def said(*argv: str | Path) -> str:
    """Return what a command printed. Raises CalledProcessError where it fails."""
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
