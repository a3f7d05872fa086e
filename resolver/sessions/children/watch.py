"""Tell of each inference session: what it asked for, what it got, who made it, how it ran.

Loaded by `sitecustomize` beside it in the user's Python (3.8 and newer) when one of the watched
libraries is imported; the standard library alone. The classes that make sessions get functions that
look at their arguments and results, and call the original ones.

Events are lines of JSON in the folder above, in a file for each process, opened for each line: a
program may close every file that it did not open, and a number would then be another file's. A
session is told at once, its runs at the first one, then at most every half second, the last of them
by a thread that waits so long, and at the end.

While a session is made that asks for more than the CPU, standard error is a file of ours: so
onnxruntime's own words are known, which it writes there past Python. They are passed on, unchanged,
when it is made; the starter passes on what a program that was killed has left in the file. What
starts another program meanwhile gives it the usual standard error, and not the file.

Nothing here raises, and nothing is written to standard output.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH100, PTH110, PTH118, PTH120, PTH123, S110, BLE001
from __future__ import annotations

import _thread
import atexit
import contextlib
import functools
import json
import os
import sys
import threading
import time
import weakref

if sys.platform == "win32":
    import _winapi as starters
    import msvcrt
    import subprocess  # noqa: TID251 - whose starts are looked at, and none made
else:
    import _posixsubprocess as starters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOADER = os.sep + "_ortgpu_fix_libraries" + os.sep
"""In the path of what `--apply` installs: it passes on what others ask for."""
KEY = "_ortgpu_fix_runs"
"""Of the attribute of a session that holds its runs."""
SERVICE = "_ortgpu_fix_libraries.service"
"""Of what `--apply` installs: it gives CUDA to sessions that name no provider, where told to."""
CUDA = "CUDAExecutionProvider"
PLAIN = {"CPUExecutionProvider", "AzureExecutionProvider"}
COLLECTION = "onnxruntime.capi.onnxruntime_inference_collection"
PAUSE = 0.5
"""Seconds between two tellings of a session's runs."""
KEPT = 256
"""How many times are kept of a session's later runs, the latest."""
MOST_SHAPES = 10_000
MOST_WORDS = 16_384
"""Bytes of onnxruntime's words that are told of one session."""
MOST_FRAMES = 30


class Process:
    """The file of this process, which differs after a fork."""

    file = ""
    token = ""
    number = 0

    @classmethod
    def begin(cls) -> None:
        """Choose a file for the process that runs now."""
        cls.token = f"{os.getpid()}-{os.urandom(4).hex()}"
        cls.file = os.path.join(FOLDER, f"events-{cls.token}.jsonl")
        cls.number = 0

    @classmethod
    def next_id(cls) -> str:
        """Return a name for a session that no other one has, in any process."""
        cls.number += 1
        return f"{cls.token}-{cls.number}"


def tell(event: str, **values: Any) -> None:
    """Append one event to the file of this process; the first one also sees to the last."""
    with contextlib.suppress(Exception):
        new = not os.path.exists(Process.file)
        values.update(event=event, pid=os.getpid())
        line = json.dumps(values, default=str) + "\n"
        write(Process.file, line.encode())
        if new:
            at_the_end()


def write(name: str, data: bytes) -> None:
    """Append to a file of ours."""
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def at_the_end() -> None:
    """Tell the last runs when this process ends; a child of multiprocessing skips `atexit`."""
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:
        multiprocessing.Finalize(None, tell_last, exitpriority=-1000)


def tell_last() -> None:
    """Tell what is known at the end of a process."""
    for runs in list(RUNS):
        runs.tell()
    with contextlib.suppress(Exception):
        onnxruntime = sys.modules["onnxruntime"]
        if not getattr(onnxruntime, "__file__", None):  # a folder alone, which no loader runs
            after_onnxruntime(onnxruntime)
    torch = sys.modules.get("torch")
    if torch is not None:
        with contextlib.suppress(Exception):
            device = getattr(torch, "get_default_device", None)
            tell(
                "torch",
                version=str(torch.__version__),
                cuda=torch.version.cuda,
                used=bool(torch.cuda.is_initialized()),
                device=str(device()) if device else None,
            )


