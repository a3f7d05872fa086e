"""The lines of a pasted text that tell of a machine, read one by one.

A text of any length is read: what tells something is kept up to a bound, and beyond `MOST`
characters of one text nothing is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.utils import canonicalize_name

from ..facts.model import CPU_BUILD, GPU_BUILD
from . import patterns as p

MOST = 8_000_000
"""How many characters are looked at: people paste a machine at the begin of what they write."""
KEPT = 5_000
"""How many things are kept of what a text tells."""
MOST_LOOKED_AT = 10_000
"""How many lines are taken apart that may tell something: the log of a server has that many in its
first megabytes, and tells nothing in them."""
NEAR = 3
"""How many lines of something else a list of packages may have between its lines."""
LISTED, PRINTED, WRITTEN, PART = 3, 2, 1, 0
"""How sure it is: a list of what is installed, a program printed it, a person wrote it, a path or a
short form shows a part."""


class Seen(NamedTuple):
    """What one line tells."""

    fact: str
    """`system`, `driver`, `cuda`, `gpu`, `python`, `libc`, `package`, …"""
    value: str
    line: int
    weight: int
    block: int
    """The table or list that it stands in."""
    name: str
    """Of a package."""
    quoted: bool
    """Whether it stands in a quotation: another may have written it, of another machine."""


class MachineReader:
    """Reads a text piece by piece; what it tells is in `seen`."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.gpu_build_named = False
        self.other_language = False
        """Whether onnxruntime is a package of .NET or Java: its version is none of Python's."""
        self._line = 0
        self._read = 0
        self._looked = 0
        self._block = 0
        self._last_package = self._listing = -NEAR
        self._of_block: set[str] = set()
        self._quoted = self._in_table = False
        self._shown: str | None = None
        self._asked_version = False
        self._asked_python = False

    def feed(self, piece: str) -> None:
        """Read a piece of the text that ends where a line does."""
        piece = piece[: MOST - self._read]
        self._read += len(piece)
        before = self._line
        for self._line, text in enumerate(piece.split("\n"), before + 1):
            line = text[: p.LONGEST].rstrip()
            if self._in_table or self._is_asked or p.HINT.search(line):
                self._look(line)
                self._looked += 1
            if len(self.seen) >= KEPT or self._looked >= MOST_LOOKED_AT:
                self._read = MOST
                return
        self._line = before + piece.count("\n")

    def end_text(self) -> None:
        """End what the lines began: what comes next is of another text."""
        self._read = self._looked = 0
        self._in_table = self._asked_version = self._asked_python = False
        self._shown, self._last_package, self._listing = None, -NEAR, -NEAR

    @property
    def _is_asked(self) -> bool:
        """Whether the line before asked for something, in a form that was filled in."""
        return self._asked_version or self._asked_python

    def _look(self, line: str) -> None:
        if p.UNCHECKED.search(line):
            return
        if "(e.g." in line:
            line = p.EXAMPLE.sub("", line)
        line = p.ARROW.sub(": ", p.CHANGED.sub("", p.TAG.sub(" ", line)))
        bare = p.QUOTE.sub("", line)
        self._quoted = bool(p.QUOTED.search(line))
        if not self.gpu_build_named and p.GPU_BUILD_NAMED.search(line):
            self.gpu_build_named = True
        self.other_language = self.other_language or bool(p.OTHER_LANGUAGE.search(line))
        self._machine(line, bare)
        self._python(line, bare)
        self._packages(line, bare)

    def _add(self, fact: str, value: str, weight: int, name: str = "") -> None:
        seen = Seen(fact, value, self._line, weight, self._block, name, self._quoted)
        self.seen.append(seen)

    def _machine(self, line: str, bare: str) -> None:
        head = p.SMI.search(line)
        if head:
            self._block += 1
            self._add("driver", head["driver"] or head["smi"], PRINTED)
            if (
                head["driver"]
                and p.OF_WINDOWS.match(head["driver"])
                and head["smi"] != head["driver"]
            ):
                self._add("system", "wsl", PRINTED)  # nvidia-smi is Linux's, the driver Windows'
            if head["cuda"]:
                self._add("cuda", head["cuda"], PRINTED)
        else:
            self._driver(line, bare)
        self._gpus(line, bare)
        self._system(line, bare)

    def _gpus(self, line: str, bare: str) -> None:
        row = p.SMI_ROW.search(bare)
        printed = p.SMI_GPU.search(line) or row
        kinds = (p.LISTED_GPU, p.TORCH_GPU, p.SIZED_GPU, p.JULIA_GPU)
        listed = next(filter(None, (kind.search(line) for kind in kinds)), None)
        if row:
            self._add("driver", row["driver"], PRINTED)
        if listed and not printed:
            self._block += listed["index"] == "0"
        found = printed or listed
        if found:
            self._add("gpu", found["gpu"].strip(), PRINTED)
            return
        for named in p.NAMED_GPU.finditer(bare):
            words = p.GPU_WORDS.search(named[0])
            if words and not advice(bare, named.start(), named.end()):
                self._add("gpu", words[1], WRITTEN)

    def _system(self, line: str, bare: str) -> None:
        platform, glibc = p.PLATFORM.search(line), p.GLIBC.search(line)
        if platform:
            self._add("system", next(filter(None, platform.groups())).lower(), PRINTED)
        if glibc:
            self._add("libc", f"glibc {glibc[1]}", PRINTED)
        if p.ARM.search(line):
            self._add("machine", "aarch64", PRINTED)
        for found in p.DISTRIBUTION.finditer(line):
            self._add("distribution", f"{found[1]} {found[2]}", WRITTEN)
        image = p.IMAGE.search(bare)
        if image:
            self._add("container", "docker", WRITTEN)
            self._add("system", "linux", WRITTEN)
            system = p.IMAGE_SYSTEM.search(image[1])
            if system:
                self._add("distribution", f"Ubuntu {system[2]}", WRITTEN)
        for weight, name, pattern in p.SYSTEMS:
            if pattern.search(bare):
                self._add("system", name, weight)

    def _driver(self, line: str, bare: str) -> None:
        printed = p.DRIVER_LINE.search(bare)
        if printed:
            self._add("driver", printed[1], PRINTED)
            return
        cuda = p.SMI_CUDA.search(bare)
        if cuda and not advice(bare, cuda.start(), cuda.end()):
            self._add("cuda", next(filter(None, cuda.groups())), WRITTEN)
        torch = p.FOUND_CUDA.search(line)
        if torch:
            self._add("cuda", f"{torch[1]}.{torch[2]}", PRINTED)
        found = p.RELEASE_FIRST.search(bare) or p.DRIVER.search(bare)
        if found and not advice(bare, found.start(), found.end()):
            self._add("driver", next(filter(None, found.groups())), WRITTEN)
        branch = p.BRANCH.search(bare)
        if branch and not advice(bare, branch.start(), branch.end()):
            self._add("driver", branch[1], PART)
        windows = p.WDDM.search(line)
        if windows:
            self._add("driver", f"{windows[1]}{windows[2]}.{windows[3]}", WRITTEN)

    def _python(self, line: str, bare: str) -> None:
        banner = p.PYTHON_BANNER.search(line)
        if banner:
            self._add("python", banner[1], PRINTED)
            return
        for found in p.PYTHON.finditer(bare):
            if p.PYTHON_LINE.search(bare):
                self._add("python", found[1], PRINTED)
            elif not advice(bare, found.start(), found.end()):
                self._add("python", found[1], WRITTEN)
        asked, answer = self._asked_python, p.PYTHON_ANSWER.search(bare)
        self._asked_python = bool(p.PYTHON_HEADING.search(bare)) or (asked and not bare)
        if asked and answer:
            self._add("python", answer[1], WRITTEN)
        path = p.PYTHON_PATH.search(line)
        if path:
            self._add("python", f"{path[1]}.{path[2]}", PART)
        for name, pattern in p.ENVIRONMENTS:
            if pattern.search(line):
                self._add("environment", name, PRINTED)

    def _packages(self, line: str, bare: str) -> None:
        listed = p.LISTING.search(bare)
        if listed or p.ASKED_FOR.search(bare):
            self._listing = self._line if listed else -NEAR
        cells = p.CELLS.sub(" ", bare).rstrip()
        if p.TABLE.search(cells):
            self._in_table = True
            return
        pinned = p.PACKAGE.search(bare)
        row = None
        if self._in_table:
            row = p.TABLE_ROW.search(cells)
            self._in_table = bool(row) or not bare
        row = row or p.KNOWN_ROW.search(cells)
        shown, self._shown = self._shown, None
        version = p.SHOWN_VERSION.search(bare)
        if pinned:
            self._add_package(pinned[2], pinned[3], LISTED if pinned[1] else PRINTED)
        elif row:
            self._add_package(row[1], row[2], LISTED)
        elif shown and version:
            self._add_package(shown, version[1], LISTED)
        name = p.SHOWN_NAME.search(bare)
        if name:
            self._shown = name[1]
        if pinned or row:
            return
        for found in self._written(line, bare):
            self._add("package", found[1], WRITTEN, found[0])

    def _add_package(self, name: str, version: str, weight: int) -> None:
        """Add a row of a list; one that may be a list of what is asked for is `PRINTED` alone."""
        name = p.CONDA_NAMES.get(name) or canonicalize_name(name)
        again = name in self._of_block  # no list names one twice: another begins
        if again and self._listing == self._last_package:  # of which nothing says what it lists
            self._listing = -NEAR
        if self._line - self._listing <= NEAR:
            weight, self._listing = LISTED, self._line
        if again or self._line - self._last_package > NEAR:
            self._block += 1
            self._of_block = set()
        self._of_block.add(name)
        self._last_package = self._line
        if name == "python":
            self._add("python", version, PRINTED)
        else:
            self._add("package", version, weight, name)

    def _written(self, line: str, bare: str) -> Iterator[tuple[str, str]]:
        """Yield the packages that a sentence, or a form that was filled in, names."""
        asked = self._asked_version
        self._asked_version = bool(p.ORT_HEADING.search(bare)) or (asked and not bare)
        filled, bare_version = p.ORT_LINE.search(bare), p.BARE_VERSION.search(bare)
        if filled:
            yield {"GPU": GPU_BUILD, "CPU": CPU_BUILD}.get((filled[1] or "").upper(), ""), filled[2]
        elif asked and bare_version:
            yield "", bare_version[1]
        torch = p.TORCH_LINE.search(bare)
        if torch and not advice(bare, torch.start(), torch.end()):
            yield "torch", torch[1]
        if torch or p.COMMAND.search(line):
            return
        for found in p.NAMED_PACKAGE.finditer(line):
            if not p.ADVICE_AFTER.search(line[found.end() :]):
                yield canonicalize_name(found[1]), found[2]


def advice(line: str, start: int, end: int) -> bool:
    """Tell whether a line says what somebody should have, not what there is."""
    if ">" in line[start:end] or "<" in line[start:end]:
        return True
    before = p.ADVICE_BEFORE.search(line, max(0, start - 25), start)
    after = line[end : end + 20]
    return bool(before or p.ADVICE_AFTER.search(after))
