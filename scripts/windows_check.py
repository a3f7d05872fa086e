"""A check list for a person with Windows: what ortgpu-fix does there, written down in one JSON.

    powershell -ExecutionPolicy Bypass -File windows_check.ps1      (or: py windows_check.py)

Two files, this one and the one that starts it. It takes about ten minutes, 3 GB of downloads and 8
GB of disk, needs no administrator, and changes one folder alone, `ortgpu-fix-check` where it is
started (and one of that name in OneDrive's, where there is one). Of that folder `check.json` is
left; it holds no name and no path of yours: look through it, and send it. The exit code is 1 where
something is not as it must be. `scripts/record_machine.py` makes a recorded machine of it.

The program is the clone that this file lies in or else that of the index; its environment has uv.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import hashlib
import importlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = "ortgpu-fix-check"
OWN = "C:\\ortgpu-fix-check"
PYTHON = "C:\\Python"
"""What stands for the folder of the check and for that of the Python that made it."""
MACHINE = ("--driver", "581.29", "--gpu", "8.6")
"""Planned for where this machine has no GPU that a plan would serve."""
BUILDS = ("onnxruntime==1.22.1; python_version < '3.14'", "onnxruntime; python_version >= '3.14'")
"""The CPU build, with a release of each Python."""
STATE, KEPT = ".ortgpu-fix", ("uv_cache.json",)
NOT_LOADED = re.compile(r"which is missing|error 126")
SAID = re.compile(r"ran on \[.*?\]|CUDA failure \d+|error \d+")
SCRIPT = """
import sys, onnxruntime
try:
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
    print("ran on", session.get_providers())
except Exception as error:
    print(error)
"""
MODEL = "import ortgpu_fix.data as d, os; print(os.path.join(list(d.__path__)[0], 'matmul.onnx'))"
HOLD = "import sys, onnxruntime; print(1, flush=True); sys.stdin.read()"
SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"
PASTED = """
import json, sys
from ortgpu_fix.messages.shells import pasted_commands
print(json.dumps([pasted_commands(words, "windows") for words in json.load(sys.stdin)]))
"""
TYPED = (
    ("--ort", "<1.26", "--apply"),
    ("--ort", ">=1.19,!=1.20", "--cuda", "12"),
    ("--python", "C:\\a b\\", "--facts", "Z:\\R&D (x86)\\it's, a^b; @c!.json"),
    ("--python", "C:\\$HOME\\`a", "--ort", "~=1.26"),
)
NOT_IN_WINE = (("--python", "C:\\%PATH%\\x"),)
"""Wine's cmd takes `^` away before it looks for variables, where Windows' looks first."""


class WrongError(Exception):
    """What is not as it must be."""


class NotHereError(Exception):
    """Why this machine cannot show it."""


class Checked:
    """The folder of the check, and what is known so far."""

    def __init__(self, folder: Path, program: str, wheels: Path | None) -> None:
        self.folder = folder
        self.program = program
        self.wheels = wheels
        self.tool = folder / "tool" / "Scripts" / "python.exe"
        self.env = folder / "环境 env"
        self.python = self.env / "Scripts" / "python.exe"
        self.machine: tuple[str, ...] = ()
        self.before: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        here = {name: str(folder / name) for name in ("LOCALAPPDATA", "UV_CACHE_DIR", "TEMP")}
        here |= {"TMP": here["TEMP"], "PIP_CACHE_DIR": str(folder / "pip"), "PYTHONUTF8": "1"}
        Path(here["TEMP"]).mkdir(parents=True, exist_ok=True)
        self.environ = {**os.environ, **here, "PYTHONDONTWRITEBYTECODE": "1"}
        self.environ["ORTGPU_FIX_LANG"] = "en"
        self.environ.pop("VIRTUAL_ENV", None)

    def run(self, *words: str | Path, text_in: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            list(map(str, words)),
            input=text_in,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=self.environ,
            cwd=self.folder,
            timeout=1800,
            check=False,
        )

    def must(self, code: int, *words: str | Path, text_in: str = "") -> str:
        """Run a program that must end so, and return what it said."""
        done = self.run(*words, text_in=text_in)
        if done.returncode != code:
            raise WrongError(f"exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
        return done.stdout

    def fix(self, *words: str | Path) -> tuple[str | Path, ...]:
        """Return the command line of ortgpu-fix with these words."""
        return (self.tool, "-m", "ortgpu_fix", *words)

    def applied(self, env: Path | None = None) -> tuple[str | Path, ...]:
        """Return the command line of an apply that needs no network."""
        near = ("--offline", "--find-links", self.wheels or self.folder / "wheels")
        words = ("--apply", "--yes", "--python", env or self.env)
        return self.fix(*words, *self.machine, *near)

    def same(self) -> None:
        """Raise WrongError where the environment is not as it was."""
        after = digests(self.env)
        other = {
            path for path in self.before.keys() | after if self.before.get(path) != after.get(path)
        }
        if other:
            raise WrongError(f"{len(other)} files are not as they were: {sorted(other)[:4]}")


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of each file, without the program's own and what is written at each run."""
    found: dict[str, str] = {}
    for inner, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != STATE]
        for path in (Path(inner, name) for name in names if name not in KEPT):
            noted = path.name.endswith((".pyc", "RECORD"))
            what = "" if noted else hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder))] = what
    return found


