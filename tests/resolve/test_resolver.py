"""The resolver on an invented matrix: one law or one rule a test."""

from __future__ import annotations

from typing import Any

import pytest
from told import gains, required, values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import ChangeState
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

MATRIX = synthetic.matrix()
WHOLE_12 = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.28.0",
    "numpy 2.2.6",
    "flatbuffers 25.0",
)


def plan(
    *packages: str | dict[str, Any], options: PlanOptions | None = None, **machine: Any
) -> Plan:
    return resolve(synthetic.facts(*packages, **machine), options or PlanOptions(), MATRIX)


def selected(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.selection}


def reasons(made: Plan, version: str) -> list[str]:
    return [why.code for row in made.rejected if row.version == version for why in row.reasons]


def codes(made: Plan) -> list[str]:
    return [finding.code for finding in made.findings]


def unlocks(made: Plan) -> list[tuple[str, dict[str, str], str]]:
    return [(row.change.code, values_of(row.change), gains(row)) for row in made.unlock]


def test_the_cpu_build_is_replaced_by_the_newest_that_the_driver_runs() -> None:
    made = plan("onnxruntime 1.22.1", "numpy 2.2.6")

    assert made.verdict == "fixable"
    assert made.cuda == "12"
    assert selected(made) == {
        "nvidia-cublas-cu12": "12.8.4",
        "nvidia-cudnn-cu12": "9.28.0",
        "onnxruntime-gpu": "1.26.0",
    }
    assert made.uninstall == ("onnxruntime",)
    assert [wheel.name for wheel in made.install] == sorted(selected(made))
    assert made.requires == ("flatbuffers",)
    assert reasons(made, "1.31.0") == ["driver-too-old"]
    assert "cpu-build-installed" in codes(made)


def test_what_works_is_kept_and_healthy() -> None:
    made = plan(*WHOLE_12, driver="13.0")

    assert made.verdict == "healthy"
    assert made.install == ()
    assert codes(made) == ["newer-works"]


@pytest.mark.parametrize(
    ("change", "severity", "verdict"),
    [("stale", "warning", "healthy"), ("unfinished", "error", "fixable")],
)
def test_what_an_earlier_run_left_is_said(change: ChangeState, severity: str, verdict: str) -> None:
    found = synthetic.facts(*WHOLE_12, driver="13.0")
    python = found.python._replace(change=change, change_size=2_600_000_000)

    made = resolve(found._replace(python=python), PlanOptions(), MATRIX)

    [finding] = [row for row in made.findings if row.code == f"change-{change}"]
    assert (finding.severity, made.verdict) == (severity, verdict)
    assert values_of(finding) == {"size": "2.6 GB"}
    assert load_texts("en").remedy(finding)


@pytest.mark.parametrize(("latest", "verdict"), [(False, "healthy"), (True, "fixable")])
def test_a_check_looks_at_the_installed_release_before_newer_ones(
    *, latest: bool, verdict: str
) -> None:
    facts = synthetic.facts(*WHOLE_12, "protobuf 5.0", driver="13.0")
    options = PlanOptions(latest=latest)

    assert resolve_for_check(facts, options, MATRIX).verdict == verdict
    assert resolve(facts, options, MATRIX).verdict == verdict


def test_a_kept_release_gets_only_what_it_lacks() -> None:
    made = plan("onnxruntime-gpu 1.23.0", "nvidia-cublas-cu12 12.9.1", "numpy 2.0", "flatbuffers 2")

    assert [(wheel.name, wheel.version) for wheel in made.install] == [
        ("nvidia-cudnn-cu12", "9.28.0")
    ]
    assert selected(made)["nvidia-cublas-cu12"] == "12.9.1"


@pytest.mark.parametrize(
    ("beside", "kept"),
    [
        ([], False),
        (["onnxruntime-gpu 1.26.0"], True),
        (["onnxruntime-gpu 1.23.0"], True),
        (["transformer 4.5"], True),
        ([{"name": "x", "version": "1", "requires": ["nvidia-cublas-cu12==12.2.5"]}], True),
        ([{"name": "x", "version": "1", "requires": ["nvidia-cublas-cu12>=12.2"]}], False),
    ],
)
def test_a_cublas_older_than_the_toolkit_of_a_new_build(
    beside: list[str | dict[str, Any]], *, kept: bool
) -> None:
    made = plan("nvidia-cublas-cu12 12.2.5", "numpy 2.0", *beside, gpus=("7.5",))

    assert (selected(made)["nvidia-cublas-cu12"] == "12.2.5") == kept


