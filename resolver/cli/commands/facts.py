"""Write what was seen of this machine and environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ...facts.document import WRITTEN_BY, to_json
from ...messages.catalog import Language, load_texts
from ...utils.files import write
from ...utils.foreign_text import clean
from .. import console
from ..flags import CommandLine
from ..inputs import gather_inputs


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Write what was seen of this machine and environment.

    With `--facts FILE` or `--driver` and `--gpu` the machine is that one. Raises those of
    `gather_inputs`.
    """
    found = gather_inputs(arguments, environ).facts
    document = clean(to_json(found) | {"written_by": WRITTEN_BY})
    if arguments.output is None:
        console.print_json(document)
    else:
        text = json.dumps(document, indent=2) + "\n"
        write(Path(arguments.output), text)
        console.print_notice(load_texts(language).label("written", file=arguments.output))
    return 0
