"""Read the wheels again that `data/applications.toml` was read from.

    python scripts/matrix/check_applications.py [NAME...]

Downloads the oldest and the newest release that each row names, without what they require, and
looks for the row's `code` in its `file`. Prints what is not so, and newer releases of which a row
says nothing; the exit code is 1 where a row is wrong.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).resolve().parents[2] / "data" / "applications.toml"
Row = dict[str, str]
PIP = (sys.executable, "-m", "pip")


def rows(*names: str) -> list[Row]:
    """Return the rows of these distributions, of all where none is named."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))["application"]
    return [row for row in table if not names or row["name"] in names]


def code_is_there(row: Row, version: str) -> bool:
    """Tell whether `version` has the row's code; raises CalledProcessError where pip fails."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
        # A wheel for another Python has the same Python files.
        words += ["--ignore-requires-python", "--python-version=3.11"]
        subprocess.run([*PIP, *words, f"{row['name']}=={version}"], check=True, timeout=600)
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return row["code"] in archive.read(row["file"]).decode("utf-8")


def runtime_is_there(row: Row, version: str) -> bool:
    """Tell whether a wheel of `version`, or one that it requires, has the row's own onnxruntime."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["download", "--quiet", "--only-binary=:all:", "--dest", folder]
        words += ["--ignore-requires-python", "--python-version=3.11"]
        subprocess.run([*PIP, *words, f"{row['name']}=={version}"], check=True, timeout=600)
        return any(
            row["runtime"] in zipfile.ZipFile(wheel).namelist()
            for wheel in Path(folder).glob("*.whl")
        )


def newest(name: str) -> str | None:
    """Return the newest release that the index has, or None where it does not tell."""
    words = [*PIP, "index", "versions", name]
    told = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600).stdout
    found = re.search(r"Available versions: ([^,\s]+)", told)
    return found[1] if found else None


def problems(row: Row) -> Iterator[str]:
    """Yield what a row says that its wheels do not."""
    for version in sorted({row["since"], row["read"]}):
        if not code_is_there(row, version):
            yield f"{row['name']} {version}: {row['file']} has no {row['code']}"
        if "runtime" in row and not runtime_is_there(row, version):
            yield f"{row['name']} {version}: there is no {row['runtime']}"


def main() -> int:
    """Look at the rows that are named, or at all."""
    wrong = 0
    chosen = rows(*sys.argv[1:])
    for row in chosen:
        for line in problems(row):
            print(line)
            wrong = 1
    for name in sorted({row["name"] for row in chosen}):
        last = max((row["read"] for row in chosen if row["name"] == name), key=Version)
        known = newest(name)
        if known is not None and Version(known) > Version(last):
            print(f"{name} {known} is newer than {last}, which was read")
    print(f"{len(chosen)} rows")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