def test_a_damaged_library_is_installed_again() -> None:
    gutted = {"name": "nvidia-cudnn-cu12", "version": "9.28.0", "intact": False}

    made = plan(*[row for row in WHOLE_12 if "cudnn" not in row], gutted)

    assert [wheel.name for wheel in made.install] == ["nvidia-cudnn-cu12"]
    assert "library-gutted" in codes(made)


@pytest.mark.parametrize(
    ("folder", "finding"),
    [
        (None, "folder-gutted"),
        ({"distribution": "onnxruntime", "version": "1.27.0"}, "folder-overwritten"),
        (
            {"distribution": "onnxruntime-gpu", "version": "1.26.0", "intact": False},
            "folder-damaged",
        ),
        ({"distribution": "onnxruntime-gpu", "version": "1.23.0"}, "folder-damaged"),
    ],
)
def test_a_folder_that_is_not_the_gpu_build_is_installed_again(
    folder: dict[str, Any] | None, finding: str
) -> None:
    made = plan(*WHOLE_12, onnxruntime=folder)

    assert [wheel.name for wheel in made.install] == ["onnxruntime-gpu"]
    assert finding in codes(made)


def test_libraries_of_the_system_make_an_environment_healthy() -> None:
    libraries = [
        {"name": "libcublas.so.12", "path": "/usr/lib/libcublas.so.12", "version": "12.4.5"},
        {"name": "libcudnn.so.9", "path": "/usr/lib/libcudnn.so.9"},
    ]

    made = plan("onnxruntime-gpu 1.26.0", "numpy 2.2", "flatbuffers 2", libraries=libraries)

    assert made.verdict == "healthy"
    assert selected(made) == {"onnxruntime-gpu": "1.26.0"}
    assert codes(made) == ["system-library", "system-library"]


def test_a_plan_that_installs_brings_all_its_wheels() -> None:
    libraries = [{"name": "libcublas.so.12", "version": "12.4.5"}]

    made = plan("onnxruntime-gpu 1.26.0", "numpy 2.2", "flatbuffers 2", libraries=libraries)

    assert [wheel.name for wheel in made.install] == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12"]


def test_a_system_library_older_than_any_wheel_is_believed_by_its_name() -> None:
    libraries = [
        {"name": "libcublas.so.11", "version": "11.9.2"},
        {"name": "libcudnn.so.8", "version": "8.3.2"},
    ]

    made = plan(
        "onnxruntime-gpu 1.18.0", "numpy 1.26", "flatbuffers 2", libraries=libraries, driver="11.7"
    )

    assert made.verdict == "healthy"


def test_an_installed_cudnn_without_code_for_the_gpu_is_replaced() -> None:
    made = plan(*WHOLE_12, gpus=("7.0",))

    assert [(wheel.name, wheel.version) for wheel in made.install] == [
        ("nvidia-cudnn-cu12", "9.10.2")
    ]
    assert "library-unfit" in codes(made)


def test_ptx_needs_a_driver_as_new_as_its_toolkit() -> None:
    made = plan(driver="12.2", gpus=("12.0",))

    assert "ptx-needs-driver" in reasons(made, "1.26.0")
    assert ("newer-driver", {"floor": "570.26", "cuda": "12"}, "onnxruntime-gpu 1.26.0") in unlocks(
        made
    )


def test_every_gpu_must_be_able_to_run_it_unless_ignored() -> None:
    both = plan(driver="13.0", gpus=("7.0", "12.0"))
    one = plan(
        driver="13.0", gpus=("7.0", "12.0"), options=PlanOptions(ignored_gpus=frozenset({"7.0"}))
    )

    assert selected(both)["onnxruntime-gpu"] == "1.26.0"
    assert ("ignore-gpu", {"gpu": "7.0"}, "onnxruntime-gpu 1.31.0") in unlocks(both)
    assert selected(one)["onnxruntime-gpu"] == "1.31.0"
    assert "gpu-ignored" in codes(one)


def test_ignoring_every_gpu_leaves_none() -> None:
    made = plan(options=PlanOptions(ignored_gpus=frozenset({"8.0"})))

    assert made.verdict == "impossible"
    assert "no-gpu-left" in reasons(made, "1.26.0")


