#!/usr/bin/python
# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

from __future__ import annotations

DOCUMENTATION = r"""
module: ortgpu_fix_facts
short_description: Read the driver, GPUs and environment of a host
version_added: 0.1.0
description:
  - Reads the NVIDIA driver, the GPUs, the CUDA libraries and one Python environment of a host, as
    C(ortgpu-fix facts) does, and sets them as the fact C(ortgpu_fix).
  - The program is copied from the controller into Ansible's temporary directory on the host, and
    removed with it. Nothing stays on the host.
  - The facts contain no user names, host names, tokens or home directories.
author:
  - The authors of ortgpu-fix (!UNKNOWN)
options:
  python:
    description: Python interpreter or virtual environment directory to read.
    type: path
    required: true
  facts:
    description:
      - Facts of another machine that the host is prepared for, such as the one that an image is built
        for. Only the environment is then read on the host.
    type: dict
  bundle:
    description: Internal. Where the action plugin put the program on the host.
    type: path
requirements:
  - ortgpu-fix, installed next to Ansible on the controller
  - Python 3.10 or newer on the host (any that is on the PATH, where Ansible's own is older)
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.facts
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
  facts: {support: full}
  platform: {support: full, platforms: Linux}
seealso:
  - module: ortgpu.fix.ortgpu_fix
"""

EXAMPLES = r"""
- name: Read driver, GPUs and the environment of the application
  ortgpu.fix.ortgpu_fix_facts:
    python: /opt/app/.venv

- name: Show the driver
  ansible.builtin.debug:
    msg: "CUDA {{ ansible_facts.ortgpu_fix.driver.cuda }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, as the fact C(ortgpu_fix).
  returned: success
  type: dict
  contains:
    ortgpu_fix:
      description: The output of C(ortgpu-fix facts), schema 1.
      type: dict
      sample:
        schema: 1
        driver: {version: "535.104.12", cuda: "12.2", error: null}
        gpus: [{name: NVIDIA A100-SXM4-80GB, compute_capability: "8.0", memory_mib: 81920}]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ortgpu.fix.plugins.module_utils.program import (
    COMMON,
    Program,
    ProgramError,
    fail,
)


def main():
    module = AnsibleModule(argument_spec=dict(COMMON), supports_check_mode=True)
    try:
        program = Program(module)
        answer = program.run("facts", *program.machine)
    except ProgramError as error:
        fail(module, error)
    module.exit_json(changed=False, ansible_facts={"ortgpu_fix": answer.document})


if __name__ == "__main__":
    main()
