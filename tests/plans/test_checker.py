"""Plans for random machines on the real matrix, judged by a checker that knows no resolver."""

from __future__ import annotations

import copy
import functools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from checker import check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version
from tables import tables

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.report.plan import plan_json
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

TABLES = tables()
MATRIX = load_matrix()
TEXTS = load_texts("en")
Document = dict[str, Any]

BRANCHES = [row["branch"] for row in TABLES["drivers"]["branch"]]
CUDA = [row["cuda"] for row in TABLES["drivers"]["branch"]]
CAPABILITIES = sorted(
    {
        target.rstrip("af")
        for row in (
            *TABLES["onnxruntime"]["build"],
            *(code for kind in TABLES["nvidia"]["distribution"] for code in kind.get("code", ())),
        )
        for target in row["sass"]
    }
    | {"8.7", "10.3"}
)
GPU_RELEASES = sorted({row["version"] for row in TABLES["onnxruntime"]["build"]}, key=Version)
TORCH = {
    row["version"]: row.get("requires", [])
    for row in TABLES["torch"]["torch"]
    if row["platform"] == "linux_x86_64"
    and row["version"] in {"1.13.1", "2.4.1", "2.5.1", "2.7.1", "2.10.0", "2.11.0"}
}
ORDINARY = {
    "flatbuffers": ["25.2.10"],
    "packaging": ["25.0"],
    "coloredlogs": ["15.0.1"],
    "sympy": ["1.14.0"],
    "numpy": ["1.21.6", "1.24.4", "1.26.4", "2.0.2", "2.2.6", "junk"],
    "protobuf": ["3.20.3", "4.25.8", "6.31.1"],
}
DEPENDENTS = [
    {"name": "fastembed", "version": "0.9.1", "requires": ["onnxruntime>=1.17.0,!=1.20.0"]},
    {"name": "old-app", "version": "1.0", "requires": ["onnxruntime<1.20", "protobuf<4"]},
    {"name": "gpu-app", "version": "2.0", "requires": ["onnxruntime-gpu>=1.16,<1.27"]},
    {"name": "pandas", "version": "3.0", "requires": ["numpy>=2; python_version >= '3.9'"]},
    {"name": "scipy", "version": "1.9", "requires": ["numpy<1.26.0,>=1.18.5"]},
    {"name": "odd", "version": "not a version", "requires": ["this is no requirement"]},
    {"name": "nvidia-cusolver-cu12", "version": "11.4.5.107", "requires": ["nvidia-cublas-cu12"]},
]

TENSORFLOW = "nvidia-cublas-cu12==12.5.3.2; extra == 'and-cuda'"
USERS = [
    {"name": "ctranslate2", "version": "4.4.0"},  # for cuDNN 8
    {"name": "ctranslate2", "version": "4.6.2"},
    {"name": "ctranslate2", "version": "99.0"},  # which nobody has read
    {"name": "tensorflow", "version": "2.19.1", "requires": ["numpy<2.2.0", TENSORFLOW]},
    {"name": "paddlepaddle-gpu", "version": "2.6.2"},
    {"name": "onnxruntime-genai-cuda", "version": "0.18.0", "requires": ["onnxruntime-gpu"]},
    {"name": "cupy-cuda12x", "version": "13.6.0", "requires": ["numpy<2.6,>=1.22"]},
    {"name": "something-cu13", "version": "1.0"},
    {"name": "jax-cuda12-plugin", "version": "0.6.2", "requires": ["nvidia-cudnn-cu12<10.0,>=9.8"]},
    {"name": "own", "version": "1", "requires": ["nvidia-cudnn-cu13; extra == 'gpu'"]},
]
CUDNNS = [
    {"name": "nvidia-cudnn-cu12", "version": "9.10.2.21"},
    {"name": "nvidia-cudnn-cu13", "version": "9.12.0.46"},
]


def one_in(draw: st.DrawFn, count: int) -> bool:
    """Tell yes about once in `count`; hypothesis tries the ends of a range far more often."""
    return draw(st.integers(0, count - 1)) == count // 2


