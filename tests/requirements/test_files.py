"""What a requirements file asks for, as pip reads it."""

from __future__ import annotations

import codecs
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.requirements.files import collect_files
from ortgpu_fix.requirements.lines import files_named


def read(file: Path) -> list[str]:
    return [
        str(row)
        for one in collect_files([file]).values()
        for row in one.requirements({"ORT": "1.22.1", "empty": ""})
    ]


DEEP = 5000
"""Parentheses in each other, more than Python's stack holds."""
LINES = {
    "numpy": ["numpy"],
    "numpy >=1.21, <2  # two breaks": ["numpy<2,>=1.21"],
    "  numpy (>=1.21)": ["numpy>=1.21"],
    "numpy[a] ; python_version > '3'": ['numpy[a]; python_version > "3"'],
    "numpy \\\n  <2 \\\n  # two breaks": ["numpy<2"],
    "numpy==1.26.4 --hash=sha256:00 --config-settings x=y": ["numpy==1.26.4"],
    "numpy @ https://example.invalid/n.whl": ["numpy @ https://example.invalid/n.whl"],
    "numpy @ http://[/numpy-1.26.4-py3-none-any.whl": [
        "numpy @ http://[/numpy-1.26.4-py3-none-any.whl"
    ],
    "numpy @ https://example.invalid/numpy-1.26.4-py3-none-any.whl#sha256=00": ["numpy==1.26.4"],
    "t @ file:///w/t-2.7.1%2Bcu128-cp311-cp311-linux_x86_64.whl ; os_name == 'nt'": [
        't==2.7.1+cu128; os_name == "nt"'
    ],
    "onnxruntime==${ORT}": ["onnxruntime==1.22.1"],
    "numpy<2 ; sys_platform == 'win32'\nnumpy<3 ; sys_platform != 'win32'": [
        'numpy<2; sys_platform == "win32"',
        'numpy<3; sys_platform != "win32"',
    ],
    "NumPy>1\nnumpy<2": ["NumPy>1", "numpy<2"],
    "# numpy\n\n   # numpy\n": [],
    "--prefer-binary\n--no-index\n--require-hashes": [],
    "--pre\n  --find-links ./numpy\n-i https://example.invalid/simple\n--only-binary numpy": [],
    ".\n.[gpu]\n-e .\n-e ./numpy\n--editable=../numpy\n./numpy\n../numpy\n~/numpy\n/numpy": [],
    "libs/numpy\nC:\\\\numpy\\\\n.whl\n.\\\\numpy\nnumpy.whl\nnumpy.zip\nhttp://[/n.whl": [],
    "git+https://example.invalid/numpy@main\ngit+ssh://git@example.invalid/numpy": [],
    "git+https://example.invalid/numpy@main#egg=numpy": ["numpy"],
    "git+https://example.invalid/n#subdirectory=a&egg=numpy&c=d ; os_name == 'nt'": [
        'numpy; os_name == "nt"'
    ],
    "./numpy-1.26.4-py3-none-any.whl[b]": ["numpy==1.26.4"],
    "https://example.invalid/numpy#egg=-\nfile:///numpy": [],
    "numpy-1.26.4-py3-none-any.whl\nlibs/numpy-2.0.0-py3-none-any.whl": [
        "numpy==1.26.4",
        "numpy==2.0.0",
    ],
    "https://example.invalid/t-2.7.1%2Bcu128-cp311-cp311-linux_x86_64.whl ; os_name == 'nt'": [
        't==2.7.1+cu128; os_name == "nt"'
    ],
    "./wheels/a-1-py3-none-any.whl ; nothing of PEP 508\nnumpy": ["numpy"],
    f"./a-1-py3-none-any.whl ; {'(' * DEEP}os_name == 'x'{')' * DEEP}": [],
    "# numpy \\\nflask": ["flask"],  # a comment ends with its line
    "numpy ; os_name == 'nt' \\": ['numpy; os_name == "nt"'],
    "-r https://example.invalid/more.txt\n-c https://example.invalid/limits.txt": [],
}


