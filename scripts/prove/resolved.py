"""Judge plans for environments of applications as PyPI has them: no requirement is newly broken.

    python scripts/prove/resolved.py --resolve [--count 500] [--work DIR]
    python scripts/prove/resolved.py [--count 500] [--aside] [--jobs 2] [--results DIR]

Each environment is an application that uses onnxruntime, or an exact pin of it, beside a torch,
TensorFlow, JAX or others that use CUDA. With `--resolve` uv resolves them from PyPI for a Python on
Linux, and what it read of the metadata of the wheels is kept in tests/cases/resolved.json.xz: no
wheel is downloaded. What PyPI has no such set of wheels of is counted, and left out.

Each is planned for six machines as it is, and with `--torch match` where it has a torch.
tests/support/judged_sets.py, which shares no code with the program, asks of every plan:

- after it, no requirement is unmet that was met before, except those that the plan names;
- of what torch brought, nothing is left that nobody needs and that the plan does not name;
- the command that it ends with, planned in its turn, needs nothing more and ends with itself;
- it does not say that nothing works on a machine where something works in an empty environment.

With `--aside` the tenth of the environments is judged that is left out without it. The dated result
goes to scripts/prove/results/, after each environment: how many there are is in it, and how many
were judged. The exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import lzma
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from command import run_here
from judged_sets import DATA, Answer, JudgedSet, Resolved, load

from ortgpu_fix.cli import inputs
from ortgpu_fix.cli.commands import plan
from ortgpu_fix.matrix.load import load_matrix as read_matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.opened import plan_for
from prove.outcomes import DATE, RESULTS, commit, known, write
from support.standin_wheels import clean_environment, find_uv

APPLICATIONS = """
fastembed
rembg
insightface
faster-whisper
kokoro-onnx
magika
chromadb
rapidocr-onnxruntime
rapidocr onnxruntime
piper-tts
silero-vad
openwakeword
gliner onnxruntime
nudenet
rtmlib onnxruntime
dghs-imgutils
onnx-asr onnxruntime
genie-tts
sherpa-onnx
markitdown[all]
docling
unstructured-inference
optimum[onnxruntime]
optimum[onnxruntime-gpu]
sentence-transformers[onnx]
sentence-transformers[onnx-gpu]
audio-separator[cpu]
audio-separator[gpu]
pyannote-audio onnxruntime
skl2onnx onnxruntime
txtai[pipeline]
surya-ocr onnxruntime
onnxruntime-genai
onnxruntime-genai-cuda
nvidia-modelopt[onnx]
inference-gpu
ultralytics onnxruntime-gpu
super-gradients
paddleocr onnxruntime
img2table[rapidocr]
speechbrain onnxruntime
funasr-onnx
presidio-analyzer[gliner]
open-webui
llama-index-embeddings-fastembed
langchain-chroma
mem0ai fastembed
vllm onnxruntime
easyocr onnxruntime
transformers onnxruntime-gpu
librosa onnxruntime
moonshine-onnx
onnxruntime==1.16.1
onnxruntime==1.17.3
onnxruntime==1.20.1
onnxruntime==1.22.1
onnxruntime==1.24.3
onnxruntime-gpu==1.19.2
onnxruntime-gpu~=1.22.0
onnxruntime-gpu<1.27
onnxruntime onnxruntime-gpu
"""
BESIDES = """


