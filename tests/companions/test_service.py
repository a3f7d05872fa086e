"""`ORTGPU_FIX_REQUIRE` and `ORTGPU_FIX_PROVIDERS`: no session goes on without CUDA in silence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ortgpu_fix.companions.loader import service

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
GIVES = "ortgpu-fix: a session without providers uses CUDA (ORTGPU_FIX_PROVIDERS)\n"
WHY = "this onnxruntime is built without CUDA"
REFUSED = "ortgpu-fix: a session requested CUDA but cannot use it (ORTGPU_FIX_REQUIRE=cuda): "


class Bindings:
    """As onnxruntime's compiled module: a session has what was asked for and is available."""

    def __init__(self, *available: str, own: bool = False, fails: str = "") -> None:
        class InferenceSession:
            session_options = SimpleNamespace(has_providers=lambda: own)

            def initialize_session(
                self, providers: Any = (), options: Any = (), disabled: Any = ()
            ) -> None:
                if fails:
                    raise RuntimeError(fails)
                self.made = [*providers], [*options], disabled

            def get_providers(self) -> list[str]:
                return [name for name in self.made[0] if name in available] or [CPU]

        self.InferenceSession = InferenceSession
        self.__file__ = "/nowhere/_pybind_state.py"
        self.get_available_providers = lambda: [*available, CPU]

    def session(self, *given: Any) -> Any:
        service.guard(self)
        made = self.InferenceSession()
        made.initialize_session(*given)
        return made


@pytest.fixture(autouse=True)
def _no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUIRE", "PROVIDERS"):
        monkeypatch.delenv(f"ORTGPU_FIX_{name}", raising=False)


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTGPU_FIX_PROVIDERS", "CUDA")


@pytest.fixture
def requires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTGPU_FIX_REQUIRE", "cuda")


@pytest.mark.usefixtures("providers")
def test_a_session_that_names_no_provider_gets_cuda(capsys: pytest.CaptureFixture[str]) -> None:
    assert Bindings(CUDA).session([], [], {"x"}).made == ([CUDA, CPU], [{}, {}], {"x"})
    assert capsys.readouterr().err == GIVES
    assert Bindings(CUDA).session([CPU]).made[0] == [CPU]
    assert Bindings(CUDA, own=True).session().made[0] == []
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("providers")
def test_a_session_that_is_given_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert Bindings().session().get_providers() == [CPU]
    assert (
        capsys.readouterr().err
        == "ortgpu-fix: a session without providers cannot use CUDA (ORTGPU_FIX_PROVIDERS): "
        f"{WHY}\n"
    )
    Bindings(own=True).session()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("providers", "requires")
def test_and_refused_where_cuda_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    """A program may catch the error and go on with the CPU: the reason is in the log."""
    with pytest.raises(service.GpuRequiredError) as caught:
        Bindings().session()

    assert str(caught.value) == REFUSED + WHY
    assert capsys.readouterr().err == REFUSED + WHY + "\n"
    Bindings(own=True).session()


@pytest.mark.usefixtures("requires")
def test_a_session_that_asked_for_cuda_and_has_none_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Bindings(CUDA).session([CUDA, CPU]).get_providers() == [CUDA]
    assert Bindings().session([CPU]).get_providers() == [CPU]
    assert Bindings().session().made[0] == []
    assert capsys.readouterr().err == ""
    with pytest.raises(service.GpuRequiredError, match=WHY):
        Bindings().session([CUDA, CPU])
    with pytest.raises(service.GpuRequiredError, match="no memory") as caught:
        Bindings(CUDA, fails="no memory").session([CUDA])
    assert isinstance(caught.value.__cause__, RuntimeError)