def toolkit_package(release: str) -> Document:
    """Return the distribution `cuda-toolkit`, through which torch 2.11 pins its wheels."""
    rows = TABLES["toolkits"]["toolkit"]
    parts = next(row["components"] for row in rows if row["version"] == release)
    extras = {"cuda-runtime": "cudart", "cuda-nvrtc": "nvrtc"}
    requires = []
    for name, version in sorted(parts.items()):
        stem = name.removeprefix("nvidia-").removesuffix("-cu12")
        requires.append(f"{name}=={version}; extra == '{extras.get(stem, stem)}'")
    return {"name": "cuda-toolkit", "version": release, "requires": requires}


@st.composite
def torches(draw: st.DrawFn) -> list[Document]:
    """Draw a torch with its real pins, its wheels there or some of them gone or moved."""
    release = draw(st.sampled_from(sorted(TORCH)))
    requires = TORCH[release]
    rows: list[Document] = [{"name": "torch", "version": release, "requires": requires}]
    if any(line.startswith("cuda-toolkit") for line in requires):
        rows.append(toolkit_package("13.0.2"))
    pins = [
        line.partition(";")[0].translate({ord(each): None for each in " ()"}) for line in requires
    ]
    for name, version in (pin.split("==") for pin in pins if pin.startswith("nvidia-")):
        if not one_in(draw, 5):
            rows.append({"name": name, "version": version})
    return rows


@st.composite
def wheels(draw: st.DrawFn) -> list[Document]:
    """Draw some nvidia wheels of any release, some of them gutted."""
    kinds = {row["name"]: row["releases"] for row in TABLES["nvidia"]["distribution"]}
    names = draw(st.lists(st.sampled_from(sorted(kinds)), unique=True, max_size=9))
    rows: list[Document] = []
    for name in names:
        versions = sorted({row["version"] for row in kinds[name]}, key=Version)
        row: Document = {"name": name, "version": draw(st.sampled_from([*versions, "1.0"]))}
        if one_in(draw, 10):
            row["intact"] = False
        rows.append(row)
    return rows


VERSIONS = [None, "8.3.2", "9.1.0", "9.10.2", "9.28.0", "11.8.1", "12.4.5.8"]


@st.composite
def images(draw: st.DrawFn, document: Document) -> None:
    """Turn `document` into an image that brings a release and all libraries, or nearly all."""
    platform = "{system}_{machine}".format(**document["platform"])
    builds = [row for row in TABLES["onnxruntime"]["build"] if row["platform"] == platform]
    build = draw(st.sampled_from(builds))
    kinds = {row["name"]: row for row in TABLES["nvidia"]["distribution"]}
    for need in build["needs"]:
        releases = kinds.get(need.get("distribution"), {"releases": []})["releases"]
        known = st.sampled_from([row["version"] for row in releases] or [None])
        version = draw(st.none() | known | known | st.sampled_from(VERSIONS))
        if not one_in(draw, 30):
            document["libraries"].append({"name": need["library"], "version": version})
    names = {"onnxruntime", "onnxruntime-gpu", "onnxruntime-directml"}
    kept = [row for row in document["packages"] if row["name"] not in names]
    python = draw(st.sampled_from(build["wheels"]))["python"].removeprefix("cp3")
    document["packages"] = [*kept, {"name": "onnxruntime-gpu", "version": build["version"]}]
    document["python"] |= {
        "version": f"3.{python.rstrip('mt')}.1",
        "free_threaded": python.endswith("t"),
    }


@st.composite
def drivers(draw: st.DrawFn) -> Document | None:
    """Draw a driver known by its release, by its CUDA, or by both; seldom none, or a broken one."""
    if one_in(draw, 24):
        return draw(st.sampled_from([None, {"error": "not-loaded: NVML answers 9"}]))
    ages = st.integers(1, len(BRANCHES) - 1)
    at = draw(st.integers(BRANCHES.index(520), len(BRANCHES) - 1) | ages)
    driver: Document = {}
    which = draw(st.sampled_from(["version", "cuda", "both"]))
    if which != "cuda":
        driver["version"] = f"{BRANCHES[at] + draw(st.integers(0, 4))}.{draw(st.integers(10, 200))}"
    if which != "version":
        driver["cuda"] = CUDA[at]
    return driver


