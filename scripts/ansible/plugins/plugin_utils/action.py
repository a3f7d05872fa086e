# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""What both action plugins do: bring the program to the host, run a module there, clean up."""

from __future__ import annotations

from pathlib import Path

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.ortgpu.fix.plugins.plugin_utils.bundle import BundleError, bundle_in

NO_PYTHON = 127
"""The exit code of a shell that does not find the interpreter."""


class HostAction(ActionBase):
    """Runs the module of its name on the host, with the program beside it."""

    TRANSFERS_FILES = True

    def run(self, tmp=None, task_vars=None):
        """Return what the module returns; the program goes with Ansible's temporary folder."""
        result = super().run(tmp, task_vars)
        shell = self._connection._shell
        if getattr(shell, "_IS_WINDOWS", False):
            raise AnsibleActionFail(
                "Windows hosts are not managed; write their facts there with `ortgpu-fix facts`, "
                "and plan for them with ortgpu_fix_more_facts"
            )
        try:
            bundle = bundle_in(Path(C.DEFAULT_LOCAL_TMP))
        except BundleError as error:
            raise AnsibleActionFail(str(error)) from error
        if shell.tmpdir is None:
            self._make_tmp_path()
        [there] = self.send(bundle)
        result.update(self.on_host({**self._task.args, "bundle": there}, task_vars))
        return result

    def send(self, *paths):
        """Bring files of the controller into the temporary folder; return their places there."""
        shell = self._connection._shell
        there = [shell.join_path(shell.tmpdir, path.name) for path in paths]
        for path, place in zip(paths, there, strict=True):
            self._transfer_file(str(path), place)
        self._fixup_perms2((shell.tmpdir, *there))
        return there

    def on_host(self, arguments, task_vars):
        """Run the module with `arguments` and return its result."""
        name = f"ortgpu.fix.{self._task.action.rpartition('.')[2]}"
        result = self._execute_module(
            module_name=name, module_args=arguments, task_vars=task_vars, wrap_async=False
        )
        if result.get("rc") == NO_PYTHON:
            result["msg"] = "ortgpu-fix needs Python 3.10 or newer on the host, and there is none"
        return result
