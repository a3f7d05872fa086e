"""What `--json` prints fits the schemas in `data/`, and no key of it is unknown there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from documents import KINDS, SCHEMAS, check, kind_of

from ortgpu_fix.data_files import example_machine, load_table
from ortgpu_fix.facts.document import from_json, to_json
from ortgpu_fix.guests.explain.fix import fix_for
from ortgpu_fix.guests.explain.observation import observe
from ortgpu_fix.guests.explain.report import explanation_json
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.report.plan_document import plan_json
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

TESTS = Path(__file__).parents[1]
EN = load_texts("en")
MATRIX = load_matrix()
MACHINES = sorted(TESTS.glob("captures/*/expected.json"))[::3]
LOGS = sorted(TESTS.glob("cases/logs/**/*.txt"))[::40]
TABLE = parse_failures(load_table("failures"))


def printed(document: Any) -> dict[str, Any]:
    """Return a document as who reads it has it; it fits its schema."""
    read: dict[str, Any] = json.loads(json.dumps(document))
    check(read)
    return read


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[kind])
    assert SCHEMAS[kind]["$id"] == f"{kind}.schema.json"


@pytest.mark.untraced
@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.parent.name)
def test_the_facts_and_plans_of_recorded_machines(path: Path) -> None:
    beside = path.with_name("facts.json")
    document = json.loads(beside.read_text("utf-8")) if beside.exists() else None
    facts = from_json(document or json.loads(path.read_text("utf-8"))["facts"])

    assert kind_of(printed(to_json(facts))) == "facts"
    for options in (PlanOptions(), PlanOptions(cuda="12", ignored_gpus=frozenset({"6.1"}))):
        assert kind_of(printed(plan_json(resolve(facts, options, MATRIX), EN))) == "plan"


@pytest.mark.untraced
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_explanations_of_logs(path: Path) -> None:
    found = explain_log(path.read_text("utf-8"), TABLE)
    facts = from_json(example_machine())
    plan = resolve(facts, PlanOptions(), MATRIX)
    here = observe(found, TABLE, facts, plan)
    mends = fix_for(found, here, plan, lambda _: plan)

    printed(explanation_json(found, EN))
    document = printed(explanation_json(found, EN, here, mends, command="ortgpu-fix --apply"))

    assert kind_of(document) == "explain"
