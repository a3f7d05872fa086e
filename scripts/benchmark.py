"""Measure this program side by side with uv and pip, and print how many times as long it takes.

    python scripts/benchmark.py [--only ROW ...] [--work DIR] [--record]

Rows: `install` (the set for an A100 with driver 535.104.12 into a fresh environment, beside uv with
the same pins, from empty caches and from full ones, in balanced order; undo; the bytes that were
written), `sets` (the newest
set and the smallest, beside onnxruntime-gpu's own extras by uv and by pip, from empty caches: the
bytes that come over the network and stay on the disk, and the seconds), `plan` (and `--check`, with
nothing and with 1,000 distributions installed), `fleet` (1,000 machines of 30 and of 1,000 kinds),
`explain` (a log of a gigabyte) and `site` (what `scripts/site.py` writes: its bytes, and how soon a
browser shows and answers, which needs Chromium and npm). The verification, which neither uv nor pip
does, is told apart. `install` and `sets` need 15 GB of disk and download 8 GB each.

With --record the numbers go into scripts/prove/results/. They mean something on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import cycle, islice, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ortgpu_fix.data_files import load_table
from prove.outcomes import known, write
from prove.site import measure
from support.site_browser import Asking, chromium, served
from support.standin_wheels import clean_environment

ROOT = Path(__file__).resolve().parents[1]
MACHINE = ("--driver", "535.104.12", "--gpu", "A100")
VERIFYING = "Verifying"
LINES = (
    "2026-11-22 10:00:{0:02d} INFO worker-{1} handled request {2:08x} in {1} us",
    "2026-11-22 10:00:{0:02d} DEBUG session run: batch={1}, shape=(1, 3, {2}, 224)",
    "2026-11-22 10:00:{0:02d} WARNING retrying upload of part {2}, connection reset by peer",
    '10.0.{0}.7 - - "POST /v1/infer/{2} HTTP/1.1" 200 {1} "-" "python-requests"',
)
"""What a server writes: no failure that is known."""
FAILURE = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
GIGABYTE = 1_000_000_000
RUNS = 9
ROUNDS = 5
RESTS = 60.0
"""Seconds before each first environment: after a burst a virtual machine may give less."""


class Took(NamedTuple):
    """What a command took, with all that it started."""

    wall: float
    """Seconds, without the verification."""
    verifying: float
    """Seconds."""
    cpu: float
    """Seconds."""
    written: int
    """Bytes."""
    memory: int
    """Bytes: the most that one of its processes had."""


def measured(
    argv: Sequence[object],
    env: Mapping[str, str] = MappingProxyType({}),
    accepted: Sequence[int] = (0,),
    rests: float = 0,
) -> Took:
    """Run a command with the variables `env` besides; end the program where it failed.

    What was written before is on the disk then, so that nobody waits for another's bytes. Where a
    machine `rests` before, it has these seconds: the disk and the network of a virtual machine give
    less for a while after gigabytes.
    """
    os.sync()
    time.sleep(rests)
    words, lines, verifying = [str(word) for word in argv], [], None
    began = time.monotonic()
    with subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment() | dict(env),
    ) as process:
        for line in process.stderr or ():
            lines.append(line)
            if line.rstrip() == VERIFYING:
                verifying = time.monotonic()
        _, status, used = os.wait4(process.pid, 0)
        ended = time.monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accepted:
        sys.exit(f"{''.join(lines[-20:])}\nfailed: {' '.join(words)}")
    checked = 0.0 if verifying is None else ended - verifying
    return Took(
        wall=ended - began - checked,
        verifying=checked,
        cpu=used.ru_utime + used.ru_stime,
        written=used.ru_oublock * 512,
        memory=used.ru_maxrss * 1024,
    )


def received_bytes() -> int:
    """Return what came over the network since the machine started: that of its busiest device."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    return max(int(line.partition(":")[2].split()[0]) for line in lines)


def on_disk(folder: Path) -> int:
    """Return the bytes that a folder takes, a file of several names once."""
    known = {(row.st_ino, row.st_blocks) for row in (path.lstat() for path in folder.rglob("*"))}
    return sum(blocks for _, blocks in known) * 512


class Round(NamedTuple):
    """One environment."""

    ours: Took
    theirs: Took
    undone: Took
    again: Took


