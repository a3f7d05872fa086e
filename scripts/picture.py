"""Make the picture of the README: a broken environment fixed on a machine with a GPU.

    python3 scripts/picture.py .github/apply.svg

The machine is one of `tests/captures`, and what ran on it is in `scripts/prove/results`: an apply
with real wheels, verified on its GPU. What this program says of both today is drawn, but for its
progress, which no record has.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Row, Section, lines_of
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.report.verification import verification_sections
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.verify.verification import Verification

ROOT = Path(__file__).resolve().parents[1]
MACHINE = ROOT / "tests" / "captures" / "linux-h100-580-system-cuda" / "expected.json"
RECORD = ROOT / "scripts" / "prove" / "results" / "gpu-2026-11-26-cuda-12.json"
COLUMNS = 80
COMMAND = "ortgpu-fix --apply --cuda 12 --python .venv"
BESIDE = ("numpy", "flatbuffers", "packaging", "protobuf", "sympy", "coloredlogs")
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def main() -> int:
    """Draw what is said of the recorded machine and of the apply on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    recorded = json.loads(RECORD.read_text("utf-8"))["states"]["cuda-12"]
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(f"[bold]$[/] {COMMAND}", highlight=False)
    for at, section in enumerate(said_of(facts_of(recorded), recorded)):
        if at:
            console.print()
        for line, style in lines_of(section, COLUMNS):
            console.print(Text(line, style=style), soft_wrap=True)
    drawn = console.export_svg(title="", theme=MONOKAI, unique_id="apply")
    drawn = re.sub(r"@font-face \{.*?\n    \}\n", "", drawn, flags=re.DOTALL)  # nothing is fetched
    drawn = re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE)
    arguments.picture.write_text(drawn.replace("Fira Code, monospace", FONT), encoding="utf-8")
    return 0


def facts_of(recorded: dict[str, Any]) -> Facts:
    """Return the machine with the environment that the record had: the CPU-only package."""
    document = json.loads(MACHINE.read_text("utf-8"))["facts"]
    version = recorded["before"]["answer"]["version"]
    document["python"] |= {"executable": ".venv/bin/python"}
    document["packages"] = [
        {"name": "onnxruntime", "version": version, "requires": []},
        *({"name": name, "version": "99", "requires": []} for name in BESIDE),
    ]
    document["onnxruntime"] = {"distribution": "onnxruntime", "version": version}
    return from_json(document)


def said_of(facts: Facts, recorded: dict[str, Any]) -> list[Section]:
    """Return the plan, the question, what the record's verification says, and the end."""
    texts = load_texts("en")
    plan = resolve(facts, PlanOptions(cuda="12"), load_matrix())
    if plan.release != recorded["after"][0]["answer"]["version"]:
        sys.exit("the recorded apply is no longer what is planned: take a newer record")
    verdict = recorded["apply"]["answer"]["verification"]["verdict"]
    verification = Verification(verdict=verdict, plain=True)
    sections = plan_sections(plan, facts, texts, verbose=False, asked=False, command="")
    asked = Row(text=f"{texts.label('ask').strip()} y")
    done = Row(text=texts.label("applied", build=plan.build))
    return [
        *sections,
        Section(rows=(asked,)),
        *verification_sections(verification, texts, verbose=False),
        Section(rows=(done,)),
    ]


if __name__ == "__main__":
    sys.exit(main())
