"""Record this machine for the tests: `python scripts/record_machine.py NAME [--python PATH]`.

Writes `tests/captures/NAME/capture.json` and the facts in it beside it. Homes, host names, logins
and serial numbers are replaced while the machine is read; look through the file all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from ortgpu_fix.data_files import load_table
from ortgpu_fix.errors import Error
from ortgpu_fix.facts import capture
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.gpu_names import capability_by_name
from ortgpu_fix.probe.background import ProbeProcesses
from ortgpu_fix.probe.interpreter import find_interpreter
from ortgpu_fix.probe.machine import probe
from ortgpu_fix.utils import process as run

FOLDER = Path(__file__).parents[1] / "tests" / "captures"


def main(argv: list[str]) -> int:
    """Record the machine; return 1 where its environment cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="system, GPU, driver and what is special: linux-a10-550-mig")
    parser.add_argument("--python", help="the environment: an interpreter or a folder")
    arguments = parser.parse_args(argv)
    try:
        interpreter = find_interpreter(arguments.python, os.environ, Path.cwd())
        seen = probe(
            ProbeProcesses(interpreter, runner=run.run, environ=os.environ),
            runner=run.run,
            environ=os.environ,
        ).capture
        facts = capture.facts(seen, capability_by_name(load_table("gpus")))
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    folder = FOLDER / arguments.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in (
        ("capture", capture.to_json(seen)),
        ("expected", {"facts": facts_json.to_json(facts)}),
    ):
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"{folder}: look through it before you commit it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
