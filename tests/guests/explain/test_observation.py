"""What a machine says of a log: confirmed, not so, or not to be seen here; and what mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Driver
from ortgpu_fix.guests.explain import fix as fixing
from ortgpu_fix.guests.explain.fix import Fix
from ortgpu_fix.guests.explain.observation import Observation, State, observe
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan, PlanVerdict
from ortgpu_fix.plan.reasons import Consumer, Reason, reason
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve


def fix_for(*args: Any, **words: Any) -> Fix:
    """Return what fixes it, of whichever cause it is."""
    return fixing.fix_for(*args, **words)._replace(code=None)


TABLE = parse_failures(load_table("failures"))
MATRIX = synthetic.matrix()
TEXTS = load_texts("en")
LOGS = Path(__file__).parents[2] / "cases" / "logs"
WHOLE = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.10.2",
    "numpy 1.26.4",
    "flatbuffers 25.0",
)
BUILD = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
LIBRARIES = reason("here-libraries", version="1.26.0")
NO_LIST, NO_FILES = reason("here-no-list"), reason("here-no-files")
TENSORRT = (
    "onnxruntime-gpu==1.22.0\n"
    "EP Error when using ['TensorrtExecutionProvider', 'CUDAExecutionProvider']\n"
    "Failed to load library libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10:"
    " cannot open shared object file: No such file or directory\n"
)


def recorded(name: str) -> str:
    lines = (LOGS / f"{name}.txt").read_text("utf-8").split("\n")
    return "\n".join(line for line in lines if not line.startswith("# "))


def seen(log: str, *packages: str | dict[str, Any], **machine: Any) -> tuple[Observation, Fix]:
    """Return what a machine says of the one failure in a log, and what mends it there."""
    facts = synthetic.facts(*packages, **machine)
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
    found = explain_log(log, TABLE)
    (here,) = observe(found, TABLE, facts, plan)
    return here, fix_for(found, (here,), plan, by_user=TEXTS.is_for_user)


def codes(here: Observation) -> list[str]:
    return [each.code for each in here.findings]


# Whether it is so here


@pytest.mark.parametrize(
    ("log", "instead"),
    [
        ("cpu-build-in-use", reason("here-build", version="1.26.0", cuda="12.8")),
        ("cudnn-9-missing", reason("here-libraries", version="1.26.0")),
        ("no-kernel-image", reason("here-gpu-code", version="1.26.0")),
        ("numpy-too-new", reason("here-package", name="numpy", version="1.26.4")),
        ("driver-mismatch", reason("here-driver", version="?", cuda="12.2")),
        ("torch-cuda-differs", reason("here-without", name="torch")),
        ("executable-stack", reason("here-libc", libc="glibc 2.35")),
        ("environment-moved", reason("here-healthy")),
        ("zlibwapi-missing", reason("here-linux")),
        ("no-cuda-on-mac", reason("here-system", system="Linux")),
    ],
)
def test_where_all_is_right_it_is_said_what_is_there_instead(log: str, instead: Reason) -> None:
    here, mends = seen(recorded(log), *WHOLE, onnxruntime=BUILD)

    assert here == Observation("not-so", why=instead)
    assert mends == Fix(reason("mend-right"), ("verify",))


@pytest.mark.parametrize(
    ("driver", "source", "here"),
    [
        (
            Driver(version="535.104.12", cuda="12.2"),
            "nvml",
            Observation("not-so", why=reason("here-driver", version="535.104.12", cuda="12.2")),
        ),
        (
            Driver(version="535.104.12", cuda=None),
            "flag",
            Observation("not-so", why=reason("here-driver-there", version="535.104.12")),
        ),
        (
            Driver(version="535.104.12", cuda="12.2"),
            "text, line 3",
            Observation("unseen", why=reason("here-only-there")),
        ),
    ],
)
def test_a_driver_that_works_disproves_what_no_text_alone_does(
    driver: Driver, source: str, here: Observation
) -> None:
    """A text told the driver and the failure: `driver 550.54.15 … supports CUDA ?`, not so."""
    facts = synthetic.facts(*WHOLE)._replace(driver=driver, sources={"driver": source})
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
    found = explain_log(recorded("driver-mismatch"), TABLE)

    assert observe(found, TABLE, facts, plan) == (here,)


INSUFFICIENT = (
    "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version\n"
    "InsufficientDriver\n"
)
UNSEEN, BY_HAND = Observation("not-so", why=reason("here-driver-unseen")), reason("mend-by-hand")


@pytest.mark.parametrize(
    ("driver", "package", "here", "why"),
    [
        ("580.95.05", "onnxruntime-gpu 1.26.0", UNSEEN, BY_HAND),
        ("535.104.12", "onnxruntime-gpu 1.26.0", UNSEEN, BY_HAND),
        ("535.104.12", "onnxruntime 1.26.0", None, reason("mend-here")),
    ],
)
def test_a_driver_of_a_text_that_is_new_enough_was_not_seen(
    driver: str, package: str, here: Observation | None, why: Reason
) -> None:
    """CUDA's words for a driver that is too old are those for none: a container, WSL."""
    seen_there, mends = told_driver(INSUFFICIENT, driver, package)

    assert mends.why == why
    assert seen_there == here if here else seen_there.state == "unseen"


