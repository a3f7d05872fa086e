"""Prove the Ansible collection on thirty hosts of this machine, each behind a real sshd.

    python scripts/prove/fleet.py [--work DIR] [--only fleet kills thousands] [--kills 20]

`fleet`: thirty hosts of six kinds: six get the real wheels of CUDA 13, the others stand-ins; two
have no GPU, one is unreachable, one has a full disk, on one the program is killed while it changes
the environment. The playbook must bring all others to their group's set and name these; once
the killed one may go on, a second run mends it alone; a third run changes nothing; what somebody
then breaks is drift, shown with --check --diff, and mended by a last run. Half of the hosts have
uv.
`kills`: the controller and all that it began is killed at as many moments of a run, every other
time with the connections to the hosts; every host must be as before, or as planned, or be put back
by the next run, which must complete.
`thousands`: one plan is made for facts of 5,000 hosts that were never there.

Needs root, Linux, gcc, sshd, a package index, and below DIR about 20 GB for `fleet`. Run it with
a Python that has the groups `dev` and `ansible`, and ortgpu-fix. The outcomes go into
scripts/prove/results/. The GPUs and drivers are simulated; with the real wheels the verification
goes as far as loading everything.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from drivers import compile_stubs

from prove.outcomes import record
from support.standin_fleet import (
    A100,
    APPLIES,
    L4,
    NEW,
    OWN_MOUNTS,
    SOME_UNREACHABLE,
    Host,
    Kind,
    World,
    ansible,
    bring_wheels,
    in_own_mounts,
    kill_tree,
    make_controller,
)
from support.standin_wheels import state_of

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path("/mnt")
"""Where the work folder is mounted: sshd wants every folder above a host's root to be root's."""
H100 = Kind(
    name="H100",
    driver="580.95.05",
    cuda=13000,
    gpu="NVIDIA H100 80GB HBM3",
    capability=(9, 0),
    python="3.12",
    requires=NEW,
)
V100 = Kind(
    name="V100",
    driver="535.183.01",
    cuda=12020,
    gpu="Tesla V100-SXM2-16GB",
    capability=(7, 0),
    python="3.12",
)
T4 = Kind(name="T4", driver="550.54.14", cuda=12040, gpu="Tesla T4", capability=(7, 5))
RTX3090 = Kind(
    name="RTX3090",
    driver="535.54.03",
    cuda=12020,
    gpu="NVIDIA GeForce RTX 3090",
    capability=(8, 6),
    python="3.10",
)
NONE = Kind(name="none", driver=None, cuda=None)
REAL = (L4, H100)
STAND_INS = (A100, V100, T4, RTX3090)
CASES = [
    "fleet: first run",
    "fleet: second run",
    "fleet: third run",
    "fleet: drift",
    "fleet: mended",
    "thousands",
]


class Proof:
    """The work folder, the controller, and what was found."""

    def __init__(self, work: Path, kills: int) -> None:
        self.work = work
        self.cases = [*CASES, *(f"kill {at}" for at in range(1, kills + 1))]
        self.failed = 0
        self.stubs = compile_stubs(_fresh(work / "stubs"))
        loadable = work / "stubs" / "loadable.so"
        source = ROOT / "tests" / "stubs_verify" / "libcuda.c"
        flags = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-DSPEAKS=13000"]
        subprocess.run(["gcc", *flags, "-o", str(loadable), str(source)], check=True)
        self.loadable = loadable
        self.controller = make_controller(work / "controller", Path(sys.executable))

    def libraries(self, *, real: bool) -> dict[str, Path]:
        """Return the libraries of a simulated driver."""
        cuda = self.loadable if real else self.stubs / "libcuda.so.1"
        return {"libnvidia-ml.so.1": self.stubs / "libnvidia-ml.so.1", "libcuda.so.1": cuda}

    def note(self, name: str, problems: Iterable[str], **about: object) -> None:
        """Write down what a case came to."""
        found = list(problems)
        self.failed += bool(found)
        print(f"{name:22} {about} {'; '.join(found) or 'ok'}", flush=True)
        record("fleet", {"name": name, "problems": found, **about}, self.cases)

    def run(self, *arguments: str) -> tuple[int, str, float]:
        """Run a playbook to its end: exit code, what it said, seconds."""
        started = time.monotonic()
        with ansible(self.controller, "playbook", *arguments, folder=self.work) as process:
            said, _ = process.communicate()
        (self.work / "last-run.txt").write_text(said)
        return process.returncode, said, round(time.monotonic() - started, 1)

    def change(self, host: Host) -> str | None:
        """Return what the program says of a change that it left in a host's environment."""
        argv = [str(self.controller), "-m", "ortgpu_fix", "facts", "--json", "--python"]
        done = subprocess.run([*argv, str(host.app)], check=True, capture_output=True)
        change: str | None = json.loads(done.stdout)["python"].get("change")
        return change

    def download(self, kinds: Iterable[Kind]) -> None:
        """Fetch the real wheels for a fleet of `kinds` into the folder that all hosts see."""
        words = []
        for kind in kinds:
            file = self.work / f"{kind.name}.json"
            file.write_text(json.dumps(kind.facts()))
            words += ["--facts", str(file)]
        argv = [str(self.controller), "-m", "ortgpu_fix", "download", "-d", "wheels", *words]
        subprocess.run(argv, cwd=self.work, check=True)

    # -- thirty hosts ----------------------------------------------------------------------------

    def fleet(self) -> None:
        """Bring thirty hosts to their sets, with everything that can go wrong."""
        world = World(folder=self.work)
        for at in range(6):
            kind = REAL[at % 2]
            libraries = self.libraries(real=True)
            world.add(f"real{at + 1}", kind, libraries, uv=kind is H100, real=True)
        wrong = {1: {"unreachable": True}, 2: {"full": True}}
        for at in range(22):
            kind = STAND_INS[at % 4]
            about = wrong.get(at, {})
            world.add(
                f"gpu{at + 1:02}",
                kind,
                self.libraries(real=False),
                uv=kind in {T4, RTX3090},
                **about,
            )
        for at in range(2):
            world.add(f"cpu{at + 1}", NONE, {})
        bring_wheels(self.controller, STAND_INS, self.work)
        self.download(REAL)
        with world.served():
            self._fleet(world)

    def _fleet(self, world: World) -> None:
        inventory = str(world.inventory(world.hosts))
        tree = str(_fresh(self.work / "machines"))
        facts = ["-m", "ortgpu.fix.ortgpu_fix_facts", "-a", "python=/opt/app", "-t", tree]
        with ansible(
            self.controller, "adhoc", "-i", inventory, "real*", *facts, folder=self.work
        ) as seeing:
            seeing.communicate()
        world.inventory(world.hosts)
        killed = next(host for host in world.hosts if host.name == "gpu05")
        watcher = Watcher(killed)
        waves = ["-e", '{"ortgpu_fix_waves": [2, 8, "100%"]}']
        run = ["ortgpu.fix.fleet", "-i", inventory, *waves]
        with watcher:
            code, said, seconds = self.run(*run)
        states = outcomes(said)
        idle = {"cpu1": "ok", "cpu2": "ok", "gpu02": "unreachable", "gpu03": "failed"}
        expected = dict.fromkeys(states, "changed") | idle | {"gpu05": "failed"}
        problems = _differences(states, expected)
        problems += [] if watcher.killed else ["nothing was killed"]
        problems += [] if code == SOME_UNREACHABLE else [f"exit code {code}"]
        problems += [] if len(states) == 30 else [f"{len(states)} hosts"]  # noqa: PLR2004
        groups = _groups(said)
        problems += _sets(world, groups, {name for name in states if states[name] == "changed"})
        self.note(
            "fleet: first run",
            problems,
            seconds=seconds,
            groups=[(version, cuda, len(hosts)) for version, cuda, hosts in groups],
            counts=Counter(states.values()),
            gigabytes=_size(self.work / "wheels", *(host.app for host in world.hosts)),
        )
        before = _states(world, {"gpu05"})
        _, said, seconds = self.run(*run)
        states = outcomes(said)
        right = dict.fromkeys(states, "ok") | idle
        problems = _differences(states, right | {"gpu05": "changed"})
        problems += _sets(world, _groups(said), {"gpu05"})
        problems += [
            f"left behind: {path}"
            for host in world.hosts
            if host != killed
            for path in host.traces()
        ]
        problems += _changed(before, _states(world, {"gpu05"}))
        self.note("fleet: second run", problems, seconds=seconds, counts=Counter(states.values()))
        before = _states(world)
        _, said, seconds = self.run(*run)
        problems = _differences(outcomes(said), right) + _changed(before, _states(world))
        self.note("fleet: third run", problems, seconds=seconds)
        self._drift(world, run, right)

    def _drift(self, world: World, run: list[str], right: dict[str, str]) -> None:
        """Break two hosts, see that it is shown, and mended."""
        for name in ("gpu08", "gpu09"):
            host = next(host for host in world.hosts if host.name == name)
            shutil.rmtree(next(host.site.glob("nvidia_cudnn*.dist-info")))
        drifted = right | {"gpu08": "changed", "gpu09": "changed"}
        before = _states(world)
        _, said, seconds = self.run(*run, "--check", "--diff")
        problems = _differences(
            outcomes(said), drifted | {"gpu03": "changed"}
        )  # full is seen later
        problems += _changed(before, _states(world))
        shown = re.findall(r"^ *[+-] (nvidia-cudnn.*)$", said, re.MULTILINE)
        problems += [] if shown else ["no diff"]
        self.note("fleet: drift", problems, seconds=seconds, shown=shown)
        _, said, seconds = self.run(*run)
        self.note("fleet: mended", _differences(outcomes(said), drifted), seconds=seconds)

    # -- the controller is killed ----------------------------------------------------------------

    def kills(self, count: int) -> None:
        """Kill the controller at `count` moments of a run, and complete it each time."""
        world = World(folder=self.work, port=2208)
        for at, kind in enumerate((A100, V100), 1):
            world.add(f"host{at}", kind, self.libraries(real=False), uv=True)
        bring_wheels(self.controller, (A100, V100), self.work)
        with world.served():
            self._kills(world, count)

    def _kills(self, world: World, count: int) -> None:
        waves = ["-e", '{"ortgpu_fix_waves": ["100%"]}']
        run = ["ortgpu.fix.fleet", "-i", str(world.inventory(world.hosts)), *waves]
        alone = {"ansible_ssh_args": "-o ControlMaster=no"}
        saved = self.work / "saved"
        for host in world.hosts:
            shutil.copytree(host.app, saved / host.name, symlinks=True)
        planted = {host.name: state_of(host.app, times=False) for host in world.hosts}
        started = time.monotonic()
        process = ansible(self.controller, "playbook", *run, folder=self.work)
        applies = _seconds_until(process, APPLIES, started)
        said = process.communicate()[0]
        whole = time.monotonic() - started
        if process.returncode != 0:
            self.note("kill 1", [f"the run without a kill: {said[-500:]}"])
            return
        done = {host.name: _versions(host) for host in world.hosts}
        chance = random.Random(21)  # noqa: S311
        for at in range(1, count + 1):
            for host in world.hosts:
                host.put_back(saved / host.name)
            # Every other time the connections break with the controller; else ssh keeps them open,
            # and what runs on the hosts comes to its end.
            world.inventory(world.hosts, **(alone if at % 2 else {}))
            started = time.monotonic()
            process = ansible(self.controller, "playbook", *run, folder=self.work)
            _wait_for_moment(world, process, at / count, (applies, whole), chance)
            moment = round(time.monotonic() - started, 1)
            kill_tree(process.pid)
            process.communicate()
            problems, left = self._found_after_kill(world, planted, done)
            code, said, seconds = self.run(*run)
            problems += [] if code == 0 else [f"the next run: {said[-300:]}"]
            problems += [
                f"{host.name} is not as planned"
                for host in world.hosts
                if _versions(host) != done[host.name] or self.change(host) == "unfinished"
            ]
            self.note(
                f"kill {at}",
                problems,
                at=moment,
                of=round(whole, 1),
                cut=bool(at % 2),
                hosts=left,
                next=seconds,
            )

    def _found_after_kill(
        self, world: World, planted: dict[str, Any], done: dict[str, dict[str, str]]
    ) -> tuple[list[str], dict[str, int]]:
        """Return what is wrong with hosts, and how many are in which state."""
        problems: list[str] = []
        left = {"before": 0, "after": 0, "to be put back": 0}
        for host in world.hosts:
            _wait_for_end(host)
            if self.change(host) == "unfinished":
                left["to be put back"] += 1
            elif _versions(host) == done[host.name]:
                left["after"] += 1
            elif _bare(state_of(host.app, times=False)) == _bare(planted[host.name]):
                left["before"] += 1
            else:
                problems.append(f"{host.name} is neither as before nor as planned")
        return problems, left

    # -- thousands -------------------------------------------------------------------------------

    def thousands(self, count: int = 5000) -> None:
        """Plan for `count` hosts whose facts are simulated, of 300 kinds."""
        chance = random.Random(5)  # noqa: S311
        gpus = [(kind.gpu, kind.capability) for kind in (*REAL, *STAND_INS)]
        drivers = ["535.104.12 12.2", "550.54.14 12.4", "570.86.10 12.8", "580.65.06 13.0"]
        kinds = []
        for _ in range(300):
            gpu, capability = chance.choice(gpus)
            driver, cuda = chance.choice(drivers).split()
            packages = {f"package-{chance.randrange(400)}" for _ in range(60)}
            rows = [{"name": name, "version": f"1.{len(name)}"} for name in sorted(packages)]
            card = {"name": gpu, "compute_capability": ".".join(map(str, capability))}
            kinds.append(
                A100.facts()
                | {
                    "driver": {"version": driver, "cuda": cuda},
                    "gpus": [card] * chance.choice([1, 4, 8]),
                    "python": {"version": chance.choice(["3.10.12", "3.11.7", "3.12.3"])},
                    "packages": rows,
                }
            )
        folder = _fresh(self.work / "simulated")
        names = [f"node{at:04}" for at in range(count)]
        for at, name in enumerate(names):
            (folder / f"{name}.json").write_text(json.dumps(kinds[at % len(kinds)]))
        inventory = self.work / "thousands.ini"
        inventory.write_text("".join(f"{name} ansible_connection=local\n" for name in names))
        plugins = _fresh(self.work / "action_plugins")
        (plugins / "simulated_facts.py").write_text(SIMULATED_FACTS.format(folder=folder))
        book = self.work / "thousands.yml"
        book.write_text(THOUSANDS)
        code, said, whole = self.run(str(book), "-i", str(inventory))
        times = [float(text) for text in re.findall(r"now (\d+\.\d+)", said)]
        seconds = round(times[-1] - times[0], 1) if times else whole
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        problems = [] if code == 0 else [said[-500:]]
        problems += [] if f"planned {count}" in said else ["hosts are missing"]
        problems += [] if seconds <= 60 else ["it took longer than a minute"]  # noqa: PLR2004
        problems += [] if used <= 1024 else ["it took more than 1 GB"]  # noqa: PLR2004
        self.note(
            "thousands",
            problems,
            hosts=count,
            kinds=len(kinds),
            seconds=seconds,
            gathering_seconds=round(whole - seconds, 1),
            largest_process_mb=used,
            groups=[(version, len(hosts)) for version, _, hosts in _groups(said)],
        )


