"""The command line on Windows, with the real wheels: a Windows Python under Wine.

    python scripts/prove/windows.py --work DIR [--only TEXT] [--kills 20] [--keep]

Every state (the CPU build, both builds, a folder that lost its files) is mended for CUDA 12, and
one each for CUDA 11 and 13, in a folder whose path has spaces and Chinese characters: `--apply`
from a folder of wheels that `download` filled, `--check`, a script that knows nothing of all this,
and `undo`, after which every file must be what it was. What onnxruntime tells the script proves how
far it came: without a driver CUDA 12 ends with failure 35 or 100 and CUDA 13 with 801, which a
provider that was not loaded cannot say; the providers of 1.18.1 and 1.20.2 throw while Windows
loads them (error 3765269347, a C++ exception), where a missing library is error 126. That the
libraries' companion is what makes the difference is shown by the same script without it; and that
its libraries are those of the environment, by a toolkit in PATH and CUDA_PATH with empty ones.
Every library of the set of `--prefer small` is opened in the process of the provider: Wine tells of
each function that one wants of another and does not find, which is shown with an empty cuFFT.

The reports of Windows machines (`tests/captures`) are mended likewise, each in an environment as
its owner had it, and planned and explained on streams in cp936, cp1252, cp437 and UTF-8. Besides:
stand-ins for the driver's libraries, which are read, and leave the verification with the want of a
GPU alone to tell; Ctrl-C in a console, while a model is measured and while uv writes; an
environment with files whose paths Windows does not allow, and does once long paths are on; the
program in the environment that it mends, where a program has the old libraries loaded. `--kills`
runs `windows_rounds.py`.

Needs Linux, Wine, mingw-w64, a package index and 20 GB below DIR. The dated result goes to
scripts/prove/results; the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.standin_wheels import without_notes
from support.torch_index import make_torch
from support.windows_python import WindowsPython, compile_dll, make, prove, windows

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "tests" / "captures"
STATES = ("cpu", "both", "gutted")
SETS = {
    "11": ("1.18.1", "522.06", r"LoadLibrary failed with error 3765269347"),
    "12": ("1.26.0", "576.02", r"CUDA failure (35|100):"),
    "13": ("1.31.1", "581.29", r"CUDA failure 801:"),
    "12 early": ("1.20.2", "551.61", r"LoadLibrary failed with error 3765269347"),
}
"""onnxruntime-gpu, driver, and what onnxruntime says once its provider was loaded, by CUDA."""
LIBRARIES = {cuda: f"every library, CUDA {cuda}" for cuda in SETS}
INTERRUPTED, PATIENCE = 130, 20.0
"""The exit code of a command that Ctrl-C ended, and the seconds that it may take."""
NOT_LOADED = re.compile(r"which is missing|error 126")
GPU = "8.6"
NUMPY = "numpy==1.26.4"
"""Wine 8 lacks a function that numpy 2 calls."""
CPU_BUILD = "onnxruntime==1.22.1"
SCRIPT = """
import sys
if "--without" in sys.argv:
    sys.meta_path[:] = [one for one in sys.meta_path if "ortgpu" not in type(one).__module__]
import onnxruntime
try:
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
    print("ran on", session.get_providers())
except Exception as error:
    print(error)
"""
PRESS = """
import ctypes, json, os, subprocess, sys, time
sign, *words = sys.argv[1:]
console = {"creationflags": subprocess.CREATE_NO_WINDOW, "stdin": subprocess.DEVNULL}
tool = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **console)
said = b""
while os.path.isabs(sign) and not os.path.exists(sign) and tool.poll() is None:
    time.sleep(0.02)
while not os.path.isabs(sign) and sign.encode() not in said and tool.poll() is None:
    said += tool.stdout.readline()
time.sleep(0.1)
kernel = ctypes.WinDLL("kernel32")
kernel.FreeConsole(), kernel.AttachConsole(tool.pid), kernel.SetConsoleCtrlHandler(None, 1)
pressed, began = kernel.GenerateConsoleCtrlEvent(0, 0), time.monotonic()
tool.wait(300), kernel.FreeConsole()  # which holds the pipe, too
said += tool.communicate(timeout=60)[0]
seconds = round(time.monotonic() - began, 1)
print(json.dumps([pressed, tool.returncode, seconds, said.decode(errors="replace")]))
"""
"""Presses Ctrl-C in the console of a program, when a file is there or a line was said."""
OPEN = """
import ctypes, pathlib, sys, onnxruntime
try:
    onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
