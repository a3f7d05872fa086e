"""The environment variables of uv: what passes of the user's, and how the network is reached.

What decides how its output looks (FORCE_COLOR, RUST_LOG), where else it looks for packages
(UV_INDEX, UV_FIND_LINKS) or what Python it meets (PYTHONPATH, VIRTUAL_ENV) never passes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..index.config import IndexConfig
from ..utils.child_environment import child_environment

_PATIENCE = {"UV_HTTP_TIMEOUT": "60", "UV_HTTP_RETRIES": "5"}
"""Seconds without a byte, and further tries: twice what uv itself allows, for slow lines."""


def uv_environment(
    environ: Mapping[str, str], sources: IndexConfig, indexes: dict[str, str], *, cache: bool
) -> dict[str, str]:
    """Return the whole environment of a uv that reaches the network as `sources` are configured.

    `indexes` are the variables of those that it asks: credentials are in them, and in no file.
    Without `cache` uv keeps nothing.
    """
    configured = {
        "SSL_CERT_FILE": sources.cert,
        "SSL_CLIENT_CERT": sources.client_cert,
        "ALL_PROXY": sources.proxy,
        "UV_HTTP_TIMEOUT": sources.timeout,
        "UV_HTTP_RETRIES": sources.retries,
        "UV_KEYRING_PROVIDER": "subprocess" if sources.keyring else None,
        "UV_INSECURE_HOST": " ".join(sorted(sources.trusted_hosts)) or None,
        "UV_NO_CACHE": None if cache else "1",
    }
    passed = child_environment(environ, "index")
    if not cache:
        passed.pop("UV_CACHE_DIR", None)  # it would be made all the same
    return (
        _PATIENCE | passed | {name: value for name, value in configured.items() if value} | indexes
    )