def environments(check: Checked) -> dict[str, Any]:
    """Make an environment for the program, and one with the CPU build that it mends."""
    for place in (check.tool.parents[1], check.env):
        check.must(0, sys.executable, "-m", "venv", place)
    install = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
    check.must(0, check.tool, *install, check.program, "uv")
    old = ["numpy<2"] if wine() else []  # numpy 2 asks for functions that Wine 8 lacks
    check.must(0, check.python, *install, *BUILDS, *old)
    check.before = digests(check.env)
    check.facts = json.loads(check.must(0, *check.fix("facts", "--python", check.env)))
    return {"program": check.must(0, *check.fix("--version")).split()[-1]}


def planned(check: Checked) -> dict[str, Any]:
    """Plan for this machine, or for one with a GPU where this has none."""
    words = check.fix("plan", "--json", "--python", check.env)
    done = check.run(*words)
    if done.returncode != 1:
        check.machine = MACHINE
        done = check.run(*words, *MACHINE)
    plan = json.loads(done.stdout)
    if done.returncode != 1:
        raise WrongError(f"exit {done.returncode}, {plan.get('verdict')}: {plan.get('error')}")
    taken = {row["name"]: row["version"] for row in plan["selection"]["packages"]}
    served = " ".join(check.machine) or "this machine"
    return {"for": served, "cuda": plan["selection"]["cuda"], "release": taken["onnxruntime-gpu"]}


def downloaded(check: Checked) -> dict[str, Any]:
    """Fetch what the plan installs."""
    if check.wheels:
        raise NotHereError("the wheels were there")
    goal = check.folder / "wheels"
    words = ("download", "--yes", "-d", goal, "--python", check.env)
    check.must(0, *check.fix(*words, *check.machine))
    return {"mb": round(sum(file.stat().st_size for file in goal.iterdir()) / 1e6)}


def opened(check: Checked) -> dict[str, Any]:
    """Apply while another program has a file open that nobody can move then."""
    with next(check.env.glob("Lib/site-packages/onnxruntime/__init__.py")).open():
        done = check.run(*check.applied(), "--json")
    error = json.loads(done.stdout).get("error", {}).get("code")
    if error != "files-in-use":
        raise WrongError(f"exit {done.returncode}, {error or done.stdout[-400:]}")
    check.same()
    return {"error": error}


