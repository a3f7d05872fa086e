"""A value from outside is a value in every format, for the reader of that format, or is refused."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.pylock import Pylock
from packaging.requirements import Requirement
from pip._internal.network.session import PipSession
from pip._internal.req.req_file import RequirementsFileParser, get_line_parser

import synthetic
from ortgpu_fix.errors import Error
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.index.page import without_credentials
from ortgpu_fix.lock.formats.dockerfile import dockerfile
from ortgpu_fix.lock.formats.pylock import pylock
from ortgpu_fix.lock.formats.requirements_txt import requirements
from ortgpu_fix.lock.formats.uv import uv_lines
from ortgpu_fix.lock.formats.words import pin_word
from ortgpu_fix.lock.model import Lock, LockTarget
from ortgpu_fix.matrix.model import AddedRows
from ortgpu_fix.messages.shells import PastedCommand
from ortgpu_fix.plan.wheels import HERE, PYPI, Pinned, Wheel
from ortgpu_fix.utils.foreign_text import clean_text
from support.local_index import make_wheel
from support.standin_wheels import clean_environment, find_uv

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LINUX = synthetic.machine(libc="glibc 2.35")
CU128 = "https://download.example/whl/cu128"
PIECES = [
    *(
        "\n",
        "\r",
        "\r\n",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\x9b",
        "\x9d",
        "\x00",
        "\x1b[",
    ),
    *(
        "RUN evil",
        "--extra-index-url https://evil.example",
        "-r evil.txt",
        "LOCK",
        "CHECK",
        "a",
        "1",
    ),
    *(" ", "\t", " -", " --", " #", "#", "\\", "\\\n", '"', "'", '"""', "]", "[tool]\n", ",", ";"),
    *(" ; ", "${HOME}", "$PATH", "*", "?", "@", " @ ", "://", "/", "..", "%0a", "<<EOF", "{", "="),
    *("# syntax=evil/x", "\u202e", "\ufeff", "ü", "0" * 64),
]
hostile = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def wheel(
    name: str, version: str, index: str = PYPI, *, url: str = "", sha: str = "0" * 64
) -> Pinned:
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    row = Wheel(name=name, version=version, index_url=index, file=file, size=5, sha256=sha)
    return Pinned(wheel=row, url=url or f"https://files.example/{file}")


def lock(**values: str) -> Lock:
    """Return a lock with `values` where they can come from outside."""
    ort = wheel("onnxruntime-gpu", values.get("version", "1.26.0"), sha=values.get("sha", "0" * 64))
    torch = wheel("torch", "2.10.0", f"{CU128}{values.get('index', '')}")
    # What follows `?` or `#` in an address is cut off before.
    address = (
        f"{CU128}/{re.sub('[?#]', '', values.get('address', ''))}/torch-2.10.0-py3-none-any.whl"
    )
    torch = torch._replace(url=without_credentials(address))
    companion = "onnxruntime-1.26.0-py3-none-any.whl"
    path = f"./w{values.get('path', '').replace('://', ':')}/{companion}"  # else an address
    other = wheel(f"numpy{values.get('name', '')}", "2.4.6", sha=values.get("sha", "0" * 64))
    target = LockTarget(
        machines=((f"a{values.get('machine', '')}", LINUX),),
        facts=LINUX,
        chosen=(ort, torch, wheel("onnxruntime", "1.26.0", HERE, url=path)),
        closure=(other,),
        ranges=("flatbuffers", "numpy>=1.21.6"),
        libraries=(f"nvidia{values.get('library', '')}/lib",),
    )
    added = AddedRows(
        read="2026-11-22",
        index_url=f"https://x.example/{values.get('read', '')}",
        releases=("onnxruntime-gpu 1.26.0",),
        alone=False,
    )
    return Lock(
        distribution="onnxruntime-gpu",
        version="1.26.0",
        cuda="12",
        python="3.11",
        preload_dlls=True,
        targets=(target,),
        commands=(PastedCommand(None, f"ortgpu-fix lock {values.get('command', '')}"),),
        matrix_date="2026-01-01",
        matrix_digest="sha256:invented",
        matrix_added=(added,),
    )


