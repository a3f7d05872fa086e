"""Where a person on Windows meets an edge, with the real wheels of CUDA 13, under Wine.

    python scripts/prove/windows_edges.py --work DIR [--only TEXT]

A lock is written, and installed by Windows' pip with `--require-hashes`; an environment on another
drive than the temporary folder and the caches is mended from a folder of wheels, with no server to
be reached; a service account without a profile; a user with a Chinese name and code page 936; two
consoles at once; a cache that is purged while a file of it is open; logs in the UTF-16 of
PowerShell's `>`; and the pair of cuBLAS and cuDNN of CopySpeak#51, and the one that is said to
load in its place. Each ends with files as they were.

Needs what `windows.py` needs, and a wheel in dist. The dated result goes to scripts/prove/results;
the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import record, recorded
from prove.windows import GPU, NOT_LOADED, NUMPY, ROOT, SETS, Proof, remove, text
from support.standin_wheels import without_notes
from support.windows_python import end, windows

RELEASE, DRIVER, LOADED = SETS["13"]
MACHINE = ("--driver", DRIVER, "--gpu", GPU, "--ort", f"=={RELEASE}")
QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}
DEAD = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
"""No server can be reached."""
LOGS = 12
AS = """
import json, os, subprocess, sys
for name, value in json.loads(sys.argv[1]).items():
    os.environ.pop(name, None)
    if value:
        os.environ[name] = value
        os.makedirs(value, exist_ok=True)
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""
"""Starts a program as another user has it: Wine makes these variables from its registry."""
PROFILE = {
    "USERPROFILE": "",
    "LOCALAPPDATA": "AppData\\Local",
    "APPDATA": "AppData\\Roaming",
    "TEMP": "AppData\\Local\\Temp",
    "TMP": "AppData\\Local\\Temp",
}
HELD = """
import os, sys
folder = os.path.join(os.environ["LOCALAPPDATA"], "ortgpu-fix", "wheels")
os.makedirs(folder, exist_ok=True)
for name in ("open.whl", "other.whl"):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"x" * 100000)
with open(os.path.join(folder, "open.whl"), "rb"):
    print("held", flush=True)
    sys.stdin.read()
"""
PAIRS = (("13.8.0.4", "9.26.0.51"), ("13.1.1.3", "9.24.0.43"))
"""cuBLAS and cuDNN beside which onnxruntime-gpu 1.30.0 ends in error 126, and loads, it is said."""
PAIRED = """
import ctypes, os, sys
site = os.path.join(sys.prefix, "Lib", "site-packages", "nvidia")
if sys.argv[2] == "loaded":
    for library in ("cu13/bin/x86_64/cublas64_13", "cudnn/bin/cudnn64_9"):
        ctypes.WinDLL(os.path.join(site, *library.split("/")) + ".dll")
import onnxruntime
try:
    onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
except Exception as error:
    print(error)
"""

Ended = subprocess.CompletedProcess[bytes]


def in_profile(proof: Proof, profile: dict[str, str], *words: str | Path) -> Ended:
    """Run the program as a user with this profile."""
    return proof.wine.run(
        proof.wine.python, "-c", AS, json.dumps(profile), proof.tools["uv"], *words, environ=DEAD
    )


def mended(
    proof: Proof, place: str | Path, folder: Path, fix: Callable[..., Ended]
) -> Iterator[str]:
    """Mend the environment `place`, in `folder` as Linux has it, and put it back."""
    remove(folder)
    python = proof.wine.venv(folder, NUMPY, "onnxruntime==1.22.1")
    (folder / ".lock").unlink(missing_ok=True)
    before = without_notes(folder)
    there = ("--python", place, *MACHINE)
    near = ("--offline", "--find-links", proof.wheels("13"))
    done = fix("--apply", "--yes", "--json", *there, *near)
    if done.returncode != 0:
        yield f"apply: {text(done)[-600:]}"
        return
    if (code := fix("--check", *there).returncode) != 0:
        yield f"check: {code}"
    said = text(proof.wine.run(python, proof.script, ROOT / "data" / "matmul.onnx", environ=QUIET))
    if not re.search(LOADED, said):
        yield f"an unchanged script: {said[-400:]}"
    if (undone := fix("undo", "--yes", "--python", place)).returncode != 0:
        yield f"undo: {text(undone)[-400:]}"
    if without_notes(folder) != before:
        yield "after undo: not as it was"


