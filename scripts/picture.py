"""Make the picture of the README: a broken environment mended, as a terminal shows it.

    python3 scripts/picture.py .github/apply.svg

Installs the real wheels (2 GB) into an environment of its own, in `--work`, for a machine with an
A100 and driver 535.104.12; on a machine without them, the verification says how far it came.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from support.terminal import as_text, run_in_terminal

COLUMNS = 92
COMMAND = ("ortgpu-fix", "--apply", "--driver", "535.104.12", "--gpu", "A100")
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def main() -> int:
    """Make the environment, mend it in a terminal, and draw what is seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--work", type=Path, help="a folder with room for 6 GB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        app = Path(work, "app")
        app.mkdir()
        uv = shutil.which("uv") or sys.exit("uv is needed")
        broken = ("onnxruntime==1.22.1", "onnxruntime-gpu==1.31.1")
        subprocess.run([uv, "venv", "-q", ".venv"], cwd=app, check=True)
        subprocess.run([uv, "pip", "install", "-q", *broken], cwd=app, check=True)
        folder = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        code, screen = run_in_terminal(
            COMMAND,
            columns=COLUMNS,
            cwd=app,
            env={"PATH": folder, "HOME": work, "LANG": "C.UTF-8"},
            answers={"[y/N]": "y\n"},
        )
    if code:
        print("\n".join(screen.display))
        return code
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(f"[bold]$[/] {' '.join(COMMAND)}", highlight=False)
    console.print(as_text(screen), soft_wrap=True, end="")
    drawn = console.export_svg(title="", theme=MONOKAI, unique_id="apply")
    drawn = re.sub(r"@font-face \{.*?\n    \}\n", "", drawn, flags=re.DOTALL)  # nothing is fetched
    arguments.picture.write_text(drawn.replace("Fira Code, monospace", FONT), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