def test_cuda_11_moves_numpy_below_2() -> None:
    made = plan("onnxruntime 1.22.1", "numpy 2.2.6", driver="11.4", python="3.10.13")

    assert selected(made) == {
        "numpy": "1.26.4",
        "nvidia-cublas-cu11": "11.11.3",
        "nvidia-cudnn-cu11": "8.9.6",
        "onnxruntime-gpu": "1.18.0",
    }
    assert "numpy-too-new" in codes(made)


def test_pins_behind_an_extra_that_is_asked_for_count() -> None:
    torch = {"name": "torch", "version": "2.11", "requires": ["cuda-toolkit[cublas]==12.2.2"]}
    toolkit = {
        "name": "cuda-toolkit",
        "version": "12.2.2",
        "requires": ["nvidia-cublas-cu12==12.9.1; extra == 'cublas'", "other==1; extra == 'x'"],
    }

    made = plan(torch, toolkit, driver="12.8")

    assert selected(made)["nvidia-cublas-cu12"] == "12.9.1"


def test_a_folder_that_something_else_needs_is_not_taken() -> None:
    torch = {"name": "torch", "version": "2.11", "requires": ["nvidia-cudnn-cu13==9.12.0"]}

    made = plan(torch, "nvidia-cudnn-cu13 9.12.0", driver="13.0", gpus=("7.0",))

    assert made.verdict == "impossible"
    assert "folder-owned" in reasons(made, "1.26.0")


def test_neither_is_one_that_the_user_s_file_needs_and_nobody_has_installed_yet() -> None:
    asked = PlanOptions(requirements=required("nvidia-cudnn-cu12"))
    made = plan(options=asked, driver="13.0")

    assert made.release == "1.26.0"
    assert reasons(made, "1.31.0") == ["folder-owned"]
    changed = {"requirement": "nvidia-cudnn-cu12", "file": "r.txt"}
    assert unlocks(made) == [("other-requirement", changed, "onnxruntime-gpu 1.31.0")]
    # What a package requires and has not got is not owned by anybody.
    lacking = {"name": "lacking", "version": "1", "requires": ["nvidia-cudnn-cu12"]}
    assert reasons(plan(lacking, driver="13.0"), "1.31.0") == []
    assert reasons(plan("transformer 4.6", driver="13.0"), "1.31.0") == []


def test_what_dependents_require_of_onnxruntime_is_respected() -> None:
    fastembed = {"name": "fastembed", "version": "0.5", "requires": ["onnxruntime<1.24"]}

    made = plan(fastembed, driver="13.0")

    assert selected(made)["onnxruntime-gpu"] == "1.23.0"
    assert "demand-conflict" in reasons(made, "1.26.0")


def test_dependents_that_leave_no_version_together_are_both_named() -> None:
    old = {"name": "old", "version": "1", "requires": ["flatbuffers<24"]}
    new = {"name": "new", "version": "1", "requires": ["flatbuffers>=25"]}

    made = plan(old, new)

    assert made.verdict == "impossible"
    assert reasons(made, "1.26.0") == ["requirement-conflict", "requirement-conflict"]


def test_wishes_are_rules() -> None:
    made = plan(driver="13.0", options=PlanOptions(onnxruntime="<1.26", cuda="12"))

    assert selected(made)["onnxruntime-gpu"] == "1.23.0"
    assert reasons(made, "1.31.0") == ["not-wished", "not-wished"]


@pytest.mark.parametrize(
    ("machine", "code"),
    [
        ({"driver": None, "gpus": ()}, "no-driver"),
        ({"gpus": ()}, "no-gpu"),
        ({"driver": "10.1"}, "driver-too-old"),
        ({"python": "3.15.0"}, "no-wheel-python"),
    ],
)
def test_impossible_machines_say_why(machine: dict[str, Any], code: str) -> None:
    made = plan(**machine)

    assert made.verdict == "impossible"
    assert all(code in [why.code for why in row.reasons] for row in made.rejected)
    assert made.selection == ()
    assert made.unlock


