"""What a program and its children write, and whom they call, by every system call that can do it.

strace writes the calls down; what is none of a write, or failed because nothing is there, is left
out. A path counts as it leads after the links of its folder.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import urlsplit

OPENING = ("open", "openat", "openat2")
WRITING = {
    **dict.fromkeys((*OPENING, "creat", "truncate", "mkdir", "mkdirat", "rmdir"), 0),
    **dict.fromkeys(("unlink", "unlinkat", "mknod", "mknodat", "chmod", "fchmodat"), 0),
    **dict.fromkeys(("chown", "lchown", "fchownat", "utime", "utimes", "utimensat"), 0),
    **dict.fromkeys(("setxattr", "lsetxattr", "removexattr", "lremovexattr"), 0),
    **dict.fromkeys(("rename", "renameat", "renameat2"), None),
    **dict.fromkeys(("link", "linkat", "symlink", "symlinkat"), -1),
}
"""System calls that write, and which of their paths: all of them where that is None."""
CALLS = ",".join((*(f"?{name}" for name in WRITING), "chdir", "connect", "sendto"))
_CALL = re.compile(r"(\w+)\((.*)\) += (?:-?\d+|\?)(?:<(.*?)>)?(?: (E[A-Z]+))?.*")
_OPENED = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>, )?"((?:[^"\\]|\\.)*)"(?!\.\.\.)')
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_ADDRESS = re.compile(r'inet_(?:addr\(|pton\(AF_INET6, )"([^"]+)"')
_UNIX = re.compile(r'sun_path=@?"([^"]*)"')
NOTHING = {"EEXIST", "ENOENT", "ENOTDIR", "EISDIR", "ENXIO", "ENOTEMPTY"}
"""Why a call failed that would have written nothing elsewhere either."""
READ = ", O_RDONLY|O_CLOEXEC) = "
DEVICES = ("/dev/null", "/dev/tty", "/dev/pts/", "/dev/ptmx")
NAMES = ("/var/run/nscd/socket", "/run/systemd/resolve/")
"""Sockets of this machine that resolve names."""
Call = tuple[str, str]
"""What was called, with a path or an address."""


class Run(NamedTuple):
    """A command that was begun."""

    argv: list[str]
    traces: Path
    cwd: str
    places: list[Path]
    """Where it may write."""


class Watch:
    """Runs programs under strace, with a temporary folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.runs: list[Run] = []

    def begin(self, argv: Sequence[str], cwd: Path | None, env: dict[str, str]) -> list[str]:
        """Return `argv` so that what it does is written down; `env` is what it is given."""
        traces = self._folder / f"{len(self.runs)}"
        traces.mkdir(parents=True)
        if not env.get("TMPDIR"):
            env["TMPDIR"] = str(self._folder / "temporary")
            Path(env["TMPDIR"]).mkdir(exist_ok=True)
        places = own_places(argv, cwd, env)
        self.runs.append(Run([*argv], traces, str(cwd or Path.cwd()), places))
        strace = ["strace", "-ff", "-qq", "-y", "--seccomp-bpf", "-s", "4096"]
        return [*strace, "-e", f"trace={CALLS}", "-e", "signal=none", "-o", f"{traces}/of", *argv]

    def outside(self, addresses: Iterable[str]) -> list[tuple[str, list[Call]]]:
        """Return each command that wrote or called elsewhere than it may, with what it did."""
        found = []
        for run in self.runs:
            calls = {
                call
                for trace in run.traces.glob("of.*")
                for call in parse(trace.read_text(errors="replace"), run.cwd)
            }
            if wrong := outside(calls, run.places, addresses):
                found.append((" ".join(run.argv), wrong))
        return found

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Watch the program wherever `subprocess` begins it."""
        watch = self

        class Watched(subprocess.Popen[Any]):
            def __init__(self, args: Any, *more: Any, **options: Any) -> None:
                if isinstance(args, list) and is_ours([*map(str, args)]):
                    options["env"] = dict(options.get("env") or os.environ)
                    args = watch.begin([*map(str, args)], options.get("cwd"), options["env"])
                super().__init__(args, *more, **options)

        with mock.patch.object(subprocess, "Popen", Watched):
            yield


def parse(text: str, cwd: str) -> Iterator[Call]:
    """Yield what a process that began in `cwd` has written and called."""
    for line in text.splitlines():
        if READ in line:  # nearly all of them
            continue
        call = _CALL.fullmatch(line)
        if call is None or call[1].startswith("syscall_0x"):  # what strace has no name for
            continue
        name, arguments, opened, error = call.groups()
        paths = [_absolute(found[1] or cwd, found[2]) for found in _PATH.finditer(arguments)]
        if name in {"connect", "sendto"}:
            address, port = _ADDRESS.search(arguments), _PORT.search(arguments)
            if address and port:
                yield name, f"{address[1]} {port[1]}"
            yield from ((name, path[1]) for path in _UNIX.finditer(arguments))
        elif error in NOTHING or (name in OPENING and not _OPENED.search(arguments)):
            continue
        elif name == "chdir":
            cwd = cwd if error else paths[0]
        elif opened:  # that is without any link
            yield name, _absolute("/", opened)
        else:
            which = WRITING[name]
            yield from ((name, path) for path in (paths if which is None else paths[which:][:1]))


def _absolute(folder: str, path: str) -> str:
    """Return a path that strace wrote with C's escapes."""
    plain = ast.literal_eval(f'b"{path}"').decode("utf-8", "surrogateescape")
    return os.path.normpath(os.path.join(folder, plain))  # noqa: PTH118


