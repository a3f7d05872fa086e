"""The command line's entry: the only place that catches errors and picks the exit code."""

import os
import sys

if __name__ == "__main__" and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - nothing is imported yet
    del sys.path[0]  # `python -m` puts the current folder first, whatever `json.py` lies there

import atexit
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator, Sequence

from .cli.streams import open_streams
from .errors import Error
from .utils.signals import signals_as_interrupt, signals_held

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""
_GARBAGE = 100_000
"""New objects after which garbage is looked for; with the 700 of Python it is a tenth of a plan."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises, never shows a traceback."""
    gc.set_threshold(_GARBAGE)
    atexit.register(gc.freeze)  # what ends with the process is not looked through once more
    from .cli.parser import parse, run_command  # noqa: PLC0415 - so that even their failure is caught

    arguments = list(sys.argv[1:] if argv is None else argv)
    with signals_as_interrupt(), _thread_failures_shown():  # SIGTERM too leaves nothing behind
        return _run(arguments, lambda: run_command(parse(arguments), os.environ))


@contextlib.contextmanager
def _thread_failures_shown() -> Iterator[None]:
    """Show what ends a thread to who debugs alone; who waits for its answer reports the rest."""
    before = threading.excepthook

    def show(failed: threading.ExceptHookArgs) -> None:
        from .cli import console  # noqa: PLC0415

        if failed.exc_value is not None and console.is_debugging(os.environ):
            console.print_traceback(failed.exc_value)

    threading.excepthook = show
    try:
        yield
    finally:
        threading.excepthook = before


def _run(arguments: Sequence[str], command: Callable[[], int]) -> int:
    """Run `command` and return its exit code, or that of the error that ends it."""
    try:
        open_streams()
        return command()
    except Error as error:
        return _report(error, error, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe went away: `ortgpu-fix matrix | head`
        from .cli.console import detach_stdout  # noqa: PLC0415

        detach_stdout()
        return 0
    except Exception as error:  # noqa: BLE001 - a defect must not show as a traceback
        return _report(_error_of(error), error, arguments)


def _error_of(error: Exception) -> Error:
    """Return what a user is shown of what no command expects."""
    if isinstance(error, OSError) and error.filename:
        return Error("path-forbidden", path=error.filename, cause=error.strerror)
    return Error("internal", cause=f"{type(error).__name__}: {error}")


def _report(error: Error, behind: Exception, arguments: Sequence[str]) -> int:
    """Print `error`, and what is `behind` it if the user debugs; return its exit code."""
    with signals_held():
        return _print(error, behind, arguments)


def _print(error: Error, behind: Exception, arguments: Sequence[str]) -> int:
    """Print `error`, and what is `behind` it if the user debugs; return its exit code."""
    from .cli import console  # noqa: PLC0415 - all this takes a while to import
    from .messages.catalog import Language, load_texts  # noqa: PLC0415

    if console.is_debugging(os.environ):
        console.print_traceback(behind)
    as_json = "--json" in arguments and error.code != "output-unwritable"
    # Programs get English whatever the locale, as in every other document.
    language: Language = "en" if as_json else console.user_language(os.environ)
    texts = load_texts(language)
    with contextlib.suppress(Exception):  # what fails may be the command line, or a part of this
        from .cli.command_line import texts_for  # noqa: PLC0415
        from .cli.parser import help_of, parse  # noqa: PLC0415

        texts = texts._replace(help=help_of(arguments))
        texts = texts_for(parse(arguments).options, language)._replace(help=texts.help)
    message = texts.error(error)
    try:
        console.print_error(message, texts, as_json=as_json)
    except (Error, OSError):  # stdout does not take the document
        console.detach_stdout()
        with contextlib.suppress(OSError):  # nor does stderr: the exit code is what is left
            console.print_error(message, texts, as_json=False)
    try:
        sys.stdout.flush()
    except OSError:  # Python would try once more, and end with a code of its own
        console.detach_stdout()
    return message.exit_code


if __name__ == "__main__":
    sys.exit(main())