@pytest.mark.parametrize(
    ("platform", "code"),
    [
        ({"libc": "musl 1.2.4"}, "musl"),
        ({"libc": "glibc 2.17"}, "glibc-too-old"),
        ({"machine": "aarch64", "libc": "glibc 2.39"}, "no-wheel-platform"),
        ({"system": "windows", "libc": None}, "no-wheel-platform"),
    ],
)
def test_platforms_without_a_wheel_say_so(platform: dict[str, Any], code: str) -> None:
    base = {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"}

    made = plan(platform={**base, **platform})

    assert code in reasons(made, "1.26.0")


def test_jetson_is_told_apart() -> None:
    made = plan(
        driver="13.0",
        gpus=("8.7",),
        platform={"system": "linux", "machine": "aarch64", "jetson": "# R36", "libc": "glibc 2.35"},
    )

    assert "jetson" in reasons(made, "1.31.0")


def changed(key: str, value: Any, **machine: Any) -> Plan:
    """Plan with one key of a table of the document changed: `python.version`."""
    document = synthetic.document(**machine)
    table, name = key.split(".")
    document[table][name] = value
    return resolve(facts_json.from_json(document), PlanOptions(), MATRIX)


def test_pypy_has_no_wheels() -> None:
    made = changed("python.implementation", "pypy")

    assert "not-cpython" in reasons(made, "1.26.0")
    assert ("other-python", {"python": "CPython 3.11"}, "onnxruntime-gpu 1.26.0") in unlocks(made)


def test_free_threaded_python_takes_its_own_wheel() -> None:
    made = changed("python.free_threaded", value=True, driver="13.0", python="3.13.0")

    assert made.install[-1].file.startswith("onnxruntime_gpu-1.31.0-cp313t")


@pytest.mark.parametrize(
    ("tool", "line"),
    [("uv", "`ortgpu-fix --apply --write`"), ("hatch", "no dependency installs plain onnxruntime")],
)
def test_a_project_whose_tool_would_undo_the_fix_is_told_what_to_write(
    tool: str, line: str
) -> None:
    made = changed("python.project", tool)
    [finding] = [finding for finding in made.findings if finding.code.startswith("managed-by-")]
    remedy = load_texts("en").remedy(finding)

    assert line in remedy
    pins = "\"onnxruntime-gpu==1.26.0; python_version >= '3.10'\", "
    pins += '"nvidia-cublas-cu12==12.8.4"'
    assert (pins in remedy) is (tool == "hatch")  # a command writes
    assert load_texts("zh").remedy(finding)


LIBRARIES = {row.name: row.version for row in plan("onnxruntime 1.22.1", "numpy 2.2.6").companions}[
    "ortgpu-fix-libraries"
]


def in_venv(
    *packages: str | dict[str, Any], options: PlanOptions | None = None, **python: Any
) -> Plan:
    """Plan for an environment of which is known whether its `.pth` files are read."""
    document = synthetic.document(*packages)
    document["python"] |= {"autoload": True, **python}
    return resolve(facts_json.from_json(document), options or PlanOptions(), MATRIX)


def test_wheels_that_nothing_loads_are_a_problem() -> None:
    made = in_venv(*WHOLE_12)

    assert made.verdict == "fixable"
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries"]
    assert codes(made) == ["libraries-not-loaded"]


SYSTEM_12 = tuple(
    {"name": name, "path": f"/usr/local/cuda/lib64/{name}", "version": version}
    for name, version in (("libcublas.so.12", "12.8.4"), ("libcudnn.so.9", "9.28.0"))
)


def on_system(
    *more: str | dict[str, Any], libraries: Any = SYSTEM_12, lacking: str = "?", **environment: str
) -> Plan:
    """Plan for the wheels but one, where the loader finds `libraries` outside of them."""
    wheels = [row for row in WHOLE_12 if lacking not in row]
    document = synthetic.document(*wheels, *more, libraries=list(libraries))
    document["python"] |= {"autoload": True}
    document["environment"] = environment
    return resolve(facts_json.from_json(document), PlanOptions(), MATRIX)


def test_wheels_that_nothing_loads_are_none_where_the_system_has_all_libraries() -> None:
    """Seen on a machine with an H100: CUDA and cuDNN of the system served an unchanged program."""
    made = on_system()

    assert (made.verdict, made.companions) == ("healthy", ())
    assert codes(made) == ["system-library", "system-library"]


@pytest.mark.parametrize("lacking", [0, 1])
def test_they_are_where_the_system_has_only_some(lacking: int) -> None:
    made = on_system(libraries=[SYSTEM_12[1 - lacking]])

    assert made.verdict == "fixable"
    assert codes(made) == ["libraries-not-loaded"]


@pytest.mark.parametrize(
    ("folders", "verdict"),
    [
        ("/usr/local/nvidia/lib64", "healthy"),
        ("/usr/local/cuda/lib", "healthy"),
        ("/x:/usr/local/cuda/lib64", "fixable"),
    ],
)
def test_what_only_this_shell_finds_does_not_count(folders: str, verdict: str) -> None:
    assert on_system(LD_LIBRARY_PATH=folders).verdict == verdict


def test_beside_torch_its_wheels_are_loaded_all_the_same() -> None:
    """In one process the cuDNN of the system and that of the wheel would meet."""
    made = on_system("torch 2.10.0+cu128")

    assert "libraries-not-loaded" in codes(made)
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries"]


def test_what_the_companion_loads_is_not_told_of_the_system() -> None:
    loaded = on_system(f"ortgpu-fix-libraries {LIBRARIES}")
    of_another = on_system("ortgpu-fix-libraries 1.26.0+set0")

    assert (loaded.verdict, codes(loaded)) == ("healthy", [])
    assert [row.version for row in of_another.companions] == [LIBRARIES]


@pytest.mark.parametrize(
    ("package", "comes"),
    [
        ("onnxruntime 1.26.0", True),  # the CPU build of the same number is no stand-in
        ({"name": "onnxruntime", "version": "1.26.0", "provided": True}, False),
        ({"name": "onnxruntime", "version": "1.23.0", "provided": True}, True),
    ],
)
def test_the_stand_in_comes_where_it_is_not(package: Any, *, comes: bool) -> None:
    made = plan(package)

    assert made.release == "1.26.0"
    assert ("onnxruntime" in {row.name for row in made.companions}) is comes


def test_the_companion_of_another_set_is_replaced() -> None:
    made = in_venv(*WHOLE_12, "ortgpu-fix-libraries 1.26.0+set0")

    assert [row.version for row in made.companions] == [LIBRARIES]


@pytest.mark.parametrize(("more", "told"), [((), True), (("ZLIBWAPI.dll",), False)])
def test_a_cudnn_8_of_the_system_needs_zlibwapi(more: tuple[str, ...], *, told: bool) -> None:
    tables = synthetic.windows_tables()
    needs = {each["library"] for row in tables["onnxruntime"]["build"] for each in row["needs"]}
    installed = ("onnxruntime-gpu 1.18.0", "numpy 1.26.4", "flatbuffers 2")
    libraries = [{"name": name} for name in (*sorted(needs), *more)]
    document = synthetic.document(*installed, driver="11.8", libraries=libraries)
    document["platform"] = {"system": "windows", "machine": "x86_64", "libc": None}

    made = resolve(facts_json.from_json(document), PlanOptions(), matrix_parse.parse(tables, ""))

    assert not any(name.startswith("nvidia-cudnn") for name in selected(made))
    assert ("zlibwapi-needed" in codes(made)) is told


def test_gpus_that_are_not_known_are_a_warning() -> None:
    made = plan(gpus=None)

    assert made.verdict == "fixable"
    assert "gpus-unknown" in codes(made)


def test_a_release_that_the_matrix_does_not_know_is_said() -> None:
    gone = plan("onnxruntime-gpu 1.16.1")
    newer = plan("onnxruntime-gpu 1.99.0")
    never = plan("onnxruntime-gpu 1.17.9")

    assert "release-gone" in codes(gone)
    assert all("unknown-release" in codes(made) for made in (gone, newer, never))


def test_a_component_without_a_wheel_for_this_system_is_named() -> None:
    tables = synthetic.tables()
    for row in tables["nvidia"]["distribution"]:
        if row["name"] == "nvidia-cublas-cu12":
            row["releases"] = []

    made = resolve(synthetic.facts(), PlanOptions(), matrix_parse.parse(tables, ""))

    assert "library-no-wheel" in reasons(made, "1.26.0")


def test_a_component_for_a_newer_glibc_is_refused() -> None:
    tables = synthetic.tables()
    for row in tables["nvidia"]["distribution"]:
        for release in row["releases"]:
            release["glibc"] = "2.99"

    made = resolve(synthetic.facts(), PlanOptions(), matrix_parse.parse(tables, ""))

    assert "library-glibc" in reasons(made, "1.26.0")


def test_a_line_of_the_users_file_that_is_none_is_passed_over() -> None:
    made = plan(
        options=PlanOptions(
            requirements=required("not one!", "onnxruntime<1.24; python_version < '3'")
        )
    )

    assert selected(made)["onnxruntime-gpu"] == "1.26.0"


def test_a_requirement_of_the_build_for_another_system_does_not_count() -> None:
    tables = synthetic.tables()
    for row in tables["onnxruntime"]["build"]:
        row["requires"] += ["pyreadline3; sys_platform == 'win32'"]

    made = resolve(synthetic.facts(), PlanOptions(), matrix_parse.parse(tables, ""))

    assert made.requires == ("flatbuffers", "numpy>=1.21.6")


def evidence(made: Plan, code: str) -> tuple[dict[str, str], tuple[str, ...]]:
    [found] = [row for row in made.findings if row.code == code]
    return values_of(found), found.evidence


def test_what_lies_in_the_folder_is_told_beside_what_pip_knows() -> None:
    cpu = {"distribution": "onnxruntime", "version": "1.22.1"}
    over = plan(*WHOLE_12, "onnxruntime 1.22.1", onnxruntime=cpu)

    installed = {"distribution": "onnxruntime 1.22.1"}
    assert evidence(over, "cpu-build-installed") == (
        installed,
        ("onnxruntime/: onnxruntime 1.22.1",),
    )
    assert evidence(over, "folder-overwritten")[0] == {
        "distribution": "onnxruntime-gpu 1.26.0",
        "by": "onnxruntime 1.22.1",
    }
    unknown = plan("onnxruntime-gpu 1.16.1", onnxruntime=cpu)  # which pip lists alone
    assert "folder-overwritten" in codes(unknown)
    assert "release-unread" not in codes(unknown)
    nothing = plan("onnxruntime 1.22.1", onnxruntime=None)
    assert evidence(nothing, "cpu-build-installed") == (installed, ())


def test_of_each_toolkit_its_own_wheel_is_judged() -> None:
    """The cuBLAS of the build's own toolkit has no code for this GPU, that of a newer one has."""
    tables = synthetic.tables()
    [cublas] = (
        row for row in tables["nvidia"]["distribution"] if row["name"].endswith("blas-cu12")
    )
    cublas["code"] = [
        {"platform": synthetic.LINUX, "first": first, "last": last, "sass": list(sass), "ptx": []}
        for first, last, sass in (("12.2.5", "12.2.5", ("9.0",)), ("12.8.4", "12.9.1", ("8.0",)))
    ]
    matrix = matrix_parse.parse(tables, "", {})
    options = PlanOptions(onnxruntime="==1.23.0")

    made = resolve(synthetic.facts(), options, matrix)

    assert selected(made)["nvidia-cublas-cu12"] == "12.8.4"
    assert (
        selected(resolve(synthetic.facts(gpus=("9.0",)), options, matrix))["nvidia-cublas-cu12"]
        == "12.2.5"
    )


def test_a_requirement_that_lost_its_files_is_installed_again() -> None:
    """`import onnxruntime` failed beside "Healthy": numpy had its dist-info and nothing else."""
    gutted = {"name": "numpy", "version": "2.2.6", "intact": False}

    made = plan(*[row for row in WHOLE_12 if "numpy" not in row], gutted)

    assert (made.verdict, made.requires) == ("fixable", ("numpy==2.2.6",))
    assert codes(made) == ["library-gutted", "libraries-not-loaded"]


def test_requirements_that_exclude_each_other_are_met_as_far_as_they_go() -> None:
    apps = [
        {"name": name, "version": "1", "requires": [f"flatbuffers{wanted}"]}
        for name, wanted in (("one", "<20"), ("two", ">=25"))
    ]

    made = plan("numpy 2.2.6", *apps, options=PlanOptions(conflicts=True))

    assert made.requires == ("flatbuffers>=25",)


def test_applications_that_do_not_use_the_gpu_are_said_before_the_download() -> None:
    made = plan("onnxruntime 1.22.1", "stays 0.6", "alone 1.5", "told 2.1")

    said = [code for code in codes(made) if code.startswith("application-")]
    assert sorted(said) == [
        *("application-never", "application-own-runtime", "application-when-told")
    ]
