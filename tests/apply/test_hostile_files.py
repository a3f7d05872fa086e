"""Three hundred hostile files of seven kinds: each is read, or refused with an Error, and no more.

Each is a right one that was damaged: cut, with bytes turned round, with a value of another type, a
path that leads elsewhere, an endless number, brackets a hundred thousand deep. They are made from
a fixed seed. What each kind may cost is named below; a child that needs more memory fails.
"""

from __future__ import annotations

import io
import json
import random
import re
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.apply.history import read_journal
from ortgpu_fix.apply.journal import Begin, Install, Mark, MovedFiles, Record, Written, encode
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.apply.wheel_reader import read_wheel_contents
from ortgpu_fix.cli.inputs import read_facts
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.markers import is_in_force, marker_environment
from ortgpu_fix.index.page import parse_index_page
from ortgpu_fix.lock.parse import read_lock
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.requirements.files import collect_files
from ortgpu_fix.versions import requirement
from support.local_index import make_wheel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")
EACH = 43
"""Files of each kind: seven kinds make 301."""
SECONDS = 10.0
"""The longest that one of them may take."""
BYTES = 1 << 30
"""How much more memory than before one of them may need."""
DEEP = 100_000
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PATHS = [
    "../../x",
    "/etc/x",
    "..\\..\\x",
    "C:\\x",
    "x\0y",
    "\x1b[2J",
    "a" * 5000,
    "",
    ".",
    "\udc80",
]
VALUES: list[object] = [
    None,
    True,
    -1,
    10**4000,
    float("inf"),
    [],
    {},
    [[]],
    {"a": {}},
    "\x1b]52;c;x\x07",
    *PATHS,
]


def mutated(document: Any, chance: random.Random) -> Any:
    """Return JSON with one value exchanged, dropped or doubled."""
    if isinstance(document, dict) and document and chance.random() < 0.9:
        key = chance.choice(sorted(document))
        rest = dict(document)
        how = chance.random()
        if how < 0.15:
            del rest[key]
        elif how < 0.25:
            rest[chance.choice(["x", "", "__class__"])] = rest.pop(key)
        else:
            rest[key] = mutated(rest[key], chance)
        return rest
    if isinstance(document, list) and document and chance.random() < 0.9:
        rows = list(document)
        at = chance.randrange(len(rows))
        rows[at : at + 1] = [rows[at]] * 3 if chance.random() < 0.1 else [mutated(rows[at], chance)]
        return rows
    return chance.choice(VALUES)


def as_text(document: object, chance: random.Random) -> bytes:
    """Write JSON as it should be, or with something wrong in the text."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # to write a long number; whoever reads it has the limit again
    try:
        text = json.dumps(document).encode("utf-8", "surrogatepass")
    finally:
        sys.set_int_max_str_digits(limit)
    return damaged(text, chance) if chance.random() < 0.4 else text


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes that were cut, exchanged, or have something put in."""
    at = chance.randrange(len(data) + 1)
    inside = chance.choice(
        [b"\xff\xfe", b"\0", b"\x1b[2J", b"[" * DEEP, b"(" * DEEP, b"\r\n\r\n", b"9" * 5000, b"{"]
    )
    turned = bytes(each ^ 0xA5 for each in data[at : at + 9])
    return chance.choice(
        [
            data[:at],
            data[:at] + inside + data[at:],
            data[:at] + turned + data[at + 9 :],
            inside + data,
            data.decode("utf-8", "replace").encode("utf-16"),
        ]
    )


JOURNAL: list[Record] = [
    Begin(plan="x", removed=("a",), installed=(("b", "1"),), present=("a-1.dist-info",)),
    MovedFiles(moves=(("a/1", "000000-1"),), seen=(("file", 3, 17),)),
    Install(created=("b/1",), whole=("b",), standing=(), temporary=(), sizes=(3,), hashes=("ab",)),
    Written(seen=(("file", 3, 19),)),
    Mark(step="commit"),
]
PAGE = {
    "meta": {"api-version": "1.0"},
    "files": [
        {
            "filename": "a-1-py3-none-any.whl",
            "url": "a-1-py3-none-any.whl",
            "hashes": {"sha256": "0" * 64},
            "size": 3,
            "requires-python": ">=3.8",
        }
    ],
}
LINES = [
    "onnxruntime-gpu[cuda]==1.26.0 ; sys_platform == 'linux' --hash=sha256:" + "0" * 64,
    "flatbuffers>=25 ; python_version >= '3.8' and (os_name == 'posix' or extra == 'x')",
    "x @ https://example.org/x-1-py3-none-any.whl#egg=x",
    "-r other.txt",
    "--index-url https://example.org/simple",
    "numpy ~= 1.21 \\",
    " --hash=sha256:" + "1" * 64,
]
PYLOCK = """lock-version = "1.0"
created-by = "x"
[[packages]]
name = "onnxruntime-gpu"
version = "1.26.0"
marker = "sys_platform == 'linux'"
wheels = [{name = "a.whl", url = "https://example.org/a.whl", hashes = {sha256 = "00"}}]
"""


