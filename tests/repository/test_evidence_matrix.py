"""The whole refresh, against a small index on this machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evidence_samples as samples
import pytest
import refresh_matrix
from command import run_here
from same_rows import said

import synthetic
from matrix.evidence import matrix
from matrix.evidence.consumers import DISTRIBUTIONS as CONSUMERS
from ortgpu_fix.cli.matrix_files import show_age
from ortgpu_fix.data_files import load_table
from ortgpu_fix.errors import Error
from ortgpu_fix.evidence.wheels import EvidenceError
from ortgpu_fix.guests.update import nvidia, plugins
from ortgpu_fix.guests.update.index_source import IndexSource
from ortgpu_fix.guests.update.nvidia import DISTRIBUTIONS
from ortgpu_fix.guests.update.onnxruntime import builds, tensorrt_library
from ortgpu_fix.guests.update.reader import Reader, ReadingCache
from ortgpu_fix.guests.update.update import MatrixReader
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.matrix.additions import additions_json, parse_additions, with_additions
from ortgpu_fix.matrix.load import use_additions
from support.cut_matrix import cut_tables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

GENERAL = samples.fatbin(
    samples.fatbin_entry(75), samples.fatbin_entry(80), samples.fatbin_entry(90, flags=0x100011)
)
OLDER = samples.fatbin(samples.fatbin_entry(50), samples.fatbin_entry(75), samples.fatbin_entry(80))
LINUX = "manylinux_2_27_x86_64"
PROVIDER = "libonnxruntime_providers_cuda.so"
_LINKS_TENSORRT = samples.elf(links=["libnvinfer.so.10", "libnvonnxparser.so.10", "libc.so.6"])
_NAMES_TENSORRT = samples.elf(extra=b"\0libnvinfer.so.8\0libnvinfer_plugin.so.8\0")


def _cublas(version: str, exports: list[str], code: bytes = GENERAL) -> tuple[str, bytes]:
    library = samples.elf(name="libcublas.so.12", exports=exports, extra=code)
    light = samples.elf(name="libcublasLt.so.12", exports=["cublasLtCreate"], extra=code)
    members = {
        "nvidia/cublas/version.txt": version.encode(),
        "nvidia/cublas/lib/libcublas.so.12": library,
        "nvidia/cublas/lib/libcublasLt.so.12": light,
    }
    return f"nvidia_cublas_cu12-{version}-py3-none-{LINUX}.whl", samples.wheel(members)


def _onnxruntime(
    version: str,
    platform: str,
    provider: bytes,
    suffix: str,
    tensorrt: bytes | None = None,
    *,
    numpy: str = "numpy>=1.21.6",
) -> tuple[str, bytes]:
    members: dict[str, bytes | str] = (
        {}
        if tensorrt is None
        else {f"onnxruntime/capi/{suffix.replace('cuda', 'tensorrt')}": tensorrt}
    )
    members |= {
        "onnxruntime/__init__.py": "def preload_dlls(): ...",
        "onnxruntime/capi/build_and_package_info.py": "cuda_version = '12.8'\n",
        f"onnxruntime/capi/{suffix}": provider,
    }
    requires = [numpy, 'nvidia-cufft-cu13~=12.0; extra == "cuda"']
    name = f"onnxruntime_gpu-{version}-cp311-cp311-{platform}.whl"
    return name, samples.wheel(members, requires=requires)


@pytest.fixture
def index() -> Iterator[samples.Index]:
    with samples.serve() as served:
        pages = [*DISTRIBUTIONS, "cuda-toolkit", "numpy", "msvc-runtime"]
        pages += ["torch", "torchvision", "torchaudio", *CONSUMERS, *plugins.ON_PYPI, "onnxruntime"]
        served.files = {name: {} for name in pages}
        linux = samples.elf(
            links=["libcublas.so.12", "libc.so.6"],
            imports={"libcublas.so.12": ["cublasCreate_v2", "cublasNew"]},
            extra=b"\0libcudnn.so.9\0libcuda.so.1\0" + GENERAL,
        )
        windows = samples.dll(
            imports={"cublas64_12.dll": ["cublasCreate_v2"], "MSVCP140.dll": ["x"]},
            extra=b"\0cudnn64_9.dll\0" + GENERAL,
        )
        served.files["onnxruntime-gpu"] = dict(
            [
                _onnxruntime("1.26.0", LINUX, linux, PROVIDER, _LINKS_TENSORRT),
                _onnxruntime("1.26.0", "win_amd64", windows, "onnxruntime_providers_cuda.dll"),
            ]
        )
        served.files["nvidia-cublas-cu12"] = dict(
            [
                _cublas("12.1.3.1", ["cublasCreate_v2"], OLDER),
                _cublas("12.8.3.14", ["cublasCreate_v2", "cublasNew"]),
                _cublas("12.9.1.4", ["cublasCreate_v2", "cublasNew"]),
                (
                    "nvidia_cublas_cu12-12.8.3.14-py3-none-win_amd64.whl",
                    samples.wheel(
                        {
                            "nvidia/cublas/bin/cublas64_12.dll": samples.dll(
                                name="cublas64_12.dll", exports=["cublasCreate_v2"], extra=GENERAL
                            )
                        }
                    ),
                ),
            ]
        )
        cudnn = samples.elf(exports=["cudnnCreate"], extra=GENERAL)
        served.files["nvidia-cudnn-cu12"] = {
            f"nvidia_cudnn_cu12-9.7.0.66-py3-none-{LINUX}.whl": samples.wheel(
                {f"nvidia/cudnn/lib/libcudnn{part}.so.9": cudnn for part in ("", "_ops", "_cnn")},
                requires=["nvidia-cublas-cu12"],
            ),
            "nvidia_cudnn_cu12-9.7.0.66-py3-none-win_amd64.whl": samples.wheel(
                {
                    f"nvidia/cudnn/bin/cudnn{part}64_9.dll": samples.dll(extra=GENERAL)
                    for part in ("", "_ops", "_cnn")
                }
            ),
        }
        served.files["cuda-toolkit"] = {
            "cuda_toolkit-12.8.0-py2.py3-none-any.whl": samples.wheel(
                {}, requires=["nvidia-cublas-cu12==12.8.3.14.*; extra == 'cublas'"]
            )
        }
        served.files["numpy"] = {
            f"numpy-{version}-cp311-cp311-manylinux_2_17_x86_64.whl": samples.wheel({})
            for version in ("1.26.3", "1.26.4", "2.3.0")
        }
        served.files["msvc-runtime"] = {
            f"msvc_runtime-{name}.whl": samples.wheel({"python": name})
            for name in (
                "14.28.29910-cp38-cp38-win_amd64",
                "14.42.34433-cp310-cp310-win_amd64",
                "14.42.34433-cp39-cp39-win_amd64",
                "14.42.34433-cp310-cp310-win32",
                "14.42.34433-pp310-pypy310_pp73-win_amd64",
            )
        }
        code = b"\0sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120\0"
        flags = samples.elf(name="libtorch_python.so", extra=code)
        served.files["torch"] = {
            f"torch-2.7.0-cp311-cp311-{LINUX}.whl": samples.wheel(
                {
                    "torch/version.py": "__version__ = '2.7.0+cu128'\ncuda = '12.8'\n",
                    "torch/lib/libtorch_python.so": flags,
                    "torch/lib/libcudart-80664282.so.12": flags,
                },
                requires=["nvidia-cublas-cu12==12.8.3.14", "sympy"],
            )
        }
        served.files["torchvision"] = {
            f"torchvision-0.22.0-cp311-cp311-{LINUX}.whl": samples.wheel(
                {}, requires=["numpy", "torch==2.7.0"]
            )
        }
        served.files |= _plugins()
        yield served


def _plugins() -> dict[str, dict[str, bytes]]:
    """Return a plugin of NVIDIA's shape for each CUDA, one for CUDA, and releases beside them."""
    code = samples.elf(name="libtensorrt_rtx.so.1", extra=GENERAL + bytes(4096))
    folder, init = "onnxruntime_ep_nv_tensorrt_rtx", "NAME = 'NvTensorRTRTXExecutionProvider'"
    about = "\n\n- `pip install onnxruntime>=1.24`\n"
    linux: dict[str, bytes | str] = {
        f"{folder}/__init__.py": init,
        f"{folder}/libonnxruntime_providers_nv_tensorrt_rtx.so": samples.elf(
            links=["libcudart.so.13", "libcuda.so.1", "libtensorrt_rtx.so.1"]
        ),
        f"{folder}/libcudart.so.13.4.36": samples.elf(name="libcudart.so.13"),
        f"{folder}/libtensorrt_rtx.so.1.7.1": code,
    }
    windows: dict[str, bytes | str] = {
        f"{folder}/__init__.py": init,
        f"{folder}/onnxruntime_providers_nv_tensorrt_rtx.dll": samples.dll(
            imports={"cudart64_12.dll": ["x"], "nvcuda.dll": ["y"]}
        ),
        f"{folder}/cudart64_12.dll": samples.dll(),
        f"{folder}/tensorrt_rtx_1_7.dll": samples.dll(extra=GENERAL + bytes(4096)),
    }
    rtx = "onnxruntime_ep_nv_tensorrt_rtx"
    plain = ("1.23.2-cp311", "1.30.0-cp311", "1.32.0-cp311", "1.32.0-cp314", "1.33.0rc1-cp311")
    return {
        "onnxruntime-ep-nv-tensorrt-rtx-cu13": {
            f"{rtx}_cu13-0.4.0-py3-none-{LINUX}.whl": b"it is not read",
            f"{rtx}_cu13-0.5.0-py3-none-{LINUX}.whl": samples.wheel(linux, about=about),
        },
        "onnxruntime-ep-nv-tensorrt-rtx-cu12": {
            f"{rtx}_cu12-0.5.0-py3-none-win_amd64.whl": samples.wheel(
                windows, requires=["numpy>=1; extra == 'dev'", "onnxruntime>=1.25"], about=about
            ),
            f"{rtx}_cu12-0.5.0-py3-none-macosx_14_0_arm64.whl": b"it is for no platform of ours",
        },
        "onnxruntime": {
            f"onnxruntime-{name}-{name.partition('-')[2]}-{LINUX}.whl": samples.wheel(
                {"name": name}, requires=["numpy>=1.21.6", "sympy; extra == 'x'"]
            )
            for name in plain
        },
    }


