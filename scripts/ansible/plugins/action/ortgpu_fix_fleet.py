# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Ask the program on the controller for one plan for all hosts of a play."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.ortgpu.fix.plugins.module_utils.program import ProgramError, check_flags

SPEC = {
    "flags": {"type": "list", "elements": "str", "default": []},
    "requirements": {"type": "list", "elements": "str", "default": []},
    "more_facts": {"type": "list", "elements": "path", "default": []},
}
HOST = "host:"
"""Begins the name of a facts file, with the number of its host: whatever the host is called."""


class ActionModule(ActionBase):
    """Does what the module `ortgpu_fix_fleet` documents."""

    def run(self, tmp=None, task_vars=None):
        """Return what each host gets."""
        result = super().run(tmp, task_vars)
        asked = self.validate_argument_spec(argument_spec=SPEC)[1]
        hosts = {
            host: task_vars["hostvars"].raw_get(host)["ansible_facts"]["ortgpu_fix"]
            for host in task_vars["ansible_play_hosts"]
        }
        with tempfile.TemporaryDirectory(dir=C.DEFAULT_LOCAL_TMP) as folder:
            plan = _plan(Path(folder), hosts, asked)
        return {**result, "changed": False, **meaning(plan, list(hosts))}


def _plan(folder, hosts, asked):
    """Return the program's document for these facts; nothing is written but into `folder`."""
    try:
        check_flags(asked["flags"])
    except ProgramError as error:
        raise AnsibleActionFail(str(error)) from error
    (folder / "facts").mkdir()
    for number, facts in enumerate(hosts.values()):
        file = folder / "facts" / f"{HOST}{number}.json"
        file.write_text(json.dumps(facts), encoding="utf-8")
    argv = [sys.executable, "-I", "-m", "ortgpu_fix", "--json", *asked["flags"]]
    for place in (folder / "facts", *asked["more_facts"]):
        argv += ["--facts", str(place)]
    if asked["requirements"]:
        file = folder / "requirements.txt"
        file.write_text("\n".join([*asked["requirements"], ""]), encoding="utf-8")
        argv += ["--requirement", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise AnsibleActionFail(
            f"ortgpu-fix on the controller ended with exit code {done.returncode}: {said[-1]}"
        ) from None
    if "error" in document:
        error = document["error"]
        raise AnsibleActionFail(". ".join(filter(None, (error["message"], error.get("hint")))))
    return document


def meaning(plan, names):
    """Return what the program's plan for a fleet says of each host, by its number in `names`."""

    known = {f"{HOST}{number}": name for number, name in enumerate(names)}

    def called(machines):
        found = (machine.rpartition("/")[2] for machine in machines)
        return sorted(known[machine] for machine in found if machine in known)

    hosts, said = {}, []
    for group in plan["groups"]:
        for target in group["targets"] if group["cuda"] else ():
            packages = target["selection"]["packages"]
            pins = [f"{row['name']}=={row['version']}" for row in packages]
            hosts.update({host: {"requirements": pins} for host in called(target["machines"])})
        what = f"{group['distribution']} {group['version']}"
        what += f" for CUDA {group['cuda']}" if group["cuda"] else ""
        said.append(f"{what}: {', '.join(called(group['machines']))}")
    without = called(plan["without_gpu"])
    impossible = {
        host: "; ".join(why["text"] for why in row["reasons"])
        for row in plan["impossible"]
        for host in called([row["machine"]])
    }
    said += [f"no GPU: {', '.join(without)}"] if without else []
    said += [f"impossible: {', '.join(impossible)}"] if impossible else []
    return {
        "hosts": hosts,
        "without_gpu": without,
        "impossible": impossible,
        "msg": "; ".join(said) or "no host has a plan",
    }
