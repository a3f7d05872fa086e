"""The parsers, each on the text that it is for and on any other text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.facts import parsers as readers
from ortgpu_fix.facts.model import Gpu
from ortgpu_fix.facts.redact import redact


def test_smi_rows() -> None:
    text = (
        "NVIDIA A100, 8.0, 81920, 535.104.12\n"
        "Unable to determine the device handle for GPU 07:00.0, x, unknown, Unknown Error\n"
        "NVIDIA GB10, 12.1, [N/A], 580.95.05\n"
        "Tesla K80, 11441, 470.256.02\n"
        "Quadro, the old one, [Not Supported], 4096, [N/A]\n"
        "Comma, Inc. Card, 8, 4096, 470.1\n"
        "NVIDIA-SMI has failed\n"
        "| a table, 4096, 470.1 |\n"
        ", 8.6, 4096, 470.1\n"
    )

    assert readers.parse_smi(text) == (
        (Gpu(name="NVIDIA A100", compute_capability="8.0", memory_mib=81920), "535.104.12"),
        (Gpu(name="NVIDIA GB10", compute_capability="12.1"), "580.95.05"),
        (Gpu(name="Tesla K80", memory_mib=11441), "470.256.02"),
        (Gpu(name="Quadro, the old one", memory_mib=4096), None),
        (Gpu(name="Comma, Inc. Card, 8", memory_mib=4096), "470.1"),
        (Gpu(compute_capability="8.6", memory_mib=4096), "470.1"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "No devices were found\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver, ok,\n",
        "| NVIDIA-SMI 610.43.02, KMD Version: 610.43.02, CUDA UMD Version: 13.3 |\n",
        "a, b, c\n",
    ],
)
def test_smi_without_rows(text: str) -> None:
    assert readers.parse_smi(text) == ()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.12  Wed Sep 20\nGCC: 1.2\n",
            "535.104.12",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n",
            "580.65.06",
        ),
        ("GCC version:  gcc version 12.3.0\n", None),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module\n", None),
    ],
)
def test_proc_version(text: str, version: str | None) -> None:
    assert readers.parse_proc_version(text) == version


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('NAME="Ubuntu"\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n', "Ubuntu 22.04"),
        ("NAME='Alpine Linux'\nVERSION_ID=3.19.1\n", "Alpine Linux 3.19.1"),
        ('NAME="Arch Linux"\n', "Arch Linux"),
        ("", None),
    ],
)
def test_os_release(text: str, name: str | None) -> None:
    assert readers.parse_os_release(text) == name


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.4.0"}}'}, "12.4"),
        ({"version.json": '{"cuda": {}}', "cuda.h": "#define CUDA_VERSION 12040\n"}, "12.4"),
        ({"version.json": '{"cuda": {"version": 12}}'}, None),
        ({"version.json": "no JSON", "version.txt": "CUDA Version 10.2.89\n"}, "10.2"),
        ({"cuda.h": "#define CUDA_VERSION NONE\n"}, None),
    ],
)
def test_toolkit(files: dict[str, str], version: str | None) -> None:
    assert readers.parse_toolkit(files) == version


def test_ldconfig_keeps_the_order_and_the_machine() -> None:
    text = (
        "3 libs found in cache `/etc/ld.so.cache'\n"
        "\tlibcudnn.so.9 (libc6,x86-64) => /usr/local/cuda/lib64/libcudnn.so.9\n"
        "\tlibcudnn.so.9 (libc6) => /usr/lib/i386-linux-gnu/libcudnn.so.9\n"
        "\tlibcudnn.so.9 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/a b/libcudnn.so.9\n"
        "\tlibz.so.1 (libc6,AArch64) => /lib/libz.so.1\n"
    )

    assert readers.parse_ldconfig(text, "x86_64") == (
        ("libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"),
        ("libcudnn.so.9", "/lib/a b/libcudnn.so.9"),
    )
    assert readers.parse_ldconfig(text, "aarch64") == (("libz.so.1", "/lib/libz.so.1"),)


@pytest.mark.parametrize(
    "name",
    [
        "libcublas.so.12",
        "libcudart.so.11.0",
        "libnvrtc.so.11.2",
        "libcudnn_engines_precompiled.so.9",
        "cudnn64_9.dll",
        "nvJitLink_120_0.dll",
        "zlibwapi.dll",
        "nvinfer.dll",
        "nvinfer_10.dll",
    ],
)
def test_libraries_of_interest(name: str) -> None:
    assert readers.is_library(name)


@pytest.mark.parametrize(
    "name",
    [
        "libcudnn.so",
        "libcudnn.so.9.1.0",
        "libcuda.so.1",
        "libnvinfer_lean.so.10",
        "nvinfer_plugin_10.dll",
    ],
)
def test_other_names(name: str) -> None:
    assert not readers.is_library(name)


@given(st.text() | st.text("NVRM version: Kernel Module 0123456789.,[]=>()\n\t"))
def test_no_text_is_an_exception(text: str) -> None:
    readers.parse_smi(text)
    readers.parse_proc_version(text)
    readers.parse_proc_gpu(text)
    readers.parse_pci(text)
    readers.parse_os_release(text)
    readers.parse_ldconfig(text, "x86_64")
    readers.parse_file_version("libcudnn.so.9", text)
    readers.parse_dll_version(text.encode())
    readers.parse_toolkit({"version.json": text, "version.txt": text, "cuda.h": text})


def test_json_of_any_shape_is_no_toolkit() -> None:
    for text in ("[]", "null", '{"cuda": 1}', "[" * 100_000):
        assert readers.parse_toolkit({"version.json": text}) is None


@pytest.mark.parametrize(
    ("text", "home", "clean"),
    [
        ("/home/alice/.venv/bin:/usr/bin", "/home/alice", "~/.venv/bin:/usr/bin"),
        ("/home/bob/x", "/home/alice", "~/x"),
        ("/root/.venv /rootfs/x /x/root/y", "/root", "~/.venv /rootfs/x /x/root/y"),
        ("/usr/lib /home", "/", "/usr/lib /home"),
        ("/srv/app", None, "/srv/app"),
        ("C:\\Users\\Alice B\\env\\python.exe", None, "~\\env\\python.exe"),
        ("x @ git+https://me:token@example.org/x.git", None, "x @ git+https://example.org/x.git"),
        (
            "x @ https://example.org/x.whl?token=t0#egg=x ; y",
            None,
            "x @ https://example.org/x.whl#egg=x ; y",
        ),
        ("Release Build  (builder@)", None, "Release Build"),
        ("GPU-12345678-1234-1234-1234-123456789abc", None, "GPU-…"),
        (r"\\files\home\bob\x", None, r"~\x"),
    ],
)
def test_private_texts(text: str, home: str | None, clean: str) -> None:
    assert redact(text, home) == clean


@pytest.mark.parametrize(
    ("text", "user", "clean"),
    [
        ("/scratch/alice/venv:/data/alice", "alice", "/scratch/…/venv:/data/…"),
        ("/scratch/alicent/venv", "alice", "/scratch/alicent/venv"),
        ("/opt/app/venv", "app", "/opt/app/venv"),
        ("/usr/local/cuda/lib", "cuda", "/usr/local/cuda/lib"),
        ("/opt/venv", "opt", "/opt/venv"),
        ("/srv/ann/x", "ann", "/srv/…/x"),
        ("/x/me/venv", "me", "/x/me/venv"),
        ("D:\\alice\\venv", "alice", "D:\\…\\venv"),
    ],
)
def test_folders_named_like_the_user(text: str, user: str, clean: str) -> None:
    assert redact(text, None, user) == clean


def test_private_texts_in_json() -> None:
    written = json.dumps({"path": "C:\\Users\\Zoë Ångström" + "/x", "other": "x"})

    assert json.loads(redact(written, "C:\\Users\\Zoë Ångström")) == {"path": "~/x", "other": "x"}


@given(st.text(), st.text())
def test_scrub_takes_anything(text: str, home: str) -> None:
    redact(text, home)


FIXED = b"\xbd\x04\xef\xfe\0\0\1\0" + bytes([42, 0, 14, 0, 0, 0, 0x81, 0x86])


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (b"MZ.." + FIXED + b"..", "14.42.34433.0"),
        (b"\xbd\x04\xef\xfe\0\0\2\0 another structure" + FIXED, "14.42.34433.0"),
        (FIXED[:-1], None),
        (b"MZ", None),
        (FIXED + FIXED.replace(b"\x0e", b"\x0f"), "14.42.34433.0"),  # the first one counts
    ],
)
def test_the_version_that_a_dll_carries(content: bytes, version: str | None) -> None:
    assert readers.parse_dll_version(content) == version
