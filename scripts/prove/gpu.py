"""Prove the last step on a real GPU: broken environments mended, and right numbers computed.

    python scripts/prove/gpu.py --wheels DIR --output DIR [--limit SECONDS] [--state NAME …]

For any Linux machine with an NVIDIA GPU; needs no network and nothing that is not on the machine
or in DIR: wheels of onnxruntime-gpu (a file split into NAME.whl.part00, .part01, … is joined
first) and of whatever else is to be installed. What the running Python has of torch, NVIDIA's
wheels, numpy and the like is taken in by links to its files, so that nothing of it can be changed.
For each broken state a fresh environment is made, and `ortgpu-fix` is run as a user would: plan,
apply, verify, an unchanged application before and after, a second plan, undo. Beside torch that
application computes with both in turn, in either order. In the first state that works, programs
are looked into (`run`), the CPU build comes back and is taken out again, and models are measured
as well (`verify MODEL --bench --report`), those of `--model` too. With a wheel of NVIDIA's plugin
in DIR the plain onnxruntime gets that, with wheels for CUDA 11 or 12 the set for that, for 12 also
the smallest and an older one, and with a wheel of uv the newest through that; there sessions are
made to fail, too. One JSON says what was planned, what ran where, which libraries were loaded, how
long each step took, and whether the GPU computed the right numbers; the machine is recorded as a
capture beside it. It ends at the time limit with what it has, and says what it skipped.

Without a GPU it goes as far as it can: `--facts FILE` gives the machine to plan for, `--online`
lets the package index serve what DIR lacks.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.local_index import LocalIndex

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ("numpy", "flatbuffers", "packaging", "protobuf", "sympy", "coloredlogs")
NEEDED = ("packaging", "requests", "rich", "nvidia-ml-py", "shtab", "tomlkit")
TOOL = (*NEEDED, "pip", "tomli")
APPLICATION = """
import json, sys, time
how, *models = sys.argv[1:]
answer = {"how": how, "models": [], "torch": []}

def onnxruntime():
    import numpy as np
    import onnxruntime as ort
    if how == "preload" and hasattr(ort, "preload_dlls"):  # from 1.21 on
        ort.preload_dlls()
    answer["version"] = ort.__version__
    for path in models:
        row = {"model": path.rpartition("/")[2]}
        answer["models"].append(row)
        try:
            session = ort.InferenceSession(path, providers=["CUDAExecutionProvider"])
            row["providers"] = session.get_providers()
            stored = session.get_modelmeta().custom_metadata_map
            rows = [json.loads(stored[key]) for key in ("input", "expected")]
            given, expected = (np.array(a["values"], np.float32).reshape(a["shape"]) for a in rows)
            for key in ("first_ms", "second_ms"):
                begin = time.perf_counter()
                output = session.run(None, {"input": given})[0]
                row[key] = round((time.perf_counter() - begin) * 1000, 3)
            scale = max(1, np.abs(expected).max())
            row["deviation"] = float(np.abs(output - expected).max() / scale)
        except Exception as error:
            row["error"] = str(error)[-300:]

def torch():
    row = {}
    answer["torch"].append(row)
    try:
        import torch
        row.update(version=torch.__version__, cuda=torch.version.cuda)
        row["available"] = torch.cuda.is_available()
        if row["available"]:
            begin = time.perf_counter()
            twos = torch.full((64, 64), 2.0, device="cuda")
            ones = torch.ones(1, 8, 16, 16, device="cuda")
            summed = torch.nn.functional.conv2d(ones, torch.ones(4, 8, 3, 3, device="cuda"))
            product = bool((twos @ twos == 256).all())
            row["right"] = product and bool((summed == 72).all())
            row["ms"] = round((time.perf_counter() - begin) * 1000, 3)
    except Exception as error:
        row["error"] = str(error)[-300:]

steps = {
    "torch-first": (torch, onnxruntime, torch),
    "torch-after": (onnxruntime, torch, onnxruntime),
}
for step in steps.get(how, (onnxruntime,)):
    step()