def _run(index: samples.Index, folder: Path, *more: str) -> int:
    folder.mkdir(exist_ok=True)
    return refresh_matrix.main(
        [
            *("--index-url", f"{index.url}/simple", "--data", str(folder)),
            *("--cache", str(folder / "cache"), "--threads", "2", *more),
        ]
    )


def _reader(index: samples.Index, folder: Path) -> Reader:
    web = samples.source(f"{index.url}/simple", folder)
    return Reader(web, ReadingCache(folder / "cache"), "", print)


def _read(folder: Path, name: str) -> dict[str, list[dict[str, object]]]:
    return tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))


def test_rows_hold_what_the_wheels_hold(index: samples.Index, tmp_path: Path) -> None:
    """From wheels to rows, for a Linux and a Windows build."""
    assert _run(index, tmp_path) == 0

    linux, windows = _read(tmp_path, "onnxruntime")["build"]

    assert linux["needs"] == [
        {
            "library": "libcublas.so.12",
            "how": "links",
            "distribution": "nvidia-cublas-cu12",
            "since": "12.8.3.14",
        },
        {"library": "libcuda.so.1", "how": "loads"},
        {
            "library": "libcudnn.so.9",
            "how": "loads",
            "distribution": "nvidia-cudnn-cu12",
            "since": "9.7.0.66",
        },
    ]
    assert (linux["cuda"], linux["cudnn"], linux["glibc"]) == ("12.8", "9", "2.27")
    assert (linux["sass"], linux["ptx"]) == (["7.5", "8.0", "9.0a"], [])
    assert linux["unresolvable"] == ["nvidia-cufft-cu13~=12.0"]
    assert linux["preload_dlls"] is True
    assert windows["msvc"] == ["MSVCP140.dll"]
    assert windows["toolset"] == "14.40"
    assert linux["tensorrt"] == "libnvinfer.so.10"
    assert "tensorrt" not in windows
    assert "toolset" not in linux
    assert "glibc" not in windows


