"""What the page that answers runs in the browser: the command line itself, on what was entered.

Everything that it shows is what these commands print; `files` are their documents, byte for byte.
"""

import contextlib
import io
import json
import os
from pathlib import Path

from ortgpu_fix.__main__ import main

FAILED = (2, 7)
"""The exit codes of a command that could not read what it got."""
FLAGS = {"system": "--platform", "python": "--python"}
"""What no output of nvidia-smi, pip or conda shows, and the options for it."""


def run(*argv: str) -> tuple[int, str, str]:
    """Return the exit code, what was printed, and what was told beside it."""
    said, told = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = main(argv)
    for stream in (said, told):
        stream.seek(0)
    return code, said.read(), told.read()


def is_facts(text: str) -> bool:
    """Tell whether a text is a facts file."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"platform", "python"} <= document.keys()


def unknown_in(facts: str) -> list[str]:
    """Return what a facts file does not say, and a plan has to know."""
    document = json.loads(facts)
    said = {
        "system": document["platform"]["system"] and document["platform"]["machine"],
        "driver": document["driver"]["version"],
        "gpus": document["gpus"],
        "python": document["python"]["version"],
    }
    return [fact for fact, value in said.items() if not value]


def outputs_of(form: dict[str, str]) -> str:
    """Return what nvidia-smi and pip would print of a machine of the form."""
    shown = {"name": form.get("gpus"), "driver_version": form.get("driver")}
    row = {column: value for column, value in shown.items() if value}
    smi = f"{', '.join(row)}\n{', '.join(row.values())}\n" if row else ""
    return smi + (f"\ntorch=={form['torch']}\n" if "torch" in form else "")


def answer(text: str, language: str, chosen: str = "{}") -> str:
    """Return as JSON the causes in a text, the plan for the machine of its outputs, and what lacks.

    `chosen`: what was chosen in the form, as JSON: `system`, `driver`, `gpus`, `python`, `torch`.
    """
    os.environ["ORTGPU_FIX_LANG"] = language
    form = json.loads(chosen)
    flags = [word for fact, flag in FLAGS.items() if fact in form for word in (flag, form[fact])]
    found: dict[str, object] = {"causes": "", "plan": "", "why": "", "commands": [], "unknown": []}
    files: dict[str, str] = {}
    facts, pasted = Path("facts.json"), Path("pasted.txt")  # in the browser, and named in answers
    if is_facts(text):
        facts.write_text(text, "utf-8")
    else:
        pasted.write_text(text, "utf-8")
        if text.strip():
            _, files["explain.json"], _ = run("explain", str(pasted), "--text-only", "--json")
            _, found["causes"], _ = run("explain", str(pasted), "--text-only")
        pasted.write_text(f"{text}\n\n{outputs_of(form)}", "utf-8")
        code, read, problem = run("facts", "--from-text", str(pasted), *flags)
        if code == 0:
            files["facts.json"], found["unknown"] = read, unknown_in(read)
            facts.write_text(read, "utf-8")
        else:  # no outputs, or those of two machines
            found["unknown"] = [fact for fact in ("driver", "gpus", *FLAGS) if fact not in form]
            found["plan"] = "" if found["unknown"] else problem
    if not found["unknown"] and not found["plan"]:
        found |= planned(facts, files)
    return json.dumps({**found, "files": files})


def planned(facts: Path, files: dict[str, str]) -> dict[str, object]:
    """Return the plan for the machine of a facts file, and its commands."""
    code, plan, problem = run("--facts", str(facts))
    _, files["plan.json"], _ = run("--facts", str(facts), "--json")
    _, why, _ = run("--facts", str(facts), "--verbose")
    failed = code in FAILED
    lines = [] if failed else plan.splitlines()
    commands = [line for line in lines if line.startswith("ortgpu-fix ")]
    return {"plan": problem if failed else plan, "why": why, "commands": commands}