libraries = set()
for line in open("/proc/self/maps"):
    path = line.rstrip().partition("/")[2]
    if any(part in path.rpartition("/")[2] for part in ("cublas", "cudnn", "cudart", "cufft")):
        libraries.add("/" + path)
answer["libraries"] = sorted(libraries)
print("\\n" + json.dumps(answer))
"""
"""It runs every model; beside torch both compute in turn, in one process, in either order."""

OTHERS = """
import json, sys
import numpy as np
answer = {}

def onnxruntime():
    import onnxruntime as ort
    session = ort.InferenceSession(sys.argv[2], providers=["CUDAExecutionProvider"])
    answer["onnxruntime"] = session.get_providers()

def others():
    import cupy, jax
    answer["devices"] = [str(device) for device in jax.devices()]
    twos = jax.numpy.full((64, 64), 2.0)
    answer["jax"] = bool((np.asarray(twos @ twos) == 256).all())
    twos = cupy.full((64, 64), 2.0)
    answer["cupy"] = bool((cupy.asnumpy(twos @ twos) == 256).all())
    answer["cudnn"] = bool(np.isfinite(np.asarray(jax.lax.conv(
        jax.numpy.ones((1, 8, 16, 16)), jax.numpy.ones((4, 8, 3, 3)), (1, 1), "VALID"))).all())

for step in (others, onnxruntime) if sys.argv[1] else (onnxruntime, others):
    step()