@pytest.mark.parametrize(
    ("provider", "content", "expected"),
    [
        ("libonnxruntime_providers_tensorrt.so", _LINKS_TENSORRT, "libnvinfer.so.10"),
        ("libonnxruntime_providers_tensorrt.so", _NAMES_TENSORRT, "libnvinfer.so.8"),
        (
            "onnxruntime_providers_tensorrt.dll",
            samples.dll(imports={"nvinfer.dll": ["create"]}),
            "nvinfer.dll",
        ),
    ],
)
def test_the_tensorrt_that_a_provider_links_or_names(
    tmp_path: Path, provider: str, content: bytes, expected: str | None
) -> None:
    assert _tensorrt_of(tmp_path, provider, content) == expected


def _tensorrt_of(folder: Path, provider: str, content: bytes) -> str | None:
    name = f"onnxruntime_gpu-1.26.0-cp311-cp311-{LINUX}.whl"
    with samples.serve() as served:
        wheel = samples.wheel({f"onnxruntime/capi/{provider}": content})
        served.files = {"onnxruntime-gpu": {name: wheel}}
        reader = _reader(served, folder)
        return tensorrt_library(reader, *reader.wheels("onnxruntime-gpu"))


def test_the_providers_of_one_build_have_about_one_size(
    index: samples.Index, tmp_path: Path
) -> None:
    provider = samples.elf(links=["libcublas.so.12"], extra=bytes(10_000))
    first, wheel = _onnxruntime("1.27.0", LINUX, provider, PROVIDER)

    def build_with(other: bytes) -> list[str]:
        _, second = _onnxruntime("1.27.0", LINUX, other, PROVIDER)
        index.files["onnxruntime-gpu"] = {first: wheel, first.replace("cp311", "cp312"): second}
        reader = _reader(index, tmp_path / str(len(other)))
        return [wheel.python for build in builds(reader, 1) for wheel, _ in build.wheels]

    assert build_with(provider + bytes(90)) == ["cp311", "cp312"]
    with pytest.raises(EvidenceError, match="differ in size"):
        build_with(provider + bytes(200))