def journals(folder: Path, chance: random.Random) -> Callable[[], object]:
    purelib = folder / "lib" / "site-packages"
    change = purelib / ".ortgpu-fix" / "1"
    change.mkdir(parents=True)
    rows = [json.loads(encode(record)) for record in JOURNAL]
    at = chance.randrange(len(rows))
    rows[at] = mutated(rows[at], chance)
    (change / "journal").write_bytes(b"\n".join(as_text(row, chance) for row in rows))
    site = Site(
        purelib=str(purelib), platlib=str(purelib), scripts=str(folder / "bin"), prefix=str(folder)
    )
    return lambda: read_journal(site, change)


def pages(_: Path, chance: random.Random) -> Callable[[], object]:
    if chance.random() < 0.3:
        link = f'<base href="{chance.choice(PATHS)}"><a href="{chance.choice(PATHS)}.whl#x=">a</a>'
        data = damaged(link.encode("utf-8", "replace") * 3, chance)
        kind = "text/html"
    else:
        data, kind = as_text(mutated(PAGE, chance), chance), "application/json"
    text = data.decode("utf-8", "replace")
    return lambda: parse_index_page(kind, text, "https://example.org/simple/a/")


def facts(folder: Path, chance: random.Random) -> Callable[[], object]:
    file = folder / "facts.json"
    file.write_bytes(as_text(mutated(example_machine(), chance), chance))
    return lambda: read_facts(str(file))


def metadata(_: Path, chance: random.Random) -> Callable[[], object]:
    line = damaged(chance.choice(LINES[:3]).encode(), chance).decode("utf-8", "replace")
    markers = marker_environment(from_json(example_machine()))
    deep = "a ; " + "(" * chance.randrange(2, 3000) + "os_name ~= 'x'" + ")" * 3000
    chosen = chance.choice([line, deep, f"a ; os_name {chance.choice(['~=', '===', '>'])} 'x'"])

    def act() -> None:
        parsed = requirement(chosen)
        if parsed is not None:
            is_in_force(parsed, markers, "")

    return act


def requirements(folder: Path, chance: random.Random) -> Callable[[], object]:
    file = folder / "r.txt"
    (folder / "other.txt").write_text("-r r.txt\n")
    file.write_bytes(damaged("\n".join(LINES).encode(), chance))
    return lambda: [[*one.requirements({})] for one in collect_files([file]).values()]


def locks(_: Path, chance: random.Random) -> Callable[[], object]:
    text = chance.choice([PYLOCK, "\n".join(LINES)])
    data = damaged(text.encode(), chance).decode("utf-8", "replace")
    return lambda: read_lock(data, "lock")


def wheels(folder: Path, chance: random.Random) -> Callable[[], object]:
    names = ["a/__init__.py", "a-1.data/data/x", "a-1.data/scripts/x", "a/b/c.so"]
    files = {chance.choice(names): b"x" * chance.randrange(99) for _ in range(3)}
    if chance.random() < 0.4:
        files[chance.choice([path for path in PATHS if path and "\udc80" not in path])] = b"x"
    path = make_wheel(folder, "a", "1", files=files, scripts={"tool": "a:b"})
    data = path.read_bytes()
    how = chance.random()
    if how < 0.5:
        path.write_bytes(damaged(data, chance))
    elif how < 0.8:
        path.write_bytes(rewritten(data, chance))
    return lambda: read_wheel_contents(path)


def rewritten(data: bytes, chance: random.Random) -> bytes:
    """Return the wheel with one of its texts damaged."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        wrong = chance.choice(names)
        for name in names:
            text = old.read(name)
            new.writestr(name, damaged(text, chance) if name == wrong else text)
    return out.getvalue()


KINDS: Mapping[str, Callable[[Path, random.Random], Callable[[], object]]] = {
    "journals": journals,
    "pages": pages,
    "facts": facts,
    "metadata": metadata,
    "requirements": requirements,
    "locks": locks,
    "wheels": wheels,
}
EXITS = {
    "journals": {2, 5},
    "pages": {7},
    "facts": {7},
    "requirements": {7},
    "locks": {7},
    "wheels": {7},
}


def refusal(act: Callable[[], object]) -> Error | None:
    """Return the Error that `act` ends with; any other exception is raised."""
    try:
        act()
    except Error as error:
        return error
    return None


@pytest.fixture
def limited() -> Iterator[None]:
    """Let nothing need much more memory than there is now."""
    pages_now = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages_now * resource.getpagesize() + BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("limited")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_file_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    texts = load_texts("en")
    refused = 0
    for number in range(EACH):
        folder = tmp_path / str(number)
        folder.mkdir()
        chance = random.Random(f"{kind} {number}")  # noqa: S311 - the same each time
        act = KINDS[kind](folder, chance)
        before = {path for path in tmp_path.rglob("*") if not path.is_dir()}
        began = time.monotonic()
        error = refusal(act)
        if error is not None:
            refused += 1
            message = texts.error(error)
            assert message.exit_code in EXITS[kind], (number, error)
            assert len(message.text) < 20_000
            assert not CONTROLS.search(message.text), (number, error)
        assert time.monotonic() - began < SECONDS, number
        assert {path for path in tmp_path.rglob("*") if not path.is_dir()} == before

    assert refused >= EACH // 3 or kind in {"metadata", "requirements", "pages", "locks"}
