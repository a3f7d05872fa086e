"""Prove with real wheels that twelve applications go the whole way, from the plan to undo.

    python scripts/prove/applications.py [--work DIR] [--only magika,rembg …] [--find-links DIR]
                                         [--cache DIR] [--results DIR]

Each application is installed by uv with the CPU build, as its users have it, one release behind. It
is planned and applied for a driver 580 and an A100; then it makes its own smallest real call where
its wheel carries a model, or goes as far as a session on the model that `verify` runs. It is
updated by pip, put back, updated by uv, and called again; `--check` and pip see nothing wrong, and
the GPU build is the same bytes; then the change is undone, and every file but the application's own
is as it was before. Where uv's `-U` brings a newer CPU build back, `--check` says so, and another
apply mends it. There is no GPU: the driver is a stand-in that says so, so that the provider loads
its libraries, out of the wheels, and stops there; the call is then done by the CPU. Those that need
torch get that of PyPI, which has CUDA, or with `--find-links` the CPU build that is there. Needs
Linux, uv, gcc and a network, and downloads about 9 GB. The dated result goes to
scripts/prove/results/; the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.versions import numbers
from support.prover import (
    COPIES,
    MODEL,
    Prover,
    Run,
    build_of,
    call,
    files_of,
    selected,
    site_packages,
)

PYTHON = "3.11"
DRIVER = "580.95.05"
NO_GPU = "CUDA failure 100"


class Application(NamedTuple):
    """What is installed, what it is updated to, and its call: `said` is what comes of it."""

    before: str
    after: str
    call: str
    beside: tuple[str, ...] = ()
    asks: bool = False
    """Whether its own call asks for CUDA; else a session beside it does."""
    loads: bool = False
    """Whether the libraries are there before anything asks: its compiled module links them."""


OF_TORCH = ("torch==2.13.0+cpu",)
APPLICATIONS = {
    "rapidocr": Application(
        "rapidocr==3.9.2",
        "rapidocr==3.10.0",
        """
import numpy
from PIL import Image, ImageDraw, ImageFont
from rapidocr import RapidOCR
engine = RapidOCR(params={"EngineConfig.onnxruntime.use_cuda": True})
picture = Image.new("RGB", (640, 160), "white")
ImageDraw.Draw(picture).text((20, 40), "HELLO 2026", "black", ImageFont.load_default(64))
said = " ".join(engine(numpy.array(picture)).txts)
assert said == "HELLO 2026", said
""",
        beside=("onnxruntime",),
        asks=True,
    ),
    "fastembed": Application(
        "fastembed==0.9.0",
        "fastembed==0.9.1",
        """
from pathlib import Path
from fastembed.common.onnx_model import OnnxModel
model = OnnxModel()
model._load_onnx_model(Path(MODEL).parent, Path(MODEL).name, None, cuda=True)
said = model.model.get_providers()
""",
        asks=True,
    ),
    "rembg": Application(
        "rembg[cpu]==2.0.85",
        "rembg[cpu]==2.0.86",
        """
import shutil
from pathlib import Path
from rembg import new_session
model = Path.home() / ".rembg" / "model.onnx"
model.parent.mkdir(exist_ok=True)
shutil.copy(MODEL, model)
said = new_session("u2net_custom", model_path=str(model)).inner_session.get_providers()
""",
        asks=True,
    ),
    "insightface": Application(
        "insightface==2.0",
        "insightface==2.1",
        """
import pickle
from insightface.model_zoo.model_zoo import PickableInferenceSession
session = PickableInferenceSession(MODEL, providers=["CUDAExecutionProvider"])
said = pickle.loads(pickle.dumps(session)).get_providers()
""",
        asks=True,
    ),
    "chromadb": Application(
        "chromadb==1.5.8",
        "chromadb==1.5.9",
        """
import shutil
from pathlib import Path
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
function = ONNXMiniLM_L6_V2(preferred_providers=wanted)
function.DOWNLOAD_PATH = Path.home()
function.EXTRACTED_FOLDER_NAME = "model"
(Path.home() / "model").mkdir(exist_ok=True)
shutil.copy(MODEL, Path.home() / "model" / "model.onnx")
said = function.model.get_providers()
""",
        asks=True,
    ),
    "magika": Application(
        "magika==1.0.2",
        "magika==1.0.3",
        r"""
from magika import Magika
code = b"import os\nfor name in os.listdir():\n    print(name)\n"
said = str(Magika().identify_bytes(code).output.label)
assert said == "python", said
""",
    ),
    "faster-whisper": Application(
        "faster-whisper==1.2.0",
        "faster-whisper==1.2.1",
        """
import numpy
from faster_whisper import WhisperModel
from faster_whisper.vad import get_speech_timestamps
said = get_speech_timestamps(numpy.zeros(16000, "float32"))
assert said == [], said
""",
        beside=("requests",),  # which it imports and does not require
    ),
    "openwakeword": Application(
        "openwakeword==0.5.0",
        "openwakeword==0.5.1",
        """
