"""A small invented matrix and machines to plan on it, so that no edit of the data moves a test.

The names are the field's own, the numbers round: onnxruntime-gpu 1.18 is built for CUDA 11.8, 1.26
for CUDA 12.8, 1.31 for CUDA 13.0.
"""

from __future__ import annotations

import platform
from typing import Any

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts import model as facts_module
from ortgpu_fix.matrix import model as matrix_module
from ortgpu_fix.matrix import parse as matrix_parse

LINUX, WINDOWS = "linux_x86_64", "windows_x86_64"
SHA = "0" * 64


def build(
    version: str,
    cuda: str,
    *,
    sass: tuple[str, ...],
    ptx: tuple[str, ...] = (),
    pythons: tuple[str, ...] = ("cp310", "cp311", "cp312"),
    cudnn: str = "9",
    suffix: str = "",
    requires: tuple[str, ...] = ("flatbuffers", "numpy>=1.21.6"),
    platform: str = LINUX,
) -> dict[str, Any]:
    major = cuda.partition(".")[0]
    nvinfer = "libnvinfer.so.10" if cudnn == "9" else "libnvinfer.so.8"
    return {
        "version": version,
        "platform": platform,
        "cuda": cuda,
        "cudnn": cudnn,
        "needs": [
            {
                "library": f"libcublas.so.{major}",
                "how": "links",
                "distribution": f"nvidia-cublas{suffix}",
                "since": f"{major}.2.0" if major == "12" else f"{major}.0.0",
            },
            {
                "library": f"libcudnn.so.{cudnn}",
                "how": "links",
                "distribution": f"nvidia-cudnn-cu{major}",
                "since": f"{cudnn}.0.0",
            },
            {"library": "libcuda.so.1", "how": "links"},
        ],
        **({"tensorrt": nvinfer} if platform == LINUX else {}),
        "sass": list(sass),
        "ptx": list(ptx),
        "glibc": "2.28",
        "preload_dlls": cudnn == "9",
        "requires": list(requires),
        "wheels": [
            {
                "python": python,
                "size": 300_000_000,
                "sha256": SHA,
                "file": f"onnxruntime_gpu-{version}-{python}-{python}-{platform}.whl",
            }
            for python in pythons
        ],
    }


def distribution(
    name: str,
    cuda: str,
    library: str,
    versions: tuple[str, ...],
    *,
    code: tuple[tuple[str, str, tuple[str, ...]], ...] = (),
    requires: tuple[str, ...] = (),
    platforms: tuple[str, ...] = (LINUX,),
) -> dict[str, Any]:
    folder = name.removeprefix("nvidia-").partition("-cu1")[0]
    return {
        "name": name,
        "cuda": cuda,
        "releases": [
            {
                "version": version,
                "platform": platform,
                "glibc": "2.17",
                "size": 100_000_000,
                "sha256": SHA,
                "file": f"{name.replace('-', '_')}-{version}-py3-none-{platform}.whl",
                "requires": list(requires),
            }
            for version in versions
            for platform in platforms
        ],
        "files": [
            {
                "platform": platform,
                "versions": [version for version in versions if _has(library, version)],
                "libraries": {library: f"nvidia/{folder}/lib/{library}"},
                "links": [],
                "loads": [],
            }
            for platform in platforms
        ],
        "code": [
            {"platform": platform, "first": first, "last": last, "sass": list(sass), "ptx": []}
            for first, last, sass in code
            for platform in platforms
        ],
    }


def consumer(
    name: str, first: str, last: str, cuda: str | None, cudnn: str | None, *needs: str
) -> dict[str, Any]:
    row = {"name": name, "platform": LINUX, "first": first, "last": last, "source": "a.whl"}
    row |= {"cuda": cuda} if cuda else {}
    row |= {"cudnn": cudnn} if cudnn else {}
    return {**row, "needs": [*needs, *([f"libcudnn.so.{cudnn}"] if cudnn else [])]}


def _has(library: str, version: str) -> bool:
    if not library.startswith("libcudnn"):
        return True
    return library.rpartition(".")[2] == version.partition(".")[0]


OLD = ("5.2", "6.0", "7.0", "7.5", "8.0")
MIDDLE = ("6.0", "7.0", "7.5", "8.0", "8.6", "9.0")
NEW = ("7.5", "8.0", "8.6", "8.9", "9.0", "12.0a")


def application(name: str, since: str, read: str, asks: str, **more: str) -> dict[str, str]:
    row = {"name": name, "since": since, "read": read, "asks": asks, "knob": "argument"}
    return {**row, "file": "a.py", "code": "x", **more}


def feed(cuda: str, first: str, *platforms: str) -> dict[str, Any]:
    """Return the row of an index with builds for `cuda`, for x86-64 where no platform is named."""
    url = f"https://feed.example/cuda-{cuda}/simple/"
    on = [*platforms] or [LINUX, WINDOWS]
    return {"cuda": cuda, "url": url, "first": first, "platforms": on}


