"""Where a person on Windows meets an edge, with the real wheels of CUDA 13, under Wine.

    python scripts/prove/windows_edges.py --work DIR [--only TEXT]

A lock is written, and installed by Windows' pip with `--require-hashes`; an environment on another
drive than the temporary folder and the caches is mended from a folder of wheels, with no server to
be reached; a service account without a profile; a user with a Chinese name, in code page 936 and in
UTF-8; two consoles at once; a cache that is purged
while a file of it is open; logs in the UTF-16 of PowerShell's `>`; and the pair of cuBLAS and cuDNN
of CopySpeak#51, and the one that is said to load in its place. A Python whose user's site goes
before its own, and one in a `Program Files` that may not be written; a program that is watched, and
one that must have the GPU; a model that is timed, with its page; a path of more than 260 characters
from programs with and without the manifest for it; the check list for people,
`scripts/windows_check.py`; and NVIDIA's TensorRT-RTX plugins, as far as they go without a driver.
Each ends with files as they were.

Needs what `windows.py` needs, a wheel in dist, and to be root on a filesystem with `chattr +i`, as
which Wine may be refused a folder. The dated result goes to scripts/prove/results;
the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pefile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.windows import (
    CPU_BUILD,
    GPU,
    LONG_PATHS,
    NOT_LOADED,
    NUMPY,
    ROOT,
    SETS,
    Proof,
    remove,
    text,
)
from support.standin_wheels import without_notes
from support.windows_python import COMPILER, prove, windows

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
folder = os.path.join(os.environ["LOCALAPPDATA"], "ortgpu-fix", "readings")
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

FALLS_BACK = """
import sys, onnxruntime
both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
print("ran on", onnxruntime.InferenceSession(sys.argv[1], providers=both).get_providers())
"""
OPENS = """
#include <windows.h>
int wmain(int count, wchar_t **words) {
    return count < 2 || GetFileAttributesW(words[1]) == INVALID_FILE_ATTRIBUTES;
}
"""
REGISTERS = """
import ctypes, sys, onnxruntime, onnxruntime_ep_nv_tensorrt_rtx as plugin
from ctypes import wintypes
try:
    name, library = plugin.get_ep_name(), plugin.get_library_path()
    onnxruntime.register_execution_provider_library(name, library)
    print("registered:", sorted({one.ep_name for one in onnxruntime.get_ep_devices()}))
except Exception as error:
    print(ascii(str(error)))
kernel = ctypes.WinDLL("kernel32")
kernel.GetModuleHandleW.restype = wintypes.HMODULE
for name in sys.argv[1:]:
    print(name, bool(kernel.GetModuleHandleW(name)))
