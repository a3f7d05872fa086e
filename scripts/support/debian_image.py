"""Build an image from a Dockerfile without a builder: its instructions, one by one, in chroots.

Knows the instructions that our own Dockerfiles have. The base image is stood in for by a Debian
bookworm that mmdebstrap makes, with Debian's own Python. Needs Linux, root and a network.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Run = Callable[..., str]
"""Runs a program, says what it printed, and raises where it does not end as expected."""
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"


def in_root(root: Path, *words: str, user: str = "root") -> list[str]:
    """Return the command that runs `words` in the root file system `root`, with our own devices.

    Only that process sees the mounts: whatever ends it, nobody who deletes `root` deletes devices.
    """
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin") or "chroot"
    mounts = 'mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc"'
    script = f'{mounts} && exec {chroot} --userspec="$0" "$@"'
    return ["unshare", "--mount", "sh", "-c", script, user, str(root), *words]


@dataclass
class Image:
    """A root file system, and what an image says beside it."""

    root: Path
    run: Run
    env: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    folder: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """Return where a path of the image is on this machine."""
        return self.root / os.path.join(self.folder, path).lstrip("/")  # noqa: PTH118 - of Linux

    def execute(self, *argv: str, expect: int = 0) -> str:
        """Run a program in the image, with the image's variables and none of ours."""
        variables = [f"{name}={value}" for name, value in self.env.items()]
        inner = f"cd {shlex.quote(self.folder)} && exec {shlex.join(argv)}"
        words = ["env", "-i", *_network(), *variables, "sh", "-c", inner]
        return self.run(*in_root(self.root, *words), expect=expect)

    def start(self, *arguments: str, expect: int = 0) -> str:
        """Start the image as `docker run IMAGE` does, with `arguments` after its command."""
        return self.execute(*self.entrypoint, *self.command, *arguments, expect=expect)

    def remove(self) -> None:
        """Remove its files."""
        shutil.rmtree(self.root)


def build(context: Path, work: Path, base: str, run: Run) -> Image:
    """Build the Dockerfile in `context`, which must be on `base`, in `work`."""
    debian = make_base(work / "debian", run)
    stages: dict[str, Image] = {}
    image = Image(debian, run)
    for words, document in instructions((context / "Dockerfile").read_text()):
        if words[0] == "FROM":
            if words[1] != base:
                raise ValueError(f"another base image: {words[1]}")
            root = work / f"stage-{len(stages)}"
            shutil.rmtree(root, ignore_errors=True)
            run("cp", "-a", debian, root)
            image = Image(root, run)
            stages[words[-1]] = image
        elif words[0] == "COPY":
            _copy(image, words[1:], document, context, stages)
        else:
            _do(image, words)
    for stage in stages.values():
        if stage is not image:
            stage.remove()
    return image


def _copy(
    image: Image, words: list[str], document: str | None, context: Path, stages: dict[str, Image]
) -> None:
    *flags, source, goal = words
    place = image.inside(goal)
    if document is not None:
        place.write_text(document)
    elif flags:
        origin = stages[flags[0].removeprefix("--from=")]
        image.run("cp", "-a", origin.inside(source), place)
    else:
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(context / source, place)


def _do(image: Image, words: list[str]) -> None:
    what, rest = words[0], words[1:]
    if what == "WORKDIR":
        image.folder = rest[0]
        image.inside("").mkdir(parents=True, exist_ok=True)
    elif what == "RUN":
        image.execute("sh", "-c", " ".join(rest))
    elif what == "ENV":
        for pair in rest:
            name, _, value = pair.partition("=")
            image.env[name] = value.strip('"').replace("$PATH", image.env["PATH"])
    elif what == "ENTRYPOINT":
        image.entrypoint = json.loads(" ".join(rest))
    elif what == "CMD":
        image.command = json.loads(" ".join(rest))
    else:
        raise ValueError(f"an instruction that is not known here: {what}")


def instructions(text: str) -> Iterator[tuple[list[str], str | None]]:
    """Yield each instruction of a Dockerfile as words, with its here-document."""
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        whole = line
        while whole.endswith("\\"):
            whole = f"{whole[:-1].rstrip()} {next(lines).strip()}"
        words = whole.split()
        ends = [word.strip("<'") for word in words if word.startswith("<<")]
        document = "".join(f"{row}\n" for row in iter(lines.__next__, ends[0])) if ends else None
        yield words, document


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
    made = ("mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", suite, root)
    run(*made, MIRROR)
    for name in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
        if Path("/", name).exists():
            shutil.copy(Path("/", name), root / name)
    return root


def _network() -> list[str]:
    """Return how the network is reached here; a builder hands that on too."""
    handed = {"http_proxy", "https_proxy", "no_proxy", "pip_cert", "ssl_cert_file"}
    return [f"{name}={value}" for name, value in os.environ.items() if name.lower() in handed]
