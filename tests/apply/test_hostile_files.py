"""Three hundred hostile files of seven kinds: each is read, or refused with an Error, and no more.

`cli/test_hostile_commands` sends the same through whole commands.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import hostile
import pytest
from hostile import CONTROLS, EACH, SECONDS, limited_memory

from ortgpu_fix.apply.history import read_journal
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.apply.wheel_contents import read_wheel_contents
from ortgpu_fix.cli.facts_files import read_facts
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.markers import is_in_force, marker_environment
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.index.page import parse_index_page
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.requirements.files import collect_files
from ortgpu_fix.versions import requirement

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")
Act = Callable[[], object]


def journals(folder: Path, chance: random.Random) -> Act:
    purelib = folder / "lib" / "site-packages"
    change = purelib / ".ortgpu-fix" / "1"
    change.mkdir(parents=True)
    (change / "journal").write_bytes(hostile.journal(chance))
    site = Site(
        purelib=str(purelib), platlib=str(purelib), scripts=str(folder / "bin"), prefix=str(folder)
    )
    return lambda: read_journal(site, change)


def pages(_: Path, chance: random.Random) -> Act:
    kind, text = hostile.page(chance)
    return lambda: parse_index_page(kind, text, "https://example.org/simple/a/")


def facts(folder: Path, chance: random.Random) -> Act:
    file = folder / "facts.json"
    file.write_bytes(hostile.facts(chance))
    return lambda: read_facts(str(file))


def metadata(_: Path, chance: random.Random) -> Act:
    markers = marker_environment(from_json(example_machine()))
    line = hostile.requirement_line(chance)

    def act() -> None:
        parsed = requirement(line)
        if parsed is not None:
            is_in_force(parsed, markers, "")

    return act


def requirements(folder: Path, chance: random.Random) -> Act:
    file = folder / "r.txt"
    (folder / "other.txt").write_text("-r r.txt\n")
    file.write_bytes(hostile.requirements(chance))
    return lambda: [[*one.requirements({})] for one in collect_files([file]).values()]


def locks(_: Path, chance: random.Random) -> Act:
    data = hostile.lock(chance).decode("utf-8", "replace")
    return lambda: read_lock(data, "lock")


def wheels(folder: Path, chance: random.Random) -> Act:
    path = hostile.wheel(folder, chance)
    return lambda: read_wheel_contents(path)


KINDS: Mapping[str, Callable[[Path, random.Random], Act]] = {
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


def refusal(act: Act) -> Error | None:
    """Return the Error that `act` ends with; any other exception is raised."""
    try:
        act()
    except Error as error:
        return error
    return None


@pytest.fixture
def limited() -> Iterator[None]:
    """Let nothing need much more memory than there is now."""
    with limited_memory():
        yield


@pytest.mark.untraced
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