print("\\n" + json.dumps(answer))
"""
"""JAX and CuPy compute beside a session, in either order."""
FAULT = '''
import ctypes
cuda, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
context, module, kernel = at(), at(), at()
source = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry fault() { .reg .u64 %a; mov.u64 %a, 8; st.global.u32 [%a], 1; ret; }"""
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuModuleLoadData(ctypes.byref(module), source)
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fault")
cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
print("fault:", cuda.cuCtxSynchronize())
pass'''
"""A kernel that writes where nothing is: the context is of no use from then on."""
HOLD = """
import time, torch
left = torch.cuda.mem_get_info()[0] - (300 << 20)
held = torch.empty(left, dtype=torch.uint8, device="cuda")
print("held", flush=True)
time.sleep(60)
"""
"""Another program that has nearly all of the GPU's memory."""
MODELS = tuple(ROOT / "data" / f"{name}.onnx" for name in ("conv", "fft", "matmul"))
"""Those that tell what goes in and what has to come out."""
PLACED = (
    ROOT / "data" / "bench.onnx",
    *(
        ROOT / "tests" / "models" / f"{name}.onnx"
        for name in ("transformer", "half", "loop", "decoder")
    ),
)
TIMED = PLACED[:2]
"""A convolutional net, and a block of a transformer: which options matter differs."""
MEASURING = 150
"""Seconds that have to be left before another model is run."""
PLUGIN = "onnxruntime_ep_nv_tensorrt_rtx_cu"
PROGRAMS = {
    "asks": 'ort.InferenceSession(path, providers=["CUDAExecutionProvider"])',
    "asks for nothing": "ort.InferenceSession(path)",
    "wants the CPU": 'ort.InferenceSession(path, providers=["CPUExecutionProvider"])',
}
"""How a program makes its session, by what `run` has to say of it."""
TELLING = re.compile(r"Failed to load library .* with error: .*|CUDA failure \d+: [^;\n]*")
"""What onnxruntime says where it does not come to the GPU."""
TOLERANCE = 1e-3
LONG = ("rejected", "matrix", "selection", "install", "companions", "consumers", "unlock")
"""What is left out of the documents of a plan: the tests have it."""


class Skipped(Exception):  # noqa: N818 - it is no error
    """A state cannot be planted with what is here."""


class Proof:
    """One run: where things are, how much time is left, and what was found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work: Path = options.output / "work"
        self.ends: float = time.monotonic() + options.limit
        self.measured: dict[str, Any] = {}
        self.tool: list[str] = options.tool.split() if options.tool else []
        self.index: tuple[str, ...] = ()
        """Where uv finds packages, instead of the folder."""

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.ends - time.monotonic()

    def run(self, *argv: str | Path, limit: float = 600, cwd: Path | None = None) -> dict[str, Any]:
        """Run a command within the time that is left; return how it ended and what it said."""
        if self.left() < 1:
            raise TimeoutError
        begin = time.monotonic()
        try:
            done = subprocess.run(
                [str(word) for word in argv],
                capture_output=True,
                text=True,
                check=False,
                timeout=min(limit, self.left()),
                cwd=cwd or self.work,
                env=environment(),
            )
        except subprocess.TimeoutExpired:
            return {"exit": None, "seconds": round(time.monotonic() - begin, 2), "timed_out": True}
        answer: dict[str, Any] = {
            "exit": done.returncode,
            "seconds": round(time.monotonic() - begin, 2),
        }
        try:
            answer["answer"] = json.loads(done.stdout[done.stdout.rfind("\n{") + 1 :])
            for long in LONG:
                answer["answer"].pop(long, None)
        except ValueError:
            answer["stdout"] = done.stdout[-2000:]
        if done.stderr:
            answer["stderr"] = done.stderr[-4000:]
        if told := TELLING.search(done.stderr):
            answer["log"] = told.group(0)
        return answer

    def fix(self, *arguments: str, python: Path, facts: bool = True) -> dict[str, Any]:
        """Run ortgpu-fix on an environment as a user would, but for the JSON."""
        more = ["--python", str(python), "--json"]
        if facts and self.options.facts:
            more += ["--facts", str(self.options.facts)]
        return self.run(*self.tool, *arguments, *more)

    def sources(self) -> list[str]:
        """Return the flags that say where packages come from."""
        if self.index:
            return list(self.index)
        found = ["--find-links", str(self.options.wheels)] if self.options.wheels else []
        return found if self.options.online else ["--offline", *found]

    def apply_application(self, python: Path, how: str) -> dict[str, Any]:
        """Run the application that knows nothing of all this."""
        return self.run(python, "-c", APPLICATION, how, *MODELS, limit=180)

    def environment(self, name: str, *taken: str) -> Path:
        """Make a fresh environment with what the running Python has of `taken`."""
        folder = self.work / name
        make_venv(folder)
        take_in(site_packages(folder), taken)
        return folder / "bin" / "python"

    def pip(self, python: Path, *arguments: str) -> None:
        """Run the environment's pip on the wheels at hand."""
        sources = ["--find-links", str(self.options.wheels)] if self.options.wheels else []
        if not self.options.online:
            sources.insert(0, "--no-index")
        if arguments[0] == "uninstall":
            sources = []
        done = self.run(python, "-m", "pip", *arguments, *sources)
        if done["exit"]:
            raise Skipped((done.get("stderr") or "")[-300:])

    def onnxruntime(self, python: Path, name: str) -> None:
        """Put a build of onnxruntime there: from a wheel, or as the running Python has it."""
        if name == "onnxruntime" and not self.wheel("onnxruntime-"):
            if take_in(site_packages(python.parents[1]), [name], alone=True):
                return
            if not self.options.online:
                raise Skipped("no CPU build of onnxruntime is at hand")
        if name == "onnxruntime-gpu" and not (
            self.wheel("onnxruntime_gpu-") or self.options.online
        ):
            raise Skipped("no wheel of onnxruntime-gpu is at hand")
        pinned = f"{name}=={self.options.release}" if name == "onnxruntime-gpu" else name
        alone = [] if self.options.online else ["--no-deps"]
        self.pip(python, "install", "-q", "--force-reinstall", *alone, pinned)

    def wheel(self, prefix: str) -> bool:
        """Tell whether there is a wheel whose name begins so."""
        folder = self.options.wheels
        return bool(folder and any(folder.glob(f"{prefix}*.whl")))


def make_venv(folder: Path) -> None:
    """Make a fresh environment with a pip: its own, or that of the running Python."""
    try:
        venv.create(folder, clear=True, symlinks=True, with_pip=True)
    except subprocess.CalledProcessError:  # Debian's Python brings no pip for environments
        venv.create(folder, clear=True, symlinks=True)
        take_in(site_packages(folder), ["pip"])


def environment() -> dict[str, str]:
    """Return the environment for children: nothing that changes what Python or pip does."""
    dropped = ("PYTHON", "PIP_", "UV_", "VIRTUAL_ENV", "LD_PRELOAD")
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def site_packages(folder: Path) -> Path:
    """Return the site-packages folder of an environment."""
    return next((folder / "lib").glob("python3*/site-packages"))


def required(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """Return the installed distributions of these names, and those that they require."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        requires = [line for line in found[name].requires or [] if "extra ==" not in line]
        waiting += [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in requires]
    return list(found.values())


def take_in(site: Path, names: Iterable[str], *, alone: bool = False) -> list[str]:
    """Link the files of what the running Python has of `names` into `site`; return what it took.

    What they require comes too, unless `alone`. Folders are made and files are linked, one by one,
    so that whoever moves or removes something there moves or removes a link.
    """
    wanted = list(names)
    taken = []
    for distribution in required(wanted):
        name = str(distribution.metadata["Name"])
        if alone and name not in wanted:
            continue
        taken.append(f"{name} {distribution.version}")
        for file in distribution.files or []:
            source = Path(str(distribution.locate_file(file)))
            target = site / str(file)
            outside = str(file).startswith(("..", "/")) or file.suffix == ".pyc"
            if outside or target.exists() or not source.is_file():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if ".dist-info" in str(file):
                shutil.copyfile(source, target)
            else:
                target.symlink_to(source.resolve())
    return taken


def nvidia() -> list[str]:
    """Return the names of NVIDIA's wheels that the running Python has."""
    names = {str(row.metadata["Name"]).lower() for row in importlib.metadata.distributions()}
    return sorted(name for name in names if name.startswith(("nvidia-cu", "nvidia-nvjit")))


def plant_cpu(proof: Proof) -> Path:
    """Plant the CPU build alone."""
    python = proof.environment("cpu", *RUNTIME, *nvidia())
    proof.onnxruntime(python, "onnxruntime")
    return python


def plant_both(proof: Proof) -> Path:
    """Plant both builds, the CPU build last."""
    python = proof.environment("both", *RUNTIME, *nvidia())
    proof.onnxruntime(python, "onnxruntime-gpu")
    overwrite(proof, python)
    return python


def overwrite(proof: Proof, python: Path) -> None:
    """Put the CPU build over the GPU build, as pip does."""
    site = site_packages(python.parents[1])
    provider = site / "onnxruntime" / "capi" / "libonnxruntime_providers_cuda.so"
    aside = site.parent / provider.name
    provider.rename(aside)
    shutil.rmtree(site / "onnxruntime")
    proof.onnxruntime(python, "onnxruntime")
    aside.rename(provider)


def plant_gutted(proof: Proof) -> Path:
    """Plant what is left when the CPU build is uninstalled from beside the GPU build."""
    python = proof.environment("gutted", *RUNTIME, *nvidia())
    proof.onnxruntime(python, "onnxruntime-gpu")
    overwrite(proof, python)
    proof.pip(python, "uninstall", "-q", "-y", "onnxruntime")
    return python


def plant_unloaded(proof: Proof) -> Path:
    """Plant the GPU build and all libraries, which nothing loads."""
    python = proof.environment("unloaded", *RUNTIME, *nvidia())
    proof.onnxruntime(python, "onnxruntime-gpu")
    return python


def plant_cudnn_missing(proof: Proof) -> Path:
    """Plant the GPU build with all libraries but cuDNN."""
    others = [name for name in nvidia() if "cudnn" not in name]
    python = proof.environment("cudnn-missing", *RUNTIME, *others)
    proof.onnxruntime(python, "onnxruntime-gpu")
    return python


def plant_cudnn_twice(proof: Proof) -> Path:
    """Plant a second cuDNN distribution that claims the files of the first."""
    python = proof.environment("cudnn-twice", *RUNTIME, *nvidia())
    proof.onnxruntime(python, "onnxruntime-gpu")
    site = site_packages(python.parents[1])
    own = next(site.glob("nvidia_cudnn_cu1[23]-*.dist-info"), None)
    if own is None:
        raise Skipped("no cuDNN is at hand")
    mine, other = ("cu13", "cu12") if "cu13" in own.name else ("cu12", "cu13")
    second = site / own.name.replace(mine, other)
    shutil.copytree(own, second)
    for name in ("METADATA", "RECORD"):
        text = (second / name).read_text("utf-8")
        (second / name).write_text(text.replace(f"cudnn-{mine}", f"cudnn-{other}"), "utf-8")
    return python


def plant_torch(proof: Proof) -> Path:
    """Plant the CPU build beside torch."""
    python = proof.environment("torch", *RUNTIME, "torch", *nvidia())
    if not (site_packages(python.parents[1]) / "torch").is_dir():
        raise Skipped("no torch is at hand")
    proof.onnxruntime(python, "onnxruntime")
    return python


def plant_others(proof: Proof) -> Path:
    """Plant the CPU build beside torch, JAX and CuPy, which have the libraries in common."""
    names = ("torch", "jax", "jax-cuda13-plugin", "jax-cuda13-pjrt", "cupy-cuda13x")
    python = proof.environment("others", *RUNTIME, *names, *nvidia())
    if not (site_packages(python.parents[1]) / "jax").is_dir():
        raise Skipped("no JAX is at hand")
    proof.onnxruntime(python, "onnxruntime")
    return python


def plant_plugin(proof: Proof) -> Path:
    """Plant the CPU build alone, to get the plugin."""
    if not proof.wheel(PLUGIN):
        raise Skipped("no wheel of the plugin is at hand")
    python = proof.environment("tensorrt-rtx", *RUNTIME)
    proof.onnxruntime(python, "onnxruntime")
    return python


def plant_cuda_12(proof: Proof) -> Path:
    """Plant the CPU build, to get the set for CUDA 12 from its wheels."""
    if not proof.wheel("nvidia_cudnn_cu12-"):
        raise Skipped("no wheels for CUDA 12 are at hand")
    python = proof.environment("cuda-12", *RUNTIME)
    proof.onnxruntime(python, "onnxruntime")
    return python


def plant_cuda_11(proof: Proof) -> Path:
    """Plant the CPU build beside NumPy 1, to get the set for CUDA 11 from its wheels.

    For a GPU newer than an 8.9 its onnxruntime-gpu has PTX alone, which the driver compiles.
    """
    if not proof.wheel("nvidia_cudnn_cu11-"):
        raise Skipped("no wheels for CUDA 11 are at hand")
    python = proof.environment("cuda-11", *(name for name in RUNTIME if name != "numpy"))
    proof.pip(python, "install", "-q", "numpy<2", "coloredlogs")
    proof.onnxruntime(python, "onnxruntime")
    return python


def plant_for_uv(proof: Proof) -> Path:
    """Plant the same, and let uv bring the set through its cache, from an index on this machine."""
    if not proof.wheel("uv-") or proof.tool[1:2] != ["-m"]:
        raise Skipped("no wheel of uv is at hand")
    python = plant_cuda_12(proof)
    proof.pip(Path(proof.tool[0]), "install", "-q", "--no-deps", "uv")
    index = LocalIndex(proof.options.wheels)
    index.__enter__()  # as long as this process
    proof.index = ("--index-url", index.url)
    return python


STATES: dict[str, Callable[[Proof], Path]] = {
    "cpu": plant_cpu,
    "torch": plant_torch,
    "both": plant_both,
    "gutted": plant_gutted,
    "unloaded": plant_unloaded,
    "cudnn-missing": plant_cudnn_missing,
    "cudnn-twice": plant_cudnn_twice,
    "others": plant_others,
    "tensorrt-rtx": plant_plugin,
    "cuda-11": plant_cuda_11,
    "cuda-12": plant_cuda_12,
    "cuda-12-small": plant_cuda_12,
    "cuda-12-ptx": plant_cuda_12,
    "cuda-12-uv": plant_for_uv,
}
WANTED = {
    "tensorrt-rtx": ("--provider", "tensorrt-rtx"),
    "cuda-11": ("--cuda", "11"),
    "cuda-12": ("--cuda", "12"),
    "cuda-12-small": ("--cuda", "12", "--prefer", "small"),
    "cuda-12-ptx": ("--ort", "1.20.2", "--prefer", "small"),
    "cuda-12-uv": ("--cuda", "12"),
}
"""What the command is asked for besides, by state."""


def go_through(proof: Proof, name: str, row: dict[str, Any]) -> None:
    """Plant one state and do all that a user would; `row` has what was done, however it ends."""
    python = STATES[name](proof)
    ways = ["torch-first", "torch-after"] if name == "torch" else ["unchanged", "preload"]
    wanted = WANTED.get(name, ())
    row["before"] = proof.apply_application(python, ways[0])
    row["plan"] = proof.fix("--dry-run", *wanted, python=python)
    row["apply"] = proof.fix("--apply", "--yes", *wanted, *proof.sources(), python=python)
    row["verify"] = proof.fix("verify", python=python, facts=False)
    row["after"] = [proof.apply_application(python, way) for way in ways]
    works, first = row["verify"]["exit"] == 0, not proof.measured
    if works and first:
        row["programs"] = look_into(proof, python)
    if works and (first or wanted):
        row["failures"] = provoke(proof, python)
        row["came_back"] = bring_back(proof, python)
    if works and first:
        measure(proof, python)
    if name == "others":
        row["others"] = [
            proof.run(python, "-c", OTHERS, how, MODELS[0], limit=180) for how in ("", "first")
        ]
    row["second_plan"] = proof.fix("--dry-run", *wanted, python=python)
    if row["apply"]["exit"] == 0 and row["plan"]["exit"] == 1:
        row["undo"] = proof.fix("undo", "--yes", python=python, facts=False)
        row["after_undo"] = proof.apply_application(python, ways[0])
    row["right_on_gpu"] = row["verify"]["exit"] == 0
    row["applications_right"] = [is_right(run) for run in row["after"]]


def look_into(proof: Proof, python: Path) -> dict[str, Any]:
    """Run programs under `run`: what each of their sessions asked for, and what it got."""
    found = {}
    for name, session in PROGRAMS.items():
        text = f"import onnxruntime as ort\npath = {str(MODELS[0])!r}\n{session}\n"
        program = proof.work / "program.py"
        program.write_text(text, "utf-8")
        told = proof.work / "told.json"
        more = ("--python", str(python), "--json", "-o", str(told))
        row = proof.run(*proof.tool, "run", *more, "--", "python", program, limit=180)
        row["report"] = json.loads(told.read_text("utf-8")) if told.exists() else None
        found[name] = row
    return found


def provoke(proof: Proof, python: Path) -> dict[str, Any]:
    """Make sessions fail for want of memory, of a GPU, of such a GPU; keep what is said."""
    ask = "import onnxruntime as o; s = o.InferenceSession"
    on = f"({str(PLACED[0])!r}, providers=[('CUDAExecutionProvider', %s), 'CPUExecutionProvider'])"
    run = "; import numpy as n; s.run(None, {'input': n.ones((64, 3, 512, 512), n.float32)})"
    system = sorted(Path("/usr/lib/x86_64-linux-gnu").glob("libcudnn_[a-z]*.so.9"))
    mixed = f"import ctypes\nfor name in {list(map(str, system))}: ctypes.CDLL(name, 257)\n"
    cases = {
        "memory": ((), ask + on % "{'gpu_mem_limit': 1 << 20}" + run),
        "no such GPU": ((), ask + on % "{'device_id': 9}"),
        "hidden": (("env", "CUDA_VISIBLE_DEVICES="), ask + on % "{}"),
        "hidden by a wrong number": (("env", "CUDA_VISIBLE_DEVICES=7"), ask + on % "{}"),
        "wrong option": ((), ask + on % "{'cudnn_conv_algo_search': 'EXAUSTIVE'}"),
        "forked": (
            (),
            ask + on % "{}" + "; import os; os.fork() or o.InferenceSession" + on % "{}",
        ),
        "after a fault": ((), ask + on % "{}" + FAULT + run),
        "after a fault, anew": ((), FAULT + "\n" + ask + on % "{}" + run),
        "little address space": (("prlimit", "--as=6000000000"), ask + on % "{}" + run),
        "another's cuDNN": ((), mixed + ask + on % "{}" + run),
    }
    found = {
        name: proof.run(*before, python, "-c", code, limit=60)
        for name, (before, code) in cases.items()
    }
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE) as holder:
        if holder.stdout and holder.stdout.readline():
            found["memory taken"] = proof.run(python, "-c", ask + on % "{}" + run, limit=60)
        holder.kill()
    return found


def bring_back(proof: Proof, python: Path) -> dict[str, Any]:
    """Put the CPU build over the set, as an update does, and take it out with one command.

    pip does it where there is a wheel; the command names no folder, as that of the loader.
    """
    row: dict[str, Any] = {}
    if proof.wheel("onnxruntime-"):
        proof.pip(python, "install", "-q", "-U", "--no-deps", "onnxruntime")
    else:
        overwrite(proof, python)
    row["application"] = proof.apply_application(python, "unchanged")
    row["check"] = proof.fix("--check", python=python)
    row["apply"] = proof.fix("--apply", "--yes", "--offline", *proof.index, python=python)
    row["after"] = proof.apply_application(python, "unchanged")
    row["right"] = is_right(row["after"])
    return row


def measure(proof: Proof, python: Path) -> None:
    """Run every model, and time those that take a search of cuDNN's and those that take none.

    What the command says goes into the results, the pages beside them.
    """
    for model in (*PLACED, *proof.options.model):
        if proof.left() < MEASURING:
            proof.measured[model.stem] = {"skipped": "too little time was left"}
            continue
        page = proof.options.output / f"{model.stem}.html"
        timed = ["--bench"] if model in TIMED or model in proof.options.model else []
        words = ("verify", str(model), *timed, "--report", str(page))
        proof.measured[model.stem] = proof.fix(*words, python=python, facts=False)


def is_right(run: dict[str, Any]) -> bool:
    """Tell whether an application computed the right numbers on the GPU, with every model.

    A torch that is built for CUDA has to, too, each time that it was asked.
    """
    answer = run.get("answer", {})
    models = answer.get("models", [])
    beside = [row for row in answer.get("torch", []) if row.get("cuda") or "error" in row]
    return (
        bool(models)
        and all(
            model.get("providers", [""])[0] == "CUDAExecutionProvider"
            and model.get("deviation", 1) <= TOLERANCE
            for model in models
        )
        and all(row.get("right") is True for row in beside)
    )


def make_tool(proof: Proof) -> list[str]:
    """Make an environment with this checkout as `ortgpu_fix`, from what is at hand."""
    folder = proof.work / "tool"
    make_venv(folder)
    site = site_packages(folder)
    brought = [name for name in TOOL if proof.wheel(f"{name.replace('-', '_')}-")]
    there = take_in(site, [name for name in TOOL if name not in brought])
    there = [re.sub(r"[-_.]+", "-", row.partition(" ")[0]).lower() for row in there]
    brought += [name for name in NEEDED if name not in (*brought, *there)]
    package = site / "ortgpu_fix"
    for source, target in ((ROOT / "resolver", package), (ROOT / "data", package / "data")):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    compile_tables = str(ROOT / "scripts/matrix/compile_tables.py")
    subprocess.run([sys.executable, compile_tables, str(package / "data")], check=True)
    python = folder / "bin" / "python"
    if brought:
        proof.pip(python, "install", "-q", "--no-deps", *brought)
    return [str(python), "-m", "ortgpu_fix"]


def join_parts(folder: Path) -> None:
    """Join wheels that came in parts."""
    for first in folder.glob("*.whl.part00"):
        whole = first.with_suffix("")
        if not whole.exists():
            with whole.open("wb") as file:
                for part in sorted(folder.glob(f"{whole.name}.part*")):
                    with part.open("rb") as piece:
                        shutil.copyfileobj(piece, file)


def record(proof: Proof) -> dict[str, Any]:
    """Record the machine as a capture, and move it beside the results."""
    interpreter = proof.tool[0] if proof.tool[1:2] == ["-m"] else sys.executable
    name = f"gpu-{dt.datetime.now(tz=dt.timezone.utc).date().isoformat()}"
    done = proof.run(interpreter, ROOT / "scripts" / "record_machine.py", name, limit=120)
    made = ROOT / "tests" / "captures" / name
    if made.is_dir():
        target = proof.options.output / "capture"
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(str(made), target)
        done["capture"] = sorted(path.name for path in target.iterdir())
    return done


def main() -> int:
    """Do all states within the time; return 0 where the script itself came to its end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--wheels", type=Path, help="the folder of wheels")
    parser.add_argument("--output", type=Path, required=True, help="where the results go")
    parser.add_argument("--limit", type=float, default=540, help="seconds for all of it")
    parser.add_argument("--state", action="append", choices=STATES, help="only this one")
    parser.add_argument("--release", default="1.31.1", help="onnxruntime-gpu for planted states")
    parser.add_argument("--tool", help="the command to run (default: this checkout)")
    parser.add_argument("--facts", type=Path, help="the machine to plan for")
    parser.add_argument("--online", action="store_true", help="let the index serve what is missing")
    parser.add_argument("--model", type=Path, action="append", default=[], help="time it, too")
    parser.add_argument("--keep", action="store_true", help="leave the environments")
    options = parser.parse_args()
    options.output = options.output.resolve()
    options.wheels = options.wheels.resolve() if options.wheels else None
    options.facts = options.facts.resolve() if options.facts else None
    options.model = [model.resolve() for model in options.model]
    proof = Proof(options)
    proof.work.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {
        "date": dt.datetime.now(tz=dt.timezone.utc).isoformat(timespec="seconds"),
        "python": sys.version.split()[0],
        "states": {},
        "skipped": {},
        "models": proof.measured,
    }
    rows, skipped = document["states"], document["skipped"]
    try:
        if options.wheels:
            join_parts(options.wheels)
            document["wheels"] = sorted(path.name for path in options.wheels.glob("*.whl"))
        proof.tool = proof.tool or make_tool(proof)
        document["facts"] = proof.run(*proof.tool, "facts", "--python", sys.executable)
        document["record"] = record(proof)
        for name in options.state or STATES:
            rows[name] = {}
            try:
                go_through(proof, name, rows[name])
            except Skipped as reason:
                skipped[name] = str(reason)
            write(proof, document)
            if not options.keep:
                shutil.rmtree(proof.work / name, ignore_errors=True)
    except TimeoutError:
        late = [
            name for name in options.state or STATES if "right_on_gpu" not in rows.get(name, {})
        ]
        skipped |= {name: "the time was up" for name in late if name not in skipped}
    except Skipped as reason:
        skipped["everything"] = f"the tool could not be made: {reason}"
    if not options.keep:
        shutil.rmtree(proof.work, ignore_errors=True)
    write(proof, document)
    for name, row in rows.items():
        found = row.get("verify", {}).get("answer", {}).get("verdict")
        right = f"{row.get('right_on_gpu')}, applications: {row.get('applications_right')}"
        print(f"{name}: {skipped.get(name) or found}; right on the GPU: {right}")
    return 1 if "everything" in skipped else 0


def write(proof: Proof, document: dict[str, Any]) -> None:
    """Write what there is so far."""
    text = json.dumps(document, indent=1, ensure_ascii=False).replace(str(proof.work), "…")
    (proof.options.output / "prove_gpu.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
