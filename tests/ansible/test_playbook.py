"""The playbook on three hosts of this machine, with real Ansible, stand-in wheels and drivers.

Each host is a local connection whose Python begins with an environment of its own: home, driver,
temporary folder. The wheels are stand-ins that the controller's matrix names, what they require is
real.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from drivers import A100, RTX3090
from local_hosts import Fleet, add_host

from support.standin_fleet import Kind, bring_wheels, make_controller
from support.standin_wheels import state_of

pytestmark = [pytest.mark.slow, pytest.mark.online, pytest.mark.timeout(1800)]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def changed(said: str) -> set[str]:
    """Return the hosts that the recap counts as changed."""
    return set(re.findall(r"^(\w+) .*changed=1", said[said.index("PLAY RECAP") :], re.MULTILINE))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, stubs: Path) -> Fleet:
    """Three hosts, two with a GPU each, before any run."""
    pytest.importorskip("ansible.release")
    folder = tmp_path_factory.mktemp("fleet")
    controller = make_controller(folder / "controller", Path(sys.executable))
    for name, card in (("gpu1", A100), ("gpu2", RTX3090), ("web1", None)):
        (folder / "hosts" / name).mkdir(parents=True)
        add_host(folder / "hosts" / name, None if card is None else (stubs, card))
    kinds = [
        Kind(
            name=card.name,
            driver="535.104.12",
            cuda=12020,
            gpu=card.name,
            capability=card.capability,
            python=VERSION,
        )
        for card in (A100, RTX3090)
    ]
    bring_wheels(controller, kinds, folder)
    return Fleet(folder=folder, controller=controller)


UNDO = """\
- name: Put everything back
  hosts: gpu2
  gather_facts: false
  tasks:
    - name: Put back
      ortgpu.fix.ortgpu_fix:
        python: "{{ ortgpu_fix_python }}"
        state: absent
"""


def test_a_host_whose_verification_fails_is_put_back_alone(fleet: Fleet) -> None:
    """The others get their set, a host without a GPU is left alone, and undo brings all back."""
    python = fleet.folder / "hosts" / "gpu1" / "python"
    python.write_text(python.read_text().replace("export ", "export ORTGPU_STAND_IN_RESULT=wrong "))
    before = {host: state_of(fleet.venv(host)) for host in ("gpu1", "gpu2", "web1")}
    of_playbook = {"ortgpu_fix_waves": ["100%"], "ortgpu_fix_max_fail_percentage": 60}

    code, said = fleet.run("-e", json.dumps(of_playbook))

    assert code != 0
    assert changed(said) == {"gpu2"}
    assert "no GPU: web1" in said
    assert '"exit_code": 4' in said
    assert {host: state_of(fleet.venv(host)) for host in ("gpu1", "web1")} == {
        host: before[host] for host in ("gpu1", "web1")
    }
    names = {name for name in fleet.installed("gpu2") if name.startswith(("nvidia", "onnx"))}
    assert len(names) > 6
    assert not fleet.left_behind()

    book = fleet.folder / "undo.yml"
    book.write_text(UNDO)
    code, said = fleet.run(book=str(book))
    assert code == 0, said[-3000:]
    assert said.count("changed: [gpu2]") == 1
    assert "onnxruntime-1.22.1" in fleet.installed("gpu2")
