"""What the page that answers runs in the browser: the command line itself, on what was pasted.

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


def answer(text: str, language: str) -> str:
    """Return as JSON what the text tells, its causes, the plan, and what is not told."""
    os.environ["ORTGPU_FIX_LANG"] = language
    found: dict[str, object] = {"read": "", "causes": "", "plan": "", "why": ""}
    files: dict[str, str] = {}
    unknown: list[str] = []
    commands: list[str] = []
    facts, pasted = Path("/tmp/machine.json"), Path("/tmp/issue.txt")  # noqa: S108 - of the browser
    if is_facts(text):
        facts.write_text(text, "utf-8")
    else:
        pasted.write_text(text, "utf-8")
        _, files["explain.json"], _ = run("explain", str(pasted), "--text-only", "--json")
        explained = json.loads(files["explain.json"])
        unknown = explained["machine"]["unknown"]
        told = [*explained["machine"]["told"], *explained["machine"]["contradictions"]]
        _, causes, _ = run("explain", str(pasted), "--text-only")
        lines = causes.splitlines(keepends=True)
        found["read"], found["causes"] = "".join(lines[: len(told)]), "".join(lines[len(told) :])
        _, files["facts.json"], _ = run("facts", "--from-text", str(pasted))
        facts.write_text(files["facts.json"], "utf-8")
    if not unknown:
        code, plan, problem = run("--facts", str(facts))
        found["plan"] = problem if code in FAILED else plan
        _, files["plan.json"], _ = run("--facts", str(facts), "--json")
        _, found["why"], _ = run("--facts", str(facts), "--verbose")
        if code not in FAILED:
            commands = [line for line in plan.splitlines() if line.startswith("ortgpu-fix ")]
    return json.dumps({**found, "unknown": unknown, "commands": commands, "files": files})