def killed(check: Checked) -> dict[str, Any]:
    """End an apply while its engine is at work, and while files are moved; undo what is there."""
    seen = {}
    for sign in ("engine.lock", "*/journal"):
        state = check.env / "Lib" / "site-packages" / STATE
        words = list(map(str, check.applied()))
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        with subprocess.Popen(words, env=check.environ, cwd=check.folder, **pipes) as tool:
            while tool.poll() is None and not any(state.glob(sign)):
                time.sleep(0.01)
            time.sleep(0.3)
            seen[sign] = "killed" if tool.poll() is None else f"ended before: {tool.returncode}"
            tool.kill()
        undone = check.run(*check.fix("undo", "--yes", "--python", check.env))
        if undone.returncode not in {0, 2}:  # 2: there was nothing yet
            raise WrongError(f"undo: exit {undone.returncode}, {undone.stderr[-400:]}")
        seen[sign] += f", undo {undone.returncode}"
        check.same()
    return seen


def applied(check: Checked) -> dict[str, Any]:
    """Apply while a program has the old libraries loaded, which is named."""
    words = [str(check.python), "-c", HOLD]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen(words, env=check.environ, **pipes) as user:
        if user.stdout is None or user.stdout.readline().strip() != b"1":
            raise WrongError("the CPU build cannot be imported")
        done = check.run(*check.applied())
        user.communicate(b"")
    if done.returncode != 0 or "python.exe (" not in done.stderr:
        raise WrongError(f"exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    check.must(0, *check.fix("--check", "--python", check.env, *check.machine))
    return {"named": "python.exe"}


def loaded(check: Checked) -> dict[str, Any]:
    """Run a script that knows nothing of all this, and the program's own verification."""
    model = check.must(0, check.tool, "-c", MODEL).strip()
    done = check.run(check.python, "-c", SCRIPT, model)
    said = done.stdout.replace("\0", "") + done.stderr.replace("\0", "")
    if NOT_LOADED.search(said) or done.returncode != 0:
        raise WrongError(f"exit {done.returncode}: {said[-600:]}")
    verified = check.run(*check.fix("verify", "--json", "--python", check.env))
    verdict = json.loads(verified.stdout)["verdict"]
    if verdict not in ({"no-driver", "no-gpu", "driver-too-old"} if check.machine else {"works"}):
        raise WrongError(f"verify: {verdict}")
    told = SAID.search(said)
    return {"script": told[0] if told else "loaded", "verify": verdict}


def undone(check: Checked) -> dict[str, Any]:
    """Put everything back."""
    check.must(0, *check.fix("undo", "--yes", "--python", check.env))
    check.same()
    return {"files": len(check.before)}


def in_cmd(check: Checked) -> dict[str, Any]:
    """Paste commands at cmd's prompt, and run them from a batch file."""

    def batch(line: str) -> str:
        (check.folder / "told.bat").write_text("@" + line.replace("%", "%%") + "\n")
        return "told.bat"

    typed(check, "cmd", batch)
    return typed(check, "cmd", lambda line: line)


def in_shell(program: str) -> Callable[[Checked], dict[str, Any]]:
    """Return the step that runs commands in this PowerShell."""

    def run(check: Checked) -> dict[str, Any]:
        """Run commands as PowerShell takes them."""
        version = ("-NoProfile", "-Command", "$PSVersionTable.PSVersion.ToString()")
        found = shutil.which(program)
        said = check.run(found, *version).stdout.strip() if found else ""
        if not said:
            raise NotHereError("no PowerShell" if wine() else f"no {program}")
        file = check.folder / "told.ps1"

        def script(line: str) -> list[str]:
            file.write_text(line + "\n", "utf-8-sig")
            return [program, "-NoProfile", "-ExecutionPolicy", "Bypass", "-File", str(file)]

        return {"version": said, **typed(check, "PowerShell", script)}

    return run


def typed(check: Checked, shell: str, ready: Callable[[str], str | list[str]]) -> dict[str, Any]:
    """Run what is told for this shell, and look whether each word arrives."""
    (check.folder / "show.py").write_text(SHOW, "utf-8")
    wanted = [*TYPED, *(() if wine() else NOT_IN_WINE)]
    asked = json.dumps([["python", "show.py", *words] for words in wanted])
    told = json.loads(check.must(0, check.tool, "-c", PASTED, text_in=asked))
    path = f"{check.tool.parent}{os.pathsep}{os.environ['PATH']}"
    for words, lines in zip(wanted, told, strict=True):
        line = next(text for name, text in lines if name in {None, shell})
        command = ready(line)
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=check.folder,
            env=check.environ | {"PATH": path},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0 or json.loads(done.stdout) != list(words):
            raise WrongError(f"{line}: {(done.stdout + done.stderr)[-300:]}")
    return {"commands": len(wanted)}


def long_paths(check: Checked) -> dict[str, Any]:
    """Use a path of 300 characters, and mend an environment whose files would have such."""
    enabled = long_paths_enabled()
    deep = check.folder / "deep" / ("x" * 100) / ("y" * 100)
    try:
        deep.mkdir(parents=True)
        (deep / ("z" * 90)).write_text("")
        possible = True
    except OSError:
        possible = False
    env = check.folder / "long"
    while len(str(env)) < 190:  # noqa: PLR2004 - its own files are shorter than 260, others are not
        env /= "long path"
    check.must(0, sys.executable, "-m", "venv", "--without-pip", env)
    before = digests(env)
    done = check.run(*check.applied(env), "--json")
    error = json.loads(done.stdout).get("error", {}).get("code")
    if (done.returncode, error) != ((0, None) if enabled else (2, "path-too-long")):
        raise WrongError(f"exit {done.returncode}, {error}: {done.stderr[-400:]}")
    if not enabled and digests(env) != before:
        raise WrongError("refused, and not as it was")
    if enabled and not possible:
        raise WrongError("they are on, and Python cannot use them")
    return {"enabled": enabled, "python_can": possible, "apply": error or "done"}


def store_alias(check: Checked) -> dict[str, Any]:
    """Name the Store's alias of Python as the environment."""
    alias = Path(os.environ.get("LOCALAPPDATA", ""), "Microsoft", "WindowsApps", "python.exe")
    if not os.path.lexists(alias):
        raise NotHereError("no alias of the Store")
    done = check.run(*check.fix("plan", "--json", "--python", alias))
    document = json.loads(done.stdout)
    told = document.get("error", {}).get("code") or document.get("verdict")
    return {"bytes": alias.lstat().st_size, "told": told}


def one_drive(check: Checked) -> dict[str, Any]:
    """Read an environment in OneDrive's folder, whose files it may hold; nothing of it is kept."""
    place = os.environ.get("ONEDRIVE")
    if not place or not Path(place).is_dir():
        raise NotHereError("no OneDrive")
    folder = Path(place, FOLDER)
    try:
        check.must(0, sys.executable, "-m", "venv", "--without-pip", folder)
        told = check.must(1, *check.fix("plan", "--json", "--python", folder, *MACHINE))
        (folder / "pyvenv.cfg").rename(folder / "moved.cfg")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"verdict": json.loads(told)["verdict"]}


