"""A group's plan made of stand-in wheels that an index on this machine serves, and its lock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import synthetic
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.lock.builder import LockBuilder
from ortgpu_fix.lock.groups import FleetMachine, Group, TargetPlan
from ortgpu_fix.messages.shells import PastedCommand
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.utils.process import run
from ortgpu_fix.uv.program import Uv
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import as_plan, as_wheel, clean_environment, find_uv

SET = ("onnxruntime-gpu", "nvidia-cublas-cu12", "nvidia-cudnn-cu12")
ORDINARY = ("flatbuffers", "numpy", "packaging")
COMPANIONS = ("onnxruntime", "ortgpu-fix-libraries")


def fill(folder: Path) -> dict[str, Path]:
    """Write the wheels, and return them by name; of the set the versions are the invented ones."""
    needs = [*ORDINARY[:2], "packaging"]
    made = [
        make_wheel(
            folder,
            "onnxruntime-gpu",
            "1.26.0",
            files={"onnxruntime/__init__.py": "", "onnxruntime/gpu.so": b"x" * 9000},
            requires=needs,
        ),
        make_wheel(
            folder,
            "nvidia-cublas-cu12",
            "12.8.4",
            files={"nvidia/cublas/lib/libcublas.so.12": b"y" * 9000},
        ),
        make_wheel(
            folder,
            "nvidia-cudnn-cu12",
            "9.28.0",
            files={"nvidia/cudnn/lib/libcudnn.so.9": b"z" * 9000},
            requires=["nvidia-cublas-cu12"],
        ),
        make_wheel(folder, "numpy", "2.4.6", files={"numpy/__init__.py": ""}),
        make_wheel(folder, "packaging", "26.3", files={"packaging/__init__.py": ""}),
        make_wheel(folder, "flatbuffers", "25.9.23", files={"flatbuffers/__init__.py": ""}),
    ]
    make_wheel(folder, "numpy", "2.4.5", files={"numpy/worse.py": ""})
    cpu: dict[str, str | bytes] = {"onnxruntime/__init__.py": "", "onnxruntime/cpu.so": b"w" * 9000}
    make_wheel(folder, "onnxruntime", "1.31.0", files=cpu, requires=needs)
    make_wheel(folder, "fastembed", "0.9.1", requires=["onnxruntime>=1.17"])
    return {str(as_wheel(path).name): path for path in made}


@dataclass(frozen=True)
class Shelf:
    """The index, and what it serves."""

    index: LocalIndex
    wheels: dict[str, Path]

    def group(self, facts: Facts | None = None) -> Group:
        """Return the plan of the set for a machine like this one, or that of `facts`."""
        facts = facts or synthetic.machine(version=synthetic.here())
        chosen = tuple(sorted((as_wheel(self.wheels[name]) for name in SET), key=lambda w: w.name))
        plan = as_plan([])._replace(
            selection=chosen,
            requires=("flatbuffers", "numpy>=1.21.6", "packaging"),
        )
        target = TargetPlan(
            platform="linux_x86_64",
            abi="cp311",
            machines=(FleetMachine(name="", facts=facts),),
            facts=facts,
            plan=plan,
        )
        return Group(distribution="onnxruntime-gpu", version="1.26.0", cuda="12", targets=(target,))

    def maker(
        self, folder: Path, *, companions: str | None = None, **sources: object
    ) -> LockBuilder:
        """Return what makes locks that are put into `folder`."""
        env = clean_environment() | {"UV_CACHE_DIR": str(folder / "cache-of-uv")}
        named = IndexConfig(index_url=self.index.url, origin="flag")
        return LockBuilder(
            options=PlanOptions(),
            matrix=synthetic.matrix(),
            index=Index(replace(named, **sources), Limits(pauses=(0.01,))),  # type: ignore[arg-type]
            uv=Uv(program=find_uv(), version="0", environ=env, runner=run),
            commands=(PastedCommand(None, "ortgpu-fix lock"),),
            folder=folder,
            companions=companions,
            addresses=True,
        )