"""
AWARE = """<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0"><application>
<windowsSettings xmlns:ws2="http://schemas.microsoft.com/SMI/2016/WindowsSettings">
<ws2:longPathAware>true</ws2:longPathAware></windowsSettings></application></assembly>
"""
"""The manifest of a program that may use paths of more than 260 characters, where they are on:
https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation."""
SEEN: dict[str, dict[str, Any]] = {}
"""What came out, by the name of the case."""

Ended = subprocess.CompletedProcess[bytes]


def in_profile(proof: Proof, profile: dict[str, str], *words: str | Path) -> Ended:
    """Run the program as a user with this profile."""
    return proof.wine.run(
        proof.wine.python, "-c", AS, json.dumps(profile), proof.program, *words, environ=DEAD
    )


def mended(
    proof: Proof, place: str | Path, folder: Path, fix: Callable[..., Ended]
) -> Iterator[str]:
    """Mend the environment `place`, in `folder` as Linux has it, and put it back."""
    remove(folder)
    python = proof.wine.venv(folder, NUMPY, CPU_BUILD)
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
    program = proof.program
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
    held = proof.fix("lock", "--check", folder / "gpu.txt", "--python", folder / "to")
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
        lambda *words: proof.fix(*words, **DEAD),
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


def chinese_user(proof: Proof, page: str, locale: str) -> Iterator[str]:
    """Be a user whose name is Chinese, with this code page, in whose home the environment is.

    Windows' "UTF-8 beta" makes 65001 the code page of the system. Wine's is that of its locale,
    and 65001 where that has none of its own, as Hindi's.
    """
    home = "C:\\users\\张三"
    profile = {name: f"{home}\\{rest}".rstrip("\\") for name, rest in PROFILE.items()}
    folder = proof.wine.folder / "prefix" / "drive_c" / "users" / "张三" / ".venv"
    locales = proof.work / "locales"
    locales.mkdir(exist_ok=True)
    made = str(locales / f"{locale}.UTF-8")
    subprocess.run(["localedef", "-i", locale, "-f", "UTF-8", made], check=True)
    chinese = {"LC_ALL": f"{locale}.UTF-8", "LOCPATH": str(locales)}
    if locale != "zh_CN":
        chinese["ORTGPU_FIX_LANG"] = "zh"

    def fix(*words: str | Path) -> Ended:
        started = ("-c", AS, json.dumps(profile), proof.program, *words)
        return proof.wine.run(proof.wine.python, *started, environ=DEAD | chinese)

    asked = ("-c", "import ctypes; print(ctypes.windll.kernel32.GetACP())")
    if text(proof.wine.run(proof.wine.python, *asked, environ=chinese)).strip() != page:
        yield f"this Wine has no code page {page}"
    remove(folder)
    proof.wine.venv(folder, NUMPY)
    plan = fix("--python", f"{home}\\.venv", *MACHINE)
    said = plan.stdout.decode(f"cp{page}", errors="replace")
    if plan.returncode != 1 or "环境" not in said or "\ufffd" in said or "张三\\.venv" not in said:
        yield f"plan: exit {plan.returncode}, {said[-600:]}"
    yield from mended(proof, f"{home}\\.venv", folder, fix)
    facts = fix("facts", "--python", f"{home}\\.venv").stdout.decode("utf-8", errors="replace")
    if "张三" in facts:
        yield "the facts name the user"


def user_site(proof: Proof) -> Iterator[str]:
    """Tell what the user's site does to a Python, and not to a venv of it."""
    appdata = "C:\\users\\somebody\\AppData\\Roaming"
    profile = {"APPDATA": appdata, "USERPROFILE": "C:\\users\\somebody"}
    tag = proof.wine.version.replace(".", "")
    site = f"{appdata}\\Python\\Python{tag}\\site-packages"
    words = ["pip", "install", "-q", "--no-config", "--link-mode", "copy", "--python"]
    words += [windows(proof.wine.python), "--target", site]
    proof.wine.must(proof.wine.uv, *words, NUMPY, CPU_BUILD)
    plan = json.loads(
        in_profile(proof, profile, "--json", "--python", proof.wine.python, *MACHINE).stdout
    )
    found = [row["code"] for row in plan["findings"] if "AppData" in row["summary"]]
    venv = proof.work / "below"
    remove(venv)
    proof.wine.venv(venv, NUMPY)
    below = json.loads(in_profile(proof, profile, "--json", "--python", venv, *MACHINE).stdout)
    named = [row["code"] for row in below["findings"] if "AppData" in row["summary"]]
    SEEN["user-site"] = {"seen": {"the Python": found, "a venv of it": named}}
    if found != ["onnxruntime-shadowed"] or named:
        yield f"{found}, in a venv {named}: {plan['findings']}"