def by_pip(text: str) -> list[object]:
    """Return what pip reads: of each line all that it would do."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "r.txt")
        file.write_text(text, encoding="utf-8", newline="")
        parser = RequirementsFileParser(PipSession(), get_line_parser(None))
        return [
            (str(line.requirement).split(" ; ")[0], vars(line.opts))
            for line in parser.parse(str(file), constraint=False)
        ]


def by_packaging(text: str) -> list[object]:
    made = Pylock.from_dict(tomllib.loads(text))
    return [
        (
            row.name,
            str(row.version),
            row.index,
            [(each.url, each.path, each.hashes) for each in row.wheels or ()],
        )
        for row in made.packages
    ]


def by_uv(text: str) -> list[object]:
    """Return the tables that uv reads, with requirements as they are parsed."""
    document = tomllib.loads(text)
    wanted = [str(Requirement(line)) for line in document["dependency-groups"]["gpu"]]
    return [sorted(document), wanted, document["tool"]]


PRINTED = re.compile(r"RUN printf '%s\\n' (.*)> ([\w/.-]+)")


def by_docker(text: str) -> list[object]:
    """Return each instruction with its text, as BuildKit divides a Dockerfile into them.

    Comments go first, and a backslash continues a line:
    https://docs.docker.com/reference/dockerfile/. The shell reads what `printf` writes, and
    pip the requirements.
    """
    found: list[object] = []
    lines = iter(re.split(r"\r?\n", text))
    for line in lines:
        whole = line.strip()
        if not whole or whole.startswith("#"):
            continue
        while whole.endswith("\\"):
            whole = whole[:-1] + next(lines).strip()
        written = PRINTED.fullmatch(whole)
        if written is None:
            found.append(whole)
            continue
        script = f"printf '%s\\n' {written[1]}"
        held = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=True
        ).stdout
        found.append(by_pip(held) if written[2] == "requirements.txt" else held)
    return found


FORMATS: dict[str, tuple[Callable[[Lock], str], Callable[[str], list[object]]]] = {
    "requirements": (requirements, by_pip),
    "pylock": (pylock, by_packaging),
    "uv": (uv_lines, by_uv),
    "dockerfile": (lambda made: dockerfile(made, b"model"), by_docker),
}
COMMENTS = ("machine", "command", "read")
FIELDS = (*COMMENTS, "path", "address", "index", "sha", "version", "name", "library")


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("field", COMMENTS)
@settings(max_examples=8)
@given(value=hostile)
@example(value="\nRUN evil")
@example(value="\n--extra-index-url https://evil.example")
def test_a_comment_is_nothing_to_any_reader(field: str, format_name: str, value: str) -> None:
    write, read = FORMATS[format_name]

    text = clean_text(write(lock(**{field: value})))

    assert read(text) == read(clean_text(write(lock())))
    assert read_lock(text, "x").pins == read_lock(clean_text(write(lock())), "x").pins


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("field", [field for field in FIELDS if field not in COMMENTS])
@settings(max_examples=8)
@given(value=hostile)
@example(value="\nRUN evil")
@example(value="\n--extra-index-url https://evil.example")
@example(value=" --hash=sha256:" + "1" * 64)
@example(value='\x9b"\x9d')
def test_a_value_is_one_value_or_is_refused(field: str, format_name: str, value: str) -> None:
    """What is read differs from the reading of a harmless value in that value alone."""
    write, read = FORMATS[format_name]
    text = written(write, lock(**{field: value}))

    usual = written(write, lock(**{field: harmless(field)}))

    assert usual is not None
    assert text is None or shape(read(text)) == shape(read(usual))


def written(write: Callable[[Lock], str], made: Lock) -> str | None:
    """Return what the command would write; None where it refuses."""
    try:
        return clean_text(write(made))
    except Error as error:
        if error.code != "lock-value-odd":
            raise
    return None


def harmless(field: str) -> str:
    return {"sha": "1" * 64, "version": "1.26.1"}.get(field, "x")


def shape(value: object) -> object:
    """Return `value` with every text as what it is one of; the number of words of Docker stays."""
    if isinstance(value, str):
        instruction = re.match(r"(FROM|WORKDIR|COPY|RUN|ENV|ENTRYPOINT|CMD) ", value)
        return instruction[1] if instruction else ""
    if isinstance(value, dict):
        return sorted((shape(item) for item in value.values()), key=repr)
    if isinstance(value, list | tuple):
        return [shape(item) for item in value]
    return value


def test_folders_that_people_have_are_written() -> None:
    made = lock(path=" (copy), a=b@c~")

    text = dockerfile(made, b"model")

    path = "./w (copy), a=b@c~"
    assert f'COPY ["{path}/onnxruntime-1.26.0-py3-none-any.whl", ' in text
    assert f"\n{path}/onnxruntime-1.26.0-py3-none-any.whl \\\n" in requirements(made)


def test_an_address_is_encoded() -> None:
    made = requirements(lock(address="a b${HOME} "))

    assert f"torch @ {CU128}/a%20b%24%7BHOME%7D%20/torch-2.10.0-py3-none-any.whl" in made


OF_UV = ("command", "sha", "name")
LINES = (
    "\nevil\n",
    "\nevil==1 --hash=sha256:" + "0" * 64 + "\n#",
    " \\\nevil\n",
    '", "evil", "',
    '"]\ngpu = ["evil"]\n#',
    '"\n[[packages]]\nname = "evil"\nversion = "1"\n',
    "\r evil\r\n-r evil.txt\x0bevil\u2028evil",
)
PROJECT = '[project]\nname = "application"\nversion = "1"\nrequires-python = ">=3.10"\n'


class Reader:
    """A folder where uv itself reads a lock, with the wheels that it may find: `evil` is one.

    It would come wherever a value became a line of its own.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels = folder, folder / "wheels"
        names = (("onnxruntime-gpu", "1.26.0"), ("onnxruntime-gpu", "1.26.1"), ("numpy", "2.4.6"))
        for name, version in (*names, ("numpyx", "2.4.6"), ("flatbuffers", "25"), ("evil", "1")):
            make_wheel(self.wheels, name, version)
        (folder / "evil.txt").write_text("evil\n")

    def lock(self, **values: str) -> Lock:
        """Return a lock of what is on an index alone, for this Python."""
        made = lock(**values)
        [target] = made.targets
        chosen = target.chosen[:1]
        return replace(made, targets=(replace(target, chosen=chosen),))

    def read(self, format_name: str, text: str) -> list[str] | None:
        """Return the lines of what uv would install; None where it refuses the file."""
        uv = format_name == "uv"
        file = self.folder / ("pyproject.toml" if uv else "r.txt")
        file.write_text((PROJECT if uv else "") + text, encoding="utf-8", newline="")
        argv = [find_uv(), "pip", "compile", "--offline", "--no-index", "--no-deps", "--universal"]
        argv += [
            "--find-links",
            "wheels",
            "--python",
            sys.executable,
            "--no-annotate",
            "--no-header",
        ]
        argv += ["--group", f"{file.name}:gpu"] if uv else [file.name]
        done = subprocess.run(
            argv, cwd=self.folder, env=environment(), check=False, capture_output=True, text=True
        )
        return None if done.returncode else done.stdout.splitlines()


