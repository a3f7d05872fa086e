"""The playbook on three hosts of this machine, with real Ansible, stand-in wheels and drivers.

Each host is a local connection whose Python begins with an environment of its own: home, driver,
temporary folder. The wheels are stand-ins that the controller's matrix names, what they require is
real.
"""

from __future__ import annotations

import json
import re
import shutil
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


def test_a_fleet_from_the_cpu_build_to_its_set_and_back(fleet: Fleet) -> None:
    code, said = fleet.run("--check", "--diff")
    assert code == 0, said[-3000:]
    assert changed(said) == {"gpu1", "gpu2"}
    assert "  - onnxruntime           1.22.1" in said
    assert "  + onnxruntime-gpu" in said
    assert "onnxruntime-1.22.1" in fleet.installed("gpu1")
    assert not fleet.left_behind()

    web = state_of(fleet.venv("web1"))
    code, said = fleet.run()
    assert code == 0, said[-3000:]
    assert changed(said) == {"gpu1", "gpu2"}
    assert "no GPU: web1" in said
    sets = [
        {name for name in fleet.installed(host) if name.startswith(("nvidia", "onnxruntime_gpu"))}
        for host in ("gpu1", "gpu2")
    ]
    assert sets[0] == sets[1]
    assert len(sets[0]) > 5
    assert state_of(fleet.venv("web1")) == web, "a host without a GPU is left alone"
    assert not fleet.left_behind()

    before = {host: state_of(fleet.venv(host)) for host in ("gpu1", "gpu2")}
    code, said = fleet.run()
    assert code == 0, said[-3000:]
    assert changed(said) == set()
    assert {host: state_of(fleet.venv(host)) for host in before} == before

    # The environment of gpu1, which was first, is gone; gpu2 has drifted.
    cudnn = next(fleet.venv("gpu2").glob("lib/python*/site-packages/nvidia_cudnn*.dist-info"))
    shutil.rmtree(cudnn)
    fleet.venv("gpu1").rename(fleet.folder / "away")
    code, said = fleet.run()
    assert code != 0
    assert changed(said) == {"gpu2"}, "a host that cannot be read is in no wave"
    (fleet.folder / "away").rename(fleet.venv("gpu1"))

    book = fleet.folder / "undo.yml"
    book.write_text(UNDO)
    code, said = fleet.run(book=str(book))
    assert code == 0, said[-3000:]
    assert [said.count(f"changed: [{host}]") for host in ("gpu1", "gpu2")] == [2, 2], said
    assert "onnxruntime-1.22.1" in fleet.installed("gpu1")


UNDO = """\
- name: Put everything back, twice
  hosts: gpu*
  gather_facts: false
  tasks:
    - name: Put back
      ortgpu.fix.ortgpu_fix:
        python: "{{ ortgpu_fix_python }}"
        state: absent
    - name: Put back what is not there to be put back
      ortgpu.fix.ortgpu_fix:
        python: "{{ ortgpu_fix_python }}"
        state: absent
      register: again
      failed_when: again is changed
    - name: See that it is noticed
      ortgpu.fix.ortgpu_fix:
        python: "{{ ortgpu_fix_python }}"
      check_mode: true
      register: looked
      failed_when: looked is not changed
"""


def test_a_host_whose_verification_fails_is_put_back_alone(fleet: Fleet) -> None:
    python = fleet.folder / "hosts" / "gpu1" / "python"
    right = python.read_text()
    python.write_text(right.replace("export ", "export ORTGPU_STAND_IN_RESULT=wrong "))
    before = state_of(fleet.venv("gpu1"))

    of_playbook = {"ortgpu_fix_waves": ["100%"], "ortgpu_fix_max_fail_percentage": 60}
    code, said = fleet.run("-e", json.dumps(of_playbook))

    python.write_text(right)
    assert code != 0
    assert changed(said) == {"gpu2"}
    assert '"exit_code": 4' in said
    assert state_of(fleet.venv("gpu1")) == before


def test_too_many_failures_end_the_run(fleet: Fleet) -> None:
    # The wheels are gone, from the share and from uv's caches: the change of the canary fails, and
    # nothing else begins.
    share = fleet.folder / "empty"
    share.mkdir()
    for host in ("gpu1", "gpu2"):
        shutil.rmtree(fleet.folder / "hosts" / host / ".cache" / "uv")
    before = {host: state_of(fleet.venv(host)) for host in ("gpu1", "gpu2")}

    code, said = fleet.run(ortgpu_fix_flags=["--offline", f"--find-links={share}"])

    assert code != 0
    assert changed(said) == set()
    assert said.count("FAILED!") == 1, said
    assert {host: state_of(fleet.venv(host)) for host in before} == before