def test_a_wheel_that_requires_something_else_says_so(index: samples.Index, tmp_path: Path) -> None:
    files = index.files["onnxruntime-gpu"]
    provider = samples.elf(links=["libcublas.so.12"], extra=GENERAL)
    for python, numpy in (
        ("cp310", "numpy>=1.21.6"),
        ("cp311", "numpy>=1.21.6"),
        ("cp312", "numpy>=1.26"),
    ):
        name, content = _onnxruntime("1.27.0", LINUX, provider, PROVIDER, numpy=numpy)
        files[name.replace("cp311", python)] = content
    _run(index, tmp_path, "onnxruntime")

    [row] = [row for row in _read(tmp_path, "onnxruntime")["build"] if row["version"] == "1.27.0"]
    assert row["requires"] == ["numpy>=1.21.6"]
    wheels: Any = row["wheels"]
    assert [(wheel["python"], wheel.get("requires")) for wheel in wheels] == [
        *(("cp310", None), ("cp311", None), ("cp312", ["numpy>=1.26"])),
    ]


def test_plugins_and_the_onnxruntime_beside_them(index: samples.Index, tmp_path: Path) -> None:
    _run(index, tmp_path)
    rows = _read(tmp_path, "plugins")
    linux, windows = rows["plugin"]
    judged = ("provider", "cuda", "onnxruntime", "needs", "sass", "ptx", "toolset")

    assert [(row["name"], row["version"], row["platform"]) for row in rows["plugin"]] == [
        ("onnxruntime-ep-nv-tensorrt-rtx-cu13", "0.5.0", "linux_x86_64"),
        ("onnxruntime-ep-nv-tensorrt-rtx-cu12", "0.5.0", "windows_x86_64"),
    ]
    # What it brings under a name that the loader does not look for, it lacks.
    assert [linux.get(key) for key in judged] == [
        *("NvTensorRTRTXExecutionProvider", "13.4", ">=1.24", ["libcudart.so.13"]),
        *(["7.5", "8.0", "9.0a"], [], None),
    ]
    assert [windows.get(key) for key in judged] == [
        *("NvTensorRTRTXExecutionProvider", "12.0", ">=1.25", []),
        *(["7.5", "8.0", "9.0a"], [], "14.40"),
    ]
    assert (linux["glibc"], windows.get("glibc")) == ("2.27", None)
    assert [(row["version"], row["python"], row["requires"]) for row in rows["wheel"]] == [
        ("1.32.0", "cp311", ["numpy>=1.21.6"]),
        ("1.32.0", "cp314", ["numpy>=1.21.6"]),
    ]
    content = index.files["onnxruntime"][str(rows["wheel"][0]["file"])]
    assert rows["wheel"][0]["size"] == len(content)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"m/a.py": ""}, "has no provider that its module names"),
        (
            {
                "m/libonnxruntime_providers_x.so": samples.elf(links=["libc.so.6"]),
                "m/__init__.py": '"AExecutionProvider"',
            },
            "neither links nor brings a CUDA runtime",
        ),
    ],
)
def test_what_is_no_plugin_for_cuda_is_refused(
    files: dict[str, bytes | str], problem: str, index: samples.Index, tmp_path: Path
) -> None:
    name = f"onnxruntime_ep_cuda12-0.1.0-py3-none-{LINUX}.whl"
    index.files = {"onnxruntime-ep-cuda12": {name: samples.wheel(files)}, "onnxruntime": {}}
    _fill(index)

    with pytest.raises(EvidenceError, match=problem):
        plugins.rows(_reader(index, tmp_path), 1, ["onnxruntime-ep-cuda12"])


