"""Real inference, and what it proves.

Starts `smoke` with the target's interpreter and passes its output to `verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data_files import DATA
from ..facts.model import Driver
from ..utils.process import Runner
from .child import run_script
from .torch_verdict import ORDERS, Order, combine, needs_torch_alone, needs_torch_check
from .verdict import judge
from .verification import Verification

SMOKE = Path(__file__).with_name("children") / "smoke.py"
MODELS = {
    "cuda": ("conv", "matmul", "fft"),
    "tensorrt": ("conv", "matmul"),
    "tensorrt-rtx": ("conv", "matmul"),
}
"""By provider. TensorRT has no Fourier transform: it leaves that to CUDA."""
TIME_LIMIT = 600.0
"""Seconds. Compiling PTX for a GPU without machine code in the build can take minutes, once."""


def verify(
    target: str | Path,
    *,
    driver: Driver | None,
    runner: Runner,
    environ: Mapping[str, str],
    plain: bool = False,
    ignore_gpus: Sequence[str] = (),
    provider: str = "cuda",
    timeout: float = TIME_LIMIT,
    with_torch: bool = True,
    pythonpath: str | None = None,
) -> Verification:
    """Run real inference with the interpreter `target`, and return what that proves.

    `driver` is of the machine's facts. One GPU of each kind is used, except those of the compute
    capabilities in `ignore_gpus`. The sessions ask for `provider`. With `plain` the check loads no
    libraries itself, as an unchanged application; with `pythonpath` it imports from there first, as
    a program of this call would. The child runs without `-I` and `-s`, because an application
    imports from the user's own site-packages too. With a torch for CUDA in the environment, both
    run in one process, in both orders, unless `with_torch` is false; each process has `timeout`
    seconds. Raises Error `verify-not-started`.
    """
    settings = [f"--provider={provider}", *(["--plain"] if plain else [])]
    settings += [f"--ignore={capability}" for capability in ignore_gpus]
    models = [str(DATA / f"{name}.onnx") for name in MODELS[provider]]

    def check(order: Order | None = None) -> Verification:
        finished = run_script(
            SMOKE,
            target,
            [*settings, *([f"--torch={order}"] if order else []), *models],
            runner=runner,
            environ=environ,
            pythonpath=pythonpath,
            timeout=timeout,
            lifeline=True,
        )
        return judge(
            stdout=finished.stdout,
            stderr=finished.stderr,
            returncode=finished.returncode,
            timed_out=finished.timed_out,
            driver=driver,
        )

    alone = check()
    if not with_torch or not needs_torch_check(alone):
        return alone
    orders: dict[Order, Verification] = {order: check(order) for order in ORDERS}
    if needs_torch_alone(alone, orders):
        orders["alone"] = check("alone")
    return combine(alone, orders)