SIMULATED_FACTS = """\
import json
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        with open("{folder}/" + task_vars["inventory_hostname"] + ".json") as file:
            return result | {{"ansible_facts": {{"ortgpu_fix": json.load(file)}}}}
"""
"""Stands for the hosts: hands the controller a file for each, by the way that a module's answer
takes."""
THOUSANDS = """\
- name: Plan
  hosts: all
  gather_facts: false
  tasks:
    - name: Take the facts
      simulated_facts:
    - name: Look at the clock
      ansible.builtin.debug:
        msg: "now {{ now(fmt='%s.%f') }}"
      run_once: true
    - name: Plan for all hosts
      ortgpu.fix.ortgpu_fix_fleet:
      register: made
      run_once: true
    - name: Look at the clock again
      ansible.builtin.debug:
        msg: "now {{ now(fmt='%s.%f') }} planned {{ made.hosts | length }} {{ made.msg }}"
      run_once: true
"""


def _seconds_until(process: subprocess.Popen[str], words: str, started: float) -> float:
    """Wait until a run says `words`, or ends; return the time since it `started`."""
    assert process.stdout is not None  # noqa: S101
    for line in process.stdout:
        if words in line:
            break
    return time.monotonic() - started


def _wait_for_moment(
    world: World,
    process: subprocess.Popen[str],
    part: float,
    times: tuple[float, float],
    chance: random.Random,
) -> None:
    """Wait for a moment of a run: in its first quarter, by `part` of all moments, while it plans.

    Half of them lie anywhere after that, a quarter in the change of a host itself. `times` are the
    seconds after which a whole run begins to change hosts, and ends.
    """
    started = time.monotonic()
    if part <= 1 / 4:
        time.sleep(chance.random() * times[0])
        return
    _seconds_until(process, APPLIES, started)
    if part <= 3 / 4:
        time.sleep(chance.random() * (times[1] - times[0]))
    else:
        _wait_for_change(world, process)
        time.sleep(chance.random() * 0.3)


