"""Write what was seen of this machine and environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...errors import Error
from ...facts.document import WRITTEN_BY, to_json
from ...messages.catalog import Language, load_texts
from ...utils.foreign_text import clean
from .. import console
from ..inputs import gather_inputs
from ..requests import FactsRequest, MachineOptions


def run(asked: FactsRequest, environ: Mapping[str, str], language: Language) -> int:
    """Write what was seen of this machine and environment.

    With `--facts FILE` or `--driver` and `--gpu` the machine is that one, with `--from-text FILE`
    the one whose outputs the text holds. Raises those of `gather_inputs`, and Error
    `log-unreadable`, `outputs-none` or `outputs-differ`.
    """
    if asked.from_text is not None:
        found = _document_of_text(asked, language)
    else:
        found = to_json(gather_inputs(asked.plan, environ).facts)
    document = clean(found | {"written_by": WRITTEN_BY})
    output = console.output_path(asked.output)
    if output is None:
        console.print_json(document)
    else:
        text = json.dumps(document, indent=2) + "\n"
        console.write_file(str(output), text, load_texts(language))
    return 0


def _document_of_text(asked: FactsRequest, language: Language) -> dict[str, Any]:
    """Return the document of what a text's outputs say, completed by the flags; name the rest."""
    from ...data_files import load_table
    from ...facts.outputs import NEEDED, read_outputs
    from ..text_files import read_text

    file = str(asked.from_text)
    outputs = read_outputs(read_text(file), load_table("gpus"))
    texts = load_texts(language)
    comma = texts.label("list-comma")
    if outputs.several:
        names = comma.join(texts.label(f"fact-{fact}") for fact in outputs.several)
        raise Error("outputs-differ", file=file, facts=names)
    if not outputs.shown:
        raise Error("outputs-none", file=file)
    document = outputs.document()
    _complete(document, asked.plan.machine)
    unknown = [
        fact
        for fact, (part, key, _) in NEEDED.items()
        if (document[part][key] if key else document[part]) is None
    ]
    if unknown:
        names = comma.join(texts.label(f"fact-{fact}") for fact in unknown)
        flags = " ".join(dict.fromkeys(NEEDED[fact][2] for fact in unknown))
        console.print_notice(texts.label("outputs-unknown", facts=names, flags=flags))
    return document


def _complete(document: dict[str, Any], machine: MachineOptions) -> None:
    """Fill in what the flags say and the outputs do not."""
    from ..described import PLATFORMS, read_machine

    document["driver"]["version"] = document["driver"]["version"] or machine.driver
    if machine.gpu is not None and document["gpus"] is None:
        cards = read_machine(machine.driver or "0", machine.gpu).gpus
        document["gpus"] = [gpu._asdict() for gpu in cards]
    if machine.platform is not None:
        system = PLATFORMS[machine.platform]
        for key in ("system", "machine"):
            document["platform"][key] = document["platform"][key] or getattr(system, key)
    if machine.python is not None:
        document["python"]["version"] = document["python"]["version"] or machine.python
