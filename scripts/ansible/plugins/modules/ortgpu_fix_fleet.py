#!/usr/bin/python
# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

# The action plugin of this name does it all, on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: ortgpu_fix_fleet
short_description: Plan for all hosts of a play on the controller
version_added: 0.1.0
description:
  - Makes one plan for all hosts of the play, from the facts that
    M(ortgpu.fix.ortgpu_fix_facts) set, with as few groups as possible if the same packages do not
    work on all hosts. Runs on the controller; no host is changed, and no file is left.
  - The role M(ortgpu.fix.fleet) calls it; other playbooks seldom need it.
author:
  - The authors of ortgpu-fix (!UNKNOWN)
options:
  flags:
    description:
      - Options of C(ortgpu-fix --apply) for the plan, the same as for M(ortgpu.fix.ortgpu_fix) on the
        hosts.
    type: list
    elements: str
    default: []
  requirements:
    description: Additional requirements that the packages must satisfy.
    type: list
    elements: str
    default: []
  more_facts:
    description: Facts files of machines that are not hosts of the play, such as Windows machines.
    type: list
    elements: path
    default: []
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
  platform: {support: full, platforms: "any, on the controller"}
seealso:
  - module: ortgpu.fix.ortgpu_fix
  - module: ortgpu.fix.ortgpu_fix_facts
"""

EXAMPLES = r"""
- name: Plan for all hosts whose facts were read
  ortgpu.fix.ortgpu_fix_fleet:
    flags: [--cuda=12]
  register: ortgpu_fix_plan
  run_once: true
"""

RETURN = r"""
hosts:
  description: What to install where, by host, as O(ortgpu.fix.ortgpu_fix#module:requirements).
  returned: success
  type: dict
  sample:
    gpu1: {requirements: [onnxruntime-gpu==1.26.0, nvidia-cudnn-cu12==9.28.0.42]}
without_gpu:
  description: The hosts without a GPU, which get nothing.
  returned: success
  type: list
  elements: str
impossible:
  description: The hosts on which no version works, with the reasons.
  returned: success
  type: dict
  sample: {old1: "needs driver 450.36.06 or newer for CUDA 11"}
msg:
  description: One line about all hosts.
  returned: success
  type: str
  sample: "onnxruntime-gpu 1.26.0 for CUDA 12: gpu1, gpu2; no GPU: web1"
"""
