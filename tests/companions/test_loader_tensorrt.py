"""TensorRT's libraries are loaded from NVIDIA's wheel where a session asks for TensorRT.

The libraries are small ones, made here with the names and links that NVIDIA's have by its own
packages (the bindings name what they load) and by its users; nobody read the wheels themselves.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ortgpu_fix.companions.loader import demand
from ortgpu_fix.companions.loader import load as autoload

FOLDER = "tensorrt_libs"
WANTED = ["libnvinfer.so.10", "libnvinfer_plugin.so.10", "libnvonnxparser.so.10"]
ON_WINDOWS = ["nvinfer_10.dll", "nvinfer_plugin_10.dll", "nvonnxparser_10.dll"]
OTHERS = [
    *("__init__.py", "libnvinfer.so", "libnvinfer_builder_resource.so.10.16.1"),
    *("libnvinfer_lean.so.10", "nvinfer_builder_resource_10.dll", "nvinfer_lean_10.dll"),
    "nvinfer_builder_resource_sm75_10.dll",
]


@pytest.mark.parametrize("wanted", [WANTED, ON_WINDOWS])
def test_what_the_provider_links_is_loaded_in_the_order_of_the_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: list[str]
) -> None:
    (tmp_path / FOLDER).mkdir()
    for name in (*reversed(wanted), *OTHERS):
        (tmp_path / FOLDER / name).touch()
    groups: list[tuple[list[tuple[str, str]], list[str]]] = []
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "nothing"), str(tmp_path)])
    monkeypatch.setattr(autoload, "load_group", lambda *group: groups.append(group))

    autoload.load_tensorrt()

    assert groups == [([("always", f"{FOLDER}/{name}") for name in wanted], [str(tmp_path)])]


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc, on Linux"
)
@pytest.mark.parametrize(
    ("sessions", "loaded"),
    [
        (["plugins", ["TensorrtExecutionProvider"]], True),
        ([["CUDAExecutionProvider"], ["TensorrtExecutionProvider", "CUDAExecutionProvider"]], True),
        ([["CUDAExecutionProvider", "CPUExecutionProvider"]], False),
    ],
)
def test_a_session_that_asks_for_it_finds_it(
    tmp_path: Path, sessions: list[list[str] | str | None], *, loaded: bool
) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    for at, name in enumerate(WANTED):
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(folder / name)]
        links = [str(folder / WANTED[0])] if at else []
        command += [f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-x", "none", *links]
        subprocess.run(command, check=True)
    package = Path(demand.__file__).parent
    code = f"""
import sys, types
sys.path[:0] = [{str(package.parent)!r}, {str(tmp_path)!r}]
from loader import demand, load
demand.load.load_all = lambda: print("cuda")
load.load = lambda file, load=load.load: (print(file.rpartition("/")[2]), load(file))
class Session:
    def initialize_session(self, providers): print(*providers or [])
demand.load.has_provider = lambda folder: True
device = type("OrtDevice", (), {{"cuda": staticmethod(lambda: 1)}})
module = types.SimpleNamespace(__file__="/x/y", InferenceSession=Session, OrtDevice=device)
if "plugins" in {sessions!r}:
    module.register_tensorrt_plugins_as_custom_ops = lambda *_: print("plugins")
demand.wrap_bindings(module)
for providers in {sessions!r}:
    if providers == "plugins":
        module.register_tensorrt_plugins_as_custom_ops(None, {{}})
    else:
        Session().initialize_session(providers)
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    said = finished.stdout.split()
    assert [word for word in said if word.startswith("lib")] == (WANTED if loaded else [])
    if loaded:
        first = said.index("plugins" if "plugins" in said else "TensorrtExecutionProvider")
        assert said[first - 3 : first] == WANTED
        assert "cuda" in said[: first - 3]
