"""What a requirements file asks for, as pip reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.requirements.files import collect_files
from ortgpu_fix.requirements.lines import files_named


def read(file: Path) -> list[str]:
    return [
        str(row)
        for one in collect_files([file]).values()
        for row in one.requirements({"ORT": "1.22.1", "empty": ""})
    ]


LINES = {
    "numpy": ["numpy"],
    "numpy >=1.21, <2  # two breaks": ["numpy<2,>=1.21"],
    "  numpy (>=1.21)": ["numpy>=1.21"],
    "numpy[a] ; python_version > '3'": ['numpy[a]; python_version > "3"'],
    "numpy \\\n  <2 \\\n  # two breaks": ["numpy<2"],
    "numpy==1.26.4 --hash=sha256:00 --config-settings x=y": ["numpy==1.26.4"],
    "numpy @ https://example.invalid/n.whl": ["numpy @ https://example.invalid/n.whl"],
    "onnxruntime==${ORT}": ["onnxruntime==1.22.1"],
    "numpy<2 ; sys_platform == 'win32'\nnumpy<3 ; sys_platform != 'win32'": [
        'numpy<2; sys_platform == "win32"',
        'numpy<3; sys_platform != "win32"',
    ],
    "NumPy>1\nnumpy<2": ["NumPy>1", "numpy<2"],
    "# numpy\n\n   # numpy\n": [],
    "--pre\n  --find-links ./numpy\n-i https://example.invalid/simple\n--only-binary numpy": [],
    ".\n.[gpu]\n-e .\n-e ./numpy\n--editable=../numpy\n./numpy\n../numpy\n~/numpy\n/numpy": [],
    "libs/numpy\nC:\\\\numpy\\\\n.whl\n.\\\\numpy\nnumpy.whl\nnumpy.zip\nhttp://[/n.whl": [],
    "git+https://example.invalid/numpy@main\ngit+ssh://git@example.invalid/numpy": [],
    "git+https://example.invalid/numpy@main#egg=numpy": ["numpy"],
    "https://example.invalid/numpy#egg=-\nfile:///numpy": [],
    "numpy-1.26.4-py3-none-any.whl\nlibs/numpy-2.0.0-py3-none-any.whl": [
        "numpy==1.26.4",
        "numpy==2.0.0",
    ],
    "https://example.invalid/t-2.7.1%2Bcu128-cp311-cp311-linux_x86_64.whl ; os_name == 'nt'": [
        't==2.7.1+cu128; os_name == "nt"'
    ],
    "-r https://example.invalid/more.txt\n-c https://example.invalid/limits.txt": [],
}


@pytest.mark.parametrize("text", LINES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines(text: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(text, encoding, newline="\r\n")

    assert read(tmp_path / "r.txt") == LINES[text]


@pytest.mark.parametrize("line", ["numpy ~~ what", "onnxruntime==${OTHER}", "numpy<2 and more"])
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
    (tmp_path / "r.txt").write_text("-c sub/limits.txt\n-r sub/more.txt\nnumpy\n-r r.txt\n")
    (tmp_path / "sub/more.txt").write_text("-r ../r.txt\nflask\n-r both.txt\n")
    (tmp_path / "sub/limits.txt").write_text("numpy<2\n-r both.txt\n")
    (tmp_path / "sub/both.txt").write_text("protobuf<7\n")
    found = collect_files([tmp_path / "r.txt"])

    assert read(tmp_path / "r.txt") == ["numpy", "numpy<2", "protobuf<7", "flask"]
    assert [path.name for path, file in found.items() if file.constraint] == ["limits.txt"]


def test_a_named_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("-r more.txt\n")

    with pytest.raises(Error, match="requirements-unreadable") as failed:
        read(tmp_path / "r.txt")

    assert failed.value.values["file"] == tmp_path / "more.txt"