import numpy
from openwakeword.model import Model
name = "hey_jarvis_v0.1"
model = Model(wakeword_models=[name.rpartition("_")[0]], inference_framework="onnx", device="gpu")
said = {name: float(score) for name, score in model.predict(numpy.zeros(1280, "int16")).items()}
""",
        asks=True,
    ),
    "piper": Application(
        "piper-tts==1.7.0",
        "piper-tts==1.8.0",
        """
import json
from pathlib import Path
from piper import PiperVoice
from piper.tashkeel import TashkeelDiacritizer
text = "\\u0645\\u0631\\u062d\\u0628\\u0627"
said = TashkeelDiacritizer()(text)
assert len(said) > len(text), said
voice = {"num_symbols": 2, "num_speakers": 1, "audio": {"sample_rate": 22050}}
voice |= {"espeak": {"voice": "en-us"}, "phoneme_id_map": {"_": [0]}}
config = Path.home() / "voice.json"
config.write_text(json.dumps(voice))
said = [said, PiperVoice.load(MODEL, config, use_cuda=True).session.get_providers()]
""",
        asks=True,
    ),
    "silero-vad": Application(
        "silero-vad==6.2.3",  # the first that does not require a torchaudio, hence an older torch
        "silero-vad==6.2.3",
        """
import torch
from silero_vad import get_speech_timestamps, load_silero_vad
said = get_speech_timestamps(torch.zeros(16000), load_silero_vad(onnx=True))
assert said == [], said
""",
        beside=("onnxruntime", *OF_TORCH),
    ),
    "genai": Application(
        "onnxruntime-genai-cuda==0.17.1",
        "onnxruntime-genai-cuda==0.18.0",
        """
import json
import shutil
from pathlib import Path
import onnxruntime_genai
shutil.copy(MODEL, Path.home() / "model.onnx")
decoder = {"filename": "model.onnx", "session_options": {"provider_options": []}}
decoder |= {"head_size": 8, "hidden_size": 8, "num_attention_heads": 1, "num_hidden_layers": 0}
decoder |= {"num_key_value_heads": 1, "inputs": {"input_ids": "input"}}
decoder["outputs"] = {"logits": "output"}
model = {"type": "gpt2", "vocab_size": 8, "context_length": 8, "decoder": decoder}
model |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
(Path.home() / "genai_config.json").write_text(json.dumps({"model": model, "search": {}}))
said = onnxruntime_genai.Model(str(Path.home())).type
""",
        loads=True,
    ),
    "optimum": Application(
        "optimum-onnx[onnxruntime]==0.0.3",
        "optimum-onnx[onnxruntime]==0.1.0",
        """
import json
import shutil
from pathlib import Path
import torch
from optimum.onnxruntime import ORTModelForCustomTasks
shutil.copy(MODEL, Path.home() / "model.onnx")
(Path.home() / "config.json").write_text(json.dumps({"model_type": "bert"}))
model = ORTModelForCustomTasks.from_pretrained(Path.home(), provider="CPUExecutionProvider")
said = list(model(input=torch.zeros(1, 4, 16, 16))["output"].shape)
assert said == [1, 8, 14, 14], said
""",
        beside=OF_TORCH,
    ),
}
BEFORE = "import sys; MODEL, ASKS = sys.argv[1], bool(sys.argv[2])\n"
AFTER = (
    """
import onnxruntime
loaded = "libcublas" in open("/proc/self/maps").read()
if not ASKS:
    wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(MODEL, providers=wanted)
    assert session.get_providers() == ["CPUExecutionProvider"], session.get_providers()