def test_a_plugin_for_cuda_is_read_from_an_index_that_has_it(
    index: samples.Index, tmp_path: Path
) -> None:
    """It links its libraries and brings none; upstream's own names are looked for."""
    provider = samples.elf(links=["libcudart.so.12", "libcublas.so.12"], extra=GENERAL)
    files: dict[str, bytes | str] = {
        "onnxruntime_ep_cuda/__init__.py": "def get_ep_name():\n    return 'CUDAExecutionProvider'",
        "onnxruntime_ep_cuda/libonnxruntime_providers_cuda.so": provider,
    }
    index.files["onnxruntime-ep-cuda12"] = {
        f"onnxruntime_ep_cuda12-0.1.0-py3-none-{LINUX}.whl": samples.wheel(files)
    }
    cut = _cut(_whole(index, tmp_path / "whole"))
    rows = _matrix_reader(index, tmp_path / "cache", cut).read()["plugins"]["plugin"]

    [row] = [row for row in rows if row["name"] == "onnxruntime-ep-cuda12"]
    assert (row["provider"], row["cuda"], row["onnxruntime"]) == (
        "CUDAExecutionProvider",
        "12.0",
        "",
    )
    assert row["needs"] == ["libcublas.so.12", "libcudart.so.12"]
    assert row["sass"] == ["7.5", "8.0", "9.0a"]
    assert "capabilities" not in row


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("Supported compute capabilities are 8.6, 8.9, and 12.0 or newer.", "==8.6 ==8.9 >=12.0"),
        ("Supported compute capabilities are many", ""),
    ],
)
def test_the_gpus_that_a_provider_says_it_takes(said: str, taken: str, tmp_path: Path) -> None:
    provider = samples.elf(links=["libcudart.so.12"], extra=GENERAL) + said.encode() + b"\0"
    files: dict[str, bytes | str] = {
        "m/__init__.py": '"AExecutionProvider"',
        "m/libonnxruntime_providers_x.so": provider,
    }
    name = f"onnxruntime_ep_cuda12-0.1.0-py3-none-{LINUX}.whl"
    with samples.serve() as served:
        served.files = {
            "onnxruntime-ep-cuda12": {name: samples.wheel(files)},
            "onnxruntime": {},
        }
        read = plugins.rows(_reader(served, tmp_path), 1, ["onnxruntime-ep-cuda12"])

    assert " ".join(read["plugin"][0].get("capabilities", ())) == taken


def test_releases_that_left_the_index(index: samples.Index, tmp_path: Path) -> None:
    """What was once published and is not there is listed with a source; what is there is not."""
    provider = samples.elf(links=["libcublas.so.12"], extra=GENERAL)
    name, content = _onnxruntime("1.20.1", LINUX, provider, "libonnxruntime_providers_cuda.so")
    index.files["onnxruntime-gpu"][name] = content
    _run(index, tmp_path, "onnxruntime")

    gone = {row["version"]: row["source"] for row in _read(tmp_path, "onnxruntime")["gone"]}

    assert "1.16.1" in gone
    assert "1.20.1" not in gone
    assert all(str(source).startswith("https://") for source in gone.values())


def test_the_libraries_of_a_wheel_are_its_shared_objects_of_64_bits(tmp_path: Path) -> None:
    paths = ["bin/x64_12.dll", "bin/x32_12.dll", "lib/libx.so.12", "lib/libx.a", "inc.so.1/x.h"]
    with samples.serve() as index:
        wheel = samples.wheel({f"nvidia/x/{path}": b"" for path in paths})
        index.files = {"nvidia-x": {f"nvidia_x-1.0-py3-none-{LINUX}.whl": wheel}}
        (release,) = nvidia.releases(_reader(index, tmp_path), "nvidia-x", 1)

    assert release.libraries == {
        "x64_12.dll": "nvidia/x/bin/x64_12.dll",
        "libx.so.12": "nvidia/x/lib/libx.so.12",
    }


def test_gpu_code_by_range_of_releases(index: samples.Index, tmp_path: Path) -> None:
    """The edge between two releases with different code is found."""
    _run(index, tmp_path, "nvidia")

    cublas, cudnn = _read(tmp_path, "nvidia")["distribution"]

    assert cublas["code"] == [
        {
            "platform": "linux_x86_64",
            "first": "12.1.3.1",
            "last": "12.1.3.1",
            "sass": ["5.0", "7.5", "8.0"],
            "ptx": [],
        },
        {
            "platform": "linux_x86_64",
            "first": "12.8.3.14",
            "last": "12.9.1.4",
            "sass": ["7.5", "8.0", "9.0a"],
            "ptx": [],
        },
        {
            "platform": "windows_x86_64",
            "first": "12.8.3.14",
            "last": "12.8.3.14",
            "sass": ["7.5", "8.0", "9.0a"],
            "ptx": [],
        },
    ]
    assert cudnn["releases"][0]["requires"] == ["nvidia-cublas-cu12"]  # type: ignore[index]


