"""Refresh the compatibility data in `data/` from the wheels on a package index.

Reads only what is new: every reading is kept in a cache that can be deleted at any time. The
files come out byte for byte the same where nothing changed. `--check` writes nothing, lists what
the index has and the data lacks or says differently, and exits 1 where there is something. Either
way the files are then checked against each other, unless only some were asked for.

From nothing 98 GB go through memory and 94 MB of readings stay in the cache: the network decides
how long that takes. Each thread needs up to 1 GB. An interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from matrix.evidence import matrix
from ortgpu_fix.binaries.native import BinaryError
from ortgpu_fix.errors import Error
from ortgpu_fix.evidence.wheels import EvidenceError
from ortgpu_fix.guests.update.index_source import IndexSource
from ortgpu_fix.guests.update.reader import Reader, ReadingCache
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.messages.catalog import load_texts


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0, or 1 where `--check` found a difference or reading failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="FILE", help=f"of {', '.join(matrix.FILES)}")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on differences")
    parser.add_argument(
        "--every-wheel",
        action="store_true",
        help="read the CUDA provider of every Python's wheel (70 GB), not only the first's",
    )
    parser.add_argument("--index-url", default="https://pypi.org/simple", metavar="URL")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "data")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/ortgpu-fix-matrix")
    parser.add_argument("--threads", type=int, default=8, metavar="N")
    arguments = parser.parse_args(argv)
    unknown = set(arguments.names) - set(matrix.FILES)
    if unknown:
        parser.error(f"no such file in the matrix: {', '.join(sorted(unknown))}")
    start = time.monotonic()
    config = IndexConfig(index_url=arguments.index_url, origin="flag")
    index = Index(config, Limits(read=60, pauses=(2, 4, 8)))
    source = IndexSource(index, arguments.cache / "wheels", complete=True)

    def progress(text: str) -> None:
        passed, megabytes = time.monotonic() - start, source.bytes_received / 1e6
        print(f"[{passed:6.0f} s {megabytes:8.0f} MB] {text}", file=sys.stderr, flush=True)

    reader = Reader(source, ReadingCache(arguments.cache), "", progress)
    try:
        different = matrix.refresh(
            reader,
            arguments.data,
            names=arguments.names or matrix.FILES,
            write=not arguments.check,
            threads=arguments.threads,
            every_wheel=arguments.every_wheel,
        )
    except (EvidenceError, BinaryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Error as error:
        print(f"error: {load_texts('en').error(error).text}", file=sys.stderr)
        return 1
    progress("done")
    wrong = [] if arguments.names else matrix.problems(arguments.data)
    for line in [*different, *wrong]:
        print(line)
    return 1 if wrong or (arguments.check and different) else 0


if __name__ == "__main__":
    raise SystemExit(main())