def _wait_for_change(world: World, process: subprocess.Popen[str]) -> None:
    """Wait until the program changes the environment of a host, or the run ends."""
    while process.poll() is None:
        if any(any((host.site / ".ortgpu-fix").glob("*/journal")) for host in world.hosts):
            return
        time.sleep(0.001)


class Watcher:
    """Kills the program on a host, once, while it changes the environment."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.killed = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        state = self.host.site / ".ortgpu-fix"
        while not self._over.is_set() and not self.killed:
            if any(state.glob("*/journal")):
                for process, line in self.host.processes():
                    if "ortgpu_fix" in line and "--apply" in line:
                        os.kill(process, signal.SIGKILL)
                        self.killed = True
            time.sleep(0.0005)


def _fresh(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    return [
        f"{name}: {found.get(name)}, not {state}"
        for name, state in expected.items()
        if found.get(name) != state
    ]


def _versions(host: Host) -> dict[str, str]:
    """Return the distributions that are installed on a host, with their versions."""
    found = {}
    for folder in host.site.glob("*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        found[name] = version
    return found


def outcomes(said: str) -> dict[str, str]:
    """Return what the recap says of each host."""
    found = {}
    for host, counts in re.findall(r"^(\w+) +: (ok=.*)$", said, re.MULTILINE):
        row = {key: int(count) for key, count in re.findall(r"(\w+)=(\d+)", counts)}
        wrong = [key for key in ("unreachable", "failed", "changed") if row[key]]
        found[host] = (*wrong, "ok")[0]
    return found


def _groups(said: str) -> list[tuple[str, str, list[str]]]:
    """Return the version, the CUDA and the hosts of each group that a run planned."""
    found = re.findall(r"onnxruntime-gpu (\S+) for CUDA (\d+): ([^;\"]+)", said)
    return [(version, cuda, hosts.split(", ")) for version, cuda, hosts in found]


def _sets(
    world: World, groups: list[tuple[str, str, list[str]]], names: Iterable[str]
) -> list[str]:
    """Say where a host does not have the set of its group."""
    found = {host.name: _versions(host) for host in world.hosts}
    wanted = {name: (version, cuda) for version, cuda, hosts in groups for name in hosts}
    return [
        f"{name} lacks its group's set"
        for name in names
        for version, cuda in [wanted[name]]
        if found[name].get("onnxruntime_gpu") != version
        or f"nvidia_cudnn_cu{cuda}" not in found[name]
    ]


def _states(world: World, but: Iterable[str] = ()) -> dict[str, dict[str, str]]:
    """Return every file of every environment with its size and time, real wheels' too."""
    found = {}
    for host in world.hosts:
        if host.name not in but:
            found[host.name] = {
                str(path): f"{path.lstat().st_size} {path.lstat().st_mtime_ns}"
                for path in host.app.rglob("*")
                if not path.is_dir()
            }
    return found


