"""Random machines on the real matrix, and what the program plans for them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from raw_tables import Machine
from tables import tables

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.gpu_names import known_capabilities
from ortgpu_fix.facts.model import Driver, Gpu
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.report.plan_document import plan_json
from ortgpu_fix.resolve.cases import plan_by_cases
from ortgpu_fix.resolve.opened import plan_for
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

WISHES = [
    "onnxruntime-training>=1.17",
    "onnxruntime-directml",
    "onnxruntime<1.25",
    "onnxruntime>=1.26,<1.31",
    "onnxruntime-gpu>=1.22",
    "onnxruntime-gpu!=1.26.0",
    "nvidia-cudnn-cu12<9.10",
    "nvidia-cublas-cu12==12.8.4.1; sys_platform == 'linux'",
    "numpy<2",
    "torch>=2.6",
    "app-two[gpu]>=1",
]
"""What an application may require of what a plan changes."""
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
    {"name": "nvidia-cudnn-cu12", "version": "8.9.7.29"},
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


def next_to(release: str) -> list[str]:
    """Return releases that no table has: the next patch of `release`, minor and major."""
    first, second, *rest = release.split(".")
    tail = "".join(f".{number}" for number in rest)
    return [f"{release}99", f"{first}.{int(second) + 1}{tail}", f"{int(first) + 1}.0{tail}"]


@st.composite
def seen_libraries(draw: st.DrawFn, kind: Document) -> list[str]:
    """Draw what is seen of a wheel that no table has: what another release has, or not all."""
    blocks = [list(block["libraries"].values()) for block in kind.get("files", ())]
    paths: list[str] = draw(st.sampled_from([[], *blocks]))
    return paths[1:] if one_in(draw, 4) else paths


@st.composite
def wheels(draw: st.DrawFn) -> list[Document]:
    """Draw some nvidia wheels of any release, some gutted, some of releases that no table has."""
    kinds = {row["name"]: row for row in TABLES["nvidia"]["distribution"]}
    names = draw(st.lists(st.sampled_from(sorted(kinds)), unique=True, max_size=9))
    newer = draw(st.booleans())
    rows: list[Document] = []
    for name in names:
        releases = {row["version"] for row in kinds[name]["releases"]}
        version = draw(st.sampled_from([*sorted(releases, key=Version), "1.0"]))
        row: Document = {"name": name, "version": version}
        if newer and not one_in(draw, 3):
            row["version"] = draw(st.sampled_from(next_to(version)))
            row["libraries"] = draw(seen_libraries(kinds[name]))
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
        return draw(st.sampled_from([None, {"error": "not-loaded: NVML error 9"}]))
    ages = st.integers(1, len(BRANCHES) - 1)
    at = draw(st.integers(BRANCHES.index(520), len(BRANCHES) - 1) | ages)
    driver: Document = {}
    which = draw(st.sampled_from(["version", "cuda", "both"]))
    if which != "cuda":
        driver["version"] = f"{BRANCHES[at] + draw(st.integers(0, 4))}.{draw(st.integers(10, 200))}"
    if which != "version":
        driver["cuda"] = CUDA[at]
    if one_in(draw, 12):  # one that no table has
        driver = {"version": "999.10", "cuda": draw(st.sampled_from(["13.9", "14.0", "15.2"]))}
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
    packages += draw(st.just([]) | torches() | wheels() | wheels())
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


def says_wrongly_that_nothing_works(document: Document) -> bool | None:
    """Tell whether a plan says so of a machine on which an empty environment gets a set.

    None: it does not say so.
    """
    facts = facts_json.from_json(document)
    made = resolve(facts, PlanOptions(), MATRIX)
    sections = plan_sections(made, facts, TEXTS, verbose=False, asked=False, command="")
    if TEXTS.label("impossible") not in plain(sections[-1:]):
        return None
    empty = facts_json.from_json({**document, "packages": []})
    return resolve(empty, PlanOptions(), MATRIX).verdict != "impossible"


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


def is_no_worse(document: Document, older: str, newer: str) -> bool:
    """Tell whether the answer with the driver `newer` is no worse than with `older`.

    Where `newer` is of a branch that drops a GPU of the machine, nothing works, and rightly.
    """
    machines = [{**document, "driver": {"version": text}} for text in (older, newer)]
    before, after = map(newest, machines)
    if Machine(machines[1], TABLES, {}).dropped():
        return after == Version("0")
    return before <= after


UNKNOWN = ("driver", "gpus", "driver and gpus")
RELEASES = sorted(
    {
        *(f"{branch}{rest}" for branch in BRANCHES for rest in (".10", ".99.02")),
        *(row[system] for row in TABLES["drivers"]["floor"] for system in ("linux", "windows")),
        *("450.80.01", "525.60.12", "527.40", "580.65.05", "580.87", "650.10"),
    }
)
"""Drivers of each branch, at the floors of each CUDA, and just below them."""


def known_gpus(document: Document) -> tuple[str, ...]:
    """Return the compute capabilities of the GPUs that there are for the machine's processor."""
    return known_capabilities(TABLES["gpus"], document["platform"]["machine"])


def unlike_its_case(document: Document, unknown: str, release: str, gpu: str) -> list[str]:
    """Return how the case of a driver and a GPU differs from the plan of the machine with them.

    `unknown`: what is taken away of the machine.
    """
    facts = facts_json.from_json(document)
    there = facts._replace(
        driver=Driver(version=release), gpus=(Gpu(compute_capability=gpu),), sources={}
    )
    asked = there._replace(driver=Driver()) if "driver" in unknown else there
    asked = asked._replace(gpus=None) if "gpus" in unknown else asked
    known = known_gpus(document)
    made = plan_json(plan_by_cases(asked, PlanOptions(), MATRIX, known), TEXTS)
    wanted = plan_json(plan_for(there, PlanOptions(), MATRIX, unlocking=False), TEXTS)
    if made["verdict"] == "impossible":
        return [] if wanted["verdict"] == "impossible" else [f"impossible: {json.dumps(document)}"]
    cases: list[Document] = made["cases"]  # type: ignore[assignment]
    fits = [
        case
        for case in cases
        if release in SpecifierSet(case["driver"] or "") and gpu in (case["gpus"] or [gpu])
    ]
    told = [{key: case[key] for key in _DONE} for case in fits]
    return [] if told == [{key: wanted[key] for key in _DONE}] else [json.dumps(document)]


_DONE = ("verdict", "selection", "uninstall", "install", "companions", "requires")
