"""The plan, and errors, as JSON.

JSON is for programs, so its texts are always English and its bytes do not depend on the user's
language.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.model import Unknown
from ..matrix.model import AddedRows
from ..messages.catalog import Message, Texts
from ..messages.sections import size
from ..plan.model import NEEDED_FLAGS, Alternative, Case, Plan
from ..plan.reasons import Finding, Reason
from ..plan.wheels import Wheel, rows_of

SCHEMA = 1
ASKING = "nvidia-smi --query-gpu=name,driver_version --format=csv"
"""Prints the driver's version and the GPUs, on Linux and Windows, with every driver."""


def plan_json(plan: Plan, texts: Texts) -> dict[str, object]:
    """Return the plan as the document that `--json` prints; `texts` must be English."""
    runs_on = plan.runs_on and {
        "driver": plan.runs_on.driver,
        "compute_capabilities": [gpu for unlock in plan.runs_on.gpus for gpu in unlock],
    }
    alternatives = [
        {
            "provider": alternative.provider,
            "name": alternative.by.name,
            "version": alternative.by.version,
            "size": alternative.size,
            "text": alternative_text(alternative, texts),
        }
        for alternative in plan.alternatives
    ]
    return {
        "schema": SCHEMA,
        "verdict": plan.verdict,
        "findings": findings_json(plan.findings, texts),
        "selection": _selection_json(plan),
        **({"runs_on": runs_on} if runs_on else {}),
        **({"question": question_json(plan.unknown, texts)} if plan.unknown else {}),
        **({"cases": [_case_json(case) for case in plan.cases]} if plan.cases else {}),
        **_changes_json(plan),
        **(
            {"prefer_small": {"less": plan.bytes_saved, "taken": plan.small}}
            if plan.bytes_saved
            else {}
        ),
        **_rest_json(plan),
        "consumers": [
            {
                "name": consumer.name,
                "version": consumer.version,
                "cuda": consumer.cuda,
                "needs": list(consumer.needs),
                "why": texts.reason(consumer.why),
            }
            for consumer in plan.consumers
        ],
        **({"needs": [" ".join(NEEDED_FLAGS[need]) for need in plan.needs]} if plan.needs else {}),
        "rejected": [
            {
                "package": rejection.package,
                "version": rejection.version,
                "reasons": judged_json(rejection.machine, rejection.environment, texts),
            }
            for rejection in plan.rejected
        ],
        "unlock": [
            {"change": texts.change(unlock), "gains": texts.gains(unlock)} for unlock in plan.unlock
        ],
        **({"ways": alternatives} if alternatives else {}),
        "matrix": matrix_json(plan.matrix_date, plan.matrix_digest, plan.matrix_added),
    }


def _selection_json(plan: Plan) -> dict[str, object] | None:
    """Return the whole set of a plan; None where there is none, or several are possible."""
    if plan.verdict in {"impossible", "unknown"}:
        return None
    packages = [
        {"name": wheel.name, "version": wheel.version, "index": wheel.index_url}
        for wheel in plan.selection
    ]
    return {"cuda": plan.cuda, "packages": packages}


def _changes_json(plan: Plan) -> dict[str, object]:
    return {
        "uninstall": list(plan.uninstall),
        "install": [
            {
                "name": wheel.name,
                "version": wheel.version,
                "index": wheel.index_url,
                **({"file": wheel.file} if wheel.file else {}),
                "sha256": wheel.sha256 or None,
                "size": wheel.size or None,
                **_hash_read(wheel, plan),
            }
            for wheel in plan.install
        ],
    }


def _case_json(case: Case) -> dict[str, object]:
    """Return one case: its machines, and the plan for them."""
    return {
        "driver": case.driver.specifier if case.driver else None,
        "gpus": list(case.gpus) if case.gpus else None,
        "verdict": case.plan.verdict,
        "selection": _selection_json(case.plan),
        **_changes_json(case.plan),
        **_rest_json(case.plan),
    }


def _rest_json(plan: Plan) -> dict[str, object]:
    """Return what comes beside the wheels of a plan."""
    return {
        "companions": [
            {"name": companion.name, "version": companion.version} for companion in plan.companions
        ],
        "requires": list(plan.requires),
    }


def question_json(unknown: Unknown, texts: Texts) -> dict[str, object]:
    """Return what decides between the cases, and the command that shows it on that machine."""
    return {
        "unknown": unknown.split("-and-"),
        "text": texts.label(f"question-{unknown}"),
        "command": ASKING,
    }


def alternative_text(alternative: Alternative, texts: Texts) -> str:
    """Return what `--provider` would plan instead, and what a program has to do then."""
    return texts.label(
        "other-way", provider=alternative.provider, by=alternative.by, size=size(alternative.size)
    )


def findings_json(findings: Iterable[Finding], texts: Texts) -> list[dict[str, object]]:
    """Return findings as every document has them."""
    return [
        {
            "code": finding.code,
            "severity": finding.severity,
            "summary": texts.summary(finding),
            "evidence": list(finding.evidence),
            "remedy": texts.remedy(finding),
        }
        for finding in findings
    ]


def reasons_json(reasons: Iterable[Reason], texts: Texts) -> list[dict[str, str]]:
    """Return reasons as every document has them."""
    return [{"code": why.code, "text": texts.reason(why)} for why in reasons]


def judged_json(
    machine: Iterable[Reason], environment: Iterable[Reason], texts: Texts
) -> list[dict[str, str]]:
    """Return reasons with what excludes: the machine, or what is installed or asked for there."""
    sides = (("machine", machine), ("environment", environment))
    return [{**why, "by": by} for by, reasons in sides for why in reasons_json(reasons, texts)]


def error_json(message: Message) -> dict[str, object]:
    """Return an error as the document that `--json` prints."""
    return {
        "schema": SCHEMA,
        "error": {"code": message.code, "message": message.text, "hint": message.hint},
    }


def matrix_json(date: str, digest: str, added: Iterable[AddedRows]) -> dict[str, object]:
    """Return which matrix it is; `added` names the rows that are not the shipped ones."""
    document: dict[str, object] = {"date": date, "digest": digest}
    rows = [
        {"read": addition.read, "index": addition.index_url, "releases": list(addition.releases)}
        for addition in added
    ]
    return document | ({"added": rows} if rows else {})


def _hash_read(wheel: Wheel, plan: Plan) -> dict[str, object]:
    """Return which index gave the hash of `wheel`, and when; nothing where it is a shipped one."""
    rows = rows_of(wheel, plan.matrix_added)
    return {"hash_read": {"index": rows.index_url, "date": rows.read}} if rows else {}
