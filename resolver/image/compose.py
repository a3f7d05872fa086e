"""Reads the text of a compose file: its services, and what each asks of the GPU.

Source: https://github.com/compose-spec/compose-spec/blob/main/deploy.md, and 05-services.md there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import Error, cause

_SPEAKING = re.compile(r"(?!.*cpu).*(?<![a-z])(?<!no-)(?:cuda|nvidia|gpus?)(?![a-z])")
"""In the name of an image: whoever writes it wants a GPU."""
_NO_WISH = re.compile(r"(?:none|void)$|.*\$")
"""In NVIDIA_VISIBLE_DEVICES: no GPU, and what a variable tells."""


class Service(NamedTuple):
    """A service of a compose file."""

    line: int
    name: str
    gpu: bool | None
    """It gets a GPU; None: what it extends is in another file, or a variable tells."""
    wants: bool
    """Its image or its variables say that it is for one."""
    built: bool
    """Its image is built for it."""
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

    class Loader(yaml.SafeLoader):
        """Knows tags: https://docs.docker.com/reference/compose-file/merge/."""

    Loader.add_multi_constructor("!", _tagged)
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        document = loader.construct_document(node)
        named = _value(node, "services")
        rows = {key.value: (key.start_mark.line + 1, value) for key, value in named.value}
        services = {name: service or {} for name, service in document["services"].items()}
        return tuple(_service(name, services, *rows.get(name, (0, None))) for name in services)
    except yaml.YAMLError as error:
        why = cause("text-no-compose", problem=str(error).partition("\n")[0])
        raise Error("text-unreadable", file=file, cause=why) from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        why = cause("text-without-services")
        raise Error("text-unreadable", file=file, cause=why) from error
    finally:
        loader.dispose()


def _tagged(loader: Any, tag: str, node: Any) -> Any:  # noqa: ANN401 - of PyYAML
    """Return the value of a node with a tag: of `!reset` none, of others as without it."""
    return None if tag == "reset" else getattr(loader, f"construct_{node.id}")(node)


def _service(name: str, services: Mapping[str, Any], line: int, node: Any) -> Service:  # noqa: ANN401
    chain, whole = _extended(name, services)
    environment: dict[str, str] = {}
    for service in reversed(chain):
        environment |= _environment(service.get("environment") or {})
    images = [str(service["image"]).lower() for service in chain if service.get("image")]
    gpus = {_gets_gpu(service) for service in chain} | ({False} if whole else {None})
    return Service(
        line,
        str(name),
        True in gpus or (None if None in gpus else False),
        not _NO_WISH.match(environment.get("NVIDIA_VISIBLE_DEVICES", ""))
        and (
            any(map(_SPEAKING.match, images[:1]))
            or any("NVIDIA" in key and value for key, value in environment.items())
        ),
        any(service.get("build") for service in chain),
        environment,
        dict(_lines(_value(node, "environment"))),
    )


def _extended(
    name: str | None, services: Mapping[str, Any]
) -> tuple[list[Mapping[str, Any]], bool]:
    """Return a service before those that it extends, and whether all of them are in this file."""
    chain: list[Mapping[str, Any]] = []
    waiting = dict(services)
    while name in waiting:
        chain.append(waiting.pop(name))
        extends = chain[-1].get("extends") or {}
        extends = {"service": extends} if isinstance(extends, str) else extends
        name = extends.get("service")
        if extends.get("file"):
            break
    return chain, name is None


def _environment(rows: Any) -> dict[str, str]:  # noqa: ANN401 - a mapping or a list
    pairs = (
        rows.items() if isinstance(rows, dict) else (str(row).partition("=")[::2] for row in rows)
    )
    return {str(key): "" if value is None else str(value) for key, value in pairs}


def _gets_gpu(service: Mapping[str, Any]) -> bool | None:
    """Tell whether a service takes one of the ways to a GPU; None: a variable tells."""
    resources = ((service.get("deploy") or {}).get("resources") or {}).get("reservations")
    asked = str([service.get("runtime"), service.get("devices"), resources]).lower()
    if "$" in asked:
        return None
    return bool(service.get("gpus")) or "nvidia" in asked or "gpu" in asked


def _value(node: Any, wanted: str) -> Any:  # noqa: ANN401 - nodes of PyYAML
    """Return the node of a key in a mapping; None where it has none."""
    pairs = node.value if node is not None and node.id == "mapping" else ()
    return next((value for key, value in pairs if key.value == wanted), None)


def _lines(node: Any) -> Iterator[tuple[str, int]]:  # noqa: ANN401 - a node of PyYAML
    for row in node.value if node is not None and node.id != "scalar" else ():
        key = row[0] if isinstance(row, tuple) else row
        if key.id == "scalar":
            yield key.value.partition("=")[0], key.start_mark.line + 1
