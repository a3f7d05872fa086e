"""Write the TOML tables of `data/` in a form that loads ten times as fast: `compiled.jsonl`.

    python scripts/matrix/compile_tables.py FOLDER     write FOLDER/compiled.jsonl, from its tables
                                                       and those of the guests beside it
    python scripts/matrix/compile_tables.py            write the codes of failures into the README
    python scripts/matrix/compile_tables.py --check    exit 1 where that is not what the table says

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
README = DATA / "README.md"
NAME = "compiled.jsonl"
_SELF = Path(__file__).name


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


def readme() -> str:
    """Return the README of `data/` with the codes that `failures.toml` holds."""
    rows = tomllib.loads((DATA / "failures.toml").read_text(encoding="utf-8"))["failure"]
    lines = ["| code | severity | about | `--apply` fixes it | cause |", "|---|---|---|---|---|"]
    for row in rows:
        cause = row["cause"]["en"].replace("{library}", "a library").replace("|", r"\|")
        mends = "yes" if row["fixable"] else "no"
        cells = (f"`{row['code']}`", row["severity"], row["about"], mends, cause)
        lines.append(f"| {' | '.join(cells)} |")
    before, begin, rest = README.read_text(encoding="utf-8").partition("<!-- codes -->\n")
    _, end, after = rest.partition("<!-- end of codes -->\n")
    return before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after


def main(words: list[str]) -> int:
    """Write what is asked for; return 1 where `--check` finds a difference."""
    if words == ["--check"]:
        stale = README.read_text(encoding="utf-8") != readme()
        if stale:
            print(f"data/README.md is not what the tables say: run scripts/matrix/{_SELF}")
        return int(stale)
    if words:
        folder = Path(words[0])
        write_compiled(folder, folder, folder.parent / "guests")
    else:
        README.write_text(readme(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
