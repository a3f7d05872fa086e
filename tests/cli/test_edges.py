"""What one command writes, the next one takes: the edges of the program, each by its command."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from other_user import closed, with_others

from ortgpu_fix.__main__ import main


def test_facts_of_a_file_are_those_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were those of this machine, silently."""
    written = {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.31"},
        "driver": {"version": "525.85.12"},
        "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}],
        "python": {"version": "3.9.1"},
        "packages": [{"name": "numpy", "version": "1.22.4"}],
    }
    file = tmp_path / "host.json"
    file.write_text(json.dumps(written))

    assert main(["facts", "--facts", str(file)]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["driver"]["version"] == "525.85.12"
    assert found["gpus"][0]["compute_capability"] == "8.0"
    assert found["python"]["version"] == "3.9.1"
    assert [row["name"] for row in found["packages"]] == ["numpy"]


@with_others
@pytest.mark.parametrize("words", ["diff {} /nowhere", "--check --python {}"])
def test_a_place_that_this_user_may_not_look_into_is_named(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was an internal error: services and `sudo -u` meet it."""
    asked = str(tmp_path / "in" / "it")
    assert main(words.format(asked).split()) == 7  # what it imports may lie in a closed folder
    assert "Permission" not in capsys.readouterr().err

    with closed(tmp_path):
        assert main(words.format(asked).split()) == 7

    said = capsys.readouterr().err
    assert f"`{asked}` cannot be read: Permission denied\n" in said


@with_others
def test_a_closed_folder_is_not_called_empty(capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        with closed(Path(place, "app")) as app:
            assert main(["--python", str(app)]) == 7

    said = capsys.readouterr().err
    assert said.startswith(f"error: `{app}` cannot be read: Permission denied\n")


@pytest.mark.parametrize("words", ["verify {}", "plan --python {}"])
def test_a_name_that_no_file_can_have_is_told_as_that(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = str(tmp_path / ("a" * 300))
    assert main(words.format(asked, asked).split()) == 7

    said = capsys.readouterr().err
    assert f"`{asked}` cannot be read: File name too long\n" in said
