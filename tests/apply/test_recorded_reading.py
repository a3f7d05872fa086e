"""What is read of journals and wheels, as a reader accepted it last: what changes in it is seen.

The other tests look at one thing and say why it is so; these look at all the rest. Where a change
is wanted, `ORTGPU_FIX_RECORD=1` writes the files of `tests/recordings/apply` anew, and what git
shows is to be read.
"""

from __future__ import annotations

import base64
import itertools
import json
import stat
from collections.abc import Callable, Iterator, Mapping

import pytest
from odd import check_recorded, odd

from ortgpu_fix.apply.journal import (
    Begin,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    Written,
    decode,
    emptied_of,
    encode,
    install_of,
    moves_of,
    paths_of,
    state,
    written_of,
)
from ortgpu_fix.apply.wheel_contents import Member, wheel_contents
from ortgpu_fix.errors import Error

BEGIN = Begin(
    plan="x",
    removed=("a",),
    installed=(("b", "1"),),
    when="2026-11-21T10:00:00+00:00",
    present=("c",),
    packages=(("d", "1", "d.dist-info", "ab"),),
)
RECORDS: tuple[Record, ...] = (
    BEGIN,
    MovedFiles(moves=(("a/1", "0-1"), ("a/2", "1-2")), seen=(("file", 3, 17), ("link", 1, 18))),
    MovedFiles(moves=(("a/3", "2-3"),)),
    RemovedFolders(folders=(("a/b", 0o755), ("a", 0o700)), names=("folder-0", "folder-1")),
    Install(
        created=("b/1",),
        whole=("b.dist-info",),
        standing=("c",),
        temporary=("c/d.tmp",),
        folders=("b.libs",),
        sizes=(3,),
        hashes=("ab",),
    ),
    Written(seen=(("file", 3, 19), None)),
    Mark(step="commit"),
    Mark(step="undo"),
)


def read(text: str) -> str:
    try:
        found = decode(text)
    except Error as error:
        return str(error)
    parts = [
        state(found),
        moves_of(found),
        emptied_of(found),
        install_of(found) is not None,
        written_of(found) is not None,
        sorted(paths_of(found)),
    ]
    return repr([*parts, found])


def journals() -> Iterator[str]:
    """Every beginning of a journal, each line torn, and each value in it odd."""
    lines = [encode(record) for record in RECORDS]
    for number in range(len(lines) + 1):
        text = "".join(lines[:number])
        yield f"{number} lines: {read(text)}"
        yield f"{number} lines, torn: {read(text[:-4])}"
        yield f"{number} lines, one between: {read(text + 'x' + ''.join(lines[number:]))}"
    for text in ("", "\n", "[]\n", "3\n", "{}\n", lines[1], lines[-1], "null\n" + lines[-1]):
        yield f"{text!r}: {read(text)}"
    for line in lines:
        for change, row in odd(json.loads(line)):
            alone = json.dumps(row) + "\n"
            before = "" if row.get("step") == "begin" else lines[0]
            yield f"{change}: {read(before + alone + lines[-1])}"


FILE = "stand_in-1.0-py3-none-any.whl"
INFO, DATA = "stand_in-1.0.dist-info", "stand_in-1.0.data"
DIGEST = base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
NAMES = (
    "a/__init__.py",
    "b.py",
    f"{DATA}/scripts/tool",
    f"{DATA}/platlib/x.so",
    f"{INFO}/METADATA",
    f"{INFO}/WHEEL",
    f"{INFO}/RECORD",
)
TEXTS = {
    "METADATA": "Metadata-Version: 2.1\nName: stand.in\nVersion: 1.0.0\nRequires-Dist: b>=1\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n",
    "RECORD": "".join(f"{name},sha256={DIGEST},3\n" for name in NAMES),
    "entry_points.txt": "[console_scripts]\nTool = a:main\n[gui_scripts]\nwindow=a:b\n[x]\ny=z\n",
}
MEMBERS = [Member(name=name, size=at, mode=0) for at, name in enumerate(NAMES)]
MODES = (0, 0o644, stat.S_IFREG | 0o755, stat.S_IFDIR | 0o755, stat.S_IFLNK | 0o777, stat.S_IFIFO)
ODD_NAMES = (
    *("c/", "c/d/", "a/", "/x", "../x", "a/../x", "a//x", "./x", "x/.", "C:x", "a:b/c", "b/c:d"),
    *("a\\b", "x\ty", "b.py", "b.py/x", "A/.ortgpu-fix/x", f"{DATA}/odd/x", f"{DATA}/data/"),
    *(f"{DATA}/headers/h/", f"{DATA}/data/x", f"{DATA}/x", "other-1.dist-info/x", "é.py"),
    *(f"{INFO}/RECORD.jws", f"{INFO}/RECORD.p7s", f"{INFO}/licenses/L", f"{DATA}x/y", ".. /x"),
)


