"""Prove the locks: every format installed for real, with the tools that people have.

    python scripts/prove/lock.py [--only SUBSTRING …] [--work DIR] [--keep]

The set is that of the example machine (CUDA 12), whose Python must be on this machine. It is
downloaded once with `ortgpu-fix download`; cases named `index` take everything from the index all
the same. After each installation: the release is there and whole, no CPU build is left, the
environment has no conflicts, an unchanged application gets past loading the libraries, `verify`
finds nothing missing (there is no GPU here).

Cases named `offline` run in a network namespace without a route (`unshare -n`, as root). The case
`dockerfile` is built by Debian's Buildah, as root; a Debian bookworm made by mmdebstrap stands in
for the base image, with fastembed as the application. The image is started, its health check is
done, and `--check`, as the user of the image: both tell when a library is taken away.

Each outcome goes into scripts/prove/results/ at once. Needs uv, a network, about 25 GB below DIR.
The exit code is 1 where a case is not as expected.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import record
from support.debian_image import Builder, in_root
from support.pythons import find_python
from support.standin_wheels import clean_environment, find_uv

UV = find_uv()
ROOT = Path(__file__).resolve().parents[2]
PYTHON = "3.11"
RELEASE = "1.26.0"
MODEL = ROOT / "data" / "start.onnx"
USER = "10001"
"""Of the image."""
APPLICATION = """
import sys, onnxruntime
if sys.argv[2] == "preload":
    onnxruntime.preload_dlls()
print("loaded", onnxruntime.__version__, flush=True)
onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
"""
SESSION = """
import onnxruntime
wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
onnxruntime.InferenceSession({model!r}, providers=wanted)
"""
PROJECT = """\
[project]
name = "application"
version = "0"
requires-python = ">=3.11,<3.12"
dependencies = ["chromadb"]

