"""A torch from its own index, applied to real environments by real uv.

Three indexes: the default one, PyTorch's, and one more that the user's configuration names. Each
offers a higher version, or other content, of what another one must serve.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import run_here

from ortgpu_fix.apply.apply_plan import apply
from ortgpu_fix.apply.chosen_wheels import ChosenWheel
from ortgpu_fix.errors import Error
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.process import run
from ortgpu_fix.utils.progress import silent
from ortgpu_fix.uv.program import Uv
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import (
    Venv,
    as_plan,
    as_wheel,
    clean_environment,
    find_uv,
    make_venv,
    state_of,
)
from support.torch_index import CUBLAS, CUDNN, REQUIRES, TorchIndex, make_index, make_torch

EVIL = {"evil.py": "import os\n"}
OUR_OWN = ("onnxruntime-gpu 1.26.0", f"nvidia-cudnn-cu12 {CUDNN}", f"nvidia-cublas-cu12 {CUBLAS}")
ORDINARY = (
    *("filelock 3.20.0", "sympy 1.14.0", "mpmath 1.3.0", "numpy 2.3.0", "pillow 12.0.0"),
    *("nvidia-nccl-cu12 2.27.5", "triton 3.6.0", "flatbuffers 25.9.23"),
)
NAMES = {line.partition(" ")[0] for line in (*OUR_OWN, *ORDINARY)} | {"torch", "torchvision"}
CU130 = ("nvidia-cublas 13.1.0.3", "nvidia-nvtx 13.0.85", "nvidia-nvtx 13.2.1")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make what the three indexes have."""
    root = tmp_path_factory.mktemp("indexes")
    main, torch, extra = root / "main", make_index(root / "torch"), root / "extra"
    for line in (*OUR_OWN, *ORDINARY, *CU130, "nvidia-cudnn-cu13 9.19.0.56"):
        name, version = line.split()
        requires = ["mpmath"] if name == "sympy" else []
        make_wheel(main, name, version, files={f"{name}-is.txt": "ours"}, requires=requires)
    toolkit = REQUIRES["cuda-toolkit 13.0.2"]
    make_wheel(main, "cuda-toolkit", "13.0.2", requires=toolkit, extras=["cublas", "nvtx"])
    make_torch(main, "torch", "2.11.0")
    for name in NAMES:  # whoever looks for the highest version takes these
        make_wheel(extra, name, "99.0", files=EVIL)
    make_wheel(extra, "nvidia-nccl-cu12", "2.27.5", files=EVIL)
    make_wheel(extra, "nvidia-nvtx", "13.0.85.7", files=EVIL)
    for name in ("torch", "torchvision"):
        make_wheel(main, name, "99.0", files=EVIL)
    make_wheel(main, "torch", "2.10.0+cu128", files=EVIL)
    for name in ("onnxruntime-gpu", "nvidia-cudnn-cu12", "filelock", "nvidia-nccl-cu12"):
        make_wheel(torch, name, "99.0", files=EVIL)
    make_wheel(torch, "nvidia-nccl-cu12", "2.27.5", files=EVIL)
    make_wheel(torch, "triton", "3.6.0", files=EVIL)
    return {"main": main, "torch": torch, "extra": extra}


class Stand:
    """An environment, the indexes and uv."""

    def __init__(self, venv: Venv, main: LocalIndex, torch: TorchIndex, uv: Uv) -> None:
        self.venv, self.main, self.torch, self.uv = venv, main, torch, uv
        self.before = state_of(venv.folder)

    def have(self, *lines: str, folder: Path) -> None:
        for line in lines:
            name, version = line.split()
            self.venv.install(make_wheel(folder, name, version, files={f"{name}.txt": "old"}))
        (self.venv.folder / ".lock").unlink(missing_ok=True)
        self.before = state_of(self.venv.folder)

    def named(self, name: str, version: str) -> Wheel:
        return Wheel(
            name=name, version=version, index_url=self.torch.url, file="", size=0, sha256=""
        )

    def known(self, line: str) -> Wheel:
        name, version = line.split()
        stem = f"{name.replace('-', '_')}-{version}-"
        return as_wheel(next(self.main.folder.glob(f"{stem}*.whl")))

    def plan(self, *wheels: Wheel | str, requires: tuple[str, ...] = ()) -> Plan:
        install = tuple(self.known(one) if isinstance(one, str) else one for one in wheels)
        return as_plan([], requires=requires)._replace(install=install, selection=install)

    def apply(
        self,
        plan: Plan,
        confirm: Callable[[Sequence[ChosenWheel]], None] = lambda _: None,
        **changes: object,
    ) -> None:
        sources = IndexConfig(index_url=self.main.url, origin="flag", torch_index=self.torch.base)
        index = Index(replace(sources, **changes), Limits(read=2, pauses=(0.01,)))  # type: ignore[arg-type]
        target = self.venv.target()
        verified = lambda: (True, "")  # noqa: E731
        apply(
            plan,
            target,
            index=index,
            uv=self.uv,
            verify=verified,
            progress=silent,
            confirm=confirm,
        )

    def refused(self, plan: Plan, **changes: Any) -> Error:
        with pytest.raises(Error) as caught:
            self.apply(plan, **changes)
        assert state_of(self.venv.folder) == self.before
        return caught.value

    def has(self) -> dict[str, str]:
        return {one.key: one.version for one in self.venv.target().installed}

    def is_clean(self) -> bool:
        return not list(self.venv.site.rglob("evil.py"))