def tables() -> dict[str, dict[str, Any]]:
    """Return the invented tables, shaped as the TOML files are."""
    return {
        "onnxruntime": {
            "date": "2026-01-01",
            "gone": [{"version": "1.16.1", "source": "https://g, read 2026-01-01"}],
            "build": [
                build("1.18.0", "11.8", sass=OLD, ptx=("8.0",), cudnn="8", suffix="-cu11"),
                build("1.23.0", "12.2", sass=MIDDLE, ptx=("9.0a",), suffix="-cu12"),
                build("1.26.0", "12.8", sass=MIDDLE, ptx=("9.0",), suffix="-cu12"),
                build(
                    "1.31.0",
                    "13.0",
                    sass=NEW,
                    pythons=("cp311", "cp312", "cp313", "cp313t"),
                    requires=("flatbuffers", "numpy>=1.21.6", "protobuf>=4.25"),
                ),
                build("1.31.0", "13.0", sass=("9.0", "12.1a"), platform="linux_aarch64"),
            ],
        },
        "nvidia": {
            "distribution": [
                distribution("nvidia-cublas-cu11", "11", "libcublas.so.11", ("11.11.3",)),
                distribution(
                    "nvidia-cublas-cu12",
                    "12",
                    "libcublas.so.12",
                    ("12.0.1", "12.2.5", "12.8.4", "12.9.1"),
                    code=(("12.2.5", "12.2.5", MIDDLE), ("12.8.4", "12.9.1", (*MIDDLE, "12.0"))),
                ),
                distribution(
                    "nvidia-cublas",
                    "13",
                    "libcublas.so.13",
                    ("13.0.2",),
                    platforms=(LINUX, "linux_aarch64"),
                ),
                distribution(
                    "nvidia-cudnn-cu11",
                    "11",
                    "libcudnn.so.8",
                    ("8.9.6",),
                    requires=("nvidia-cublas-cu11",),
                ),
                distribution(
                    "nvidia-cudnn-cu12",
                    "12",
                    "libcudnn.so.9",
                    ("8.9.7", "9.1.0", "9.10.2", "9.28.0"),
                    code=(
                        ("9.1.0", "9.10.2", ("5.0", *MIDDLE, "12.0")),
                        ("9.28.0", "9.28.0", ("7.5", "8.0", "8.6", "9.0", "12.0")),
                    ),
                    requires=("nvidia-cublas-cu12",),
                ),
                distribution(
                    "nvidia-cudnn-cu13",
                    "13",
                    "libcudnn.so.9",
                    ("9.12.0", "9.28.0"),
                    requires=("nvidia-cublas",),
                    platforms=(LINUX, "linux_aarch64"),
                ),
            ]
        },
        "toolkits": {
            "toolkit": [
                {"version": "11.8.0", "components": {"nvidia-cublas-cu11": "11.11.3"}},
                {"version": "12.2.2", "components": {"nvidia-cublas-cu12": "12.2.5"}},
                {"version": "12.8.1", "components": {"nvidia-cublas-cu12": "12.8.4"}},
                {"version": "12.9.1", "components": {"nvidia-cublas-cu12": "12.9.1"}},
                {"version": "13.0.2", "components": {"nvidia-cublas": "13.0.2"}},
            ]
        },
        "numpy": {
            "wheel": [
                {
                    "version": version,
                    "python": python,
                    "platform": LINUX,
                    "glibc": "2.17",
                    "size": 18_000_000,
                    "sha256": SHA,
                    "file": f"numpy-{version}-{python}-{python}-{LINUX}.whl",
                }
                for version, python in (
                    ("1.24.4", "cp310"),
                    ("1.26.4", "cp310"),
                    ("1.26.4", "cp311"),
                )
            ]
        },
        "drivers": {
            "floor": [
                {"cuda": "11", "linux": "450.80.02", "windows": "452.39"},
                {"cuda": "12", "linux": "525.60.13", "windows": "527.41"},
                {"cuda": "13", "linux": "580.65.06", "windows": "580.88"},
            ],
            "toolkit": [
                {"cuda": "12.2", "linux": "535.54.03", "windows": "536.25"},
                {"cuda": "12.8", "linux": "570.26", "windows": "570.65"},
                {"cuda": "13.1", "linux": "590.44.01"},
            ],
            "first": [],
            "last": [{"below": "5.0", "branch": 470}, {"below": "7.5", "branch": 580}],
            "forward": [],
            "data_center": [],
            "branch": [
                {"branch": 470, "cuda": "11.4"},
                {"branch": 535, "cuda": "12.2"},
                {"branch": 580, "cuda": "13.0"},
            ],
        },
        "distributions": {
            "tensorrt": [
                {
                    "name": f"tensorrt-cu{cuda}-libs",
                    "cuda": cuda,
                    "version": "10.16.1",
                    "platforms": [LINUX, WINDOWS],
                    "capability": "7.5",
                    "glibc": "2.28",
                }
                for cuda in ("12", "13")
            ],
            "feed": [feed("11", "9.0.0")],
            "owner": [
                {"name": "onnxruntime", "kind": "cpu"},
                {"name": "onnxruntime-gpu", "kind": "gpu"},
                {
                    "name": "onnxruntime-directml",
                    "kind": "directml",
                    "provider": "DmlExecutionProvider",
                },
            ],
            "shared": [
                {
                    "folder": "nvidia/cudnn",
                    "distributions": [
                        "nvidia-cudnn-cu11",
                        "nvidia-cudnn-cu12",
                        "nvidia-cudnn-cu13",
                    ],
                    "files": ["lib/libcudnn*.so.*"],
                },
                {
                    "folder": "nvidia/cublas",
                    "distributions": ["nvidia-cublas-cu11", "nvidia-cublas-cu12"],
                    "files": [],
                },
            ],
        },
        "msvc": {
            "wheel": [
                {
                    "version": version,
                    "python": python,
                    "platform": WINDOWS,
                    "size": 2_000_000,
                    "sha256": SHA,
                    "file": f"msvc_runtime-{version}-{python}-{python}-win_amd64.whl",
                }
                for version, python in (
                    ("14.29.30133", "cp310"),
                    ("14.40.33807", "cp310"),
                    ("14.40.33807", "cp311"),
                    ("14.42.34433", "cp311"),
                )
            ]
        },
        "plugins": {"plugin": [], "wheel": []},
        "applications": {
            "application": [
                application("stays", "0.5", "1.0", "never"),
                application("told", "2.0", "2.4", "when-told", how="Told(gpu=True)"),
                application("alone", "1.0", "2.0", "when-told", runtime="alone/libonnxruntime.so"),
                application("clever", "1.0", "2.0", "by-itself"),
            ]
        },
        "floors": {"floor": []},
        "limits": {
            "limit": [{"onnxruntime": "<1.19", "name": "numpy", "requires": "<2"}],
            "defect": [],
        },
        "consumers": {
            "consumer": [
                # Loads cuDNN 9 of CUDA 12, and declares nothing; its second release has no cuDNN.
                consumer("transformer", "4.0", "4.5", "12", "9", "libcublas.so.12"),
                consumer("transformer", "4.6", "4.8", "12", None, "libcublas.so.12"),
                consumer("dataloader", "1.0", "1.9", None, None, "libcublas.so.12"),
                consumer("tensors", "2.0", "2.1", None, None),
            ]
        },
    }


