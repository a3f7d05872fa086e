"""Record locks of real bumps for `tests/cases/bumps`, each by the tool whose format it is.

    python scripts/record_bumps.py [--only NAME …]

uv writes `requirements.txt`, `uv.lock` and `pylock.toml`, Poetry and PDM theirs; PDM from stand-ins
of the wheels that uv found, for it downloads gigabytes to read what they require. What nobody reads
is cut away: files, hashes and addresses. The release that vanished from the index cannot be locked
any more: its lock is that of the release after it, with its version put in.

What `diff` has to say of them stands in `tests/lock/test_bumps.py`, written by a person. Needs uv
and a network.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(Path(__file__).resolve().parent))

from support.local_index import LocalIndex, make_wheel
from support.pythons import find_python
from support.standin_wheels import find_uv

CASES = Path(__file__).resolve().parents[1] / "tests" / "cases" / "bumps"
PROJECT = """\
[project]
name = "app"
version = "0"
requires-python = "==3.11.*"
dependencies = [{wanted}]

[tool.uv]
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]

[tool.pdm]
distribution = false

[[tool.pdm.source]]
name = "pypi"
url = "{stand_ins}"
verify_ssl = false

[tool.poetry]
package-mode = false

[[tool.poetry.source]]
name = "here"
url = "https://pypi.org/simple"
priority = "primary"
"""
GPU = "onnxruntime-gpu"
WHEELS = f"{GPU}[cuda,cudnn]"
BUMPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cuda-13": (
        (f"{WHEELS}==1.26.0", "nvidia-cudnn-cu12==9.10.2.21"),
        (f"{WHEELS}==1.29.0", "nvidia-cudnn-cu13==9.23.2.1"),
    ),
    "vanished": ((f"{GPU}==1.20.2",), (f"{GPU}==1.26.0",)),
    "torch": (("torch==2.7.1", f"{GPU}==1.26.0"), ("torch==2.12.0", f"{GPU}==1.29.0")),
    "cudnn": (
        (f"{GPU}==1.26.0", "nvidia-cudnn-cu12==9.10.2.21"),
        (f"{GPU}==1.26.0", "nvidia-cudnn-cu12==9.23.2.1"),
    ),
}
VANISHED = {"vanished": ("1.20.2", "1.20.1")}
"""What is put in its place in the old state."""
_FILES = re.compile(r"^(?:files|wheels|sdist) = (?:\[\n(?:.*\n)*?\]|\[.*\]|\{.*\})\n", re.MULTILINE)
_ORIGIN = re.compile(
    r"^content[-_]hash = .*\n|^source = \{.*\n|^index = .*\n|^\[package\.source\]\n(?:\w.*\n)+",
    re.MULTILINE,
)


def main() -> int:
    """Write all locks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(BUMPS))
    for name in parser.parse_args().only:
        for state, wanted in zip(("old", "new"), BUMPS[name], strict=True):
            with tempfile.TemporaryDirectory() as folder:
                _lock(Path(folder), wanted)
                put = VANISHED.get(name) if state == "old" else None
                _keep(Path(folder), CASES / name / state, put)
    return 0


def _lock(folder: Path, wanted: tuple[str, ...]) -> None:
    """Let each tool write its lock."""
    index = LocalIndex(folder / "wheels")
    lines = ", ".join(f'"{each}"' for each in wanted)
    text = PROJECT.format(wanted=lines, stand_ins=index.url)
    (folder / "pyproject.toml").write_text(text)
    uv, python = find_uv(), str(find_python("3.11"))
    pdm = (uv, "tool", "run", "--quiet", "--from", "pdm[locked]", "pdm")
    compiled = (uv, "pip", "compile", "-q", "--no-header", "-p", python, "pyproject.toml", "-o")
    fresh = {**os.environ, "PDM_CACHE_DIR": str(folder / "cache")}  # it knows the real wheels
    run = partial(subprocess.run, cwd=folder, check=True, env=fresh)
    run([uv, "lock", "--quiet", "--python", python])
    run([*compiled, "requirements.txt"])
    run([*compiled, "pylock.toml"])
    run([uv, "tool", "run", "--quiet", "poetry", "lock", "--quiet"])
    _make_stand_ins(tomllib.loads((folder / "uv.lock").read_text()), folder / "wheels")
    with index:
        run([*pdm, "use", "--quiet", "-f", python])
        run([*pdm, "lock", "--quiet", "--platform", "linux"])


def _make_stand_ins(lock: dict[str, Any], folder: Path) -> None:
    """Make a wheel of each package of a `uv.lock`, which requires what that says."""
    for row in lock["package"]:
        groups = {"": row.get("dependencies", []), **row.get("optional-dependencies", {})}
        requires = [
            f"{each['name']}[{','.join(each.get('extra', ()))}]"
            + (f" ; extra == '{extra}'" if extra else "")
            for extra, dependencies in groups.items()
            for each in dependencies
        ]
        make_wheel(
            folder, row["name"], row["version"], requires=requires, extras=filter(None, groups)
        )


def _keep(folder: Path, to: Path, versions: tuple[str, str] | None) -> None:
    """Keep the locks without their files; of two `versions` the second for the first."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in ("requirements.txt", "uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"):
        text = _ORIGIN.sub("", _FILES.sub("", (folder / name).read_text("utf-8")))
        if versions:
            text = text.replace(*versions)
        (to / name).write_text(text, "utf-8")
        print(to / name, len(text))


if __name__ == "__main__":
    sys.exit(main())