except Exception as error:
    print(error)
for path in sorted(pathlib.Path(sys.prefix).glob("Lib/site-packages/nvidia/**/*.dll")):
    if "32_" in path.name:  # for programs of 32 bits
        continue
    try:
        ctypes.WinDLL(str(path))
    except OSError as error:
        print("not loaded:", path.name, error)
    else:
        print("opened:", path.name)
"""
UNBOUND = re.compile(r"No implementation for (\S+) imported from L\"[^\"]*?([^\\\"]+)\"")
"""What Wine says, when it is asked for all of it, of a function that a library lacks."""
HOLD = """
import sys, onnxruntime
print(onnxruntime.__version__, flush=True)
sys.stdin.read()
"""
LONG_PATHS = ("reg", "add", r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem", "/f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One environment to mend."""

    cuda: str
    state: str

    @property
    def name(self) -> str:
        """For people."""
        return f"CUDA {self.cuda}, {self.state}"


CASES = (
    *(Case(cuda="12", state=state) for state in STATES),
    Case(cuda="11", state="gutted"),
    Case(cuda="12 early", state="cpu"),
    Case(cuda="13", state="both"),
)
CONSOLES = (
    "console cp936, zh",
    "console cp936, en",
    "console cp1252, zh",
    "console cp437, en",
    "console utf-8, zh",
)
MACHINES = {
    "windows-rtx3060-576-cpu-build": ((CPU_BUILD,), "1.26.0", None),
    "windows-rtx3070-522-torch": (("onnxruntime-gpu==1.16.3",), "1.16.3", "2.0.1+cu118"),
}
"""Reports of Windows machines: what is installed, what is right for Python 3.11, and the torch.

The second had 1.16.1, which the index does not have any more. Its torch is installed before, and
must stay. PyPI has no torch for CUDA on Windows: that is a small stand-in, from an index of the
shape of PyTorch's. One that brings CUDA's DLLs is tried by windows_torch.py.
"""
TORCH_WHEEL = "cp311-cp311-win_amd64"
LOGS = ("cuda-12-libraries-missing--ort*", "zlibwapi*", "torch-without-this-gpu*")
KILLS = "kills"
DEEP = 170
"""Characters of the path of an environment whose files have paths of more than 260."""
OTHERS = {
    "a driver": "driver",
    "ctrl-c": "interrupted",
    "long paths": "long_paths",
    "the program inside": "inside",
}
"""Methods of `Proof` by the name of their case."""


