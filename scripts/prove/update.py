"""Prove `matrix --update` against the real index: the rows that come back are the shipped ones.

    python scripts/prove/update.py [--work DIR] [--before 1.30.0] [--results DIR]

The installed program is copied, and the tables of the copy are cut back to what the index had when
onnxruntime-gpu `--before` appeared, NVIDIA's, the toolkits' and torch's too: the index says when
each file was uploaded. Then, for the platform of this machine:

- `matrix --update` of the copy, timed; its rows with the cut tables say of each release what the
  shipped tables say; no wheel costs more bytes than it has.
- Killed (SIGKILL) when half of the readings are there, and run again: no reading is made twice, and
  the rows are the same.
- Without a network, on a full disk, and with a damaged file: one sentence and the exit code; with
  room on the disk it goes on.

Needs Linux, a network, and root for the small file system; reads about 5 GB twice and keeps a few
megabytes. The dated result goes to scripts/prove/results/; the exit code is 1 where something is
not as it must be.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import requests

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from same_rows import said

import ortgpu_fix
from ortgpu_fix.matrix.additions import parse_additions, with_additions
from prove.outcomes import RESULTS, Expectations
from support.cut_matrix import GROWING, Tables, cut_tables

INDEX = "https://pypi.org/simple"
JSON = "application/vnd.pypi.simple.v1+json"
LIMIT = 300.0
"""Seconds that an update may take."""
PAUSE = 0.2


@cache
def uploads(name: str) -> dict[str, str]:
    """Return when the first file of each release of a distribution was uploaded."""
    answer = requests.get(f"{INDEX}/{name}/", headers={"Accept": JSON}, timeout=60)
    answer.raise_for_status()
    times: dict[str, str] = {}
    for file in answer.json()["files"]:
        version = file["filename"].split("-")[1]
        times[version] = min(times.get(version, "9"), file["upload-time"])
    return times


def read_tables(compiled: Path) -> dict[str, Any]:
    """Return the tables of a `compiled.jsonl`, by name."""
    names, *lines = compiled.read_text(encoding="utf-8").splitlines()
    return dict(zip(json.loads(names), map(json.loads, lines), strict=True))


def write_tables(compiled: Path, tables: dict[str, Any]) -> None:
    """Write a `compiled.jsonl`."""
    lines = {name: json.dumps(table) for name, table in tables.items()}
    hashes = {name: hashlib.sha256(line.encode()).hexdigest() for name, line in lines.items()}
    compiled.write_text("\n".join([json.dumps(hashes), *lines.values()]) + "\n", encoding="utf-8")


class Prover(Expectations):
    """Runs the copy of the program, and keeps what it did."""

    def __init__(self, work: Path, before: str) -> None:
        self.work = work
        self.site = work / "site"
        package = Path(ortgpu_fix.__file__).parent
        shutil.copytree(package, self.site / "ortgpu_fix", dirs_exist_ok=True)
        self.compiled = self.site / "ortgpu_fix" / "data" / "compiled.jsonl"
        self.shipped = read_tables(package / "data" / "compiled.jsonl")
        self.day = uploads("onnxruntime-gpu")[before]
        self.cut: Tables = cut_tables(
            self.shipped, lambda name, version: uploads(name).get(version, "") >= self.day
        )
        self.cut["onnxruntime"]["date"] = self.day[:10]
        write_tables(self.compiled, self.shipped | self.cut)
        self.place = f"linux_{platform.machine()}"
        super().__init__(
            program=ortgpu_fix.__version__,
            processors=os.cpu_count(),
            platform=self.place,
            index=INDEX,
            cut_back_to=self.day,
        )

    def start(self, home: Path, *argv: str) -> subprocess.Popen[str]:
        """Start the copy with `home` as the user's home."""
        environ = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("XDG_", "PYTHON", "PIP_INDEX", "UV_"))
        }
        environ |= {"HOME": str(home), "PYTHONPATH": str(self.site), "LANG": "C.UTF-8"}
        return subprocess.Popen(
            [sys.executable, "-m", "ortgpu_fix", *argv],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, home: Path, *argv: str) -> tuple[int, str, str]:
        """Run the copy; return the exit code, stdout and stderr."""
        with self.start(home, *argv) as process:
            out, err = process.communicate()
        return process.returncode, out, err

    def rows_differ(self, file: Path) -> list[str]:
        """Return the releases of which the cut tables with the rows of `file` differ."""
        added = parse_additions(file.read_bytes(), file)
        grown = {name: with_additions(name, self.cut[name], [added]) for name in GROWING}
        now, before = said(grown, self.place), said(self.shipped, self.place)
        return sorted(str(key) for key in {*now, *before} if now.get(key) != before.get(key))


def prove_rows(prover: Prover) -> dict[str, Any]:
    """Update once, timed; compare the rows, and the bytes of each wheel."""
    home, file = prover.work / "home", prover.work / "rows.json"
    begin, load = time.monotonic(), os.getloadavg()
    code, out, err = prover.run(home, "matrix", "--update", "--json", "-o", str(file))
    seconds = time.monotonic() - begin
    prover.expect(f"matrix --update ends with 0 ({err[-300:].strip()!r})", holds=code == 0)
    document = json.loads(out)
    missing = said(prover.shipped, prover.place).keys() - said(prover.cut, prover.place).keys()
    differ = prover.rows_differ(file)
    prover.expect(f"{len(missing)} releases come back, as they were: {differ}", holds=not differ)
    prover.expect(f"{seconds:.0f} s, less than {LIMIT:.0f}", holds=seconds < LIMIT)
    sizes = wheel_sizes(document["received"])
    over = {name: count for name, count in document["received"].items() if count > sizes[name]}
    prover.expect(f"no wheel costs more than its size: {over}", holds=not over)
    return {
        "seconds": round(seconds, 1),
        "load_before": [round(one, 1) for one in load],
        "load_after": [round(one, 1) for one in os.getloadavg()],
        "releases_cut": len(missing),
        "releases_that_differ": differ,
        "bytes": sum(document["received"].values()),
        "wheels": {
            name: {"bytes": count, "size": sizes[name]}
            for name, count in sorted(document["received"].items(), key=lambda row: -row[1])
        },
    }


