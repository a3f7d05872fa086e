"""What the parser of the tables makes of each row."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.matrix.parse import parse, with_torch

WHEEL = {"python": "cp312", "size": 5, "sha256": "aa", "file": "a.whl"}


def tables() -> dict[str, Any]:
    """Return tables without rows."""
    return {
        "onnxruntime": {"date": "2026-11-20", "build": [], "gone": []},
        "nvidia": {"distribution": []},
        "toolkits": {"toolkit": []},
        "numpy": {"wheel": []},
        "msvc": {"wheel": []},
        "plugins": {"plugin": [], "wheel": []},
        "drivers": {
            key: []
            for key in ("floor", "toolkit", "branch", "first", "last", "forward", "data_center")
        },
        "distributions": {"owner": [], "shared": [], "feed": [], "tensorrt": []},
        "floors": {"floor": []},
        "limits": {"limit": [], "defect": []},
        "consumers": {"consumer": []},
        "applications": {"application": []},
    }


def parsed(name: str, **rows: Any) -> Matrix:
    whole = tables()
    return parse({**whole, name: {**whole[name], **rows}}, "sha256:x")


@pytest.mark.parametrize("name", sorted(tables()))
def test_a_table_that_is_not_there_is_named(name: str) -> None:
    whole = tables()
    del whole[name]

    with pytest.raises(Error) as caught:
        parse(whole, "sha256:x")

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", f"{name}.toml")


@pytest.mark.parametrize("row", [None, {}])
def test_a_row_that_does_not_fit_names_its_file(row: object) -> None:
    with pytest.raises(Error) as caught:
        parsed("nvidia", distribution=[row])

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", "nvidia.toml")


@pytest.mark.parametrize(
    "row",
    [
        *(None, "text", {}),
        {"version": "2.12.0", "platform": "linux_x86_64", "cuda": 13.0, "wheels": [WHEEL]},
    ],
)
def test_a_torch_row_that_does_not_fit_names_its_file(row: object) -> None:
    matrix = parse(tables(), "sha256:x")

    with pytest.raises(Error) as caught:
        with_torch(matrix, {"torch": [row], "variant": [], "companion": []})

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", "torch.toml")