def lock_installed(proof: Proof) -> Iterator[str]:
    """Write a lock, and let Windows' pip install it with `--require-hashes`, where it lies."""
    folder = proof.work / "团队 lock"
    remove(folder)
    folder.mkdir()
    (folder / "needs.txt").write_text(NUMPY + "\n")
    proof.wine.venv(folder / "from", NUMPY)
    wanted = ("-r", "needs.txt", "--python", "from", *MACHINE)
    program = proof.tools["uv"]
    done = proof.wine.run(program, "lock", "-o", "gpu.txt", "-d", "wheels", *wanted, cwd=folder)
    if done.returncode != 0:
        yield f"lock: {text(done)[-600:]}"
        return
    lock = (folder / "gpu.txt").read_text("utf-8")
    if placed := re.findall(r"^(?!#).*[A-Za-z]:[\\/].*$", lock, re.MULTILINE):
        yield f"it names places of this machine: {placed}"
    python = proof.wine.venv(folder / "to", pip=True)
    install = ("-m", "pip", "install", "-q", "--no-cache-dir", "--require-hashes", "-r", "gpu.txt")
    near = ("--find-links", proof.wheels("13"))
    installed = proof.wine.run(python, *install, *near, cwd=folder, seconds=1200)
    if installed.returncode != 0:
        yield f"pip: {text(installed)[-600:]}"
    said = text(proof.wine.run(python, proof.script, ROOT / "data" / "matmul.onnx", environ=QUIET))
    if not re.search(LOADED, said):
        yield f"an unchanged script: {said[-400:]}"
    held = proof.fix("uv", "lock", "--check", folder / "gpu.txt", "--python", folder / "to")
    if held.returncode != 0:
        yield f"lock --check: {text(held)[-400:]}"


def other_drive(proof: Proof) -> Iterator[str]:
    """Mend an environment on D: from a folder of wheels, without a network."""
    drive = proof.work / "drive"
    drive.mkdir(exist_ok=True)
    link = proof.wine.folder / "prefix" / "dosdevices" / "d:"
    link.unlink(missing_ok=True)
    link.symlink_to(drive)
    yield from mended(
        proof,
        "D:\\应用\\env",
        drive / "应用" / "env",
        lambda *words: proof.fix("uv", *words, **DEAD),
    )
    link.unlink()


def no_profile(proof: Proof) -> Iterator[str]:
    """Be a service: no LOCALAPPDATA, no USERPROFILE, no APPDATA."""
    nobody = dict.fromkeys(("USERPROFILE", "LOCALAPPDATA", "APPDATA", "HOMEPATH", "HOME"), "")
    folder = proof.work / "service"
    for word in ("dir", "info", "purge"):
        done = in_profile(proof, nobody, "cache", word)
        if done.returncode != 0 or "no home folder" not in text(done):
            yield f"cache {word}: {text(done)[-400:]}"
    yield from mended(proof, folder, folder, lambda *words: in_profile(proof, nobody, *words))


def chinese_user(proof: Proof) -> Iterator[str]:
    """Be a user whose name is Chinese, with code page 936, in whose home the environment is."""
    home = "C:\\users\\张三"
    profile = {name: f"{home}\\{rest}".rstrip("\\") for name, rest in PROFILE.items()}
    folder = proof.wine.folder / "prefix" / "drive_c" / "users" / "张三" / ".venv"
    locales = proof.work / "locales"
    locales.mkdir(exist_ok=True)
    made = str(locales / "zh_CN.UTF-8")
    subprocess.run(["localedef", "-i", "zh_CN", "-f", "UTF-8", made], check=True)
    chinese = {"LC_ALL": "zh_CN.UTF-8", "LOCPATH": str(locales)}  # Wine's code page is of it

    def fix(*words: str | Path) -> Ended:
        started = ("-c", AS, json.dumps(profile), proof.tools["uv"], *words)
        return proof.wine.run(proof.wine.python, *started, environ=DEAD | chinese)

    proof.wine.venv(folder, NUMPY)
    plan = fix("--python", f"{home}\\.venv", *MACHINE)
    said = plan.stdout.decode("cp936", errors="replace")
    if plan.returncode != 1 or "环境" not in said or "\ufffd" in said or "张三\\.venv" not in said:
        yield f"plan: exit {plan.returncode}, {said[-600:]}"
    yield from mended(proof, f"{home}\\.venv", folder, fix)
    facts = fix("facts", "--python", f"{home}\\.venv").stdout.decode("utf-8", errors="replace")
    if "张三" in facts:
        yield "the facts name the user"


