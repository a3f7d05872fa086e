"""A real Windows Python that runs on Linux: python.org's own DLLs, under Wine, without a display.

Everything comes from the distribution (Wine, mingw-w64) and from the package index:

    python3XX.dll, *.pyd, OpenSSL, SQLite   python.org's, in `deploy_libs` of panda3d's wheel
    the standard library and ensurepip      those of a Linux CPython of the same minor release
    vcruntime140.dll                        the wheel msvc-runtime
    python.exe, the venv's python.exe       compiled here: `wmain`, and what venvlauncher.c does
    uv.exe                                  uv's wheel

Wine differs where it has to be said: a standard stream must be a pipe (a file that a Linux process
opened has no name there), Wine 8 lacks bcryptprimitives.dll (every Rust program asks it for random
numbers) and functions that numpy 2 calls, and a program that first asks for a desktop starts
`explorer.exe`, which inherits the pipes of that program: so there is one from the beginning.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prove.outcomes import record, recorded
from support.pythons import find_python

COMPILER = "x86_64-w64-mingw32-gcc"
VERSIONS = ("3.11", "3.12", "3.10")
PANDA3D, MSVC_RUNTIME = "panda3d==1.10.16", "msvc-runtime==14.44.35112"
STUBS = Path(__file__).parents[2] / "tests" / "stubs"
_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_MAIN = """
#include <wchar.h>
__declspec(dllimport) int Py_Main(int argc, wchar_t **argv);
int wmain(int argc, wchar_t **argv) { return Py_Main(argc, argv); }
"""
_RANDOM = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) {
    return SystemFunction036(p, (ULONG)n);
}
"""


def what_is_missing() -> str | None:
    """Return why there can be no Windows Python here, None where there can."""
    missing = [name for name in ("wine", COMPILER) if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)}: not installed"
    if not any(map(find_python, VERSIONS)):
        return f"no CPython {', '.join(VERSIONS)} whose standard library could be copied"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsPython:
    """Wine, and the Python in it."""

    folder: Path
    version: str
    environ: Mapping[str, str]

    @property
    def python(self) -> Path:
        """The base interpreter."""
        return self.folder / "python" / "python.exe"

    @property
    def uv(self) -> Path:
        """uv.exe."""
        return self.folder / "python" / "Scripts" / "uv.exe"

    @property
    def system32(self) -> Path:
        """Where Windows has its DLLs."""
        return self.folder / "prefix" / "drive_c" / "windows" / "system32"

    def start(
        self,
        program: Path,
        *arguments: str | Path,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program; paths among the arguments get their Windows form."""
        return subprocess.Popen(
            ["wine", str(program), *map(windows, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environ, **(environ or {})},
            cwd=cwd,
        )

    def run(
        self,
        program: Path,
        *arguments: str | Path,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        seconds: float = 600,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end; raises TimeoutExpired."""
        with self.start(program, *arguments, environ=environ, cwd=cwd) as process:
            try:
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def must(self, program: Path, *arguments: str | Path, seconds: float = 600) -> str:
        """Run a program that must end well, and return what it said."""
        done = self.run(program, *arguments, seconds=seconds)
        if done.returncode != 0:
            raise RuntimeError(
                f"{program.name} {arguments}: {done.stderr.decode(errors='replace')[-2000:]}"
            )
        return done.stdout.decode(errors="replace").strip()

    def venv(self, folder: Path, *packages: str | Path, pip: bool = False) -> Path:
        """Make a virtual environment with these packages, and return its interpreter."""
        self.must(self.python, "-m", "venv", *([] if pip else ["--without-pip"]), folder)
        python = folder / "Scripts" / "python.exe"
        if packages:
            words = ["pip", "install", "--quiet", "--no-config", "--link-mode", "copy"]
            self.must(self.uv, *words, "--python", python, *packages)
        return python

    def install_driver(self) -> None:
        """Put the stand-ins of NVIDIA's two libraries into the system's folder.

        How they answer is in the file that ORTGPU_STUB names.
        """
        for source, library in (("nvml", "nvml.dll"), ("cuda", "nvcuda.dll")):
            compile_dll(STUBS / f"{source}.c", self.system32 / library)

    def remove_driver(self) -> None:
        """Take them away."""
        for library in ("nvml.dll", "nvcuda.dll"):
            (self.system32 / library).unlink(missing_ok=True)


def windows(argument: str | Path) -> str:
    """Return a path as Windows programs see it, on drive Z; other text as it is."""
    if isinstance(argument, Path):
        return "Z:" + str(argument.absolute()).replace("/", "\\")
    return argument


def compile_dll(source: Path, goal: Path, *more: str) -> None:
    """Compile a C file to a 64-bit DLL."""
    options = ["-O1", "-shared", "-static", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *options, "-o", goal, source, *more], check=True)


