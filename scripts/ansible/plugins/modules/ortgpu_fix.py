#!/usr/bin/python
# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

from __future__ import annotations

DOCUMENTATION = r"""
module: ortgpu_fix
short_description: Make ONNX Runtime use the NVIDIA GPU of a host
version_added: 0.1.0
description:
  - Installs compatible onnxruntime-gpu and NVIDIA wheels into one Python environment of a host,
    verifies them with real inference, and restores the environment if that fails, as
    C(ortgpu-fix --apply) does.
  - The program is copied from the controller into Ansible's temporary directory on the host, and
    removed with it. What C(state=absent) needs stays in the environment.
  - A healthy environment is not changed. An interrupted run is rolled back first.
author:
  - The authors of ortgpu-fix (!UNKNOWN)
options:
  python:
    description: Python interpreter or virtual environment directory.
    type: path
    required: true
  state:
    description:
      - V(present) installs the packages.
      - V(absent) undoes the last change, if there is one.
    type: str
    choices: [present, absent]
    default: present
  flags:
    description:
      - Options of C(ortgpu-fix --apply), as C(ortgpu-fix help apply) lists them, such as
        V(--ort=1.26.0), V(--torch=match), V(--allow=conda), V(--offline) or
        V(--find-links=/srv/wheels).
    type: list
    elements: str
    default: []
  requirements:
    description:
      - Additional requirements, such as V(nvidia-cudnn-cu12==9.10.2.21).
    type: list
    elements: str
    default: []
  facts:
    description:
      - Facts of another machine that the host is prepared for, such as the one that an image is built
        for. The verification then goes as far as the host allows.
    type: dict
  index_url:
    description:
      - The package index. Without it, the user's configuration of pip or uv on the host applies.
      - The three URLs may contain credentials. They are passed in the environment and never
        logged.
    type: str
  torch_index_url:
    description: A mirror of the PyTorch package indexes.
    type: str
  tensorrt_index_url:
    description: A mirror of NVIDIA's package index.
    type: str
  bundle:
    description: Internal. Where the action plugin put the program on the host.
    type: path
requirements:
  - ortgpu-fix, installed next to Ansible on the controller
  - Python 3.10 or newer on the host (any that is on the PATH, where Ansible's own is older)
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
  platform: {support: full, platforms: Linux}
notes:
  - Windows hosts are not managed. Write their facts with C(ortgpu-fix facts) on the host, and plan
    for them with C(ortgpu_fix_more_facts) of the role M(ortgpu.fix.fleet).
  - The difference that C(--diff) shows is the program's plan.
seealso:
  - module: ortgpu.fix.ortgpu_fix_facts
"""

EXAMPLES = r"""
- name: Make the application's onnxruntime use the GPU
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv

- name: Fail if it no longer does
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv
  check_mode: true
  register: looked
  failed_when: looked is failed or looked is changed

- name: Install a certain version from a private index
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv
    flags: [--ort=1.26.0]
    index_url: "https://reader:{{ vaulted_token }}@packages.example/simple"

- name: Undo the last change
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv
    state: absent
"""

RETURN = r"""
plan:
  description: The document of C(ortgpu-fix --json), or of C(ortgpu-fix --apply --json) after a change.
  returned: if a plan could be made
  type: dict
code:
  description: The program's error code, such as V(no-space) or V(verification-failed).
  returned: failure
  type: str
exit_code:
  description:
    - The program's exit code. 1 - only a person can fix it. 3 - no packages work on the host. 4 - the
      change failed, and the environment was restored. 5 - it could not be restored. 6 - the GPU
      check failed. 7 - something could not be read, and nothing was changed.
  returned: failure
  type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ortgpu.fix.plugins.module_utils.program import (
    COMMON,
    Program,
    ProgramError,
    check_flags,
    fail,
)

INDEXES = {
    "index_url": ("PIP_INDEX_URL", "UV_INDEX_URL"),
    "torch_index_url": ("ORTGPU_FIX_TORCH_INDEX_URL",),
    "tensorrt_index_url": ("ORTGPU_FIX_TENSORRT_INDEX_URL",),
}
"""The variables that hand an address on, which may have credentials: every user of the host can read
a command line."""
SPEC = dict(
    COMMON,
    state={"type": "str", "choices": ["present", "absent"], "default": "present"},
    flags={"type": "list", "elements": "str", "default": []},
    requirements={"type": "list", "elements": "str", "default": []},
    index_url={"type": "str", "no_log": True},
    torch_index_url={"type": "str", "no_log": True},
    tensorrt_index_url={"type": "str", "no_log": True},
)


def undo(module, program):
    """Put the environment back to before the last change."""
    if module.check_mode:
        change = program.run("facts").document["python"].get("change")
        module.exit_json(changed=change not in (None, "stale"))
    try:
        program.run("undo", "--yes")
    except ProgramError as error:
        if error.values.get("code") != "nothing-to-undo":
            raise
        module.exit_json(changed=False)
    module.exit_json(changed=True)


def bring(module, program):
    """Plan, and carry the plan out unless only that is asked."""
    params = module.params
    check_flags(params["flags"])
    flags = [*program.machine, *params["flags"]]
    if params["requirements"]:
        lines = "\n".join([*params["requirements"], ""])
        flags += ["--requirement", program.write("requirements.txt", lines)]
    answer = program.run(*flags)
    values = {"plan": answer.document, "changed": answer.document["verdict"] == "fixable"}
    if values["changed"]:
        if module._diff:
            values["diff"] = {"prepared": program.text(*flags)}
        if module.check_mode:
            module.exit_json(**values)
        indexes = {
            variable: params[name]
            for name, variables in INDEXES.items()
            for variable in variables
            if params[name]
        }
        try:
            answer = program.run("--apply", "--yes", *flags, **indexes)
        except ProgramError as error:
            fail(module, error, plan=answer.document)
        values["plan"] = answer.document
    if answer.code != 0:
        findings = values["plan"]["findings"]
        said = [row["summary"] for row in findings if row["severity"] == "error"]
        values["code"] = values["plan"]["verdict"]
        module.fail_json(msg="; ".join(said), exit_code=answer.code, **values)
    module.exit_json(**values)


def main():
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    try:
        program = Program(module)
        if module.params["state"] == "absent":
            undo(module, program)
        bring(module, program)
    except ProgramError as error:
        fail(module, error)


if __name__ == "__main__":
    main()