def test_the_other_files(index: samples.Index, tmp_path: Path) -> None:
    """Toolkits, numpy, symbols and torch."""
    _run(index, tmp_path)

    (toolkit,) = _read(tmp_path, "toolkits")["toolkit"]
    (numpy,) = _read(tmp_path, "numpy")["wheel"]
    runtimes = _read(tmp_path, "msvc")["wheel"]
    torch = _read(tmp_path, "torch")

    assert toolkit["components"] == {"nvidia-cublas-cu12": "12.8.3.14"}
    assert numpy["version"] == "1.26.4"
    assert [row["python"] for row in runtimes] == ["cp39", "cp310"]
    assert torch["torch"][0]["sass"] == ["7.5", "8.0", "8.6", "9.0", "10.0", "12.0"]
    assert torch["torch"][0]["ptx"] == ["12.0"]
    assert torch["torch"][0]["carries"] == ["libcudart.so.12"]
    assert torch["torch"][0]["requires"] == ["nvidia-cublas-cu12==12.8.3.14"]
    (vision,) = torch["companion"]
    assert (vision["name"], vision["version"], vision["torch"]) == (
        "torchvision",
        "0.22.0",
        "==2.7.0",
    )
    offer = _read(tmp_path, "symbols")["offer"][0]
    assert offer["partial"] == {"cublasNew": {"first": "12.8.3.14", "last": "12.9.1.4"}}
    floors = {row["name"]: row for row in _read(tmp_path, "floors")["floor"]}
    assert floors["onnxruntime-gpu"]["needs"] == {"nvidia-cublas-cu12": "12.8.3.14"}
    assert floors["nvidia-cublas-cu12"]["needs"] == {}


def test_a_second_run_changes_nothing_and_reads_no_wheel(
    index: samples.Index, tmp_path: Path
) -> None:
    """Byte for byte the same, from the cache; and the same from nothing."""
    _run(index, tmp_path / "a")
    before = {name: (tmp_path / "a" / f"{name}.toml").read_bytes() for name in matrix.FILES}
    index.requests.clear()

    _run(index, tmp_path / "a")
    asked = [path for path, _ in index.requests if not path.startswith("/simple/")]
    _run(index, tmp_path / "b")

    assert asked == []
    for name, content in before.items():
        assert (tmp_path / "a" / f"{name}.toml").read_bytes() == content
        assert (tmp_path / "b" / f"{name}.toml").read_bytes() == content


