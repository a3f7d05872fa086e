"""Reads the text of a compose file: its services, and what each asks of the GPU.

Source: https://github.com/compose-spec/compose-spec/blob/main/deploy.md, and 05-services.md there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import Error, cause

_SPEAKING = ("cuda", "nvidia", "gpu")
"""In the name of an image or a variable: whoever writes them wants a GPU."""


class Service(NamedTuple):
    """A service of a compose file."""

    line: int
    name: str
    gpu: bool
    """It gets a GPU."""
    wants: bool
    """Its image or its variables say that it is for one."""
    environment: Mapping[str, str]
    lines: Mapping[str, int]
    """The lines of those variables that are written one a line."""


def read_compose(text: str, file: str) -> tuple[Service, ...]:
    """Return the services of a compose file. Raises Error `text-unreadable`.

    YAML is read by PyYAML, where that is installed beside this program.
    """
    try:
        import yaml  # noqa: PLC0415 - nobody else needs it
    except ImportError as error:
        why = cause("text-without-yaml")
        raise Error("text-unreadable", file=file, cause=why) from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        document = loader.construct_document(node)
        named = _value(node, "services")
        rows = {key.value: (key.start_mark.line + 1, value) for key, value in named.value}
        return tuple(
            _service(str(name), service or {}, *rows.get(name, (0, None)))
            for name, service in document["services"].items()
        )
    except (
        yaml.YAMLError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        said = str(error).partition("\n")[0]
        raise Error(
            "text-unreadable", file=file, cause=cause("text-no-compose", problem=said)
        ) from error
    finally:
        loader.dispose()


def _service(name: str, service: Mapping[str, Any], line: int, node: Any) -> Service:  # noqa: ANN401
    rows = service.get("environment") or {}
    pairs = (
        rows.items() if isinstance(rows, dict) else (str(row).partition("=")[::2] for row in rows)
    )
    environment = {str(key): "" if value is None else str(value) for key, value in pairs}
    image = str(service.get("image") or "").lower()
    return Service(
        line,
        name,
        any(_gpus(service)),
        any(word in image for word in _SPEAKING) or any("NVIDIA" in key for key in environment),
        environment,
        dict(_lines(_value(node, "environment"))),
    )


def _gpus(service: Mapping[str, Any]) -> Iterator[bool]:
    """Yield whether each of the ways to a GPU is taken."""
    yield bool(service.get("gpus"))
    yield service.get("runtime") == "nvidia"
    yield any("nvidia.com/gpu" in str(row) for row in service.get("devices") or ())
    resources = ((service.get("deploy") or {}).get("resources") or {}).get("reservations") or {}
    for row in resources.get("devices") or ():
        yield row.get("driver") == "nvidia" or "gpu" in (row.get("capabilities") or ())


def _value(node: Any, wanted: str) -> Any:  # noqa: ANN401 - nodes of PyYAML
    """Return the node of a key in a mapping; None where it has none."""
    pairs = node.value if node is not None and node.id == "mapping" else ()
    return next((value for key, value in pairs if key.value == wanted), None)


def _lines(node: Any) -> Iterator[tuple[str, int]]:  # noqa: ANN401 - a node of PyYAML
    for row in node.value if node is not None and node.id != "scalar" else ():
        key = row[0] if isinstance(row, tuple) else row
        if key.id == "scalar":
            yield key.value.partition("=")[0], key.start_mark.line + 1
