# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Bring the program to the host, and the wheels that it needs there, and carry out its plan."""

from __future__ import annotations

from pathlib import Path

from ansible.errors import AnsibleActionFail

from ansible_collections.ortgpu.fix.plugins.plugin_utils.action import HostAction
from ansible_collections.ortgpu.fix.plugins.plugin_utils.wheels import wheels_for


class ActionModule(HostAction):
    """Runs the module `ortgpu_fix`."""

    def on_host(self, arguments, task_vars):
        """Run the module; with `wheels` plan first, and bring only what that asks for."""
        folder = arguments.pop("wheels", None)
        if not folder or arguments.get("state", "present") != "present":
            return super().on_host(arguments, task_vars)
        if arguments.get("find_links"):
            raise AnsibleActionFail("parameters are mutually exclusive: wheels|find_links")
        checking, self._task.check_mode = self._task.check_mode, True
        try:
            planned = super().on_host(arguments, task_vars)
        finally:
            self._task.check_mode = checking
        if checking or planned.get("failed") or not planned.get("changed"):
            return planned
        shell = self._connection._shell
        try:
            wheels = wheels_for(Path(folder).expanduser(), planned["plan"], planned["target"])
        except OSError as error:
            raise AnsibleActionFail(f"{folder} cannot be read: {error.strerror}") from error
        self.send(*wheels)
        there = {"find_links": shell.tmpdir, "offline": True}
        return super().on_host({**arguments, **there}, task_vars)