@st.composite
def gpus(draw: st.DrawFn) -> list[Document] | None:
    """Draw one GPU, mostly of a kind that sells, or up to three; seldom none, or not known."""
    if one_in(draw, 24):
        return draw(st.sampled_from([None, [], [{"name": "?", "compute_capability": None}]]))
    common = ["6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "12.0"]
    kinds = st.sampled_from(common) | st.sampled_from(draw(st.sampled_from([common, CAPABILITIES])))
    many = draw(st.sampled_from([1, 1, 1, 2, 3]))
    return [{"compute_capability": draw(kinds)} for _ in range(many)]


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Draw the facts of a machine."""
    system, machine = draw(
        st.sampled_from(
            [("linux", "x86_64")] * 6 + [("windows", "x86_64")] * 3 + [("linux", "aarch64")]
        )
    )
    libc = ["glibc 2.39", "glibc 2.35", "glibc 2.31", "glibc 2.27", "glibc 2.17", "musl 1.2.4"]
    minor = draw(st.sampled_from([8, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 15]))
    packages: list[Document] = [
        {"name": name, "version": draw(st.sampled_from(versions))}
        for name, versions in ORDINARY.items()
        if not one_in(draw, 6)
    ]
    for name, versions in (
        ("onnxruntime", ["1.22.1", "1.31.1"]),
        ("onnxruntime-gpu", [*GPU_RELEASES, "1.16.1", "1.99.0"]),
        ("onnxruntime-directml", ["1.24.0"]),
    ):
        if one_in(draw, 3):
            packages.append({"name": name, "version": draw(st.sampled_from(versions))})
    packages += draw(
        st.lists(st.sampled_from(DEPENDENTS), max_size=2, unique_by=lambda row: row["name"])
    )
    packages += draw(st.just([]) | st.just([]) | torches() | wheels())
    if one_in(draw, 3):
        packages += draw(
            st.lists(st.sampled_from(USERS), max_size=2, unique_by=lambda row: row["name"])
        )
        packages += draw(st.lists(st.sampled_from(CUDNNS), max_size=1))
    names = [row["name"] for row in packages]
    document: Document = {
        "schema": 1,
        "platform": {
            "system": system,
            "machine": machine,
            "libc": draw(st.sampled_from([*libc[:4] * 3, *libc])) if system == "linux" else None,
        },
        "driver": draw(drivers()),
        "gpus": draw(gpus()),
        "python": {
            "version": f"3.{minor}.{draw(st.integers(0, 12))}",
            "free_threaded": minor >= 13 and one_in(draw, 4),
            "implementation": draw(st.just("pypy" if one_in(draw, 24) else "cpython")),
            "autoload": draw(st.sampled_from([None, None, True, False])),
        },
        "packages": [row for at, row in enumerate(packages) if row["name"] not in names[:at]],
        "libraries": [],
    }
    if one_in(draw, 4):
        draw(images(document))
    if system == "windows":
        draw(runtimes(document))
    return document


@st.composite
def runtimes(draw: st.DrawFn, document: Document) -> None:
    """Draw which Visual C++ runtime Windows has, and how much of that is known."""
    version = draw(st.sampled_from([None, "14.29.30139.0", "14.36.32532.0", "14.42.34438.0"]))
    if not one_in(draw, 3):
        row = {"name": draw(st.sampled_from(["msvcp140.dll", "MSVCP140.dll"])), "version": version}
        document["libraries"] = [*document["libraries"], row]
    if not one_in(draw, 3):
        document["sources"] = {"libraries": "search"}
    if one_in(draw, 3):
        release = draw(st.sampled_from(["14.29.30133", "14.40.33807", "14.44.35112", "14.99.1"]))
        installed = {"name": "msvc-runtime", "version": release, "intact": not one_in(draw, 4)}
        document["packages"] = [*document["packages"], installed]


def plan(document: Document, options: PlanOptions | None = None) -> Document:
    made = resolve(facts_json.from_json(document), options or PlanOptions(), MATRIX)
    document_of_it: Document = json.loads(json.dumps(plan_json(made, TEXTS)))
    return document_of_it


def chosen(made: Document) -> Version:
    """Return the chosen release; the lowest of all where there is none."""
    packages = (made["selection"] or {"packages": []})["packages"]
    return Version(
        next((row["version"] for row in packages if row["name"] == "onnxruntime-gpu"), "0")
    )


def newest(document: Document) -> Version:
    """Return the newest release that works; the lowest of all where there is none."""
    read = facts_json.from_json(document)
    made = resolve(read, PlanOptions(latest=True), MATRIX, unlocking=False)
    versions = [row.version for row in made.selection if row.name == "onnxruntime-gpu"]
    return Version(versions[0]) if versions else Version("0")


many = settings(max_examples=500, suppress_health_check=list(HealthCheck))
some = settings(max_examples=15, suppress_health_check=list(HealthCheck))


@given(documents(), st.sampled_from([{}, {"latest": True}, {"cuda": "12"}]))
@many
@pytest.mark.slow
def test_500_plans_keep_the_contract(document: Document, options: Document) -> None:
    made = plan(document, PlanOptions(**options))

    assert check(document, made, TABLES, options) == []
    assert json.dumps(plan(copy.deepcopy(document), PlanOptions(**options))) == json.dumps(made)


@given(documents(), st.sampled_from([{}, {"latest": True}, {"onnxruntime": "<1.27"}]))
@some
def test_every_plan_keeps_the_contract(document: Document, options: Document) -> None:
    assert check(document, plan(document, PlanOptions(**options)), TABLES, options) == []


def after(document: Document, made: Document) -> Document:
    """Return the facts once `made` is done: what is picked later is picked as pip would."""
    there = {row["name"]: row for row in document["packages"]}
    for name in made["uninstall"]:
        there.pop(name)
    for row in (*made["install"], *made["companions"]):
        there[row["name"]] = {"name": row["name"], "version": row["version"]}
    if "onnxruntime" in there:
        there["onnxruntime"]["provided"] = True
    for line in made["requires"]:
        wanted = Requirement(line)
        known = [*ORDINARY.get(wanted.name, []), "1.26.4", "99.0"]
        fitting = [text for text in known if text[0].isdigit() and text in wanted.specifier]
        there[wanted.name] = {"name": wanted.name, "version": fitting[-1]}
    return {**document, "packages": list(there.values())}


@given(documents())
@some
def test_doing_the_plan_leaves_it_healthy(document: Document) -> None:
    made = plan(document)
    if made["verdict"] == "impossible":
        return
    done = after(document, made)
    again = plan(done)

    assert check(done, again, TABLES) == []
    assert (again["verdict"], chosen(again)) == ("healthy", chosen(made))


@given(documents())
@some
def test_a_newer_driver_never_makes_the_answer_worse(document: Document) -> None:
    newer = CUDA[1::4]
    answers = [newest({**document, "driver": {"cuda": cuda}}) for cuda in newer]

    assert answers == sorted(answers)


@given(documents(), st.lists(st.sampled_from(range(len(CUDA))), min_size=2, max_size=2).map(sorted))
@many
@pytest.mark.slow
def test_500_newer_drivers_never_make_the_answer_worse(document: Document, ages: list[int]) -> None:
    older, newer = (newest({**document, "driver": {"cuda": CUDA[age]}}) for age in ages)

    assert older <= newer


@given(documents(), st.randoms(use_true_random=False))
@some
def test_the_same_facts_in_any_order_give_the_same_bytes(document: Document, random: Any) -> None:
    shuffled = copy.deepcopy(document)
    random.shuffle(shuffled["packages"])
    random.shuffle(shuffled["gpus"] or [])
    shuffled = dict(reversed(shuffled.items()))

    assert json.dumps(plan(shuffled)) == json.dumps(plan(document))


# A checker that cannot fail is worthless: each of these spoils a right plan.


def whole(made: Document, name: str) -> Document:
    """Return the wheel `name` of what `made` installs."""
    return next(row for row in made["install"] if row["name"] == name)


def move(made: Document, name: str, version: str) -> None:
    """Let `made` select and install another release of `name`, its file and hash too."""
    rows = [row for row in TABLES["nvidia"]["distribution"] if row["name"] == name]
    if name == "onnxruntime-gpu":
        [build] = [
            row
            for row in TABLES["onnxruntime"]["build"]
            if (row["version"], row["platform"]) == (version, "linux_x86_64")
        ]
        [wheel] = [row for row in build["wheels"] if row["python"] == "cp311"]
    else:
        [wheel] = [
            row
            for row in rows[0]["releases"]
            if (row["version"], row["platform"]) == (version, "linux_x86_64")
        ]
    new = {key: wheel[key] for key in ("file", "size", "sha256")} | {"version": version}
    whole(made, name).update(new)
    for row in made["selection"]["packages"]:
        if row["name"] == name:
            row["version"] = version


def drop(made: Document, name: str) -> None:
    made["install"] = [row for row in made["install"] if row["name"] != name]
    packages = made["selection"]["packages"]
    made["selection"]["packages"] = [row for row in packages if row["name"] != name]


def impossible(made: Document) -> None:
    made |= {"verdict": "impossible", "selection": None}
    made |= {name: [] for name in ("uninstall", "install", "companions", "requires")}


MACHINE: Document = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
    "driver": {"version": "535.104.12", "cuda": "12.2"},
    "gpus": [{"compute_capability": "8.0"}],
    "python": {"version": "3.11.7"},
    "packages": [
        {"name": "onnxruntime", "version": "1.22.1"},
        {"name": "nvidia-cudnn-cu13", "version": "9.12.0.46"},
        {"name": "numpy", "version": "2.2.6"},
        {"name": "fastembed", "version": "0.9.1", "requires": ["onnxruntime>=1.17.0,!=1.20.0"]},
    ],
}
SPOILT: dict[str, tuple[Callable[[Document], Any], str]] = {
    "says impossible": (impossible, "not impossible"),
    "says healthy": (lambda made: made.update(verdict="healthy"), "healthy with"),
    "an old release": (lambda made: move(made, "onnxruntime-gpu", "1.24.1"), "not the newest"),
    "too new for the driver": (lambda made: move(made, "onnxruntime-gpu", "1.31.1"), "cannot work"),
    "another hash": (
        lambda made: whole(made, "nvidia-cudnn-cu12").update(sha256="0" * 64),
        "no such wheel",
    ),
    "another size": (lambda made: whole(made, "onnxruntime-gpu").update(size=1), "no such wheel"),
    "the wheel of another Python": (
        lambda made: whole(made, "onnxruntime-gpu").update(
            file=whole(made, "onnxruntime-gpu")["file"].replace("cp311", "cp312")
        ),
        "no such wheel",
    ),
    "a library of another toolkit": (
        lambda made: move(made, "nvidia-cublas-cu12", "12.9.1.4"),
        "not those of",
    ),
    "an old cuDNN": (
        lambda made: move(made, "nvidia-cudnn-cu12", "9.10.2.21"),
        "not the newest that fits",
    ),
    "cuDNN of another major": (
        lambda made: move(made, "nvidia-cudnn-cu12", "8.9.7.29"),
        "cannot serve",
    ),
    "no cuFFT": (lambda made: drop(made, "nvidia-cufft-cu12"), "nothing brings libcufft"),
    "no nvJitLink for cuFFT": (lambda made: drop(made, "nvidia-nvjitlink-cu12"), "lacks"),
    "selected and not installed": (
        lambda made: made["install"].remove(whole(made, "nvidia-cufft-cu12")),
        "installed: False",
    ),
    "the CPU build stays": (lambda made: made["uninstall"].remove("onnxruntime"), "must"),
    "two owners of one folder": (
        lambda made: made["uninstall"].remove("nvidia-cudnn-cu13"),
        "must",
    ),
    "uninstalls a stranger": (lambda made: made["uninstall"].append("numpy"), "must"),
    "a missing requirement": (lambda made: made["requires"].remove("protobuf"), "lacks protobuf"),
    "a requirement of nobody": (lambda made: made["requires"].append("torch"), "nobody asked"),
    "another stand-in": (
        lambda made: made["companions"][1].update(version="1.20.0"),
        "the stand-in is",
    ),
    "a good release rejected": (
        lambda made: made["rejected"].append(
            {"package": "onnxruntime-gpu", "version": "1.23.2", "reasons": [{"code": "x"}]}
        ),
        "1.23.2 is rejected",
    ),
    "a bad release not rejected": (lambda made: made["rejected"].pop(0), "1.31.1 is rejected"),
    "a rejection without a reason": (
        lambda made: made["rejected"][0].update(reasons=[]),
        "without a reason",
    ),
}


@functools.cache
def right() -> str:
    made = plan(MACHINE)
    assert check(MACHINE, made, TABLES) == []
    return json.dumps(made)


@pytest.mark.parametrize("name", SPOILT)
def test_the_checker_sees_what_is_wrong(name: str) -> None:
    spoil, said = SPOILT[name]
    made = json.loads(right())
    spoil(made)

    assert [line for line in check(MACHINE, made, TABLES) if said in line]


def test_the_checker_sees_that_what_works_was_not_kept() -> None:
    kept = {**MACHINE, "packages": [{"name": "onnxruntime-gpu", "version": "1.23.2"}]}
    moved = plan(kept, PlanOptions(latest=True))

    assert any("1.23.2 can work and is not kept" in line for line in check(kept, moved, TABLES))


@pytest.mark.parametrize("searched", [True, False])
def test_the_checker_sees_a_runtime_that_does_not_come(*, searched: bool) -> None:
    windows = {**MACHINE, "platform": {"system": "windows", "machine": "x86_64", "libc": None}}
    if searched:
        row = {"name": "msvcp140.dll", "version": "14.16.27012.6"}
        windows |= {"libraries": [row], "sources": {"libraries": "search"}}
    made = plan(windows)
    found = [wheel for wheel in made["install"] if wheel["name"] == "msvc-runtime"]
    assert check(windows, made, TABLES) == []
    assert len(found) == 1
    made["install"].remove(found[0])
    packages = made["selection"]["packages"]
    made["selection"]["packages"] = [row for row in packages if row["name"] != "msvc-runtime"]

    assert any("msvc-runtime is None" in line for line in check(windows, made, TABLES))


def test_the_checker_sees_code_that_no_gpu_here_runs() -> None:
    volta = {**MACHINE, "gpus": [{"compute_capability": "7.0"}]}
    made = plan(volta)
    move(made, "nvidia-cudnn-cu12", "9.28.0.42")

    assert any("has no code for ['7.0']" in line for line in check(volta, made, TABLES))


def test_a_machine_with_pins_and_odd_gpus_is_planned_in_no_time() -> None:
    """It took 14 s, most of it on releases that the driver alone rules out."""
    old = {"name": "old-app", "version": "1.0", "requires": ["onnxruntime<1.20", "protobuf<4"]}
    torch = {"name": "torch", "version": "1.13.1", "requires": TORCH["1.13.1"]}
    odd = {
        **MACHINE,
        "gpus": [{"compute_capability": "10.1"}, {"compute_capability": "3.7"}],
        "python": {"version": "3.14.1"},
        "packages": [old, torch, {"name": "protobuf", "version": "3.20.3"}],
    }
    begin = time.process_time()
    plan(odd)

    assert time.process_time() - begin < 8


BESIDE: Document = {
    **MACHINE,
    "driver": {"version": "580.95.05", "cuda": "13.0"},
    "packages": [
        {"name": "ctranslate2", "version": "4.6.2"},
        {"name": "nvidia-cudnn-cu12", "version": "9.10.2.21"},
        {"name": "nvidia-cublas-cu12", "version": "12.8.5.5"},
    ],
}


def replace_cudnn(made: Document) -> None:
    made["uninstall"] = ["nvidia-cudnn-cu12"]


BESIDE_SPOILT: dict[str, tuple[Callable[[Document], Any], str]] = {
    "the newest for the driver": (
        lambda made: move(made, "onnxruntime-gpu", "1.31.1"),
        "1.31.1 cannot work here",
    ),
    "the cuDNN that another uses goes": (replace_cudnn, "uninstalls"),
    "says nothing of it": (lambda made: made.update(consumers=[]), "uses CUDA"),
    "says impossible": (impossible, "not impossible"),
}


CTRANSLATE2, CUPY = BESIDE["packages"][0], {"name": "cupy-cuda12x", "version": "13.6.0"}


@pytest.mark.parametrize(
    ("changes", "release"),
    [
        ({}, "1.26.0"),
        ({"packages": [CTRANSLATE2], "libraries": [{"name": "libcublas.so.12"}]}, "1.26.0"),
        ({"packages": [CTRANSLATE2]}, "1.26.0"),  # it has no CUDA here, and may get one
        ({"packages": [CUPY]}, "1.26.0"),
        ({"packages": [{"name": "something-cu13", "version": "1"}]}, "1.31.1"),
    ],
)
def test_a_plan_beside_another_user_of_cuda_is_right(changes: Document, release: str) -> None:
    document = {**BESIDE, **changes}
    made = plan(document)

    assert check(document, made, TABLES) == []
    assert chosen(made) == Version(release)


@pytest.mark.parametrize("name", BESIDE_SPOILT)
def test_the_checker_sees_what_hurts_others(name: str) -> None:
    spoil, said = BESIDE_SPOILT[name]
    made = plan(BESIDE)
    spoil(made)

    assert [line for line in check(BESIDE, made, TABLES) if said in line]