class Proof:
    """Wine, the program in two environments, and the wheels."""

    def __init__(self, work: Path) -> None:
        """Make what is not there yet."""
        self.work = work
        self.wine: WindowsPython = make(work / "windows")
        self.script = work / "unchanged.py"
        self.script.write_text(SCRIPT)
        self.program = self._program()

    def _program(self) -> Path:
        folder = self.work / "tool"
        [wheel] = (ROOT / "dist").glob("*.whl")
        program = folder / "Scripts" / "ortgpu-fix.exe"
        if program.exists() and program.stat().st_mtime > wheel.stat().st_mtime:
            return program
        shutil.rmtree(folder, ignore_errors=True)
        self.wine.venv(folder, wheel)
        return program

    def fix(self, *words: str | Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
        """Run the program."""
        return self.wine.run(self.program, *words, environ=environ)

    def wheels(self, cuda: str) -> Path:
        """Return the folder of wheels for a CUDA major, downloaded by the program itself."""
        release, driver, _ = SETS[cuda]
        folder = self.work / f"wheels-{cuda}"
        if not any(folder.glob("onnxruntime_gpu-*")):
            bare = self.wine.venv(self.work / "bare", NUMPY)
            words: list[str | Path] = [
                "download",
                "-d",
                folder,
                "--python",
                bare,
                "--yes",
                "--ort",
                f"=={release}",
            ]
            done = self.fix(*words, "--driver", driver, "--gpu", GPU)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.decode(errors="replace"))
        return folder

    def environment(self, case: Case) -> Path:
        """Make the environment of a case, and return its folder."""
        release, folder = SETS[case.cuda][0], self.work / "环境 with spaces"
        remove(folder)
        python = self.wine.venv(folder, NUMPY, CPU_BUILD)
        words: list[str | Path] = ["pip", "install", "--quiet", "--no-config", "--python", python]
        words += ["--link-mode", "copy"]
        if case.state != "cpu":
            links: list[str | Path] = [
                "--offline",
                "--no-index",
                "--find-links",
                self.wheels(case.cuda),
                "--no-deps",
            ]
            self.wine.must(self.wine.uv, *words, *links, f"onnxruntime-gpu=={release}")
            self.wine.must(self.wine.uv, *words, "--reinstall", "--no-deps", CPU_BUILD)
        if case.state == "gutted":
            self.wine.must(
                self.wine.uv, "pip", "uninstall", "--quiet", "--python", python, "onnxruntime"
            )
        (folder / ".lock").unlink(missing_ok=True)
        return folder

    def run(self, case: Case) -> Iterator[str]:
        """Mend, look, undo; give what is not as it must be."""
        release, driver, loaded = SETS[case.cuda]
        wheels, folder = self.wheels(case.cuda), self.environment(case)
        before = without_notes(folder)
        machine: list[str | Path] = [
            "--python",
            folder,
            "--driver",
            driver,
            "--gpu",
            GPU,
            "--ort",
            f"=={release}",
        ]
        links: list[str | Path] = ["--offline", "--find-links", wheels]
        done = self.fix("--apply", "--yes", "--json", *machine, *links)
        document = json.loads(done.stdout)
        if done.returncode != 0:
            yield f"apply: exit {done.returncode}, {document.get('error') or document}"
            return
        yield from _expect("check", self.fix("--check", *machine).returncode, 0)
        python = folder / "Scripts" / "python.exe"
        model = ROOT / "data" / "matmul.onnx"
        quiet = {"PYTHONDONTWRITEBYTECODE": "1"}  # what a program leaves is not undo's
        verified = self.fix("verify", "--json", "--python", folder)
        if json.loads(verified.stdout)["verdict"] != "no-driver":
            yield f"verify: {text(verified)[:400]}"
        said = text(self.wine.run(python, self.script, model, environ=quiet))
        if not re.search(loaded, said):
            yield f"an unchanged script: {said[-400:]}"
        toolkit = quiet | self.toolkit(folder)
        said = text(self.wine.run(python, self.script, model, environ=toolkit))
        if not re.search(loaded, said):
            yield f"beside a toolkit: {said[-400:]}"
        without = text(self.wine.run(python, self.script, model, "--without", environ=quiet))
        if not NOT_LOADED.search(without):
            yield f"without the companion: {without[-400:]}"
        undone = self.fix("undo", "--yes", "--python", folder)
        yield from _expect("undo", undone.returncode, 0)
        after = without_notes(folder)
        other = [
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        ]
        if other:
            yield f"after undo: {sorted(other)[:6]}"

    def libraries(self, cuda: str, about: dict[str, Any]) -> Iterator[str]:
        """Open every library of the small set; say in `about` how many there are."""
        release, driver, loaded = SETS[cuda]
        folder = self.work / "环境 with spaces"
        self.prepared(folder)
        machine = ["--driver", driver, "--gpu", GPU, "--ort", f"=={release}", "--prefer", "small"]
        near: list[str | Path] = ["--python", folder, "--find-links", self.wheels(cuda)]
        done = self.fix("--apply", "--yes", "--json", *machine, *near)
        yield from _expect(f"apply: {text(done)[-400:]}", done.returncode, 0)
        every = sorted(folder.glob("Lib/site-packages/nvidia/**/*.dll"))
        there = [library for library in every if "32_" not in library.name]
        about["libraries"] = len(there)
        said, lacking = self.opened(folder)
        yield from lacking
        if not re.search(loaded, said) or said.count("opened: ") != len(there):
            yield said[-400:]
        fft = next(library for library in there if library.name.startswith("cufft64_"))
        self.toolkit(folder)  # compiles one that has nothing in it
        shutil.copy(self.work / "empty.dll", fft)
        _, lacking = self.opened(folder)
        if not any(one.startswith(f"{fft.name}.cufft") for one in lacking):
            yield f"nobody missed what {fft.name} lacks"

    def opened(self, environment: Path) -> tuple[str, list[str]]:
        """Open the provider, then every library; return what was said, and what is not bound."""
        python, model = environment / "Scripts" / "python.exe", ROOT / "data" / "matmul.onnx"
        done = self.wine.run(python, "-c", OPEN, model, environ={"WINEDEBUG": "warn+module"})
        said = text(done)
        unbound = [f"{symbol}, which {name} wants" for symbol, name in UNBOUND.findall(said)]
        return said, unbound

    def toolkit(self, environment: Path) -> dict[str, str]:
        """Make a CUDA toolkit whose libraries have nothing in them; return what names it."""
        folder, source = self.work / "toolkit" / "bin", self.work / "empty.c"
        remove(folder)
        folder.mkdir(parents=True)
        source.write_text(
            "int DllMain(void *a, unsigned b, void *c) { (void)a, (void)c; return !!b | 1; }"
        )
        compile_dll(source, self.work / "empty.dll")
        for library in environment.glob("Lib/site-packages/nvidia/**/bin/**/*.dll"):
            shutil.copy(self.work / "empty.dll", folder / library.name)
        return {"CUDA_PATH": windows(folder.parent), "WINEPATH": windows(folder)}

    def machine(self, name: str) -> Iterator[str]:
        """Apply what is right for a recorded machine to an environment as its owner had it."""
        had, release, torch = MACHINES[name]
        folder, facts = self.work / "环境 with spaces", CAPTURES / name / "facts.json"
        remove(folder)
        served = self.work / "torch"
        served.mkdir(exist_ok=True)
        wheels = [make_torch(served, "torch", torch, tag=TORCH_WHEEL)] if torch else []
        python = self.wine.venv(folder, NUMPY, *had, *wheels)
        (folder / ".lock").unlink(missing_ok=True)
        before = without_notes(folder)
        there: list[str | Path] = ["--python", folder, "--facts", facts]
        near: list[str | Path] = ["--find-links", self.wheels("11" if torch else "12")]
        done = self.fix("--apply", "--yes", "--json", *there, *near)
        document = json.loads(done.stdout)
        if done.returncode != 0:
            yield f"apply: exit {done.returncode}, {document.get('error') or document}"
            return
        taken = {row["name"]: row["version"] for row in document["selection"]["packages"]}
        if (taken["onnxruntime-gpu"], taken.get("torch")) != (release, torch):
            yield f"another set: {taken}"
        yield from _expect("check", self.fix("--check", *there).returncode, 0)
        model = ROOT / "data" / "matmul.onnx"
        quiet = {"PYTHONDONTWRITEBYTECODE": "1"}
        said = text(self.wine.run(python, self.script, model, environ=quiet))
        without = text(self.wine.run(python, self.script, model, "--without", environ=quiet))
        if NOT_LOADED.search(said) or not NOT_LOADED.search(without):
            yield f"an unchanged script: {said[-300:]}; without the companion: {without[-300:]}"
        yield from _expect("undo", self.fix("undo", "--yes", "--python", folder).returncode, 0)
        if without_notes(folder) != before:
            yield "after undo: not as it was"

    def console(self, name: str) -> Iterator[str]:
        """Print a plan and an explanation into a pipe of this code page; give what was lost."""
        page, tongue = name.removeprefix("console ").split(", ")
        environ = {"PYTHONIOENCODING": page, "ORTGPU_FIX_LANG": tongue}
        for capture in sorted(CAPTURES.glob("windows-*")):
            if not (capture / "facts.json").read_text("utf-8").isascii():
                continue  # what of it is lost in a page is the owner's own path
            plan = self.fix("--facts", capture / "facts.json", **environ)
            if plan.returncode not in {0, 1, 3}:
                yield f"{capture.name}: exit {plan.returncode}"
            yield from _lost(capture.name, plan.stdout, page, tongue)
            document = self.fix("--facts", capture / "facts.json", "--json", **environ)
            json.loads(document.stdout)
        logs = ROOT / "tests" / "cases" / "logs"
        for log in (min(logs.rglob(kind)) for kind in LOGS):
            told = self.fix("explain", log, **environ)
            yield from _expect(log.name, told.returncode, 0)
            yield from _lost(log.name, told.stdout, page, tongue)

    def prepared(
        self, folder: Path, *more: str | Path, build: str = CPU_BUILD, pip: bool = False
    ) -> dict[str, str]:
        """Make an environment with the CPU build, and return the digests of its files."""
        remove(folder)
        self.wine.venv(folder, NUMPY, build, *more, pip=pip)
        (folder / ".lock").unlink(missing_ok=True)
        return without_notes(folder)

    def near(self, folder: Path) -> list[str | Path]:
        """Return the flags that install CUDA 12's wheels into `folder` for its machine."""
        release, driver, _ = SETS["12"]
        there: list[str | Path] = ["--python", folder, "--driver", driver, "--gpu", GPU]
        return [*there, "--ort", f"=={release}", "--offline", "--find-links", self.wheels("12")]

    def driver(self) -> Iterator[str]:
        """Mend for the machine itself, whose driver is there and has no GPU; all is put back."""
        folder, answers = self.work / "环境 with spaces", self.work / "driver.txt"
        environ = {"ORTGPU_STUB": windows(answers), "PYTHONDONTWRITEBYTECODE": "1"}
        self.wine.install_driver()
        for cuda, speaks in (("12", "12090"), ("13", "13000")):
            release, driver, _ = SETS[cuda]
            gpu = "gpu NVIDIA GeForce RTX 3060|8|6|12884901888|"
            answers.write_text(f"release {driver}\ncuda {speaks}\ncu_init 100\n{gpu}\n")
            before = self.prepared(folder)
            facts = json.loads(self.fix("facts", "--python", folder, **environ).stdout)
            seen = (
                facts["driver"]["version"],
                [one["compute_capability"] for one in facts["gpus"]],
            )
            if seen != (driver, [GPU]):
                yield f"facts: {facts}"
            links: list[str | Path] = ["--offline", "--find-links", self.wheels(cuda)]
            words: list[str | Path] = ["--python", folder, "--ort", f"=={release}", *links]
            done = self.fix("--apply", "--yes", "--json", *words, **environ)
            yield from _expect(f"apply: {text(done)[-400:]}", done.returncode, 4)
            if "All libraries load and the driver responds" not in text(done):
                yield f"verification: {text(done)[-400:]}"
            if without_notes(folder) != before:
                yield "not as it was"
        self.wine.remove_driver()

    def interrupted(self) -> Iterator[str]:
        """Press Ctrl-C while a model is measured, and while uv writes."""
        folder = self.work / "环境 with spaces"
        before = self.prepared(folder)
        lock = folder / "Lib" / "site-packages" / ".ortgpu-fix" / "engine.lock"
        bench = ["verify", "--bench", ROOT / "data" / "conv.onnx", "--python", folder]
        apply = ["--apply", "--yes", "--json", *self.near(folder)]
        for words, sign in ((bench, "Running the model"), (apply, lock)):
            told = self.wine.must(
                self.wine.python, "-X", "utf8", "-c", PRESS, sign, self.program, *words
            )
            pressed, exit_code, seconds, said = json.loads(told)
            what = f"{sign}, pressed {pressed}, {said[-300:]}"
            yield from _expect(what, exit_code, INTERRUPTED)
            if seconds > PATIENCE:
                yield f"{sign}: {seconds} s"
            if without_notes(folder) != before:
                yield f"{sign}: not as it was"

    def long_paths(self) -> Iterator[str]:
        """Refuse paths of more than 260 characters, and use them where Windows allows them."""
        name = ("long path " * 30)[: DEEP - len(windows(self.work))]
        parts = (name[at : at + 40].strip() for at in range(0, len(name), 40))
        folder = self.work.joinpath(*parts)
        before = self.prepared(folder)
        apply = ["--apply", "--yes", "--json", *self.near(folder)]
        for allowed, code in (("0", 2), ("1", 0)):
            enable = ("/v", "LongPathsEnabled", "/t", "REG_DWORD", "/d", allowed)
            words = ["wine", *LONG_PATHS, *enable]
            subprocess.run(words, env=self.wine.environ, check=True, capture_output=True)
            done = self.fix(*apply)
            yield from _expect(text(done)[-400:], done.returncode, code)
            if allowed == "0":
                if json.loads(done.stdout)["error"]["code"] != "path-too-long":
                    yield text(done)[-400:]
                if without_notes(folder) != before:
                    yield "refused, and not as it was"
        longest = max(len(windows(path)) for path in folder.rglob("*"))
        if longest < 260:  # noqa: PLR2004 - Windows' number
            yield f"no long path: {longest}"
        release, driver, _ = SETS["12"]
        machine = ("--driver", driver, "--gpu", GPU, "--ort", f"=={release}")
        yield from self.finished(folder, before, machine)

    def inside(self) -> Iterator[str]:
        """Mend the environment that the program is installed in, while its libraries are used."""
        folder = self.work / "环境 with spaces"
        [wheel] = (ROOT / "dist").glob("*.whl")
        before = self.prepared(folder, wheel, pip=True)
        python = folder / "Scripts" / "python.exe"
        words = ["wine", str(python), "-c", HOLD]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(words, env=self.wine.environ, **pipes) as user:
            if user.stdout is not None:  # a pipe
                user.stdout.readline()
            program = folder / "Scripts" / "ortgpu-fix.exe"
            done = self.wine.run(program, "--apply", "--yes", *self.near(folder))
            yield from _expect(f"apply: {text(done)[-400:]}", done.returncode, 0)
            if b"python.exe (" not in done.stderr:
                yield f"who uses the libraries was not named: {text(done)[-400:]}"
            user.communicate()
        undo = ("undo", "--yes", "--python", folder)
        yield from _expect("undo", self.wine.run(program, *undo).returncode, 0)
        after = {path: what for path, what in without_notes(folder).items() if path in before}
        if after != before:
            yield "after undo: not as it was"

    def finished(
        self, folder: Path, before: dict[str, str], machine: Sequence[str]
    ) -> Iterator[str]:
        """Look whether `folder` is right for this machine, and put it back."""
        checked = self.fix("--check", *machine, "--python", folder)
        yield from _expect("check", checked.returncode, 0)
        undone = self.fix("undo", "--yes", "--python", folder)
        yield from _expect("undo", undone.returncode, 0)
        if without_notes(folder) != before:
            yield "after undo: not as it was"

    def kills(self, count: int) -> Iterator[str]:
        """Run the rounds of kills on stand-in wheels."""
        rounds = Path(__file__).with_name("windows_rounds.py")
        python = self.program.with_name("python.exe")
        words: list[str | Path] = [
            "-X",
            "utf8",
            rounds,
            "--count",
            str(count),
        ]
        done = self.wine.run(python, *words, self.work / "rounds", seconds=7200)
        for line in done.stdout.decode(errors="replace").splitlines():
            row = json.loads(line)
            print(f"  {line}", flush=True)
            yield from (f"round {row['round']}: {problem}" for problem in row.get("problems", []))
        if done.returncode != 0:
            yield f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}"


