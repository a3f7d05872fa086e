"""Start the children that describe the target environment and query the driver.

They take about as long as the rest of a plan, so they start before the rest is imported; this
module imports little for that reason.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error, cause
from ..facts.model import OLDEST
from ..utils.background_call import BackgroundCall
from ..utils.child_environment import child_environment
from ..utils.process import Finished, Runner, run
from .interpreter import find_interpreter

SECONDS = 20.0
"""The time limit of an interpreter; a network file system may be slow."""
GPU_SECONDS = 25.0
"""For NVML and libcuda together, three fifths of it for NVML. The first contact with eight idle
data-centre GPUs takes more than ten seconds on a healthy machine."""
_START = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; "
    "exec(compile(sys.stdin.buffer.read(), 'describe_target', 'exec'))"
)
_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


class ProbeProcesses:
    """The children that describe one environment and its machine."""

    def __init__(
        self,
        interpreter: Path,
        *,
        runner: Runner,
        environ: Mapping[str, str],
        gpu_seconds: float = GPU_SECONDS,
    ) -> None:
        self.interpreter = interpreter
        self.gpu_seconds = gpu_seconds
        self.gpu_query = BackgroundCall(
            lambda: query_gpus(
                "nvml", "libcuda", runner=runner, environ=environ, seconds=gpu_seconds
            )
        )
        self.inside = BackgroundCall(
            lambda: describe_target(interpreter, runner=runner, environ=environ)
        )


def start_probe(python: str | None, environ: Mapping[str, str]) -> ProbeProcesses:
    """Start on this machine and the environment of `--python`; raises as `find_interpreter`."""
    return ProbeProcesses(
        find_interpreter(python, environ, Path.cwd()), runner=run, environ=environ
    )


def describe_target(
    interpreter: Path, *, runner: Runner, environ: Mapping[str, str], seconds: float = SECONDS
) -> str:
    """Return what the script `describe_target` prints in `interpreter`.

    The script is its standard input: no file must be readable there. Nothing is imported from the
    current folder, which may be somebody's checkout: not even `__future__`. Without `-I`, which
    would hide the user's own site-packages; with `-B`, because nothing may be written into the
    environment.

    Raises Error `python-failed` (not started, or ended with an error), `python-hangs` (no end after
    `seconds`) and `python-too-old` (too old to read the script).
    """
    script = (Path(__file__).with_name("children") / "describe_target.py").read_text("utf-8")
    env = child_environment(environ, "look")

    def run_python(*arguments: str, text_in: str | None = None) -> Finished:
        argv = [str(interpreter), *arguments]
        try:
            finished = runner(argv, timeout=seconds, env=env, text_in=text_in)
        except OSError as error:
            raise Error("python-failed", path=interpreter, cause=error.strerror or error) from error
        if finished.timed_out:
            raise Error("python-hangs", path=interpreter, seconds=f"{seconds:g}")
        return finished

    finished = run_python("-B", "-c", _START, text_in=script)
    if finished.returncode != 0:
        version = run_python("-c", _VERSION).stdout.strip()
        numbers = re.fullmatch(r"(\d+)\.(\d+)\.\d+", version)
        if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise Error("python-too-old", path=interpreter, version=version)
        lines = (finished.stderr or finished.stdout).strip().splitlines()
        said = lines[-1][:200] if lines else cause("no-word")
        ended = cause("python-ended", status=finished.returncode, said=said)
        raise Error("python-failed", path=interpreter, cause=ended)
    return finished.stdout


def query_gpus(
    *libraries: str, runner: Runner, environ: Mapping[str, str], seconds: float
) -> Finished | None:
    """Run the script `query_gpus` for all GPUs, without CUDA_VISIBLE_DEVICES."""
    env = child_environment(environ, "compute")
    env.pop("CUDA_VISIBLE_DEVICES", None)
    pynvml = importlib.util.find_spec("pynvml")
    folder = str(Path(pynvml.origin).parent) if pynvml and pynvml.origin else "-"
    script = Path(__file__).with_name("children") / "query_gpus.py"
    argv = [sys.executable, "-I", "-S", str(script), folder, f"{seconds}", *libraries]
    return run_if_startable(argv, runner=runner, env=env, seconds=seconds + 2)


def run_if_startable(
    argv: list[str], *, runner: Runner, env: Mapping[str, str], seconds: float
) -> Finished | None:
    """Run `argv`; return None where it cannot be started."""
    try:
        return runner(argv, timeout=seconds, env=env)
    except OSError:
        return None
