"""What a wheel writes, and the wheels that must not be unpacked."""

from __future__ import annotations

import errno
import io
import os
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortgpu_fix.apply.wheel_contents import (
    Member,
    WheelContents,
    check_entry_points,
    info_folder,
    read_contents,
    read_wheel_contents,
    wheel_contents,
)
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import load_texts
from support.local_index import make_wheel

FILE = "stand_in-1.0-py3-none-any.whl"
INFO = "stand_in-1.0.dist-info"


def member(name: str, size: int = 10, mode: int = 0, *, locked: bool = False) -> Member:
    return Member(name=name, size=size, mode=mode, locked=locked)


def judge(*extra: Member, listed: tuple[str, ...] | None = None, **changes: Any) -> WheelContents:
    """Judge a wheel that is right but for `extra` members and `changes` to its texts."""
    names = ["a/__init__.py", f"{INFO}/METADATA", f"{INFO}/WHEEL", f"{INFO}/RECORD"]
    members = [*(member(name) for name in names), *extra]
    known = (
        [one.name for one in members if not one.name.endswith("/")] if listed is None else listed
    )
    texts = {
        "METADATA": "Metadata-Version: 2.1\nName: stand.in\nVersion: 1.0.0\nRequires-Dist: b>=1\n"
        "Requires-Dist: c;\n python_version>'3'\n\nName: not this",
        "WHEEL": "Wheel-Version: 1.0\nno field\nRoot-Is-Purelib: true\n",
        "RECORD": "".join(f'"{name}",,\n' for name in known),
        **changes.pop("texts", {}),
    }
    return wheel_contents(changes.get("file", FILE), changes.get("size", 1000), members, texts)


def code(**options: Any) -> str:
    extra = options.pop("extra", ())
    with pytest.raises(Error) as caught:
        judge(*extra, **options)
    return caught.value.code


def test_what_is_in_a_wheel() -> None:
    data = "stand_in-1.0.data"
    found = judge(
        member("a/", 0, stat.S_IFDIR | 0o755),
        member("a/b/", 0, stat.S_IFDIR | 0o755),
        member(f"{data}/", 0, stat.S_IFDIR | 0o755),
        member(f"{data}/purelib/", 0, stat.S_IFDIR | 0o755),
        member(f"{data}/purelib/c/", 0, stat.S_IFDIR | 0o755),
        member("a/x.so", 5, stat.S_IFREG | 0o755),
        member(f"{data}/scripts/tool"),
        member(f"{data}/data/share/x"),
        member(f"{data}/platlib/y.so"),
        texts={"entry_points.txt": "[console_scripts]\nMy-Tool = a:main\n[other]\nx = y\n"},
    )

    assert found.name == "stand-in"
    assert found.version == "1.0.0"
    assert found.requires == ("b>=1", "c; python_version>'3'")
    assert found.size == 4 * 10 + 5 + 3 * 10


@pytest.mark.parametrize(
    "name",
    [
        "../outside.py",
        "/etc/passwd",
        "C:/windows/x.dll",
        "a\\..\\b.py",
        ".ORTGPU-fix/lock",
        "a/\x00.py",
        "stand_in-1.0.data/elsewhere/x",
        "stand_in-1.0.data/scripts",
        "",
    ],
)
def test_what_would_leave_the_environment(name: str) -> None:
    assert code(extra=(member(name),)) == "wheel-escapes"


@pytest.mark.parametrize(
    "extra",
    [
        (member("a/link", 3, stat.S_IFLNK | 0o777),),
        (member("a/pipe", 0, stat.S_IFIFO),),
        (member("a/folder/", 0, stat.S_IFREG | 0o644),),
        (member("a/secret", locked=True),),
        (member("a/__init__.py"),),
        (member("a/__init__.py/b.py"),),
        (member("a"),),
    ],
)
def test_what_is_no_plain_file_or_there_twice(extra: tuple[Member, ...]) -> None:
    assert code(extra=extra) == "wheel-odd"


@pytest.mark.parametrize(
    ("packed", "most"), [(0, 400 << 20), (1000, 400 * (1000 + (1 << 20))), (10**9, 32 << 30)]
)
def test_how_much_a_wheel_may_unpack_to(packed: int, most: int) -> None:
    others = 4 * 10

    assert judge(member("a/big", most - others), size=packed).size == most
    with pytest.raises(Error) as caught:
        judge(member("a/big", most - others + 1), size=packed)
    assert (caught.value.code, caught.value.values["size"]) == ("wheel-huge", most + 1)


