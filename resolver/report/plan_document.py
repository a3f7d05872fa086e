"""The plan, and errors, as JSON.

JSON is for programs, so its texts are always English and its bytes do not depend on the user's
language.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..matrix.model import AddedRows
from ..messages.catalog import Message, Texts
from ..messages.sections import size
from ..plan.model import OtherWay, Plan
from ..plan.reasons import Finding, Reason
from ..plan.wheels import Wheel, rows_of

SCHEMA = 1


def plan_json(plan: Plan, texts: Texts) -> dict[str, object]:
    """Return the plan as the document that `--json` prints; `texts` must be English."""
    selection: dict[str, object] | None = None
    if plan.verdict != "impossible":
        selection = {
            "cuda": plan.cuda,
            "packages": [
                {"name": row.name, "version": row.version, "index": row.index_url}
                for row in plan.selection
            ],
        }
    runs_on = plan.runs_on and {
        "driver": plan.runs_on.driver,
        "compute_capabilities": [gpu for row in plan.runs_on.gpus for gpu in row],
    }
    ways = [
        {
            "provider": way.provider,
            "name": way.by.name,
            "version": way.by.version,
            "size": way.size,
            "text": way_text(way, texts),
        }
        for way in plan.ways
    ]
    return {
        "schema": SCHEMA,
        "verdict": plan.verdict,
        "findings": findings_json(plan.findings, texts),
        "selection": selection,
        **({"runs_on": runs_on} if runs_on else {}),
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
        **({"prefer_small": {"less": plan.less, "taken": plan.small}} if plan.less else {}),
        "companions": [{"name": row.name, "version": row.version} for row in plan.companions],
        "requires": list(plan.requires),
        "consumers": [
            {
                "name": row.name,
                "version": row.version,
                "cuda": row.cuda,
                "needs": list(row.needs),
                "why": texts.reason(row.why),
            }
            for row in plan.consumers
        ],
        "rejected": [
            {
                "package": row.package,
                "version": row.version,
                "reasons": reasons_json(row.reasons, texts),
            }
            for row in plan.rejected
        ],
        "unlock": [{"change": texts.change(row), "gains": texts.gains(row)} for row in plan.unlock],
        **({"ways": ways} if ways else {}),
        "matrix": matrix_json(plan.matrix_date, plan.matrix_digest, plan.matrix_added),
    }


def way_text(way: OtherWay, texts: Texts) -> str:
    """Return what `--provider` would plan instead, and what a program has to do then."""
    return texts.label("other-way", provider=way.provider, by=way.by, size=size(way.size))


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
        {"read": row.read, "index": row.index_url, "releases": list(row.releases)} for row in added
    ]
    return document | ({"added": rows} if rows else {})


def _hash_read(wheel: Wheel, plan: Plan) -> dict[str, object]:
    """Return which index gave the hash of `wheel`, and when; nothing where it is a shipped one."""
    rows = rows_of(wheel, plan.matrix_added)
    return {"hash_read": {"index": rows.index_url, "date": rows.read}} if rows else {}