def wheel(
    *more: Member,
    file: str = FILE,
    size: int = 1000,
    listed: bool = True,
    texts: Mapping[str, str | None] | None = None,
) -> str:
    given = {name: text for name, text in {**TEXTS, **(texts or {})}.items() if text is not None}
    if listed:
        rows = (f'"{one.name}",,\n' for one in more if not one.name.endswith("/"))
        given["RECORD"] = given.get("RECORD", "") + "".join(rows)
    try:
        return repr(wheel_contents(file, size, [*MEMBERS, *more], given))
    except Error as error:
        return str(error)


def wheels() -> Iterator[str]:
    """A whole wheel, one with a member more of each name and kind, and one with odd texts."""
    yield wheel()
    for name, listed in itertools.product(ODD_NAMES, (True, False)):
        more = Member(name=name, size=5, mode=0)
        yield f"{name!r} {listed}: {wheel(more, listed=listed)}"
    for name, mode, locked in itertools.product(("c", "c/"), MODES, (False, True)):
        more = Member(name=name, size=5, mode=mode, locked=locked)
        yield f"{name} {mode:o} {locked}: {wheel(more)[:90]}"
    for size, unpacked in itertools.product((0, 1000, 1 << 20, 1 << 40), range(28, 38)):
        for off in (-1, 0, 1):
            more = Member(name="c", size=(1 << unpacked) + off - 21, mode=0)
            yield f"{size} {unpacked} {off}: {wheel(more, size=size)[:40]}"
    most = ((1000 + (1 << 20)) * 400, 32 << 30)
    for limit, off in itertools.product(most, (0, 1)):
        more = Member(name="c", size=limit - 21 + off, mode=0)
        yield f"{limit} {off}: {wheel(more, size=1000 if limit == most[0] else 1 << 40)[:40]}"
    for file in ("x.whl", "stand_in-1.0-py3-none-any.zip", "stand_in-1.1-py3-none-any.whl",
                 "Stand.In-1.0.0-py3-none-any.whl", "other-1.0-py3-none-any.whl"):  # fmt: skip
        yield f"{file}: {wheel(file=file)[:90]}"
    odd_texts: dict[str, tuple[str | None, ...]] = {
        "METADATA": (None, "", "Name: other\nVersion: 1.0\n", "Name: stand-in\nVersion: 1.1\n",
                     "NAME : Stand_In\r\nversion:1\r\nRequires-Dist: a;\r\n  b\r\n\r\nName: x",
                     "Name: stand-in\n\nVersion: 1.0\n", "no colon\nName: stand-in\nVersion: 1.0"),
        "WHEEL": (None, "", "Wheel-Version: 2.0\n", "Wheel-Version: 1.9\nRoot-Is-Purelib: TRUE\n",
                  "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n", "Wheel-Version: 1.0\n"),
        "RECORD": (None, "", '"torn', TEXTS["RECORD"] + "more.py,,\n", "\n" + TEXTS["RECORD"],
                   TEXTS["RECORD"].replace("sha256", "md5"), TEXTS["RECORD"].replace(DIGEST, "é"),
                   TEXTS["RECORD"].replace(f",sha256={DIGEST},3", "")),
        "entry_points.txt": (None, "", "odd", "[console_scripts]\n../x = a:b\n", "[gui_scripts]\n",
                             "[console_scripts]\n.. = a:b\n", "[console_scripts]\na\\b = a:b\n",
                             "[console_scripts]\nA-b: c\n", "[x]\na/b = c\n"),
    }  # fmt: skip
    for name, texts in odd_texts.items():
        for text in texts:
            yield f"{name} {text!r}: {wheel(texts={name: text})}"


KINDS: dict[str, Callable[[], Iterator[str]]] = {made.__name__: made for made in (journals, wheels)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_what_was_accepted(kind: str) -> None:
    check_recorded(f"apply/{kind}.txt", KINDS[kind]())