def test_check_lists_what_is_new_and_what_is_gone(
    index: samples.Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is quiet on current data, names a new release and one that left, and writes nothing."""
    _run(index, tmp_path)
    capsys.readouterr()

    assert _run(index, tmp_path, "--check") == 0
    assert capsys.readouterr().out == ""

    before = (tmp_path / "nvidia.toml").read_bytes()
    name, content = _cublas("12.9.2.10", ["cublasCreate_v2", "cublasNew"])
    index.files["nvidia-cublas-cu12"][name] = content

    assert _run(index, tmp_path, "--check") == 1
    assert name in capsys.readouterr().out
    assert (tmp_path / "nvidia.toml").read_bytes() == before

    del index.files["nvidia-cublas-cu12"][name]
    gone = next(name for name in index.files["nvidia-cublas-cu12"] if "12.9.1.4" in name)
    del index.files["nvidia-cublas-cu12"][gone]

    assert _run(index, tmp_path, "--check") == 1
    assert gone in capsys.readouterr().out


TABLES = ("onnxruntime", "nvidia", "toolkits", "torch", "plugins")


def _cut(whole: dict[str, Any], cublas: str = "12.9.1.4") -> dict[str, Any]:
    """Return the tables without that cuBLAS, and without any onnxruntime, toolkit and torch."""
    return cut_tables(
        whole, lambda name, version: version == cublas or not name.startswith("nvidia-")
    )


def _whole(index: samples.Index, folder: Path) -> dict[str, Any]:
    assert _run(index, folder) == 0
    return {name: _read(folder, name) for name in TABLES}


def _matrix_reader(
    index: samples.Index, cache: Path, cut: dict[str, Any], **more: Any
) -> MatrixReader:
    _fill(index)
    source = IndexSource(
        Index(IndexConfig(index_url=f"{index.url}/simple", origin="flag")), cache / "wheels"
    )
    values: dict[str, Any] = {"index_url": "", "progress": lambda _: None, "threads": 2} | more
    places = values.pop("platforms", ("linux_x86_64",))
    return MatrixReader(source, ReadingCache(cache), cut, places, **values)


def _fill(index: samples.Index) -> None:
    """Give each project a file: one without any is a page that cannot be read."""
    for name, there in index.files.items():
        there.setdefault(f"{name}-0.tar.gz", b"")


@pytest.mark.parametrize(
    ("place", "cublas"),
    [
        ("linux_x86_64", "12.8.3.14"),
        ("windows_x86_64", "12.8.3.14"),
    ],
    ids=["one between others", "the only one"],
)
def test_what_the_matrix_lacks_is_read_into_the_same_rows(
    place: str, cublas: str, index: samples.Index, tmp_path: Path
) -> None:
    whole = _whole(index, tmp_path / "whole")
    cut = _cut(whole, cublas)

    rows = _matrix_reader(index, tmp_path / "cache", cut, platforms=(place,)).read()
    added = parse_additions(json.dumps(additions_json("2026-11-22", "x", rows)).encode(), "x")
    grown = {name: with_additions(name, cut[name], [added]) for name in TABLES}

    assert said(grown, place) == said(whole, place)
    assert said(cut, place) != said(whole, place)


def test_a_late_patch_between_equal_releases_is_not_read(
    index: samples.Index, tmp_path: Path
) -> None:
    """What its neighbours both say it says too; its outside alone is looked at."""
    name, content = _cublas("12.9.0.13", ["cublasCreate_v2", "cublasNew"])
    index.files["nvidia-cublas-cu12"][name] = content
    whole = _whole(index, tmp_path / "whole")
    cut = cut_tables(whole, lambda _, version: version == "12.9.0.13")
    read: list[str] = []

    rows = _matrix_reader(index, tmp_path / "cache", cut, progress=read.append).read()
    added = parse_additions(json.dumps(additions_json("2026-11-22", "x", rows)).encode(), "x")
    grown = {name: with_additions(name, cut[name], [added]) for name in TABLES}

    assert read == []
    assert added.releases == ("nvidia-cublas-cu12 12.9.0.13",)
    assert said(grown, "linux_x86_64") == said(whole, "linux_x86_64")


def test_without_ranges_each_wheel_is_downloaded_once(index: samples.Index, tmp_path: Path) -> None:
    """The rows are the same."""
    cut = _cut(_whole(index, tmp_path / "whole"))
    by_parts = _matrix_reader(index, tmp_path / "parts", cut).read()
    index.requests.clear()
    index.ranges = False

    rows = _matrix_reader(index, tmp_path / "cache", cut).read()

    assert rows == by_parts
    asked = Counter(path for path, wanted in index.requests if path.endswith(".whl") and not wanted)
    assert set(asked.values()) == {1}


def test_a_build_of_another_index_has_that_index_in_its_row(
    index: samples.Index, tmp_path: Path
) -> None:
    whole = _whole(index, tmp_path / "whole")
    feed = f"{index.url}/simple"
    named = feed.replace("://", "://me:secret@")  # a file for the team holds no password

    rows = _matrix_reader(index, tmp_path / "cache", whole, index_url=named).read_builds_of_index()

    [build] = rows["onnxruntime"]["build"]
    [known] = [row for row in whole["onnxruntime"]["build"] if row["platform"] == "linux_x86_64"]
    assert build == known | {"index_url": feed}


def _command(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C"}
    try:
        return run_here(*argv, cwd=home, env=environ)
    finally:
        use_additions(())  # a run of the program has them to its end


def _newer(index: samples.Index) -> tuple[str, ...]:
    """Put a release on the index that the shipped matrix does not have; return its flag."""
    provider = samples.elf(
        links=["libcublas.so.12"],
        imports={"libcublas.so.12": ["cublasCreate_v2"]},
        extra=b"\0libcudnn.so.9\0" + GENERAL,
    )
    name, wheel = _onnxruntime("1.99.0", LINUX, provider, "libonnxruntime_providers_cuda.so")
    index.files["onnxruntime-gpu"][name] = wheel
    _fill(index)
    return "--index-url", f"{index.url}/simple"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels are for x86_64")
def test_what_was_read_is_kept_for_this_user_and_planned_with(
    index: samples.Index, tmp_path: Path
) -> None:
    done = _command(tmp_path, "matrix", "--update", *_newer(index))
    kept = tmp_path / ".local/share/ortgpu-fix/matrix.json"

    assert (done.returncode, done.stdout.count("onnxruntime-gpu 1.99.0")) == (0, 1)
    facts = tmp_path / "facts.json"
    document = synthetic.document(driver="12.8", gpus=("8.0",))
    facts.write_text(json.dumps(document))
    made = json.loads(_command(tmp_path, "--facts", str(facts), "--json").stdout)
    wheel = next(row for row in made["install"] if row["name"] == "onnxruntime-gpu")
    assert (wheel["version"], len(wheel["sha256"])) == ("1.99.0", 64)
    [added] = made["matrix"]["added"]
    assert added["index"] == f"{index.url}/simple"
    assert added["releases"] == ["onnxruntime-gpu 1.99.0"]
    assert wheel["hash_read"] == {"index": f"{index.url}/simple", "date": added["read"]}
    assert [row for row in made["install"] if "hash_read" in row] == [wheel]
    told = _command(tmp_path, "--facts", str(facts)).stdout
    said = f"onnxruntime-gpu 1.99.0: hash from {index.url}/simple, read on {added['read']}"
    assert said in " ".join(told.split())

    kept.write_text(kept.read_text().replace("1.99.0", "1.98.0"))
    damaged = _command(tmp_path, "--facts", str(facts), "--json")
    assert "added" not in json.loads(damaged.stdout)["matrix"]
    assert damaged.stderr.startswith(f"Ignored {kept}: ")
    assert len(damaged.stderr.splitlines()) == 1

    old = json.loads(kept.read_text()) | {"read": "2020-01-01"}
    kept.write_text(json.dumps(additions_json(old["read"], old["index"], old["tables"])))
    ignored = _command(tmp_path, "--facts", str(facts), "--json")
    assert "it was read on 2020-01-01" in ignored.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels are for x86_64")
def test_rows_of_several_indexes_are_kept_beside_each_other(
    index: samples.Index, tmp_path: Path
) -> None:
    """Each index has a line in the user's file; reading one anew leaves the others alone."""
    flags = _newer(index)
    kept = tmp_path / ".local/share/ortgpu-fix/matrix.json"
    company = ("--ort-index-url", f"{index.url}/simple/../simple")
    for more in (flags, (*flags, *company), flags):
        assert _command(tmp_path, "matrix", "--update", *more).returncode == 0

    feed, usual = (parse_additions(line, kept) for line in kept.read_bytes().splitlines())
    assert (feed.alone, usual.alone) == (True, False)
    assert feed.releases == ("onnxruntime-gpu 1.26.0", "onnxruntime-gpu 1.99.0")
    assert usual.releases == ("onnxruntime-gpu 1.99.0",)
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps(synthetic.document(driver="12.8", gpus=("8.0",))))
    made = json.loads(_command(tmp_path, "--facts", str(facts), "--json").stdout)
    assert [row["index"] for row in made["matrix"]["added"]] == [feed.index_url, usual.index_url]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels are for x86_64")
