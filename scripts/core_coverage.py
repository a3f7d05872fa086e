"""Hold the promise that the tests cover every branch of the core modules.

Reads the coverage data of the run before; a core module says `Core.` in its docstring.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def core_modules() -> set[str]:
    """Return the paths of the core modules below the package."""
    return {
        path.relative_to(ROOT / "resolver").as_posix()
        for path in (ROOT / "resolver").rglob("*.py")
        if "\nCore" in (ast.get_docstring(ast.parse(path.read_text())) or "")
    }


def main() -> int:
    """Print what is not covered, and fail where that is in the core."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        subprocess.run(
            [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)],
            check=True,
            cwd=ROOT,
        )
        measured = json.loads(report.read_text())
    core = core_modules()
    seen = {name.removeprefix("resolver/"): row for name, row in measured["files"].items()}
    failed = [f"{name}: not measured" for name in sorted(core - seen.keys())]
    for name in sorted(core & seen.keys()):
        row = seen[name]
        branches = [f"{start}->{end}" for start, end in row["missing_branches"]]
        if row["missing_lines"] or branches:
            lines = ", ".join(map(str, [*row["missing_lines"], *branches][:20]))
            failed.append(f"{name}: {lines}")
    shell = [name for name in seen if name not in core]
    total = measured["totals"]["percent_covered"]
    print(f"{len(core)} core modules, {len(shell)} others; {total:.1f} % of all is covered")
    if failed:
        print("not covered in the core:", *failed, sep="\n  ", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
