"""The command in the process of the tests: all that it shows, without the start of a Python."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from documents import check_output

from ortgpu_fix.__main__ import main


def run_here(
    *argv: str, cwd: Path, env: Mapping[str, str], text_in: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `ortgpu-fix ARGV` in the folder `cwd` with the environment `env`.

    Its JSON is held against the schema of its kind.
    """
    came = io.TextIOWrapper(io.BytesIO(text_in.encode()), encoding="utf-8")
    said, complained = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    before = Path.cwd()
    with contextlib.ExitStack() as stack:
        stack.callback(os.chdir, before)
        os.chdir(cwd)
        stack.enter_context(mock.patch.dict(os.environ, env, clear=True))
        stack.enter_context(mock.patch.object(tempfile, "tempdir", None))  # TMPDIR is asked again
        stack.enter_context(mock.patch.object(sys, "stdin", came))
        stack.enter_context(contextlib.redirect_stdout(said))
        stack.enter_context(contextlib.redirect_stderr(complained))
        try:
            code = main(argv)
        except SystemExit as end:  # `--help` and `--version`
            code = int(end.code or 0)
    for stream in (said, complained):
        stream.seek(0)
    done = subprocess.CompletedProcess(argv, code, said.read(), complained.read())
    if "--json" in argv or "facts" in argv:
        check_output(done.stdout)
    return done
