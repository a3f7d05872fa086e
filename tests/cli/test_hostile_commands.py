"""Hostile files of seven kinds through whole commands: none writes outside, none is a defect.

What a command may cost more than with right files is named in `hostile`; the memory of its children
is limited as its own is.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess

import hostile
import pytest
from command import run_here
from hostile import CONTROLS, SECONDS, limited_memory
from lacking import install_all_but
from stand import Stand

from support.local_index import LocalIndex
from support.standin_wheels import Venv, clean_environment, make_venv, state_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="/proc, limits of Unix"),
    pytest.mark.filterwarnings("ignore:Duplicate name"),
    pytest.mark.untraced,
]
Done = CompletedProcess[str]
STARTS = 10.0
"""Seconds that a command may take besides: children of it are started on a machine that is busy."""
LACKS = "flatbuffers"
FEW, SOME = 2, 4
"""Of a kind that starts children, and of another, as many are tried."""


class Room:
    """Where one hostile file meets commands; what is outside of its `home` must stay as it is."""

    def __init__(self, folder: Path, venv: Path, server: LocalIndex) -> None:
        self.folder, self.server = folder, server
        self.home, self.temporary = folder / "home", folder / "temporary"
        for path in (self.home, self.temporary):
            path.mkdir(parents=True)
        self.venv = Venv(folder=venv)

    def run(self, *argv: str) -> Done:
        environ = clean_environment() | {"HOME": str(self.home), "LANG": "C.UTF-8"}
        began = time.monotonic()
        done = run_here(*argv, cwd=self.home, env=environ | {"TMPDIR": str(self.temporary)})
        assert time.monotonic() - began < SECONDS + STARTS, argv
        for said in (done.stdout, done.stderr):
            assert not CONTROLS.search(said), argv
            assert "Traceback" not in said
            assert len(said) < 400_000
        assert '"internal"' not in done.stdout
        assert "defect" not in done.stderr
        assert "Internal error" not in done.stderr, done.stderr
        assert not [*self.temporary.iterdir()]
        return done


@pytest.fixture(scope="module")
def limited() -> Iterator[None]:
    """Let neither this process nor a child of it need much more memory than there is now."""
    with limited_memory():
        yield


def facts(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    (room.home / "facts.json").write_bytes(hostile.facts(chance))
    plan = ("--facts", "facts.json")
    codes = {0, 1, 2, 3, 7}
    return {" ".join(argv): codes for argv in (plan, (*plan, "--json", "--verbose"))}


def requirements(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    (room.home / "other.txt").write_text("-r r.txt\n")
    (room.home / "r.txt").write_bytes(hostile.requirements(chance))
    return {"--facts example --json -r r.txt": {0, 1, 2, 3, 7}}


def locks(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    (room.home / "lock").write_bytes(hostile.lock(chance))
    return {"lock --check lock --facts example --json": {0, 1, 2, 3, 7}}


def journals(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    change = room.venv.site / ".ortgpu-fix" / "1"
    change.mkdir(parents=True)
    (change / "journal").write_bytes(hostile.journal(chance))
    python = f"--python {room.venv.folder}"
    codes = {0, 2, 5, 7}
    return {
        f"--facts example --json {python}": {0, 1, 2, 3, 7},
        f"--apply --offline --yes --facts example {python}": codes,
        f"undo --yes {python}": codes,
        f"undo --yes --allow changed {python}": codes,
        f"undo --forget --yes --allow changed {python}": codes,
    }


def metadata(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    for name in ("onnxruntime-gpu", "torch", "fastembed"):
        info = room.venv.site / f"{name.replace('-', '_')}-1.20.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.20.0\n"
        lines = [f"Requires-Dist: {hostile.requirement_line(chance)}" for _ in range(3)]
        text = head + "\n".join(lines) + "\n"
        data = text.encode("utf-8", "surrogatepass")
        (info / "METADATA").write_bytes(data)
        (info / "RECORD").write_bytes(hostile.damaged(b"a,sha256=x,1\n../../../x,,\n", chance))
    python = f"--python {room.venv.folder}"
    return {
        f"--facts example --json {python}": {0, 1, 2, 3, 7},
        f"facts {python}": {0, 7},
    }


def pages(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    kind, text = hostile.page(chance)
    url = room.server.url
    room.server.behaviour.page = (kind, text.encode("utf-8", "replace").decode())
    more = f"--index-url {url} --torch-index-url {url} -d wheels --torch ==2.10.0+cu128"
    return {f"download --facts example --json {more}": {2, 3, 7}}


def wheels(room: Room, chance: random.Random) -> Mapping[str, set[int]]:
    """uv chooses it, so no hash of the matrix speaks against it: it is refused, or rolled back."""
    folder = room.home / "wheels"
    hostile.wheel(folder, chance, LACKS, "25.9.23")
    flags = "--no-autoload --no-provide --allow conflicts --offline"
    more = f"--find-links {folder} --python {room.venv.folder}"
    return {f"--apply --yes --facts example {flags} {more}": {2, 4, 7}}


KINDS: Mapping[str, Callable[[Room, random.Random], Mapping[str, set[int]]]] = {
    "facts": facts,
    "requirements": requirements,
    "locks": locks,
    "journals": journals,
    "metadata": metadata,
    "pages": pages,
    "wheels": wheels,
}
STARTING = {"journals", "metadata", "pages", "wheels"}
CASES = [(kind, number) for kind in KINDS for number in range(FEW if kind in STARTING else SOME)]


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment to copy, in which one requirement is missing."""
    folder = tmp_path_factory.mktemp("lacking")
    venv = make_venv(folder / "venv", pip=False)
    install_all_but(LACKS, venv, folder / "wheels")
    return venv.folder


@pytest.fixture
def room(stand: Stand, lacking: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Room:
    if request.node.callspec.params["kind"] == "wheels":
        shutil.rmtree(stand.venv.folder)
        shutil.copytree(lacking, stand.venv.folder, symlinks=True)
    return Room(tmp_path / "room", stand.venv.folder, stand.server)


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_command_that_meets_a_hostile_file(
    room: Room, tmp_path: Path, kind: str, number: int
) -> None:
    chance = random.Random(f"{kind} {number}")  # noqa: S311 - the same each time
    commands = KINDS[kind](room, chance)
    before = {path for path in tmp_path.rglob("*") if not path.is_dir()}
    state = state_of(room.venv.folder)

    for argv, codes in commands.items():
        done = room.run(*argv.split())
        assert done.returncode in codes, (argv, done)
        if "--json" in argv:
            with contextlib.suppress(IndexError):
                json.loads(done.stdout)

    assert state_of(room.venv.folder) == state
    came = {path for path in tmp_path.rglob("*") if not path.is_dir()} - before
    caches = (room.home / ".cache" / name for name in ("uv", "ortgpu-fix"))
    own = {room.venv.site / ".ortgpu-fix", *caches}
    assert not [path for path in came if own.isdisjoint(path.parents)]
    shutil.rmtree(room.folder)
