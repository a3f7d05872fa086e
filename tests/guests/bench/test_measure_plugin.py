"""A user's model is given to a plugin's device as its packages document it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from ortgpu_fix.guests.bench.children.measure_session import Session, Tools

OPTIONS = {"cudnn_conv_algo_search": "DEFAULT"}


class Made:
    """Stands for the module onnxruntime, and keeps what a session was asked for."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.providers: object = None

    def get_ep_devices(self) -> list[SimpleNamespace]:
        names = ("CPUExecutionProvider", "CUDAExecutionProvider", "CUDAExecutionProvider")
        return [SimpleNamespace(ep_name=name, index=at) for at, name in enumerate(names)]

    def SessionOptions(self) -> SimpleNamespace:  # noqa: N802 - as onnxruntime calls it
        return SimpleNamespace(add_provider_for_devices=lambda *asked: self.given.extend(asked))

    def InferenceSession(self, *_: object, providers: object, **__: object) -> Any:  # noqa: N802
        self.providers = providers
        return SimpleNamespace(disable_fallback=lambda: None, get_outputs=list)


@pytest.mark.parametrize("device", [0, 1])
def test_the_device_of_a_plugin_is_asked_for(device: int, tmp_path: Path) -> None:
    made = Made()
    module = cast("ModuleType", SimpleNamespace(get_ep_name=lambda: "CUDAExecutionProvider"))
    tools = Tools(made, None, "model.onnx", tmp_path, module)
    wanted = {"key": "cuda", "provider": "cuda", "device": device, "options": OPTIONS}

    Session(tools, wanted)

    (offered,), options = made.given
    assert (offered.index, options, made.providers) == (device + 1, OPTIONS, None)


@pytest.mark.parametrize("apart", [True, False])
def test_the_cpu_and_a_provider_built_in_are_asked_for_by_name(
    tmp_path: Path, *, apart: bool
) -> None:
    made = Made()
    tools = Tools(made, None, "model.onnx", tmp_path, object() if apart else None)

    Session(tools, {"key": "any", "provider": "cpu" if apart else "cuda"})

    cuda = [("CUDAExecutionProvider", {"device_id": "0"})]
    assert made.given == []
    assert made.providers == [*([] if apart else cuda), "CPUExecutionProvider"]
