"""Let one system call after the other fail during an apply, and see that the environment is whole.

strace injects the errors into our own process, not into uv's: into every rename, fsync,
write to our files, and every making and removing of folders and files that an undisturbed apply
makes, each with a full disk, a refused right and a broken disk in turn. After each the environment
must be exactly as before, or, where the apply says that it is done, as planned; what cannot be put
back at once must be put back by the next recovery. The exit code must be 7 where nothing had been
moved by then, 4 where something had, 5 where it could not be put back at once, and the message
must name the cause.

    python scripts/prove/faults.py

The counts go into scripts/prove/results/.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortgpu_fix.apply import history, rollback
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import load_texts
from prove.outcomes import write
from prove.transaction import Proof, about, apply_case, uv_version
from support.local_index import LocalIndex
from support.standin_changes import Case, compare
from support.standin_wheels import make_set, state_of, without_notes

CALLS = ("rename", "fsync", "mkdir", "rmdir", "unlink", "unlinkat")
"""Those of which every one is made to fail; writing and opening for it are in `more_faults`."""
ERRORS = {
    "ENOSPC": r"full|No space left on device",
    "EDQUOT": "quota",
    "EACCES": "Permission denied",
    "EIO": "Input/output error",
    "EROFS": "Read-only file system",
    "EXDEV": "Invalid cross-device link",
}
"""Each with the words that must be in the message."""
MOVED = re.compile(r'rename\("([^"]*)", "[^"]*/aside/[^"]*"\) += 0$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What fails, when, and how."""

    call: str
    error: str
    when: str
    """Which of the calls, as strace counts them: `3`, or `5+`: from the fifth on."""
    paths: tuple[str, ...] = ()
    """Only calls on these; none: all calls."""
    threads: bool = False
    """Also in our threads; each counts for itself, and so do uv's processes."""

    def __str__(self) -> str:
        """Return `rename 3 EIO`, with the files where they are named."""
        names = {Path(path).suffix or Path(path).name for path in self.paths}
        where = f" of {', '.join(sorted(names))}" if names else ""
        return f"{self.call}{where} {self.when} {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an apply with a fault ended."""

    code: int
    """The exit code."""
    said: str
    """`done`, or the code of the error."""
    text: str
    met: bool
    """The fault happened."""
    moved: bool
    """A file of the environment had been moved by then."""


def faults(calls: Mapping[str, int], proof: Proof) -> Iterator[Fault]:
    """Give every fault: `calls` tells how often an undisturbed apply makes each system call."""
    errors = itertools.cycle(("EIO", "ENOSPC", "EACCES"))
    for call in CALLS:
        for number in range(1, calls[call] + 1):
            yield Fault(call=call, error=next(errors), when=str(number))
    yield from more_faults(proof)


def more_faults(proof: Proof) -> Iterator[Fault]:
    """Give the faults of writing and opening, in our threads too, and those that stay."""
    state = proof.site.state
    journal, lock = (str(state / "1" / "journal"),), (str(state / "lock"),)
    for number in range(1, 7):
        yield Fault(call="write", error="ENOSPC", when=str(number), paths=journal)
        yield Fault(call="openat", error="EACCES", when=str(number), paths=journal)
    yield Fault(call="write", error="ENOSPC", when="1", paths=lock)
    yield Fault(call="openat", error="EROFS", when="1", paths=lock)
    yield Fault(call="fsync", error="EIO", when="2", threads=True)
    # Every other one: the rename, and not the one that ends the copy in its place.
    yield Fault(call="rename", error="EXDEV", when="1+2")
    for when in ("5+", "20+"):
        yield Fault(call="rename", error="EIO", when=when)
        yield Fault(call="fsync", error="EIO", when=when)
    yield Fault(call="unlinkat", error="EACCES", when="1+")


