"""Each finding with its severity, its evidence and its values, as a text and the JSON show them."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from told import values_of

import synthetic
from ortgpu_fix.companions.contents import LINE
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Owner
from ortgpu_fix.messages.catalog import LANGUAGES, load_texts
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


def test_the_worst_comes_first() -> None:
    rows = found(*WHOLE[:1], driver="13.0", gpus=None)
    severities = [row.severity for row in rows]

    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert set(severities) == {"error", "warning", "info"}


def test_a_wish_that_the_matrix_does_not_hold() -> None:
    rows = found(options=PlanOptions(onnxruntime=">=2"))

    assert shown(one("release-not-in-matrix", rows)) == (
        "error",
        (),
        {"wish": "--ort >=2", "newest": "1.31.0", "date": "2026-01-01"},
    )
    assert "release-not-in-matrix" not in {
        row.code for row in found(options=PlanOptions(onnxruntime=">=1.31"))
    }


@pytest.mark.parametrize(
    ("change", "severity"),
    [("unfinished", "error"), ("stale", "warning"), ("changed", "info"), ("kept", "info")],
)
def test_what_an_earlier_change_left_is_told_with_its_size(change: str, severity: str) -> None:
    python = PYTHON | {"change": change, "change_size": 2_500_000_000}
    row = one(f"change-{change}", found(python_row=python))

    assert (row.severity, values_of(row)) == (severity, {"size": "2.5 GB"})


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
        ("user", {"read_only": True}, {"user-environment"}),
        ("venv", {"read_only": True}, {"environment-read-only"}),
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


@pytest.mark.parametrize("held", ["conda", "pixi", "editable"])
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


@pytest.mark.parametrize(
    ("managed_by", "owner"),
    [(None, "operating-system"), *((owner, owner) for owner in get_args(Owner))],
)
def test_whose_a_python_is_that_an_apply_refuses(managed_by: str | None, owner: str) -> None:
    python = PYTHON | {"environment": "system", "externally_managed": True}
    row = one("externally-managed", found(python_row=python | {"managed_by": managed_by}))

    assert dict(row.values) == {"owner": cause(owner)}
    for language in LANGUAGES:
        texts = load_texts(language)
        whose = texts.table["causes"][owner]["text"][language]
        assert whose in texts.summary(row)
        assert whose in texts.error(Error("externally-managed", path="x", owner=cause(owner))).text


def test_a_folder_with_the_metadata_of_two_builds_names_both() -> None:
    folder = {"distribution": "onnxruntime", "version": "1.22.0"}
    rows = found(*WHOLE, "onnxruntime 1.22.0", onnxruntime=folder)

    assert shown(one("cpu-build-installed", rows)) == (
        *("error", ("onnxruntime/: onnxruntime 1.22.0",), {"distribution": "onnxruntime 1.22.0"}),
    )
    assert shown(one("folder-overwritten", rows)) == (
        "error",
        (),
        {"distribution": "onnxruntime-gpu 1.26.0", "by": "onnxruntime 1.22.0"},
    )
    unnamed = found(*WHOLE, onnxruntime=folder | {"version": None})
    assert dict(one("folder-overwritten", unnamed).values)["by"] == "onnxruntime"
    assert one("cpu-build-installed", found("onnxruntime 1.22.0", onnxruntime=None)).evidence == ()


@pytest.mark.parametrize(
    ("folder", "code", "evidence"),
    [
        (None, "folder-gutted", ()),
        (FOLDER | {"intact": False}, "folder-damaged", ("onnxruntime/: onnxruntime-gpu 1.26.0",)),
        (
            FOLDER | {"version": "1.25.0"},
            "folder-damaged",
            ("onnxruntime/: onnxruntime-gpu 1.25.0",),
        ),
        (
            {"distribution": None, "version": None, "intact": False},
            "folder-damaged",
            ("onnxruntime/: onnxruntime-gpu",),
        ),
        (FOLDER, None, ()),
        ({"distribution": None, "version": None}, None, ()),
    ],
)
def test_a_folder_that_is_not_what_was_installed(
    folder: dict[str, Any] | None, code: str | None, evidence: tuple[str, ...]
) -> None:
    rows = [row for row in found(*WHOLE, onnxruntime=folder) if row.code.startswith("folder-")]

    assert [(row.code, *shown(row)) for row in rows] == (
        [(code, "error", evidence, {"distribution": "onnxruntime-gpu 1.26.0"})] if code else []
    )


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


def test_all_that_is_missing_is_named_in_one_sentence() -> None:
    row = one("library-missing", found("onnxruntime-gpu 1.26.0", *WHOLE[3:], onnxruntime=FOLDER))

    assert row.evidence == ("libcublas.so.12", "libcudnn.so.9")
    assert values_of(row) == {"names": "cublas, cudnn", "cuda": "12"}


def test_requirements_that_are_missing_are_named() -> None:
    rows = found(*WHOLE[:3], onnxruntime=FOLDER)

    assert shown(one("requirement-missing", rows)) == (
        *("error", (), {"by": "onnxruntime-gpu", "requirements": "flatbuffers, numpy>=1.21.6"}),
    )


@pytest.mark.parametrize(
    ("numpy", "machine", "code", "release"),
    [
        ("2.2.6", {"driver": "11.8"}, "numpy-too-new", "1.18.0"),
        ("1.20.0", {}, "numpy-too-old", "1.26.0"),
    ],
)
def test_a_numpy_that_has_to_change_is_told_with_the_release(
    numpy: str, machine: dict[str, Any], code: str, release: str
) -> None:
    rows = found(f"numpy {numpy}", "flatbuffers 25.0", **machine)

    assert shown(one(code, rows)) == ("error", (), {"installed": numpy, "version": release})


def test_that_a_newer_release_would_work_is_told_of_one_that_is_kept() -> None:
    packages = ("onnxruntime-gpu 1.23.0", *WHOLE[1:])
    rows = found(*packages, onnxruntime=FOLDER | {"version": "1.23.0"})

    assert shown(one("newer-works", rows)) == ("info", (), {"version": "1.26.0", "kept": "1.23.0"})
    assert "newer-works" not in {row.code for row in found(*WHOLE, onnxruntime=FOLDER)}


def test_what_goes_with_what_is_removed_is_told() -> None:
    packages = ("onnxruntime-directml 1.22.0", "nvidia-cudnn-cu11 8.9.6", *WHOLE[3:])
    rows = found(*packages)

    assert shown(one("provider-lost", rows)) == (
        "warning",
        (),
        {"distribution": "onnxruntime-directml", "provider": "DmlExecutionProvider"},
    )
    assert shown(one("shared-folder", rows)) == ("error", (), {"rival": "nvidia-cudnn-cu11"})


def test_releases_that_nobody_knows_are_named_with_what_they_are_taken_for() -> None:
    rows = found("nvidia-cudnn-cu12 9.99.0", "nvidia-cublas-cu12 11.0", *WHOLE[3:])

    assert shown(one("unknown-release", rows)) == (
        "info",
        (
            "nvidia-cublas-cu12 11.0: like -",
            "nvidia-cudnn-cu12 9.99.0: like nvidia-cudnn-cu12 9.28.0",
        ),
        {
            "releases": "nvidia-cublas-cu12 11.0, nvidia-cudnn-cu12 9.99.0",
            "date": "2026-01-01",
        },
    )


@pytest.mark.parametrize(
    ("folder", "unread"),
    [
        ({"distribution": "onnxruntime-gpu", "version": "1.40.0", "cuda": "14.0"}, True),
        ({"distribution": None, "version": "1.40.0", "cuda": "14.0"}, True),
        ({"distribution": None, "version": None, "cuda": "14.0"}, True),
        ({"distribution": "onnxruntime", "version": "1.40.0"}, False),
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


def test_a_release_that_was_deleted_is_told_with_its_number() -> None:
    row = one("release-gone", found("onnxruntime-gpu 1.16.1", *WHOLE[1:]))

    assert shown(row) == ("info", (), {"version": "1.16.1"})


def test_why_the_installed_release_cannot_be_used_is_told_once_with_its_number() -> None:
    rows = found("onnxruntime-gpu 1.31.0", driver="12.2")

    assert str(dict(one("driver-too-old", rows).values)["build"]) == "onnxruntime-gpu 1.31.0"
    assert one("driver-too-old", rows).severity == "error"


def test_of_two_builds_of_one_number_the_installed_one_is_judged() -> None:
    provider = {"links": ["libcublas.so.13", "libcudnn.so.9"], "sass": ["8.0"], "ptx": []}
    folder = FOLDER | {"cuda": "13.0", "provider": provider}
    rows = found("onnxruntime-gpu 1.26.0", onnxruntime=folder, driver="12.8", gpus=("5.2",))

    assert str(dict(one("driver-too-old", rows).values)["build"]) == "onnxruntime-gpu 1.26.0"
    assert dict(one("no-gpu-code", rows).values)["carried"] == ("8.0",)


def test_gpus_that_are_not_known_and_those_that_are_ignored() -> None:
    rows: Any = [{"name": None, "compute_capability": None}]
    rows += [
        {"name": None, "compute_capability": "8.0"},
        {"name": "T4", "compute_capability": "7.5"},
    ]
    told = found(gpus_row=rows, options=PlanOptions(ignored_gpus=frozenset({"8.0"})))

    assert shown(one("gpu-unknown", told)) == ("warning", (), {"gpu": "?"})
    named = found(gpus_row=[{"name": "Odd GPU"}])
    assert dict(one("gpu-unknown", named).values) == {"gpu": "Odd GPU"}
    ignored = found(options=PlanOptions(ignored_gpus=frozenset({"8.0"})))
    assert dict(one("gpu-ignored", ignored).values) == {"gpu": "GPU 8.0", "capability": "8.0"}
    assert shown(one("gpu-ignored", told)) == ("info", (), {"gpu": "?", "capability": "8.0"})


def test_rules_about_gpus_are_told_where_no_error_of_the_machine_has_said_it() -> None:
    ignored = PlanOptions(ignored_gpus=frozenset({"8.0"}))
    rows = found(*WHOLE, onnxruntime=FOLDER, options=ignored)
    assert shown(one("no-gpu-left", rows)) == ("error", (), {"build": "onnxruntime-gpu 1.26.0"})

    without = [row.code for row in found(*WHOLE, onnxruntime=FOLDER, driver=None, gpus=())]
    assert (without.count("no-driver"), without.count("no-gpu")) == (1, 0)
    old = [row.code for row in found(*WHOLE, onnxruntime=FOLDER, driver=None, gpus=("5.2",))]
    assert (old.count("no-driver"), old.count("no-gpu-code")) == (1, 1)


def test_a_driver_library_of_another_release_is_told_with_both() -> None:
    rows = found(
        sources={"driver.library": "libcuda.so.580.1"},
        environment={"LD_LIBRARY_PATH": "/usr/local/cuda/compat"},
    )

    assert shown(one("forward-compatibility", rows)) == (
        "info",
        ("libcuda.so.580.1", "LD_LIBRARY_PATH=/usr/local/cuda/compat"),
        {"cuda": "12.2", "version": "?"},
    )


def test_where_nothing_names_a_driver_its_source_is_told() -> None:
    rows = found(driver=None, sources={"driver": "nvml: none"})

    assert shown(one("no-driver", rows)) == ("error", (), {"source": "nvml: none"})
    assert dict(one("no-driver", found(driver=None)).values) == {"source": ""}


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


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        ("uv", "managed-by-uv"),
        ("poetry", "managed-by-poetry"),
        ("uv-tool", "managed-by-uv-tool"),
        ("pipx", "managed-by-pipx"),
        ("pipenv", "managed-by-pipenv"),
        ("pixi", "managed-by-pixi"),
        ("conda", "managed-by-conda"),
        ("rye", "managed-by-another"),
    ],
)
def test_the_lines_for_a_project_begin_with_the_gpu_build(tool: str, code: str) -> None:
    row = one(code, found(python_row=PYTHON | {"project": tool}))
    values = values_of(row)

    assert (row.severity, values["tool"]) == ("warning", tool)
    lines = values["lines"].split(", ")
    assert lines[0] == "\"onnxruntime-gpu==1.26.0; python_version >= '3.10'\""
    assert sorted(lines[1:]) == ['"nvidia-cublas-cu12==12.8.4"', '"nvidia-cudnn-cu12==9.28.0"']
    pins = " ".join(lines).replace('"', "").replace("; python_version >= '3.10'", "")
    assert values["pins"] == pins
    assert values["table"].startswith('onnxruntime-gpu = "==1.26.0", nvidia-')


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
