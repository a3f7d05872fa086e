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
NEEDED = {"system": "--platform", "driver": "--driver", "gpus": "--gpu", "python": "--python"}
"""What a plan has to know, and the flag that says it."""


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


def answer(text: str, language: str, chosen: str = "{}") -> str:
    """Return as JSON the causes in a text, the plan for the machine of its outputs, and what lacks.

    `chosen`: what was chosen in the form, by the keys of `NEEDED`, and `torch`, as JSON. A torch is
    one more line of `pip freeze`.
    """
    os.environ["ORTGPU_FIX_LANG"] = language
    form = json.loads(chosen)
    flags = [word for fact, flag in NEEDED.items() if fact in form for word in (flag, form[fact])]
    found: dict[str, object] = {"causes": "", "plan": "", "why": ""}
    files: dict[str, str] = {}
    unknown: list[str] = []
    machine = ["--facts", "/tmp/machine.json"]  # noqa: S108 - of the browser
    facts, pasted = Path(machine[1]), Path("/tmp/issue.txt")  # noqa: S108
    if is_facts(text):
        facts.write_text(text, "utf-8")
    else:
        pasted.write_text(text, "utf-8")
        if text.strip():
            _, files["explain.json"], _ = run("explain", str(pasted), "--text-only", "--json")
            _, found["causes"], _ = run("explain", str(pasted), "--text-only")
        if "torch" in form:
            pasted.write_text(f"{text}\ntorch=={form['torch']}\n", "utf-8")
        code, read, _ = run("facts", "--from-text", str(pasted), *flags)
        if code == 0:
            files["facts.json"], unknown = read, unknown_in(read)
            facts.write_text(read, "utf-8")
        else:  # no outputs: the form describes the machine
            machine = flags
            unknown = [fact for fact, flag in NEEDED.items() if flag not in flags]
    return json.dumps(
        {**found, "unknown": unknown, "files": files} | planned(machine, files, unknown)
    )


def planned(machine: list[str], files: dict[str, str], unknown: list[str]) -> dict[str, object]:
    """Return the plan for a machine, and its commands; nothing while something is unknown."""
    if unknown:
        return {"commands": []}
    code, plan, problem = run(*machine)
    _, files["plan.json"], _ = run(*machine, "--json")
    _, why, _ = run(*machine, "--verbose")
    failed = code in FAILED
    lines = [] if failed else plan.splitlines()
    commands = [line for line in lines if line.startswith("ortgpu-fix ")]
    return {"plan": problem if failed else plan, "why": why, "commands": commands}