@pytest.mark.parametrize(
    ("log", "driver", "source"),
    [
        (
            "PTX was compiled with an unsupported toolchain (driver-too-old)",
            "580.95.05",
            "text, line 1",
        ),
        (INSUFFICIENT, "580.95.05", "nvml"),
        (INSUFFICIENT, "390.10", "text, line 1"),
    ],
)
def test_a_driver_was_seen_where_it_says_so_itself_is_here_or_runs_nothing(
    log: str, driver: str, source: str
) -> None:
    assert told_driver(log, driver, "onnxruntime-gpu 1.26.0", source)[0] != UNSEEN


def told_driver(
    log: str, driver: str, package: str, source: str = "text, line 1", **machine: Any
) -> tuple[Observation, Fix]:
    """Return what a machine with this driver says of the first cause, and what mends it there."""
    facts = synthetic.facts(package, **machine)._replace(
        driver=Driver(version=driver),
        sources={"driver": source, "packages.others": "assumed", "packages.files": "assumed"},
    )
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
    found = explain_log(log, TABLE)
    here = observe(found, TABLE, facts, plan)
    return here[0], fix_for(found, here, plan, by_user=TEXTS.is_for_user)


@pytest.mark.parametrize(
    ("consumers", "state"),
    [([("torch", "9")], "not-so"), ([("torch", None)], "unseen"), ([], "unseen")],
)
def test_which_code_a_torch_has_is_known_of_its_build_alone(
    consumers: list[tuple[str, str | None]], state: str
) -> None:
    """https://github.com/pytorch/pytorch/issues/57922: torch 1.8.1+cu102 on an A100."""
    facts = synthetic.facts(*WHOLE, "torch 1.8.1+cu102")
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
    plan = plan._replace(
        findings=(),
        consumers=tuple(
            Consumer(name, "1", "12", cudnn, (), reason("consumer-built", cuda="12"))
            for name, cudnn in consumers
        ),
    )
    found = explain_log("sm_86 is not compatible with the current PyTorch installation", TABLE)

    assert [each.state for each in observe(found, TABLE, facts, plan)] == [state]


@pytest.mark.parametrize(("path", "state"), [("/opt/cuda/lib64:/x", "confirmed"), ("/x", "not-so")])
def test_a_library_before_those_of_the_environment_is_what_mixes(path: str, state: State) -> None:
    here, mends = seen(
        recorded("libraries-mixed"),
        *WHOLE,
        onnxruntime=BUILD,
        environment={"LD_LIBRARY_PATH": path},
        libraries=[{"name": "libcublas.so.12", "path": "/opt/cuda/lib64/libcublas.so.12"}],
    )

    assert here.state == state
    assert mends.why == reason("mend-by-hand" if state == "confirmed" else "mend-right")


