# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""A fleet's report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ansible_collections.ortgpu.fix.plugins.plugin_utils.fleet import WRONG, Json

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1a1a1a}
table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}
th{position:sticky;top:0;background:#fff}
.state{white-space:nowrap;font-weight:600;color:#176b2c}
.wrong .state{color:#b00020}.idle .state{color:#666}
@media(prefers-color-scheme:dark){body,th{background:#161616;color:#e6e6e6}th,td{border-color:#333}
.state{color:#6fcf83}.wrong .state{color:#ff7b86}.idle .state{color:#999}}
"""
_IDLE = ("waiting", "planned", "without GPU")


def page_of(report: Json) -> str:
    """Return the page; hosts that somebody has to look at come first."""
    hosts = sorted(report["hosts"].items(), key=lambda row: (row[1]["state"] not in WRONG, row[0]))
    counts = ", ".join(f"{count} {state}" for state, count in report["counts"].items())
    kind = "checked only, nothing was changed" if report["check_mode"] else "carried out"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>ONNX Runtime on the GPU: {escape(counts)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>ONNX Runtime on the GPU</h1><p>{escape(report['date'])}, {kind}: "
        f"<strong>{escape(counts)}</strong>. Matrix of {escape(report['matrix']['date'])}.</p>\n"
        f"{_groups(report['groups'])}"
        f"<h2>Hosts</h2>{_table(_COLUMNS, (_host(name, row) for name, row in hosts))}"
        "</body></html>\n"
    )


_COLUMNS = ("Host", "State", "Group", "GPUs", "Driver", "Python", "Note")


def _groups(groups: list[Json]) -> str:
    """Return the table of the groups, or nothing where there are none."""
    rows = [
        "<tr>"
        + _cell(group["name"])
        + _cell(f"{group['distribution']} {group['version']}")
        + _cell(group["cuda"] or "none")
        + _cell(len(group["hosts"]))
        + "</tr>"
        for group in groups
    ]
    head = ("Group", "Release", "CUDA", "Hosts")
    return f"<h2>Groups</h2>{_table(head, rows)}" if rows else ""


def _host(name: str, row: Json) -> str:
    kind = "wrong" if row["state"] in WRONG else "idle" if row["state"] in _IDLE else "fine"
    machine = row.get("machine") or {}
    driver = machine.get("driver") or ""
    if machine.get("cuda"):
        driver += f" (CUDA {machine['cuda']})"
    changes = row.get("changes") or {}
    lines = [row["text"], *(f"- {line}" for line in changes.get("uninstall", ()))]
    lines += [f"+ {line}" for line in changes.get("install", ())]
    cells = (
        _cell(name),
        f'<td class="state">{escape(row["state"])}</td>',
        _cell(row.get("group") or ""),
        _cell(", ".join(machine.get("gpus") or ())),
        _cell(driver),
        _cell(machine.get("python") or ""),
        "<td>" + "<br>".join(escape(line) for line in lines if line) + "</td>",
    )
    return f'<tr class="{kind}">' + "".join(cells) + "</tr>"


def _cell(value: object) -> str:
    return f"<td>{escape(str(value))}</td>"


def _table(columns: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{column}</th>" for column in columns)
    body = "\n".join(rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>\n"
