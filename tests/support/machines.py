"""Record the simulated machines of `captures/`: `python tests/support/machines.py [NAME…]`.

A real probe looks at a simulated driver, a stand-in for `/` and a real venv of stand-in
distributions. What this machine cannot show (another processor, musl, conda) is then written over
the raw texts, so that what is kept is what such a machine would have said.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import drivers
from drivers import A100, GTX1660, RTX3090, SMI_TABLE, Card
from environments import make_venv, put, put_onnxruntime, site_packages

from ortgpu_fix.facts import capture as captures
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.capture import Capture, Child
from ortgpu_fix.probe.background import ProbeProcesses
from ortgpu_fix.probe.machine import probe
from ortgpu_fix.utils import process as run
from support.pythons import find_python

FOLDER = Path(__file__).parents[1] / "captures"
Package = tuple[str, str, tuple[str, ...]]
USUAL: tuple[Package, ...] = (
    ("coloredlogs", "15.0.1", ("humanfriendly>=9.1",)),
    ("flatbuffers", "25.2.10", ()),
    ("humanfriendly", "10.0", ()),
    ("mpmath", "1.3.0", ()),
    ("packaging", "25.0", ()),
    ("protobuf", "6.31.1", ()),
    ("sympy", "1.14.0", ("mpmath<1.4,>=1.1.0",)),
)
GLIBC = {"20.04": "2.31", "22.04": "2.35", "24.04": "2.39", "26.04": "2.43"}
"""What each Ubuntu comes with; the machine that records has another one."""
UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="{}"\n'
KERNEL = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Sep 20 09:35:17 UTC 2023\n"
NAMES = {"Tesla T4": "7.5", "NVIDIA GeForce RTX 3080": "8.6"}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine to simulate."""

    name: str
    driver: Mapping[str, object]
    python: str = "3.11"
    build: tuple[str, str, str | None] | None = None
    """Distribution, version and CUDA of the onnxruntime that is installed."""
    packages: tuple[Package, ...] = (("numpy", "2.2.6", ()), *USUAL)
    cudnns: tuple[tuple[str, str], ...] = ()
    """Distributions of cuDNN that were unpacked into their one folder, in this order."""
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files below the stand-in for `/`."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    inside: Iterable[tuple[str, str]] = ()
    """Replacements in what the environment said."""
    over: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields of the capture that this machine cannot show."""


def cuda_image(version: str) -> dict[str, object]:
    """Return what an image with a CUDA toolkit, and no cuDNN, has."""
    root, major = f"/usr/local/cuda-{version}", version.partition(".")[0]
    files = {"cublas": "5.8", "cublasLt": "5.8", "cudart": "99", "nvrtc": "99"}
    libraries = [
        (f"{root}/lib64/lib{name}.so.{major}", f"{root}/lib64/lib{name}.so.{version}.{last}")
        for name, last in files.items()
    ]
    libraries.append((f"{root}/lib64/libcufft.so.11", f"{root}/lib64/libcufft.so.11.2.0.44"))
    libraries.append((f"{root}/lib64/libcurand.so.10", f"{root}/lib64/libcurand.so.10.3.5.119"))
    told = json.dumps({"cuda": {"name": "CUDA SDK", "version": f"{version}.0"}})
    return {"libraries": tuple(libraries), "toolkits": {root: {"version.json": told}}}


CUBLAS = {"nvidia-cudnn-cu12": "-cu12", "nvidia-cudnn-cu13": ""}
CUDA_12_8: tuple[Package, ...] = (
    ("nvidia-cublas-cu12", "12.8.5.5", ()),
    ("nvidia-cuda-nvrtc-cu12", "12.8.93", ()),
    ("nvidia-cuda-runtime-cu12", "12.8.90", ()),
    ("nvidia-cufft-cu12", "11.3.3.83", ("nvidia-nvjitlink-cu12",)),
    ("nvidia-curand-cu12", "10.3.9.90", ()),
    ("nvidia-nvjitlink-cu12", "12.8.93", ()),
)
CUDA_12_2: tuple[Package, ...] = (
    ("nvidia-cublas-cu12", "12.2.5.6", ()),
    ("nvidia-cuda-nvrtc-cu12", "12.2.140", ()),
    ("nvidia-cuda-runtime-cu12", "12.2.140", ()),
    ("nvidia-cufft-cu12", "11.0.8.103", ()),
    ("nvidia-curand-cu12", "10.3.3.141", ()),
)
PARTS = {
    "cublas": ("nvidia-cublas", "13.1.1.3"),
    "cudart": ("nvidia-cuda-runtime", "13.0.96"),
    "cufft": ("nvidia-cufft", "12.0.0.61"),
    "curand": ("nvidia-curand", "10.4.0.35"),
    "nvjitlink": ("nvidia-nvjitlink", "13.0.88"),
    "nvrtc": ("nvidia-cuda-nvrtc", "13.0.88"),
}
TORCH_2_14: tuple[Package, ...] = (
    (
        "torch",
        "2.14.0",
        (
            f"cuda-toolkit[{','.join(PARTS)}]==13.0.3; platform_system == 'Linux'",
            "nvidia-cudnn-cu13==9.24.0.43; platform_system == 'Linux'",
        ),
    ),
    (
        "cuda-toolkit",
        "13.0.3",
        tuple(f"{name}=={version}; extra == '{part}'" for part, (name, version) in PARTS.items()),
    ),
    *((name, version, ()) for name, version in PARTS.values()),
)
FASTEMBED: Package = ("fastembed", "0.9.1", ("onnxruntime>=1.17.0,!=1.20.0",))
CONDA = "/opt/conda/envs/ocr"
MACHINES = (
    Machine(
        name="linux-a100-535-image-cuda124",
        driver={"release": "535.104.12", "cuda": 12020, "cards": [A100]},
        python="3.10",
        build=("onnxruntime-gpu", "1.19.2", None),
        packages=(("numpy", "1.26.4", ()), *USUAL),
        texts={"etc/os-release": UBUNTU.format("22.04"), ".dockerenv": ""},
        environ={
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
        },
        over=cuda_image("12.4"),
    ),
    Machine(
        name="linux-gtx1660s-rtx3090-515-conda",
        driver={"release": "515.65.01", "cuda": 11070, "cards": [GTX1660, RTX3090]},
        python="3.9",
        build=("onnxruntime-gpu", "1.12.0", None),
        packages=(("numpy", "1.23.5", ()), ("rapidocr-onnxruntime", "1.1.0", ("numpy",)), *USUAL),
        texts={"etc/os-release": UBUNTU.format("20.04")},
        environ={"CONDA_PREFIX": CONDA},
        inside=(
            ('"environment": "venv"', '"environment": "conda"'),
            ("/opt/app/.venv", CONDA),
        ),
        over={
            "toolkits": {"/usr/local/cuda-11.6": {"cuda.h": "#define CUDA_VERSION 11060\n"}},
            "libraries": tuple(
                (f"{CONDA}/lib/{name}", f"{CONDA}/lib/{name}{rest}")
                for name, rest in (
                    ("libcublas.so.11", ".9.2.110"),
                    ("libcublasLt.so.11", ".9.2.110"),
                    ("libcudart.so.11.0", ""),
                    ("libcudnn.so.8", ".3.2"),
                    ("libcufft.so.10", ".7.1.112"),
                    ("libcurand.so.10", ".2.9.124"),
                )
            ),
        },
    ),
    Machine(
        name="linux-rtx4090-610",
        driver={
            "release": "610.43.02",
            "cuda": 13030,
            "cards": [Card(name="NVIDIA GeForce RTX 4090", capability=(8, 9), memory_mib=24564)],
            "smi": f"cat <<TABLE\n{SMI_TABLE}TABLE",
        },
        python="3.13",
        build=("onnxruntime-gpu", "1.31.1", "13.0"),
        texts={"etc/os-release": UBUNTU.format("26.04")},
    ),
    Machine(
        name="linux-b200-570",
        driver={
            "release": "570.148.08",
            "cuda": 12080,
            "cards": [Card(name="NVIDIA B200", capability=(10, 0), memory_mib=183359, mig=0)] * 8,
        },
        python="3.12",
        texts={"etc/os-release": UBUNTU.format("24.04")},
    ),
    Machine(
        name="linux-k80-470",
        driver={
            "release": "470.256.02",
            "cuda": 11040,
            "cards": [Card(name="Tesla K80", capability=(3, 7), memory_mib=11441)] * 2,
        },
        build=("onnxruntime-gpu", "1.18.1", None),
        texts={"etc/os-release": UBUNTU.format("20.04")},
    ),
    Machine(
        name="linux-rtx3080-550-mismatch",
        driver={
            "release": "550.120",
            "cuda": 12040,
            "nvml_init": 18,
            "cu_init": 803,
            "smi": "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
        },
        build=("onnxruntime-gpu", "1.22.0", "12.8"),
        texts={
            "etc/os-release": UBUNTU.format("24.04"),
            "proc/driver/nvidia/version": KERNEL.format("550.107.02"),
            "proc/driver/nvidia/gpus/0000:01:00.0/information": (
                "Model: \t\t NVIDIA GeForce RTX 3080\nIRQ:   \t\t 149\n"
            ),
        },
    ),
    Machine(
        name="linux-driver-535-without-gpu",
        driver={"release": "535.261.03", "cuda": 12020, "nvml_init": 9, "cu_init": 100},
        build=("onnxruntime", "1.22.1", None),
        texts={"etc/os-release": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\n'},
    ),
    Machine(
        name="linux-container-without-driver",
        driver={"libraries": ()},
        build=("onnxruntime", "1.22.1", None),
        texts={"etc/os-release": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\n', ".dockerenv": ""},
    ),
    Machine(
        name="linux-alpine-t4",
        driver={"libraries": ()},
        python="3.12",
        packages=(),
        texts={
            "etc/os-release": 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.19.1\n',
            ".dockerenv": "",
            "proc/driver/nvidia/version": KERNEL.format("550.54.15"),
            "proc/driver/nvidia/gpus/0000:00:1e.0/information": "Model: \t\t Tesla T4\n",
        },
        environ={"NVIDIA_VISIBLE_DEVICES": "all"},
        inside=(
            ("glibc 2.36", "musl 1.2.4"),
            ("-x86_64-linux-gnu", "-x86_64-linux-musl"),
        ),
        over={
            "children": {
                "gpu_query": Child(
                    stdout="".join(
                        json.dumps(
                            {
                                "library": library,
                                "state": "unloadable",
                                "problem": f"Error relocating {file}: __register_atfork: symbol"
                                " not found",
                            }
                        )
                        + "\n"
                        for library, file in (
                            ("nvml", "/usr/lib64/libnvidia-ml.so.1"),
                            ("libcuda", "/usr/lib64/libcuda.so.1"),
                        )
                    ),
                    returncode=0,
                )
            }
        },
    ),
    Machine(
        name="wsl-rtx4070-560",
        driver={
            "release": "560.94",
            "cuda": 12060,
            "cards": [
                Card(name="NVIDIA GeForce RTX 4070 Laptop GPU", capability=(8, 9), memory_mib=8188)
            ],
        },
        python="3.12",
        build=("onnxruntime-gpu", "1.31.1", "13.0"),
        texts={
            "etc/os-release": UBUNTU.format("24.04"),
            "proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n",
        },
    ),
    Machine(
        name="linux-aarch64-gb10-580",
        driver={
            "release": "580.95.05",
            "cuda": 13000,
            "cards": [Card(name="NVIDIA GB10", capability=(12, 1), memory_mib=122571)],
            "fail": "nvmlDeviceGetMemoryInfo",
        },
        python="3.12",
        texts={"etc/os-release": UBUNTU.format("24.04")},
        inside=(("x86_64", "aarch64"),),
        over={"machine": "aarch64"},
    ),
    Machine(
        name="linux-rtx4090-570-cpu-build-came-back",
        driver={
            "release": "570.148.08",
            "cuda": 12080,
            "cards": [Card(name="NVIDIA GeForce RTX 4090", capability=(8, 9), memory_mib=24564)],
        },
        python="3.12",
        build=("onnxruntime", "1.31.1", None),
        packages=(
            ("onnxruntime-gpu", "1.26.0", ("flatbuffers", "numpy>=1.21.6", "packaging")),
            FASTEMBED,
            ("numpy", "2.2.6", ()),
            *CUDA_12_8,
            *USUAL,
        ),
        cudnns=(("nvidia-cudnn-cu12", "9.28.0.42"),),
        texts={"etc/os-release": UBUNTU.format("24.04")},
    ),
    Machine(
        name="linux-a10-580-torch-changed-the-cuda",
        driver={
            "release": "580.95.05",
            "cuda": 13000,
            "cards": [Card(name="NVIDIA A10", capability=(8, 6), memory_mib=23028)],
        },
        python="3.12",
        build=("onnxruntime-gpu", "1.26.0", "12.8"),
        packages=(FASTEMBED, ("numpy", "2.2.6", ()), *CUDA_12_8, *TORCH_2_14, *USUAL),
        cudnns=(("nvidia-cudnn-cu12", "9.28.0.42"), ("nvidia-cudnn-cu13", "9.24.0.43")),
        texts={"etc/os-release": UBUNTU.format("24.04")},
    ),
    Machine(
        name="linux-l4-550-two-cudnns",
        driver={
            "release": "550.163.01",
            "cuda": 12040,
            "cards": [Card(name="NVIDIA L4", capability=(8, 9), memory_mib=23034)],
        },
        python="3.12",
        build=("onnxruntime-gpu", "1.23.2", "12.2"),
        packages=(
            ("nvidia-cublas", "13.1.1.3", ()),
            ("numpy", "2.2.6", ()),
            *CUDA_12_2,
            *USUAL,
        ),
        cudnns=(("nvidia-cudnn-cu12", "9.10.2.21"), ("nvidia-cudnn-cu13", "9.24.0.43")),
        texts={"etc/os-release": UBUNTU.format("22.04")},
    ),
    Machine(
        name="linux-jetson-orin",
        driver={
            "cuda": 12060,
            "cards": [Card(name="Orin", capability=(8, 7), memory_mib=62841)],
            "libraries": ["libcuda.so.1"],
        },
        python="3.10",
        texts={
            "etc/os-release": UBUNTU.format("22.04"),
            "etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD:"
            " generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025\n",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for"
            " aarch64  540.4.0  Release Build\n",
        },
        inside=(("x86_64", "aarch64"),),
        over={
            "machine": "aarch64",
            "toolkits": {"/usr/local/cuda-12.6": {"cuda.h": "#define CUDA_VERSION 12060\n"}},
        },
    ),
)


def simulate(machine: Machine, stubs: Path, folder: Path) -> Capture:
    """Return the capture of `machine`."""
    python = find_python(machine.python)
    if python is None:
        sys.exit(f"no Python {machine.python} on this machine")
    venv = make_venv(python, folder / "venv")
    site = site_packages(venv)
    if machine.build:
        put_onnxruntime(site, *machine.build)
    for name, version, requires in machine.packages:
        put(site, name, version, requires=requires)
    for name, version in machine.cudnns:
        # The real ones differ in size: at 9.24 that for CUDA 13 has a third of the other.
        content = f"{name} {version}".encode() * (1 if "cu13" in name else 3)
        files = {"nvidia/cudnn/lib/libcudnn_ops.so.9": content}
        put(site, name, version, requires=[f"nvidia-cublas{CUBLAS[name]}"], files=files)
    root = folder / "root"
    root.mkdir()
    for path, text in machine.texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    environ = drivers.simulate(stubs, folder / "driver", **machine.driver)  # type: ignore[arg-type]
    seen = probe(
        ProbeProcesses(venv, runner=run.run, environ=environ),
        runner=run.run,
        environ=environ,
        root=root,
    ).capture
    inside = seen.inside
    base = str(python.resolve().parents[1])
    for old, new in (
        (str(folder / "venv"), "/opt/app/.venv"),
        (base, "/usr/local"),
        *_libc(machine),
        *machine.inside,
    ):
        inside = inside.replace(old, new)
    children = {
        name: child._replace(stdout=child.stdout.replace(str(folder / "driver/lib"), "/usr/lib"))
        for name, child in seen.children.items()
    }
    plain = seen._replace(inside=inside, children=children, environment=dict(machine.environ))
    return plain._replace(**machine.over)  # type: ignore[arg-type]


def _libc(machine: Machine) -> list[tuple[str, str]]:
    release = machine.texts["etc/os-release"].rpartition("VERSION_ID=")[2].strip('"\n')
    own = os.confstr("CS_GNU_LIBC_VERSION") or ""
    return [(own, f"glibc {GLIBC.get(release, '2.36')}")]


def write(name: str, capture: Capture) -> None:
    """Write the capture, and the facts in it beside it; what else is expected there stays."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps(captures.to_json(capture), indent=1, ensure_ascii=False)
    (folder / "capture.json").write_text(document + "\n", encoding="utf-8")
    expected = folder / "expected.json"
    values = json.loads(expected.read_text("utf-8")) if expected.exists() else {}
    values["facts"] = facts_json.to_json(captures.facts(capture, NAMES.get))
    expected.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main(names: list[str]) -> None:
    """Record the machines named, all of them where none is."""
    with tempfile.TemporaryDirectory() as temporary:
        stubs = Path(temporary, "stubs")
        stubs.mkdir()
        drivers.compile_stubs(stubs)
        for machine in MACHINES:
            if machine.name in names or not names:
                folder = Path(temporary, machine.name)
                folder.mkdir()
                write(machine.name, simulate(machine, stubs, folder))


if __name__ == "__main__":
    main(sys.argv[1:])