def uv(url: str, folder: Path) -> Uv:
    """A uv of a user whose configuration names one more index."""
    config = folder / "uv.toml"
    config.write_text(f'[[index]]\nname = "more"\nurl = "{url}"\n')
    environ = clean_environment() | {"UV_CONFIG_FILE": str(config), "UV_EXTRA_INDEX_URL": url}
    environ.pop("UV_NO_CONFIG")
    environ["UV_CACHE_DIR"] = str(folder / "uv-cache")
    return Uv(program=find_uv(), version="0", environ=environ, runner=run)


@pytest.fixture
def stand(folders: dict[str, Path], tmp_path: Path) -> Iterator[Stand]:
    with ExitStack() as stack:
        main, extra = (stack.enter_context(LocalIndex(folders[key])) for key in ("main", "extra"))
        torch = TorchIndex(folders["torch"])
        stack.enter_context(torch)
        yield Stand(make_venv(tmp_path / "venv", pip=False), main, torch, uv(extra.url, tmp_path))


def pair(stand: Stand, **changes: str) -> Plan:
    rows = {"torch": "2.10.0+cu128", "torchvision": "0.25.0+cu128"} | changes
    named = [stand.named(*row) for row in rows.items()]
    return stand.plan(*OUR_OWN, *named, requires=("flatbuffers", "numpy>=1.21"))


def test_the_libraries_of_tensorrt_come_from_nvidia_s_index_alone(
    stand: Stand, tmp_path: Path
) -> None:
    """Its pages are below its root. The default index has the same version, and a newer one."""
    name, version = "tensorrt-cu12-libs", "10.16.1.11"
    tag, library = "py3-none-manylinux_2_28_x86_64", "tensorrt_libs/libnvinfer.so.10"
    cublas = "nvidia-cublas-cu12"
    for each in (version, "99.0"):
        make_wheel(stand.main.folder, name, each, files=EVIL, tag=tag)
    make_wheel(tmp_path, name, version, files={library: "ours"}, requires=[cublas], tag=tag)
    try:
        with LocalIndex(tmp_path) as nvidia:
            index_url = nvidia.url.removesuffix("/simple")
            wheel = Wheel(name, version, index_url, file="", size=0, sha256="")
            stand.apply(stand.plan(wheel, f"{cublas} {CUBLAS}"), tensorrt_index=index_url)
    finally:
        for path in stand.main.folder.glob("tensorrt*"):
            path.unlink()

    assert (stand.has()[name], stand.is_clean()) == (version, True)
    assert (stand.venv.site / library).read_text() == "ours"


def test_ordinary_requirements_come_from_the_chosen_index_alone(stand: Stand) -> None:
    """Whatever named it: uv is configured for another one, which has a higher version."""
    stand.apply(stand.plan(requires=("filelock",)), origin="default")

    assert stand.has()["filelock"] == "3.20.0"


def test_what_is_not_the_matrix_s_is_shown_before_the_download(
    stand: Stand, tmp_path: Path
) -> None:
    """Also torch itself, and what it requires, though only its wheel tells what that is."""
    shown: list[ChosenWheel] = []

    def confirm(chosen: Sequence[ChosenWheel]) -> None:
        shown.extend(chosen)
        lines = stand.torch.behaviour.requests + stand.main.behaviour.requests
        whole = [line for line in lines if line.endswith(".whl") and line.startswith("GET")]
        assert whole == []  # only what tells what they require
        raise Error("declined")

    stand.have("nvidia-nvtx 13.2.1", folder=tmp_path / "old")
    assert stand.refused(pair(stand), confirm=confirm).code == "declined"

    rows = {row.wheel.name: row for row in shown}
    assert rows.keys() == {line.split()[0] for line in ORDINARY} | {"torch", "torchvision"}
    assert {rows[name].place for name in ("torch", "torchvision")} == {stand.torch.url}
    assert rows["filelock"].place == stand.main.url
    for row in shown:
        folder = (stand.torch if row.place == stand.torch.url else stand.main).folder
        digest = hashlib.sha256((folder / row.wheel.file).read_bytes()).hexdigest()
        assert digest == row.wheel.sha256
    assert not (stand.venv.site / ".ortgpu-fix").exists()