def apply_with(fault: Fault, case: Case, first: str) -> End:
    """Apply while `fault` is injected; `first` is the first file that leaves."""
    paths = (*fault.paths, first) if fault.paths else ()
    with tempfile.NamedTemporaryFile("r") as trace:
        strace = ["strace", "-qq", "-o", trace.name, *(["-f"] if fault.threads else [])]
        strace += [word for path in paths for word in ("-P", path)]
        strace += ["-e", f"trace=rename,{fault.call}"]
        strace += ["-e", f"inject={fault.call}:error={fault.error}:when={fault.when}"]
        command = [sys.executable, __file__, "child", about(case)]
        done = subprocess.run([*strace, *command], check=False, capture_output=True, text=True)
        seen = trace.read()
    before, injected, _ = seen.partition("(INJECTED)")
    said, _, text = done.stdout.strip().partition("\n")
    assert said, f"{fault}: {done.stderr[-1000:]}"  # noqa: S101
    return End(
        code=done.returncode,
        said=said,
        text=text,
        met=bool(injected),
        moved=bool(MOVED.search(before)),
    )


def census(case: Case) -> tuple[Counter[str], str]:
    """Return how often an undisturbed apply makes each system call.

    And the first file that leaves.
    """
    with tempfile.NamedTemporaryFile("r") as trace:
        strace = ["strace", "-qq", "-o", trace.name, "-e", f"trace={','.join(CALLS)}"]
        command = [sys.executable, __file__, "child", about(case)]
        subprocess.run([*strace, *command], check=True, capture_output=True)
        seen = trace.read()
    moved = MOVED.search(seen)
    assert moved  # noqa: S101
    return Counter(line.partition("(")[0] for line in seen.splitlines()), moved[1]


def child(case: Case) -> int:
    """Apply, print how it ended, and return the exit code that the command has then."""
    try:
        applied = apply_case(case, lambda _: None)
    except Error as error:
        message = load_texts("en").error(error)
        print(f"{message.code}\n{message.text}")
        return message.exit_code
    print(f"done\n{'untidy' if applied and applied.untidy else ''}")
    return 0


def judge(fault: Fault, end: End, proof: Proof) -> str:
    """Hold the end against what must be; return it in a word. Raises AssertionError."""
    recovered = rollback.recover_interrupted(proof.site)
    if any(one.state == "committed" for one in history.recorded_changes(proof.site)):
        assert (end.said, end.code) == ("done", 0), (fault, end)  # noqa: S101
        compare(proof.after, without_notes(proof.venv.folder))
        proof.undo()
    else:
        # A uv that fails, which such a fault may meet, too, is no failure of ours.
        expected = 5 if recovered else 4 if end.moved or end.said == "install-failed" else 7
        assert end.code == expected, (fault, end)  # noqa: S101
        words = ERRORS[fault.error]
        assert re.search(words, end.text), (fault, end)  # noqa: S101
        compare(proof.before, state_of(proof.venv.folder))
    shutil.rmtree(proof.site.state, ignore_errors=True)
    return (
        f"{end.code} {end.said} {end.text}".strip() if end.code == 0 else f"{end.code} {end.said}"
    )


def prove(*, stride: int = 1) -> Counter[str]:
    """Inject every fault once, or each `stride`-th, and return how often each end was met."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        wheels = Path(name, "wheels")
        make_set(wheels)
        with LocalIndex(wheels) as index:
            case = Case(folder=name, wheels=str(wheels), url=index.url)
            proof = Proof(case)
            calls, first = census(case)
            proof.undo()
            for fault in list(faults(calls, proof))[::stride]:
                end = apply_with(fault, case, first)
                word = judge(fault, end, proof)
                ends[word if end.met else "not met"] += 1
                print(f"{fault}: {word}", flush=True)
    return ends


def main() -> int:
    """Run as the header says, or as a child."""
    if sys.argv[1:2] == ["child"]:
        return child(Case(**json.loads(sys.argv[2])))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stride", type=int, default=1, help="only every so many faults (1)")
    given = parser.parse_args()
    began = time.monotonic()
    ends = prove(stride=given.stride)
    total = sum(ends.values())
    print(f"{total} faults, whole every time")
    result = {
        "faults": total,
        "whole": total,
        "ends": dict(sorted(ends.items())),
        "seconds": round(time.monotonic() - began),
        "uv": uv_version(),
    }
    write("faults", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
