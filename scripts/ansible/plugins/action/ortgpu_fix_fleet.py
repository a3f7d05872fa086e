# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Plan for all hosts of a play, and report on them, on the controller."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.ortgpu.fix.plugins.plugin_utils import fleet
from ansible_collections.ortgpu.fix.plugins.plugin_utils.page import page_of

SPEC = {
    "folder": {"type": "path"},
    "state": {"type": "str", "choices": ["planned", "reported", "left_out"], "required": True},
    "hosts": {"type": "list", "elements": "str"},
    "more_facts": {"type": "list", "elements": "path", "default": []},
    "flags": {"type": "list", "elements": "str", "default": []},
    "requirements": {"type": "list", "elements": "str", "default": []},
    "download": {"type": "bool", "default": True},
    "index_url": {"type": "str", "no_log": True},
}
NEEDED = [("state", state, ("folder", "hosts")) for state in ("planned", "reported")]
SEEN, DONE = "ortgpu_fix_seen", "ortgpu_fix_done"
"""What the role registers on each host."""
UNREAD = {"failed": True, "msg": "it failed before its facts were read"}
LOCK = "gpu.txt"


class ActionModule(ActionBase):
    """Does what the module `ortgpu_fix_fleet` documents."""

    def run(self, tmp=None, task_vars=None):
        """Return the groups of the hosts, or how many are in which state."""
        result = super().run(tmp, task_vars)
        arguments = self.arguments = self.validate_argument_spec(
            argument_spec=SPEC, required_if=NEEDED
        )[1]
        self.hostvars = task_vars["hostvars"]
        if arguments["state"] == "left_out":
            seen = self._registered(task_vars["inventory_hostname"], SEEN) or {}
            return result | {"unreachable": True, "msg": seen.get("msg") or "unreachable"}
        self.folder = Path(arguments["folder"]).expanduser().absolute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            step = self._plan if arguments["state"] == "planned" else self._report
            result.update(step())
        except OSError as error:
            raise AnsibleActionFail(f"{error.filename or self.folder}: {error.strerror}") from error
        return result

    def _registered(self, host, name):
        return self.hostvars.raw_get(host).get(name)

    def _plan(self):
        """Write facts, plan, locks and wheels; return what each host gets."""
        flags = self.arguments["flags"]
        if self.arguments["requirements"]:
            _write(self.folder / "requirements.txt", "\n".join(self.arguments["requirements"]))
            flags = [*flags, "--requirement", "requirements.txt"]
        seen = {host: self._registered(host, SEEN) for host in self.arguments["hosts"]}
        facts = self._write_facts(seen)
        files = [fleet.file_of(host) for host in sorted(facts)]
        plan = {"groups": [], "without_gpu": [], "impossible": [], "matrix": {"date": "unknown"}}
        if files:
            plan = self._program(*flags, files=files)
        if len(files) == 1:
            [document] = facts.values()
            plan = fleet.as_fleet(plan, files[0].removesuffix(".json"), document)
        assigned = fleet.assigned(plan, torch="--torch" in flags)
        hosts = fleet.planned_hosts(plan, facts, assigned, managed=set(seen))
        for host, result in seen.items():
            if host not in facts:
                hosts[host] = fleet.outcome_of(result or UNREAD, check_mode=False)
        _write(self.folder / "plan.json", json.dumps(plan, indent=1))
        report = self._write_report(plan, hosts)
        if files and not self._task.check_mode:
            self._lock(plan, flags)
        left = {host: hosts[host] for host in seen if host in facts and host not in assigned}
        return {
            "changed": False,
            "msg": fleet.summary(report),
            "hosts": {host: assigned[host] for host in seen if host in assigned},
            "without_gpu": [host for host in left if left[host]["state"] == "without GPU"],
            "impossible": {
                host: row["text"] for host, row in left.items() if row["state"] == "impossible"
            },
        }

    def _write_facts(self, seen):
        """Write the facts of each host that has some, and of the machines besides; return them."""
        found = {
            host: result["ansible_facts"]["ortgpu_fix"]
            for host, result in seen.items()
            if result and not result.get("failed") and not result.get("unreachable")
        }
        for file in map(Path, self.arguments["more_facts"]):
            name = fleet.host_of(file.stem)
            if name in seen or name in found:
                raise AnsibleActionFail(f"{file}: another machine is called so; rename the file")
            try:
                found[name] = json.loads(file.expanduser().read_text(encoding="utf-8"))
            except ValueError as error:
                raise AnsibleActionFail(f"{file} is no JSON: {error}") from error
        folder = self.folder / "facts"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, facts in found.items():
            text = json.dumps(facts, indent=1)
            (folder / fleet.file_of(name)).write_text(text, encoding="utf-8")
        return found

    def _lock(self, plan, flags):
        """Write the locks of all groups, and fetch what they name."""
        able = fleet.servable(plan, with_cpu="--with-cpu" in flags)
        files = sorted(f"{machine}.json" for machine in able)
        if len(files) == 1:  # alone it might keep what is installed there: the plan says what it is
            [release] = [row["version"] for row in plan["groups"] if row["machines"]]
            flags = [*flags, "--ort", release]
        for old in self.folder.glob("gpu*.txt"):
            old.unlink()
        if files:
            self._program("lock", "-o", LOCK, "-d", "wheels", *flags, files=files)
        if files and self.arguments["download"]:
            self._program("download", "-d", "wheels", *flags, files=files)

    def _program(self, *arguments, files):
        """Run the program on the controller for the machines in facts `files`."""
        argv = [sys.executable, "-I", "-m", "ortgpu_fix", *arguments, "--json"]
        for file in files:
            argv += ["--facts", f"facts/{file}"]
        index = self.arguments["index_url"]
        environ = {"PIP_INDEX_URL": index, "UV_INDEX_URL": index} if index else {}
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            document = json.loads(done.stdout)
        except ValueError:
            said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
            raise AnsibleActionFail(
                f"ortgpu-fix on the controller ended with exit code {done.returncode} and said: "
                f"{said[-1]}"
            ) from None
        if "error" in document:
            error = document["error"]
            raise AnsibleActionFail(". ".join(filter(None, (error["message"], error.get("hint")))))
        return document

    def _report(self):
        """Add what came of the hosts of this batch; return how many are in which state."""
        plan = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        hosts = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))["hosts"]
        for host in self.arguments["hosts"]:
            result = self._registered(host, DONE)
            if result and not result.get("skipped"):
                outcome = fleet.outcome_of(result, check_mode=self._task.check_mode)
                hosts[host] = {**hosts.get(host, {}), **outcome}
        report = self._write_report(plan, hosts)
        msg = f"{fleet.summary(report)}. The report: {self.folder / 'report.html'}"
        return {"changed": False, "counts": report["counts"], "msg": msg}

    def _write_report(self, plan, hosts):
        date = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
        report = fleet.report_of(plan, hosts, date=date, check_mode=self._task.check_mode)
        _write(self.folder / "report.json", json.dumps(report, indent=1))
        _write(self.folder / "report.html", page_of(report))
        return report


def _write(path, text):
    """Write a file as a whole, or not."""
    making = path.with_name(f".{path.name}.new")
    making.write_text(text + "\n", encoding="utf-8")
    making.replace(path)
