"""Write the pages of the documentation that the program itself knows: `data/docs/reference/`.

    python scripts/docs.py             write them
    python scripts/docs.py --check     exit 1 where one is not what the program says

The commands with their options, the exit codes, and the errors that `explain` knows. Needs the
program installed in the Python that runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ortgpu_fix.cli.guests import NAMES
from ortgpu_fix.data_files import load_table

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "data" / "docs" / "reference"


def commands() -> str:
    """Return the help of every command, as it is printed."""
    parts = ["# Commands\n\nThe help of each command, as `ortgpu-fix help COMMAND` prints it."]
    parts += [f"## {name}\n\n```text\n{printed(name)}\n```" for name in NAMES if name != "help"]
    return "\n\n".join(parts) + "\n"


def printed(command: str) -> str:
    """Return the help of a command in English, at 100 columns."""
    words = [sys.executable, "-m", "ortgpu_fix", "help", command]
    env = os.environ | {"COLUMNS": "100", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    made = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return made.stdout.rstrip()


def exit_codes() -> str:
    """Return what each exit code means."""
    exits = load_table("help")["exits"]
    rows = [(code, exits[code]["en"]) for code in sorted(exits, key=int)]
    head = "# Exit codes\n\nThe same for every command; its help lists those that it ends with.\n"
    return "\n".join([head, *table_of(("exit code", "meaning"), rows)]) + "\n"


def error_codes() -> str:
    """Return the errors that `explain` knows."""
    rows = [
        (
            f"`{row['code']}`",
            row["about"],
            "yes" if row["fixable"] else "no",
            row["cause"]["en"].replace("{library}", "a library").replace("|", r"\|"),
        )
        for row in load_table("failures")["failure"]
    ]
    head = (
        "# Errors that `explain` knows\n\n"
        "`ortgpu-fix explain error.log` finds these in what programs print. The site has a page for"
        "\neach, with the lines that it matches.\n"
    )
    columns = ("error", "about", "`--apply` fixes it", "cause")
    return "\n".join([head, *table_of(columns, rows)]) + "\n"


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row)} |"


PAGES = {
    "commands.md": commands,
    "exit-codes.md": exit_codes,
    "error-codes.md": error_codes,
}


def main(words: list[str]) -> int:
    """Write the pages; with `--check` return 1 where one differs."""
    stale = 0
    for name, page in PAGES.items():
        path, made = REFERENCE / name, page()
        if words != ["--check"]:
            path.write_text(made, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != made:
            print(f"{path.relative_to(ROOT)} is not what the program says: run scripts/docs.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