@pytest.mark.parametrize(
    ("log", "packages", "key", "here"),
    [
        ("cudnn-9-missing", WHOLE[:2], "packages.others", Observation("unseen", (), NO_LIST)),
        ("torch-cuda-differs", WHOLE, "packages.others", Observation("unseen", (), NO_LIST)),
        ("cpu-build-in-use", WHOLE, "packages.files", Observation("unseen", (), NO_FILES)),
        ("environment-moved", WHOLE, "packages.files", Observation("unseen", (), NO_FILES)),
        ("cudnn-9-missing", WHOLE, "packages.others", Observation("not-so", (), LIBRARIES)),
    ],
)
def test_what_a_text_does_not_show_is_neither_confirmed_nor_denied(
    log: str, packages: tuple[str, ...], key: str, here: Observation
) -> None:
    """It need not list what is installed, and shows no files."""
    known, _ = seen(recorded(log), *packages, onnxruntime=BUILD)

    assert seen(recorded(log), *packages, onnxruntime=BUILD, sources={key: "assumed"})[0] == here
    assert known.state != "unseen"


def test_what_a_text_names_confirms_without_a_list() -> None:
    """The CPU build that it names is there, whatever else is."""
    packages = ("onnxruntime 1.26.0", *WHOLE[1:])
    log = recorded("cuda-provider-not-created")

    here, _ = seen(log, *packages, sources={"packages.others": "assumed"})

    assert here.state == "confirmed"
    assert "cpu-build-installed" in codes(here)
    assert "gpu-build-missing" not in codes(here)


@pytest.mark.parametrize(
    ("log", "packages", "why"),
    [
        ("no-kernel-image", ["onnxruntime 1.26.0"], "here-no-gpu-build"),
        ("numpy-too-new", [], "here-no-gpu-build"),
        ("conv-fallback-mode", WHOLE, "here-only-there"),
        ("index-unreachable--no-route", WHOLE, "here-network"),
        ("extras-unresolvable", WHOLE, "here-installing"),
        ("first/out-of-memory--onnxruntime-10770", WHOLE, "here-memory"),
    ],
)
def test_what_cannot_be_seen_is_neither_confirmed_nor_denied(
    log: str, packages: list[str], why: str
) -> None:
    assert seen(recorded(log), *packages)[0] == Observation("unseen", why=reason(why))


def test_a_machine_where_nothing_works_says_nothing_of_libraries() -> None:
    """They are looked for once a release is chosen: none is here."""
    here, mends = seen(recorded("cudnn-9-missing"), "onnxruntime-gpu 1.26.0", driver="10.0")

    assert here == Observation("unseen", why=reason("here-nothing-works"))
    assert mends.why == reason("mend-owner")


@pytest.mark.parametrize(
    ("wanted", "libc", "state"),
    [
        ("GLIBC_2.28", "glibc 2.27", "confirmed"),
        ("GLIBC_2.28", "glibc 2.28", "not-so"),
        ("GLIBC_2.28", "musl 3.0", "confirmed"),
        ("GLIBCXX_3.4.29", "glibc 2.27", "unseen"),
        ("GLIBC_2.28", None, "unseen"),
    ],
)
def test_the_c_library_that_a_log_names_is_compared(
    wanted: str, libc: str | None, state: State
) -> None:
    log = f"version `{wanted}' not found (required by /x/onnxruntime/x.so)"

    here, _ = seen(log, platform={"system": "linux", "machine": "x86_64", "libc": libc})

    assert here.state == state
    assert libc is None or state == "unseen" or here.why == reason("here-libc", libc=libc)


LINUX = {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"}
RELEASES = ("1.18.0", "1.23.0", "1.26.0", "1.31.0")


@pytest.mark.parametrize(
    ("wanted", "machine", "expected"),
    [
        ("==1.16.1", {}, ("confirmed", "here-no-release")),
        ("==1.40.0", {}, ("unseen", "here-no-release")),
        ("==1.26.0", {}, ("not-so", "here-wheel")),
        ("", {"driver": None}, ("unseen", "here-installing")),
        ("==1.26.0", {"python": "3.8.19"}, ("confirmed", "no-wheel-python")),
        ("==1.26.0", {"platform": {**LINUX, "libc": "glibc 2.17"}}, ("confirmed", "glibc-too-old")),
        ("==1.26.0", {"platform": {**LINUX, "libc": "musl 1.2"}}, ("confirmed", "musl")),
    ],
)
def test_a_release_that_cannot_be_had_is_looked_up(
    wanted: str, machine: dict[str, Any], expected: tuple[State, str]
) -> None:
    log = f"ERROR: No matching distribution found for onnxruntime-gpu{wanted}\n"
    facts = synthetic.facts(**machine)
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)

    (here,) = observe(explain_log(log, TABLE), TABLE, facts, plan, RELEASES)

    assert here.why
    assert (here.state, here.why.code) == expected