STEPS: Mapping[str, Callable[[Checked], dict[str, Any]]] = {
    "two environments": environments,
    "a plan": planned,
    "a download": downloaded,
    "an open file": opened,
    "two kills": killed,
    "apply and check, with libraries in use": applied,
    "what loads": loaded,
    "undo": undone,
    "cmd": in_cmd,
    "PowerShell 5": in_shell("powershell"),
    "PowerShell 7": in_shell("pwsh"),
    "long paths": long_paths,
    "the Store's alias": store_alias,
    "OneDrive": one_drive,
}


def wine() -> str | None:
    """Return the version of Wine, None on Windows: https://wiki.winehq.org/Developer_FAQ."""
    library: Any = vars(ctypes).get("CDLL", lambda _: None)("ntdll")
    ask = getattr(library, "wine_get_version", None)
    if ask is None:
        return None
    ask.restype = ctypes.c_char_p
    return str(ask().decode())


def long_paths_enabled() -> bool:
    """Tell whether programs that declare it can use paths of more than 260 characters.

    Source: https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
    """
    winreg: Any = importlib.import_module("winreg")
    place = r"SYSTEM\CurrentControlSet\Control\FileSystem"
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
    except OSError:
        return False


def this_system() -> dict[str, Any]:
    """Return what Windows this is."""
    libraries: Any = vars(ctypes)["windll"]
    return {
        "wine": wine(),
        "windows": platform.version(),
        "code_page": libraries.kernel32.GetACP(),
        "administrator": bool(libraries.shell32.IsUserAnAdmin()),
        "python": platform.python_version(),
    }


