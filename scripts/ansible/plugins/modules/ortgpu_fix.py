#!/usr/bin/python
# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

from __future__ import annotations

DOCUMENTATION = r"""
module: ortgpu_fix
short_description: Make ONNX Runtime really use the NVIDIA GPU of a host
version_added: 0.1.0
description:
  - Brings one Python environment of a host to the set of onnxruntime-gpu and NVIDIA wheels that
    works there, verifies it with real inference, and puts everything back if that fails, as
    C(ortgpu-fix --apply) does.
  - The program comes from the controller into Ansible's temporary folder on the host, and goes with
    it. What C(state=absent) needs stays in the environment itself.
  - An environment that is right is left alone. What an interrupted run left is put back first.
author:
  - The authors of ortgpu-fix (!UNKNOWN)
options:
  python:
    description: The environment, an interpreter or the folder of a virtual environment.
    type: path
    required: true
  state:
    description:
      - V(present) brings the environment to the set.
      - V(checked) changes nothing, and fails where V(present) would change something.
      - V(absent) puts the environment back to before the last change, where there is one to undo.
    type: str
    choices: [present, checked, absent]
    default: present
  ort:
    description: The onnxruntime-gpu that it must be, such as V(1.26.0), V(<1.27) or V(latest).
    type: str
  cuda:
    description: The CUDA major that it must be, such as V(12).
    type: str
  torch:
    description:
      - V(keep) leaves an installed torch as it is, V(match) lets it move, anything else is the
        torch that must be there, such as V(2.7.1).
    type: str
    default: keep
  ignore_gpus:
    description: Compute capabilities of GPUs that need not run it, such as V(6.1).
    type: list
    elements: str
    default: []
  requirements:
    description:
      - Requirements that the set must satisfy too, such as V(nvidia-cudnn-cu12==9.10.2.21).
    type: list
    elements: str
    default: []
  autoload:
    description: Install the wheel that loads the CUDA libraries, so that applications need not.
    type: bool
    default: true
  provide:
    description: Install the stand-in named onnxruntime, for packages that require it by that name.
    type: bool
    default: true
  allow:
    description:
      - Apply although other packages lose a dependency (V(conflicts)), although what another build
        of onnxruntime has is lost (V(provider)), to a conda environment (V(conda)), or to an
        externally managed Python (V(system)).
    type: list
    elements: str
    choices: [conflicts, conda, provider, system]
    default: []
  verify:
    description: Run the real inference also where nothing has to be changed.
    type: bool
    default: false
  facts:
    description:
      - Facts of another machine, which the host stands for, such as the one that an image is built
        for. The verification goes as far as the host can, then.
    type: dict
  wheels:
    description:
      - A folder on the controller with wheels. Those that the host needs are brought there for the
        time of the change, and no network is used.
      - Where nothing has to be changed nothing is brought.
    type: path
  find_links:
    description: A folder of wheels that the host sees, such as a share; it is looked into first.
    type: path
  offline:
    description: Use no network on the host; with O(find_links).
    type: bool
    default: false
  index_url:
    description:
      - The package index. Without it the user's configuration of pip or uv on the host holds.
      - It may have credentials. It is handed on in the environment and never logged.
    type: str
  torch_index_url:
    description: A mirror of the package indexes of PyTorch, without credentials.
    type: str
  bundle:
    description: Internal. Where the action plugin put the program on the host.
    type: path
requirements:
  - ortgpu-fix, installed beside Ansible on the controller
  - Python 3.10 or newer on the host (any that is on the PATH, where Ansible's own is older)
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
  platform: {support: full, platforms: Linux}
notes:
  - Windows hosts are not managed. Write their facts there with C(ortgpu-fix facts), and plan for
    them with C(ortgpu_fix_more_facts) of the role M(ortgpu.fix.fleet).
seealso:
  - module: ortgpu.fix.ortgpu_fix_facts
"""

