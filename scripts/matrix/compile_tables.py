"""Write `data/compiled.jsonl`: every TOML table of `data/` in a form that loads ten times as fast.

    python scripts/matrix/compile_tables.py            write it anew
    python scripts/matrix/compile_tables.py --check    exit 1 where it is not what the tables say

The TOML files are what people read and edit; this is what the program reads, one table at a time. A
test holds the two equal. The first line names the tables with the hashes of their TOML files; after
it each table has a line, in the same order. The codes of `failures.toml` are written into
`data/README.md`, too.
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
COMPILED = DATA / "compiled.jsonl"
README = DATA / "README.md"
SELF = Path(__file__).name


def compiled() -> bytes:
    """Return the file's bytes, the same for the same tables."""
    contents = {path.stem: path.read_bytes() for path in sorted(DATA.glob("*.toml"))}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    tables = [tomllib.loads(content.decode()) for content in contents.values()]
    return "".join(_line(each) for each in (hashes, *tables)).encode()


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


def main() -> int:
    """Write the file, or compare it with the tables."""
    if "--check" in sys.argv[1:]:
        stale = [COMPILED] if COMPILED.read_bytes() != compiled() else []
        stale += [README] if README.read_text(encoding="utf-8") != readme() else []
        for path in stale:
            print(f"data/{path.name} is not what the tables say: run scripts/matrix/{SELF}")
        return bool(stale)
    COMPILED.write_bytes(compiled())
    README.write_text(readme(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
