"""Wait for the libraries that make sessions; then stand aside for the user's own sitecustomize.

`PYTHONPATH` has our folder in front, so every Python of the user's program begins with this file.
It takes the folder out of `sys.path` and imports the next `sitecustomize`, or fails to as before.
`watch` does the work, and is read, with the modules here, only when one of those libraries is
imported. What this Python starts is reported: where it has another PYTHONPATH, nobody looks into
it. The standard library alone; every Python understands what is here, from 3.8 on it does
something.
"""

# mypy: ignore-errors
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
WATCHED = {
    "onnxruntime",
    "onnxruntime.capi.onnxruntime_inference_collection",
    "onnxruntime_genai.onnxruntime_genai",
    "ctranslate2._ext",
}
NAME = "_ortgpu_fix_watch"
STARTS = {"subprocess.Popen": (0, 1, 3), "os.exec": (0, 1, 2), "os.posix_spawn": (0, 1, 2)}
STARTS["os.spawn"] = (1, 2, 3)
"""Where in an event the program, its words and its environment stand.

Source: https://docs.python.org/3/library/audit_events.html
"""
REPORTED = set()
"""The programs that were reported, by their first words."""
MOST_REPORTED = 500


class Finder:
    """Finds nothing but these modules, and those through the finders after this one, once."""

    def __init__(self):
        self.waiting = set(WATCHED)

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a watched module with a loader that does more than run it."""
        if name in self.waiting:
            try:
                return watch().find_spec(self, name, path, target)
            except Exception:  # noqa: BLE001 - nothing here may end an import
                self.waiting.clear()
        return None


def watch():
    """Return the module that does the work; it and those beside it are a package of this name."""
    if NAME not in sys.modules:
        package = type(sys)(NAME)
        package.__path__ = [FOLDER]  # before another thread can find it
        sys.modules[NAME] = package
    from importlib import import_module

    return import_module(NAME + ".watch")


def report_process():
    """Leave a file that says which Python this is; without `json`, which takes long to import."""
    text = '{"event": "process", "pid": %d, "parent": %d, "python": "%s", "program": "%s"}\n'
    python = ".".join(str(number) for number in sys.version_info[:3])
    write(text % (os.getpid(), os.getppid(), python, plain(program())))


def plain(word):
    """Return a word as JSON has it within quotes, without what is no letter."""
    shown = "".join(letter for letter in word if letter >= " ")
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def write(text):
    """Append to this process's file."""
    data = text.encode("utf-8", "replace")
    name = os.path.join(os.path.dirname(FOLDER), "start-%d.jsonl" % os.getpid())
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def heard(event, arguments):
    """Report a program that is started where our folder may not be read: no event may fail."""
    if event in STARTS:
        try:  # noqa: SIM105 - contextlib would have to be imported
            report_start(*(arguments[at] for at in STARTS[event]))
        except Exception:  # noqa: BLE001, S110
            pass


def report_start(program, words, environ):
    """Report a program that this Python starts, and whether our folder is in its PYTHONPATH."""
    words = [words] if isinstance(words, (str, bytes)) else list(words)
    words = [os.fsdecode(word) for word in [program or words[0], *words[1:]]]
    environ = os.environ if environ is None else environ
    places = environ.get("PYTHONPATH") or environ.get(b"PYTHONPATH") or ""
    hooked = FOLDER in os.fsdecode(places).split(os.pathsep)
    said = '", "'.join(plain(word) for word in words[:8])
    if said not in REPORTED and len(REPORTED) < MOST_REPORTED:
        REPORTED.add(said)
        text = '{"event": "start", "pid": %d, "hooked": %s, "words": ["%s"]}\n'
        write(text % (os.getpid(), str(hooked).lower(), said))


def program():
    """Return what this Python runs, without its arguments: `app.py`, `-m app`, `-c`."""
    words = iter(getattr(sys, "orig_argv", ["", ""])[1:])
    for word in words:
        if word in {"-W", "-X", "--check-hash-based-pycs"}:
            next(words, "")
        elif word == "-m":
            return "-m " + next(words, "")
        elif word == "-c" or not word.startswith("-"):
            return os.path.basename(word)
    return ""


if sys.version_info >= (3, 8):
    sys.meta_path.insert(0, Finder())
    sys.addaudithook(heard)
    try:  # noqa: SIM105 - contextlib would have to be imported
        report_process()
    except Exception:  # noqa: BLE001, S110 - the starter is gone
        pass
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != FOLDER or not place]
sys.modules.pop("sitecustomize", None)
__import__("sitecustomize")  # the user's; where there is none it fails as before
