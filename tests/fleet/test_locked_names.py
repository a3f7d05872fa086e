"""What a fleet's lock installs by itself is not kept on any machine."""

from __future__ import annotations

import synthetic
from ortgpu_fix.companions.contents import LIBRARIES
from ortgpu_fix.fleet.common_facts import locked_names, without_installed_set
from ortgpu_fix.matrix.model import MSVC_RUNTIME

MATRIX = synthetic.matrix()


def test_every_build_what_it_requires_and_what_this_program_makes() -> None:
    assert locked_names(MATRIX) == {
        *("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml"),
        *("flatbuffers", "numpy", "protobuf"),
        *(LIBRARIES, MSVC_RUNTIME),
    }


def test_other_packages_and_the_wheels_of_nvidia_stay_listed() -> None:
    facts = synthetic.facts(
        *("onnxruntime 1.22.0", "numpy 2.2.6", "user 1.0", "nvidia-cudnn-cu12 9.28.0"),
        libraries=[{"name": "libcudnn.so.9"}],
        toolkits=[{"version": "12.4", "path": "/x"}],
        onnxruntime={"distribution": "onnxruntime", "version": "1.22.0"},
        sources={"gpus": "nvml", "libraries": "search"},
    )
    left = without_installed_set(facts, MATRIX, locked_names(MATRIX))

    assert [(row.name, row.intact) for row in left.packages] == [
        ("user", True),
        ("nvidia-cudnn-cu12", False),  # not kept, and still in the way of another
    ]
    assert (left.libraries, left.toolkits, left.onnxruntime) == ((), (), None)
    assert left.sources == {"gpus": "nvml"}
    assert (left.driver, left.gpus, left.python) == (facts.driver, facts.gpus, facts.python)