"""
WINDOWS = {
    "schema": 1,
    "platform": {"system": "windows", "machine": "x86_64"},
    "driver": {"version": "576.80", "cuda": "12.9"},
    "gpus": [{"compute_capability": "8.6"}],
    "python": {"version": "3.12.10"},
    "packages": [],
}


@dataclass
class Outcome:
    """How a case went."""

    name: str
    seconds: float = 0.0
    seen: dict[str, object] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Failed(Exception):  # noqa: N818 - the outcome of a case
    """A program did not do what it should."""


class Shop:
    """The folder where locks are made and installed."""

    def __init__(self, folder: Path, tool: str = sys.executable) -> None:
        self.folder = folder
        self.tool = tool
        self.wheels = folder / "wheels"
        self.env = dict(clean_environment())
        self.python = str(find_python(PYTHON) or "")

    def run(self, *argv: object, cwd: Path | None = None, expect: int = 0) -> str:
        """Run a program, and return what it printed. Raises Failed where it ends otherwise."""
        words = [str(word) for word in argv]
        done = subprocess.run(
            words, cwd=cwd or self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        if (done.returncode != 0) != (expect != 0):
            said = (done.stderr.strip() or done.stdout.strip())[-600:]
            raise Failed(f"{shlex.join(words[:6])} … exit {done.returncode}: {said}")
        return done.stdout if expect == 0 else done.stdout + done.stderr

    def fix(self, *words: object, cwd: Path | None = None, apart: bool = False) -> str:
        """Run ortgpu-fix for the example machine; `apart`: without network."""
        argv = [self.tool, "-m", "ortgpu_fix", "--facts", "example", *words]
        return self.run(*(APART if apart else ()), *argv, cwd=cwd)

    def fill(self) -> None:
        """Download the set, unless it is there."""
        self.fix("download", "-d", self.wheels)

    def venv(self, name: str, *, seed: bool = False) -> Path:
        """Make an environment and return its folder."""
        words = ["--seed"] if seed else []
        self.run(UV, "venv", "--quiet", "--clear", "--python", self.python, *words, name)
        return self.folder / name


APART = ("unshare", "--net", "--")
"""Runs a program in a network namespace of its own, which has no interface that is up."""


def judge(shop: Shop, venv: Path, *, preload: bool = False) -> dict[str, object]:
    """Look at an environment that a lock was installed into. Raises Failed."""
    python = venv / "bin" / "python"
    listed = json.loads(shop.run(UV, "pip", "list", "--format", "json", "--python", python))
    installed = {row["name"]: row["version"] for row in listed}
    if installed.get("onnxruntime-gpu") != RELEASE:
        raise Failed(f"onnxruntime-gpu is {installed.get('onnxruntime-gpu')}")
    if "onnxruntime" in installed and not list(venv.rglob("ORTGPU_FIX_PROVIDED")):
        raise Failed("the CPU build is there")
    if not list(venv.rglob("libonnxruntime_providers_cuda.so")):
        raise Failed("the GPU build is not whole")
    if "onnxruntime" in installed or not preload:
        shop.run(UV, "pip", "check", "--python", python)
    else:  # an override keeps the CPU build out, and those who require it by name go without
        _only_onnxruntime_missing(shop, python)
    words = [str(python), "-c", APPLICATION, str(MODEL), "preload" if preload else "plain"]
    done = subprocess.run(words, env=shop.env, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    met = said.partition("CUDA failure")[2].partition(";")[0]
    if "loaded" not in said or "Failed to load library" in said or not met:
        raise Failed(f"the application: {said[-600:]}")
    found = json.loads(shop.run(*_verify(shop, venv), expect=6).partition("\n\n")[0])
    if found["verdict"] not in {"no-driver", "no-gpu"}:
        raise Failed(f"verify says {found['verdict']}")
    return {
        "verdict": found["verdict"],
        "application": f"CUDA failure{met.rstrip()}",
        "distributions": len(installed),
    }


def _only_onnxruntime_missing(shop: Shop, python: Path) -> None:
    words = [UV, "pip", "check", "--python", str(python)]
    done = subprocess.run(words, env=shop.env, capture_output=True, text=True, check=False)
    found = [line for line in done.stderr.splitlines() if line.startswith("The package")]
    if any("requires `onnxruntime" not in line for line in found):
        raise Failed(f"conflicts: {found}")


def _verify(shop: Shop, venv: Path) -> list[str]:
    return [shop.tool, "-m", "ortgpu_fix", "verify", "--python", str(venv), "--json"]


def requirements(shop: Shop, *flags: object) -> None:
    """Write `lock.txt`, with the companions beside it in the folder of the wheels."""
    shop.fix("lock", "-o", "lock.txt", "-d", "wheels", *flags)


def pip_index(shop: Shop) -> dict[str, object]:
    """pip, from the index, with a lock without companions."""
    shop.fix("lock", "-o", "plain.txt")
    venv = shop.venv("venv", seed=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    shop.run(*pip, "--require-hashes", "-r", "plain.txt")
    return judge(shop, venv, preload=True)


def pip_folder(shop: Shop) -> dict[str, object]:
    """pip, with the companions from their path; a later install leaves the GPU build alone."""
    requirements(shop)
    venv = shop.venv("venv", seed=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    shop.run(*pip, "--find-links", "wheels", "--require-hashes", "-r", "lock.txt")
    before = judge(shop, venv)
    shop.run(*pip, "magika")
    return before | {"after pip install magika": judge(shop, venv)["verdict"]}


def uv_requirements_index(shop: Shop) -> dict[str, object]:
    """uv, from the index."""
    requirements(shop)
    venv = shop.venv("venv")
    install = [UV, "pip", "install", "--quiet", "--no-cache", "--python", venv]
    shop.run(*install, "--require-hashes", "-r", "lock.txt")
    return judge(shop, venv)


def pylock_uv(shop: Shop) -> dict[str, object]:
    """`uv pip sync pylock.toml`, from the addresses in it; what was there is gone."""
    shop.fix("lock", "-o", "pylock.toml", "--format", "pylock", "-d", "wheels")
    venv = shop.venv("venv")
    shop.run(UV, "pip", "install", "--quiet", "--python", venv, "onnxruntime==1.22.1")
    shop.run(UV, "pip", "sync", "--quiet", "--no-cache", "--python", venv, "pylock.toml")
    return judge(shop, venv)


def pylock_pip(shop: Shop) -> dict[str, object]:
    """`pip install -r pylock.toml`, with every wheel from the folder."""
    words = ["--format", "pylock", "-d", "wheels", "--find-links", "wheels"]
    shop.fix("lock", "-o", "pylock.toml", *words)
    venv = shop.venv("venv")
    pip = [sys.executable, "-m", "pip", "--python", venv, "install", "--quiet", "--no-cache-dir"]
    shop.run(*pip, "-r", "pylock.toml")
    return judge(shop, venv) | {
        "pip": shop.run(sys.executable, "-m", "pip", "--version").split()[1]
    }


def _uv_project(shop: Shop, *flags: str) -> dict[str, object]:
    project = shop.folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    lines = shop.fix("lock", "--format", "uv", *flags, cwd=project)
    (project / "pyproject.toml").write_text(PROJECT + lines)
    links = ["--find-links", shop.wheels]
    sync = [UV, "sync", "--quiet", "--python", shop.python, *links]
    shop.run(*sync, cwd=project)
    seen = judge(shop, project / ".venv", preload=not flags)
    locked = (project / "uv.lock").read_bytes()
    shop.run(UV, "sync", "--quiet", "--locked", *links, cwd=project)
    if (project / "uv.lock").read_bytes() != locked:
        raise Failed("a second sync changed uv.lock")
    listed = shop.run(UV, "pip", "list", "--python", project / ".venv")
    if "chromadb" not in listed:
        raise Failed("chromadb is not installed")
    return seen | {"stand-in": "\nonnxruntime " in listed}


def uv_project(shop: Shop) -> dict[str, object]:
    """`uv sync` in a project with chromadb, which requires onnxruntime; no companions."""
    return _uv_project(shop)


def uv_project_companions(shop: Shop) -> dict[str, object]:
    """Do the same with the companions beside the project."""
    return _uv_project(shop, "-d", "gpu-wheels")


def tampered(shop: Shop) -> dict[str, object]:
    """Pip and uv refuse a lock with another hash, and one with another version."""
    requirements(shop)
    text = (shop.folder / "lock.txt").read_text()
    at = text.index("\nonnxruntime-gpu==")
    first = text.index("sha256:", at) + len("sha256:")
    wrong = text[:first] + text[first : first + 64][::-1] + text[first + 64 :]
    texts = {
        "hash": wrong,
        "version": text.replace("nvidia-curand-cu12==10.3.9.90", "nvidia-curand-cu12==10.3.9.55"),
    }
    seen: dict[str, object] = {}
    venv = shop.venv("venv", seed=True)
    before = sorted(path.name for path in venv.rglob("*.dist-info"))
    sources = ["--find-links", "wheels", "--require-hashes", "-r", "wrong.txt"]
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir", *sources]
    uv = [UV, "pip", "install", "--quiet", "--no-cache", "--python", venv, *sources]
    for what, changed in texts.items():
        if changed == text:
            raise Failed(f"no {what} to change")
        (shop.folder / "wrong.txt").write_text(changed)
        for tool, argv in (("pip", pip), ("uv", uv)):
            said = shop.run(*argv, expect=1).lower()
            seen[f"{tool}, {what}"] = next(
                (line.strip()[:100] for line in said.splitlines() if "hash" in line), "refused"
            )
    if sorted(path.name for path in venv.rglob("*.dist-info")) != before:
        raise Failed("something was installed")
    return seen


def offline_apply(shop: Shop) -> dict[str, object]:
    """`--apply --offline --find-links` on an environment with the CPU build."""
    venv = shop.venv("venv")
    shop.run(UV, "pip", "install", "--quiet", "--python", venv, "onnxruntime==1.22.1")
    words = ["--apply", "--yes", "--offline", "--find-links", "wheels", "--python", venv]
    shop.fix(*words, apart=True)
    return judge(shop, venv) | _cut_off(shop)


def offline_pip(shop: Shop) -> dict[str, object]:
    """Make a lock without network, and let pip install it without network."""
    requirements(shop, "--offline", "--find-links", "wheels")
    venv = shop.venv("venv", seed=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    sources = ["--no-index", "--find-links", "wheels"]
    shop.run(*APART, *pip, *sources, "--require-hashes", "-r", "lock.txt")
    return judge(shop, venv) | _cut_off(shop)


def offline_pylock(shop: Shop) -> dict[str, object]:
    """Make a pylock.toml without network, and let uv install it without network."""
    words = ["--format", "pylock", "-d", "wheels", "--offline", "--find-links", "wheels"]
    shop.fix("lock", "-o", "pylock.toml", *words, apart=True)
    venv = shop.venv("venv")
    sync: list[str | Path] = [
        UV,
        "pip",
        "sync",
        "--quiet",
        "--offline",
        "--no-cache",
        "--python",
        venv,
    ]
    shop.run(*APART, *sync, "pylock.toml")
    return judge(shop, venv) | _cut_off(shop)


def _cut_off(shop: Shop) -> dict[str, object]:
    """Make sure that nothing can be reached from where the cases named `offline` ran."""
    code = "import socket; socket.create_connection(('1.1.1.1', 443), 3)"
    said = shop.run(*APART, sys.executable, "-c", code, expect=1)
    return {"namespace": said.strip().splitlines()[-1]}


def download_elsewhere(shop: Shop) -> dict[str, object]:
    """Fetch the set for a Windows machine on this one; a second run fetches nothing."""
    facts = shop.folder / "windows.json"
    facts.write_text(json.dumps(WINDOWS))
    words = [shop.tool, "-m", "ortgpu_fix", "--facts", facts, "download", "-d", "windows", "--json"]
    document = json.loads(shop.run(*words))
    for row in document["files"]:
        data = (shop.folder / "windows" / row["file"]).read_bytes()
        if hashlib.sha256(data).hexdigest() != row["sha256"]:
            raise Failed(f"{row['file']} is another")
    started = time.monotonic()
    shop.run(*words)
    again = round(time.monotonic() - started, 1)
    names = [row["file"] for row in document["files"]]
    if not all(name.endswith(("win_amd64.whl", "none-any.whl")) for name in names):
        raise Failed(f"not for Windows: {names}")
    shutil.rmtree(shop.folder / "windows")
    return {"files": len(names), "second run, seconds": again}


def dockerfile(shop: Shop) -> dict[str, object]:
    """Build the Dockerfile with Debian's Buildah, and start it."""
    context = shop.folder / "context"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir()
    (context / "requirements.txt").write_text("fastembed\n")
    words = ["--format", "dockerfile", "-o", "Dockerfile", "-d", "wheels", "-r", "requirements.txt"]
    shop.fix("lock", *words, cwd=context)
    [line] = [
        line
        for line in (context / "Dockerfile").read_text().splitlines()
        if line.startswith("HEALTHCHECK")
    ]
    health = json.loads(line.partition("CMD ")[2])
    builder = Builder(shop.folder / "builder", shop.run)
    try:
        container = builder.build(context, shop.folder, f"python:{PYTHON}-slim-bookworm")
        program = "import os; print('application runs as', os.getuid(), 'in', os.getcwd())"
        said = builder.start(container, "-c", program, expect=1)
        started = builder.start(container, "-c", program, GPU_CHECK="off")
        ask = SESSION.format(model=MODEL.read_bytes())
        refused = builder.start(container, "-c", ask, expect=1, GPU_CHECK="off")
        met = said.partition("CUDA failure")[2].partition(";")[0]
        if "Failed to load library" in said or not met or "application runs" in said:
            raise Failed(f"the check at the start: {said[-500:]}")
        if "ORTGPU_FIX_REQUIRE" not in refused:
            raise Failed(f"a silent fallback: {refused[-500:]}")
        root = builder.root(container)
        toolkits = list(root.glob("usr/local/cuda*"))
        if f"application runs as {USER} in /home/app" not in started or toolkits:
            raise Failed(f"the image is not as it should be: {started[-500:]}")
        stand_ins = list(root.glob("opt/venv/**/ORTGPU_FIX_PROVIDED"))
        files = [path for path in root.glob("opt/**/*") if path.is_file()]
        asked = "import fastembed, importlib.metadata as it; print(it.version('fastembed'))"
        application = builder.execute(container, "python", "-c", asked)
        check = _program_in(shop, root)
        builder.execute(container, *health)
        shop.run(*check)
        [library] = root.glob("opt/venv/lib/python*/site-packages/nvidia/cudnn/lib/libcudnn.so.9")
        library.rename(library.with_name("away"))
        builder.execute(container, *health, expect=1)
        shop.run(*check, expect=1)
        library.with_name("away").rename(library)
        return {
            "builder": shop.run("buildah", "--version").strip(),
            "base": "Debian bookworm, whose Python stands in for the image's",
            "stand-in": len(stand_ins) == 1,
            "fastembed": application,
            f"health check and --check as {USER}": [0, 0],
            "without libcudnn.so.9 neither is 0": True,
            "check at the start": f"CUDA failure{met.rstrip()}",
            "GB in /opt": round(sum(path.lstat().st_size for path in files) / 1e9, 2),
        }
    finally:
        builder.remove()


