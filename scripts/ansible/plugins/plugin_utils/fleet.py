# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""What a fleet's plan means for each host, and what came of it: values in, values out."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import quote, unquote

Json = dict[str, Any]

NO_GPU = "no NVIDIA GPU, or no driver for it"
STATES = (
    "ok",
    "changed",
    "drifted",
    "put back",
    "broken",
    "failed",
    "unreachable",
    "impossible",
    "without GPU",
    "waiting",
    "planned",
)
"""What can have come of a host, in the order in which a report counts them."""
WRONG = frozenset({"drifted", "put back", "broken", "failed", "unreachable", "impossible"})
"""The states that somebody has to look at."""
SHOWN = 10
"""So many hosts of a state are named."""
PUT_BACK, NOT_PUT_BACK, IMPOSSIBLE = 4, 5, 3


def file_of(host: str) -> str:
    """Return the name of a host's facts file; `host_of` gets the host back from a plan's name."""
    return quote(host, safe="") + ".json"


def host_of(machine: str) -> str:
    """Return the host whose facts file a plan calls `machine`."""
    return unquote(machine)


def group_names(groups: list[Json]) -> list[str]:
    """Return a short name for each group, as the names of the program's locks have it: `cuda12`."""
    for key in ("cuda", "version"):
        prefix = "cuda" if key == "cuda" else ""
        names = ["cpu" if row["cuda"] is None else f"{prefix}{row[key]}" for row in groups]
        if len(set(names)) == len(names):
            return names
    return [str(at) for at in range(1, len(groups) + 1)]


def as_fleet(plan: Json, machine: str, facts: Json) -> Json:
    """Return the program's plan for one machine in the form that it has for several."""
    found: Json = {"groups": [], "without_gpu": [], "impossible": [], "matrix": plan["matrix"]}
    if not facts["driver"] or facts["gpus"] == []:
        return found | {"without_gpu": [machine]}
    if plan["selection"] is None:
        reasons = [{"code": row["code"], "text": row["summary"]} for row in plan["findings"]]
        return found | {"impossible": [{"machine": machine, "reasons": reasons}]}
    chosen = plan["selection"]
    versions = {row["name"]: row["version"] for row in chosen["packages"]}
    group = {
        "distribution": "onnxruntime-gpu",
        "version": versions["onnxruntime-gpu"],
        "cuda": chosen["cuda"],
        "machines": [machine],
        "targets": [{"machines": [machine], "selection": chosen}],
    }
    return found | {"groups": [group]}


def servable(plan: Json, *, with_cpu: bool) -> set[str]:
    """Return the names of the machines for which a lock can be written."""
    left = {row["machine"] for row in plan["impossible"]}
    left |= set() if with_cpu else set(plan["without_gpu"])
    return {name for group in plan["groups"] for name in group["machines"]} - left


def assigned(plan: Json, *, torch: bool) -> dict[str, Json]:
    """Return, by host, its group and the exact set as requirements.

    `torch`: the plan moves torch, so that its version belongs to the set.
    """
    found: dict[str, Json] = {}
    for group, name in zip(plan["groups"], group_names(plan["groups"]), strict=True):
        if group["cuda"] is None:  # the program changes nothing where there is no GPU
            continue
        for target in group["targets"]:
            pins = [
                f"{row['name']}=={row['version']}"
                for row in target["selection"]["packages"]
                if torch or row["name"] != "torch"
            ]
            about = {"group": name, "release": group["version"], "requirements": pins}
            found.update(dict.fromkeys(map(host_of, target["machines"]), about))
    return found


