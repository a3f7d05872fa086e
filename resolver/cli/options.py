"""The options of a plan, read from the command line and checked.

What reads requirements files is imported where one is named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..data_files import load_table
from ..errors import Error, cause
from ..facts.model import CPU_BUILD
from ..matrix import tensorrt
from ..matrix.torch import INDEX
from ..plan.reasons import RequirementLine
from ..resolve.options import CUDA_LABEL, PlanOptions
from ..versions import major, requirement
from .requests import PlanRequest

_CAPABILITY = re.compile(r"[1-9]\d?\.\d")
_TARGET = re.compile(r"(?:sm|compute)_([1-9]\d?)(\d)[af]?", re.IGNORECASE)
"""As nvcc names it: `sm_89`, `compute_120`."""


def plan_options_of(asked: PlanRequest) -> PlanOptions:
    """Return the options of a plan.

    With `--write` a pin of onnxruntime-gpu does not bind either: its line will be replaced.

    Raises Error `wish-ort`, `wish-cuda`, `wish-gpu` or `wish-torch` for an impossible value and
    `requirements-unreadable` for a file.
    """
    wanted, sources = asked.install, asked.sources
    latest = wanted.ort == "latest"
    lines = [
        RequirementLine(file, text)
        for file in wanted.requirement
        for text in _requirements(Path(file), rewriting=wanted.write)
    ]
    options = PlanOptions(
        onnxruntime="" if latest else _specifier(wanted.ort, "wish-ort"),
        latest=latest,
        cuda=_cuda(wanted.cuda),
        ignored_gpus=frozenset(capability(text, "--ignore-gpu") for text in wanted.ignore_gpu),
        autoload=not wanted.no_autoload,
        provide=not wanted.no_provide,
        requirements=tuple(lines),
        torch=_torch(wanted.torch),
        small=wanted.prefer == "small",
        torch_index=_without_credentials(sources.torch_index_url, INDEX),
        provider=wanted.provider,
        tensorrt_index=_without_credentials(sources.tensorrt_index_url, tensorrt.INDEX),
        providers="provider" in wanted.allow,
    )
    return options.with_conflicts if "conflicts" in wanted.allow else options


def _without_credentials(index: str | None, default: str) -> str:
    if not index:
        return default
    from ..index.page import without_credentials

    return without_credentials(index)


def _specifier(wish: str | None, refusal: str) -> str:
    """Return `1.26.0` as `==1.26.0`, a specifier unchanged; raise Error `refusal` else."""
    if not wish:
        return ""
    text = f"=={wish}" if wish[0].isdigit() else wish
    try:
        parsed = str(SpecifierSet(text))
    except InvalidSpecifier:
        parsed = ""
    if not parsed or requirement(f"x{parsed}") is None:  # with an endless number
        raise Error(refusal, value=wish)
    return parsed


def _torch(wish: str | None) -> str:
    """Return the wish of `--torch`. Raises Error `wish-torch`."""
    if wish in {"keep", "match"} or re.fullmatch(CUDA_LABEL, wish or ""):
        return str(wish)
    return _specifier(wish, "wish-torch") or "keep"


def _cuda(cuda: str | None) -> str | None:
    """Return the CUDA major of `--cuda`. Raises Error `wish-cuda` for one that nobody knows."""
    if cuda is None:
        return None
    known = tuple(row["cuda"] for row in load_table("drivers")["floor"])
    if not re.fullmatch(r"\d{2}(\.\d+)?", cuda) or major(cuda) not in known:
        raise Error("wish-cuda", value=cuda, known=known)
    return major(cuda)


def is_capability(text: str) -> bool:
    """Return whether a GPU of the command line is no name: `8.9`, `sm_89`."""
    return bool(_CAPABILITY.fullmatch(text) or _TARGET.fullmatch(text))


def capability(text: str, flag: str) -> str:
    """Return a compute capability of the command line, which may be nvcc's name or a GPU's.

    Raises Error `wish-gpu` for what is neither, and `wish-gpu-several` where GPUs of several
    compute capabilities have that name.
    """
    if _CAPABILITY.fullmatch(text):
        return text
    if target := _TARGET.fullmatch(text):
        return f"{target[1]}.{target[2]}"
    from ..facts.gpu_names import gpus_like

    found = gpus_like(load_table("gpus"), text)
    if not found:
        raise Error("wish-gpu", flag=flag, value=text)
    if len(found) > 1:
        listed = "; ".join(f"{key} ({', '.join(names)})" for key, names in found.items())
        raise Error("wish-gpu-several", flag=flag, value=text, listed=listed)
    return next(iter(found))


def _requirements(file: Path, *, rewriting: bool) -> list[str]:
    """Return the requirements in `file`, those of the files that it names too, as PEP 508 texts.

    Of pyproject.toml they are those of the project itself. A lower bound of `onnxruntime` does not
    bind, nor does our own line: they change. With `rewriting`, no pin of onnxruntime-gpu does.
    """
    from ..companions.contents import LABEL
    from ..facts.own_projects import BUILDS, loosened

    replaced = BUILDS if rewriting else {CPU_BUILD}
    found: list[str] = []
    for wanted in _of_project(file) if file.suffix == ".toml" else _of_file(file):
        name = canonicalize_name(wanted.name)
        pins = [spec.version for spec in wanted.specifier if spec.operator in {"==", "==="}]
        ours = name == CPU_BUILD and any(pin.endswith(LABEL) for pin in pins)
        if ours or (name in replaced - {CPU_BUILD} and pins):
            continue
        marker = f"; {wanted.marker}" if wanted.marker else ""
        line = f"{name}{wanted.specifier}{marker}"
        found.append(loosened(line) if name in replaced else line)
    return found


def _of_project(file: Path) -> Iterator[Requirement]:
    from ..requirements.files import read_requirements_file
    from ..utils.toml import tomllib

    try:
        document = tomllib.loads(read_requirements_file(file).decode())
        project = document.get("project", {})
        texts = project.get("dependencies", []) if isinstance(project, dict) else []
        texts = [text for text in texts if isinstance(text, str)]
    except RecursionError as error:
        deep = cause("nested-too-deep")
        raise Error("requirements-unreadable", file=file, cause=deep) from error
    except ValueError as error:  # no UTF-8, or no TOML
        raise Error("requirements-unreadable", file=file, cause=error) from error
    yield from (wanted for text in texts if (wanted := requirement(text)) is not None)


def _of_file(file: Path) -> Iterator[Requirement]:
    """Yield what a requirements file requires.

    Which onnxruntime, where pip-compile or uv wrote it, is said by the file that they read.
    """
    from ..facts.own_projects import BUILDS
    from ..project.recognize import compiled_from
    from ..requirements.files import collect_files

    source = compiled_from(file)
    for path in filter(None, (file, source)):
        for one in collect_files([path]).values():
            for wanted in one.requirements(os.environ):
                of_build = canonicalize_name(wanted.name) in BUILDS
                if source is None or of_build is (path == source):
                    yield wanted