def _program_in(shop: Shop, root: Path) -> list[str]:
    """Put this program into an image; return how the user of that runs `--check`."""
    shop.run(*in_root(root, "/usr/bin/python3", "-m", "venv", "--without-pip", "/opt/check"))
    [site] = root.glob("opt/check/lib/python*/site-packages")
    shop.run(UV, "pip", "install", "--quiet", "--python", shop.python, "--target", site, ROOT)
    words = ["/opt/check/bin/python", "-m", "ortgpu_fix", "--check", "--python", "/opt/venv"]
    machine = ["--driver", "535.104.12", "--gpu", "A100"]
    return in_root(root, *words, *machine, user=USER)


CASES: dict[str, Callable[[Shop], dict[str, object]]] = {
    "requirements-pip-index": pip_index,
    "requirements-pip-folder": pip_folder,
    "requirements-uv-index": uv_requirements_index,
    "pylock-uv-index": pylock_uv,
    "pylock-pip-folder": pylock_pip,
    "uv-project": uv_project,
    "uv-project-companions": uv_project_companions,
    "dockerfile": dockerfile,
    "offline-apply": offline_apply,
    "offline-requirements-pip": offline_pip,
    "offline-pylock-uv": offline_pylock,
    "tampered": tampered,
    "download-elsewhere": download_elsewhere,
}


def main() -> int:
    """Run the cases, print a line for each, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="SUBSTRING")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    folder = (arguments.work or Path(tempfile.mkdtemp(prefix="prove-lock-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    shop = Shop(folder)
    names = [
        name for name in CASES if not arguments.only or any(part in name for part in arguments.only)
    ]
    if names != ["dockerfile"]:  # which takes everything from the index
        shop.fill()
    uv = subprocess.run([UV, "--version"], capture_output=True, text=True, check=True)
    failed = 0
    for name in names:
        outcome, started = Outcome(name=name), time.monotonic()
        try:
            outcome.seen = CASES[name](shop)
        except Failed as problem:
            outcome.problems.append(str(problem))
        outcome.seconds = round(time.monotonic() - started, 1)
        failed += bool(outcome.problems)
        print(
            f"{name:26} {outcome.seconds:6} s  {'; '.join(outcome.problems) or outcome.seen}",
            flush=True,
        )
        record("lock", asdict(outcome), list(CASES), tools=[uv.stdout.strip()])
        shutil.rmtree(folder / "venv", ignore_errors=True)
        shutil.rmtree(folder / "project", ignore_errors=True)
    if not arguments.keep:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
