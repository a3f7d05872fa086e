"""The lock as a requirements file."""

from __future__ import annotations

import synthetic
from ortgpu_fix.lock import requirements
from ortgpu_fix.plan import Wheel
from ortgpu_fix.resolve import resolve
from ortgpu_fix.situation import Wishes

EXTRA = Wheel(
    name="flatbuffers", version="25.0", index="pypi", file="f.whl", size=1, sha256="1" * 64
)
OTHER_NUMPY = Wheel(
    name="numpy", version="2.0", index="pypi", file="n.whl", size=1, sha256="2" * 64
)


def test_a_lock_to_the_letter() -> None:
    facts = synthetic.facts("onnxruntime 1.22.1", "numpy 2.2.6")
    made = resolve(facts, Wishes(), synthetic.matrix())

    text = requirements(made, [EXTRA], facts, ["ortgpu-fix lock", "--facts a.json"])

    assert text == (
        f"""\
# onnxruntime-gpu for CUDA 12, with every library that it needs
# made by: ortgpu-fix lock --facts a.json
# system: linux, x86_64, glibc 2.35, Python 3.11.7
# driver: CUDA 12.2
# GPUs, by compute capability: 8.0
# matrix: 2026-01-01 sha256:invented
# install with: pip install --require-hashes -r FILE
# before: pip uninstall onnxruntime (the CPU build shares the folder of the GPU build)
# the application: onnxruntime.preload_dlls() first (ortgpu-fix --apply needs no such line)
#
flatbuffers==25.0 \\
    --hash=sha256:{"1" * 64}
nvidia-cublas-cu12==12.8.4 \\
    --hash=sha256:{"0" * 64}
nvidia-cudnn-cu12==9.28.0 \\
    --hash=sha256:{"0" * 64}
onnxruntime-gpu==1.26.0 \\
    --hash=sha256:{"0" * 64}
"""
    )


def test_the_version_of_the_selection_counts() -> None:
    facts = synthetic.facts("numpy 2.2.6", driver="11.7")
    made = resolve(facts, Wishes(), synthetic.matrix())

    text = requirements(made, [OTHER_NUMPY], facts, ["ortgpu-fix lock"])

    assert "numpy==1.26.4" in text
    assert "numpy==2.0" not in text


def test_a_machine_of_which_little_is_known() -> None:
    facts = synthetic.facts(gpus=None)
    made = resolve(facts, Wishes(), synthetic.matrix())

    assert "# GPUs, by compute capability: none\n" in requirements(made, [], facts, [])


def test_a_machine_without_a_driver_has_none() -> None:
    facts = synthetic.facts()
    made = resolve(facts, Wishes(), synthetic.matrix())
    other = synthetic.facts(driver=None)

    assert "# driver: none\n" in requirements(made, [], other, [])