class Runs:
    """How one session ran, in this process."""

    waiting = False
    """A thread is about to tell of all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shapes: set[object] = set()
        self.inputs: dict[str, list[int]] = {}
        self.threads: set[int] = set()
        self.renew()

    def renew(self) -> None:
        """Begin to count: here, or in the child of a fork, whose parent tells its own."""
        self.lock = threading.Lock()
        self.count = self.told = 0
        self.first: float | None = None
        self.fresh: list[float] = []
        self.later: list[float] = []
        self.due = 0.0
        self.threads.clear()

    def add(self, seconds: float | None, feed: Any, now: float) -> None:
        """Count one run; `feed` holds its inputs by name. None: nobody knows them, or its time."""
        shapes = None
        if feed is not None:
            shapes = tuple([shape(value) for value in feed.values()])
        with self.lock:
            new = shapes not in self.shapes
            if new and len(self.shapes) < MOST_SHAPES:
                self.shapes.add(shapes)
                if shapes and len(self.shapes) == 1:
                    self.inputs = {str(name): list(s) for name, s in zip(feed, shapes) if s}
            times = self.fresh if new else self.later
            if not self.count:
                self.first = seconds
            elif seconds is None:
                pass
            elif len(times) < KEPT:
                times.append(seconds)
            else:
                times[self.count % KEPT] = seconds
            self.count += 1
            self.threads.add(threading.get_ident())
        if now >= self.due:
            self.tell()
        elif not Runs.waiting:
            Runs.waiting = True
            _thread.start_new_thread(tell_later, ())

    def tell(self) -> None:
        """Tell how it ran so far, where that is more than was told."""
        with self.lock:
            if self.count == self.told:
                return
            self.told = self.count
            self.due = time.perf_counter() + PAUSE
            values = {
                "runs": self.count,
                "first_ms": milliseconds(self.first),
                "fresh_ms": milliseconds(median(self.fresh)),
                "later_ms": milliseconds(median(self.later)),
                "shapes": len(self.shapes - {None}),
                "inputs": self.inputs,
                "threads": len(self.threads),
            }
        tell("runs", id=self.name, **values)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.tell()


RUNS: weakref.WeakSet[Runs] = weakref.WeakSet()


def tell_later() -> None:
    """Tell how the sessions ran since, for a program that is killed while it waits."""
    time.sleep(PAUSE)
    Runs.waiting = False
    with contextlib.suppress(Exception):
        for runs in list(RUNS):
            runs.tell()


def shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an input: of an array, or of a value of onnxruntime's."""
    found = getattr(value, "shape", None)
    if type(found) is tuple:
        return found
    return tuple(found()) if callable(found) else None


def milliseconds(seconds: float | None) -> float | None:
    """Return a time as it is told."""
    return None if seconds is None else round(seconds * 1000, 4)


