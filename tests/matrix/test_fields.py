"""What makes rows of tables: each type, and the form of each text that comes from outside."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from packaging.specifiers import SpecifierSet

from ortgpu_fix.matrix import fields
from ortgpu_fix.matrix.fields import read_rows, row_reader


class Inner(NamedTuple):
    name: Annotated[str, str.islower]


class Sample(NamedTuple):
    text: str = ""
    number: int = 0
    flag: bool = False
    choice: Literal["a", "b"] = "a"
    maybe: str | None = "x"
    inner: Inner = Inner("z")
    many: tuple[Inner, ...] = ()
    some: frozenset[str] = frozenset()
    by_name: Mapping[str, int] = {}
    wanted: SpecifierSet = SpecifierSet()


RIGHT: list[tuple[str, Any, Any]] = [
    *(("text", "a", "a"), ("number", 5, 5), ("flag", True, True), ("choice", "b", "b")),
    *(("maybe", None, None), ("maybe", "y", "y"), ("inner", {"name": "a"}, Inner("a"))),
    *(("many", [{"name": "a"}], (Inner("a"),)), ("many", (), ())),
    *(("some", ["b", "b"], frozenset("b")), ("by_name", {"a": 1}, {"a": 1})),
    ("wanted", ">=2", SpecifierSet(">=2")),
]
WRONG: list[tuple[str, Any, str]] = [
    *(("text", 1, ": is not a text"), ("text", None, ": is not a text")),
    *(("number", True, ": is not a whole number"), ("number", "1", ": is not a whole number")),
    *(("flag", 1, ": is not true or false"), ("choice", "c", ": cannot be 'c'")),
    *(("maybe", 1, ": is not a text"), ("inner", [], ": is no table")),
    *(("inner", {}, ".name: is missing"), ("inner", {"name": 1}, ".name: is not a text")),
    *(("many", {}, ": is no list"), ("many", [{"name": "a"}, {}], "[1].name: is missing")),
    *(("some", [[]], "[0]: is not a text"), ("by_name", [], ": is no table")),
    *(("by_name", {1: 1}, "[a key]: is not a text"),),
    *(("by_name", {"a": "b"}, "[a]: is not a whole number"), ("wanted", 2, ": is no specifier")),
    *(("wanted", "2", ": Invalid specifier: '2'"), ("wanted", " " * 2001, ": is no specifier")),
]


@pytest.mark.parametrize(("key", "value", "made"), RIGHT)
def test_a_value_of_its_type_is_taken(key: str, value: Any, made: Any) -> None:
    row = row_reader(Sample)({key: value, "another": 1})

    assert row == Sample()._replace(**{key: made})
    assert type(getattr(row, key)) is type(made)


@pytest.mark.parametrize(("key", "value", "problem"), WRONG)
def test_any_other_value_is_told_with_its_place(key: str, value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^\.") as caught:
        row_reader(Sample)({key: value})

    assert str(caught.value) == f".{key}{problem}"


def test_a_row_is_a_table_and_its_place_is_told() -> None:
    assert read_rows({"row": [{"name": "a"}]}, "row", row_reader(Inner)) == (Inner("a"),)
    with pytest.raises(ValueError, match=r"^row\[1\]: is no table$"):
        read_rows({"row": [{"name": "a"}, "b"]}, "row", row_reader(Inner))


def test_forms_are_asked_for_where_rows_come_from_outside_alone() -> None:
    loud: dict[str, Any] = {"inner": {"name": "A"}, "many": [{"name": "B" * 90}]}

    assert row_reader(Sample)(loud).inner == Inner("A")
    with pytest.raises(ValueError, match=r"^\.inner\.name: cannot be 'A'$"):
        row_reader(Sample, forms=True)(loud)
    with pytest.raises(ValueError, match=rf"^\.many\[0\]\.name: cannot be '{'B' * 80}'$"):
        row_reader(Sample, forms=True)({"many": loud["many"]})


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        (fields.VERSION, ["1", "1.2.3.post1", "1.0+cu130", "1" * 80], ["", " 1", "1.x", "1" * 81]),
        (fields.DOTTED, ["12.8", "2.27", "123.456"], ["12", "12.8.1", "1234.5", "1.2345", "a.b"]),
        (fields.MAJOR, ["9", "12", "123"], ["", "1234", "9.1", "٩"]),
        (fields.TARGET, ["8.0", "12.0f", "9.0a"], ["8", "8.0b", "123.0", "8.00"]),
        (fields.PLATFORM, ["linux_x86_64", "windows_x86_64"], ["linux", "linux_x86_64 "]),
        (fields.PYTHON, ["cp312", "py3", "a" * 40], ["", "cp3-12", "a" * 41, "CP3"]),
        (fields.SHA256, ["", "0f" * 32], ["0f" * 31, "0F" * 32, "0f" * 33]),
        (
            fields.FILE,
            ["a-1.0+c!2.whl", "a" * 251 + ".whl"],
            ["a/b.whl", ".whl", "a" * 252 + ".whl"],
        ),
        (fields.SIZE, [1, 1 << 40], [0, -1, (1 << 40) + 1]),
        (fields.HOW, ["links", "loads"], ["link", "loads "]),
        (fields.NAME, ["a", "nvidia-cublas", "a" * 102], ["", "-a", "a-", "a b", "a" * 103]),
        (fields.LIBRARY, ["libcublas.so.12", "a" * 200], ["", "a/b", "a" * 201]),
        (fields.PATH, ["a/b.so", "a" * 501], ["/a", "a/../b", "", "a" * 502]),
        (fields.TEXT, ["é 1", "a" * 2000], ["", "a" * 2001, "a\n", "\ud800"]),
    ],
)
def test_the_form_of_each_text(form: Any, right: list[object], wrong: list[object]) -> None:
    class Formed(NamedTuple):
        value: form

    read = row_reader(Formed, forms=True)

    assert [read({"value": value}).value for value in right] == right
    for value in wrong:
        with pytest.raises(ValueError, match=r"^\.value: cannot be"):
            read({"value": value})
