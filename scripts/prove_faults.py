"""Let one system call after the other fail during an apply, and see that the environment is whole.

strace injects the errors into our own process, not into the engine's. After each the environment
must be exactly as before, or, where the apply says that it is done, as planned; what cannot be put
back at once must be put back by the next `recover`.

    python scripts/prove_faults.py --engine uv
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from local_index import LocalIndex
from prove_transaction import Case, Proof, about, child_apply
from standins import make_set, state_of

from ortgpu_fix import kept, restore
from ortgpu_fix.errors import Error

BEFORE = {"disk-full", "disk-failed", "environment-read-only", "no-space"}
AFTER = {"apply-failed", "install-failed", "verify-failed", "restore-failed"}


def faults(state: Path) -> Iterator[tuple[str, str, list[str], str]]:
    """Give system call, error, further arguments of strace, and which of the calls fail."""
    journal, lock = ["-P", str(state / "1" / "journal")], ["-P", str(state / "lock")]
    yield from (("rename", "EIO", [], str(number)) for number in range(1, 30, 3))
    yield from (("rename", "EXDEV", [], str(number)) for number in range(1, 30, 7))
    yield from (("rename", "EIO", [], first) for first in ("5+", "20+"))
    yield from (("fsync", "EIO", [], str(number)) for number in range(1, 26, 2))
    yield from (("fsync", "ENOSPC", [], str(number)) for number in range(2, 26, 6))
    yield from (("mkdir", "ENOSPC", [], str(number)) for number in range(1, 13))
    yield from (("rmdir", "EACCES", [], str(number)) for number in range(1, 12, 2))
    yield from (("unlink", "EACCES", [], str(number)) for number in (2, 3))
    yield from (("write", "ENOSPC", journal, str(number)) for number in range(1, 7))
    yield from (("openat", "EACCES", journal, str(number)) for number in range(1, 7))
    yield from (("write", "ENOSPC", lock, "1"), ("openat", "EROFS", lock, "1"))


def apply_with(fault: tuple[str, str, list[str], str], case: Case) -> tuple[str, bool]:
    """Apply while a fault is injected; return the code of the end, and whether it was met."""
    call, error, more, which = fault
    with tempfile.NamedTemporaryFile("r") as trace:
        strace = ["strace", "-qq", "-o", trace.name, *more, "-e", f"trace={call}"]
        strace += ["-e", f"inject={call}:error={error}:when={which}"]
        command = [sys.executable, __file__, "child", about(case)]
        done = subprocess.run([*strace, *command], check=False, capture_output=True, text=True)
        met = "INJECTED" in trace.read()
    lines = [line for line in done.stdout.splitlines() if line.startswith("end: ")]
    return (lines[-1].removeprefix("end: ") if lines else done.stderr), met


def child(case: Case) -> None:
    """Apply, and print how it ended."""
    try:
        child_apply(case)
        print("end: done")
    except Error as error:
        print(f"end: {error.code}")


def prove(engine: str) -> Counter[str]:
    """Inject every fault once and return how often each end was met."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels = make_set(folder / "wheels")
        with LocalIndex(folder / "wheels") as index:
            proof = Proof(folder, engine, wheels, index.url)
            for fault in faults(proof.site.state):
                code, met = apply_with(fault, proof.case())
                recovered = restore.recover(proof.site)
                if any(one.state == "committed" for one in kept.changes(proof.site)):
                    assert code == "done", (fault, code)  # noqa: S101
                    proof.compare(proof.after, proof.planned())
                    proof.undo()
                else:
                    assert code in BEFORE | AFTER, (fault, code)  # noqa: S101
                    assert bool(recovered) == (code == "restore-failed"), fault  # noqa: S101
                    proof.compare(proof.before, state_of(proof.venv.folder))
                shutil.rmtree(proof.site.state, ignore_errors=True)
                ends[code if met else "not met"] += 1
                print(fault[0], fault[1], fault[3], "met" if met else "not met", code, flush=True)
    return ends


def main() -> None:
    """Run as the header says, or as a child."""
    if sys.argv[1:2] == ["child"]:
        child(Case(**json.loads(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--engine", choices=["uv", "pip"], default="uv")
    ends = prove(parser.parse_args().engine)
    print(f"{sum(ends.values())} faults, whole every time: {dict(ends)}")


if __name__ == "__main__":
    main()
