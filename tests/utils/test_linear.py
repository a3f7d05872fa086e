"""What reads text of others takes twice the time for twice the text, and no more."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ortgpu_fix.apply.environment_files import recorded_files
from ortgpu_fix.apply.journal import Begin, Install, Mark, decode, encode
from ortgpu_fix.data_files import example_machine, load_table
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.outputs import read_outputs
from ortgpu_fix.facts.parsers import parse_ldconfig
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.index.page import parse_index_page
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.log_lines.reading import text_of
from ortgpu_fix.project.pyproject_recipe import parse_pyproject
from ortgpu_fix.requirements.files import RequirementsFile
from ortgpu_fix.utils.foreign_text import clean_text

TABLE = parse_failures(load_table("failures"))
GPU = "onnxruntime-gpu==1.26.0"


def explained(text: str) -> None:
    explain_log(text_of([json.dumps(text.split(" ")).encode()]), TABLE, "en")


def locked(text: str) -> None:
    read_lock(text, "lock")


def paged(text: str) -> None:
    kind = "text/html" if text[0] == "<" else "application/vnd.pypi.simple.v1+json"
    with contextlib.suppress(Error):
        parse_index_page(kind, text, "https://x.example/simple/a/")


def page(count: int) -> str:
    rows = [
        {"filename": f"a-{at}-py3-none-any.whl", "url": f"{at}.whl", "hashes": {"sha256": "0" * 64}}
        for at in range(count)
    ]
    return json.dumps({"meta": {"api-version": "1.0"}, "files": rows})


def required(text: str) -> None:
    file = RequirementsFile(path=Path("r.txt"), content=text.encode(), constraint=False)
    assert list(file.requirements({}))


def recorded(text: str) -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "RECORD").write_text(text)
        assert recorded_files(folder)


def facts(text: str) -> None:
    from_json(json.loads(text))


def machine(count: int) -> str:
    rows = [
        {"name": f"p{at}", "version": "1", "requires": [f"p{at + 1}>=1"]} for at in range(count)
    ]
    libraries = [
        {"name": f"lib{at}.so", "path": f"/l/{at}.so", "version": None} for at in range(count)
    ]
    example: Any = example_machine()
    return json.dumps({**example, "packages": rows, "libraries": libraries})


def journal(count: int) -> str:
    names = tuple(f"a/{at}" for at in range(count))
    begin = Begin(plan="x", removed=(), installed=(), present=names)
    install = Install(
        created=names, whole=(), standing=(), sizes=(1,) * count, hashes=("ab",) * count
    )
    return "\n".join([encode(begin), encode(install), encode(Mark(step="commit"))])


def printed(text: str) -> None:
    read_outputs(text, {})


def loaded(text: str) -> None:
    parse_ldconfig(text, "x86_64")


def project(count: int) -> str:
    return "version = 1\n" + "".join(
        f'[[package]]\nname = "p{at}"\nversion = "1"\ndependencies = [{{ name = "p{at + 1}" }}]\n'
        for at in range(count)
    )


def pylock(count: int) -> str:
    return 'lock-version = "1.0"\n[[packages]]\nname = "a"\nversion = "1"\n' + "".join(
        f'[[packages.wheels]]\nurl = "https://x.example/{at}"\nhashes = {{ sha256 = "{at:064}" }}\n'
        for at in range(count)
    )


@pytest.mark.parametrize(
    ("reader", "made", "count"),
    [
        pytest.param(clean_text, lambda n: "://a:b" * n, 4_000, id="addresses"),
        pytest.param(clean_text, lambda n: "@" + "://a:b?" * n, 4_000, id="queries"),
        pytest.param(locked, lambda n: f"b==2\n{GPU}{' ' * n}x\n", 20_000, id="blanks"),
        pytest.param(locked, lambda n: "b==2\n" + f"{GPU} {chr(92)}\n" * n, 2_000, id="continued"),
        pytest.param(locked, project, 400, id="uv.lock"),
        pytest.param(explained, lambda n: "a " * n, 5_000, id="json"),
        pytest.param(required, lambda n: "a==1 \\\n --hash=sha256:00\n" * n, 400, id="required"),
        pytest.param(required, lambda n: f"a ;{' ' * n}os_name == 'x'\n", 20_000, id="marker"),
        pytest.param(paged, page, 400, id="page"),
        pytest.param(paged, lambda n: "<a " * n, 4_000, id="open tags"),
        pytest.param(decode, journal, 2_000, id="journal"),
        pytest.param(recorded, lambda n: "a/b.py,sha256=00,1\n" * n, 4_000, id="RECORD"),
        pytest.param(printed, lambda n: "onnxruntime-gpu==1.26.0\n" * n, 2_000, id="pip freeze"),
        pytest.param(printed, lambda n: f"onnxruntime{' ' * n}1\n", 20_000, id="pip list"),
        pytest.param(parse_pyproject, lambda n: f"a = [{'1,' * n}]\n", 1_000, id="pyproject"),
    ],
)
def test_four_times_the_text_takes_four_times_as_long(
    reader: Callable[[str], object], made: Callable[[int], str], count: int
) -> None:
    """A square would be 16 times; the clock is that of this process."""

    def seconds(text: str) -> float:
        began = time.process_time()
        reader(text)
        return time.process_time() - began

    few, many = (min(seconds(text) for _ in range(2)) for text in (made(count), made(4 * count)))

    assert many < 8 * few + 0.05
