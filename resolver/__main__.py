"""The command line's entry: the only place that catches errors and picks the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .errors import Error
from .signals import terminating

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises, never shows a traceback."""
    from .cli import parse, run_command  # noqa: PLC0415 - so that even their failure is caught

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with terminating():  # SIGTERM too leaves nothing behind
            code = run_command(parse(arguments), os.environ)
        sys.stdout.flush()  # so that a reader that is gone is met here
        return code  # noqa: TRY300 - the flush is what is tried
    except Error as error:
        return _report(error, error, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe went away: `ortgpu-fix matrix | head`
        # What is still in the buffer goes nowhere, without a complaint at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - a defect must not show as a traceback
        return _report(
            Error("internal", cause=f"{type(error).__name__}: {error}"), error, arguments
        )


def _report(error: Error, behind: Exception, arguments: Sequence[str]) -> int:
    """Print `error`, and what is `behind` it if the user debugs; return its exit code."""
    import traceback  # noqa: PLC0415 - all this takes a while to import

    from . import console  # noqa: PLC0415
    from .data_files import load_texts  # noqa: PLC0415

    if console.debugging():
        traceback.print_exception(behind)
    as_json = "--json" in arguments
    # Programs get English whatever the locale, as in every other document.
    texts = load_texts("en" if as_json else console.language(os.environ))
    message = texts.error(error)
    console.print_error(message, texts, as_json=as_json)
    return message.exit_code


if __name__ == "__main__":
    sys.exit(main())