def text(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return all that a program said; old releases log in UTF-16 under Wine."""
    return (done.stdout + done.stderr).replace(b"\0", b"").decode(errors="replace")


def remove(folder: Path) -> None:
    """Remove a folder, read-only files included."""
    for path in folder.rglob("*") if folder.exists() else ():
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IWRITE)
    shutil.rmtree(folder, ignore_errors=True)


def _expect(what: str, found: int, wanted: int) -> Iterator[str]:
    if found != wanted:
        yield f"{what}: exit {found}"


def _lost(what: str, said: bytes, page: str, tongue: str) -> Iterator[str]:
    shown = said.decode(page, errors="strict")
    chinese = bool(re.search(r"[\u4e00-\u9fff]", shown))
    if chinese != (tongue == "zh" and page in {"cp936", "utf-8"}):
        yield f"{what}: {'Chinese' if chinese else 'no Chinese'} in {page}"
    if re.search(r"\\u[0-9a-f]{4}|(?<= )\?(?= )", shown):
        yield f"{what}: characters were lost in {page}"


def main() -> int:
    """Run the cases and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", help="the cases that have this in their name")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    work = options.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    proof = Proof(work)
    counts: dict[str, dict[str, Any]] = {name: {} for name in LIBRARIES.values()}
    runs: dict[str, Callable[[], Iterator[str]]] = {
        **{case.name: partial(proof.run, case) for case in CASES},
        **{name: partial(proof.machine, name) for name in MACHINES},
        **{name: partial(proof.libraries, cuda, counts[name]) for cuda, name in LIBRARIES.items()},
        **{name: partial(proof.console, name) for name in CONSOLES},
        **{name: getattr(proof, method) for name, method in OTHERS.items()},
        KILLS: partial(proof.kills, options.kills),
    }
    about = counts | {KILLS: {"count": options.kills}}
    return prove("windows", proof.wine, runs, options.only, about)


if __name__ == "__main__":
    sys.exit(main())