def test_rows_of_another_user_are_not_taken(index: samples.Index, tmp_path: Path) -> None:
    """Under sudo, or from cron, HOME may be somebody else's; `--matrix FILE` is for that."""
    _command(tmp_path, "matrix", "--update", *_newer(index))
    kept = tmp_path / ".local/share/ortgpu-fix/matrix.json"
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps(synthetic.document(driver="12.8", gpus=("8.0",))))
    os.chown(kept, 65534, 65534)

    without = json.loads(_command(tmp_path, "--facts", str(facts), "--json").stdout)
    named = _command(tmp_path, "--facts", str(facts), "--json", "--matrix", str(kept))

    assert "added" not in without["matrix"]
    assert "added" in json.loads(named.stdout)["matrix"]


@pytest.mark.parametrize(
    ("terminal", "today", "said"),
    [(True, "2030-01-01", True), (True, None, False), (False, "2030-01-01", False)],
    ids=["old", "of today", "a pipe"],
)
def test_the_age_of_the_matrix_is_told_at_a_terminal_alone(
    terminal: bool,  # noqa: FBT001
    today: str | None,
    said: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is no part of a plan, and nothing that a program reads."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)

    show_age({"LANG": "C"}, today or load_table("onnxruntime")["date"])

    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("matrix --update" in shown.err) == said


def test_an_index_that_gives_no_hash_of_what_is_new_is_refused(
    index: samples.Index, tmp_path: Path
) -> None:
    """Its rows were kept, every plan chose them, and every apply refused them."""
    whole = _whole(index, tmp_path / "whole")
    index.hashes = False
    named = f"{index.url}/simple".replace("://", "://me:secret@")
    reader = _matrix_reader(index, tmp_path / "cache", _cut(whole), index_url=named)

    with pytest.raises(Error) as caught:
        reader.read_builds_of_index()

    file = str(caught.value.values["file"])
    assert any(file in there for there in index.files.values())
    assert (caught.value.code, caught.value.values["url"]) == (
        "index-no-hash",
        index.url + "/simple",
    )


def test_an_address_without_any_project_is_no_index(index: samples.Index, tmp_path: Path) -> None:
    """It had nothing newer, with exit code 0."""
    usual = ("--index-url", f"{index.url}/simple")
    _fill(index)

    done = _command(
        tmp_path, "matrix", "--update", *usual, "--ort-index-url", f"{index.url}/simpel"
    )

    assert (done.returncode, done.stdout) == (7, "")
    assert f"error: The index returned 404 for {index.url}/simpel/" in done.stderr


def test_an_index_that_fails_on_the_way_ends_all_at_once(
    index: samples.Index, tmp_path: Path
) -> None:
    """One sentence names it, and the next run goes on."""
    flags = _newer(index)
    name = next(name for name in index.files["onnxruntime-gpu"] if "1.99.0" in name)
    index.broken.add(name)

    done = _command(tmp_path, "matrix", "--update", *flags)

    assert (done.returncode, done.stdout) == (7, "")
    assert "Traceback" not in done.stderr
    assert "410" in done.stderr
    index.broken.clear()
    assert _command(tmp_path, "matrix", "--update", *flags).returncode == 0