"""
    + COPIES
    + "print(json.dumps({'said': said, 'loaded': loaded}))\n"
)


def with_the_torch_of_pypi(application: Application) -> Application:
    """Return an application with a torch for CUDA beside it, which loads the libraries itself."""
    beside = tuple(word.partition("+")[0] for word in application.beside)
    return application._replace(beside=beside, loads=True)


def prove_call(
    prover: Prover, python: Path, name: str, application: Application, when: str
) -> None:
    """Let the application make its call, and look at which libraries came into its process."""
    home = prover.work / f"home-{name}"
    home.mkdir(exist_ok=True)
    done = prover.run(
        python,
        BEFORE + application.call + AFTER,
        MODEL,
        "asks" * application.asks,
        LD_LIBRARY_PATH=prover.driver,
        HOME=str(home),
    )
    lines = done.stdout.strip().splitlines()
    copies, answer = ({}, {})
    if done.returncode == 0:
        copies, answer = (json.loads(line) for line in lines[-2:])
    wrong = {
        library: paths
        for library, paths in copies.items()
        if len(paths) > 1 or ("/nvidia/" not in paths[0] and not library.startswith("libcuda."))
    }
    met = NO_GPU in done.stdout + done.stderr
    have = {library.partition(".")[0] for library in copies}
    silent = "ortgpu-fix:" not in done.stderr  # the loader has nothing to say of a whole set
    good = done.returncode == 0 and met and not wrong and silent
    good = good and answer["loaded"] == (application.asks or application.loads)
    prover.say(
        "called",
        f"{name}, {when}",
        good=good and {"libcublas", "libcublasLt", "libcudart", "libcudnn"} <= have,
        said=answer.get("said"),
        asked_for_cuda=application.asks,
        loaded_by_its_call=answer.get("loaded"),
        no_gpu=met,
        libraries=sorted(copies),
        wrong=wrong,
        error="" if good else (done.stderr or done.stdout)[-600:],
    )


def update(prover: Prover, python: Path, engine: str, application: Application) -> None:
    """Update the application, or install it again where nothing newer is there."""
    name = re.split(r"[\[=]", application.before)[0]
    same = application.before == application.after
    if engine == "pip":
        how = ["--force-reinstall", "--no-deps"] if same else ["-U"]
        pip: list[str | Path] = [python, "-m", "pip", "install", "-q", *how]
        call(*pip, application.after, environ=prover.environ)
    elif same:
        prover.install(python, "--reinstall-package", name, application.after)
    else:
        prover.install(python, application.before)
        prover.install(python, "--upgrade-package", name, application.after)


def prove(prover: Prover, name: str, application: Application, find_links: tuple[str, ...]) -> None:
    """Try one application."""
    python = prover.environment(f"env-{name}", PYTHON)
    old = (application.before, *application.beside, "pip")
    prover.install(python, *find_links, *old)
    site = site_packages(python)
    pip: list[str | Path] = [python, "-m", "pip"]
    broken = call(*pip, "check", environ=prover.environ, check=False).stdout
    before = files_of(site)
    plan = prover.tool(python, "--dry-run", driver=DRIVER)
    applied = prover.tool(python, "--apply", "--yes", driver=DRIVER)
    build = build_of(python)
    release = selected(plan)
    good = plan["verdict"] == "fixable" and applied["exit"] == 0 and bool(release)
    prover.say("applied", name, good=good, release=release, exit=applied["exit"])
    prove_call(prover, python, name, application, application.before)
    mended = files_of(site)
    for engine in ("pip", "uv"):
        update(prover, python, engine, application)
        checked = call(*pip, "check", environ=prover.environ, check=False).stdout
        exit_code = prover.check(python, DRIVER)
        good = exit_code == 0 and build_of(python) == build and checked in {broken, NOT_BROKEN}
        prover.say(
            "updated",
            f"{name}, {engine}",
            good=good,
            check=exit_code,
            pip=checked.strip(),
            same_build=build_of(python) == build,
        )
    prove_call(prover, python, name, application, application.after)
    updated = files_of(site)
    undone = prover.tool(python, "undo", "--yes")
    left = files_of(site)
    theirs = {path for path in mended | updated if mended.get(path) != updated.get(path)}
    differs = sorted(
        path for path in (before | left).keys() - theirs if before.get(path) != left.get(path)
    )
    checked = call(*pip, "check", environ=prover.environ, check=False).stdout
    good = undone["exit"] == 0 and not differs and checked in {broken, NOT_BROKEN}
    prover.say("undone", name, good=good, files=len(left), differs=differs, pip=checked.strip())
    if release != max((build.version for build in prover.matrix.builds), key=numbers):
        prove_upgrade_of_all(prover, python, name, application)
    prover.drop(python)


def prove_upgrade_of_all(prover: Prover, python: Path, name: str, application: Application) -> None:
    """Let uv upgrade what the application requires too, so that the CPU build comes back; mend it.

    `uv pip install -U` does that where a newer release than the one that works here is on the
    index; `--upgrade-package`, and pip, upgrade the application.
    """
    prover.tool(python, "--apply", "--yes", driver=DRIVER)
    prover.install(python, "-U", application.after)
    broken = prover.check(python, DRIVER)
    again = prover.tool(python, "--apply", "--yes", driver=DRIVER)
    checked = prover.check(python, DRIVER)
    good = broken == 1 and again["exit"] == 0 and checked == 0
    prover.say("upgraded with all", name, good=good, check=broken, then=checked)


NOT_BROKEN = "No broken requirements found.\n"


def main() -> int:
    """Try every application; return the exit code."""
    run = Run(__doc__, "applications", find_links="folder with a CPU build of torch")
    links = run.options.find_links
    for name, application in APPLICATIONS.items():
        if not run.wants(name):
            continue
        torch = set(OF_TORCH) & set(application.beside)
        wanted = with_the_torch_of_pypi(application) if torch and links is None else application
        prove(run.prover, name, wanted, ("--find-links", links) if links else ())
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