EXAMPLES = r"""
- name: Make the application's onnxruntime use the GPU
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv

- name: Fail where it does not any more
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv
    state: checked

- name: A certain release, from a private index
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv
    ort: 1.26.0
    index_url: "https://reader:{{ vaulted_token }}@packages.example/simple"

- name: Put everything back
  ortgpu.fix.ortgpu_fix:
    python: /opt/app/.venv
    state: absent
"""

RETURN = r"""
plan:
  description: The plan of C(ortgpu-fix --json), schema 1, without the releases that it rejects.
  returned: where it could be made
  type: dict
changes:
  description: What was installed and removed, or would be in check mode.
  returned: where there is a plan
  type: dict
  contains:
    install:
      description: Distributions with their versions, or requirements whose version was left to pip.
      type: list
      elements: str
      sample: [nvidia-cudnn-cu12 9.28.0.42, onnxruntime-gpu 1.26.0, "protobuf>=4.25.8"]
    uninstall:
      description: Distributions with the versions that were there.
      type: list
      elements: str
      sample: [onnxruntime 1.22.1]
target:
  description: The Python version of the environment, and the machine's architecture.
  returned: where there is a plan
  type: dict
  sample: {python: "3.11.7", machine: x86_64}
verification:
  description: What the real inference showed, as C(ortgpu-fix verify --json) says it.
  returned: where something was changed, or O(verify) asks for it
  type: dict
code:
  description: The program's code of the error, such as V(no-space) or V(verification-failed).
  returned: failure
  type: str
exit_code:
  description:
    - The program's exit code. 3 - no set works here. 4 - the change failed, and the environment is as
      it was. 5 - it could not be put back. 6 - the verification failed. 7 - something could not be
      read, and nothing was changed.
  returned: failure
  type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ortgpu.fix.plugins.module_utils.program import (
    COMMON,
    FIXABLE,
    HEALTHY,
    IMPOSSIBLE,
    Program,
    ProgramError,
    fail,
)

SPEC = dict(
    COMMON,
    state={"type": "str", "choices": ["present", "checked", "absent"], "default": "present"},
    ort={"type": "str"},
    cuda={"type": "str"},
    torch={"type": "str", "default": "keep"},
    ignore_gpus={"type": "list", "elements": "str", "default": []},
    requirements={"type": "list", "elements": "str", "default": []},
    autoload={"type": "bool", "default": True},
    provide={"type": "bool", "default": True},
    allow={
        "type": "list",
        "elements": "str",
        "choices": ["conflicts", "conda", "provider", "system"],
        "default": [],
    },
    verify={"type": "bool", "default": False},
    wheels={"type": "path"},
    find_links={"type": "path"},
    offline={"type": "bool", "default": False},
    index_url={"type": "str", "no_log": True},
    torch_index_url={"type": "str"},
)
UP_TO_THE_DRIVER = ("no-gpu", "no-driver", "driver-too-old")
"""Verdicts that suffice where the host stands for another machine."""
UNFINISHED = "unfinished"
UNDOABLE = ("kept", UNFINISHED)
"""What the fact `python.change` says of a change that `undo` can put back."""


def wishes(params, requirements_file):
    """Return the flags of the program for what the plan must respect."""
    flags = []
    for name in ("ort", "cuda", "torch", "torch_index_url"):
        if params[name]:
            flags += ["--" + name.replace("_", "-"), params[name]]
    for capability in params["ignore_gpus"]:
        flags += ["--ignore-gpu", capability]
    for what in params["allow"]:
        flags += ["--allow", what]
    if requirements_file:
        flags += ["--requirement", requirements_file]
    flags += [] if params["autoload"] else ["--no-autoload"]
    flags += [] if params["provide"] else ["--no-provide"]
    return flags


def sources(params):
    """Return the flags and the environment for where wheels come from."""
    flags = ["--find-links", params["find_links"]] if params["find_links"] else []
    flags += ["--offline"] if params["offline"] else []
    # Not on the command line, which every user of the host can read:
    index = params["index_url"]
    return flags, {"PIP_INDEX_URL": index, "UV_INDEX_URL": index} if index else {}


def changes(plan, facts):
    """Return what a plan installs and removes, with the versions that are there."""
    versions = {row["name"]: row["version"] for row in facts["packages"]}
    coming = [*plan.get("install", ()), *plan.get("companions", ())]
    names = {row["name"] for row in coming}
    going = names.intersection(versions) | set(plan.get("uninstall", ()))
    return {
        "install": sorted(f"{row['name']} {row['version']}" for row in coming)
        + sorted(plan.get("requires", ())),
        "uninstall": sorted(f"{name} {versions.get(name, '?')}" for name in going),
    }


def as_diff(done):
    """Return `changes` as Ansible shows them with --diff."""
    before, after = ("".join(f"{line}\n" for line in done[key]) for key in ("uninstall", "install"))
    return {"before": before, "after": after}


def why_not(plan):
    """Return one sentence on a plan that says that the environment is not right, or cannot be."""
    worst = [row for row in plan["findings"] if row["severity"] == "error"] or plan["findings"]
    said = "; ".join(row["summary"] for row in worst[:3]) or "the environment is not as planned"
    gains = [f"{row['change']} ({row['gains']})" for row in plan.get("unlock", ())]
    return said + (". What would change that: " + ", ".join(gains) if gains else "")


def brief(plan):
    """Return a plan without the releases that it rejects, for an answer that is shown at once."""
    return {key: value for key, value in plan.items() if key != "rejected"}


def undo(module, program):
    """Put the environment back to before the last change."""
    change = program.run("facts").document["python"].get("change")
    if change not in UNDOABLE:
        module.exit_json(changed=False)
    if not module.check_mode:
        program.run("undo", "--yes")
    module.exit_json(changed=True)


def bring(module, program):
    """Plan, and do what is planned unless only that is asked."""
    params = module.params
    lines = params["requirements"]
    file = program.write("requirements.txt", "\n".join([*lines, ""])) if lines else None
    flags = wishes(params, file)
    facts = program.run("facts", *program.machine).document
    interrupted = facts["python"].get("change") == UNFINISHED
    planned = program.run(*program.machine, *flags)
    plan = planned.document
    target = {"python": facts["python"]["version"], "machine": facts["platform"]["machine"]}
    values = {"plan": brief(plan), "changes": changes(plan, facts), "target": target}
    if planned.code == IMPOSSIBLE:
        module.fail_json(msg=why_not(plan), exit_code=planned.code, code="impossible", **values)
    wrong = planned.code == FIXABLE or interrupted
    if params["state"] == "checked" and wrong:
        module.fail_json(msg=why_not(plan), exit_code=FIXABLE, code="fixable", **values)
    if wrong:
        values["diff"] = as_diff(values["changes"])
    if wrong and not module.check_mode:
        more, environ = sources(params)
        try:
            applied = program.run("--apply", "--yes", *program.machine, *flags, *more, **environ)
        except ProgramError as error:
            fail(module, error, **values)
        values["verification"] = applied.document.get("verification")
        if applied.code == IMPOSSIBLE:
            module.fail_json(msg=why_not(plan), exit_code=IMPOSSIBLE, code="impossible", **values)
    elif params["verify"] and not module.check_mode:
        verified = program.run("verify")
        values["verification"] = verified.document
        enough = program.machine and verified.document["verdict"] in UP_TO_THE_DRIVER
        if verified.code != HEALTHY and not enough:
            module.fail_json(
                msg=f"the verification says {verified.document['verdict']}",
                exit_code=verified.code,
                code="verification-failed",
                **values,
            )
    module.exit_json(changed=wrong, **values)


def main():
    module = AnsibleModule(
        argument_spec=SPEC,
        supports_check_mode=True,
        mutually_exclusive=[("wheels", "find_links")],
    )
    try:
        program = Program(module)
        if module.params["state"] == "absent":
            undo(module, program)
        bring(module, program)
    except ProgramError as error:
        fail(module, error)


if __name__ == "__main__":
    main()
