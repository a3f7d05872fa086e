"""Begin to look: the children that ask the environment and the driver what they are.

They take about as long as all of the rest that a plan needs, so they are on their way
before the rest is even imported. What this module imports is kept small for that.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from ..errors import Error
from ..utils.process import Finished, Runner, own_environment, run
from .interpreter import find_interpreter

T = TypeVar("T")
SECONDS = 20.0
"""How long an interpreter may take to say what it is; a network file system may be slow."""
GPU_SECONDS = 25.0
"""For NVML and libcuda together, three fifths of it for NVML. The first contact with eight
data-centre GPUs that nothing keeps awake takes more than ten seconds on a healthy machine."""
_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


class BackgroundCall(Generic[T]):
    """What a call returns, or raises, while it runs beside us.

    A pool would be waited for when the user interrupts, and the driver may be what hangs.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._thread = threading.Thread(target=self._work, args=(call,), daemon=True)
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread.start()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            self._answers.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever asks
            self._errors.append(error)

    def result(self) -> T:
        """Wait for the call, and return or raise as it did."""
        self._thread.join()
        for error in self._errors:
            raise error
        return self._answers[0]


class ProbeProcesses:
    """The children of one look at an environment and its machine."""

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
        """What NVML and libcuda say; None where the child could not be started."""
        self.inside = BackgroundCall(
            lambda: describe_target(interpreter, runner=runner, environ=environ)
        )
        """What `describe_target` returns or raises."""


def start_probe(python: str | None, environ: Mapping[str, str]) -> ProbeProcesses:
    """Begin to look at this machine and at the environment that `--python` names.

    Raises what `find_interpreter` raises.
    """
    return ProbeProcesses(
        find_interpreter(python, environ, Path.cwd()), runner=run, environ=environ
    )


def describe_target(
    interpreter: Path, *, runner: Runner, environ: Mapping[str, str], seconds: float = SECONDS
) -> str:
    """Return what `inside.py` prints in `interpreter`.

    The script goes to its standard input: nothing needs to be readable there. `-I` is not used, for
    it would hide the user's own site-packages, which the interpreter normally sees. `-B`
    is: looking at an environment must not write into it, not even the bytecode of what its `.pth`
    files import.

    Raises Error `python-failed` where it cannot be started or ends with an error, `python-hangs`
    after `seconds`, `python-too-old` where it is too old even to read the script.
    """
    script = (Path(__file__).with_name("children") / "describe_target.py").read_text("utf-8")
    env = own_environment(environ)
    if "PYTHONNOUSERSITE" in environ:
        env["PYTHONNOUSERSITE"] = environ["PYTHONNOUSERSITE"]
    answer = _run(interpreter, ["-B", "-"], runner=runner, env=env, seconds=seconds, text_in=script)
    if answer.returncode != 0:
        from ..facts.target_reply import OLDEST

        old = _run(interpreter, ["-c", _VERSION], runner=runner, env=env, seconds=seconds)
        version = old.stdout.strip()
        numbers = re.fullmatch(r"(\d+)\.(\d+)\.\d+", version)
        if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise Error("python-too-old", path=interpreter, version=version)
        raise Error(
            "python-failed",
            path=interpreter,
            cause=f"exit {answer.returncode}: {_tail(answer)}",
        )
    return answer.stdout


def _run(
    interpreter: Path,
    arguments: list[str],
    *,
    runner: Runner,
    env: Mapping[str, str],
    seconds: float,
    text_in: str | None = None,
) -> Finished:
    try:
        answer = runner([str(interpreter), *arguments], timeout=seconds, env=env, text_in=text_in)
    except OSError as error:
        raise Error("python-failed", path=interpreter, cause=error.strerror or error) from error
    if answer.timed_out:
        raise Error("python-hangs", path=interpreter, seconds=f"{seconds:g}")
    return answer


def _tail(answer: Finished) -> str:
    lines = (answer.stderr or answer.stdout).strip().splitlines()
    return lines[-1][:200] if lines else "no word why"


def query_gpus(
    *libraries: str, runner: Runner, environ: Mapping[str, str], seconds: float
) -> Finished | None:
    """Run `gpu_query.py`; CUDA_VISIBLE_DEVICES is no fact of the machine and is taken away."""
    env = own_environment(environ)
    env.pop("CUDA_VISIBLE_DEVICES", None)
    pynvml = importlib.util.find_spec("pynvml")
    folder = str(Path(pynvml.origin).parent) if pynvml and pynvml.origin else "-"
    script = Path(__file__).with_name("children") / "query_gpus.py"
    argv = [sys.executable, "-I", "-S", str(script), folder, f"{seconds}", *libraries]
    return run_if_startable(argv, runner=runner, env=env, seconds=seconds + 2)


def run_if_startable(
    argv: list[str], *, runner: Runner, env: Mapping[str, str], seconds: float
) -> Finished | None:
    """Run `argv` to its end; None where it could not be started."""
    try:
        return runner(argv, timeout=seconds, env=env)
    except OSError:
        return None
