"""Write `data/tables.json.gz`: every TOML table of `data/` in a form that loads ten times as fast.

    python scripts/compact.py            write it anew
    python scripts/compact.py --check    exit 1 where it is not what the tables say

The TOML files are what people read and edit; this is what the program reads. A test holds the two
equal.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).resolve().parents[1] / "data"
COMPACT = DATA / "tables.json.gz"


def compact() -> bytes:
    """Return the file's bytes: `{"digests": {name: sha256}, "tables": {name: table}}`."""
    digests: dict[str, str] = {}
    tables: dict[str, object] = {}
    for path in sorted(DATA.glob("*.toml")):
        content = path.read_bytes()
        digests[path.stem] = hashlib.sha256(content).hexdigest()
        tables[path.stem] = tomllib.loads(content.decode())
    document = {"digests": digests, "tables": tables}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    packed = bytearray(gzip.compress(text.encode(), 9, mtime=0))
    packed[9] = 255  # the system it was made on, which is nobody's business and differs
    return bytes(packed)


def main() -> int:
    """Write the file, or compare it with the tables."""
    if "--check" in sys.argv[1:]:
        stored = json.loads(gzip.decompress(COMPACT.read_bytes()))
        if stored == json.loads(gzip.decompress(compact())):
            return 0
        print("data/tables.json.gz is not what the tables say: run scripts/compact.py")
        return 1
    COMPACT.write_bytes(compact())
    return 0


if __name__ == "__main__":
    sys.exit(main())