def median(times: list[float]) -> float | None:
    """Return the median."""
    return sorted(times)[len(times) // 2] if times else None


class Words:
    """Standard error, redirected to a file of ours while somebody wants to know what is said."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin with the usual standard error."""
        self.lock = threading.RLock()  # the handler of a signal may start a program
        self.users = self.starting = 0
        self.usual = self.file = -1
        self.passed = 0

    def begin(self) -> int | None:
        """Redirect it, and return where in the file the words begin; None where that fails."""
        with self.lock, contextlib.suppress(OSError):
            flush()
            if not self.users:
                name = os.path.join(FOLDER, f"words-{Process.token}")
                self.usual = os.dup(2)
                self.file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
                if sys.platform == "win32":  # no end of a line may change, and so their count
                    msvcrt.setmode(self.file, os.O_BINARY)
                os.ftruncate(self.file, 0)
                self.passed = 0
            self.users += 1
            self.direct()
            return os.fstat(self.file).st_size
        return None

    def end(self, begin: int | None) -> str:
        """Return what was said since `begin`; what was not passed on yet is."""
        if begin is None:
            return ""
        with self.lock, contextlib.suppress(OSError):
            flush()
            self.users -= 1
            if not self.users:
                os.dup2(self.usual, 2)
            said = self.read(begin, MOST_WORDS)
            while True:
                more = self.read(self.passed, 1 << 20)
                if not more:
                    break
                self.passed += len(more)
                pass_on(self.usual, more)
            if not self.users:
                os.ftruncate(self.file, 0)
                os.close(self.file)
                os.close(self.usual)
            return said.decode("utf-8", "replace")
        return ""

    def direct(self) -> None:
        """Let standard error be what it has to be now, while a session is made."""
        if self.users:
            os.dup2(self.usual if self.starting else self.file, 2)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Let standard error be the usual one while another program is started, which keeps it."""
        self.count_starting(1)
        try:
            yield
        finally:
            self.count_starting(-1)

    def count_starting(self, more: int) -> None:
        """Count the programs that are being started."""
        with self.lock, contextlib.suppress(OSError):
            self.starting += more
            self.direct()

    def read(self, begin: int, most: int) -> bytes:
        """Return a part of the file."""
        os.lseek(self.file, begin, os.SEEK_SET)
        return os.read(self.file, most)

    def after_fork(self) -> None:
        """Give the child its usual standard error back."""
        if self.users:
            with contextlib.suppress(OSError):
                os.dup2(self.usual, 2)
                os.close(self.file)
                os.close(self.usual)
        self.renew()


def flush() -> None:
    """Let Python's own standard error write what it holds back."""
    with contextlib.suppress(Exception):
        sys.stderr.flush()


def pass_on(file: int, data: bytes) -> None:
    """Write all of `data`; a pipe that does not block may be full for a while."""
    end = time.monotonic() + 5.0
    while data and time.monotonic() < end:
        try:
            data = data[os.write(file, data) :]
        except BlockingIOError:  # noqa: PERF203
            time.sleep(0.005)


WORDS = Words()
MAKING = threading.local()
"""The errors of the session that this thread makes: onnxruntime tries another one without CUDA."""


def after_fork() -> None:
    """Begin anew in a child: its file, its counts, its locks."""
    Process.begin()
    WORDS.after_fork()
    Runs.waiting = False
    for runs in list(RUNS):
        runs.renew()


def frames(skipped: str) -> list[list[Any]]:
    """Return who called: file, line, function and module, of each file the innermost."""
    found: dict[str, list[Any]] = {}
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while frame is not None and len(found) < MOST_FRAMES:
        file = frame.f_code.co_filename
        ours = file == __file__ or LOADER in file
        if not (ours or file.startswith((skipped, "<frozen")) or file in found):
            place = os.path.abspath(file) if file[:1] != "<" else file
            name = frame.f_code.co_name
            found[file] = [place, frame.f_lineno, name, frame.f_globals.get("__name__")]
        frame = frame.f_back
    return list(found.values())


def providers_asked(providers: Any, options: Any) -> list[list[Any]] | None:
    """Return what a session was asked for, each provider with its options; None: nothing."""
    if providers is None:
        return None
    if isinstance(providers, str):
        return [[providers, {}]]  # which onnxruntime takes letter by letter
    if iter(providers) is providers:
        return []  # which onnxruntime refuses; an iterator must reach it whole
    asked = []
    for number, each in enumerate(providers):
        name, given = each if isinstance(each, tuple) and len(each) == 2 else (each, None)  # noqa: PLR2004
        if given is None and options:
            given = options[number] if number < len(options) else None
        asked.append([str(name), {str(k): str(v) for k, v in dict(given or {}).items()}])
    return asked


def by_service(values: dict[str, Any]) -> list[list[Any]] | None:
    """Return what our own loader asks for where a session names no provider."""
    name = "ORTGPU_FIX_PROVIDERS"
    asked = os.environ.get(name, "").lower() == "cuda" and CUDA in values["available"]
    return [[CUDA, {name: "cuda"}]] if asked and SERVICE in sys.modules else None


def wants_more(asked: list[list[Any]] | None) -> bool:
    """Tell whether more than the CPU is asked for."""
    return any(name not in PLAIN for name, _ in asked or ())


@contextlib.contextmanager
def told(values: dict[str, Any], *, listen: bool) -> Iterator[dict[str, Any]]:
    """Give what is told of the session that is made meanwhile: its time, words and errors."""
    errors: list[str] = []
    MAKING.errors = errors
    begin = WORDS.begin() if listen else None
    start = time.perf_counter()
    try:
        yield values
    except Exception as error:
        values["error"] = said(error)
        raise
    finally:
        values["ms"] = milliseconds(time.perf_counter() - start)
        values["words"] = WORDS.end(begin)
        values["errors"] = errors


def said(error: BaseException) -> str:
    """Return an error as a line of a log has it."""
    return f"{type(error).__name__}: {error}"[:4000]


def got(session: Any) -> dict[str, Any]:
    """Return what a session got, and the options of its providers."""
    names = [str(name) for name in session.get_providers()]
    options = {}
    with contextlib.suppress(Exception):
        every = session.get_provider_options()
        options = {name: dict(every.get(name, {})) for name in names if name not in PLAIN}
    return {"got": names, "options": options}


HELD: weakref.WeakKeyDictionary[Any, list[list[Any]] | None] = weakref.WeakKeyDictionary()
"""The providers, or the policy, that settings hold; the libraries do not tell them."""


def holding(change: Callable[..., list[list[Any]] | None], original: Any) -> Any:
    """Return a function of settings that keeps what they hold after it."""

    def hold(self: Any, *given: Any, **named: Any) -> Any:
        result = original(self, *given, **named)
        with contextlib.suppress(Exception):
            HELD[self] = change(HELD.get(self) or [], *given)
        return result

    return hold


def hold(kind: Any, **changes: Callable[..., list[list[Any]] | None]) -> None:
    """Look at what settings hold: each function of theirs, and what they hold after it."""
    for name, change in changes.items():
        if hasattr(kind, name):
            replace(kind, name, functools.partial(holding, change))


def after_collection(module: Any) -> None:
    """Look at the sessions of onnxruntime, and at their runs."""
    hold(
        getattr(module.C, "SessionOptions", None),
        add_provider=lambda held, name, given: [*held, [name, dict(given)]],
        add_provider_for_devices=lambda held, devices, given: [
            *held,
            [devices[0].ep_name, dict(given)],
        ],
        set_provider_selection_policy=lambda _, policy: [[policy.name, {}]],
    )
    kind, base = module.InferenceSession, module.Session
    folder = os.path.dirname(os.path.dirname(os.path.abspath(module.__file__)))
    replace(kind, "__init__", functools.partial(making, module, folder))
    replace(kind, "_create_inference_session", trying)
    replace(base, "set_providers", functools.partial(changing, module))
    for name, argument, waits in (
        ("run", "input_feed", True),
        ("run_with_ort_values", "input_dict_ort_values", True),
        ("run_async", "input_feed", False),
        ("run_with_iobinding", None, True),
    ):
        if hasattr(base, name):
            replace(base, name, functools.partial(running, argument, waits))


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put a function round `owner.name`, which looks like it."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def starting_apart() -> None:
    """Look at whatever starts another program."""
    posix = sys.modules[os.name]
    for name in ("system", "execv", "execve", "posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            replace(os, name, starting)
            setattr(posix, name, getattr(os, name))  # where a pickle looks for it
    for owner, name in (
        (starters, "fork_exec"),
        (starters, "CreateProcess"),
        (sys.modules.get("subprocess"), "_fork_exec"),
    ):
        if hasattr(owner, name):
            replace(owner, name, starting)
    if sys.platform == "win32":  # which asks for the handles first
        replace(subprocess.Popen, "__init__", starting)


def starting(original: Any) -> Any:
    """Return the function that starts a program, with the usual standard error."""

    def start(*given: Any, **named: Any) -> Any:
        with WORDS.apart():
            return original(*given, **named)

    return start


def making(module: Any, folder: str, original: Any) -> Any:
    """Return the `__init__` that tells of the session."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        values: dict[str, Any] = {"library": "onnxruntime", "asked": None}
        try:
            values.update(model_of((*given, named.get("path_or_bytes"))[0]))
            settings = named.get("sess_options", given[1] if len(given) > 1 else None)
            providers = named.get("providers", given[2] if len(given) > 2 else None)  # noqa: PLR2004
            options = named.get("provider_options", given[3] if len(given) > 3 else None)  # noqa: PLR2004
            has = getattr(settings, "has_providers", None)
            values["by_options"] = bool(has()) if has else False
            values["available"] = list(module.C.get_available_providers())
            values["asked"] = providers_asked(providers, options)
            if not values["asked"]:
                held = HELD.get(settings) if values["by_options"] else by_service(values)
                values["asked"] = held or values["asked"]
        except Exception:
            pass
        listen = wants_more(values["asked"]) or bool(values.get("by_options"))
        try:
            with told(values, listen=listen):
                original(self, *given, **named)
        finally:
            with contextlib.suppress(Exception):
                values.update(id=Process.next_id(), frames=frames(folder + os.sep))
                values["thread"] = threading.current_thread().name
                if "error" not in values:
                    values.update(got(self))
                    values["graph"] = self.get_modelmeta().graph_name
                    runs = Runs(values["id"])
                    RUNS.add(runs)
                    self.__dict__[KEY] = runs
                tell("session", **values)

    return __init__


def model_of(model: Any) -> dict[str, Any]:
    """Return the name of a model, or how long the bytes are that it was given as."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return {"model": None, "bytes": len(model)}
    return {"model": os.path.abspath(os.fsdecode(model))}


def trying(original: Any) -> Any:
    """Return the `_create_inference_session` that keeps the error after which another is tried."""

    def _create_inference_session(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return original(self, *given, **named)
        except Exception as error:
            with contextlib.suppress(Exception):
                MAKING.errors.append(said(error))
            raise

    return _create_inference_session


def changing(module: Any, original: Any) -> Any:
    """Return the `set_providers` that tells of it; `run` calls it where CUDA fails."""

    def set_providers(self: Any, providers: Any = None, provider_options: Any = None) -> Any:
        values: dict[str, Any] = {}
        with contextlib.suppress(Exception):
            values["asked"] = providers_asked(providers, provider_options)
            caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001
            values["by_user"] = caller != module.__file__
            failed = sys.exc_info()[1]
            values["failed"] = said(failed) if failed and not values["by_user"] else None
        with told(values, listen=wants_more(values.get("asked"))):
            result = original(self, providers, provider_options)
        with contextlib.suppress(Exception):
            values.update(got(self))
            tell("providers", id=self.__dict__[KEY].name, **values)
        return result

    return set_providers


def running(argument: str | None, waits: bool, original: Any) -> Any:  # noqa: FBT001
    """Return the function that runs a session and counts it.

    `argument` holds the inputs; the time is that of a run where it `waits` for its end.
    """
    clock = time.perf_counter

    def run(self: Any, *given: Any, **named: Any) -> Any:
        start = clock()
        result = original(self, *given, **named)
        end = clock()
        try:
            runs = self.__dict__.get(KEY)
            if runs is not None:
                feed = None
                if argument is not None:
                    feed = given[1] if len(given) > 1 else named[argument]
                runs.add(end - start if waits else None, feed, end)
        except Exception:
            pass
        return result

    return run


def after_onnxruntime(module: Any) -> None:
    """Tell that onnxruntime is there, and what its build has: nothing, where it is not whole."""
    available = getattr(module, "get_available_providers", list)
    tell_library("onnxruntime", module, module, available=list(available()))


def tell_library(name: str, package: Any, module: Any, **more: Any) -> None:
    """Tell that a library is there: the version of its `package`, the file of its `module`."""
    tell(
        "library",
        name=name,
        version=str(getattr(package, "__version__", "")),
        file=getattr(module, "__file__", None) or next(iter(module.__path__)),
        executable=sys.executable,
        **more,
    )


def after_ctranslate2(module: Any) -> None:
    """Look at what CTranslate2 makes on a device: `Translator(path, device="cuda")`."""
    tell_library("ctranslate2", sys.modules.get("ctranslate2.version"), module)
    folder = os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    for kind in list(vars(module).values()):
        create = vars(kind).get("__init__") if isinstance(kind, type) else None
        if "device: str" in (getattr(create, "__doc__", None) or ""):
            replace(kind, "__init__", functools.partial(making_other, "ctranslate2", folder))


def after_genai(module: Any) -> None:
    """Look at the models of onnxruntime-genai."""
    tell_library("onnxruntime-genai", sys.modules.get("onnxruntime_genai"), module)
    folder = os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    replace(module.Model, "__init__", functools.partial(making_other, "onnxruntime-genai", folder))
    hold(
        getattr(module, "Config", None),
        __init__=lambda _, path: genai_asked(path),
        clear_providers=lambda _: [],
        append_provider=lambda held, name: [*held, [name, {}]],
    )


def making_other(library: str, folder: str, original: Any) -> Any:
    """Return the `__init__` of another library's model that tells of it."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        values: dict[str, Any] = {"library": library, "asked": None}
        with contextlib.suppress(Exception):
            path = given[0] if given else named.get("model_path")
            if isinstance(path, (str, bytes, os.PathLike)):
                values.update(model_of(os.fspath(path)))
            values["asked"] = (
                genai_asked(path)
                if library == "onnxruntime-genai"
                else [[named.get("device", given[1] if len(given) > 1 else "cpu"), {}]]
            )
        try:
            with told(values, listen=True):
                original(self, *given, **named)
        finally:
            with contextlib.suppress(Exception):
                values.update(id=Process.next_id(), frames=frames(folder))
                values["thread"] = threading.current_thread().name
                if "error" not in values:
                    device = getattr(self, "device", None) or self.device_type
                    computes = getattr(self, "compute_type", None)
                    values["got"] = [str(device).lower()]
                    values["options"] = {device: {"compute_type": computes}} if computes else {}
                tell("session", **values)

    return __init__


def genai_asked(path: Any) -> list[list[Any]] | None:
    """Return the providers in the configuration of a model's folder, or of a `Config`."""
    if not isinstance(path, (str, os.PathLike)):
        return HELD.get(path)
    with open(os.path.join(os.fspath(path), "genai_config.json"), encoding="utf-8") as file:
        options = json.load(file)["model"]["decoder"].get("session_options", {})
    return [[name, {}] for each in options.get("provider_options", ()) for name in each]


AFTER: dict[str, Callable[[Any], None]] = {
    "onnxruntime": after_onnxruntime,
    COLLECTION: after_collection,
    "onnxruntime_genai.onnxruntime_genai": after_genai,
    "ctranslate2._ext": after_ctranslate2,
}
"""What is done after a module was run."""


class Loader:
    """Runs a module with its own loader, which gets its place back, and then what `AFTER` says."""

    def __init__(self, loader: Any, name: str) -> None:
        self.loader = loader
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """Return what the real loader has; who only looks at the module meets that one."""
        if name in {"loader", "name"}:  # a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.loader, name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; an import that fails is told too."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        try:
            self.loader.exec_module(module)
        except Exception as error:
            if self.name == "onnxruntime":
                values = {"name": self.name, "file": module.__file__}
                tell("library", executable=sys.executable, error=said(error), **values)
            raise
        with contextlib.suppress(Exception):
            AFTER[self.name](module)


def find_spec(finder: Any, name: str, path: Any, target: Any) -> ModuleSpec | None:
    """Return the spec from the finders after `finder`, with the loader exchanged.

    `finder` stays where it is: to take it away would make another thread, which is just going
    through `sys.meta_path`, miss the one after it.
    """
    finders: list[Any] = list(sys.meta_path)
    for other in finders[finders.index(finder) + 1 :] if finder in finders else ():
        find = getattr(other, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, target) if find else None
        if spec is not None:
            if spec.origin and hasattr(spec.loader, "exec_module"):
                loader: Any = Loader(spec.loader, name)
                spec.loader = loader
            return spec
    return None


Process.begin()
atexit.register(tell_last)
starting_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
