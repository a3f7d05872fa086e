"""What an update changes, in words and as JSON.

Returns sections and documents, prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...messages.catalog import Texts
from ...messages.sections import Row, Section, size
from ...plan.reasons import Finding
from ...report.plan_document import SCHEMA
from ...report.serving import serves_row, serving_json
from ...resolve.serving import Serving
from .difference import HostChange, Update, WhyNot


def difference_sections(found: Update, texts: Texts) -> tuple[Section, ...]:
    """Return the answer for people."""
    changes = tuple(_changes(found, texts))
    states = tuple(
        _state(serving, unknown, texts)._replace(head=texts.label(f"diff-{name}"))
        for name, serving, unknown in (
            ("old", found.old, found.old_unknown),
            ("new", found.new, found.new_unknown),
        )
    )
    sections = [
        Section(rows=(*states, *changes) if changes or found.hosts else ()),
        Section(
            heading=texts.label("diff-hosts"),
            rows=tuple(_host(host, found, texts) for host in found.hosts),
        ),
    ]
    lost = sum(host.loses_gpu_support for host in found.hosts)
    end = Row(text=texts.label("diff-bad", count=lost), style="bold red")
    if not changes and not lost:
        end = Row(text=texts.label("diff-same"), style="bold green")
    sections.append(Section(rows=(end,) if lost or not changes else ()))
    return tuple(section for section in sections if section.rows)


def _state(serving: Serving, unknown: str | None, texts: Texts) -> Row:
    if unknown is None:
        return serves_row(serving, texts)
    return Row(text=texts.label("diff-unknown", release=unknown))


def _changes(found: Update, texts: Texts) -> Iterator[Row]:
    old, new = found.old, found.new
    for why in found.broken:
        yield Row(text=texts.label("diff-cannot", why=_why(why, texts)), style="red")
    known = found.old_unknown is found.new_unknown is None
    for head, before, after in (
        ("onnxruntime-gpu", found.old_unknown or old.release, found.new_unknown or new.release),
        (texts.label("diff-driver"), known and old.driver, known and new.driver),
        ("cuDNN", old.cudnn, (known or old.cudnn) and new.cudnn),
    ):
        if before != after:
            yield Row(head, texts.label("diff-change", old=before or "-", new=after or "-"))
    for clash in found.clashes:
        text = texts.label("diff-clash", name=str(clash.by), cudnn=clash.cudnn)
        yield Row(head="cuDNN", text=text, style="red")
    if found.dropped:
        yield Row(texts.label("diff-dropped"), ", ".join(found.dropped), style="red")
    if found.gained:
        yield Row(texts.label("diff-gained"), ", ".join(found.gained))
    more = new.size - old.size
    if more and known:
        label = "diff-more" if more > 0 else "diff-less"
        yield Row(texts.label("diff-size"), texts.label(label, size=size(abs(more))))
    if found.uncounted:
        yield Row(texts.label("diff-uncounted"), ", ".join(map(str, found.uncounted)))


def _host(host: HostChange, found: Update, texts: Texts) -> Row:
    if found.new_unknown:
        return Row(host.name, texts.label("diff-not-known"), style="dim")
    if not host.after:
        return Row(host.name, texts.label("diff-works"), style="green")
    label = "diff-falls-out" if host.loses_gpu_support else "diff-never"
    label = "diff-cannot" if found.old_unknown else label
    return Row(host.name, texts.label(label, why=_why(host.after[0], texts)), style="red")


def difference_json(found: Update, old: str, new: str, texts: Texts) -> dict[str, object]:
    """Return the document that `diff --json` prints; `texts` must be English."""
    return {
        "schema": SCHEMA,
        "old": {"file": old, "serves": serving_json(found.old), "unknown": found.old_unknown},
        "new": {"file": new, "serves": serving_json(found.new), "unknown": found.new_unknown},
        "dropped": list(found.dropped),
        "gained": list(found.gained),
        "size": found.new.size - found.old.size,
        "uncounted": [str(row) for row in found.uncounted],
        "clashes": [{"name": str(row.by), "cudnn": row.cudnn} for row in found.clashes],
        "broken": _reasons(found.broken, texts),
        "hosts": [
            {
                "name": host.name,
                "falls_out": host.loses_gpu_support,
                "before": _reasons(host.before, texts),
                "after": _reasons(host.after, texts),
            }
            for host in found.hosts
        ],
    }


def _reasons(reasons: Iterable[WhyNot], texts: Texts) -> list[dict[str, str]]:
    return [{"code": why.code, "text": _why(why, texts)} for why in reasons]


def _why(why: WhyNot, texts: Texts) -> str:
    return texts.summary(why) if isinstance(why, Finding) else texts.reason(why)