def outside(
    calls: Iterable[Call], roots: Iterable[Path], addresses: Iterable[str] = ()
) -> list[Call]:
    """Return those of `calls` that write elsewhere than below `roots`, or call another address.

    Python's bytecode is a cache, wherever it lies; the folders above `roots` may be made.
    """
    places = [os.path.realpath(root) for root in roots]
    allowed = {*addresses, *_name_servers()}
    found = []
    for name, where in sorted(calls):
        if name in {"connect", "sendto"}:
            right = where in allowed or where.startswith(NAMES)
        else:
            folder, last = os.path.split(where)
            real = os.path.join(os.path.realpath(folder), last)  # noqa: PTH118
            right = any(real == place or real.startswith(f"{place}/") for place in places)
            right = right or (name == "mkdir" and any(p.startswith(f"{real}/") for p in places))
            right = right or real.startswith(DEVICES) or "/__pycache__/" in f"{real}/"
        if not right:
            found.append((name, where))
    return found


def _name_servers() -> set[str]:
    try:
        lines = Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    found = (line.split() for line in lines.splitlines())
    return {f"{words[1]} 53" for words in found if words[:1] == ["nameserver"] and words[1:]}


def addresses_of(url: str) -> set[str]:
    """Return the addresses of the server of `url`, with its port."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    return {f"{row[4][0]} {port}" for row in found}


def is_ours(argv: Sequence[str]) -> bool:
    """Tell whether a command is the program, or is typed into a shell and begins it."""
    return "ortgpu_fix" in argv or (argv[0] == "bash" and "ortgpu-fix" in argv[-1])


def own_places(argv: Sequence[str], cwd: Path | None, environ: Mapping[str, str]) -> list[Path]:
    """Return where a command may write beside the temporary folder: what it names, and caches.

    What is typed in a folder names files and an environment there. pip asks rustc for its version,
    to tell it the index, and rustup makes its own folder then.
    """
    home = Path(environ.get("HOME") or Path.home())
    places = [home / ".cache", home / ".local/share/ortgpu-fix", home / ".rustup"]
    places += [Path(environ[name]) for name in ("UV_CACHE_DIR", "TMPDIR") if environ.get(name)]
    if cwd is not None:
        places.append(cwd)
    if "--python" in argv:
        named = Path(argv[argv.index("--python") + 1])
        if named.is_absolute():  # or it is a version
            places.append(named if named.is_dir() else named.parents[1])
    return places