class Bench:
    """A folder to measure in, the tool installed there, and what was measured."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.rows: dict[str, object] = {}
        subprocess.run([sys.executable, "-m", "venv", work / "tool"], check=True)
        pip = [str(work / "tool/bin/python"), "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", str(ROOT)], check=True)
        self.tool = work / "tool/bin/ortgpu-fix"
        self.uv = work / "tool/bin/uv"
        """The one that this program uses: both are measured with the same."""

    def say(self, row: str, text: str, **numbers: object) -> None:
        """Print a row, and remember its numbers."""
        print(f"{row:34} {text}", flush=True)
        self.rows[row] = numbers

    def beside(self, row: str, ours: float, theirs: float, tool: str, **more: object) -> None:
        """Print how many times as long as another tool this program took."""
        text = f"{ours:7.2f} s, {tool} {theirs:7.2f} s: {ours / theirs:.2f}"
        self.say(row, text, ours=round(ours, 3), theirs=round(theirs, 3), tool=tool, **more)

    def caches(self, name: str) -> dict[str, str]:
        """Return the environment of a user whose caches, empty now, are in the folder `name`."""
        home = self.work / name
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        return {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}

    def venv(self, name: str) -> Path:
        """Make a fresh environment, with pip, and return its Python."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        return folder / "bin/python"

    def planned(self) -> dict[str, Any]:
        """Return the plan of the set for a fresh environment."""
        argv = [str(self.tool), "--json", *MACHINE, "--python", str(self.venv("planned"))]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        plan: dict[str, Any] = json.loads(done.stdout)
        return plan

    # -- install ---------------------------------------------------------------------------------

    def install(self) -> None:
        """Measure the installation of the set, from empty caches and from full ones."""
        plan = self.planned()
        pins = self.work / "pins.txt"
        pinned = [f"{row['name']}=={row['version']}" for row in plan["install"]]
        pins.write_text("\n".join([*pinned, *plan["requires"]]) + "\n")
        taken: dict[str, list[Round]] = {"first": [], "second": []}
        for number in range(ROUNDS):
            ours, theirs = self.caches("ours"), self.caches("theirs")
            for time_of, rows in taken.items():
                rows.append(self._round(time_of, pins, ours, theirs, first=number % 2))
        for time_of, rows in taken.items():
            self._tell(time_of, rows)
        ours_second, theirs_first = (
            statistics.median(getattr(row, part).wall for row in taken[time_of])
            for part, time_of in (("ours", "second"), ("theirs", "first"))
        )
        self.beside("second environment, uv's first", ours_second, theirs_first, "uv")

    def _round(
        self,
        time_of: str,
        pins: Path,
        ours: dict[str, str],
        theirs: dict[str, str],
        *,
        first: int,
    ) -> Round:
        """Install the `pins` with uv, and the set with this program, in this order or the other.

        Then undo, and apply again.
        """
        rests = RESTS if time_of == "first" else 0
        python, other = self.venv(f"{time_of}-ours"), self.venv(f"{time_of}-theirs")
        install = [self.uv, "pip", "install", "--quiet", "--requirement", pins, "--python", other]
        apply = [self.tool, "--apply", "--yes", *MACHINE, "--python", python]
        ways: list[tuple[list[object], dict[str, str]]] = [(install, theirs), (apply, ours)]
        order = (0, 1) if first else (1, 0)
        took = {at: measured(*ways[at], rests=rests) for at in order}
        shutil.rmtree(other.parents[1])
        undone = measured([self.tool, "undo", "--yes", "--python", python], ours)
        again = measured(apply, ours)
        shutil.rmtree(python.parents[1])
        return Round(ours=took[1], theirs=took[0], undone=undone, again=again)

    def _tell(self, time_of: str, rows: Sequence[Round]) -> None:
        """Print the medians of some rounds."""

        def median(part: str, number: str) -> float:
            return float(statistics.median(getattr(getattr(row, part), number) for row in rows))

        self.beside(
            f"{time_of} environment",
            median("ours", "wall"),
            median("theirs", "wall"),
            "uv",
            verifying=round(median("ours", "verifying"), 2),
            rounds=[[round(row.ours.wall, 2), round(row.theirs.wall, 2)] for row in rows],
        )
        if time_of == "first":
            ours, theirs = median("ours", "written"), median("theirs", "written")
            text = f"{ours / 1e9:7.2f} GB, uv {theirs / 1e9:.2f} GB: {ours / theirs:.2f}"
            self.say("bytes written", text, ours=ours, theirs=theirs)
        seconds = median("undone", "wall")
        self.say(f"undo, {time_of}", f"{seconds:7.2f} s", seconds=round(seconds, 3))
        seconds, verifying = median("again", "wall"), round(median("again", "verifying"), 2)
        row = f"apply after it, {time_of}"
        self.say(row, f"{seconds:7.2f} s", seconds=round(seconds, 3), verifying=verifying)

    # -- sets ------------------------------------------------------------------------------------

    def sets(self) -> None:
        """Measure what the sets weigh: forth and back, for a machine may give less later."""
        (release,) = (row for row in self.planned()["install"] if row["name"] == "onnxruntime-gpu")
        extras = ["install", "--quiet", f"onnxruntime-gpu[cuda,cudnn]=={release['version']}"]
        apply = [self.tool, "--apply", "--yes", *MACHINE]
        ways: dict[str, list[object]] = {
            "newest": apply,
            "small": [*apply, "--prefer", "small"],
            "extras, uv": [self.uv, "pip", *extras],
            "extras, pip": ["-m", "pip", *extras, "--disable-pip-version-check"],
        }
        taken: dict[str, list[tuple[float, int, int]]] = {name: [] for name in ways}
        for name in (*ways, *reversed(ways)):
            python, caches = self.venv("set"), self.caches("set-caches")
            before, received = on_disk(python.parents[1]), received_bytes()
            caches["PATH"] = f"{self.uv.parent}:/usr/bin:/bin"
            words = [python, *ways[name]] if "pip" in name else [*ways[name], "--python", python]
            seconds = measured(words, caches, rests=RESTS).wall
            more = on_disk(python.parents[1]) - before
            taken[name].append((seconds, received_bytes() - received, more))
        for name, rows in taken.items():
            seconds, received, disk = map(statistics.mean, zip(*rows, strict=True))
            text = (
                f"{received / 1e6:7.0f} MB received, {disk / 1e6:.0f} MB of disk, {seconds:.1f} s"
            )
            runs = [round(row[0], 2) for row in rows]
            self.say(f"set: {name}", text, received=round(received), disk=round(disk), runs=runs)

    # -- plan ------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Measure plan and check, with nothing and with 1,000 distributions installed."""
        empty, full = self.venv("empty"), self.venv("full")
        fill(next((full.parents[1] / "lib").glob("python*/site-packages")), 1000)
        commands = {"plan": ["--dry-run"], "--check": ["--check"]}
        for name, words in commands.items():
            times: dict[str, list[Took]] = {"empty": [], "full": []}
            for run in range(RUNS + 1):
                for kind, python in (("empty", empty), ("full", full)):
                    argv = [self.tool, *words, *MACHINE, "--python", python]
                    took = measured(argv, accepted=(0, 1, 3))
                    if run:
                        times[kind].append(took)
            cpu = {kind: statistics.median(row.cpu for row in rows) for kind, rows in times.items()}
            wall = {
                kind: statistics.median(row.wall for row in rows) for kind, rows in times.items()
            }
            self.say(
                f"{name}, 1,000 distributions",
                f"{cpu['full']:7.2f} s CPU, empty {cpu['empty']:.2f} s:"
                f" {cpu['full'] / cpu['empty']:.2f} ({wall['full']:.2f} s, {wall['empty']:.2f} s)",
                cpu=cpu,
                wall=wall,
            )
        wish = ["onnxruntime-gpu[cuda,cudnn]"]
        dry = [self.uv, "pip", "install", "--dry-run", "--quiet", "--python", empty, *wish]
        ours = [self.tool, "--dry-run", *MACHINE, "--python", empty]
        rows = [
            (measured(ours, accepted=(1, 3)).wall, measured(dry).wall) for _ in range(RUNS + 1)
        ][1:]
        first, second = (statistics.median(column) for column in zip(*rows, strict=True))
        self.beside("plan, and uv's dry run", first, second, "uv")

    # -- fleet -----------------------------------------------------------------------------------

    def fleet(self) -> None:
        """Measure 1,000 machines: plan and check."""
        for kinds in (30, 1000):
            folder = self.work / f"fleet-{kinds}"
            folder.mkdir(exist_ok=True)
            argv: list[object] = [self.tool]
            for at, document in enumerate(islice(cycle(machines(kinds)), 1000)):
                path = folder / f"host{at:04}.json"
                path.write_text(json.dumps(document))
                argv += ["--facts", path]
            for name, words in (("plan", []), ("--check", ["--check"])):
                took = measured([*argv, *words, "--json"], accepted=(0, 1, 3))
                self.say(
                    f"fleet of 1,000, {kinds} kinds, {name}",
                    f"{took.cpu:7.2f} s CPU, {took.wall:.2f} s, {took.memory / 1e6:.0f} MB",
                    cpu=round(took.cpu, 2),
                    wall=round(took.wall, 2),
                    memory=took.memory,
                )

    # -- explain ---------------------------------------------------------------------------------

    def explain(self) -> None:
        """Measure a log of a gigabyte, with one failure in its middle."""
        log = self.work / "server.log"
        failed = False
        with log.open("w") as file:  # in short pieces: the memory of this process counts as theirs
            for at in range(20_000):
                if not failed and file.tell() > GIGABYTE // 2:
                    failed = True
                    file.write(FAILURE + "\n")
                numbers = range(at * 1_000, (at + 1) * 1_000)
                rows = [LINES[n % 4].format(n % 60, n % 7919, n) for n in numbers]
                file.write("\n".join(rows) + "\n")
                if file.tell() > GIGABYTE:
                    break
        took = measured([self.tool, "explain", log, "--json"], accepted=(0, 1))
        size = log.stat().st_size
        self.say(
            "explain, a log of 1 GB",
            f"{took.wall:7.2f} s, {took.memory / 1e6:.0f} MB",
            wall=round(took.wall, 2),
            memory=took.memory,
            bytes=size,
        )
        log.unlink()

    # -- site ------------------------------------------------------------------------------------

    def site(self) -> None:
        """Measure the site in a browser: the first answer loads Python and this program."""
        folder = self.work / "site"
        subprocess.run([sys.executable, ROOT / "scripts" / "site.py", folder], check=True)
        question = (ROOT / "data" / "example_machine.json").read_text("utf-8")
        with served(folder) as base, chromium() as browser:
            asking, took = Asking(browser, base), []
            for _ in range(RUNS):
                begin = time.monotonic()
                asking.answer(question)
                took.append(time.monotonic() - begin)
            pages = measure(browser, base)
        size = sum(file.stat().st_size for file in (folder / "python").iterdir())
        later = statistics.median(took[1:])
        self.say(
            "site, the first answer and a later one",
            f"{took[0]:7.2f} s, {later:.2f} s, {size / 1e6:.1f} MB",
            first=round(took[0], 2),
            later=round(later, 2),
            bytes=size,
        )
        for name, page in pages.items():
            text = f"{page['shown_ms']:5.0f} ms, {page['bytes'] / 1e3:.0f} kB"
            self.say(f"site, page {name}", text, **page)


