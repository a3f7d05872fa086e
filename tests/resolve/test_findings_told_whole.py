"""Each finding with its severity, its evidence and its values, as a text and the JSON show them."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.companions.contents import LINE
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.plan.reasons import Finding
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
WHOLE = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.28.0",
    "numpy 2.2.6",
    "flatbuffers 25.0",
)
FOLDER = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
PYTHON = {"version": "3.11.7"}


def found(*packages: Any, options: PlanOptions | None = None, **machine: Any) -> list[Finding]:
    """Return the findings of a machine, in their order."""
    rows = {
        name: machine.pop(f"{name}_row") for name in ("python", "gpus") if f"{name}_row" in machine
    }
    document = synthetic.document(*packages, **machine) | rows
    made = resolve(facts_json.from_json(document), options or PlanOptions(), MATRIX)
    return list(made.findings)


def one(code: str, rows: list[Finding]) -> Finding:
    [row] = [row for row in rows if row.code == code]
    return row


def shown(row: Finding) -> tuple[str, tuple[str, ...], dict[str, str]]:
    return row.severity, row.evidence, values_of(row)


@pytest.mark.parametrize(
    ("environment", "evidence"),
    [({}, ()), ({"PYTHONPATH": "/work:/lib"}, ("PYTHONPATH=/work:/lib",))],
)
def test_what_would_be_taken_in_the_place_of_the_environment(
    environment: dict[str, str], evidence: tuple[str, ...]
) -> None:
    python = PYTHON | {"shadow": "/work/onnxruntime.py", "command": "/usr/bin/python3"}
    moved = {"moved_from": "/old/venv"}
    rows = found(python_row=python | moved, environment=environment)

    assert shown(one("onnxruntime-shadowed", rows)) == (
        *("error", evidence, {"path": "/work/onnxruntime.py"}),
    )
    assert shown(one("command-elsewhere", rows)) == ("error", (), {"path": "/usr/bin/python3"})
    assert shown(one("environment-moved", rows)) == ("info", (), {"path": "/old/venv"})
    in_place = found(python_row=python, environment=environment)
    assert "environment-moved" not in {row.code for row in in_place}


@pytest.mark.parametrize(
    ("kind", "more", "codes"),
    [
        ("venv", {"externally_managed": True}, {"externally-managed"}),
        ("conda", {}, {"conda-environment"}),
        ("conda", {"managed_by": "pixi"}, {"pixi-environment"}),
        ("user", {}, {"user-environment"}),
        ("conda", {"read_only": True}, {"conda-environment", "environment-read-only"}),
        ("venv", {}, set()),
    ],
)
def test_why_an_apply_refuses_is_told_where_there_is_something_to_do(
    kind: str, more: dict[str, Any], codes: set[str]
) -> None:
    python = PYTHON | {"environment": kind} | more
    owners = {"externally-managed", "conda-environment", "pixi-environment", "user-environment"}
    owners |= {"environment-read-only"}
    rows = [row for row in found(python_row=python) if row.code in owners]

    assert {row.code for row in rows} == codes
    assert {row.severity for row in rows} <= {"warning"}
    assert not {row.code for row in found(*WHOLE, python_row=python)} & owners


@pytest.mark.parametrize("held", ["conda", "editable"])
def test_what_goes_and_only_the_user_can_remove_is_told(held: str) -> None:
    row = {"name": "onnxruntime", "version": "1.22.1", "held": held}
    numpy = {"name": "numpy", "version": "2.2.6", "held": held}
    code = f"installed-{held}"

    assert shown(one(code, found(row, numpy))) == (
        *("error", (), {"by": "onnxruntime 1.22.1", "name": "onnxruntime"}),
    )
    assert code not in {row.code for row in found(row | {"outside": True}, numpy)}
    assert code not in {row.code for row in found("onnxruntime 1.22.1")}
    old = {"name": "nvidia-cublas-cu12", "version": "12.1.0", "held": held}
    assert values_of(one(code, found(*WHOLE[:1], old)))["name"] == "nvidia-cublas-cu12"
    below = old | {"outside": True}  # hidden by what comes
    assert code not in {row.code for row in found(*WHOLE[:1], below)}


def test_libraries_that_are_missing_unfit_or_damaged_are_told_apart() -> None:
    damaged = {"name": "nvidia-cublas-cu12", "version": "12.8.4", "intact": False}
    rows = found("onnxruntime-gpu 1.26.0", damaged, *WHOLE[3:], onnxruntime=FOLDER)

    assert shown(one("library-gutted", rows)) == (
        "error",
        (),
        {"installed": "nvidia-cublas-cu12 12.8.4", "distribution": "nvidia-cublas-cu12 12.8.4"},
    )
    assert shown(one("library-missing", rows)) == (
        *("error", ("libcudnn.so.9",), {"names": "cudnn", "cuda": "12"}),
    )
    older = ("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.0.1", *WHOLE[2:])
    assert shown(one("library-unfit", found(*older, onnxruntime=FOLDER))) == (
        "error",
        (),
        {"installed": "nvidia-cublas-cu12 12.0.1", "distribution": "nvidia-cublas-cu12 12.8.4"},
    )


@pytest.mark.parametrize(
    ("folder", "unread"),
    [
        ({"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "14.0"}, True),
        ({"distribution": None, "version": None, "cuda": "14.0"}, True),
        ({"distribution": "onnxruntime-gpu", "version": "1.40.0", "intact": False}, False),
    ],
)
def test_a_release_of_which_nothing_can_be_read_is_told_where_it_is_whole(
    folder: dict[str, Any], *, unread: bool
) -> None:
    rows = found("onnxruntime-gpu 1.40.0", *WHOLE[3:], onnxruntime=folder)

    assert [shown(row) for row in rows if row.code == "release-unread"] == (
        [("error", (), {"version": folder["version"] or ""})] if unread else []
    )


def test_of_two_builds_of_one_number_the_installed_one_is_judged() -> None:
    provider = {"links": ["libcublas.so.13", "libcudnn.so.9"], "sass": ["8.0"], "ptx": []}
    folder = FOLDER | {"cuda": "13.0", "provider": provider}
    rows = found("onnxruntime-gpu 1.26.0", onnxruntime=folder, driver="12.8", gpus=("5.2",))

    assert str(dict(one("driver-too-old", rows).values)["build"]) == "onnxruntime-gpu 1.26.0"
    assert dict(one("no-gpu-code", rows).values)["carried"] == ("8.0",)


def test_who_asks_for_onnxruntime_is_named_where_nothing_provides_it() -> None:
    users = [
        {"name": name, "version": "1.0", "requires": ["onnxruntime"]} for name in ("zeta", "alpha")
    ]
    rows = found(*WHOLE, *users, onnxruntime=FOLDER, python_row=PYTHON | {"autoload": True})

    assert shown(one("libraries-not-loaded", rows)) == ("error", (), {})
    assert not {"libraries-not-loaded", "onnxruntime-not-provided"} & {
        row.code
        for packages in (
            *(WHOLE[1:], (*WHOLE, *users, "onnxruntime 1.22.0")),
            (*WHOLE, *users, {"name": "onnxruntime", "version": "1.26.0", "provided": True}),
        )
        for row in found(*packages, onnxruntime=FOLDER)
    }
    assert shown(one("onnxruntime-not-provided", rows)) == (
        *("warning", (), {"by": "alpha 1.0, zeta 1.0"}),
    )


def test_what_loads_the_libraries_is_told_where_nothing_does_by_itself() -> None:
    rows = found(*WHOLE, onnxruntime=FOLDER, python_row=PYTHON | {"autoload": False})
    by_hand = PlanOptions(autoload=False)

    assert shown(one("autoload-needs-line", rows)) == (*("warning", (), {"line": LINE}),)
    told = found(*WHOLE, onnxruntime=FOLDER, options=by_hand)
    assert shown(one("preload-line", told)) == ("warning", (), {"version": "1.26.0"})
    neither = found(
        *WHOLE, onnxruntime=FOLDER, options=by_hand, python_row=PYTHON | {"autoload": False}
    )
    assert [row.code for row in neither if "line" in row.code] == ["preload-line"]
    libraries = [{"name": name} for name in ("libcublas.so.12", "libcudnn.so.9")]
    system = (WHOLE[0], *WHOLE[3:])
    assert not {"autoload-needs-line", "preload-line"} & {
        row.code
        for options in (by_hand, PlanOptions())
        for row in found(
            *system,
            onnxruntime=FOLDER,
            libraries=libraries,
            options=options,
            python_row=PYTHON | {"autoload": False},
        )
    }


def test_a_project_whose_lock_has_the_release_is_told_only_of_a_change() -> None:
    def told(locked: str | None, *packages: Any) -> list[str]:
        python = PYTHON | {"project": "uv", "locked": locked}
        rows = found(*packages, onnxruntime=FOLDER, python_row=python)
        return [row.code for row in rows if row.code.startswith("managed-by")]

    assert told("1.26.0", *WHOLE) == []
    assert told("1.26.0", *WHOLE[:-1]) == ["managed-by-uv"]  # flatbuffers is to be installed
    assert told("1.23.0", *WHOLE) == ["managed-by-uv"]
    assert told(None, *WHOLE) == ["managed-by-uv"]


def test_what_an_upgrade_would_undo_is_told_where_there_is_something_to_undo() -> None:
    def told(locked: str | None, *packages: Any) -> list[str]:
        python = PYTHON | {"project": "uv-tool", "locked": locked}
        rows = found(*packages, onnxruntime=FOLDER, python_row=python)
        return [row.code for row in rows if row.code.startswith("managed-by")]

    applied = (*WHOLE, "ortgpu-fix-libraries 1.26.0")
    assert told(None, *WHOLE[:-1]) == ["managed-by-uv-tool"]  # there is something to install
    assert told(None, *applied) == ["managed-by-uv-tool"]
    assert told("1.26.0", *applied) == []
    assert told(None, *WHOLE) == []  # nothing of ours
