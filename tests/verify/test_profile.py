"""A profile of onnxruntime: also of a model whose node names break it, and each node's own time.

The recording is of 1.26.0, which escapes nothing in a name; what its threads did is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.verify.children.common import read_profile
from ortgpu_fix.verify.children.measure_session import own_times

RECORDING = Path(__file__).parents[1] / "recordings/measure/profile-names-1.26.0.txt"
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


def test_a_profile_that_is_whole_is_read_as_it_is(tmp_path: Path) -> None:
    events = [{"cat": "Node", "name": 'quo"te', "args": {"provider": "CPUExecutionProvider"}}]
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(events))

    assert read_profile(file) == (events, 0)


@pytest.mark.parametrize("text", ["", "[", '[{"cat" : "Session","name" :"cut', "no profile"])
def test_what_no_name_broke_is_not_put_down_to_one(text: str, tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    file.write_text(text)

    with pytest.raises(ValueError, match=r"."):
        read_profile(file)


def test_a_profile_that_is_cut_off_loses_its_last_event_alone(tmp_path: Path) -> None:
    text = RECORDING.read_text("utf-8")
    file = tmp_path / "profile.json"
    file.write_text(text[: text.index('"model_run"')])

    events, broken = read_profile(file)

    assert (events[-1]["name"], broken) == ("SequentialExecutor::Execute", 6)


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
