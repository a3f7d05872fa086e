"""Run pytest for each line of the input, in a fork of a process that has all packages in memory.

A line is a JSON list: a file for what is printed, and the words for pytest. Prints the number of
the process, which leads a group of its own, then how it ended.
"""

from __future__ import annotations

import json
import os
import sys

import hypothesis.strategies
import packaging.requirements
import packaging.tags
import pytest
import requests

READY = (hypothesis, packaging, requests)
"""What takes long to import, and is nothing that is mutated."""


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        output, *words = json.loads(line)
        child = os.fork()
        if not child:
            os.setsid()
            for number, path, how in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_WRONLY)):
                os.dup2(os.open(path, how | os.O_CREAT | os.O_TRUNC if number else how), number)
            os.dup2(1, 2)
            code = pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *words])
            sys.stdout.flush()
            os._exit(code)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
