"""Apply the plans for twelve environments of PyPI for real, and undo each to the byte.

    python scripts/prove/resolved_applied.py [--count 12] [--work DIR] [--cache DIR] [--results DIR]

The environments are small ones of tests/cases/resolved.json.xz, for a driver 580 and an RTX 4090.
Each is installed by uv at the versions that are kept, mended by `--apply`, looked at by `--check`
and by `uv pip check`, which must miss nothing that it did not miss before, and undone: every file
is as it was. Needs Linux, uv, Python 3.11 to 3.13 and a network, and downloads about 2 GB. What it
came to is put into the dated result of scripts/prove/resolved.py; the exit code is 1 where
something is not as it must be.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from judged_sets import Resolved, load

from prove.outcomes import RESULTS, known, write
from support.prover import files_of
from support.pythons import find_python
from support.standin_wheels import clean_environment, find_uv

SETS = """
onnx-asr onnxruntime protobuf<5 on 3.12
magika numpy<2 on 3.12
rtmlib onnxruntime onnxruntime-extensions on 3.11
onnxruntime==1.24.3 protobuf<5 on 3.11
nudenet on 3.12
onnxruntime-genai numpy<2 on 3.12
onnxruntime==1.22.1 onnxruntime-extensions on 3.13
rapidocr-onnxruntime on 3.13
onnxruntime-gpu==1.19.2 numpy<2 on 3.12
onnxruntime-genai-cuda protobuf<5 on 3.12
rtmlib onnxruntime on 3.12
rapidocr-onnxruntime numpy<2 on 3.12
""".strip().splitlines()
MACHINE = ["--driver", "580.95.05", "--gpu", "8.9"]


class Applied:
    """An environment that is made, mended and undone."""

    def __init__(self, one: Resolved, folder: Path, cache: Path) -> None:
        self.one, self.folder, self.venv = one, folder, folder / "venv"
        self.environ = {**clean_environment(), "UV_CACHE_DIR": str(cache), "HOME": str(folder)}

    def problems(self) -> Iterator[str]:
        """Yield what is not as it must be."""
        uv, python = [find_uv()], str(self.venv / "bin" / "python")
        pins = [f"{row['name']}=={row['version']}" for row in self.one.rows]
        base = str(find_python(self.one.python) or self.one.python)
        self.call([*uv, "venv", "-q", "--no-config", "-p", base, str(self.venv)])
        install = [*uv, "pip", "install", "-q", "--no-config", "--no-deps", "-p", python]
        code, said = self.call([*install, "--only-binary", ":all:", *pins])
        if code:
            yield f"uv does not install it: {said}"
            return
        [site] = (self.venv / "lib").glob("python*/site-packages")
        before, missed = files_of(site), self.missed()
        ours = [sys.executable, "-m", "ortgpu_fix", "--python", python]
        for argv in ([*MACHINE, "--apply", "--yes"], [*MACHINE, "--check"]):
            code, said = self.call([*ours, *argv])
            if code:
                yield f"{' '.join(argv)} ends with {code}: {said}"
        yield from (f"newly missed: {line}" for line in sorted(self.missed() - missed))
        if files_of(site) == before:
            yield "nothing was changed"
        code, said = self.call([*ours, "undo", "--yes"])
        if code:
            yield f"undo ends with {code}: {said}"
        then = files_of(site)
        yield from (
            f"not as it was: {name}"
            for name in sorted(then.keys() | before)
            if then.get(name) != before.get(name)
        )

    def missed(self) -> set[str]:
        """Return what `uv pip check` says."""
        argv = [find_uv(), "pip", "check", "--no-config", "-p", str(self.venv / "bin" / "python")]
        return {line for line in self.call(argv)[1].splitlines() if " requires " in line}

    def call(self, argv: list[str]) -> tuple[int, str]:
        """Return the exit code of a command, and what it prints."""
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def main() -> int:
    """Make, mend and undo them, one at a time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=len(SETS))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "uv")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    sets = {one.name: one for one in load()}
    applied: dict[str, list[str]] = {}
    for name in SETS[: given.count]:
        folder = Path(tempfile.mkdtemp(dir=given.work))
        applied[name] = [*Applied(sets[name], folder, given.cache).problems()]
        shutil.rmtree(folder)
        print(name, *(applied[name] or ["as it must be"]), sep="\n  ", flush=True)
        write("resolved", {**known("resolved", given.results), "applied": applied}, given.results)
    return int(any(applied.values()))


if __name__ == "__main__":
    sys.exit(main())
