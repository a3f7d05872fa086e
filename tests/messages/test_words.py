"""Phrases that readers stumbled over, and that do not come back."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import DATA

TEXTS = {
    str(path): path.read_text("utf-8")
    for name in ("texts", "failures", "help")
    for path in (DATA / f"{name}.toml", *DATA.parent.glob(f"guests/*/{name}.toml"))
}
GONE = [
    # stiff, private or untrue
    '"made here"',
    "What would allow more",
    "has a say",
    "picked while staging",
    "in this log is known",
    "No onnxruntime-gpu can use a GPU here",
    "Not possible here",
    "others: {count}",
    "driver can do",
    "that can do CUDA",
    "Libraries are missing:",
    "whichever was unpacked last",
    "only on request",
    "Nothing here can install",
    "is no compute capability",
    "does not answer as a Python",
    'shows what there is"',
    "would miss what they require: {",
    "or give other wishes",
    "nobody has told the loader",
    "does not say a name",
    "respect this too",
    "plan as if not there",
    "apply all the same",
    # Chinese: full-width brackets in code, a translation of words, one thing under several names
    "preload_dlls（）",
    "如何获得更多",
    "在此不可行",
    "在此运行",
    "在此工作",
    "暂存时",
    "后解压者",
    "替身包",
    "健康：",
    "所见",
    "CPU 版本",
    "GPU 版本",
    "提供程序",
    "软件源",
    "微软的源",
    "文件夹",
    "毫秒",
    "等另外",
    "可仍用",
    "最多快",
    "偏离最大值",
    "没有告诉加载器",
    # a placeholder under two names
    "--facts 文件",
    "--check 文件",
    "-o 文件",
    "-d 目录",
    "--ort 版本",
    "--driver 版本",
    "help 命令",
    # one thing counted as several
    "and {count} older",
    "{count} sessions;",
    "{nodes} nodes",
    "{count} copies",
    "{count} nodes of",
    "{count} files, {size}",
    "this mends them:",
    # nobody talks like this
    "is not concerned",
    "that misses it",
    "goes on with",
    "beside the executable",
    "Give `--python`",
    "Name another place",
    "Nothing has to be done",
    "build for CPUs",
    "must be a text",
    "does not tell",
    "不声不响",
    # untrue
    "loads them when onnxruntime is imported",
    "is taken from the system",
    "problems found that `--apply`",
]


@pytest.mark.parametrize("phrase", GONE)
def test_it_is_gone(phrase: str) -> None:
    assert [name for name, text in TEXTS.items() if phrase in text] == []