@pytest.mark.parametrize(("visible", "state"), [(None, "unseen"), ("1", "confirmed")])
def test_which_gpu_was_asked_for_shows_where_some_are_hidden(
    visible: str | None, state: State
) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    gpus = ("8.0",) if visible == "1" else ("8.0", "8.6")

    here, mends = seen(
        "CUDA failure 101: invalid device ordinal", *WHOLE, gpus=gpus, environment=environment
    )

    assert here.state == state
    assert mends.why == reason("mend-by-hand")
    assert here.why == (None if visible else reason("here-gpus", count="2"))


@pytest.mark.parametrize("executable", [None, "/srv/app/.venv/bin/python"])
@pytest.mark.parametrize("log", ["environment-moved", "onnxruntime-shadowed--beside"])
def test_an_environment_that_was_looked_at_is_where_it_was_made(
    log: str, executable: str | None
) -> None:
    python = {"version": "3.11.7", "executable": executable}
    document = synthetic.document("onnxruntime 1.26.0") | {"python": python}
    facts = facts_json.from_json(document)
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)

    (here,) = observe(explain_log(recorded(log), TABLE), TABLE, facts, plan)

    assert here.state == ("not-so" if executable else "unseen")


@pytest.mark.parametrize(("version", "state"), [("1.22.0", "confirmed"), ("1.26.0", "not-so")])
def test_what_only_some_releases_do_is_so_where_one_of_them_is_installed(
    version: str, state: State
) -> None:
    here, _ = seen(TENSORRT, *WHOLE, onnxruntime=BUILD | {"version": version})

    assert here == Observation(state, why=reason("here-release", version=version))


def test_a_program_that_brings_all_itself_says_nothing_of_this_environment() -> None:
    log = "[PYI-7:ERROR] Failed to execute script 'main'\n" + recorded("cudnn-9-missing")

    here, mends = seen(log, "onnxruntime 1.26.0")

    assert here == Observation("unseen", why=reason("here-other-program"))
    assert mends == Fix(reason("mend-other-program"))


# What mends it


@pytest.mark.parametrize(
    ("log", "error", "code"),
    [
        ("CUDA failure 804", "cuinit-804: cuInit answers 804", "driver-forward-compatibility"),
        ("CUDA failure 803", "version-mismatch: cuInit answers 803", "driver-version-mismatch"),
    ],
)
def test_a_driver_that_fails_is_confirmed_and_only_its_owner_mends_it(
    log: str, error: str, code: str
) -> None:
    """Although there is something that `--apply` would mend: the GPU is not used after it."""
    here, mends = seen(log, "onnxruntime-gpu 1.26.0", error=error)

    assert (here.state, codes(here)) == ("confirmed", [code])
    assert (mends.why, mends.arguments) == (reason("mend-owner"), ())
    assert mends.finding
    assert mends.finding.code == code


def test_a_shadow_is_for_the_user_to_remove() -> None:
    document = synthetic.document(*WHOLE, onnxruntime=BUILD)
    document["python"]["shadow"] = "/srv/app/onnxruntime.py"
    facts = facts_json.from_json(document)
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
    found = explain_log(recorded("onnxruntime-shadowed--beside"), TABLE)
    here = observe(found, TABLE, facts, plan)

    mends = fix_for(found, here, plan, by_user=TEXTS.is_for_user)

    assert here[0].state == "confirmed"
    assert mends == Fix(reason("mend-by-hand"), finding=here[0].findings[0])


ORT, MATCH = ("--ort", ">=1.24.1"), ("--torch", "match")


