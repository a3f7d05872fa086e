"""What a machine says of a log: confirmed, not so, or not to be seen here; and what mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.here import Here, Mending, State, look, mending
from ortgpu_fix.explain.matcher import explain_log
from ortgpu_fix.plan.model import Plan, PlanVerdict
from ortgpu_fix.plan.reasons import Reason, reason
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

TABLE = parse_failures(load_table("failures"))
MATRIX = synthetic.matrix()
LOGS = Path(__file__).parents[1] / "cases" / "logs"
WHOLE = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.10.2",
    "numpy 1.26.4",
    "flatbuffers 25.0",
)
BUILD = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
TENSORRT = (
    "onnxruntime 1.22.0\n"
    "EP Error when using ['TensorrtExecutionProvider', 'CUDAExecutionProvider']\n"
    "Failed to load library libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10:"
    " cannot open shared object file: No such file or directory\n"
)


def recorded(name: str) -> str:
    lines = (LOGS / f"{name}.txt").read_text("utf-8").split("\n")
    return "\n".join(line for line in lines if not line.startswith("# "))


def seen(log: str, *packages: str | dict[str, Any], **machine: Any) -> tuple[Here, Mending]:
    """Return what a machine says of the one failure in a log, and what mends it there."""
    facts = synthetic.facts(*packages, **machine)
    plan = resolve(facts, PlanOptions(), MATRIX, unlocking=False)
    found = explain_log(log, TABLE)
    (here,) = look(found, TABLE, facts, plan)
    return here, mending(found, (here,), plan)


def codes(here: Here) -> list[str]:
    return [each.code for each in here.findings]


# Whether it is so here


@pytest.mark.parametrize(
    ("log", "instead"),
    [
        ("cpu-build-in-use", reason("here-build", version="1.26.0", cuda="12.8")),
        ("package-gutted", reason("here-build", version="1.26.0", cuda="12.8")),
        ("cudnn-9-missing", reason("here-libraries", version="1.26.0")),
        ("no-kernel-image", reason("here-gpu-code", version="1.26.0")),
        ("numpy-too-new", reason("here-package", name="numpy", version="1.26.4")),
        ("driver-mismatch", reason("here-driver", version="?", cuda="12.2")),
        ("torch-cuda-differs", reason("here-healthy")),
    ],
)
def test_where_all_is_right_it_is_said_what_is_there_instead(log: str, instead: Reason) -> None:
    here, mends = seen(recorded(log), *WHOLE, onnxruntime=BUILD)

    assert here == Here("not-so", why=instead)
    assert mends == Mending(reason("mend-right"), ("verify",))


def test_a_general_text_is_confirmed_by_whatever_is_wrong() -> None:
    here, mends = seen(recorded("cuda-provider-not-created"), "onnxruntime 1.26.0", *WHOLE[1:])

    assert here.state == "confirmed"
    assert {"cpu-build-installed", "gpu-build-missing"} <= set(codes(here))
    assert mends == Mending(reason("mend-here"), ("--apply",))


def test_what_is_no_fault_confirms_no_general_text() -> None:
    """A newer release would work, too: that is worth knowing, and nothing is wrong."""
    packages = ("onnxruntime-gpu 1.23.0", *WHOLE[1:])

    here, _ = seen(recorded("cuda-provider-not-created"), *packages, driver="12.8")

    assert here == Here("not-so", why=reason("here-libraries", version="1.23.0"))


@pytest.mark.parametrize(
    ("log", "packages", "why"),
    [
        ("no-kernel-image", ["onnxruntime 1.26.0"], "here-no-gpu-build"),
        ("package-gutted", ["onnxruntime 1.26.0"], "here-no-gpu-build"),
        ("cudnn-mismatch", ["onnxruntime 1.26.0"], "here-no-gpu-build"),
        ("numpy-too-new", [], "here-no-gpu-build"),
        ("torch-cuda-differs", ["onnxruntime-gpu 1.26.0"], "here-only-there"),
        ("executable-stack", WHOLE, "here-only-there"),
    ],
)
def test_what_cannot_be_seen_is_neither_confirmed_nor_denied(
    log: str, packages: list[str], why: str
) -> None:
    assert seen(recorded(log), *packages)[0] == Here("unseen", why=reason(why))


@pytest.mark.parametrize("driver", [None, "10.0"])
def test_a_machine_where_nothing_works_says_nothing_of_libraries(driver: str | None) -> None:
    """They are looked for once a release is chosen: none is here."""
    here, mends = seen(recorded("cudnn-9-missing"), "onnxruntime-gpu 1.26.0", driver=driver)

    assert here == Here("unseen", why=reason("here-nothing-works"))
    assert mends.why == reason("mend-owner")


def test_what_only_some_releases_do_is_not_seen_where_none_is_installed() -> None:
    here, _ = seen(TENSORRT)

    assert here == Here("unseen", why=reason("here-no-gpu-build"))


# What mends it


def test_a_log_that_tells_nothing_leads_to_real_inference() -> None:
    assert mending((), (), None) == Mending(reason("mend-nothing-known"), ("verify",))


def test_what_shows_only_in_a_running_program_leads_to_real_inference() -> None:
    _, mends = seen(recorded("executable-stack"), *WHOLE)

    assert mends == Mending(reason("mend-verify"), ("verify",))


@pytest.mark.parametrize(("driver", "stop"), [(None, "no-driver"), ("10.0", "driver-too-old")])
def test_what_only_the_owner_can_mend_is_named_and_no_command(
    driver: str | None, stop: str
) -> None:
    _, mends = seen(recorded("driver-too-old"), *WHOLE, driver=driver)

    assert (mends.why, mends.arguments) == (reason("mend-owner"), ())
    assert mends.finding
    assert (mends.finding.code, mends.finding.severity) == (stop, "error")


ORT, MATCH = ("--ort", ">=1.24.1"), ("--torch", "match")


@pytest.mark.parametrize(
    ("log", "state", "verdict", "opens", "mends"),
    [
        (TENSORRT, "confirmed", "healthy", ORT, (*ORT, "--apply")),
        (TENSORRT, "not-so", "healthy", ORT, ("verify",)),
        (TENSORRT, "unseen", "healthy", ORT, ("verify",)),
        (TENSORRT, "confirmed", "impossible", MATCH, (*MATCH, "--apply")),
        (TENSORRT, "confirmed", "impossible", None, ()),
        (recorded("cudnn-9-missing"), "unseen", "impossible", MATCH, (*MATCH, "--apply")),
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

    here = [Here(state)] * len(found)
    made = mending(found, here, plan._replace(verdict=verdict), plan_with)

    assert made.arguments == mends
    assert (made.why == reason("mend-here")) is (mends[-1:] == ("--apply",))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (recorded("cudnn-9-missing"), Mending(reason("mend-by"), ("--apply",))),
        (TENSORRT, Mending(reason("mend-by"), ("--ort", ">=1.24.1", "--apply"))),
        (recorded("fabric-manager-not-running"), Mending(reason("mend-by-hand"))),
    ],
)
def test_without_a_machine_the_log_alone_tells_what_mends_it(log: str, expected: Mending) -> None:
    assert mending(explain_log(log, TABLE), (), None) == expected