def _changed(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> list[str]:
    return [f"{name}: files changed" for name in before if before[name] != after[name]]


def _bare(files: Any) -> dict[str, str]:  # noqa: ANN401
    return {path: what for path, what in files.items() if "__pycache__" not in path}


def _wait_for_end(host: Host, seconds: float = 60) -> None:
    """Wait until no module and no program runs on a host any more; sshd may keep its session."""
    ends = time.monotonic() + seconds
    while any("python" in line for _, line in host.processes()) and time.monotonic() < ends:
        time.sleep(0.2)


def _size(*folders: Path) -> float:
    """Return what folders take on the disk, in GB."""
    words = ["du", "-sxmc", *map(str, folders)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return round(int(done.stdout.splitlines()[-1].split()[0]) / 1000, 1)


def main() -> int:
    """Run the parts, and write what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", nargs="+", default=["fleet", "kills", "thousands"])
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="prove-fleet-"))
    work.mkdir(parents=True, exist_ok=True)
    if OWN_MOUNTS not in os.environ:
        try:
            sys.argv += [] if arguments.work else ["--work", str(work)]
            return in_own_mounts()
        finally:
            shutil.rmtree(work)  # all mounts are gone
    subprocess.run(["mount", "--bind", str(work), str(PLACE)], check=True)
    parts: dict[str, Callable[[Proof], None]] = {
        "fleet": Proof.fleet,
        "kills": lambda proof: proof.kills(arguments.kills),
        "thousands": Proof.thousands,
    }
    failed = 0
    for name in arguments.only:
        proof = Proof(_fresh(PLACE / name), arguments.kills)
        parts[name](proof)
        failed += proof.failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
