"""Write the TOML tables of `data/` in a form that loads ten times as fast: `compiled.jsonl`.

    python scripts/matrix/compile_tables.py FOLDER

writes FOLDER/compiled.jsonl, from its tables and those of the guests beside it.

The TOML files are what people read and edit; `compiled.jsonl` is what the program reads, one table
at a time. The repository does not have it: it is made when the wheel is built (`hatch_build.py`).
The texts and the help of a guest lie in its directory, and are put into the tables of their names.
The first line names the tables with the hashes of their TOML files; after it each table has a line,
in the same order.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
GUESTS = ROOT / "resolver" / "guests"
NAME = "compiled.jsonl"


def write_compiled(folder: Path, tables: Path = DATA, guests: Path = GUESTS) -> Path:
    """Write `compiled.jsonl` of `tables` and `guests` into `folder`; return its path."""
    path = folder / NAME
    path.write_bytes(compiled(tables, guests))
    return path


def compiled(tables: Path = DATA, guests: Path = GUESTS) -> bytes:
    """Return the bytes of `compiled.jsonl`, the same for the same TOML files.

    They lie in `tables`, and in each directory of `guests`. Raises ValueError where two of them
    have a row of one name.
    """
    paths = [*sorted(tables.glob("*.toml")), *sorted(guests.glob("*/*.toml"))]
    contents: dict[str, bytes] = {}
    parsed: dict[str, dict[str, Any]] = {}
    for path in paths:
        content = path.read_bytes()
        contents[path.stem] = contents.get(path.stem, b"") + content
        _add(parsed.setdefault(path.stem, {}), tomllib.loads(content.decode()), path)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return "".join(_line(each) for each in (hashes, *parsed.values())).encode()


def _add(table: dict[str, Any], rows: dict[str, Any], path: Path) -> None:
    """Put the rows of a file, by section and name, into a table."""
    for section, named in rows.items():
        if section not in table:
            table[section] = named
        elif twice := table[section].keys() & named.keys():
            raise ValueError(f"{path}: [{section}] has {', '.join(sorted(twice))} a second time")
        else:
            table[section] |= named


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


if __name__ == "__main__":
    [given] = sys.argv[1:]
    write_compiled(Path(given), Path(given), Path(given).parent / "guests")