@pytest.mark.parametrize("text", LINES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines(text: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(text, newline=end)

    assert read(tmp_path / "r.txt") == LINES[text]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_the_encodings_that_pip_reads(mark: bytes, encoding: str, tmp_path: Path) -> None:
    text = "# caf\u00e9 \u4e2d\r\nnumpy<2\r\n"
    (tmp_path / "r.txt").write_bytes(mark + text.encode(encoding))

    assert read(tmp_path / "r.txt") == ["numpy<2"]
    [file] = collect_files([tmp_path / "r.txt"]).values()
    assert file.text == text
    assert file.encoded(text) == file.content


@pytest.mark.parametrize(
    "line",
    [
        *("numpy ~~ what", "onnxruntime==${OTHER}", "numpy<2 and more", "${OTHER}"),
        pytest.param(f"numpy>={'1' * 5000}", id="endless"),
        pytest.param(f"numpy ; {'(' * DEEP}os_name == 'x'{')' * DEEP}", id="deep"),
    ],
)
def test_a_line_that_says_nothing_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(f"# why\n{line}  # so\n")

    with pytest.raises(Error) as failed:
        read(tmp_path / "r.txt")

    assert failed.value.code == "requirements-unreadable"
    assert failed.value.values["cause"] == f"2: {line}"


def test_files_that_are_named_are_found() -> None:
    text = (
        "-r a.txt\n  --requirement b.txt # c\n-rd.txt\n--requirement=e.txt\n# -r f.txt\n-c g.txt\n"
    )
    text += "--constraint=h.txt\n-ci.txt\n"

    assert files_named(text) == [
        *((f"{name}.txt", False) for name in "abde"),
        *((f"{name}.txt", True) for name in "ghi"),
    ]


def test_files_are_read_once_from_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "r.txt").write_text(
        "-c sub/limits.txt\n-r sub/more.txt\nnumpy\n-c sub/limits.txt\n-r r.txt\n"
    )
    (tmp_path / "sub/more.txt").write_text("-r ../r.txt\nflask\n-r both.txt\n")
    (tmp_path / "sub/limits.txt").write_text("numpy<2\n-r both.txt\n")
    (tmp_path / "sub/both.txt").write_text("protobuf<7\n")
    found = collect_files([tmp_path / "r.txt"])

    assert read(tmp_path / "r.txt") == ["numpy", "numpy<2", "protobuf<7", "flask"]
    assert [path.name for path, file in found.items() if file.constraint] == ["limits.txt"]


def test_a_file_that_names_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    file.write_text("# coding: utf-7\n+AG8-nnxruntime==1.22.1\n")

    with pytest.raises(Error, match="requirements-unreadable") as caught:
        read(file)
    assert caught.value.values["cause"] == cause("text-not-utf8")


def test_a_named_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("-r more.txt\n")

    with pytest.raises(Error, match="requirements-unreadable") as failed:
        read(tmp_path / "r.txt")

    assert failed.value.values["file"] == tmp_path / "more.txt"
    assert failed.value.values["cause"] == "No such file or directory"


def test_a_name_that_no_file_has_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("-r more\0.txt\n")

    with pytest.raises(Error, match="requirements-unreadable") as failed:
        read(tmp_path / "r.txt")

    assert "null byte" in str(failed.value.values["cause"])


def test_a_path_in_another_encoding_tells_nothing_and_the_next_line_counts(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_bytes(b"./caf\xe9/a-1-py3-none-any.whl\nnumpy\n")

    assert read(tmp_path / "r.txt") == ["numpy"]


def test_names_of_files_as_pip_splits_them() -> None:
    text = """-r "a b.txt"
-c 'c d.txt'
--requirement=e\\ f.txt  # comment
-rg.txt
"""
    assert files_named(text.replace("\\\\", "\\")) == [
        ("a b.txt", False),
        ("c d.txt", True),
        ("e f.txt", False),
        ("g.txt", False),
    ]


def test_a_file_is_found_beside_the_options_of_its_line() -> None:
    text = "--pre -r a.txt\n--find-links wheels -r b.txt\n"

    assert files_named(text) == [("a.txt", False), ("b.txt", False)]


def test_a_pip_of_the_current_folder_is_not_run(tmp_path: Path) -> None:
    """Importing pip_api asks `python -m pip` for its version: a checkout may have a `pip.py`."""
    (tmp_path / "pip.py").write_text("open('ran', 'w')")
    (tmp_path / "r.txt").write_text("./numpy-1.26.4-py3-none-any.whl\n")
    script = """
import sys
from pathlib import Path
from ortgpu_fix.requirements.files import collect_files
[file] = collect_files([Path(sys.argv[1])]).values()
print(*file.requirements({}))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, tmp_path / "r.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "numpy==1.26.4"
    assert not (tmp_path / "ran").exists()
    assert read(tmp_path / "r.txt") == ["numpy==1.26.4"]
    assert str(sys.modules["pip_api"].PIP_VERSION) == "0"
