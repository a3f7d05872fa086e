"""A profile of onnxruntime: also of a model whose node names break it, and each node's own time.

The recording is of 1.26.0, which escapes nothing in a name; what its threads did is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.guests.bench.children.measure_session import own_times
from ortgpu_fix.verify.children.common import read_profile

RECORDING = Path(__file__).parents[2] / "recordings/measure/profile-names-1.26.0.txt"
NAMES = [
    *('quo"te', "back\\slash", "line\nbreak", "esc\x1b[31m", "plain", "umlä"),
    *('x","args" : {"op_name" : "Evil"}},', "\t"),
]


def test_names_that_break_a_profile_are_read_as_they_stand(tmp_path: Path) -> None:
    text = RECORDING.read_text("utf-8")
    first = text.index('{"cat" : "Node"')
    last = text.index('{"cat" : "Session"', first)
    file = tmp_path / "profile.json"
    file.write_text(text[:last] + text[first:])  # the nodes twice

    events, broken = read_profile(file)

    nodes = [event for event in events if event["cat"] == "Node"]
    assert [event["name"] for event in nodes] == [f"{name}_kernel_time" for name in NAMES * 2]
    assert [event["args"]["op_name"] for event in nodes] == ["Cos", "Sin"] * 8
    assert {event["args"]["provider"] for event in nodes} == {"CPUExecutionProvider"}
    assert broken == 6  # nodes, though each ran several times
    assert [event["name"] for event in events if event["cat"] == "Session"] == [
        *("model_loading_uri", "session_initialization"),
        *("SequentialExecutor::Execute", "model_run"),
    ]


def test_a_profile_that_is_cut_off_loses_its_last_event_alone(tmp_path: Path) -> None:
    text = RECORDING.read_text("utf-8")
    file = tmp_path / "profile.json"
    file.write_text(text[: text.index('"model_run"')])

    events, broken = read_profile(file)

    assert (events[-1]["name"], broken) == ("SequentialExecutor::Execute", 6)


TAIL = ',"args" : {"provider" : "CUDAExecutionProvider","op_name" : "Conv"}'
FORGED = [
    f'x_kernel_time"{TAIL}}},{{"cat" : "Node","pid" :1,"dur" :1,"ts" :9,"name" :"y',
    f'x_kernel_time"{TAIL}}},{{"cat" : "Node","dur" :1,"ts" :9,"name" :"y',
    f'x"}},{{"cat" : "Node"{TAIL},"name" : "y',
    *('x"},7,{"z" : "y', 'x"\n,{"cat" : "Node"},{"cat" : "', 'a,\n{"cat" : "b', 'x"},{"z" : "y'),
    *(f'x","{key}" : 7,"z" : "y' for key in ("ts", "dur", "name", "args", "pid", "cat")),
    pytest.param(f'x","q" : {"[" * 100_000},"z" : "y', id="deep"),
]


@pytest.mark.parametrize("name", FORGED)
def test_a_name_that_pretends_to_be_an_event_tells_nothing(name: str, tmp_path: Path) -> None:
    """A model told of a node on a GPU that was not there, and others were said to crash."""
    text = RECORDING.read_text("utf-8")
    events = text.splitlines(keepends=True)
    plain = next(line for line in events if '"plain_kernel_time"' in line)
    session = [line for line in events if line.lstrip("[").startswith('{"cat" : "Session"')]
    forged = plain.replace("plain", name)
    file = tmp_path / "profile.json"
    file.write_text("".join([*session[:1], plain, forged, *session[1:], "]"]))

    found, broken = read_profile(file)

    nodes = [row for row in found if row["cat"] == "Node"]
    right = json.loads(plain.strip().rstrip(","))
    assert nodes == [right, right | {"name": f"{name}_kernel_time"}]
    assert broken == 1
    assert len(found) == len(session) + 2


def event(name: str, begin: int, taken: int) -> dict[str, object]:
    return {"name": name, "ts": begin, "dur": taken}


def test_what_a_branch_ran_is_not_counted_twice() -> None:
    """As silero-vad's: an `If` in an `If`, with nodes inside each and after both."""
    events = [
        *(event("first", 0, 2), event("If", 2, 10), event("inside", 3, 4)),
        *(event("inner", 7, 5), event("innermost", 8, 1), event("last", 12, 3)),
    ]

    own = {row["name"]: taken for row, taken in own_times(events)}

    assert own == {"first": 2, "If": 1, "inside": 4, "inner": 4, "innermost": 1, "last": 3}


@given(st.lists(st.integers(0, 9), max_size=30))
def test_all_together_took_as_long_as_the_outermost(depths: list[int]) -> None:
    """Nodes of a microsecond or none inside it: nothing is lost or added."""
    events = [event("all", 0, len(depths) + 1)]
    events += [event(f"at {at}", at, min(depth, 1)) for at, depth in enumerate(depths)]

    assert sum(taken for _, taken in own_times(events)) == len(depths) + 1
