"""A whole run of the program writes nowhere else, and calls nobody else; and that would be seen.

`tests/e2e` is watched so, too.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from lacking import install_all_but
from stand import Stand
from watched import Call, Watch, addresses_of, is_ours, outside, own_places, parse

from support.standin_wheels import clean_environment

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
FAILED = 4
"""There is no real onnxruntime: what came is put back."""


class Room:
    """An environment that lacks a package of this machine's index, and somebody's home."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.stand, self.watch, self.home = stand, Watch(folder / "watched"), folder / "home"
        self.home.mkdir()
        install_all_but("flatbuffers", stand.venv, folder / "made")

    def apply(self, planted: str = "") -> list[Call]:
        """Run `--apply` after the Python code `planted`; return what it did elsewhere."""
        python = ["--python", str(self.stand.venv.folder), "--index-url", self.stand.server.url]
        start = f"{planted}\nimport runpy; runpy.run_module('ortgpu_fix', run_name='__main__')"
        argv = [sys.executable, "-c", start, "--apply", "--yes", "--facts", "example", *python]
        argv += ["--no-autoload", "--no-provide", "--allow", "conflicts"]
        env = clean_environment() | {"HOME": str(self.home), "LANG": "C.UTF-8"}
        command = self.watch.begin(argv, None, env)
        done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
        assert done.returncode == FAILED, done.stdout + done.stderr
        found = self.watch.outside(addresses_of(self.stand.server.url))
        return [call for _, calls in found for call in calls]


def test_an_apply_writes_and_calls_where_it_may(stand: Stand, tmp_path: Path) -> None:
    assert Room(stand, tmp_path).apply() == []


def test_what_is_planted_is_seen_also_where_its_failure_is_passed_over(
    stand: Stand, tmp_path: Path
) -> None:
    """A file beside the environment, a link out of it, another server of this machine."""
    room = Room(stand, tmp_path)
    (room.home / "documents").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        planted = f"""
import contextlib, os, socket, subprocess
home, venv = {str(room.home)!r}, {str(stand.venv.folder)!r}
open(venv + "-beside", "w").close()
os.symlink(home + "/documents", venv + "/out")
open(venv + "/out/through-a-link", "w").close()
subprocess.run(["sh", "-c", f"echo > {{home}}/of-a-child"])
with contextlib.suppress(OSError):
    open("/proc/sys/kernel/ostype", "w")
socket.create_connection(("127.0.0.1", {port})).close()
"""
        found = room.apply(planted)

    assert set(found) == {
        ("connect", f"127.0.0.1 {port}"),
        ("openat", f"{stand.venv.folder}-beside"),
        ("openat", f"{room.home}/documents/through-a-link"),
        ("openat", f"{room.home}/of-a-child"),
        ("openat", "/proc/sys/kernel/ostype"),
    }


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ('openat(AT_FDCWD</a>, "b", O_WRONLY|O_CREAT, 0666) = 3</c/b>', ("openat", "/c/b")),
        ('openat(AT_FDCWD</a>, "b", O_RDONLY|O_CLOEXEC) = 3</a/b>', None),
        ('openat(AT_FDCWD</a>, "b", O_RDONLY) = 3</a/b>', None),
        ('openat(AT_FDCWD</a>, "b", O_RDWR) = -1 EACCES (Permission denied)', ("openat", "/a/b")),
        ('openat(AT_FDCWD</a>, "b", O_RDWR) = -1 ENOENT (No such file)', None),
        ('mkdir("b", 0777)                 = 0', ("mkdir", "/cwd/b")),
        ('mkdirat(5</x>, "b", 0777) = 0', ("mkdirat", "/x/b")),
        ('linkat(AT_FDCWD</a>, "/b", AT_FDCWD</a>, "c", 0) = 0', ("linkat", "/a/c")),
        ('symlink("/far", "near") = 0', ("symlink", "/cwd/near")),
        ('unlinkat(5</x>, "\\344\\270\\255\\"", 0) = 0', ("unlinkat", '/x/\u4e2d"')),
        ('chdir("/b") = 0', None),
        (
            'connect(3<>, {sin6_port=htons(443), inet_pton(AF_INET6, "::1", &x)}) = -1 EAGAIN (x)',
            ("connect", "::1 443"),
        ),
        (
            'connect(3<UNIX:[1]>, {sa_family=AF_UNIX, sun_path="/x"}, 110) = 0',
            ("connect", "/x"),
        ),
        ("sendto(3<NETLINK:[1]>, [{x}], 20, 0, {sa_family=AF_NETLINK}, 12) = 20", None),
    ],
)
def test_what_strace_writes_is_read(line: str, call: Call | None) -> None:
    assert list(parse(f"+++ exited with 0 +++\n{line}\n", "/cwd")) == ([call] if call else [])


def test_both_ends_of_a_move_are_written_and_from_the_folder_it_went_to() -> None:
    assert list(parse('chdir("/b") = 0\nrename("c", "/d") = 0\n', "/cwd")) == [
        ("rename", "/b/c"),
        ("rename", "/d"),
    ]


def test_where_a_command_may_write(tmp_path: Path) -> None:
    home, env = {"HOME": "/home/a"}, tmp_path / "env"
    env.mkdir()
    caches = [Path("/home/a", name) for name in (".cache", ".local/share/ortgpu-fix", ".rustup")]

    assert own_places(["x", "--python", str(env)], None, home) == [*caches, env]
    assert own_places(["x", "--python", "/e/bin/python"], None, home) == [*caches, Path("/e")]
    assert own_places(["bash"], env, home | {"TMPDIR": "/t"}) == [*caches, Path("/t"), env]


def test_what_is_the_program_and_what_is_not() -> None:
    assert is_ours(["python", "-m", "ortgpu_fix", "plan"])
    assert is_ours(["bash", "-c", "ortgpu-fix plan"])
    assert not is_ours(["uv", "pip", "install", "/src/ortgpu-fix"])


@pytest.mark.parametrize(
    ("call", "right"),
    [
        (("openat", "/e/x"), True),
        (("openat", "/e"), True),
        (("openat", "/ex"), False),
        (("mkdir", "/far"), True),
        (("rmdir", "/far"), False),
        (("mkdir", "/fa"), False),
        (("openat", "/dev/null"), True),
        (("openat", "/dev/sda"), False),
        (("openat", "/lib/__pycache__/a.pyc"), True),
        (("connect", "1.1.1.1 443"), True),
        (("connect", "1.1.1.1 80"), False),
    ],
)
def test_what_is_allowed(call: Call, *, right: bool) -> None:
    assert outside([call], [Path("/e"), Path("/far/off")], ["1.1.1.1 443"]) == (
        [] if right else [call]
    )