def environment() -> dict[str, str]:
    """Return one in which uv reads the settings of the project."""
    return {name: text for name, text in clean_environment().items() if name != "UV_NO_CONFIG"}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("read"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_name", "old", "new"),
    [("requirements", "\nnumpy", "\nevil\nnumpy"), ("uv", "gpu = [", 'gpu = ["evil",')],
)
def test_what_is_planted_is_read(reader: Reader, format_name: str, old: str, new: str) -> None:
    text = FORMATS[format_name][0](reader.lock())
    assert old in text

    found = reader.read(format_name, text.replace(old, new))

    assert found is not None
    assert [line for line in found if line.startswith("evil==1")]


@pytest.mark.slow
@pytest.mark.parametrize("value", LINES)
@pytest.mark.parametrize("field", OF_UV)
@pytest.mark.parametrize("format_name", ["requirements", "uv"])
def test_uv_reads_a_value_or_the_file_is_not_written(
    reader: Reader, format_name: str, field: str, value: str
) -> None:
    write, _ = FORMATS[format_name]
    usual = reader.read(format_name, write(reader.lock()))
    assert usual is not None

    text = written(write, reader.lock(**{field: value}))

    assert text is None or reader.read(format_name, text) == usual


@pytest.mark.parametrize(("name", "release"), [("a", "not a version"), ("a", "1\n--pre")])
def test_what_is_no_pin_is_refused(name: str, release: str) -> None:
    with pytest.raises(Error, match="lock-value-odd"):
        pin_word(name, release)
    assert pin_word("nvidia-cudnn-cu12", "9.1.0+x") == "nvidia-cudnn-cu12==9.1.0+x"


@pytest.mark.parametrize("sha256", ["0" * 63, "0" * 64 + "\nRUN evil"])
def test_what_is_no_hash_is_refused(sha256: str) -> None:
    with pytest.raises(Error, match="lock-value-odd"):
        requirements(lock(sha=sha256))
