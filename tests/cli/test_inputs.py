"""What is refused before anything is done for a machine."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.cli.inputs import require_known
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts.model import Driver


@pytest.mark.parametrize("name", ["", "ci.json"])
@pytest.mark.parametrize(
    ("driver", "gpus", "what"),
    [
        (False, True, "unknown-driver"),
        (True, False, "unknown-gpus"),
        (False, False, "unknown-driver-and-gpus"),
    ],
)
def test_a_machine_that_is_not_known_is_named_with_what_is_missing(
    name: str, what: str, *, driver: bool, gpus: bool
) -> None:
    facts = synthetic.facts(gpus=("8.0",) if gpus else None)
    facts = facts if driver else facts._replace(driver=Driver())

    with pytest.raises(Error) as caught:
        require_known(facts, name)

    machine = f"{name}: " if name else ""
    assert caught.value.code == "machine-unknown"
    assert caught.value.values == {"machine": machine, "what": cause(what)}


def test_a_machine_that_is_known_is_no_error() -> None:
    require_known(synthetic.facts())
