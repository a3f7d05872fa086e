"""What an update changes: on the invented matrix by hand, and real bumps."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command import run_here

import synthetic
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.guests.machines.difference import Update, compare
from ortgpu_fix.guests.machines.difference_report import difference_sections
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.guests.machines.parsed_lock import ParsedPin
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.serving import against

MATRIX = synthetic.matrix()
KNOWN = ("7.0", "7.5", "9.0", "12.0")


def pins(*texts: str) -> tuple[ParsedPin, ...]:
    return read_lock("\n".join(texts), "lock").pins


OLD = pins("onnxruntime-gpu==1.26.0", "nvidia-cudnn-cu12==9.10.2", "transformer==4.1")
NEW = pins("onnxruntime-gpu==1.31.0 ; python_version < '3.13'", "nvidia-cudnn-cu13==9.28.0")


def compared(old: Any, new: Any, **hosts: Facts) -> Update:
    base = synthetic.facts(driver=None, gpus=None)
    return compare(old, new, hosts.items(), base, matrix=MATRIX, known=KNOWN)


def test_who_needs_another_cudnn() -> None:
    """1.18 is for cuDNN 8, and the transformer loads 9."""
    found = compared(OLD, pins("onnxruntime-gpu==1.18.0", "transformer==4.1", "tensors==2.0"))

    assert [str(row.by) for row in found.clashes] == ["transformer 4.1"]
    assert compared(OLD, OLD).clashes == ()
    assert compared(OLD, pins("transformer==4.1")).clashes == ()


def test_the_machines() -> None:
    old_driver = synthetic.facts(driver="12.2", gpus=("8.0",))
    new_driver = synthetic.facts(driver="13.0", gpus=("8.0",))
    ancient = synthetic.facts(driver="11.4", gpus=("8.0",))
    newer_python = synthetic.facts(driver="13.0", gpus=("8.0",), python="3.13.1")
    hosts = {"a": old_driver, "b": new_driver, "c": ancient, "d": newer_python}
    found = {row.name: row for row in compared(OLD, NEW, **hosts).hosts}

    assert {name: row.loses_gpu_support for name, row in found.items()} == {
        "a": True,
        "b": False,
        "c": False,
        "d": False,
    }
    assert found["b"].before == found["b"].after == ()
    assert [why.code for why in found["a"].after] == ["driver-too-old"]
    assert [why.code for why in found["c"].before] == ["driver-too-old"]
    assert found["d"].after == (Reason("gpu-build-absent"),)
    assert "no-wheel-python" in [why.code for why in found["d"].before]


def test_what_a_facts_file_has_is_compared_on_each_machine() -> None:
    seen = synthetic.facts("onnxruntime-gpu 1.31.0", driver="13.0", gpus=("9.0",))
    [host] = compared(OLD, seen, a=synthetic.facts(driver="12.2", gpus=("8.0",))).hosts

    assert host.loses_gpu_support


def test_what_a_lock_installs_is_judged_as_a_check_of_it_does() -> None:
    """`diff` said that it works there where `lock --check` said that it does not."""
    machine = synthetic.facts(driver="12.2", gpus=("8.0",))
    whole = ("onnxruntime-gpu==1.26", "nvidia-cudnn-cu12==9.28.0", "nvidia-cublas-cu12==12.8.4")
    rows = {
        "lock-rival": (*whole, "onnxruntime==1.26.0"),
        "lock-lacks": whole[:2],
        "requirement-conflict": (*whole, "numpy==1.19.5"),
    }
    for code, new in rows.items():
        [found] = compared(pins(*whole), pins(*new), a=machine).hosts
        assert ([why.code for why in found.after], found.loses_gpu_support) == ([code], True)
        [back] = compared(pins(*new), pins(*whole), a=machine).hosts
        assert back.after == ()
    [old] = compared(pins(*rows["lock-rival"]), pins(*whole), a=machine).hosts
    assert [why.code for why in old.before] == ["lock-rival"]


def test_others_need_their_driver_too() -> None:
    machine = synthetic.facts(
        "onnxruntime-gpu 1.18.0",
        "dataloader-cuda12 1.1",
        "nvidia-cublas-cu12 12.9.1",
        driver="11.8",
    )

    assert [why.code for why in against(machine, MATRIX)] == ["driver-too-old"]
    old = pins("onnxruntime-gpu==1.18.0")
    new = pins("onnxruntime-gpu==1.18.0", "dataloader-cuda12==1.1")
    [host] = compared(old, new, a=synthetic.facts(driver="11.8")).hosts
    assert ([why.code for why in host.after], host.loses_gpu_support) == (["driver-too-old"], True)


CUDNN = {"1.26.0": ("nvidia-cudnn-cu12", "9.10.2.21"), "1.29.0": ("nvidia-cudnn-cu13", "9.23.2.1")}


def rows(version: str) -> tuple[tuple[str, str], ...]:
    return (("onnxruntime-gpu", version), CUDNN[version], ("requests", "2.32.0"))


def write_lock(folder: Path, version: str) -> Path:
    """Write a lock as uv writes it, as far as it is read."""
    texts = [f'[[package]]\nname = "{name}"\nversion = "{at}"\n' for name, at in rows(version)]
    (folder / version).mkdir()
    path = folder / version / "uv.lock"
    path.write_text("version = 1\n" + "\n".join(texts))
    return path


def host(folder: Path, name: str, driver: str, cuda: str, gpu: str) -> str:
    document = synthetic.document(driver=cuda, gpus=(gpu,))
    document["driver"]["version"] = driver
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return str(path)


def diff(folder: Path, *argv: object, lang: str = "en") -> Any:
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ORTGPU_FIX_LANG": lang}
    return run_here("diff", *map(str, argv), cwd=folder, env=env)


def test_a_real_bump(tmp_path: Path) -> None:
    """1.26 is for CUDA 12, 1.29 for CUDA 13, and cuDNN dropped Pascal at 9.11."""
    old, new = (write_lock(tmp_path, version) for version in ("1.26.0", "1.29.0"))
    pascal = host(tmp_path, "pascal", "580.65.06", "13.0", "6.1")
    a100 = host(tmp_path, "a100", "535.104.12", "12.2", "8.0")
    l4 = host(tmp_path, "l4", "580.65.06", "13.0", "8.9")
    hosts = ("--hosts", pascal, "--hosts", a100, "--hosts", l4)
    done = diff(tmp_path, old, new, *hosts)

    assert done.returncode == 1
    assert "onnxruntime-gpu  1.26.0 → 1.29.0\n" in done.stdout
    assert "Required driver  525.60.13 → 580.65.06\n" in done.stdout
    assert "cuDNN            9.10.2.21 → 9.23.2.1\n" in done.stdout
    assert "GPUs dropped     6.0, 6.1, 7.0" in done.stdout
    assert "\n  pascal  ✗ worked before: does not support compute capability 6.1" in done.stdout
    assert "\n  a100    ✗ worked before: needs driver 580.65.06 or newer for CUDA 13" in done.stdout
    assert "\n  l4      ✓ works\n" in done.stdout
    assert done.stdout.endswith("\nMachines that lose GPU support: 2\n")
    assert diff(tmp_path, new, old, "--hosts", l4).returncode == 0
    document = json.loads(diff(tmp_path, old, new, *hosts, "--json").stdout)
    assert [row["falls_out"] for row in document["hosts"]] == [True, True, False]
    assert document["dropped"][:3] == ["6.0", "6.1", "7.0"]
    assert document["size"] == document["new"]["serves"]["size"] - document["old"]["serves"]["size"]


def test_the_words_of_the_other_ways(tmp_path: Path) -> None:
    old, new = (write_lock(tmp_path, version) for version in ("1.26.0", "1.29.0"))
    old.write_text(old.read_text() + '[[package]]\nname = "tensorflow"\nversion = "2.17.0"\n')
    kepler = host(tmp_path, "kepler", "470.256.02", "11.4", "3.7")
    back = diff(tmp_path, new, old, "--hosts", kepler).stdout

    assert "GPUs added" in back
    assert "did not work before either: " in back
    assert "more\n" in back or "less\n" in back
    assert ("less\n" in diff(tmp_path, old, new).stdout) == ("more\n" in back)
    same = diff(tmp_path, new, new, "--hosts", kepler)
    assert same.returncode == 0
    assert same.stdout.endswith("\nNo changes for the GPU\n")
    gone = tmp_path / "gone.txt"
    gone.write_text("onnxruntime==1.26.0\n")
    assert "onnxruntime-gpu  1.29.0 → -\n" in diff(tmp_path, new, gone).stdout


def test_the_words_of_a_release_that_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("onnxruntime-gpu==1.20.1\n")
    (tmp_path / "new.txt").write_text("onnxruntime-gpu==1.26.0\n")
    ancient = host(tmp_path, "ancient", "470.57.02", "11.4", "8.0")
    gone = diff(tmp_path, "old.txt", "new.txt", "--hosts", ancient)
    come = diff(tmp_path, "new.txt", "old.txt", "--hosts", ancient)
    document = json.loads(diff(tmp_path, "old.txt", "new.txt", "--json").stdout)

    assert (
        "Before           onnxruntime-gpu 1.20.1 is not in the compatibility data: " in gone.stdout
    )
    assert "\nonnxruntime-gpu  1.20.1 → 1.26.0\n" in gone.stdout
    for untrue in ("GPUs added", "Required driver", "cuDNN", "more\n"):
        assert untrue not in gone.stdout
    assert "\n  ancient  ✗ needs driver 525.60.13 or newer for CUDA 12" in gone.stdout
    assert "worked before" not in gone.stdout
    assert gone.returncode == 1
    assert "\nonnxruntime-gpu  1.26.0 → 1.20.1\n" in come.stdout
    assert "\n  ancient  unknown\n" in come.stdout
    assert come.returncode == 0
    assert (document["old"]["unknown"], document["new"]["unknown"]) == ("1.20.1", None)
    (tmp_path / "new.txt").write_text("onnxruntime-gpu==1.26.0\nnvidia-cudnn-cu12==99.1\n")
    newer = diff(tmp_path, "old.txt", "new.txt")
    assert "\nNot in the compatibility data, not counted  nvidia-cudnn-cu12 99.1\n" in newer.stdout
    document = json.loads(diff(tmp_path, "old.txt", "new.txt", "--json").stdout)
    assert document["uncounted"] == ["nvidia-cudnn-cu12 99.1"]


def test_a_project_without_us(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("requests==2.32.0\n")
    (tmp_path / "b.txt").write_text("requests==2.33.0\n")
    done = diff(tmp_path, "a.txt", "b.txt", lang="zh")

    assert (done.returncode, done.stdout) == (0, "GPU 方面没有变化\n")
    document = json.loads(diff(tmp_path, "a.txt", "b.txt", "--json").stdout)
    assert document["new"]["serves"]["release"] is None
    assert document["size"] == 0


def test_what_is_not_pinned(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("onnxruntime-gpu>=1.20\nrequests==2.32.0\n")
    done = diff(tmp_path, "a.txt", "a.txt")

    assert done.returncode == 2
    assert "does not pin a version of it" in done.stderr


def test_a_machine_that_an_update_broke(tmp_path: Path) -> None:
    """It said that nothing changes: what is installed there has the same names and versions."""
    whole = synthetic.document(*SET, driver="12.2", onnxruntime=BUILD)
    gutted = json.loads(json.dumps(whole))
    [cudnn] = (row for row in gutted["packages"] if row["name"] == "nvidia-cudnn-cu12")
    cudnn["intact"] = False
    cpu = synthetic.document(*SET, "onnxruntime 1.26.0", driver="12.2", onnxruntime=OVERWRITTEN)
    for name, document in (("whole", whole), ("gutted", gutted), ("cpu", cpu)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document | READ))
    a100 = host(tmp_path, "a100", "535.104.12", "12.2", "8.0")
    what = "✗ nvidia-cudnn-cu12 9.10.2.21 is listed as installed, but files of it are missing\n"
    falling = diff(tmp_path, "whole.json", "gutted.json", "--hosts", a100)
    alone = diff(tmp_path, "whole.json", "gutted.json")
    same = diff(tmp_path, "whole.json", "whole.json", "--facts", a100)
    found = diff(tmp_path, "whole.json", "cpu.json", "--hosts", a100, "--json")
    document = json.loads(found.stdout)
    codes = ["cpu-build-installed", "folder-overwritten"]

    assert falling.returncode == 1
    assert f"  a100  ✗ worked before: {what.removeprefix('✗ ')}" in falling.stdout
    assert (alone.returncode, "Nothing changes" in alone.stdout) == (0, False)
    assert what in alone.stdout
    assert (same.returncode, "\n  a100  ✓ works\n" in same.stdout) == (0, True)
    assert "\nNo changes for the GPU\n" in same.stdout
    assert [row["code"] for row in document["broken"]] == codes
    [machine] = document["hosts"]
    assert [row["code"] for row in machine["after"]] == codes
    assert machine["after"][0]["text"].startswith("onnxruntime 1.26.0 is the CPU-only package")
    assert (machine["before"], machine["falls_out"]) == ([], True)
    assert json.loads(diff(tmp_path, "cpu.json", "whole.json", "--json").stdout)["broken"] == []


SEEN = ("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")
PINS = tuple(text.replace(" ", "==") for text in SEEN)
ORDINARY = ("flatbuffers 25.1", "numpy 1.26.4")
READ = {"python": {"version": "3.11.7", "autoload": True}}


def seen(*packages: str, **more: Any) -> Facts:
    document = synthetic.document(*packages, onnxruntime=BUILD, **more)
    return from_json(document | READ)


SET = (
    *("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.9.1.4", "nvidia-cuda-nvrtc-cu12 12.9.86"),
    *("nvidia-cuda-runtime-cu12 12.9.79", "nvidia-cudnn-cu12 9.10.2.21"),
    *(
        "nvidia-cufft-cu12 11.4.1.4",
        "nvidia-curand-cu12 10.3.10.19",
        "nvidia-nvjitlink-cu12 12.9.86",
    ),
    *("numpy 1.26.4", "flatbuffers 25.1", "protobuf 6.31", "packaging 25"),
)
"""Complete for onnxruntime-gpu 1.26.0."""
BUILD = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8", "intact": True}
OVERWRITTEN = BUILD | {"distribution": "onnxruntime", "cuda": None}


def test_what_nothing_loads_counts_where_it_was_loaded_before() -> None:
    """An application may load the libraries by itself; a lock says nothing of the loader."""
    machine = synthetic.facts(driver="12.2", gpus=("8.0",))
    bare = seen(*SEEN, *ORDINARY)
    [loader] = resolve(bare, PlanOptions(), MATRIX).companions
    whole = seen(*SEEN, *ORDINARY, f"{loader.name} {loader.version}")
    lost, kept = compared(whole, bare, a=machine), compared(bare, bare, a=machine)
    locked = compared(pins(*PINS), bare, a=machine)

    told = difference_sections(lost._replace(broken=lost.hosts[0].after), load_texts("en"))
    red = [row for section in told for row in section.rows if row.style == "red"]

    assert [row.head for row in red] == ["", "a"]
    assert [why.code for why in lost.hosts[0].after] == ["libraries-not-loaded"]
    assert lost.hosts[0].loses_gpu_support
    for found in (kept, locked, compared(whole, whole, a=machine)):
        assert (found.hosts[0].before, found.hosts[0].after) == ((), ())


def real(version: str, *without: str) -> Facts:
    """Return an environment with the real set of a release."""
    machine = synthetic.facts(driver="13.0", gpus=("8.0",))
    wish = PlanOptions(onnxruntime=f"=={version}")
    plan = resolve(machine, wish, load_matrix(torch=False), unlocking=False)
    found = [f"{row.name} {row.version}" for row in plan.selection if row.name not in without]
    build = {**BUILD, "version": version, "cuda": f"{plan.cuda}.0"}
    rest = ("protobuf 6.31", "packaging 25")
    return from_json(synthetic.document(*found, *ORDINARY, *rest, onnxruntime=build) | READ)


def really_compared(old: Facts, new: Facts) -> Update:
    base = synthetic.facts(driver=None, gpus=None)
    return compare(old, new, (), base, matrix=load_matrix(torch=False), known=("6.1", "8.0"))


def test_gpus_are_not_added_by_what_goes() -> None:
    """Without cuDNN there is nothing that lacks code for an old GPU, and nothing that runs."""
    whole, without = real("1.26.0"), real("1.26.0", "nvidia-cudnn-cu12")
    found = really_compared(whole, without)

    assert (found.old.gpus, found.new.gpus, found.gained) == (("8.0",), ("6.1", "8.0"), ())
    assert [why.code for why in found.broken] == ["library-missing"]
    assert really_compared(without, whole).broken == ()
    assert really_compared(without, without).broken == ()
    unlike = without._replace(driver=None, gpus=())  # whatever the machine it was seen on
    assert really_compared(whole, unlike).broken == found.broken


def test_the_driver_that_a_broken_state_is_judged_by_runs_both() -> None:
    """1.29 needs a newer driver than 1.26."""
    old, new = real("1.26.0"), real("1.29.0")
    [broken] = really_compared(old, real("1.29.0", "nvidia-cudnn-cu13")).broken
    [back] = really_compared(new, real("1.26.0", "nvidia-cudnn-cu12")).broken

    assert really_compared(old, new).broken == really_compared(new, old).broken == ()
    assert broken.code == back.code == "library-missing"
    assert really_compared(old, seen()).broken != ()
    assert really_compared(seen(), old).broken == ()


def test_an_environment_of_another_processor() -> None:
    old = seen(*SEEN, *ORDINARY)
    arm = synthetic.machine(name="aarch64")
    told, assumed = (
        compared(old, old, a=machine).hosts[0]
        for machine in (arm, arm._replace(sources={"platform": ""}))
    )

    assert [why.code for why in told.after] == ["other-processor"]
    assert assumed.after == ()
    assert not told.loses_gpu_support


def test_the_python_that_runs_the_locks(tmp_path: Path) -> None:
    """The machine's own Python is 3.9, for which neither release has a wheel."""
    old, new = (write_lock(tmp_path, version) for version in ("1.26.0", "1.29.0"))
    document = synthetic.document("fastembed 0.9.1", driver="12.2", python="3.9.2")
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = [
        json.loads(diff(tmp_path, old, new, "--hosts", "a.json", *more, "--json").stdout)
        for more in ((), ("--python", "3.12"))
    ]
    wrong = diff(tmp_path, old, new, "--hosts", "a.json", "--python", ".venv")

    assert [row["hosts"][0]["falls_out"] for row in done] == [False, True]
    assert wrong.returncode == 2
    assert "`--python` cannot be `.venv`" in wrong.stderr


def test_pins_of_forks_and_markers() -> None:
    text = (
        'version = 1\n[[package]]\nname = "A.b"\nversion = "1"\n'
        "resolution-markers = [\"python_version < '3.9'\", \"os_name == 'nt'\"]\n"
        '[[package]]\nname = "c"\n[[package]]\nname = "d"\nversion = "2"\n'
        "markers = \"sys_platform == 'linux'\"\n"
        '[[package]]\nname = "e"\nversion = "3"\nmarker = "os_name == \'nt\'"\n'
        '[[package]]\nname = "f"\nversion = "4"\nmarkers = {main = "x"}\n'
    )
    lock = read_lock(text, "uv.lock")

    assert lock.format == "project"
    assert [(pin.name, pin.version, pin.marker, pin.line, pin.hashes) for pin in lock.pins] == [
        ("a-b", "1", "(python_version < '3.9') or (os_name == 'nt')", 3, ()),
        ("d", "2", "sys_platform == 'linux'", 9, ()),
        ("e", "3", "os_name == 'nt'", 13, ()),
        ("f", "4", "", 17, ()),
    ]
    with pytest.raises(Error, match="lock-unreadable"):
        read_lock("package = [1]", "uv.lock")
