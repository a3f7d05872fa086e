"""What `main_job.py` and `test.py` do first: a place to write in, and an environment with pip.

The standard library alone, of any Python 3: a bare Debian has neither pip nor ensurepip.
"""

from __future__ import annotations

import contextlib
import hashlib
import html.parser
import os
import re
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

OLDEST = (3, 10)
PIP = (
    "pip-26.3-py3-none-any.whl",
    "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13",
)
"""The wheel that a venv without ensurepip gets, and its sha256."""
NOT_COPIED = (
    ".git",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    ".coverage*",
    "dist",
    "__pycache__",
)
_BIN, _EXE = ("Scripts", ".exe") if sys.platform == "win32" else ("bin", "")


SILENCE = 1.9
"""Seconds after which a step that says nothing is said to go on."""


class CannotSetUpError(Exception):
    """What is missing, and what fixes it, in one sentence."""


def run_where_it_can_write(script: Path) -> None:
    """Go on in a copy of the clone that `script` is part of, where the clone may not be written.

    Does not return then; the copy's script gets the arguments, and its exit code is ours.
    """
    if sys.version_info < OLDEST:
        here = ".".join(map(str, sys.version_info[:3]))
        raise CannotSetUpError(
            f"ortgpu-fix needs Python 3.10 or newer, and {sys.executable} is {here}:"
            f" run this with a newer one, such as `python3.12 {script}`"
        )
    root = script.resolve().parents[1]
    if os.access(root, os.W_OK):
        return
    copy = _own_folder() / "clone"
    print(f"{root} may not be written: working in a copy, {copy}", flush=True)
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    except shutil.Error as error:
        files = error.args[0]
        raise CannotSetUpError(
            f"{len(files)} files of the clone could not be copied, the first of them {files[0][0]}:"
            " run this in a clone of your own (`git clone`)"
        ) from None
    words = [sys.executable, str(copy / script.resolve().relative_to(root)), *sys.argv[1:]]
    sys.exit(subprocess.run(words, check=False).returncode)


def have_a_home() -> None:
    """Let HOME be a folder of our own where the user has none that may be written."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - knows what to do without one
    if home.is_dir() and os.access(home, os.W_OK):
        return
    os.environ["HOME"] = str(_own_folder())
    print(f"{home} may not be written: HOME is {os.environ['HOME']}", flush=True)


def _own_folder() -> Path:
    """Return a folder of this user's: in the cache, or else among the temporary files."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    folder = Path(cache, "ortgpu-fix")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return _temporary_folder()


def _temporary_folder() -> Path:
    """Return the same folder each time, which else would fill the disk; if it is ours alone."""
    if hasattr(os, "getuid"):
        folder = Path(tempfile.gettempdir(), f"ortgpu-fix-{os.getuid()}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        about = folder.lstat()
        ours = about.st_uid == os.getuid() and not about.st_mode & 0o077
        if stat.S_ISDIR(about.st_mode) and ours:
            return folder
    return Path(tempfile.mkdtemp(prefix="ortgpu-fix-"))


def make_venv(folder: Path, *, anew: bool = False) -> Path:
    """Return the Python of a virtual environment in `folder` whose pip works.

    One whose pip does not work, as an attempt that failed leaves it, is made anew. Raises
    CannotSetUpError where there is no way to make one.
    """
    python = folder / _BIN / f"python{_EXE}"
    if not anew and _succeeds(python, "-m", "pip", "--version"):
        return python
    print(f"Creating {folder}", file=sys.stderr, flush=True)
    if not _succeeds(sys.executable, "-m", "venv", "--clear", "--without-pip", folder):
        raise CannotSetUpError(
            f"{sys.executable} cannot make a virtual environment in {folder}: install the whole of"
            " Python (on Debian and Ubuntu: `apt install python3-venv`), then run this again"
        )
    if not _succeeds(python, "-m", "ensurepip", "--default-pip"):
        with tempfile.TemporaryDirectory() as scratch:
            wheel = _fetch_pip(Path(scratch))
            install(python, "--no-index", wheel, pip=(python, wheel / "pip"))
    return python


def install(python: Path, *words: str | Path, pip: tuple[str | Path, ...] = ()) -> None:
    """Run `pip install`; raise CannotSetUpError with what it said last where it fails."""
    command = [*(pip or (python, "-m", "pip")), "install", "--quiet", "--retries", "2", *words]
    code, complaints = _run(*command)
    if code != 0:
        errors = re.findall(r"^ *ERROR: (.+)", complaints, re.MULTILINE)
        said = errors[0] if errors else complaints.strip().rpartition("\n")[2]
        raise CannotSetUpError(f"pip could not install what is needed ({said}): {_UNREACHED}")


_UNREACHED = (
    "see that the package index can be reached (the variables PIP_INDEX_URL, HTTPS_PROXY and"
    " PIP_CERT are heeded), then run this again"
)


def _succeeds(*words: str | Path) -> bool:
    try:
        return _run(*words)[0] == 0
    except OSError:
        return False


def _run(*words: str | Path) -> tuple[int, str]:
    """Return the exit code of a program and its standard error; say at times that it works on."""
    began = time.monotonic()
    with subprocess.Popen(
        [str(word) for word in words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as child:
        complaints: str | None = None
        while complaints is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                complaints = child.communicate(timeout=SILENCE)[1]
            if complaints is None:
                seconds = time.monotonic() - began
                print(f"Still working: {seconds:.0f} s", file=sys.stderr, flush=True)
        return child.returncode, complaints


def _fetch_pip(folder: Path) -> Path:
    """Download the wheel of pip from the package index, and compare its hash.

    Where this machine has no certificates at all, the hash alone decides; an address with
    credentials is not asked so.
    """
    file, sha256 = PIP
    page = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/pip/"
    try:
        links = _Links()
        links.feed(_read(page).decode(errors="replace"))
        content = _read(urllib.parse.urljoin(page, links.found[file]))
    except (OSError, ValueError, KeyError) as error:
        missing = isinstance(error, KeyError)
        about = f"{file} is not there" if missing else getattr(error, "reason", error)
        raise CannotSetUpError(
            f"this Python has no pip, and none could be downloaded ({about}): `apt install"
            f" python3-venv` on Debian and Ubuntu, or {_UNREACHED}"
        ) from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CannotSetUpError(f"{page} gives another {file} than the one known here: {_UNREACHED}")
    (folder / file).write_bytes(content)
    return folder / file


def _read(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            return bytes(reply.read())
    except urllib.error.URLError as error:
        anonymous = "@" not in urllib.parse.urlsplit(address).netloc
        if not isinstance(error.reason, ssl.SSLCertVerificationError) or not anonymous:
            raise
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - the hash decides
        with urllib.request.urlopen(address, timeout=60, context=context) as reply:
            return bytes(reply.read())


class _Links(html.parser.HTMLParser):
    """The addresses on a page of an index (PEP 503), by file name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a link leads."""
        address = dict(attrs).get("href") if tag == "a" else None
        if address:
            path = urllib.parse.urlsplit(address).path
            self.found[urllib.parse.unquote(path.rpartition("/")[2])] = address
