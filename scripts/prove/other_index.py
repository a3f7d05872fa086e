"""Prove that a build of another index is read, planned, locked and installed from there alone.

    python scripts/prove/other_index.py WHEEL [--find-links DIR] [--work DIR] [--results DIR]

WHEEL is a real wheel of onnxruntime-gpu for this Python. It is packed anew under another version
with a local build tag, as a company would build it, and served by an index on this machine, which
has nothing else. `matrix --update --ort-index-url` reads it; a plan for an NVIDIA L4 with driver
570 chooses it; it is locked, checked, downloaded and installed, with NVIDIA's wheels from the usual
index (or DIR), verified and taken back. Then the index serves another file under that name: nothing
is installed.

And the two commands that a plan shows for Microsoft's index end in an apply: WHEEL, which has to be
1.26.0 for CUDA 12, is packed anew as 1.31.1, whose build on PyPI is for CUDA 13, which driver 535
does not run. So the plan for `--ort 1.31.1` ends with the commands that look into Microsoft's index
for CUDA 12. They are run as they are printed, with the address of the index here in the place of
Microsoft's, which cannot be reached everywhere.

The dated result goes to scripts/prove/results/; the exit code is 1 where something is not as it
must be.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import RESULTS, Expectations, write
from support.local_index import LocalIndex

IMPOSSIBLE, REFUSED = 3, 7
TAG = "+cu128.local.7"
MACHINE = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.36"},
    "driver": {"version": "570.86.10", "cuda": "12.8"},
    "gpus": [{"name": "NVIDIA L4", "compute_capability": "8.9"}],
    "python": {"version": "{}.{}.{}".format(*sys.version_info[:3])},
    "packages": [],
}
NEWER = "1.31.1"
FEED = "https://aiinfra.pkgs.visualstudio.com/PublicPackages/_packaging/onnxruntime-cuda-12/pypi/simple/"
OLD_DRIVER = {"driver": {"version": "535.104.12", "cuda": "12.2"}}
DATED = (2026, 1, 1, 0, 0, 0)


def next_patch(wheel: Path) -> str:
    """Return the next patch release of a wheel, with a local build tag."""
    first, second, patch = wheel.name.split("-")[1].split(".")
    return f"{first}.{second}.{int(patch) + 1}{TAG}"


def repack(source: Path, folder: Path, new: str) -> Path:
    """Pack a wheel anew under the version `new`; return its path."""
    old = source.name.split("-")[1]
    goal = folder / source.name.replace(f"-{old}-", f"-{new}-")
    rows: list[str] = []
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(goal, "w") as after:
        for info in before.infolist():
            name = info.filename.replace(f"-{old}.dist-info", f"-{new}.dist-info")
            if name.endswith(("/", ".dist-info/RECORD")):
                continue
            data = before.read(info)
            if name.endswith((".dist-info/METADATA", "/build_and_package_info.py")):
                data = data.replace(old.encode(), new.encode())
            after.writestr(zipfile.ZipInfo(name, DATED), data, zipfile.ZIP_DEFLATED, 1)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        record = f"onnxruntime_gpu-{new}.dist-info/RECORD"
        after.writestr(zipfile.ZipInfo(record, DATED), "".join([*rows, f"{record},,\n"]))
    return goal


class Prover(Expectations):
    """Runs the program as a user of its own would, and keeps what it did."""

    def __init__(self, work: Path, index: LocalIndex, wheel: Path) -> None:
        super().__init__(wheel=wheel.name, bytes=wheel.stat().st_size)
        self.work, self.index, self.wheel = work, index, wheel
        self.sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
        self.version = wheel.name.split("-")[1]
        self.environ = {
            name: text for name, text in os.environ.items() if not name.startswith("XDG_")
        } | {"HOME": str(work / "home"), "LANG": "C.UTF-8"}

    def run(self, *argv: str) -> tuple[int, str, str]:
        """Run the program; return the exit code, stdout and stderr."""
        words = [sys.executable, "-m", "ortgpu_fix", *argv]
        done = subprocess.run(
            words, env=self.environ, cwd=self.work, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


def prove_plan(prover: Prover) -> None:
    """Read the index, and plan: the build comes from there, by its hash."""
    code, out, err = prover.run("matrix", "--update", "--json", "--ort-index-url", prover.index.url)
    added = json.loads(out)["added"] if code == 0 else err
    name = f"onnxruntime-gpu {prover.version}"
    prover.expect(f"matrix --update reads {added}", holds=added == [name])
    received = json.loads(out)["received"][prover.wheel.name] if code == 0 else 0
    size = prover.wheel.stat().st_size
    prover.expect(f"{received} of {size} bytes came", holds=0 < received <= size)
    _, out, _ = prover.run("--facts", "machine.json", "--json")
    rows = {row["name"]: row for row in json.loads(out)["install"]}
    build = rows["onnxruntime-gpu"]
    there = (build["version"], build["index"], build["sha256"])
    wanted = (prover.version, prover.index.url, prover.sha256)
    prover.expect(f"the plan chooses {there}", holds=there == wanted)
    read = build.get("hash_read", {})
    prover.expect(f"and says who gave the hash: {read}", holds=read.get("index") == wanted[1])
    others = {row["index"] for name, row in rows.items() if name != "onnxruntime-gpu"}
    prover.expect(f"all others come from {others}", holds=others == {"pypi"})


def prove_lock(prover: Prover, links: list[str]) -> None:
    """Lock in every format, and download."""
    for form in ("requirements", "pylock", "uv", "dockerfile"):
        file = prover.work / f"lock.{form}"
        argv = ("lock", "--facts", "machine.json", "--format", form, "-o", file.name, "-d", "made")
        code, _, err = prover.run(*argv)
        text = file.read_text(encoding="utf-8") if code == 0 else err
        hashed = prover.sha256 in text or form == "uv"  # uv itself locks the hashes
        whole = prover.version in text and prover.index.url.removesuffix("/simple") in text
        said = f"hash as {prover.index.url} gave it on " in text
        prover.expect(f"lock --format {form}: index and hash", holds=whole and hashed and said)
    code, _, err = prover.run("download", "--facts", "machine.json", "-d", "all", *links)
    file = prover.work / "all" / prover.wheel.name
    there = code == 0 and hashlib.sha256(file.read_bytes()).hexdigest() == prover.sha256
    prover.expect(f"download brings it {err[-200:] if code else ''}".rstrip(), holds=there)


def prove_apply(prover: Prover, links: list[str]) -> None:
    """Install it, check and undo; then refuse another file under its name."""
    folder = prover.work / "venv"
    venv.create(folder, with_pip=False)
    target = ("--facts", "machine.json", "--python", str(folder))
    begin = time.monotonic()
    code, _, err = prover.run(*target, "--apply", "--yes", *links)
    prover.result["apply_seconds"] = round(time.monotonic() - begin)
    prover.expect(f"apply ends with 0 {err[-300:] if code else ''}".rstrip(), holds=code == 0)
    site = next((folder / "lib").glob("python*/site-packages"))
    metadata = site / f"onnxruntime_gpu-{prover.version}.dist-info"
    prover.expect("the build is there", holds=metadata.is_dir())
    row = ["onnxruntime-gpu", prover.version, prover.index.url, prover.sha256]
    journals = [path.read_text() for path in site.rglob("journal*") if path.is_file()]
    named = any(json.dumps(row) in text.replace('","', '", "') for text in journals)
    prover.expect("the journal has index and hash", holds=named)
    code, _, err = prover.run("lock", "--check", "lock.requirements", *target)
    prover.expect(f"lock --check finds it locked: {code} {err[-200:]}", holds=code == 0)
    code, _, _ = prover.run(*target, "--check")
    prover.expect("the environment is healthy", holds=code == 0)
    code, _, _ = prover.run("undo", "--python", str(folder), "--yes")
    prover.expect("undo takes it back", holds=code == 0 and not metadata.exists())
    prover.wheel.write_bytes(prover.wheel.read_bytes()[::-1])
    code, _, err = prover.run(*target, "--apply", "--yes", *links)
    said = next((line for line in err.splitlines() if line.startswith("error")), err[-200:])
    prover.expect(
        f"another file under its name is refused: {code} {said}",
        holds=code == REFUSED and not metadata.exists() and prover.wheel.name in said,
    )


def prove_all(prover: Prover, links: list[str]) -> None:
    """From reading the index to an apply that is refused."""
    prove_plan(prover)
    prove_lock(prover, links)
    prove_apply(prover, links)


def shown(prover: Prover, *words: str) -> tuple[int, list[list[str]], str]:
    """Run the program; return the exit code, the commands that it shows, and all it says."""
    code, out, err = prover.run(*words)
    lines = [line.strip() for line in out.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("ortgpu-fix --")]
    commands += [shlex.split(line)[1:] for line in lines if line.startswith("ortgpu-fix matrix ")]
    return code, commands, out + err


def prove_shown_commands(prover: Prover, links: list[str]) -> None:
    """Follow what is shown, from the plan to the apply."""
    folder = prover.work / "venv"
    venv.create(folder, with_pip=False)
    asked = ("--facts", "machine.json", "--python", str(folder), "--ort", NEWER)
    code, commands, said = shown(prover, *asked)
    prover.expect(f"without the index nothing works: {code}", holds=code == IMPOSSIBLE)
    update, again = commands[1], commands[0]
    address = update[-1]
    prover.expect(f"shown: {shlex.join(update)}", holds=address == FEED and "--update" in update)
    prover.expect(f"shown: {shlex.join(again)}", holds=sorted(again) == sorted(asked))
    code, out, err = prover.run(*update[:-1], prover.index.url, "--json")
    added = json.loads(out)["added"] if code == 0 else err[-300:]
    holds = added == [f"onnxruntime-gpu {NEWER}"]
    prover.expect(f"the first one reads {added}", holds=holds)
    code, commands, said = shown(prover, *again)
    prover.expect(f"the second one ends in a plan: {code}", holds=code == 1)
    prover.result["plan"] = said.splitlines()
    apply = commands[-1]
    prover.expect(f"whose last line is {shlex.join(apply)}", holds=apply[-1] == "--apply")
    code, out, err = prover.run(*apply, "--yes", *links)
    prover.result["apply"] = [line for line in out.splitlines() if line][-8:]
    prover.expect(f"which ends with {code} {err[-300:] if code else ''}".rstrip(), holds=code == 0)
    site = next((folder / "lib").glob("python*/site-packages"))
    metadata = site / f"onnxruntime_gpu-{NEWER}.dist-info"
    prover.expect("the build is there", holds=metadata.is_dir())
    cuda = {path.name.split("-")[0].rpartition("_")[2] for path in site.glob("nvidia_*.dist-info")}
    prover.expect(f"with NVIDIA's wheels for {cuda}", holds=cuda == {"cu12"})
    code, _, _ = prover.run(*asked, "--check")
    prover.expect(f"--check ends with {code}", holds=code == 0)


Part = Callable[[Prover, "list[str]"], None]
PARTS: dict[str, tuple[Part, str, dict[str, Any]]] = {
    "an index of one's own": (prove_all, "", {}),
    "Microsoft's index": (prove_shown_commands, NEWER, OLD_DRIVER),
}
"""What is proved, the version that the index has (none: the next patch), and the machine."""


def main() -> int:
    """Prove it all; return 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--find-links", metavar="DIR")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    links = ["--find-links", options.find_links] if options.find_links else []
    found: dict[str, dict[str, Any]] = {}
    for number, (name, (prove, version, machine)) in enumerate(PARTS.items()):
        work = Path(options.work or tempfile.mkdtemp(prefix="prove-index-"), str(number))
        feed = work / "feed"
        feed.mkdir(parents=True)
        (work / "machine.json").write_text(json.dumps(MACHINE | machine), encoding="utf-8")
        with LocalIndex(feed) as index:
            wheel = repack(options.wheel, feed, version or next_patch(options.wheel))
            prover = Prover(work, index, wheel)
            prove(prover, links)
        found[name] = prover.outcome({str(work): "WORK", f":{index.port}": ":PORT"})
        if options.work is None:
            shutil.rmtree(work.parent)
    print(write("other-index", found, options.results).read_text(encoding="utf-8"))
    return int(any(part["wrong"] for part in found.values()))


if __name__ == "__main__":
    sys.exit(main())
