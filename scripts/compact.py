"""Write `data/tables.zip`: every TOML table of `data/` in a form that loads ten times as fast.

    python scripts/compact.py            write it anew
    python scripts/compact.py --check    exit 1 where it is not what the tables say

The TOML files are what people read and edit; this is what the program reads, one table at a time. A
test holds the two equal. Each table is a JSON document named after it; its comment in the archive
is the hash of its TOML file.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).resolve().parents[1] / "data"
COMPACT = DATA / "tables.zip"


def compact() -> bytes:
    """Return the archive's bytes, the same for the same tables."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for path in sorted(DATA.glob("*.toml")):
            content = path.read_bytes()
            member = zipfile.ZipInfo(f"{path.stem}.json", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3  # Unix, wherever it is made
            member.compress_type = zipfile.ZIP_DEFLATED
            member.comment = hashlib.sha256(content).hexdigest().encode()
            table = tomllib.loads(content.decode())
            text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
            archive.writestr(member, text.encode(), compresslevel=9)
    return memory.getvalue()


def contents(packed: bytes) -> dict[str, tuple[bytes, object]]:
    """Return the hash and the table of each member; compression may differ between systems."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {
            member.filename: (member.comment, json.loads(archive.read(member)))
            for member in archive.infolist()
        }


def main() -> int:
    """Write the archive, or compare it with the tables."""
    if "--check" in sys.argv[1:]:
        if contents(COMPACT.read_bytes()) == contents(compact()):
            return 0
        print("data/tables.zip is not what the tables say: run scripts/compact.py")
        return 1
    COMPACT.write_bytes(compact())
    return 0


if __name__ == "__main__":
    sys.exit(main())