@pytest.mark.parametrize(
    ("log", "state", "verdict", "opens", "mends"),
    [
        (TENSORRT, "confirmed", "healthy", ORT, (*ORT, "--apply")),
        (TENSORRT, "not-so", "healthy", ORT, ("verify",)),
        (TENSORRT, "confirmed", "impossible", MATCH, (*MATCH, "--apply")),
        (TENSORRT, "confirmed", "impossible", None, ()),
        (recorded("torch-without-this-gpu"), "confirmed", "fixable", None, (*MATCH, "--apply")),
    ],
)
def test_a_remedy_with_flags_is_planned_with_them(
    log: str,
    state: State,
    verdict: PlanVerdict,
    opens: tuple[str, ...] | None,
    mends: tuple[str, ...],
) -> None:
    """`opens`: the flags with which something can be done; without them the plan is `verdict`."""
    plan = resolve(synthetic.facts(*WHOLE, onnxruntime=BUILD), PlanOptions(), MATRIX)
    found = explain_log(log, TABLE)

    def plan_with(flags: tuple[str, ...]) -> Plan:
        return plan._replace(verdict="fixable" if flags == opens else verdict)

    here = [Observation(state)] * len(found)
    made = fix_for(found, here, plan._replace(verdict=verdict), plan_with)

    assert made.arguments == mends
    assert (made.why == reason("mend-here")) is (mends[-1:] == ("--apply",))


# Confirmed is what the machine shows of the library that is named

MISSES = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: {}: cannot open shared\
 object file: No such file or directory\n"
)
NO_CUBLAS = tuple(each for each in WHOLE if "cublas" not in each)


@pytest.mark.parametrize(
    ("library", "state"),
    [
        ("libcublasLt.so.12", "confirmed"),
        ("libcudnn.so.9", "unseen"),
        ("libnvrtc-builtins.so.12.8", "confirmed"),
    ],
)
def test_another_library_that_is_missing_confirms_nothing(library: str, state: State) -> None:
    here, mends = seen(MISSES.format(library), *NO_CUBLAS, onnxruntime=BUILD)

    assert here.state == state
    assert codes(here) == ["library-missing"] * (state == "confirmed")
    assert here.why == (reason("here-only-there") if state == "unseen" else None)
    assert mends.why.code == "mend-here"


@pytest.mark.parametrize(
    ("library", "state"),
    [
        ("libcudnn.so.9", "confirmed"),
        ("libcudnn.so.8", "unseen"),
        ("libcudnn_ops.so.9", "confirmed"),
        ("libcudnn.so", "confirmed"),
        ("libcurand.so.10", "unseen"),
    ],
)
def test_cudnn_is_confirmed_by_that_of_its_major(library: str, state: State) -> None:
    without = tuple(each for each in WHOLE if "cudnn" not in each)
    here, _ = seen(MISSES.format(library), *without, onnxruntime=BUILD)

    assert here.state == state


INFER = "libcudnn_ops_infer.so.8"
CTRANSLATE2 = Consumer("ctranslate2", "4.4.0", "12", "8", (INFER,), reason("consumer-links"))
ANOTHER = {"name": "ctranslate2", "version": "4.4.0", "cudnn": "8"}


@pytest.mark.parametrize(
    ("consumer", "set_", "why"),
    [
        (CTRANSLATE2, WHOLE, reason("here-others-cudnn", **ANOTHER)),
        (CTRANSLATE2, (), reason("here-others-cudnn", **ANOTHER)),
        (CTRANSLATE2._replace(cudnn="9"), WHOLE, reason("here-libraries", version="1.26.0")),
        (CTRANSLATE2._replace(needs=("a",)), WHOLE, reason("here-libraries", version="1.26.0")),
    ],
)
def test_who_wants_another_cudnn_than_the_set_has_is_named_and_kept(
    consumer: Consumer, set_: tuple[str, ...], why: Reason
) -> None:
    facts = synthetic.facts(*WHOLE, onnxruntime=BUILD)
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)._replace(consumers=(consumer,))
    if not set_:
        plan = plan._replace(selection=())
    found = explain_log(
        f"{INFER}: cannot open shared object file: No such file or directory", TABLE
    )
    (here,) = observe(found, TABLE, facts, plan)

    assert here.why == why
    asked = fix_for(found, (here,), plan).why.code
    assert asked == ("mend-by-hand" if here.state == "confirmed" else "mend-right")


def test_what_only_some_releases_do_is_not_seen_where_none_is_installed() -> None:
    here, _ = seen(TENSORRT)

    assert here == Observation("unseen", why=reason("here-no-gpu-build"))