def planned_hosts(
    plan: Json, facts: dict[str, Json], assigned: dict[str, Json], *, managed: set[str]
) -> dict[str, Json]:
    """Return the rows of a report before anything was carried out, by host.

    `facts` are those of all machines of the plan, `managed` those that are hosts.
    """
    rows: dict[str, Json] = {}
    reasons = {host_of(row["machine"]): row["reasons"] for row in plan["impossible"]}
    without = set(map(host_of, plan["without_gpu"]))
    for host, document in facts.items():
        row: Json = {"machine": about_machine(document)}
        if host in without:
            row |= {"state": "without GPU", "text": NO_GPU}
        elif host not in assigned:
            text = "; ".join(why["text"] for why in reasons.get(host, ())[:3])
            row |= {"state": "impossible", "text": text}
        elif host in managed:
            row |= {"state": "waiting", "text": "its wave has not begun"}
        else:
            row |= {"state": "planned", "text": "no host of this run"}
        rows[host] = row | {"group": assigned.get(host, {}).get("group")}
    return rows


def outcome_of(result: Json | None, *, check_mode: bool) -> Json:
    """Return the state of a host and one sentence, from what its task registered; None: nothing."""
    if result is None or result.get("skipped"):
        return {"state": "waiting", "text": "its wave has not begun"}
    message = " ".join(str(result.get("msg") or "").split())
    if result.get("unreachable"):
        return {"state": "unreachable", "text": message}
    if result.get("failed"):
        code = result.get("exit_code")
        states = {PUT_BACK: "put back", NOT_PUT_BACK: "broken", IMPOSSIBLE: "impossible"}
        return {
            "state": states.get(code or 0, "failed"),
            "text": message,
            "code": result.get("code"),
            "exit_code": code,
        }
    outcome: Json = {"state": "ok", "text": "", "changes": result.get("changes")}
    if result.get("changed"):
        outcome["state"] = "drifted" if check_mode else "changed"
    verdict = (result.get("verification") or {}).get("verdict")
    outcome["text"] = f"verified: {verdict}" if verdict else ""
    if outcome["state"] == "drifted":
        findings = (result.get("plan") or {}).get("findings", [])
        said = [row["summary"] for row in findings if row["severity"] != "info"]
        outcome["text"] = "; ".join(said[:3])
    return outcome


def about_machine(facts: Json | None) -> Json:
    """Return of a host's facts what a report shows."""
    if facts is None:
        return {}
    driver = facts.get("driver") or {}
    gpus = Counter(
        str(gpu.get("name") or gpu.get("compute_capability")) for gpu in facts["gpus"] or ()
    )
    return {
        "gpus": [
            f"{count} x {name}" if count > 1 else name for name, count in sorted(gpus.items())
        ],
        "driver": driver.get("version"),
        "cuda": driver.get("cuda"),
        "python": facts["python"]["version"],
        "onnxruntime": (facts.get("onnxruntime") or {}).get("version"),
    }


def report_of(plan: Json, hosts: dict[str, Json], *, date: str, check_mode: bool) -> Json:
    """Return the fleet's report: groups, hosts with their states, and how many are in which."""
    counts = Counter(row["state"] for row in hosts.values())
    groups = [
        {
            "name": name,
            "distribution": group["distribution"],
            "version": group["version"],
            "cuda": group["cuda"],
            "hosts": sorted(map(host_of, group["machines"])),
        }
        for group, name in zip(plan["groups"], group_names(plan["groups"]), strict=True)
    ]
    return {
        "schema": 1,
        "date": date,
        "check_mode": check_mode,
        "counts": {state: counts[state] for state in STATES if counts[state]},
        "groups": groups,
        "hosts": {name: hosts[name] for name in sorted(hosts)},
        "matrix": plan["matrix"],
    }


def summary(report: Json) -> str:
    """Return one line on all hosts: how many are in which state, and which have to be looked at."""
    said = []
    for state, count in report["counts"].items():
        names = [name for name, row in report["hosts"].items() if row["state"] == state]
        more = [f"{count - SHOWN} more"] if count > SHOWN else []
        listed = f" ({', '.join(names[:SHOWN] + more)})" if state in WRONG else ""
        said.append(f"{count} {state}{listed}")
    return ", ".join(said) or "no hosts"
