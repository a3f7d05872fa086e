"""The look-up page says what the rules of a plan say, and from where each value is known."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import lookup
import pytest
from lookup import GenerationCode, KnownValue, LookedUp, LookUp, SourceTables, look_up
from site_pages import Site

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix.load import load_matrix, matrix_table
from ortgpu_fix.matrix.model import AddedRows, Build, Matrix
from ortgpu_fix.matrix.torch import PypiWheel, TorchBuild, TorchTable
from ortgpu_fix.messages.catalog import Language
from ortgpu_fix.report.supported import judge_builds
from ortgpu_fix.resolve.situation import Situation

FAMILIES = [
    {"compute_capability": "8.6", "architecture": "Ampere", "names": ["RTX 3060"]},
    {"compute_capability": "8.0", "architecture": "Ampere", "names": ["A100", "A30"]},
    {"compute_capability": "5.2", "architecture": "Maxwell", "names": ["GTX 980"]},
    {"compute_capability": "12.1", "architecture": "Blackwell", "names": ["GB10"]},
    {"compute_capability": "8.6", "architecture": "Ampere", "names": ["A10"]},
]
TORCH_WHEEL = PypiWheel("cp311", 1, "0" * 64, "torch-2.7.1-cp311.whl")


def torch(version: str, cuda: str | None, *, wheels: bool = False, cudnn: str = "9") -> TorchBuild:
    return TorchBuild(
        version=version,
        local="cpu" if cuda is None else f"cu{cuda.replace('.', '')}",
        platform=synthetic.LINUX,
        cuda=cuda,
        cudnn=cudnn,
        sass=(),
        ptx=(),
        libraries="required",
        pins=(),
        toolkit={},
        glibc=None,
        pythons=frozenset({"cp311"}),
        wheels=(TORCH_WHEEL,) if wheels else (),
    )


BUILDS = (
    torch("2.6.0", "12.4"),
    torch("2.7.1", "12.8", wheels=True),
    torch("2.7.1", "12.8"),
    torch("2.7.1", None),
    torch("2.10.0", "13.0"),
    torch("2.3.0", "12.1", cudnn="8"),
)


def found(
    matrix: Matrix | None = None, *, sources: bool = True, arm: tuple[str, ...] = ()
) -> LookUp:
    rows = [dict(row) for row in synthetic.tables()["onnxruntime"]["build"]]
    floors = [dict(row) for row in synthetic.tables()["drivers"]["floor"]]
    if sources:
        rows[2]["cuda_source"] = "build_and_package_info.py"
        floors[1] |= {"source": "https://d", "checked": "2026-01-02"}
    tables = SourceTables(rows, floors, FAMILIES, arm, "2026-01-01", "2026-01-03")
    return look_up(matrix or synthetic.matrix()._replace(torch=TorchTable(BUILDS)), tables)


def row(version: str, where: LookUp, platform: str = synthetic.LINUX) -> LookedUp:
    [one] = [
        each
        for each in where.rows
        if (each.build.version, each.build.platform) == (version, platform)
    ]
    return one


def test_a_row_says_what_the_build_runs_on() -> None:
    where = found()
    one, old, arm = (
        row("1.26.0", where),
        row("1.18.0", where),
        row("1.31.0", where, "linux_aarch64"),
    )

    assert [each.build.version for each in where.rows[::2]] == ["1.31.0", "1.26.0", "1.18.0"]
    assert (one.driver, one.pythons) == ("525.60.13", "3.10-3.12")
    assert one.code == (
        GenerationCode((), ("12.1",)),
        GenerationCode(("8.0", "8.6"), ()),
        GenerationCode((), ()),
    )
    assert [each.name for each in one.torch] == ["2.6.0+cu124", "2.7.1+cu128", "2.7.1+cu128"]
    assert old.code[2] == GenerationCode(("5.2",), ())
    assert old.torch == arm.torch == ()


@pytest.mark.parametrize(
    ("accepted", "runs"), [(("579.99", "580.99"), (535, 580)), (("579.99",), None)]
)
def test_the_wheels_must_do_too(
    monkeypatch: pytest.MonkeyPatch, accepted: tuple[str, ...], runs: tuple[int, int] | None
) -> None:
    """What has no wheels with the newest driver has none with any."""

    def is_usable(_: Build, here: Situation) -> bool:
        return here.facts.driver is not None and here.facts.driver.version in accepted

    monkeypatch.setattr(lookup, "is_usable", is_usable)

    assert row("1.26.0", found()).runs.get("8.0") == runs


def test_each_value_has_its_source_and_its_day() -> None:
    wheel = "onnxruntime_gpu-1.26.0-cp312-cp312-linux_x86_64.whl"
    wheels = ", ".join(wheel.replace("312", minor) for minor in ("310", "311", "312"))
    read = "2026-01-01"

    assert row("1.26.0", found()).facts == (
        KnownValue("lookup-cuda", "12.8", "build_and_package_info.py", read),
        KnownValue("lookup-cudnn", "9", f"libcudnn.so.9, {wheel}", read),
        KnownValue("lookup-driver", ">= 525.60.13", "https://d", "2026-01-02"),
        KnownValue("lookup-code", "6.0 7.0 7.5 8.0 8.6 9.0", wheel, read),
        KnownValue("lookup-ptx", "9.0", wheel, read),
        KnownValue("lookup-glibc", ">= 2.28", wheel, read),
        KnownValue("lookup-python", "3.10-3.12", wheels, read),
        KnownValue("lookup-library", "libcublas.so.12: nvidia-cublas-cu12 >= 12.2.0", wheel, read),
        KnownValue("lookup-library", "libcudnn.so.9: nvidia-cudnn-cu12 >= 9.0.0", wheel, read),
        KnownValue(
            "lookup-torch", "2.6.0+cu124, 2.7.1+cu128", "torch-2.7.1-cp311.whl", "2026-01-03"
        ),
    )


def test_what_has_no_source_says_so_and_what_was_added_its_day() -> None:
    matrix = synthetic.matrix()
    builds = tuple(
        each._replace(
            glibc=None, ptx=(), needs=tuple(need._replace(since=None) for need in each.needs)
        )
        for each in matrix.builds
    )
    added = AddedRows("2026-02-02", "https://i", ("onnxruntime-gpu 1.26.0",))
    plain = torch("2.6.0", "12.4")
    matrix = matrix._replace(builds=builds, added=(added,), torch=TorchTable((plain,)))
    where = found(matrix, sources=False)
    facts = {fact.label: fact for fact in row("1.26.0", where).facts}

    assert facts["lookup-cuda"].source == row("1.26.0", where).build.wheels[-1].file
    assert facts["lookup-cuda"].since == "2026-02-02"
    assert facts["lookup-driver"][2:] == ("?", "?")
    assert facts["lookup-library"].value == "libcudnn.so.9: nvidia-cudnn-cu12"
    assert facts["lookup-torch"].source == "https://download.pytorch.org/whl"
    assert "lookup-glibc" not in facts
    assert "lookup-ptx" not in facts
    assert row("1.23.0", where).facts[0].since == "2026-01-01"
    unknown = matrix._replace(floors=())
    tables = SourceTables(synthetic.tables()["onnxruntime"]["build"], (), FAMILIES, (), "a", "b")
    assert row("1.26.0", look_up(unknown, tables)).facts[2] == KnownValue(
        "lookup-driver", ">= ?", "?", "?"
    )


class Page(HTMLParser):
    """The rows and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []
        self.cells: list[list[tuple[str, str | None, str | None]]] = []
        self.links: list[str | None] = []
        self._kind: tuple[str | None, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "a":
            self.links.append(said["href"])
        if tag == "tr" and "data-runs" in said:
            self.rows.append(said)
            self.cells.append([])
        elif tag in {"td", "th"} and self.rows and said.get("scope") != "col":
            self.cells[-1].append(("", said.get("class"), said.get("title")))

    def handle_data(self, data: str) -> None:
        if self.cells and self.cells[-1]:
            text, kind, title = self.cells[-1][-1]
            self.cells[-1][-1] = (text + data, kind, title)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Return the look-up page, or that of a release, in a language."""

    def write(where: LookUp, page: str = "", language: Language = "en") -> str:
        site = Site(tmp_path, language, where)
        site.write_releases()
        return (tmp_path / site.top / "ort" / page / "index.html").read_text("utf-8")

    return write


def test_the_page_holds_a_row_for_each_build(written: Callable[..., str]) -> None:
    where = found()
    made = Page(written(where))
    at = [each.build.version for each in where.rows].index("1.26.0")

    assert made.rows[at]["data-system"] == "linux_x86_64"
    assert made.rows[at]["data-runs"] == "12.1:580-580 8.0:535-580 8.6:535-580"
    assert made.rows[at]["data-torch"] == "2.6.0+cu124 2.7.1+cu128"
    wheel = "onnxruntime_gpu-1.26.0-cp312-cp312-linux_x86_64.whl · 2026-01-01"
    assert made.cells[at][:10] == [
        ("1.26.0", None, None),
        ("linux_x86_64", "name", None),
        ("12.8", None, "build_and_package_info.py · 2026-01-01"),
        ("9", None, f"libcudnn.so.9, {wheel}"),
        ("≥ 525.60.13", "name", "https://d · 2026-01-02"),
        (" 12.1", "ptx", wheel),
        ("8.0 8.6", "yes", wheel),
        ("–", "no", wheel),
        ("3.10-3.12", "list", made.cells[at][8][2]),
        ("2.6.0 to 2.7.1", "list", "torch-2.7.1-cp311.whl · 2026-01-03"),
    ]
    assert str(made.cells[at][8][2]).endswith(wheel)
    assert made.cells[0][9] == ("–", "list", None)
    assert made.cells[1][9][0] == "2.10.0"
    releases = [link for link in made.links if link and link[0].isdigit()]
    assert releases[2] == "1.26.0/index.html"


@pytest.mark.parametrize("version", ["1.31.1", "1.17.1"])
def test_what_the_real_page_says_of_drivers_is_what_matrix_says(version: str) -> None:
    matrix = load_matrix()
    matrix = matrix._replace(builds=tuple(b for b in matrix.builds if b.version == version))
    tables = SourceTables(
        matrix_table("onnxruntime")["build"],
        load_table("drivers")["floor"],
        [row for row in load_table("gpus")["family"] if row["compute_capability"] in _TRIED],
        (),
        "a",
        "b",
    )
    where = look_up(matrix, tables)
    for branch in (470, 535, 580, 615):
        for gpu in _TRIED:
            for judged in judge_builds(matrix, f"{branch}.99", [gpu]):
                first, last = row(version, where, judged.build.platform).runs.get(gpu, (0, 0))
                assert (not judged.reasons) == (first <= branch <= last), (branch, gpu)


_TRIED = ("6.1", "8.9", "12.0")
