"""Hold the promise that the tests cover every branch of the core modules.

Reads the coverage data of the run before; `pyproject.toml` lists the core in its import contract.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
RESOLVER = ROOT / "resolver"
LEAST = 80
"""There were more core modules than this when they moved; fewer means that they are not seen."""


def core_modules() -> set[str]:
    """Return the paths below `resolver/` of what the import contract says touches nothing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [core] = [row for row in contracts if row["type"] == "forbidden"]
    found: set[str] = set()
    for name in core["source_modules"]:
        path = RESOLVER.joinpath(*name.split(".")[1:])
        modules = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
        found |= {module.relative_to(RESOLVER).as_posix() for module in modules}
    return {name for name in found if not name.endswith("__init__.py")}


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
    if len(core) < LEAST:
        failed.append(f"only {len(core)} core modules are known")
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
