"""Write the TOML tables of `data/` in a form that loads ten times as fast: `compiled.jsonl`.

    python scripts/matrix/compile_tables.py FOLDER     write FOLDER/compiled.jsonl, from its tables
    python scripts/matrix/compile_tables.py            write the codes of failures into the README
    python scripts/matrix/compile_tables.py --check    exit 1 where that is not what the table says

The TOML files are what people read and edit; `compiled.jsonl` is what the program reads, one table
at a time. The repository does not have it: it is made when the wheel is built (`hatch_build.py`).
The first line names the tables with the hashes of their TOML files; after it each table has a line,
in the same order.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).resolve().parents[2] / "data"
README = DATA / "README.md"
NAME = "compiled.jsonl"
_SELF = Path(__file__).name


def write_compiled(folder: Path, tables: Path = DATA) -> Path:
    """Write `compiled.jsonl` of the TOML files in `tables` into `folder`; return its path."""
    path = folder / NAME
    path.write_bytes(compiled(tables))
    return path


def compiled(tables: Path = DATA) -> bytes:
    """Return the bytes of `compiled.jsonl`, the same for the same TOML files in `tables`."""
    contents = {path.stem: path.read_bytes() for path in sorted(tables.glob("*.toml"))}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    parsed = [tomllib.loads(content.decode()) for content in contents.values()]
    return "".join(_line(each) for each in (hashes, *parsed)).encode()


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


def readme() -> str:
    """Return the README of `data/` with the codes that `failures.toml` holds."""
    rows = tomllib.loads((DATA / "failures.toml").read_text(encoding="utf-8"))["failure"]
    lines = ["| code | severity | about | `--apply` mends it | cause |", "|---|---|---|---|---|"]
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
        write_compiled(Path(words[0]), Path(words[0]))
    else:
        README.write_text(readme(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
