"""Write the site: look up, read, and ask without installing; static files, for any server.

    python3 scripts/site.py OUT
    python3 -m http.server -d OUT

Needs Python 3.10 or newer, a package index, and npm, which fetches Pyodide: the Python that runs
this program's own wheel in the browser. `--pages` leaves that out, and needs no npm.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from support.first_steps import CannotSetUpError, install, make_venv, run_where_it_can_write

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = (
    "pyodide-314.0.7.tgz",
    "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
)
"""The package of npm, and its sha256."""
TAKEN = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"
PAGES = ROOT / "scripts" / "site" / "site_pages.py"
LARGEST = 15_100_000
"""So many bytes may be loaded for the first answer."""


def main() -> int:
    """Make an environment with what is needed, and write the site with it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("out", type=Path, help="a folder; what an earlier run wrote there goes")
    parser.add_argument("--pages", action="store_true", help="without what answers questions")
    arguments = parser.parse_args()
    run_where_it_can_write(Path(__file__))
    out = arguments.out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / "ort").is_dir():
        raise CannotSetUpError(f"{out} holds other files than a site: name another folder")
    shutil.rmtree(out, ignore_errors=True)
    python = make_venv(ROOT / ".venv-site")
    install(python, "--upgrade", "pip>=25.1")
    install(python, ROOT, f"--group={ROOT / 'pyproject.toml'}:site")
    call(python, PAGES, out)
    if not arguments.pages:
        write_program(python, out / "python")
    return 0


def call(*words: str | Path) -> None:
    """Run a program; end with its exit code where it fails."""
    code = subprocess.run([str(word) for word in words], check=False).returncode
    if code:
        sys.exit(code)


def write_program(python: Path, folder: Path) -> None:
    """Write what runs in the browser: Pyodide, the wheel as users get it, and `packaging`."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as work:
        write_pyodide(Path(work), folder)
        wheels = Path(work, "wheels")
        call(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", wheels, ROOT, "packaging")
        for wheel in sorted(wheels.glob("*.whl")):
            shutil.copy(wheel, folder)
    shutil.copy(ROOT / "scripts" / "site" / "answer.py", folder)
    names = sorted(each.name for each in folder.glob("*.whl"))
    fetched = (LOCK, "pyodide.asm.wasm", "python_stdlib.zip", "answer.py", *names)
    size = sum((folder / name).stat().st_size for name in fetched)
    (folder / "files.json").write_text(json.dumps({"wheels": names, "bytes": size}), "utf-8")
    size = sum(each.stat().st_size for each in folder.iterdir())
    print(f"the first answer loads {size:,} bytes")
    if size > LARGEST:
        sys.exit(f"that is more than {LARGEST:,}")


def write_pyodide(work: Path, folder: Path) -> None:
    """Write the files of Pyodide that a page loads, with a lock that names no other package."""
    name, wanted = PYODIDE
    npm = shutil.which("npm")
    if npm is None:
        raise CannotSetUpError("npm is needed to fetch Pyodide: install Node.js, or add --pages")
    package = "pyodide@" + name.removeprefix("pyodide-").removesuffix(".tgz")
    call(npm, "pack", package, "--silent", "--pack-destination", work)
    content = (work / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != wanted:
        raise CannotSetUpError(f"{name} is not the file that this script knows")
    with tarfile.open(work / name) as archive:
        for taken in (*TAKEN, LOCK):
            member = archive.extractfile(f"package/{taken}")
            if member is None:
                raise CannotSetUpError(f"{name} has no {taken}")
            (folder / taken).write_bytes(member.read())
    lock = json.loads((folder / LOCK).read_text("utf-8"))
    (folder / LOCK).write_text(json.dumps({**lock, "packages": {}}), "utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotSetUpError as error:
        sys.exit(str(error))