def names_of(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return what names this person or machine, and what stands for it; the longest first."""
    names = {str(folder): OWN, sys.base_prefix: PYTHON, environ.get("USERPROFILE", ""): "~"}
    names |= {environ.get(one, ""): "…" for one in ("USERNAME", "COMPUTERNAME", "USERDOMAIN")}
    return {one: names[one] for one in sorted(names, key=len, reverse=True) if len(one) > 1}


def without_names(value: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - a part of a JSON
    """Return it without the names and homes of people."""
    if isinstance(value, dict):
        return {key: without_names(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_names(inner, names) for inner in value]
    if not isinstance(value, str):
        return value
    for name, instead in names.items():
        for form in (name, name.replace("\\", "\\\\")):  # as it is, and as JSON writes it
            whole = re.compile(rf"(?<!\w){re.escape(form)}(?!\w)", re.IGNORECASE)
            value = whole.sub(instead.replace("\\", "\\\\"), value)
    return re.sub(r"""(?i)[a-z]:[\\/]+Users[\\/]+[^\\/:;"'<>|]+""", "~", value)


def steps(check: Checked, only: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Do the steps; what the first three cannot make, the others cannot use."""
    for name in only:
        started = time.monotonic()
        row: dict[str, Any] = {"name": name, "outcome": "well"}
        try:
            row["seen"] = STEPS[name](check)
        except NotHereError as error:
            row |= {"outcome": "not here", "why": str(error)}
        except Exception as error:  # noqa: BLE001 - it is written down, and the others go on
            row |= {"outcome": "wrong", "why": str(error) or repr(error)}
        row["seconds"] = round(time.monotonic() - started)
        say(f"{name}: {row['outcome']} {row.get('why') or row['seen']}")
        yield row
        if row["outcome"] == "wrong" and name in list(STEPS)[:3]:
            return


def say(text: str) -> None:
    """Print a line, also where a console has not all of its characters."""
    print(text.encode("ascii", "backslashreplace").decode(), flush=True)


def remove(folder: Path) -> None:
    """Remove a folder of the check, read-only files and long paths included."""
    long = Path("\\\\?\\" + str(folder))
    for inner, _, names in os.walk(long):
        for name in names:
            Path(inner, name).chmod(stat.S_IWRITE)
    shutil.rmtree(long, ignore_errors=True)


def main() -> int:
    """Do what is on the list, and write down what was seen."""
    near = Path(__file__).resolve().parents[1]
    program = str(near) if (near / "resolver" / "__main__.py").is_file() else "ortgpu-fix"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--program", default=program, help="what pip installs: a wheel, a folder")
    parser.add_argument("--find-links", type=Path, help="the wheels of the plan, if they are here")
    options = parser.parse_args()
    folder = Path(FOLDER).resolve()
    remove(folder)
    check = Checked(folder, options.program, options.find_links and options.find_links.resolve())
    rows = list(steps(check, STEPS))
    document = {
        "schema": 1,
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "system": this_system(),
        "steps": rows,
    }
    document = without_names(document, names_of(os.environ, folder))
    places = {str(folder): OWN, sys.base_prefix: PYTHON}
    document["facts"] = without_names(check.facts, places)  # no other name is in them
    remove(folder)
    folder.mkdir(exist_ok=True)
    result = folder / "check.json"
    result.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    say(f"Look through it, and send it: {result}")
    return int(any(row["outcome"] == "wrong" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