def windows_tables() -> dict[str, dict[str, Any]]:
    """Return the same tables for Windows; 1.26 is linked by MSVC 14.40, 1.31 by 14.44."""
    made = tables()
    made["onnxruntime"]["build"].pop()
    toolsets = {"1.18.0": "14.29", "1.23.0": "14.40", "1.26.0": "14.40", "1.31.0": "14.44"}
    for row in made["onnxruntime"]["build"]:
        row |= {"platform": WINDOWS, "toolset": toolsets[row["version"]]}
        row["tensorrt"] = "nvinfer.dll" if row["cudnn"] == "8" else "nvinfer_10.dll"
        del row["glibc"]
    for distribution in made["nvidia"]["distribution"]:
        for row in (*distribution["releases"], *distribution["files"], *distribution["code"]):
            row["platform"] = WINDOWS
    return made


def matrix() -> matrix_module.Matrix:
    """Return the invented matrix."""
    return matrix_parse.parse(tables(), "sha256:invented", {"__init__.py": "", "load.py": ""})


def document(
    *packages: str | dict[str, Any],
    driver: str | None = "12.2",
    gpus: tuple[str, ...] | None = ("8.0",),
    python: str = "3.11.7",
    error: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a facts document; a package is `name version` or its whole row.

    `error`: the driver's.
    """
    return {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
        "driver": None if driver is None else {"version": None, "cuda": driver, "error": error},
        "gpus": None
        if gpus is None
        else [{"name": f"GPU {gpu}", "compute_capability": gpu} for gpu in gpus],
        "python": {"version": python},
        "packages": [
            dict(zip(("name", "version"), row.split(), strict=True))
            if isinstance(row, str)
            else row
            for row in packages
        ],
        **more,
    }


def facts(*packages: str | dict[str, Any], **more: Any) -> facts_module.Facts:
    """Return the facts of `document`."""
    return facts_json.from_json(document(*packages, **more))


def machine(
    system: str = "linux", libc: str | None = "glibc 2.35", name: str = "x86_64", **python: Any
) -> facts_module.Facts:
    """Return the facts of a machine of this kind; `python` is its interpreter, 3.11.7 if not."""
    made = document()
    made["platform"] = {"system": system, "machine": name, "libc": libc}
    made["python"] = {"version": "3.11.7", **python}
    return facts_json.from_json(made)


def here() -> str:
    """Return the version of the Python that runs the tests."""
    return platform.python_version()
