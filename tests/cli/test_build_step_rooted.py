"""An image checked while it is built: a root of Debian, real wheels, and what its loader finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.debian_image import in_root, make_base
from support.pythons import find_python
from support.standin_wheels import find_uv

PYTHON = "3.11"
"""Debian bookworm's."""
ROOT = Path(__file__).resolve().parents[2]
MACHINE = ("--driver", "535.104.12", "--gpu", "A100")
SITE = f"lib/python{PYTHON}/site-packages"
pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="needs mmdebstrap"),
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root, on Linux"),
    pytest.mark.skipif(find_python(PYTHON) is None, reason=f"needs Python {PYTHON}"),
]


def run(*argv: object, expect: int = 0) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert done.returncode == expect, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


class Root:
    """A root with the wheels of `lock --format dockerfile` in /opt/venv, and this program."""

    def __init__(self, root: Path) -> None:
        self.root = make_base(root, run)
        plan = (sys.executable, "-m", "ortgpu_fix", *MACHINE, "--python", PYTHON, "--json")
        made = json.loads(run(*plan, "--prefer", "small", "--platform", "linux-x86_64", expect=1))
        pins = [f"{row['name']}=={row['version']}" for row in made["selection"]["packages"]]
        for name, wanted in (("tool", [str(ROOT)]), ("venv", pins)):
            run(*in_root(self.root, "python3", "-m", "venv", "--without-pip", f"/opt/{name}"))
            words = ("pip", "install", "--quiet", "--python", find_python(PYTHON) or "")
            run(find_uv(), *words, "--target", self.root / "opt" / name / SITE, *wanted)
        nvidia = self.root / f"opt/venv/{SITE}/nvidia"
        self.folders = [
            f"/opt/venv/{SITE}/nvidia/{row.parent.name}/lib" for row in nvidia.glob("*/lib")
        ]

    def check(self, **env: str) -> tuple[int, str]:
        """Do what `RUN ortgpu-fix --python /opt/venv …` does; `env` is the image's `ENV`."""
        words = ("/opt/tool/bin/python", "-m", "ortgpu_fix", "--python", "/opt/venv", *MACHINE)
        argv = in_root(self.root, *words)
        given = {"PATH": "/usr/bin:/bin:/usr/sbin", "LANG": "C.UTF-8", **env}
        done = subprocess.run(argv, env=given, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def on_path(self, *folders: str) -> None:
        """Let the loader find what lies in `folders`, by its own configuration."""
        lines = "".join(f"{folder}\n" for folder in folders)
        (self.root / "etc/ld.so.conf.d/cuda.conf").write_text(lines)
        run(*in_root(self.root, "/sbin/ldconfig"))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    folder = tmp_path_factory.mktemp("image")
    yield Root(folder / "root")
    shutil.rmtree(folder)


def test_right_and_wrong_images_as_they_are_built(image: Root) -> None:
    """One root, changed step by step: each layout with what makes it right and what does not."""
    code, said = image.check()
    assert code == 1
    assert "nothing loads them" in said

    code, said = image.check(LD_LIBRARY_PATH=":".join(image.folders))
    assert code == 0, said
    assert "Runs on: driver >= 525.60.13, compute capability 6.0 to 9.0" in said

    image.on_path(*image.folders)
    code, said = image.check()
    assert code == 0, said

    venv, toolkit = image.root / "opt/venv" / SITE, image.root / "usr/local/cuda/lib64"
    toolkit.mkdir(parents=True)
    for library in venv.glob("nvidia/*/lib/*.so*"):
        library.rename(toolkit / library.name)
    for distribution in [*venv.glob("nvidia_*.dist-info"), venv / "nvidia"]:
        shutil.rmtree(distribution)
    image.on_path("/usr/local/cuda/lib64")
    code, said = image.check()
    assert code == 0, said

    for library in toolkit.glob("libcudnn*"):
        library.unlink()
    image.on_path("/usr/local/cuda/lib64")
    code, said = image.check()
    assert code == 1
    assert "Missing CUDA 12 libraries: cudnn\n" in said