def make(folder: Path) -> WindowsPython:
    """Make a Windows Python in `folder`, or return the one that is there.

    Raises RuntimeError or CalledProcessError with what went wrong.
    """
    reason = what_is_missing()
    if reason:
        raise RuntimeError(reason)
    version = next(version for version in VERSIONS if find_python(version))
    made = WindowsPython(folder=folder, version=version, environ=_environment(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if not made.system32.is_dir():
        subprocess.run(["wineboot", "-i"], env=made.environ, check=True, capture_output=True)
        words = ["reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"]
        subprocess.run(["wine", *words], env=made.environ, check=True, capture_output=True)
    _show_desktop(made)
    if not made.uv.is_file():
        _make_python(made)
    return made


def prove(
    proof: str,
    made: WindowsPython,
    cases: Mapping[str, Callable[[], Iterator[str]]],
    only: str,
    about: Mapping[str, Mapping[str, Any]],
) -> int:
    """Run the cases with `only` in their name, which give what is not as it must be; end Wine.

    Each is put into today's result of `proof`, with what there is to say `about` it. Returns 1
    where something in it is wrong.
    """
    wine = subprocess.run(["wine", "--version"], capture_output=True, text=True, check=True).stdout
    python = made.must(made.python, "-c", "import sys; print(sys.version)")
    for name in (name for name in cases if only in name):
        started = time.monotonic()
        problems = list(cases[name]())
        seconds = round(time.monotonic() - started)
        outcome = {"name": name, "problems": problems, "seconds": seconds}
        outcome |= about.get(name, {})
        record(proof, outcome, tuple(cases), wine=wine.strip(), windows_python=python)
        print(f"{name}: {'; '.join(problems) or 'well'} ({seconds} s)", flush=True)
    end(made)
    return int(any(row["problems"] for row in recorded(proof).values()))


def end(made: WindowsPython) -> None:
    """End everything that runs in this Wine."""
    subprocess.run(["wineserver", "-k"], env=made.environ, check=False)
    subprocess.run(["wineserver", "-w"], env=made.environ, check=False, timeout=60)


def _environment(folder: Path) -> dict[str, str]:
    dropped = ("PIP_", "UV_", "PYTHON", "WINE", "SSL_", "REQUESTS_", "CURL_")
    left = {"DISPLAY", "VIRTUAL_ENV"}
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) and name not in left
    }
    for name in _CERTIFICATES:
        if os.environ.get(name):
            kept[name] = windows(Path(os.environ[name]))
    return kept | {
        "WINEPREFIX": str(folder / "prefix"),
        "WINEARCH": "win64",
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
    }


def _show_desktop(made: WindowsPython) -> None:
    """Start the desktop, with nobody's pipes; it is nobody's child, and `end` ends it.

    What Wine itself needs runs before: whoever starts first has its services hold his pipes.
    """
    subprocess.run(
        ["wine", "cmd", "/c", "exit"],
        env=made.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    subprocess.run(
        ["sh", "-c", "wine explorer.exe /desktop=proof,800x600 </dev/null >/dev/null 2>&1 &"],
        env=made.environ,
        start_new_session=True,
        check=True,
    )


def _make_python(made: WindowsPython) -> None:
    home, tag = made.python.parent, made.version.replace(".", "")
    wheels, build = made.folder / "wheels", made.folder / "build"
    for path in (home / "DLLs", home / "Scripts", home / "Lib" / "site-packages", build):
        path.mkdir(parents=True, exist_ok=True)
    for member, path in _members(_download(wheels, PANDA3D, made.version), "deploy_libs/"):
        name = path.name
        # Wine has its own api-ms-win-*.dll, and the runtime comes from Microsoft's wheel.
        if not name.lower().startswith(("api-ms-", "vcruntime")):
            (home if name == f"python{tag}.dll" else home / "DLLs").joinpath(name).write_bytes(
                member
            )
    for member, path in _members(_download(wheels, MSVC_RUNTIME, made.version), ".data/data/"):
        if path.name.startswith("vcruntime140"):
            (home / path.name).write_bytes(member)
    scripts = _members(_download(wheels, "uv", made.version), ".data/scripts/")
    uv = next(member for member, path in scripts if path.name == "uv.exe")
    standard = subprocess.run(
        [
            str(find_python(made.version)),
            "-c",
            "import sysconfig as s; print(s.get_path('stdlib'))",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    left_out = ("site-packages", "__pycache__", "lib-dynload", "config-*", "test", "tests")
    ignored = shutil.ignore_patterns(*left_out, "_sysconfigdata*")
    shutil.copytree(standard, home / "Lib", ignore=ignored, dirs_exist_ok=True)
    (build / "python.c").write_text(_MAIN)
    (build / "random.c").write_text(_RANDOM)
    library = home / f"python{tag}.dll"
    compiler = [COMPILER, "-O2", "-municode", "-o"]
    subprocess.run([*compiler, made.python, build / "python.c", library], check=True)
    launchers = home / "Lib" / "venv" / "scripts" / "nt"
    launchers.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("windows_venv_launcher.c")
    subprocess.run([*compiler, launchers / "python.exe", source], check=True)
    shutil.copy(launchers / "python.exe", launchers / "pythonw.exe")
    random = made.system32 / "bcryptprimitives.dll"
    if not random.exists():
        compile_dll(build / "random.c", random, "-ladvapi32")
    made.must(made.python, "-m", "ensurepip", "--default-pip")
    made.uv.write_bytes(uv)


def _download(folder: Path, requirement: str, version: str) -> Path:
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder)]
    words += ["--only-binary=:all:", "--platform=win_amd64", f"--python-version={version}"]
    before = set(folder.glob("*.whl"))
    subprocess.run([*words, requirement], check=True, capture_output=True)
    name = requirement.partition("=")[0].replace("-", "_")
    new = set(folder.glob(f"{name}-*.whl")) - before or set(folder.glob(f"{name}-*.whl"))
    return new.pop()


def _members(wheel: Path, folder: str) -> list[tuple[bytes, Path]]:
    """Return content and path of the files of `wheel` whose path has `folder` in it."""
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if folder in name and not name.endswith("/")]
        return [(file.read(name), Path(name)) for name in names]