@pytest.mark.parametrize("name", ["RECORD", "RECORD.jws", "RECORD.p7s"])
def test_what_record_need_not_list(name: str) -> None:
    names = ("a/__init__.py", f"{INFO}/METADATA", f"{INFO}/WHEEL")
    extra = () if name == "RECORD" else (member(f"{INFO}/{name}"),)

    assert judge(*extra, listed=names).name == "stand-in"
    other = (member(f"{INFO}/RECORD.other"),)
    assert code(extra=other, listed=names) == "wheel-broken"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"file": "stand_in.whl"}, "-"),
        ({"extra": (member("b-1.dist-info/METADATA"),)}, ".dist-info"),
        ({"file": "other-1.0-py3-none-any.whl"}, INFO),
        ({"texts": {"METADATA": ""}}, "METADATA"),
        ({"texts": {"METADATA": "Name: other\nVersion: 1.0\n"}}, "METADATA"),
        ({"texts": {"METADATA": "Name: stand-in\nVersion: much\n"}}, "METADATA"),
        ({"texts": {"WHEEL": ""}}, "WHEEL"),
        ({"texts": {"RECORD": '"a"b,,\n'}}, "RECORD"),
        ({"texts": {"entry_points.txt": "no section\n"}}, "entry_points.txt"),
        ({"extra": (member("z.py"), member("b.py")), "listed": ()}, "a/__init__.py"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], part: str) -> None:
    extra = options.pop("extra", ())
    with pytest.raises(Error) as caught:
        judge(*extra, **options)

    file = options.get("file", FILE)
    assert (caught.value.code, caught.value.values) == (
        "wheel-broken",
        {"file": file, "part": part},
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[console_scripts]\na/b = c:d\n", "a/b"),
        ("[console_scripts]\n. = c:d\n", "."),
        ("[gui_scripts]\n.. = c:d\n", ".."),
        ("[gui_scripts]\na\\b = c:d\n", "a\\b"),
        ("[other]\na/b = c:d\n", None),
        ("[console_scripts]\nTool.x = c:d\n[gui_scripts]\nb = c:d\n", None),
        ("[console_scripts]\na = c:d\na = e:f\n", None),
    ],
)
def test_a_script_has_the_name_of_a_file(text: str, name: str | None) -> None:
    if name is None:
        check_entry_points(text, FILE)
    else:
        with pytest.raises(Error) as caught:
            check_entry_points(text, FILE)
        assert (caught.value.code, caught.value.values["member"]) == ("wheel-escapes", name)


def test_a_version_in_the_name_of_the_folder_that_is_none() -> None:
    names = ["stand_in-x.dist-info/RECORD"]

    with pytest.raises(Error, match="wheel-broken"):
        wheel_contents(FILE, 1000, [member(name) for name in names], {})


@pytest.mark.parametrize(
    ("file", "info"),
    [
        ("a-1.0-py3-none-any.whl", "a-1.0.dist-info"),
        ("a_b-1.0.post1-py3-none-any.whl", "a_b-1.0-1.dist-info"),  # another spelling of it
    ],
)
def test_the_metadata_of_a_vendored_copy_are_not_the_wheel_s(file: str, info: str) -> None:
    names = (f"{info}/METADATA", f"{info}/licenses/A", "a/_vendor/b-2.0.dist-info/METADATA")

    assert info_folder(file, [member(name) for name in names]) == info


def test_no_record() -> None:
    with pytest.raises(Error, match="wheel-broken"):
        wheel_contents(FILE, 1000, [member(f"{INFO}/METADATA")], {"RECORD": f"{INFO}/METADATA,,\n"})


def hostile(folder: Path, name: str, data: bytes = b"x", mode: int = 0o100644) -> Path:
    """Make a wheel that is right but for one member."""
    path = make_wheel(folder, "stand-in", "1.0", files={"a.py": ""})
    with zipfile.ZipFile(path, "a") as file:
        about = zipfile.ZipInfo(name)
        about.create_system = 3
        about.external_attr = mode << 16
        file.writestr(about, data)
    return path


@pytest.mark.parametrize(
    ("at", "value"), [(8, 1), (10, zipfile.ZIP_BZIP2)], ids=["encrypted", "packed-otherwise"]
)
def test_a_real_zip_with_a_member_that_no_installer_opens(
    tmp_path: Path, at: int, value: int
) -> None:
    """Its bit, or its way of packing, in the last entry of the zip's directory."""
    path = hostile(tmp_path, "secret.py")
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + at : entry + at + 2] = value.to_bytes(2, "little")
    path.write_bytes(data)

    with pytest.raises(Error) as caught:
        read_wheel_contents(path)

    assert (caught.value.code, caught.value.values["member"]) == ("wheel-odd", "secret.py")


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("name", ["RECORD", "entry_points.txt"])
def test_texts_that_are_read_have_up_to_64_mib(tmp_path: Path, name: str, more: int) -> None:
    """So much is said to be there."""
    path = make_wheel(tmp_path, "stand-in", "1.0", files={"a.py": ""})
    info = "stand_in-1.0.dist-info"
    if name == "entry_points.txt":
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(f"{info}/{name}", "")
    with zipfile.ZipFile(path, "a") as file:
        file.getinfo(f"{info}/{name}").file_size = (64 << 20) + more
        file.comment = b"so that it is written anew"

    said: tuple[str, object] = ("read", 64 << 20)
    try:
        read_wheel_contents(path)
    except Error as error:
        said = (error.code, error.values.get("size", 64 << 20))
    assert (said == ("wheel-huge", 64 << 20)) is bool(more)