def program_files(proof: Proof) -> Iterator[str]:
    """Meet a Python for all users where this one may not write, and be installed there itself."""
    files = proof.wine.folder / "prefix" / "drive_c" / "Program Files"
    base, program = files / "Python", files / "ortgpu-fix"
    remove(base)
    remove(program)
    shutil.copytree(proof.wine.python.parent, base)
    [wheel] = (ROOT / "dist").glob("*.whl")
    proof.wine.venv(program, wheel)
    venv = proof.work / "环境 of all"
    before = proof.prepared(venv)
    seen: dict[str, Any] = {}
    subprocess.run(["chattr", "-R", "+i", base, program], check=True)
    try:
        own = program / "Scripts" / "ortgpu-fix.exe"
        there = ("--json", "--python", base, *MACHINE)
        plan = json.loads(proof.wine.run(own, *there).stdout)
        seen["findings"] = [row["code"] for row in plan["findings"]]
        near = ("--offline", "--find-links", proof.wheels("13"))
        done = proof.wine.run(own, "--apply", "--yes", "--allow", "system", *there, *near)
        seen["apply"] = json.loads(done.stdout)["error"]["code"]
        if "user-environment" not in seen["findings"] or seen["apply"] != "user-environment":
            yield f"{seen}: {text(done)[-400:]}"
        apply = ("--apply", "--yes", "--json", "--python", venv, *MACHINE, *near)
        if (done := proof.wine.run(own, *apply)).returncode != 0:
            yield f"apply from there: {text(done)[-400:]}"
        yield from proof.finished(venv, before, MACHINE)
    finally:
        subprocess.run(["chattr", "-R", "-i", base, program], check=True)
        remove(base)
        remove(program)
    SEEN["a read-only Program Files"] = {"seen": seen}


def watched(proof: Proof) -> Iterator[str]:
    """Run a program that falls back to the CPU: alone, watched, and where it must have the GPU."""
    folder, model = proof.work / "环境 run", ROOT / "data" / "matmul.onnx"
    before = proof.prepared(folder)
    near = ("--python", folder, *MACHINE, "--offline", "--find-links", proof.wheels("13"))
    done = proof.fix("--apply", "--yes", "--json", *near)
    if done.returncode != 0:
        yield f"apply: {text(done)[-600:]}"
        return
    script = proof.work / "falls_back.py"
    script.write_text(FALLS_BACK)
    python = folder / "Scripts" / "python.exe"
    program = (python, script, model)
    run = ("run", "--python", folder)
    seen: dict[str, Any] = {}
    for name, done, code, said in (
        ("alone", proof.wine.run(*program, environ=QUIET), 0, "ran on"),
        ("run", proof.fix(*run, "--", *program, **QUIET), 0, "ran on"),
        (
            "run --require-gpu",
            proof.fix(*run, "--require-gpu", "--", *program, **QUIET),
            6,
            "CPU",
        ),
        (
            "ORTGPU_FIX_REQUIRE",
            proof.wine.run(*program, environ=QUIET | {"ORTGPU_FIX_REQUIRE": "cuda"}),
            1,
            "cannot use it (ORTGPU_FIX_REQUIRE=cuda)",
        ),
    ):
        seen[name] = done.returncode
        if done.returncode != code or said not in text(done):
            yield f"{name}: exit {done.returncode}, {text(done)[-600:]}"
    SEEN["run and ORTGPU_FIX_REQUIRE"] = {"seen": seen}
    yield from proof.finished(folder, before, MACHINE)


def timed(proof: Proof) -> Iterator[str]:
    """Time a model without a GPU, and write the page of it."""
    folder, page = proof.work / "环境 bench", proof.work / "page 报告.html"
    proof.prepared(folder)
    words = ("verify", ROOT / "data" / "conv.onnx", "--bench", "--json", "--report", page)
    done = proof.fix(*words, "--python", folder, **QUIET)
    document = json.loads(done.stdout)
    SEEN["verify MODEL --bench"] = {
        "seen": {"exit": done.returncode, "verdict": document.get("verdict")}
    }
    if done.returncode != 6 or not page.exists() or "</html>" not in page.read_text("utf-8"):  # noqa: PLR2004
        yield f"exit {done.returncode}: {text(done)[-600:]}"


