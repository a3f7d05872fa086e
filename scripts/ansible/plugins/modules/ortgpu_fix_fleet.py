#!/usr/bin/python
# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

# The action plugin of this name does it all, on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: ortgpu_fix_fleet
short_description: Plan for all hosts of a play on the controller, and report on them
version_added: 0.1.0
description:
  - Makes one plan for all hosts of the play from the facts that they registered, with the smallest
    split into groups where one set of wheels cannot serve all, and keeps a report of what came of
    it. Runs on the controller; no host is touched.
  - The role M(ortgpu.fix.fleet) calls it; other playbooks seldom need it.
author:
  - The authors of ortgpu-fix (!UNKNOWN)
options:
  folder:
    description:
      - The folder on the controller for the fleet's files. C(facts) has the facts of each host,
        C(gpu.txt) or C(gpu.cuda12.txt) and so on are the locks, C(wheels) are the wheels, and
        C(plan.json), C(report.json) and C(report.html) say what was planned and what came of it.
        Required where O(state) is V(planned) or V(reported).
    type: path
  state:
    description:
      - V(planned) writes facts, plan, locks and wheels. In check mode no locks and no wheels.
      - V(reported) adds what came of the hosts of this batch to the report, also in check mode.
      - V(left_out) ends the run of a host as unreachable, where its facts could not be read because
        of that, so that the recap tells it from hosts that failed.
    type: str
    choices: [planned, reported, left_out]
    required: true
  hosts:
    description:
      - The hosts to plan for or to report on. Required where O(state) is V(planned) or V(reported).
    type: list
    elements: str
  more_facts:
    description: Facts files of machines that are no hosts here, such as those with Windows.
    type: list
    elements: path
    default: []
  flags:
    description: Flags of C(ortgpu-fix) for the plan, the locks and the download, such as V(--with-cpu).
    type: list
    elements: str
    default: []
  requirements:
    description: Requirements that every set must satisfy too.
    type: list
    elements: str
    default: []
  download:
    description: Fetch all wheels into the folder, and check them.
    type: bool
    default: true
  index_url:
    description: The package index that the controller uses. It may have credentials.
    type: str
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
- name: Plan for all hosts whose facts were registered as ortgpu_fix_seen
  ortgpu.fix.ortgpu_fix_fleet:
    folder: /srv/ortgpu-fleet
    state: planned
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
hosts:
  description: What to install where, by host.
  returned: O(state=planned)
  type: dict
  sample:
    gpu1: {group: cuda12, requirements: [onnxruntime-gpu==1.26.0, nvidia-cudnn-cu12==9.28.0.42]}
without_gpu:
  description: The hosts without a GPU, which get nothing.
  returned: O(state=planned)
  type: list
  elements: str
impossible:
  description: The hosts on which no release works, with the reasons.
  returned: O(state=planned)
  type: dict
  sample: {old1: "it is built for CUDA 11, which needs driver 450.36.06 or newer"}
msg:
  description: One line on all hosts, with the names of those that somebody has to look at.
  returned: success
  type: str
  sample: 38 ok, 1 failed (gpu03), 1 unreachable (gpu07)
counts:
  description: How many hosts are in which state.
  returned: O(state=reported)
  type: dict
  sample: {ok: 38, failed: 1, unreachable: 1}
"""
