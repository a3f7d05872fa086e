"""Facts files: the machines of `--facts FILE`."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from ..data_files import example_machine, load_table
from ..errors import Error, cause
from ..facts.document import from_json
from ..facts.gpu_names import capability_by_name, with_capabilities
from ..facts.model import Facts
from ..messages.catalog import load_texts
from ..utils.files import read_bounded
from .console import print_notice, user_language

EXAMPLE = "example"


@functools.cache
def capability_of(gpu: str) -> str | None:
    """Return the compute capability of a GPU by its name; few machines are asked for that."""
    return capability_by_name(load_table("gpus"))(gpu)


def read_facts(file: str) -> Facts:
    """Return the facts in `file`; `example` is the machine that is shipped with the program.

    A GPU that has a name only, as in a file written by hand, gets its compute capability by it.

    Raises Error `facts-unreadable` where it cannot be read or is no JSON, `facts-invalid` as
    `facts.document.from_json` does.
    """
    if file == EXAMPLE and not os.path.lexists(file):
        return from_json(example_machine())
    try:
        content = read_bounded(Path(file))
    except OSError as error:
        raise Error("facts-unreadable", file=file, cause=error.strerror or error) from error
    try:
        facts, ignored = _parse_facts(content)
    except ValueError as error:
        raise Error(
            "facts-unreadable", file=file, cause=cause("text-not-json", problem=str(error))
        ) from error
    except RecursionError as error:
        raise Error("facts-unreadable", file=file, cause=cause("nested-too-deep")) from error
    if ignored:
        texts = load_texts(user_language(os.environ))
        keys = ", ".join(ignored)
        print_notice(texts.label("facts-keys-ignored", file=file, keys=keys))
    return facts


@functools.lru_cache(maxsize=4096)  # machines of one kind have the same file, to the byte
def _parse_facts(content: bytes) -> tuple[Facts, tuple[str, ...]]:
    """Return the facts in `content`, and the keys of a newer program's that this one ignores."""
    ignored: list[str] = []
    facts = from_json(json.loads(content), ignored)  # of any Unicode, marked or not
    return with_capabilities(facts, capability_of), tuple(ignored)