def tensorrt_rtx(proof: Proof, cuda: str) -> Iterator[str]:
    """Plan NVIDIA's TensorRT-RTX plugin beside onnxruntime, apply, register it, and undo."""
    folder, seen = proof.work / "环境 rtx", dict[str, Any]()
    before = proof.prepared(folder, build=f"onnxruntime=={RELEASE}")
    python = folder / "Scripts" / "python.exe"
    machine = ("--driver", SETS[cuda][1], "--gpu", "8.9", "--provider", "tensorrt-rtx")
    there = ("--python", folder, *machine)
    plan = json.loads(proof.fix("--json", *there).stdout)
    seen["planned"] = [f"{row['name']} {row['version']}" for row in plan["install"]]
    if f"onnxruntime-ep-nv-tensorrt-rtx-cu{cuda}" not in str(seen) or plan["uninstall"]:
        yield f"plan: {seen}, {plan['uninstall']}"
    done = proof.fix("--apply", "--yes", "--json", *there)
    if done.returncode != 0:
        yield f"apply: {text(done)[-600:]}"
        return
    site = folder / "Lib" / "site-packages" / "onnxruntime_ep_nv_tensorrt_rtx"
    libraries = sorted(file.name for file in site.rglob("*.dll"))
    registered = proof.wine.run(python, "-c", REGISTERS, *libraries, environ=QUIET)
    said = registered.stdout.decode().splitlines()
    loaded = [line.split()[0] for line in said if line.endswith(" True")]
    if len(said) != 1 + len(libraries):
        yield f"registering: {text(registered)[-600:]}"
    seen |= {"said": without_paths(said[0]), "holds": libraries, "loaded": loaded}
    verified = proof.fix("verify", "--json", "--provider", "tensorrt-rtx", *there[:2])
    seen["verify"] = json.loads(verified.stdout)["verdict"]
    if seen["verify"] not in {"no-driver", "no-gpu"}:
        yield f"verify: {text(verified)[-600:]}"
    SEEN[f"TensorRT-RTX for CUDA {cuda}"] = {"seen": seen}
    yield from proof.finished(folder, before, machine)


def without_paths(line: str) -> str:
    """Return what was said, without where this ran."""
    return re.sub(r"\b[A-Z]:\\[^\"]*\\", "", line)


def manifests(proof: Proof) -> Iterator[str]:
    """Open a path of 300 characters with and without the manifest, and the setting off and on.

    Wine opens it each time: what the setting does to a program is not to be seen there. Which of
    the programs of Windows that work here declare it is. And Wine 8 has a buffer of 260 characters
    where Python asks for the real path of a file (GetFinalPathNameByHandleW), and fails.
    """
    build, folder = proof.work / "aware", proof.work / ("x" * 120) / ("y" * 120)
    for place in (build, folder):
        place.mkdir(parents=True, exist_ok=True)
    file = folder / ("z" * 60)
    file.touch()
    (build / "open.c").write_text(OPENS)
    (build / "aware.xml").write_text(AWARE)
    (build / "aware.rc").write_text('1 24 "aware.xml"\n')
    subprocess.run(["x86_64-w64-mingw32-windres", "aware.rc", "aware.o"], cwd=build, check=True)
    opened = {}
    for name, more in (("without", ()), ("with", ("aware.o",))):
        compiler = [COMPILER, "-municode", "-o", f"{name}.exe", "open.c", *more]
        subprocess.run(compiler, cwd=build, check=True)
        for on in "10":
            enable = ("/v", "LongPathsEnabled", "/t", "REG_DWORD", "/d", on)
            subprocess.run(
                ["wine", *LONG_PATHS, *enable],
                env=proof.wine.environ,
                check=True,
                capture_output=True,
            )
            done = proof.wine.run(build / f"{name}.exe", file)
            opened[f"{name} the manifest, LongPathsEnabled {on}"] = done.returncode == 0
    real = ("-c", "import os, sys; print(len(os.path.realpath(sys.argv[1], strict=True)))", file)
    resolved = text(proof.wine.run(proof.wine.python, *real)).strip().splitlines()[-1]
    programs = {"uv.exe": proof.wine.uv, "ortgpu-fix.exe": proof.program}
    declared = {name: is_aware(path) for name, path in programs.items()}
    seen = {"opened": opened, "declared": declared, "its real path": resolved.partition(":")[0]}
    SEEN["260 characters and the manifest"] = {"seen": seen}
    if not is_aware(build / "with.exe") or is_aware(build / "without.exe"):
        yield "the manifests are not as they must be"


