"""Record a machine for the tests: this one, or one that `scripts/windows_check.py` was on.

    python scripts/record_machine.py NAME [--python PATH]
    python scripts/record_machine.py NAME --check check.json

Writes `tests/captures/NAME/capture.json` and the facts in it beside it. Homes, host names, logins
and serial numbers are replaced while the machine is read; look through the file all the same. Of a
check list it takes the facts, keeps it beside them, and writes its row into the account of
`data/docs/explanation/trust.md`, which has a row of each that is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from ortgpu_fix.data_files import load_table
from ortgpu_fix.errors import Error
from ortgpu_fix.facts import capture
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.gpu_names import capability_by_name
from ortgpu_fix.probe.background import ProbeProcesses
from ortgpu_fix.probe.interpreter import find_interpreter
from ortgpu_fix.probe.machine import probe
from ortgpu_fix.utils import process as run

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "captures"
ACCOUNT = ROOT / "data" / "docs" / "explanation" / "trust.md"
HEAD = ("| check list | where | went well | is wrong | not there |", "|---|---|---|---|---|")


def main(argv: list[str]) -> int:
    """Record the machine; return 1 where its environment cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="system, GPU, driver and what is special: linux-a10-550-mig")
    parser.add_argument("--python", help="the environment: an interpreter or a folder")
    parser.add_argument("--check", type=Path, help="what scripts/windows_check.py wrote")
    arguments = parser.parse_args(argv)
    try:
        if arguments.check is not None:
            documents = of_check(json.loads(arguments.check.read_text("utf-8")))
        else:
            documents = of_this(arguments.python)
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    folder = FOLDER / arguments.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    if arguments.check is not None:
        ACCOUNT.write_text(account(), encoding="utf-8")
    print(f"{folder}: look through it before you commit it")
    return 0


def of_this(python: str | None) -> dict[str, Any]:
    """Return what is kept of this machine. Raises those of `find_interpreter` and `probe`."""
    interpreter = find_interpreter(python, os.environ, Path.cwd())
    seen = probe(
        ProbeProcesses(interpreter, runner=run.run, environ=os.environ),
        runner=run.run,
        environ=os.environ,
    ).capture
    facts = capture.facts(seen, capability_by_name(load_table("gpus")))
    return {"capture": capture.to_json(seen), "expected": {"facts": facts_json.to_json(facts)}}


def of_check(check: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a check list. Raises Error `facts-invalid`."""
    facts_json.from_json(check["facts"])
    return {"check": check, "facts": check["facts"]}


def account() -> str:
    """Return the page of what was tested, with a row for each check list that is kept."""
    rows = [
        row(file.parent.name, json.loads(file.read_text("utf-8")))
        for file in sorted(FOLDER.glob("*/check.json"))
    ]
    before, begin, rest = ACCOUNT.read_text("utf-8").partition("<!-- check lists -->\n")
    _, end, after = rest.partition("<!-- end of check lists -->\n")
    return before + begin + "\n" + "\n".join([*HEAD, *rows]) + "\n\n" + end + after


def row(name: str, check: dict[str, Any]) -> str:
    """Return the row of a check list: where it ran, and what each step came to."""
    system, steps = check["system"], check["steps"]
    where = f"Wine {system['wine']}" if system["wine"] else f"Windows {system['windows']}"
    where += f", Python {system['python']}, code page {system['code_page']}"
    gpus = [gpu["name"] for gpu in check["facts"]["gpus"] or ()]
    where += f", {', '.join(gpus) or 'no GPU'}; {check['date']}"
    told = {"well": [], "wrong": [], "not here": []}  # type: dict[str, list[str]]
    for step in steps:
        why = f" ({step['why']})" if step["outcome"] == "not here" else ""
        told[step["outcome"]].append(step["name"] + why)
    link = f"[`{name}`](../../../tests/captures/{name}/check.json)"
    cells = (link, where, *("; ".join(names) or "nothing" for names in told.values()))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
