"""Prove that onnxruntime-gpu fits beside a torch that stays or is chosen, with the real wheels.

    python scripts/prove/torch.py [--only SUBSTRING …] [--work DIR] [--keep]

For each torch: a fresh environment gets it from the index, with all that it requires, and
`ortgpu-fix --facts MACHINE --apply --yes` is run as a user would. Then: not one file that was there
before has changed; the provider was loaded with every symbol bound, from torch's own NVIDIA wheels
where torch brings the library, in a process that imported torch before onnxruntime and in one that
imported it after; no library was there twice, and none of another CUDA major. There is no GPU here:
a stub of `libcuda.so.1` answers that there is none.

And one environment without torch, where `--torch` asks for one and then for another: everything
that they require comes by their own metadata, nothing installed is incompatible, and `undo` takes
the second back to the byte.

Each outcome goes into scripts/prove/results/ at once. Needs uv, gcc, a network, and 15 GB below
DIR. The exit code is 1 where a case is not as expected.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packaging.version import Version

from ortgpu_fix.utils.process import install_environment
from prove.apply import MACHINES, UV, Workshop, make_tools
from prove.outcomes import record
from support.pythons import find_python

PYTHON = "3.11"
SONAME = re.compile(r"(lib[\w-]+?)\.so(?:\.(\d+))?[.\d]*")
PROVIDER = "libonnxruntime_providers_cuda.so"


@dataclass(frozen=True)
class Case:
    """A torch, and what must come beside it."""

    torch: str
    cuda: str
    least: str
    """The oldest onnxruntime-gpu that will do."""
    below: str

    @property
    def name(self) -> str:
        """For people, and for `--only`."""
        return f"torch-{self.torch}"


CASES = (
    Case(torch="2.11.0", cuda="13", least="1.28", below="2"),
    Case(torch="2.10.0", cuda="12", least="1.26", below="1.27"),
)


MOVES = (("2.11.0", "uv"), ("2.14.0", "pip"))
"""The torch that is asked for, and the engine, one after the other in one environment."""
MOVING = "chosen-" + "-".join(release for release, _ in MOVES)


@dataclass
class Order:
    """What one process had loaded."""

    imported: str
    """torch, `first` or `last`."""
    onnxruntime: str
    """Its verdict in this process."""
    torch: str
    """Why it uses no GPU, in its own words."""
    provider: bool
    from_torch: list[str]
    """Libraries from wheels that came with torch."""
    from_ours: list[str]
    """Libraries from wheels that came with onnxruntime-gpu."""
    twice: list[str]


@dataclass
class Outcome:
    """How a case went."""

    name: str
    release: str = ""
    added: list[str] = field(default_factory=list)
    files_before: int = 0
    changed: list[str] = field(default_factory=list)
    verdict: str = ""
    evidence: list[str] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def prove(case: Case, shop: Workshop, python: Path) -> Outcome:
    """Make the environment of `case`, let the tool work on it, and look at what came of it."""
    outcome = Outcome(name=case.name)
    venv = shop.folder / case.name
    env = install_environment_with_cache(shop.folder)
    target = venv / "bin" / "python"
    base = [UV, "venv", "--quiet", "--clear", "--python", str(python), str(venv)]
    subprocess.run(base, check=True, env=env)
    install = [UV, "pip", "install", "--quiet", "--python", str(target), f"torch=={case.torch}"]
    subprocess.run(install, check=True, env=env)
    site = next(venv.glob("lib/python*/site-packages"))
    before = digests(site)
    outcome.files_before = len(before)
    argv = [str(shop.tools["uv"]), "-m", "ortgpu_fix", "--python", str(target)]
    argv += ["--facts", str(shop.facts(MACHINES[case.cuda])), "--apply", "--yes", "--json"]
    started = time.monotonic()
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        env=shop.environment(without_uv=False, stub=True),
        check=False,
    )
    outcome.seconds = round(time.monotonic() - started, 1)
    if done.returncode != 0:
        outcome.problems.append(f"exit {done.returncode}: {done.stdout[-900:]}{done.stderr}")
        return outcome
    applied = json.loads(done.stdout)
    outcome.added = [f"{row['name']} {row['version']}" for row in applied["install"]]
    after = digests(site)
    outcome.changed = sorted(path for path, digest in before.items() if after.get(path) != digest)
    judge(case, outcome, applied, {str(site / path) for path in before})
    return outcome


def move(shop: Workshop, python: Path) -> Outcome:
    """Ask for one torch and then for another, and take the second back."""
    outcome = Outcome(name=MOVING)
    venv = shop.folder / MOVING
    env = install_environment_with_cache(shop.folder)
    target = venv / "bin" / "python"
    subprocess.run(
        [UV, "venv", "--quiet", "--clear", "--python", str(python), str(venv)], check=True
    )
    site = next(venv.glob("lib/python*/site-packages"))
    states: list[dict[str, str]] = []
    for release, tool in MOVES:
        argv = [str(shop.tools[tool]), "-m", "ortgpu_fix", "--python", str(target), "--json"]
        wish = ["--facts", str(shop.facts(MACHINES["13"])), "--torch", release, "--apply", "--yes"]
        shell = shop.environment(without_uv=tool != "uv", stub=True)
        started = time.monotonic()
        done = subprocess.run(
            [*argv, *wish], capture_output=True, text=True, env=shell, check=False
        )
        outcome.seconds = round(outcome.seconds + time.monotonic() - started, 1)
        if done.returncode != 0:
            outcome.problems.append(f"{release}: exit {done.returncode}: {done.stdout[-900:]}")
            return outcome
        applied = json.loads(done.stdout)
        outcome.added += [f"{row['name']} {row['version']}" for row in applied["install"]]
        outcome.verdict = applied["verification"]["verdict"]
        notes = [note["code"] for note in applied["verification"]["notes"]]
        if outcome.verdict != "no-gpu" or notes != ["torch-loads"]:
            outcome.problems.append(f"{release}: {outcome.verdict}, {notes}")
        selected = {row["name"]: row["version"] for row in applied["selection"]["packages"]}
        outcome.release = selected["onnxruntime-gpu"]
        if selected["torch"] != release:
            outcome.problems.append(f"{release}: torch {selected['torch']}")
        check = [UV, "pip", "check", "--python", str(target)]
        said = subprocess.run(check, capture_output=True, text=True, env=env, check=False)
        if said.returncode != 0:
            outcome.problems.append(f"{release}: {said.stderr[-600:]}")
        states.append(digests(site))
    outcome.files_before = len(states[0])
    undo = [str(shop.tools["pip"]), "-m", "ortgpu_fix", "--python", str(target), "undo", "--yes"]
    subprocess.run(undo, check=True, capture_output=True, env=env)
    after = digests(site)
    differ = {
        path for path in after.keys() | states[0].keys() if after.get(path) != states[0].get(path)
    }
    outcome.changed = sorted(differ)
    if differ:
        outcome.problems.append(f"{len(differ)} files differ after undo")
    return outcome


def judge(case: Case, outcome: Outcome, applied: dict[str, Any], before: set[str]) -> None:
    """Say what is not as expected; `before` are the files that came with torch."""
    if outcome.changed:
        outcome.problems.append(f"{len(outcome.changed)} files changed")
    selected = {row["name"]: row["version"] for row in applied["selection"]["packages"]}
    outcome.release = selected["onnxruntime-gpu"]
    if not Version(case.least) <= Version(outcome.release) < Version(case.below):
        outcome.problems.append(f"expected {case.least} or newer, below {case.below}")
    verification = applied["verification"]
    outcome.verdict = verification["verdict"]
    outcome.evidence = [line for line in verification["evidence"] if "CUDA failure" in line]
    # Bound at once: CUDA can only fail in a provider that was loaded with every symbol.
    if outcome.verdict != "no-gpu" or len(outcome.evidence) != 3:  # noqa: PLR2004 - models
        outcome.problems.append(f"verdict {outcome.verdict}: {verification['evidence']}")
    for row in verification["torch"]["orders"]:
        order = look(row, before)
        outcome.orders.append(order)
        if order.onnxruntime != "no-gpu" or not order.provider or not order.from_torch:
            outcome.problems.append(f"torch imported {order.imported}: {order}")
        if order.twice:
            outcome.problems.append(f"twice, torch imported {order.imported}: {order.twice}")
    if [order.imported for order in outcome.orders] != ["first", "last"]:
        outcome.problems.append(f"torch was not all right by itself: {verification['notes']}")


def look(row: dict[str, Any], before: set[str]) -> Order:
    """Sort what a process had loaded."""
    loaded = [(Path(library["path"]), library["name"]) for library in row["libraries"]]
    stems: dict[str, set[str]] = {}
    for path, name in loaded:
        known = SONAME.fullmatch(name)
        stems.setdefault(known[1] if known else name, set()).add(str(path.resolve()))
    ours = [(path, name) for path, name in loaded if "onnxruntime" not in name]
    ours = [(path, name) for path, name in ours if "libcuda.so" not in name]
    return Order(
        imported=row["imported"],
        onnxruntime=row["verdict"],
        torch=(row["torch"] or {}).get("unavailable") or str(row["torch"]),
        provider=any(name == PROVIDER for _, name in loaded),
        from_torch=sorted(name for path, name in ours if str(path) in before),
        from_ours=sorted(name for path, name in ours if str(path) not in before),
        twice=sorted(f"{stem}: {paths}" for stem, paths in stems.items() if len(paths) > 1),
    )


def install_environment_with_cache(folder: Path) -> dict[str, str]:
    """Return an environment whose uv keeps its gigabytes below `folder`."""
    return {**install_environment(os.environ), "UV_CACHE_DIR": str(folder / "uv")}


def digests(site: Path) -> dict[str, str]:
    """Return the hash of every file below `site`, compiled ones and those of the tool apart."""
    paths = [
        path
        for path in sorted(site.rglob("*"))
        if path.is_file() and path.suffix != ".pyc" and ".ortgpu-fix" not in path.parts
    ]

    def hashed(path: Path) -> str:
        with path.open("rb") as file:
            known = hashlib.sha256()
            while chunk := file.read(1 << 22):
                known.update(chunk)
            return known.hexdigest()

    with ThreadPoolExecutor(2) as pool:
        found = pool.map(hashed, paths)
        return {str(path.relative_to(site)): one for path, one in zip(paths, found, strict=True)}


def main() -> int:
    """Run the cases, print a line for each, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="SUBSTRING")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    python = find_python(PYTHON)
    if python is None:
        print(f"needs Python {PYTHON}", file=sys.stderr)
        return 1
    folder = arguments.work or Path(tempfile.mkdtemp(prefix="prove-torch-"))
    shop = Workshop(folder, make_tools(folder))
    failed = 0
    jobs: list[tuple[str, Callable[[], Outcome]]] = [
        (case.name, partial(prove, case, shop, python)) for case in CASES
    ]
    jobs.append((MOVING, partial(move, shop, python)))
    for name, job in jobs:
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        outcome = job()
        names = [*(case.name for case in CASES), MOVING]
        record("torch", asdict(outcome), names, python=PYTHON)
        failed += bool(outcome.problems)
        print(
            f"{outcome.name:20} onnxruntime-gpu {outcome.release:8} {outcome.verdict:8} "
            f"{outcome.seconds} s {'; '.join(outcome.problems) or 'ok'}",
            flush=True,
        )
        if not arguments.keep:
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.rmtree(folder / "uv", ignore_errors=True)
    if not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
