"""Whether a lock still holds: what is read of it, what has drifted, and which line says so."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from told import values_of

import synthetic
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.guests.machines import check_lock_command as check_lock
from ortgpu_fix.guests.machines.drift import Drift, drift
from ortgpu_fix.guests.machines.parse_lock import read_lock
from ortgpu_fix.lock.formats.dockerfile import dockerfile
from ortgpu_fix.lock.formats.pylock import pylock
from ortgpu_fix.lock.formats.requirements_txt import requirements
from ortgpu_fix.lock.formats.uv import uv_lines
from ortgpu_fix.lock.model import Lock, LockTarget
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.shells import PastedCommand
from ortgpu_fix.plan.wheels import HERE, PYPI, Pinned, Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
ZERO, ONE = "0" * 64, "1" * 64
SET = {"nvidia-cublas-cu12": "12.8.4", "nvidia-cudnn-cu12": "9.28.0", "onnxruntime-gpu": "1.26.0"}
CLOSURE = {"flatbuffers": "25.2.10", "numpy": "2.4.6"}
"""What else onnxruntime-gpu requires: with hashes pip and uv install nothing that is not pinned."""
INSTALLED = [f"{name} {version}" for name, version in (SET | CLOSURE).items()]
STAND_IN = (
    f"onnxruntime @ https://x.example/onnxruntime-1.26.0-py3-none-any.whl --hash=sha256:{ONE}\n"
)
HEAD = "# matrix: 2026-01-01 sha256:invented\n"


def lock(pins: dict[str, str] = SET, sha: str = ZERO, extra: str = "") -> str:
    def rows(pins: dict[str, str]) -> str:
        return "".join(f"{name}=={it} \\\n    --hash=sha256:{sha}\n" for name, it in pins.items())

    closure = {name: it for name, it in CLOSURE.items() if name not in extra and name not in pins}
    return HEAD + rows(pins) + extra + rows(closure)


def checked(text: str, facts: Facts | None = None, **options: Any) -> Drift:
    machine = synthetic.facts(*INSTALLED) if facts is None else facts
    return drift(read_lock(text, "lock.txt"), machine, PlanOptions(**options), MATRIX)


def codes(found: Drift) -> list[str]:
    return [why.code for why in found.against]


# What is read.


# What has drifted.


def test_what_is_no_hash_any_more_names_its_line_whoever_knows_the_wheel() -> None:
    """The matrix knows nothing of flatbuffers; that pip would refuse the line can be seen."""
    hashed = f"flatbuffers==25.2.10 \\\n    --hash=sha256:{ONE}\nnumpy==2.4.6\n"
    text = lock(extra=hashed)
    broken = text.replace(ONE, "z" + ONE[1:]).replace(ZERO, ZERO[1:], 1)
    known = synthetic.facts(*INSTALLED, "flatbuffers 25.2.10", "numpy 2.4.6")

    assert [(row.line, row.why.code) for row in checked(text, known).differences] == [
        (10, "lock-hash-broken")
    ]
    assert [(row.line, row.why.code) for row in checked(broken, known).differences] == [
        (3, "lock-hash-broken"),
        (9, "lock-hash-broken"),
        (10, "lock-hash-broken"),
    ]
    assert checked("\n".join(f"{name}=={one}" for name, one in SET.items())).verdict == "holds"


def test_a_tampered_pin_names_its_line() -> None:
    found = checked(lock(SET | {"nvidia-cudnn-cu12": "9.28.1"}))

    assert found.verdict == "impossible"
    assert [(row.line, row.why.code) for row in found.differences] == [(4, "lock-version-unknown")]
    assert codes(found) == ["library-pinned"]


def test_a_set_that_this_machine_cannot_run() -> None:
    found = checked(lock(), synthetic.facts(*INSTALLED, driver="11.7", gpus=("7.0",)))

    assert found.verdict == "impossible"
    assert codes(found) == ["driver-too-old", "library-no-gpu-code"]


def test_a_release_that_the_matrix_does_not_know() -> None:
    assert codes(checked(lock(SET | {"onnxruntime-gpu": "9.9"}))) == ["lock-release-unknown"]


def test_a_lock_that_takes_from_another_package_what_it_requires() -> None:
    """pip only warns of it, after it has installed the lock."""
    app = {"name": "app", "version": "1", "requires": ["mpmath<1.4", "old; extra == 'x'"]}
    newer = lock(extra=f"mpmath==1.4.0 --hash=sha256:{ZERO}\n")
    broken = checked(newer, synthetic.facts(*INSTALLED, app, "mpmath 1.3.0"))

    assert broken.verdict == "impossible"
    assert [(why.code, values_of(why)) for why in broken.against] == [
        ("lock-breaks", {"by": "app 1", "requires": "mpmath<1.4", "found": "1.4.0"})
    ]
    missing = checked(newer, synthetic.facts(*INSTALLED, app, "mpmath 2.0"))  # it was so before
    assert codes(missing) == []


def test_the_lock_of_machines_without_a_gpu() -> None:
    here = synthetic.facts("onnxruntime 1.26.0", driver=None, gpus=())

    assert checked("onnxruntime==1.26.0\n", here).verdict == "holds"
    assert codes(checked("onnxruntime==1.26.0\n")) == ["lock-cpu-only"]


def test_the_newest_is_told_although_another_program_uses_an_older_cuda() -> None:
    """A plan would prefer the release that shares CUDA 12 with it; that 1.31 works is news."""
    found = checked(lock(), synthetic.facts("transformer 4.6", driver="13.0"))

    assert found.newest == "1.31.0"


def test_a_lock_that_installs_another_build_beside_that_for_the_gpu() -> None:
    """uv.lock of a project that requires fastembed and onnxruntime-gpu had both, and held."""
    found = checked(lock(SET | {"onnxruntime": "1.26.0"}))
    [why] = found.against

    assert found.verdict == "impossible"
    assert why.code == "lock-rival"
    assert values_of(why) == {"distribution": "onnxruntime 1.26.0"}
    assert codes(checked(lock(extra="onnxruntime==1.26.0 ; sys_platform == 'darwin'\n"))) == []


@pytest.mark.parametrize("line", ["onnxruntime", "onnxruntime==1.22.*"])
def test_what_the_lock_leaves_open_is_judged_by_what_it_allows(line: str) -> None:
    """Beside a pinned GPU build: the lock was said to work."""
    [why] = checked(lock(extra=f"{line}\n")).against

    assert why.code == "lock-rival"
    assert values_of(why) == {"distribution": f"onnxruntime {line.removeprefix('onnxruntime')}"}
    assert codes(checked(lock(extra=f"{line} ; sys_platform == 'darwin'\n"))) == []
    assert codes(checked(lock(extra=f"{line}\n{STAND_IN}"))) == [], "the stand-in meets it"


# The command, on the real matrix.


def machine(tmp_path: Path, *packages: Any) -> list[str]:
    document = synthetic.document(*packages, driver="12.2", python="3.11.7")
    (tmp_path / "machine.json").write_text(json.dumps(document))
    return ["--facts", str(tmp_path / "machine.json")]


def real_lock(tmp_path: Path) -> tuple[str, dict[str, str]]:
    facts = from_json(json.loads(json.dumps(synthetic.document(driver="12.2", python="3.11.7"))))
    made = resolve(facts, PlanOptions(), load_matrix())
    rows = [f"{one.name}=={one.version} --hash=sha256:{one.sha256}" for one in made.selection]
    closure = {Requirement(line).name: "99" for line in made.requires}
    rows += [f"{name}=={version} --hash=sha256:{ONE}" for name, version in closure.items()]
    (tmp_path / "lock.txt").write_text("\n".join(rows) + "\n")
    return str(tmp_path / "lock.txt"), {one.name: one.version for one in made.selection} | closure


def exit_code(*argv: str) -> int:
    return check_lock.run(parse(argv).request, {}, "en")


def test_the_exit_codes_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, pins = real_lock(tmp_path)
    installed = [f"{name} {version}" for name, version in pins.items()]

    assert exit_code("lock", "--check", file, *machine(tmp_path, *installed)) == 0
    assert exit_code("lock", "--check", file, *machine(tmp_path)) == 1
    assert "not installed, but 1.26.0 is locked" in capsys.readouterr().out
    text = Path(file).read_text().replace("onnxruntime-gpu==1.26.0", "onnxruntime-gpu==1.31.1")
    Path(file).write_text(text)
    assert exit_code("lock", "--json", "--check", file, *machine(tmp_path, *installed)) == 3
    document = json.loads(capsys.readouterr().out)
    line = text.splitlines().index(next(row for row in text.splitlines() if "1.31.1" in row)) + 1
    assert {row["line"] for row in document["differences"]} == {line}
    assert [row["code"] for row in document["reasons"]][:1] == ["driver-too-old"]


def test_a_lock_may_come_through_a_pipe_and_with_the_line_ends_of_windows(tmp_path: Path) -> None:
    file, _ = real_lock(tmp_path)
    written = Path(file).read_bytes()
    Path(file).write_bytes(written.replace(b"\n", b"\r\n"))
    assert exit_code("lock", "--check", file, *machine(tmp_path)) == 1

    if hasattr(os, "mkfifo"):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(written,))
        writer.start()
        assert exit_code("lock", "--check", str(pipe), *machine(tmp_path)) == 1
        writer.join()


# What `ortgpu-fix lock` writes, in each format.


def _wheel(name: str, version: str) -> Wheel:
    return Wheel(
        name=name, version=version, index_url=PYPI, file=f"{name}.whl", size=1, sha256=ZERO
    )


def made_lock() -> Lock:
    """Return a lock of the invented set for two Pythons, with a companion."""
    wheels = {name: _wheel(name, version) for name, version in SET.items()}
    companion = Wheel(
        name="ortgpu-fix-libraries",
        version="1.26.0+setabc",
        index_url=HERE,
        file="ortgpu_fix_libraries-1.26.0+setabc-py3-none-any.whl",
        size=1,
        sha256=ONE,
    )
    chosen = [Pinned(wheel=wheel, url="https://files.example/x.whl") for wheel in wheels.values()]
    chosen.append(Pinned(wheel=companion, url=f"./wheels/{companion.file}"))
    return Lock(
        distribution="onnxruntime-gpu",
        version="1.26.0",
        cuda="12",
        python="3.11",
        preload_dlls=True,
        targets=(
            LockTarget(
                machines=(),
                facts=synthetic.facts(),
                chosen=tuple(chosen),
                closure=tuple(
                    Pinned(wheel=_wheel(name, it), url="https://files.example/x.whl")
                    for name, it in CLOSURE.items()
                ),
                ranges=("flatbuffers",),
            ),
        ),
        commands=(PastedCommand(None, "ortgpu-fix lock"),),
        matrix_date="2026-01-01",
        matrix_digest="sha256:invented",
    )


WRITERS: dict[str, Callable[[Lock], str]] = {
    "requirements": requirements,
    "pylock": pylock,
    "uv": uv_lines,
    "dockerfile": lambda lock: dockerfile(lock, b""),
}


@pytest.mark.parametrize("name", WRITERS)
def test_each_format_is_read_back(name: str) -> None:
    text = WRITERS[name](made_lock())
    locked = read_lock(text, name)
    there = synthetic.facts(*INSTALLED, "ortgpu-fix-libraries 1.26.0+setabc")

    assert locked.format == name
    assert locked.matrix_digest == "sha256:invented"
    pins = {pin.name: (pin.version, [one.sha256 for one in pin.hashes]) for pin in locked.pins}
    hashes = [] if name == "uv" else [ZERO]
    closure = {} if name == "uv" else CLOSURE  # its own lock has that
    assert pins == {
        **{each: (version, hashes) for each, version in (SET | closure).items()},
        "ortgpu-fix-libraries": ("1.26.0+setabc", [] if name == "uv" else [ONE]),
    }
    assert drift(locked, there, PlanOptions(), MATRIX).verdict == "holds"
    for pin in locked.pins:
        assert pin.name.replace("-", "_") in text.splitlines()[pin.line - 1].replace("-", "_")
        assert all(one.sha256 in text.splitlines()[one.line - 1] for one in pin.hashes)


TORCH_WHEEL = next(
    wheel
    for build in load_matrix().torch.builds
    for wheel in build.wheels
    if wheel.file == "torch-2.10.0-3-cp311-cp311-manylinux_2_28_x86_64.whl"
)


@pytest.mark.parametrize(
    ("version", "sha", "said"),
    [
        ("2.10.0", TORCH_WHEEL.sha256, []),
        ("2.10.0", ONE, ["lock-hash-unknown"]),
        ("2.10.0+cu126", ONE, []),
    ],
)
def test_a_torch_of_pypi_is_held_against_its_hash(version: str, sha: str, said: list[str]) -> None:
    """Of what other indexes have, and of later releases, the matrix knows none."""
    text = lock({"torch": version, "torchvision": "0.99.0", "torchaudio": "2.99.0"}, sha)
    found = drift(read_lock(text, "lock.txt"), synthetic.facts(), PlanOptions(), load_matrix())

    assert [row.why.code for row in found.differences] == said


PROVIDED = {"name": "onnxruntime", "version": "1.26.0", "provided": True}
APP = {"name": "app", "version": "1", "requires": ["onnxruntime-gpu<1.20"]}


@pytest.mark.parametrize(
    ("pins", "packages", "moved"),
    [
        (SET, INSTALLED, []),
        (
            SET,
            [*INSTALLED[:2], *INSTALLED[3:], "onnxruntime-gpu 1.26"],
            [],
        ),  # another way to write it
        (SET, [*INSTALLED, "scipy 1.17"], []),  # of no concern to the lock
        (SET, [*INSTALLED, PROVIDED], []),  # the stand-in is made here, and in no index
        (SET, [*INSTALLED, "onnxruntime 1.26.0"], [("onnxruntime", None, "1.26.0")]),
        (SET, [*INSTALLED, "onnxruntime-directml 1.24"], [("onnxruntime-directml", None, "1.24")]),
        (SET | {"numpy": "2.0"}, [*INSTALLED[:4], "numpy 2.1"], [("numpy", "2.0", "2.1")]),
        (SET | {"numpy": "2.0"}, INSTALLED[:4], [("numpy", "2.0", None)]),
        (
            {"onnxruntime": "1.26.0"},
            [*INSTALLED, "onnxruntime 1.26.0"],
            [("onnxruntime", "1.26.0", "1.26.0")],
        ),
        ({"onnxruntime": "1.26.0"}, [*INSTALLED, PROVIDED], []),
    ],
)
def test_what_is_installed_otherwise_than_locked(
    pins: dict[str, str], packages: list[Any], moved: list[tuple[str, str | None, str | None]]
) -> None:
    text = lock(extra=STAND_IN) if "onnxruntime" in pins else lock(pins)
    found = checked(text, synthetic.facts(*packages))

    assert [(row.name, row.locked, row.installed) for row in found.moved] == moved
    assert found.verdict == ("drifted" if moved else "holds")


def test_the_torch_of_the_lock_takes_the_place_of_the_installed_one_alone() -> None:
    cpu = lock(SET | {"torch": "2.5.1+cpu"})

    assert codes(checked(cpu, synthetic.facts(*INSTALLED, "torch 2.5.1+cu118"))) == []
    assert codes(checked(lock(), synthetic.facts(*INSTALLED, "torch 2.5.1+cu118"))) == [
        "torch-other-cuda"
    ]
    assert codes(checked(cpu, synthetic.facts(*INSTALLED, APP))) == ["demand-conflict"]


def test_two_versions_of_one_distribution_are_refused_by_whoever_installs_them() -> None:
    """A merge of two branches left both; the last one was told, and the lock held."""
    again = f"onnxruntime-gpu==1.20.0 --hash=sha256:{ZERO}\n"
    [why] = checked(lock(extra=again)).against
    apart = again.replace(" --hash", " ; python_version < '3.9' --hash")

    assert why.code == "lock-twice"
    assert values_of(why) == {"distribution": "onnxruntime-gpu", "versions": "1.26.0, 1.20.0"}
    assert codes(checked(lock(extra=apart))) == []
    assert codes(checked(lock(extra=again.replace("1.20.0", "1.26")))) == []
    plain = "\n".join(f"{name}=={it}" for name, it in SET.items())
    assert codes(checked(f"{plain}\nonnxruntime-gpu==1.26.0\n")) == []


def test_with_hashes_what_the_build_requires_has_to_be_pinned() -> None:
    """pip and uv refuse a requirement without a hash where another one has one."""
    text = lock()
    [line] = [row for row in text.splitlines() if row.startswith("numpy")]
    without = text.replace(f"{line}\n    --hash=sha256:{ZERO}\n", "")
    found = checked(without)

    assert [(why.code, values_of(why)) for why in found.against] == [
        ("lock-lacks", {"distribution": "numpy"})
    ]
    unhashed = "\n".join(f"{one}=={it}" for one, it in SET.items())
    assert checked(unhashed).against == ()


def test_what_the_matrix_has_no_distribution_of_is_not_asked_for() -> None:
    """A lock may leave Microsoft's runtime to the system."""
    windows = {"system": "windows", "machine": "x86_64"}
    here = synthetic.facts(platform=windows, driver="12.4")
    made = resolve(here, PlanOptions(), load_matrix())
    rows = [f"{one.name}=={one.version}" for one in made.selection if one.name != "msvc-runtime"]
    found = drift(read_lock("\n".join(rows), "lock"), here, PlanOptions(), load_matrix())

    assert len(rows) == len(made.selection) - 1
    assert found.against == ()


def test_a_plugin_in_a_folder_of_its_own_is_no_rival() -> None:
    """onnxruntime-qnn is one from 2.0 on, and shared the folder before."""
    matrix = MATRIX._replace(plugin_since={"onnxruntime-directml": "2.0.0"})
    for version, code in (("2.0.0", []), ("1.24.0", ["lock-rival"])):
        locked = read_lock(lock(SET | {"onnxruntime-directml": version}), "lock")
        found = drift(locked, synthetic.facts(*INSTALLED), PlanOptions(), matrix)
        assert codes(found) == code