def test_each_package_comes_from_its_own_index(stand: Stand) -> None:
    stand.apply(pair(stand))

    has = stand.has()
    expected = dict(line.split() for line in (*OUR_OWN, *ORDINARY))
    assert expected.items() <= has.items()
    assert (has["torch"], has["torchvision"]) == ("2.10.0+cu128", "0.25.0+cu128")
    assert stand.is_clean()
    assert (stand.venv.site / "torch/version.py").is_file()
    assert not list(stand.venv.site.rglob("libcudnn.so.x"))  # the mirror's
    assert not list(stand.venv.site.glob("torch-*/direct_url.json"))


def test_a_torch_of_the_default_index_with_a_toolkit(stand: Stand, tmp_path: Path) -> None:
    """Its pins stand behind extras of `cuda-toolkit`, as ranges: and what was there moves."""
    stand.have("nvidia-nvtx 13.2.1", "triton 3.5.0", folder=tmp_path / "old")
    wheels = ("torch 2.11.0", "nvidia-cublas 13.1.0.3", "nvidia-cudnn-cu13 9.19.0.56")

    stand.apply(stand.plan("onnxruntime-gpu 1.26.0", *wheels))

    has = stand.has()
    assert (has["cuda-toolkit"], has["nvidia-nvtx"]) == ("13.0.2", "13.0.85")
    assert (has["torch"], has["triton"], has["filelock"]) == ("2.11.0", "3.6.0", "3.20.0")
    assert stand.is_clean()


def test_what_only_torchs_index_has_comes_from_there(
    stand: Stand, folders: dict[str, Path], tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    requires = ("pytorch-triton==3.7.0", "filelock")
    make_torch(own, "torch", "2.12.0+cu128", requires=requires)
    make_wheel(own, "pytorch-triton", "3.7.0", requires=["needs-more"])
    make_wheel(own, "needs-more", "1.0")
    make_wheel(own, "filelock", "99.0", files=EVIL)
    stand.torch.folder = own

    stand.apply(stand.plan(*OUR_OWN, stand.named("torch", "2.12.0+cu128")))
    stand.torch.folder = folders["torch"]

    has = stand.has()
    assert (has["pytorch-triton"], has["needs-more"], has["filelock"]) == ("3.7.0", "1.0", "3.20.0")
    assert stand.is_clean()


def test_metadata_that_contradict_the_plan_change_nothing(stand: Stand, tmp_path: Path) -> None:
    own = make_torch(
        tmp_path / "own", "torch", "2.10.0+cu128", requires=("nvidia-cudnn-cu12==9.1.0.70",)
    )
    stand.torch.folder = own.parent

    error = stand.refused(stand.plan(*OUR_OWN, stand.named("torch", "2.10.0+cu128")))

    assert error.code == "requirements-impossible"
    assert "nvidia-cudnn-cu12==9.1.0.70" in str(error.values["said"])


def test_the_command_line_asks_the_mirror_and_says_what_it_has_instead(
    stand: Stand, tmp_path: Path
) -> None:
    """The matrix knows torch 2.11.0 for CUDA 12.8; this mirror of PyTorch's index does not."""
    stand.have("torch 2.11.0", folder=tmp_path / "old")
    address = stand.torch.base.replace("//", "//name:secret@")
    stand.torch.behaviour.login = "name:secret"
    argv = ["--python", str(stand.venv.python), "--driver", "570.86.10", "--gpu", "8.0"]
    argv += ["--torch", "match", "--json"]
    argv += ["--torch-index-url", address, "--index-url", stand.main.url]

    def run_it(*more: str) -> subprocess.CompletedProcess[str]:
        return run_here(*argv, *more, cwd=tmp_path, env=clean_environment())

    planned = {row["name"]: row["index"] for row in json.loads(run_it().stdout)["install"]}
    done = run_it("--apply", "--yes")

    assert planned["torch"] == stand.torch.url
    assert done.returncode == 7, done.stdout + done.stderr
    said = json.loads(done.stdout)["error"]
    assert said["code"] == "index-lacks-version"
    assert "2.10.0+cu128" in said["message"]
    assert "secret" not in done.stdout + done.stderr
    assert state_of(stand.venv.folder) == stand.before