def is_aware(program: Path) -> bool:
    """Tell whether the manifest of a program says that it may use long paths."""
    read = pefile.PE(str(program))
    return any(
        re.search(
            rb"longPathAware[^>]*>\s*true",
            read.get_data(leaf.data.struct.OffsetToData, leaf.data.struct.Size),
        )
        for kind in (
            read.DIRECTORY_ENTRY_RESOURCE.entries
            if hasattr(read, "DIRECTORY_ENTRY_RESOURCE")
            else ()
        )
        if kind.id == pefile.RESOURCE_TYPE["RT_MANIFEST"]
        for entry in kind.directory.entries
        for leaf in entry.directory.entries
    )


def check_list(proof: Proof) -> Iterator[str]:
    """Do what the check list for people does; what it wrote stays in the folder `check`."""
    folder = proof.work / "check"
    folder.mkdir(exist_ok=True)
    [wheel] = (ROOT / "dist").glob("*.whl")
    words = ("-X", "utf8", ROOT / "scripts" / "windows_check.py", "--program", wheel)
    near = ("--find-links", proof.wheels("13"))
    done = proof.wine.run(proof.wine.python, *words, *near, cwd=folder, seconds=2400)
    if done.returncode != 0:
        yield text(done)[-1500:]
        return
    left = [path.name for path in (folder / "ortgpu-fix-check").iterdir()]
    if left != ["check.json"]:
        yield f"left: {left}"
    rows = json.loads((folder / "ortgpu-fix-check" / "check.json").read_text("utf-8"))["steps"]
    SEEN["the check list"] = {"seen": {row["name"]: row["outcome"] for row in rows}}


def consoles(proof: Proof) -> Iterator[str]:
    """Apply in two consoles at once: one does it, the other one names the first."""
    folder = proof.work / "环境 twice"
    before = proof.prepared(folder)
    near = ("--python", folder, *MACHINE, "--offline", "--find-links", proof.wheels("13"))
    words = ("--apply", "--yes", "--json", *near)
    started = [proof.wine.start(proof.program, *words) for _ in range(2)]
    ended = [one.communicate(timeout=600) for one in started]
    codes = [one.returncode for one in started]
    refused = [json.loads(out) for (out, _), code in zip(ended, codes, strict=True) if code]
    if sorted(codes) != [0, 2] or refused[0]["error"]["code"] != "environment-locked":
        yield f"exit {codes}: {[str(one)[:400] for one in ended]}"
    yield from proof.finished(folder, before, MACHINE)


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
        first = proof.fix("cache", "purge")
        user.communicate(b"")
    if first.returncode != 0 or "could not be removed" not in text(first):
        yield f"while in use: exit {first.returncode}, {text(first)[-400:]}"
    again = proof.fix("cache", "purge")
    left = json.loads(proof.fix("cache", "info", "--json").stdout)["bytes"]
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
            done = proof.fix("explain", copy, "--text-only", "--json")
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
    "a Chinese user name in cp936": partial(chinese_user, page="936", locale="zh_CN"),
    "a Chinese user name in UTF-8": partial(chinese_user, page="65001", locale="hi_IN"),
    "two consoles at once": consoles,
    "cache purge while in use": purged,
    "explain UTF-16": utf16,
    "user-site": user_site,
    "a read-only Program Files": program_files,
    "run and ORTGPU_FIX_REQUIRE": watched,
    "verify MODEL --bench": timed,
    "260 characters and the manifest": manifests,
    "the check list": check_list,
    "cuBLAS 13.8.0.4 with cuDNN 9.26.0.51": pairs,
    "TensorRT-RTX for CUDA 12": partial(tensorrt_rtx, cuda="12"),
    "TensorRT-RTX for CUDA 13": partial(tensorrt_rtx, cuda="13"),
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
    cases = {name: partial(run, proof) for name, run in EDGES.items()}
    return prove("windows-edges", proof.wine, cases, options.only, SEEN)


if __name__ == "__main__":
    sys.exit(main())
