"""Write what was seen of this machine and environment."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...facts.document import WRITTEN_BY, to_json
from ...facts.model import Facts
from ...messages.catalog import Language, load_texts
from ...utils.foreign_text import clean
from .. import console
from ..flags import CommandLine
from ..inputs import gather_inputs


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Write what was seen of this machine and environment.

    With `--facts FILE` or `--driver` and `--gpu` the machine is that one, with `--from-text FILE`
    the one that the text tells of. Raises those of `gather_inputs`, and Error `log-unreadable`.
    """
    if arguments.from_text is not None:
        found = _facts_of_text(arguments, language)
    else:
        found = gather_inputs(arguments, environ).facts
    document = clean(to_json(found) | {"written_by": WRITTEN_BY})
    if arguments.output is None:
        console.print_json(document)
    else:
        text = json.dumps(document, indent=2) + "\n"
        console.write_file(arguments.output, text, load_texts(language))
    return 0


def _facts_of_text(arguments: CommandLine, language: Language) -> Facts:
    """Return the machine that a text tells of, and say what it tells and what is assumed."""
    from ...pasted.reader import MachineReader
    from ...report.told import told_sections, unknown_names
    from ..text_files import machine_of, read_texts

    reader = MachineReader()
    read_texts([str(arguments.from_text)], reader)
    machine, texts = machine_of(reader), load_texts(language)
    for section in told_sections(machine, texts):
        for row in section.rows:
            console.print_notice(row.text)
    if machine.unknown:
        console.print_notice(texts.label("told-assumed", facts=unknown_names(machine, texts)))
    return machine.facts