def wheel_sizes(files: dict[str, int]) -> dict[str, int]:
    """Return the size of each wheel as the index has it."""
    sizes: dict[str, int] = {}
    for name in {file.split("-")[0].replace("_", "-") for file in files}:
        answer = requests.get(f"{INDEX}/{name}/", headers={"Accept": JSON}, timeout=60)
        sizes |= {file["filename"]: file["size"] for file in answer.json()["files"]}
    return sizes


def readings(home: Path) -> dict[str, int]:
    """Return when each reading was written."""
    folder = home / ".cache" / "ortgpu-fix" / "readings"
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.json")}


def prove_kill(prover: Prover) -> dict[str, Any]:
    """Kill an update half-way, and run it again."""
    home, file = prover.work / "killed", prover.work / "again.json"
    half = len(readings(prover.work / "home")) // 2
    argv = ("matrix", "--update", "--json", "-o", str(file))
    with prover.start(home, *argv) as process:
        while process.poll() is None and len(readings(home)) < half:
            time.sleep(PAUSE)
        process.kill()
        process.communicate()
    kept = readings(home)
    prover.expect(
        f"killed with {len(kept)} of {2 * half} readings, and nothing written",
        holds=process.returncode < 0 and not file.exists(),
    )
    code, out, _ = prover.run(home, *argv)
    after = readings(home)
    prover.expect("run again, it ends with 0", holds=code == 0)
    prover.expect("no reading was made again", holds=kept.items() <= after.items())
    differ = prover.rows_differ(file)
    prover.expect(f"the rows are the shipped ones: {differ}", holds=not differ)
    received = sum(json.loads(out)["received"].values())
    return {"readings_kept": len(kept), "readings_all": len(after), "bytes_of_the_rest": received}


def prove_refusals(prover: Prover) -> dict[str, Any]:
    """Without a network, with a full disk, with damaged files."""
    said_of: dict[str, Any] = {}

    def refused(name: str, code: int, home: Path, *argv: str) -> None:
        got, out, err = prover.run(home, *argv)
        lines = [line for line in err.splitlines() if line.startswith("error")]
        said_of[name] = {"exit": got, "says": err.strip().splitlines()[-3:]}
        clean = "Traceback" not in err and not out and len(lines) == 1
        prover.expect(f"{name}: exit {got}: {lines}", holds=got == code and clean)

    home = prover.work / "refused"
    nowhere = ("--index-url", "http://127.0.0.1:9/simple")
    refused("no network", 7, home, "matrix", "--update", *nowhere)
    with small_disk(prover.work) as disk:
        seed(prover.work / "home", disk)
        refused("full disk", 7, disk, "matrix", "--update")
        free = shutil.disk_usage(disk).free
        said_of["full disk"]["free_bytes_then"] = free
        for path in disk.glob("filler"):
            path.unlink()
        got, _, _ = prover.run(disk, "matrix", "--update")
        rows = disk / ".local/share/ortgpu-fix/matrix.json"
        prover.expect("with room again it goes on", holds=got == 0 and rows.is_file())
        damaged = prover.work / "damaged.json"
        damaged.write_bytes(rows.read_bytes()[:-100])
        refused("damaged FILE", 7, home, "--facts", "example", "--matrix", str(damaged))
        rows.write_bytes(rows.read_bytes()[:-100])
        got, _, err = prover.run(disk, "--facts", "example")
        said_of["damaged file of the user"] = {"exit": got, "says": err.strip().splitlines()}
        prover.expect(
            f"a damaged file of the user is ignored with one notice: {err.strip()}",
            holds=len(err.strip().splitlines()) == 1 and err.startswith("Ignored "),
        )
    return said_of


def seed(home: Path, disk: Path) -> None:
    """Give the user on `disk` all readings but six, and leave it no room for more."""
    files = sorted((home / ".cache").rglob("*.json"))
    for path in files[:-6]:
        goal = disk / path.relative_to(home)
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, goal)
    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))


@contextlib.contextmanager
def small_disk(work: Path) -> Iterator[Path]:
    """Make a file system of 48 MB on a file, and mount it until the block ends."""
    image, place = work / "disk.img", work / "disk"
    place.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def main() -> int:
    """Run all; return 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path)
    parser.add_argument("--before", default="1.30.0", metavar="VERSION")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-update-"))
    work.mkdir(parents=True, exist_ok=True)
    prover = Prover(work, options.before)
    prover.result["update"] = prove_rows(prover)
    prover.result["killed"] = prove_kill(prover)
    prover.result["refusals"] = prove_refusals(prover)
    prover.write("update", options.results, {str(work): "WORK"})
    if options.work is None:
        shutil.rmtree(work)
    return bool(prover.wrong)


if __name__ == "__main__":
    sys.exit(main())
