"""Hostile files of seven kinds: right ones that were damaged, made from a seed.

Cut, with bytes turned round, with a value of another type, a path that leads elsewhere, an endless
number, brackets a hundred thousand deep. What each may cost is named here too.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import resource
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ortgpu_fix.apply.journal import Begin, Install, Mark, MovedFiles, Record, Written, encode
from ortgpu_fix.data_files import example_machine
from support.local_index import make_wheel

EACH = int(os.environ.get("HOSTILE_EACH", "43"))
"""Files of each kind: seven kinds make 301; `scripts/prove/hostile.py` tries more."""
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
    Install(created=("b/1",), whole=("b",), standing=(), sizes=(3,), hashes=("ab",)),
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


def journal(chance: random.Random) -> bytes:
    rows = [json.loads(encode(record)) for record in JOURNAL]
    at = chance.randrange(len(rows))
    rows[at] = mutated(rows[at], chance)
    return b"\n".join(as_text(row, chance) for row in rows)


def page(chance: random.Random) -> tuple[str, str]:
    """Return content type and text."""
    if chance.random() < 0.3:
        link = f'<base href="{chance.choice(PATHS)}"><a href="{chance.choice(PATHS)}.whl#x=">a</a>'
        data = damaged(link.encode("utf-8", "replace") * 3, chance)
        return "text/html", data.decode("utf-8", "replace")
    data = as_text(mutated(PAGE, chance), chance)
    return "application/json", data.decode("utf-8", "replace")


def facts(chance: random.Random) -> bytes:
    return as_text(mutated(example_machine(), chance), chance)


def requirement_line(chance: random.Random) -> str:
    line = damaged(chance.choice(LINES[:3]).encode(), chance).decode("utf-8", "replace")
    deep = "a ; " + "(" * chance.randrange(2, 3000) + "os_name ~= 'x'" + ")" * 3000
    return chance.choice([line, deep, f"a ; os_name {chance.choice(['~=', '===', '>'])} 'x'"])


def requirements(chance: random.Random) -> bytes:
    return damaged("\n".join(LINES).encode(), chance)


def lock(chance: random.Random) -> bytes:
    return damaged(chance.choice([PYLOCK, "\n".join(LINES)]).encode(), chance)


def wheel(folder: Path, chance: random.Random, name: str = "a", version: str = "1") -> Path:
    data = f"{name.replace('-', '_')}-{version}.data"
    names = ["a/__init__.py", f"{data}/data/x", f"{data}/scripts/x", "a/b/c.so"]
    files = {chance.choice(names): b"x" * chance.randrange(99) for _ in range(3)}
    if chance.random() < 0.4:
        files[chance.choice([path for path in PATHS if path and "\udc80" not in path])] = b"x"
    path = make_wheel(folder, name, version, files=files, scripts={"tool": "a:b"})
    whole = path.read_bytes()
    how = chance.random()
    if how < 0.5:
        path.write_bytes(damaged(whole, chance))
    elif how < 0.8:
        path.write_bytes(rewritten(whole, chance))
    return path


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


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Let neither this process nor a child of it need much more memory than there is now."""
    pages_now = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages_now * resource.getpagesize() + BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