def consoles(proof: Proof) -> Iterator[str]:
    """Apply in two consoles at once: one does it, the other one names the first."""
    folder = proof.work / "环境 twice"
    before = proof.prepared(folder)
    near = ("--python", folder, *MACHINE, "--offline", "--find-links", proof.wheels("13"))
    words = ("--apply", "--yes", "--json", *near)
    started = [proof.wine.start(proof.tools["uv"], *words) for _ in range(2)]
    ended = [one.communicate(timeout=600) for one in started]
    codes = [one.returncode for one in started]
    refused = [json.loads(out) for (out, _), code in zip(ended, codes, strict=True) if code]
    if sorted(codes) != [0, 2] or refused[0]["error"]["code"] != "environment-locked":
        yield f"exit {codes}: {[str(one)[:400] for one in ended]}"
    yield from proof.finished("uv", folder, before, MACHINE)


def purged(proof: Proof) -> Iterator[str]:
    """Purge the cache while a wheel of it is open, and again once it is not."""
    with subprocess.Popen(
        ["wine", str(proof.wine.python), "-c", HELD],
        env=proof.wine.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as user:
        if user.stdout is None or user.stdout.readline().strip() != b"held":
            yield "the file is not held"
        first = proof.fix("uv", "cache", "purge")
        user.communicate(b"")
    if first.returncode != 0 or "could not be removed" not in text(first):
        yield f"while in use: exit {first.returncode}, {text(first)[-400:]}"
    again = proof.fix("uv", "cache", "purge")
    left = json.loads(proof.fix("uv", "cache", "info", "--json").stdout)["bytes"]
    if again.returncode != 0 or any(left.values()):
        yield f"afterwards: exit {again.returncode}, {left}"


def utf16(proof: Proof) -> Iterator[str]:
    """Explain logs as PowerShell's `>` writes them, and as others save them."""
    logs = sorted((ROOT / "tests" / "cases" / "logs").glob("*.txt"))
    for log in logs[:: max(1, len(logs) // LOGS)]:
        content = log.read_text("utf-8").replace("\n", "\r\n")
        explained = {}
        for name in ("utf-8", "utf-16", "utf-16-le", "utf-16-be"):
            copy = proof.work / f"日志 {name}.txt"
            copy.write_bytes(content.encode(name))
            done = proof.fix("uv", "explain", copy, "--text-only", "--json")
            explained[name] = [row["code"] for row in json.loads(done.stdout)["explanations"]]
        if len({tuple(codes) for codes in explained.values()}) != 1:
            yield f"{log.name}: {explained}"


def pairs(proof: Proof) -> Iterator[str]:
    """Load onnxruntime-gpu 1.30.0 with each pair: where they are found, both load; else neither."""
    for cublas, cudnn in PAIRS:
        folder = proof.work / "pair"
        remove(folder)
        python = proof.wine.venv(folder, NUMPY, "flatbuffers", "packaging", "protobuf")
        words = ["pip", "install", "-q", "--no-config", "--no-deps", "--link-mode", "copy"]
        words += ["--python", windows(python), "onnxruntime-gpu==1.30.0"]
        wanted = (f"nvidia-cublas=={cublas}", f"nvidia-cudnn-cu13=={cudnn}")
        proof.wine.must(proof.wine.uv, *words, *wanted)
        for how, expected in (("alone", NOT_LOADED), ("loaded", re.compile(LOADED))):
            model = ROOT / "data" / "matmul.onnx"
            said = text(proof.wine.run(python, "-c", PAIRED, model, how))
            if not expected.search(said):
                yield f"{cublas}, {cudnn}, {how}: {said[-400:]}"
        remove(folder)


EDGES: dict[str, Callable[[Proof], Iterator[str]]] = {
    "pip --require-hashes on our lock": lock_installed,
    "another drive, no network": other_drive,
    "no profile": no_profile,
    "a Chinese user name in cp936": chinese_user,
    "two consoles at once": consoles,
    "cache purge while in use": purged,
    "explain UTF-16": utf16,
    "cuBLAS 13.8.0.4 with cuDNN 9.26.0.51": pairs,
}


def main() -> int:
    """Run the cases and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", help="the cases that have this in their name")
    options = parser.parse_args()
    work = options.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    proof = Proof(work)
    wine = subprocess.run(["wine", "--version"], capture_output=True, text=True, check=True).stdout
    python = proof.wine.must(proof.wine.python, "-c", "import sys; print(sys.version)")
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    for name, run in EDGES.items():
        if options.only not in name:
            continue
        started = time.monotonic()
        problems = list(run(proof))
        seconds = round(time.monotonic() - started)
        outcome = {"name": name, "problems": problems, "seconds": seconds, "commit": commit}
        record("windows-edges", outcome, tuple(EDGES), wine=wine.strip(), windows_python=python)
        print(f"{name}: {'; '.join(problems) or 'well'} ({seconds} s)", flush=True)
    end(proof.wine)
    return int(any(row["problems"] for row in recorded("windows-edges").values()))


if __name__ == "__main__":
    sys.exit(main())
