"""Where packages come from, by the flags of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from ..index.config import IndexConfig, load_index_config


def index_config_of(
    arguments: argparse.Namespace, environ: Mapping[str, str], prefix: Path | None
) -> IndexConfig:
    """Return where packages come from, by the flags and the user's configuration.

    Raises Error `index-insecure`.
    """
    find_links = None if arguments.find_links is None else Path(arguments.find_links)
    return load_index_config(
        environ,
        index_url=arguments.index_url,
        torch_index=arguments.torch_index_url,
        find_links=find_links,
        offline=arguments.offline,
        prefix=prefix,
    )
