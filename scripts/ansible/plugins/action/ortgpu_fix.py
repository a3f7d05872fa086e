# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Bring the program to the host, and carry out its plan."""

from __future__ import annotations

from ansible_collections.ortgpu.fix.plugins.plugin_utils.action import HostAction


class ActionModule(HostAction):
    """Runs the module `ortgpu_fix`."""
