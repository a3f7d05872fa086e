"""A checkout full of what would run if anybody ran it: each writes its name into a file.

Modules of every name that Python or this program imports, programs of every name that it starts,
what tools of a project read, a git repository whose configuration names programs, and environments.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ortgpu_fix.data_files import example_machine

MODULES = sys.stdlib_module_names | {
    *("pip", "uv", "setuptools", "requests", "packaging", "rich", "tomli", "tomlkit", "shtab"),
    *("pynvml", "onnxruntime", "numpy", "ortgpu_fix", "sitecustomize", "usercustomize", "setup"),
}
PROGRAMS = (
    *("uv", "git", "keyring", "nvidia-smi", "nvcc", "ldconfig", "python", "python3", "py", "pip"),
    *("poetry", "pdm", "pipenv", "pixi", "conda", "sh", "bash", "true"),
)
ENVIRONMENTS = (".venv", "venv", ".pixi/envs/default", "env")
HOOKS = ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc")
LOCK = "onnxruntime-gpu==1.26.0\nnvidia-cudnn-cu12==9.10.2.21\n"


class Checkout:
    """The folder, and what ran of it."""

    def __init__(self, folder: Path, ran: Path) -> None:
        self.folder, self._ran = folder, ran
        self.evil = f"evil$(/usr/bin/touch {ran}-by-a-shell)"
        """As a name, a path or a text; it would be run where a shell reads it unquoted."""

    def ran(self) -> list[str]:
        """Return the names of what ran."""
        beside = sorted(path.name for path in self._ran.parent.glob(f"{self._ran.name}-*"))
        return [*(self._ran.read_text().splitlines() if self._ran.exists() else ()), *beside]

    def program(self, path: str) -> Path:
        """Plant a program, and return it."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\necho program {path} >> {self._ran}\nexit 3\n")
        file.chmod(0o755)
        return file

    def module(self, path: str) -> None:
        """Plant a module."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"with open({str(self._ran)!r}, 'a') as f: f.write('module {path}\\n')\n")


def plant(folder: Path, ran: Path) -> Checkout:
    """Fill the empty `folder`; what runs of it writes to `ran`."""
    made = Checkout(folder, ran)
    for name in MODULES:
        made.module(f"{name}.py")
    for name in PROGRAMS:
        made.program(name)
    for name in ENVIRONMENTS:
        _environment(made, name)
    _project(made)
    _inputs(made)
    _repository(made)
    return made


def _environment(made: Checkout, name: str) -> None:
    for program in ("python", "python3", "uv", "pip", "activate"):
        made.program(f"{name}/bin/{program}")
    made.program(f"{name}/etc/conda/activate.d/a.sh")
    made.module(f"{name}/lib/python3.11/site-packages/sitecustomize.py")
    (made.folder / name / "pyvenv.cfg").write_text("home = .\nversion = 3.11.0\n")
    (made.folder / name / "conda-meta").mkdir()
    (made.folder / name / "conda-meta" / "history").write_text("")


def _project(made: Checkout) -> None:
    """Write what tools of a project read; uv's settings name an index where nobody listens."""
    texts = {
        "pyproject.toml": "[project]\nname = 'a'\nversion = '1'\ndependencies = ['onnxruntime']\n"
        "[build-system]\nrequires = []\nbuild-backend = 'setup'\nbackend-path = ['.']\n"
        "[tool.uv]\nindex-url = 'http://127.0.0.1:9/'\nkeyring-provider = 'subprocess'\n"
        "[tool.poetry.requires-plugins]\nb = {path = '.'}\n",
        "uv.toml": "index-url = 'http://127.0.0.1:9/'\nkeyring-provider = 'subprocess'\n",
        "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/\nkeyring-provider = subprocess\n",
        "pixi.toml": "[project]\nname = 'a'\n[activation]\nscripts = ['sh']\n",
        "environment.yml": "dependencies:\n- pip:\n  - -e .\n",
        "Pipfile": "[packages]\nonnxruntime = '*'\n",
        "poetry.toml": "[virtualenvs]\nin-project = true\n",
        ".pdm-python": str(made.folder / "python"),
        ".python-version": str(made.folder / "python"),
        ".env": "UV_PYTHON=./python\n",
    }
    for name, text in texts.items():
        (made.folder / name).write_text(text)


def _inputs(made: Checkout) -> None:
    """Write what commands are given to read."""
    facts: Any = example_machine()
    facts["python"] |= {"executable": f"/opt/{made.evil}/bin/python"}
    facts["packages"].append({"name": made.evil, "version": "1", "requires": ["onnxruntime<1.2"]})
    places = f"git+ext::{made.folder}/sh#egg=b\n./\n./{made.evil}/b-1-py3-none-any.whl\n"
    texts = {
        "facts.json": json.dumps(facts),
        "gpu.txt": f"--index-url http://127.0.0.1:9/\n{LOCK}-e git+ext::{made.folder}/sh#egg=b\n",
        "r.txt": f"onnxruntime-gpu\n{places}-e .\n",
        "log.txt": f"OSError: libcudnn.so.9: cannot open shared object file\n  {made.evil}\n",
        "smi.txt": f"| NVIDIA-SMI 535.104.12  Driver Version: 535.104.12  {made.evil} |\n",
    }
    for name, text in texts.items():
        (made.folder / name).write_text(text)


def _repository(made: Checkout) -> None:
    """Make it a clone that lacks a file; whatever git may be told to run, it is told."""
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    (made.folder / "lost.txt").write_text(f"{LOCK}b==2\n")
    (made.folder / ".gitattributes").write_text("*.txt diff=evil filter=evil\n")

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=made.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", "gpu.txt", "lost.txt", ".gitattributes")
    git(*who, "commit", "-q", "-m", "one")
    blob = git("rev-parse", "HEAD:lost.txt")
    (made.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    program = str(made.folder / "sh")
    settings = {
        **dict.fromkeys(
            ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor"), program
        ),
        **dict.fromkeys(("core.gitProxy", "core.askPass", "credential.helper"), program),
        **dict.fromkeys(
            ("diff.evil.textconv", "diff.external", "core.alternateRefsCommand"), program
        ),
        **dict.fromkeys(("filter.evil.smudge", "filter.evil.process", "gpg.program"), program),
        **dict.fromkeys(("alias.cat-file", "uploadpack.packObjectsHook"), f"!{program}"),
        "core.hooksPath": str(made.folder / "hooks"),
        "remote.origin.url": f"ext::{program}",
        "remote.origin.uploadpack": program,
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }
    for name in HOOKS:
        made.program(f"hooks/{name}")
    lines = "".join(
        f'[{section.rpartition(".")[0]} "{section.rpartition(".")[2]}"]\n{key} = {value}\n'
        if "." in section
        else f"[{section}]\n{key} = {value}\n"
        for name, value in settings.items()
        for section, _, key in [name.rpartition(".")]
    )
    with (made.folder / ".git/config").open("a") as file:  # `git config` would start what it sets
        file.write(lines)