def fill(site: Path, count: int) -> None:
    """Write the metadata of `count` distributions that require one another."""
    for at in range(count):
        info = site / f"dist_{at:04}-1.{at % 9}.dist-info"
        info.mkdir()
        others = [f"dist-{(at * 7 + step) % count:04}" for step in range(6)]
        requires = [f"{name}>=1; python_version >= '3.8'" for name in others[:3]]
        requires += [f"{name}>=2,<3; extra == 'more'" for name in others[3:]]
        requires += ["numpy>=1.21"] if at % 5 == 0 else []
        requires += [f"{others[0]}[more]; extra == 'all'"] if at % 10 == 0 else []
        rows = "".join(f"Requires-Dist: {row}\n" for row in requires)
        name = f"Metadata-Version: 2.1\nName: dist-{at:04}\nVersion: 1.{at % 9}\n"
        (info / "METADATA").write_text(name + rows)
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n")


def machines(kinds: int) -> list[dict[str, object]]:
    """Return the facts of machines that differ in driver, GPU, Python or packages."""
    example = json.loads((ROOT / "data" / "example_machine.json").read_text())
    branches = [row["branch"] for row in load_table("drivers")["branch"]]
    cards = ("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
    numpys = ("1.26.4", "2.0.2", "2.2.6", "2.4.6")
    pythons = ("3.10.14", "3.11.7", "3.12.8", "3.13.2")
    found = []
    for driver, card, numpy, python in islice(product(branches, cards, numpys, pythons), kinds):
        packages = [
            row | {"version": numpy} if row["name"] == "numpy" else row
            for row in example["packages"]
        ]
        found.append(
            example
            | {
                "driver": {"version": f"{driver}.10", "cuda": None, "error": None},
                "gpus": [{"name": "GPU", "compute_capability": card, "memory_mib": 24000}],
                "python": example["python"] | {"version": python},
                "packages": packages,
            }
        )
    return found


def main() -> int:
    """Measure, print, and record."""
    kinds = ("install", "sets", "plan", "fleet", "explain", "site")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, metavar="ROW")
    parser.add_argument("--work", type=Path, metavar="DIR")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        bench = Bench(Path(folder))
        uv = subprocess.run([bench.uv, "--version"], check=True, capture_output=True, text=True)
        for kind in given.only:
            getattr(bench, kind)()
    if given.record:
        about = {
            "processors": os.cpu_count(),
            "load_average_before": round(before, 2),
            "uv": uv.stdout.split()[1],
        }
        rows = known("benchmark").get("rows", {}) | bench.rows
        write("benchmark", {**about, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
