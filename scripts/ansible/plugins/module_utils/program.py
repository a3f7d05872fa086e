# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Run ortgpu-fix on this host: unpack what the controller sent, and hand on its JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import zipfile

OLDEST = (3, 10)
"""The oldest Python that the program runs on."""
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11", "python3.10")
"""Where to look for one if Ansible's own on this host is older."""
COMMON = {
    "python": {"type": "path", "required": True},
    "facts": {"type": "dict"},
    "bundle": {"type": "path"},
}
"""The parameters that both modules have."""


class ProgramError(Exception):
    """The program could not be run, or failed; `values` are those of the module's answer."""

    def __init__(self, message, **values):
        super().__init__(message)
        self.values = values


class Answer:
    """How a command of the program ended: its exit code and its JSON document."""

    def __init__(self, code, document):
        self.code = code
        self.document = document


class Program:
    """The program, unpacked into a private place, and the environment that it works on."""

    def __init__(self, module):
        """Unpack what the controller sent beside it, once for all modules of a task.

        Raises ProgramError where there is no Python that it runs on.
        """
        bundle = module.params["bundle"]
        if not bundle:
            raise ProgramError("this module needs its action plugin, which brings the program")
        if sys.platform != "linux":
            raise ProgramError(f"this module manages Linux hosts, and this one is {sys.platform}")
        self.module = module
        # Where another user becomes the user of the module, it cannot write beside the bundle.
        self.folder = os.path.join(module.tmpdir, "program")
        self.python = os.path.join(self.folder, "bin", "python")
        if not os.path.isdir(self.folder):
            self._unpack(bundle)
        facts = module.params["facts"]
        self.machine = ["--facts", self.write("facts.json", json.dumps(facts))] if facts else []
        """The flags that name the machine to plan for, where it is not this host."""

    def _unpack(self, bundle):
        """Make a virtual environment of its own with the program in it; by a rename, or not."""
        base = self._find_python()
        making = tempfile.mkdtemp(dir=self.module.tmpdir)
        argv = [base, "-I", "-m", "venv", "--without-pip", making]
        code, stdout, stderr = self.module.run_command(argv)
        if code != 0:
            said = (stdout + stderr).strip().splitlines() or ["?"]
            raise ProgramError(
                f"{base} cannot make a virtual environment (module venv): {said[-1]}"
            )
        lib = os.path.join(making, "lib")
        [version] = os.listdir(lib)
        site = os.path.join(lib, version, "site-packages")
        try:
            with zipfile.ZipFile(bundle) as zipped:
                zipped.extractall(site)
        except OSError as error:
            raise ProgramError(
                f"ortgpu-fix cannot be unpacked into {making}: {error.strerror or error}"
            ) from error
        self._keep_if_it_runs(os.path.join(site, "bin", "uv"))
        os.rename(making, self.folder)

    def _keep_if_it_runs(self, uv):
        """Remove the controller's uv where this host has another processor: it may have its own."""
        if os.path.exists(uv):
            os.chmod(uv, 0o700)
            try:
                code = self.module.run_command([uv, "--version"], handle_exceptions=False)[0]
            except OSError:  # a program of another processor
                code = None
            if code != 0:
                os.remove(uv)

    def _find_python(self):
        """Return Ansible's own Python on this host, or a newer one that works; raise where none."""
        if sys.version_info[:2] >= OLDEST:
            return sys.executable
        for found in filter(None, map(shutil.which, NEWER)):
            if self.module.run_command([found, "-I", "-c", ""])[0] == 0:
                return found
        raise ProgramError(
            "ortgpu-fix needs Python {}.{} or newer on this host; {} is {}.{}, and no newer one is "
            "on the PATH".format(*OLDEST, sys.executable, *sys.version_info[:2])
        )

    def write(self, name, text):
        """Write a file beside the program and return its path."""
        path = os.path.join(self.module.tmpdir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def text(self, *arguments):
        """Return what a command of the program says to people."""
        return self._run(*arguments)[1]

    def _run(self, *arguments, **environ):
        where = ["--python", self.module.params["python"]]
        argv = [self.python, "-I", "-m", "ortgpu_fix", *arguments, *where]
        return self.module.run_command(argv, environ_update=environ)

    def run(self, *arguments, **environ):
        """Run a command of the program and return its Answer.

        `environ` is set besides. Raises ProgramError with the program's own sentence where it says
        that it failed, and with another where it said nothing.
        """
        code, stdout, stderr = self._run(*arguments, "--json", **environ)
        if code < 0:
            raise ProgramError(
                f"ortgpu-fix was ended by signal {-code}; the next run puts back what it left",
                exit_code=code,
                code="killed",
            )
        try:
            document = json.loads(stdout)
        except ValueError:
            said = (stderr or stdout).strip().splitlines() or ["nothing"]
            raise ProgramError(
                f"ortgpu-fix ended with exit code {code} and said: {said[-1]}", exit_code=code
            ) from None
        error = document.get("error")
        if error:
            message = " ".join(filter(None, (_sentence(error["message"]), error.get("hint"))))
            raise ProgramError(message, exit_code=code, code=error["code"])
        return Answer(code, document)


def _sentence(text):
    return text if text.endswith((".", "!", "?", ":")) else text + "."


def check_flags(flags):
    """Raise ProgramError for an address of an index: every user of a host can read its processes."""
    if any(flag.partition("=")[0].endswith("index-url") for flag in flags):
        raise ProgramError("an index goes into index_url, torch_index_url or tensorrt_index_url")


def fail(module, error, **values):
    """End the module with the words of a ProgramError."""
    module.fail_json(msg=str(error), **dict(values, **error.values))
