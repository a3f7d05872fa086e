"""Feed hostile files of seven kinds to whole commands, and run them in a checkout full of plants.

None writes elsewhere, none runs what somebody left, none is a defect.

    python scripts/prove/hostile.py [--each 72]

The same as `tests/cli/test_hostile_commands.py` and `tests/cli/test_planted.py`, where it is
written what is held against what; the gate tries the first 43 files of each kind. Needs strace. The
counts go into scripts/prove/results/. The exit code is 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.outcomes import write

ROOT = Path(__file__).resolve().parents[2]
TESTS = [ROOT / "tests" / "cli" / f"test_{name}.py" for name in ("hostile_commands", "planted")]


def prove(each: int) -> tuple[Counter[str], list[str]]:
    """Try `each` files of each kind; return how many of each went well, and the others."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        argv = [sys.executable, "-m", "pytest", *map(str, TESTS), "-q", f"--junitxml={report}"]
        argv += ["-o", "junit_family=xunit2", f"--basetemp={folder}/files"]
        environ = os.environ | {"HOSTILE_EACH": str(each)}
        subprocess.run(argv, cwd=ROOT, env=environ, check=False)
        cases = [*ET.parse(report).iter("testcase")]  # noqa: S314 - pytest's own
    wrong = [case.attrib["name"] for case in cases if len(case)]
    return Counter(kind(case) for case in cases if not len(case)), wrong


def kind(case: ET.Element) -> str:
    """Return the kind of a case: of a file, or `planted`."""
    if case.attrib["classname"].endswith("planted"):
        return "planted"
    return re.sub(r".*\[(\w+)-.*", r"\1", case.attrib["name"])


def main() -> int:
    """Run as the header says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--each", type=int, default=72, help="files of each kind (72)")
    given, began = parser.parse_args(), time.monotonic()
    right, wrong = prove(given.each)
    document = {
        "files": right.total() + len(wrong),
        "right": dict(sorted(right.items())),
        "wrong": wrong,
        "seconds": round(time.monotonic() - began),
    }
    print(write("hostile", document).read_text("utf-8"))
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
