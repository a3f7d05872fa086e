"""Prove `download --libraries` with a compiled program, the real libraries and Debian's headers.

    python scripts/prove/libraries.py [--work DIR] [--only linux,windows] [--keep]

The program is compiled with the headers of Debian's libonnxruntime-dev against the shared library
in the wheel of onnxruntime-gpu, and has the wheel's libraries beside it, as a release of such a
program has. It asks for a session on the GPU before the command and after it, with the lines that
the command prints: on Linux with a stub for the driver, which answers that there is no GPU; on
Windows under Wine. Needs gcc and g++, apt-get and dpkg, for Windows Wine and MinGW, a network, and
11 GB; takes ten minutes. The dated result goes to scripts/prove/results/; the exit code is 1 where
the program does not find the libraries.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.debian_archive import DebianArchive
from support.prover import MODEL, Run, call

RELEASE = "1.26.0"
PACKAGE = "libonnxruntime-dev/trixie"
TAGS = {"linux-x86_64": "manylinux_2_27_x86_64", "windows": "win_amd64"}
MACHINE = ("--driver", "570.86.15", "--gpu", "RTX4090")
SOURCE = r"""
#include <stdio.h>
#include <string.h>
#include <onnxruntime_c_api.h>
#ifdef _WIN32
#include <windows.h>
#define MODEL L"model.onnx"
static int there(const char *name) { return GetModuleHandleA(name) != NULL; }
#else
#include <dlfcn.h>
#define MODEL "model.onnx"
static int there(const char *name) { return dlopen(name, RTLD_NOW | RTLD_NOLOAD) != NULL; }
#endif

static const OrtApi *api;

static void say(const char *what, OrtStatus *status) {
    printf("%s: %s\n", what, status ? api->GetErrorMessage(status) : "ok");
}

int main(int argc, char **argv) {
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    OrtCUDAProviderOptions cuda;
    int at;
    api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    memset(&cuda, 0, sizeof cuda);
    api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "app", &env);
    api->CreateSessionOptions(&options);
    say("provider", api->SessionOptionsAppendExecutionProvider_CUDA(options, &cuda));
    say("session", api->CreateSession(env, MODEL, options, &session));
    for (at = 1; at < argc; at++) printf("%s: %s\n", argv[at], there(argv[at]) ? "loaded" : "not");
    fflush(stdout);
    _Exit(0);
}
"""
LOADED = {
    "linux-x86_64": ("libonnxruntime_providers_cuda.so", "libcublasLt.so.12", "libcudnn.so.9"),
    "windows": ("onnxruntime_providers_cuda.dll", "cublasLt64_12.dll", "cudnn64_9.dll"),
}


def main() -> int:
    """Do all of it; return the exit code."""
    run = Run(__doc__, "libraries")
    work = run.prover.work
    headers = DebianArchive(work / "apt", ["trixie"]).unpack([PACKAGE], work / "headers")
    for system in TAGS:
        if not run.wants(system):
            continue
        app = program(work, system, headers / "usr/include/onnxruntime")
        before = started(app, system, [], run.prover.driver)
        fetched = call(
            *(sys.executable, "-m", "ortgpu_fix", "download", "-d", work / f"{system}-libraries"),
            *("--libraries", "--for", app, "--platform", system, *MACHINE),
        )
        after = started(app, system, fetched.stdout.splitlines(), run.prover.driver)
        loaded = [name for name in LOADED[system] if f"{name}: loaded" in after]
        good = len(loaded) == len(LOADED[system]) and f"{LOADED[system][0]}: not" in before
        told = fetched.stdout.splitlines()
        run.prover.say("app", system, good=good, before=before, told=told, after=after)
        if not run.prover.keep:
            shutil.rmtree(app.parent)
            shutil.rmtree(work / f"{system}-libraries")
    return run.finish(release=RELEASE, headers=PACKAGE)


def program(work: Path, system: str, headers: Path) -> Path:
    """Return a program with the libraries of onnxruntime-gpu beside it."""
    folder = work / f"{system}-app"
    folder.mkdir()
    wheels = work / "wheels"
    pip = ("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", wheels)
    only = ("--python-version=3.12", f"--platform={TAGS[system]}")
    call(sys.executable, *pip, *only, f"onnxruntime-gpu=={RELEASE}")
    [wheel] = wheels.glob(
        f"onnxruntime_gpu-{RELEASE}-*{'win' if system == 'windows' else 'linux'}*"
    )
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if re.search(r"/(?:lib)?onnxruntime\w*\.(?:so|dll)[\d.]*$", member):
                (folder / Path(member).name).write_bytes(archive.read(member))
    wheel.unlink()
    shutil.copy(MODEL, folder / "model.onnx")
    suffix = "c" if system == "windows" else "cpp"
    (folder / f"app.{suffix}").write_text(SOURCE)
    [library] = (*folder.glob("onnxruntime.dll"), *folder.glob("libonnxruntime.so*"))
    compiler = "x86_64-w64-mingw32-gcc" if system == "windows" else "g++"
    app = folder / ("app.exe" if system == "windows" else "app")
    # MinGW's sal.h lacks one of Microsoft's annotations.
    windows = ("-D_Return_type_success_(of)=",)
    links = windows if system == "windows" else ("-Wl,-rpath,$ORIGIN", "-ldl")
    call(compiler, f"app.{suffix}", f"-I{headers}", library, "-o", app, *links, cwd=folder)
    if system != "windows":
        soname = re.search(r"\(SONAME\).*\[(.+)\]", call("readelf", "-d", library).stdout)
        if soname and soname[1] != library.name:
            (folder / soname[1]).symlink_to(library.name)
    return app


def started(app: Path, system: str, told: Sequence[str], driver: str) -> list[str]:
    """Return what the program says after the lines `told` by the command."""
    environ: Mapping[str, str] = os.environ
    if system == "windows":
        environ = {**environ, "WINEDEBUG": "-all", "WINEPREFIX": str(app.parent.parent / "wine")}
        copies = [shlex.split(line, posix=False)[1:3] for line in told if line.startswith("copy ")]
        for source, _ in copies:
            for file in Path(source.strip('"').replace("\\", "/")).parent.glob("*.dll"):
                (app.parent / file.name).symlink_to(file)
        words = ["wine", str(app), *LOADED[system]]
    else:
        environ = {**environ, "LD_LIBRARY_PATH": driver}
        lines = [line for line in told if line.startswith("export ")]
        words = ["sh", "-c", "\n".join([*lines, '"$@"']), "sh", str(app), *LOADED[system]]
    done = subprocess.run(
        words, cwd=app.parent, env=environ, capture_output=True, text=True, check=False
    )
    return [*done.stdout.splitlines(), *done.stderr.splitlines()[-3:]]


if __name__ == "__main__":
    sys.exit(main())