@pytest.mark.parametrize("cut", [0, 300])
def test_a_file_that_is_no_zip(tmp_path: Path, cut: int) -> None:
    path = make_wheel(tmp_path, "stand-in", "1.0", files={"a.py": ""})
    path.write_bytes(path.read_bytes()[:cut])

    with pytest.raises(Error, match="wheel-broken"):
        read_wheel_contents(path)


PATHS = st.lists(st.sampled_from(["a", "b", "lib", "x.py"]), min_size=1, max_size=3).map("/".join)


def rewritten(path: Path, text: str) -> None:
    """Put another RECORD into the wheel."""
    with zipfile.ZipFile(path) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    members[f"{INFO}/RECORD"] = text.encode(errors="surrogatepass")
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)


def declared(path: Path, size: int) -> None:
    """Let the zip say that `a.py` unpacks to so many bytes, in its directory and at the file."""
    data = bytearray(path.read_bytes())
    for magic, field, name in ((b"PK\x03\x04", 22, 30), (b"PK\x01\x02", 24, 46)):
        at = data.find(magic)
        while data[at + name : at + name + 4] != b"a.py":
            at = data.index(magic, at + 4)
        data[at + field : at + field + 4] = size.to_bytes(4, "little")
    path.write_bytes(data)


def escaping(draw: Any, path: Path) -> None:
    """Path traversal, absolute paths, drives and backslashes, in every depth."""
    begin = draw(
        st.sampled_from(["..", "../..", "/", "//", "C:", "C:/", "..\\", "a/../..", "./", "~\\"])
    )
    name = f"{begin}/{draw(PATHS)}"
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(name, draw(st.binary(max_size=20)))


def linking(draw: Any, path: Path) -> None:
    """Symbolic links, devices, pipes and sockets."""
    kinds = [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK]
    about = zipfile.ZipInfo(draw(PATHS.filter(lambda name: name != "x.py")) + "/link")
    about.create_system = draw(st.sampled_from([0, 3]))
    about.external_attr = (draw(st.sampled_from(kinds)) | draw(st.integers(0, 0o7777))) << 16
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(about, draw(st.sampled_from([b"/etc/passwd", b"../../x", b""])))


def doubling(draw: Any, path: Path) -> None:
    """A member twice, or a file where another needs a folder."""
    name = draw(st.sampled_from(["a.py", f"{INFO}/METADATA", f"{INFO}/RECORD", "a.py/b", "c"]))
    with zipfile.ZipFile(path, "a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.writestr(name, draw(st.binary(max_size=20)))
        if name == "c":
            file.writestr("c/d.py", b"")


def swelling(draw: Any, path: Path) -> None:
    """Sizes that cannot be."""
    declared(path, draw(st.integers(500_000_000, 0xFFFFFFFE)))


def unlisting(draw: Any, path: Path) -> None:
    """A RECORD that is empty, lists what is not there, leaves out what is, or is no table."""
    texts = st.sampled_from(["", "a.py,,\n", f"{INFO}/RECORD,,\n", '"a.py', "gone.py,,\n", "\0"])
    rewritten(path, draw(st.one_of(texts, st.text(max_size=40))))


HOSTILE: dict[Callable[[Any, Path], None], set[str]] = {
    escaping: {"wheel-escapes"},
    linking: {"wheel-odd", "wheel-broken"},
    doubling: {"wheel-odd"},
    swelling: {"wheel-huge"},
    unlisting: {"wheel-broken"},
}


@pytest.mark.untraced
@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda spoil: spoil.__name__)
def test_hostile_wheels_end_in_a_clear_refusal(
    spoil: Callable[[Any, Path], None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Real zips, as many as hypothesis can think of; the texts of all refusals exist."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = load_texts("en")

    @settings(max_examples=int(os.environ.get("ORTGPU_FIX_EXAMPLES", "25")))
    @given(st.data())
    def refused(data: st.DataObject) -> None:
        path = make_wheel(folder, "stand-in", "1.0", files={"a.py": b"\0" * 50_000})
        spoil(data.draw, path)
        with pytest.raises(Error) as caught:
            read_wheel_contents(path)

        assert caught.value.code in HOSTILE[spoil]
        assert texts.error(caught.value).exit_code == 7

    refused()


def test_a_wheel_that_is_gone_is_not_broken(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_wheel_contents(tmp_path / FILE)


def test_a_file_that_cannot_be_read_is_an_error_of_the_system(tmp_path: Path) -> None:
    """A disk that fails says nothing of the wheel."""

    class Failing(io.FileIO):
        fails = False

        def read(self, size: int | None = -1) -> bytes:
            if self.fails:
                raise OSError(errno.EIO, "Input/output error")
            self.fails = b"METADATA" in (found := super().read(-1 if size is None else size))
            return found

    wheel = make_wheel(tmp_path, "stand-in", "1.0")
    with Failing(str(wheel)) as file, pytest.raises(OSError, match="Input/output"):
        read_contents(file, wheel.name, wheel.stat().st_size)
