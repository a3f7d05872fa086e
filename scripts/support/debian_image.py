"""Debian's releases as root file systems, and images that its Buildah builds on one of them.

Needs Linux, root, a network, mmdebstrap, and Buildah for an image.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., str]
"""Runs a program, says what it printed, and raises where it does not end as expected."""
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates,passwd"
NAME = "gpu-base"
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
"""That of Python's images."""


def in_root(root: Path, *words: str, user: str = "root") -> list[str]:
    """Return the command that runs `words` in the root file system `root`, with our own devices.

    Only that process sees the mounts: whatever ends it, nobody who deletes `root` deletes devices.
    """
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin") or "chroot"
    mounts = 'mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc"'
    script = f'{mounts} && exec {chroot} --userspec="$0" "$@"'
    return ["unshare", "--mount", "sh", "-c", script, user, str(root), *words]


class Builder:
    """Debian's Buildah, with a storage of its own and no rights that a container would need."""

    def __init__(self, work: Path, run: Run) -> None:
        self._run = run
        self._storage = work / "storage"
        places = ("--root", str(self._storage), "--runroot", str(work / "running"))
        self._words = ("buildah", "--storage-driver", "vfs", *places)

    def _do(self, *words: str | Path, expect: int = 0) -> str:
        return self._run(*self._words, *words, expect=expect).strip()

    def build(self, context: Path, work: Path, base: str) -> str:
        """Build the Dockerfile in `context`, on an image of the name `base`; return its container.

        The base image is stood in for by a Debian bookworm of mmdebstrap, with Debian's own Python.
        """
        container = self._do("from", "scratch")
        self._do("add", "--quiet", container, make_base(work / "debian", self._run), "/")
        self._do("config", "--env", f"PATH={PATH}", container)
        self._do("commit", "--quiet", "--rm", container, base)
        network = [word for pair in _network() for word in ("--env", pair)]
        words = ("bud", "--isolation", "chroot", "--pull-never", "--layers=false", "--quiet")
        self._do(*words, *network, "--tag", NAME, context)
        return self._do("from", "--pull-never", NAME)

    def start(self, container: str, *arguments: str, expect: int = 0, **environ: str) -> str:
        """Start a container as `docker run IMAGE` does, with `arguments` after its command."""
        about = json.loads(self._do("inspect", container))["OCIv1"]["config"]
        words = [*about["Entrypoint"], *about["Cmd"], *arguments]
        return self.execute(container, *words, expect=expect, **environ)

    def execute(self, container: str, *words: str, expect: int = 0, **environ: str) -> str:
        """Run a program in a container, as the user of its image."""
        given = [word for pair in environ.items() for word in ("--env", "=".join(pair))]
        return self._do("run", "--isolation", "chroot", *given, container, *words, expect=expect)

    def root(self, container: str) -> Path:
        """Return the folder where the container's files are."""
        return Path(self._do("mount", container))

    def remove(self) -> None:
        """Remove all images and containers."""
        self._do("rm", "--all")
        self._do("rmi", "--all", "--force")
        shutil.rmtree(self._storage)


def make_base(root: Path, run: Run) -> Path:
    """Make the stand-in for the base image, unless it is there, and return its root."""
    if root.is_dir():
        return root
    make_debian(root, run, "bookworm", PACKAGES)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for path in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        path.unlink()  # the image's own Python has none
    return root


def make_debian(root: Path, run: Run, suite: str, packages: str) -> Path:
    """Make the root file system of a Debian release with these packages, and return it."""
    made = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}"]
    run(*made, suite, root, MIRROR)
    for name in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
        if Path("/", name).exists():
            shutil.copy(Path("/", name), root / name)
    return root


def _network() -> list[str]:
    """Return how the network is reached here; a builder hands that on too."""
    handed = {"http_proxy", "https_proxy", "no_proxy", "pip_cert", "ssl_cert_file"}
    return [f"{name}={value}" for name, value in os.environ.items() if name.lower() in handed]