numpy<2
protobuf<5
torch==2.4.*
torch==2.5.*
torch==2.6.*
torch==2.7.*
torch==2.8.*
torch==2.9.*
torch==2.10.*
torch==2.11.*
torch==2.12.*
torch==2.13.*
torch==2.14.*
torch==2.15.*
torch==2.15.* torchvision
torch==2.8.* torchaudio
torch torchvision torchaudio
tensorflow[and-cuda]==2.18.*
tensorflow[and-cuda]==2.20.*
tensorflow[and-cuda]
jax[cuda12]
jax[cuda13]
faiss-gpu-cu12
cupy-cuda12x
cupy-cuda13x
nvidia-cudnn-cu12==9.1.0.70
nvidia-cublas-cu12==12.4.5.8
onnxruntime-extensions
"""
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
INDEX = """
[[index]]
name = "pypi"
url = "https://pypi.org/simple"
default = true
cache-control = { api = "max-age=86400" }
"""
"""uv asks for each page once, not for each environment."""


class Case(NamedTuple):
    """What somebody installs."""

    requirements: tuple[str, ...]
    python: str
    number: int
    """Drawn from its name, so that the order is the same for all, and mixed."""

    @property
    def name(self) -> str:
        """Return it in one line."""
        return f"{' '.join(self.requirements)} on {self.python}"


def cases() -> list[Case]:
    """Return all environments, mixed."""
    made = []
    for application, beside in product(
        APPLICATIONS.split("\n")[1:-1], dict.fromkeys(BESIDES.split("\n")[1:])
    ):
        requirements = (*application.split(), *beside.split())
        digest = hashlib.sha256(" ".join(requirements).encode()).digest()
        number = int.from_bytes(digest[:8], "big")
        made.append(Case(requirements, PYTHONS[digest[8] % len(PYTHONS)], number))
    return sorted(made, key=lambda case: case.number)


def is_aside(case: Case) -> bool:
    """Tell whether it is of the tenth that is judged at the end."""
    return case.number % 10 == 0


class Index:
    """What PyPI answers to uv, which keeps what it reads of each wheel in its cache."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "uv.toml").write_text(INDEX, "utf-8")
        self.environ = {**clean_environment(), "UV_CACHE_DIR": str(self.cache)}

    def pins(self, case: Case) -> list[str] | None:
        """Return the distributions as `name==version`; None where PyPI has no such set."""
        asked = self.folder / f"{case.number:016x}.in"
        pins = asked.with_suffix(".txt")
        if not pins.exists() and not asked.exists():
            asked.write_text("\n".join(case.requirements), "utf-8")
            argv = [find_uv(), "pip", "compile", "-q", "--config-file", "uv.toml", "--no-header"]
            argv += ["--no-annotate", "--only-binary", ":all:", "--python-version", case.python]
            argv += ["--python-platform", "x86_64-manylinux_2_36", "-p", sys.executable]
            argv += ["-o", f"{pins.name}.part", asked.name]
            try:
                done = subprocess.run(
                    argv,
                    cwd=self.folder,
                    env=self.environ,
                    capture_output=True,
                    check=False,
                    timeout=120,
                )
            except subprocess.TimeoutExpired:
                return None
            if done.returncode == 0:
                (self.folder / f"{pins.name}.part").replace(pins)
        if not pins.exists():
            return None
        lines = pins.read_text("utf-8").splitlines()
        return [line for line in lines if re.match(r"[\w.-]+==", line)]

    def distribution(self, pin: str) -> tuple[str, str, list[str]]:
        """Return its name and version, and what its wheel requires."""
        name, _, version = pin.partition("==")
        kept = sorted(self.cache.glob(f"wheels-*/pypi/{name}/{version}-*.msgpack"))
        if not kept:
            raise LookupError(pin)
        msgpack: Any = importlib.import_module("pip._vendor.msgpack")
        read = msgpack.Unpacker()  # where it came from follows
        read.feed(kept[0].read_bytes())
        requires: list[str] = read.unpack()[2]
        return name, version, requires


def resolve(count: int, work: Path) -> None:
    """Resolve environments until there are `count`, in the order of all, and keep them."""
    index, order = Index(work), cases()
    made: list[tuple[Case, list[str]]] = []
    without: list[str] = []
    with ThreadPoolExecutor(8) as pool:
        for case, pins in zip(order, pool.map(index.pins, order), strict=True):
            if pins is None:
                without.append(case.name)
            else:
                made.append((case, pins))
            if len(made) == count:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    numbers = {
        pin: number for number, pin in enumerate(sorted({p for _, has in made for p in has}))
    }
    document = {
        "asked": DATE,
        "distributions": [index.distribution(pin) for pin in numbers],
        "environments": [
            {
                "asked": case.requirements,
                "python": case.python,
                "aside": is_aside(case),
                "has": [numbers[pin] for pin in pins],
            }
            for case, pins in made
        ],
        "without": without,
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    DATA.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(made)} environments, {len(without)} that PyPI has no wheels for")


load_matrix = functools.cache(read_matrix)


def once(make: Callable[..., Plan]) -> Callable[..., Plan]:
    """Return `make`, called the first time, and what it returned then."""
    made: list[Plan] = []

    def planned(*arguments: object) -> Plan:
        if not made:
            made.append(make(*arguments))
        return made[0]

    return planned


def ask(facts: Mapping[str, Any], flags: Sequence[str], folder: Path) -> Answer:
    """Ask the command for a plan, as a user does, for people and as JSON; it is made once."""
    (folder / "machine.json").write_text(json.dumps(facts), "utf-8")
    env = {"HOME": str(folder), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    argv = ["--facts", "machine.json", *flags, "--dry-run"]
    with (
        mock.patch.object(inputs, "load_matrix", load_matrix),
        mock.patch.object(plan, "plan_for", once(plan_for)),
    ):
        said = run_here(*argv, "--json", cwd=folder, env=env)
        shown = run_here(*argv, cwd=folder, env=env)
    text = shown.stdout or shown.stderr
    return Answer(json.loads(said.stdout), text, shown.returncode)


def judge(one: Resolved) -> tuple[str, list[str], Counter[str]]:
    """Return what it is called, what is wrong with its plans, and what they were."""
    with tempfile.TemporaryDirectory() as temporary:
        judged = JudgedSet(one, functools.partial(ask, folder=Path(temporary)))
        wrong = [*judged.wrong()]
    return one.name, wrong, judged.seen


def main() -> int:
    """Resolve, or judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--aside", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "resolved")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.resolve:
        resolve(given.count, given.work)
        return 0
    begin = time.monotonic()
    chosen = [one for one in load()[: given.count] if one.aside == given.aside]
    seen: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    about = {"commit": commit(), "of": len(chosen)}
    with ProcessPoolExecutor(given.jobs) as pool:
        for at, (name, lines, counted) in enumerate(pool.map(judge, chosen), start=1):
            seen += counted
            if lines:
                wrong[name] = lines
            print(name, *(lines or ["as it must be"]), sep="\n  ", flush=True)
            seconds = round(time.monotonic() - begin)
            found = {**about, "environments": at, **seen, "wrong": wrong, "seconds": seconds}
            part = "aside" if given.aside else "judged"
            write("resolved", {**known("resolved", given.results), part: found}, given.results)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
