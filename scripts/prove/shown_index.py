"""Prove that the two commands which a plan shows for Microsoft's index end in a plan and an apply.

    python scripts/prove/shown_index.py WHEEL [--find-links DIR] [--work DIR] [--results DIR]

WHEEL is a real wheel of onnxruntime-gpu 1.26.0, built for CUDA 12, for this Python. PyPI's 1.31.1
is for CUDA 13, which driver 535 does not run: so the plan for `--ort 1.31.1` ends with the commands
that look into Microsoft's index for CUDA 12, which cannot be reached everywhere. WHEEL is packed
anew as 1.31.1 and served by an index on this machine, whose address takes the place of Microsoft's
in those commands; nothing else in them changes. They are run as they are printed, then the command
that ends the second plan, with NVIDIA's wheels from the usual index (or DIR). The dated result goes
to scripts/prove/results/; the exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.other_index import MACHINE, Prover, repack
from prove.outcomes import RESULTS
from support.local_index import LocalIndex

RELEASE = "1.31.1"
FEED = "https://aiinfra.pkgs.visualstudio.com/PublicPackages/_packaging/onnxruntime-cuda-12/pypi/simple/"
DRIVER = {"version": "535.104.12", "cuda": "12.2"}
IMPOSSIBLE = 3


def shown(prover: Prover, *words: str) -> tuple[int, list[list[str]], str]:
    """Run the program; return the exit code, the commands that it shows, and all it says."""
    code, out, err = prover.run(*words)
    lines = [line.strip() for line in out.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("ortgpu-fix --")]
    commands += [shlex.split(line)[1:] for line in lines if line.startswith("ortgpu-fix matrix ")]
    return code, commands, out + err


def prove(prover: Prover, links: list[str]) -> None:
    """Follow what is shown, from the plan to the apply."""
    folder = prover.work / "venv"
    venv.create(folder, with_pip=False)
    asked = ("--facts", "machine.json", "--python", str(folder), "--ort", RELEASE)
    code, commands, said = shown(prover, *asked)
    prover.expect(f"without the index nothing works: {code}", holds=code == IMPOSSIBLE)
    update, again = commands[1], commands[0]
    address = update[-1]
    prover.expect(f"shown: {shlex.join(update)}", holds=address == FEED and "--update" in update)
    prover.expect(f"shown: {shlex.join(again)}", holds=sorted(again) == sorted(asked))
    code, out, err = prover.run(*update[:-1], prover.index.url, "--json")
    added = json.loads(out)["added"] if code == 0 else err[-300:]
    holds = added == [f"onnxruntime-gpu {RELEASE}"]
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
    metadata = site / f"onnxruntime_gpu-{RELEASE}.dist-info"
    prover.expect("the build is there", holds=metadata.is_dir())
    cuda = {path.name.split("-")[0].rpartition("_")[2] for path in site.glob("nvidia_*.dist-info")}
    prover.expect(f"with NVIDIA's wheels for {cuda}", holds=cuda == {"cu12"})
    code, _, _ = prover.run(*asked, "--check")
    prover.expect(f"--check ends with {code}", holds=code == 0)


def main() -> int:
    """Prove it; return 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--find-links", metavar="DIR")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="prove-shown-"))
    feed = work / "feed"
    feed.mkdir(parents=True, exist_ok=True)
    links = ["--find-links", options.find_links] if options.find_links else []
    machine = {**MACHINE, "driver": DRIVER}
    (work / "machine.json").write_text(json.dumps(machine), encoding="utf-8")
    with LocalIndex(feed) as index:
        prover = Prover(work, index, repack(options.wheel, feed, RELEASE))
        prove(prover, links)
    names = {str(work): "WORK", f":{index.port}": ":PORT"}
    prover.write("shown-index", options.results, names)
    if options.work is None:
        shutil.rmtree(work)
    return bool(prover.wrong)


if __name__ == "__main__":
    sys.exit(main())
