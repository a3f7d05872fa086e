"""Run the check in the target environment.

Starts `smoke` with the target's interpreter and hands its answer to `verdict`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data_files import DATA
from ..errors import Error
from ..facts.model import Driver
from ..utils.process import Runner, own_environment
from .model import Verification
from .torch_verdict import ORDERS, Order, combine, needs_torch_alone, needs_torch_check
from .verdict import judge

MODELS = ("conv", "matmul", "fft")
TIME_LIMIT = 600.0
"""Seconds. Compiling PTX for a GPU that the build has no machine code for can take minutes, and is
done once; a driver that does not even start is given up by the child after one."""


def verify(
    target: str | Path,
    *,
    driver: Driver | None,
    runner: Runner,
    environ: Mapping[str, str],
    plain: bool = False,
    ignore_gpus: Sequence[str] = (),
    timeout: float = TIME_LIMIT,
) -> Verification:
    """Run real inference with the interpreter `target`, and return what that proves.

    `driver` is what the facts say of the machine. One GPU of each kind is used, those of the
    compute capabilities in `ignore_gpus` excepted. With `plain` the check gets no help with
    libraries: it sees what an application that was not changed for this sees. The child runs
    neither with `-I` nor with `-s`, because packages in the user's own site-packages are what an
    application finds too; only PYTHON* variables are dropped, and the script removes its own
    folder from the path. Where a torch for CUDA is there too, both are tried in one process, in
    both orders; each process has `timeout` seconds. Raises Error `verify-not-started` where
    `target` cannot be run.
    """
    child = own_environment(environ)
    script = Path(__file__).with_name("children") / "smoke.py"

    def check(order: Order | None = None) -> Verification:
        with tempfile.TemporaryDirectory(prefix="ortgpu-fix-") as scratch:
            argv = [str(target), "-B", str(script), "--scratch", scratch]
            argv += ["--plain"] if plain else []
            argv += [f"--ignore={capability}" for capability in ignore_gpus]
            argv += [f"--torch={order}"] if order else []
            argv += [str(DATA / f"{name}.onnx") for name in MODELS]
            try:
                finished = runner(argv, timeout=timeout, env=child)
            except OSError as problem:
                raise Error("verify-not-started", python=target, problem=problem) from problem
        return judge(
            stdout=finished.stdout,
            stderr=finished.stderr,
            returncode=finished.returncode,
            timed_out=finished.timed_out,
            driver=driver,
        )

    alone = check()
    if not needs_torch_check(alone):
        return alone
    orders: dict[Order, Verification] = {order: check(order) for order in ORDERS}
    if needs_torch_alone(alone, orders):
        orders["alone"] = check("alone")
    return combine(alone, orders)
