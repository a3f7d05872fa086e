"""The environment variables that uv gets: each is chosen, none is inherited by accident.

What decides how its output looks (FORCE_COLOR, RUST_LOG), where else it looks for packages
(UV_INDEX, UV_FIND_LINKS) or what Python it meets (PYTHONPATH, VIRTUAL_ENV) never passes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..index.config import IndexConfig

_PASS = frozenset(
    {
        # who runs it, and where it may write
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
        *("USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "SYSTEMROOT", "SYSTEMDRIVE"),
        *("WINDIR", "COMSPEC", "PATHEXT", "PROGRAMFILES", "NUMBER_OF_PROCESSORS"),
        # what the target's own Python needs to start, and where the user has more of it
        *("LD_LIBRARY_PATH", "PYTHONUSERBASE"),
        # the network
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT"),
        # what the user set for uv that changes how it fetches, and not what
        *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_LINK_MODE", "UV_CREDENTIALS_DIR"),
        *("UV_HTTP_TIMEOUT", "UV_HTTP_CONNECT_TIMEOUT", "UV_HTTP_RETRIES"),
        *("UV_CONCURRENT_DOWNLOADS", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    }
)
"""Source: https://docs.astral.sh/uv/reference/environment/."""
_LOUD = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "NO_COLOR", "TERM", "VIRTUAL_ENV"})
_LOUD_PREFIXES = ("UV_", "PIP_", "PYTHON", "RUST_", "CONDA_")
_PATIENCE = {"UV_HTTP_TIMEOUT": "60", "UV_HTTP_RETRIES": "5"}
"""Seconds without a byte, and further tries: twice what uv itself allows, for slow lines."""


def base_environment(environ: Mapping[str, str], *, keyring: bool = False) -> dict[str, str]:
    """Return what of `environ` passes to uv, and what it always gets.

    The `keyring` program, which uv starts, may need anything that is not uv's or Python's own.
    """
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _PASS
        or (keyring and name.upper() not in _LOUD and not name.upper().startswith(_LOUD_PREFIXES))
    } | {"UV_PYTHON_DOWNLOADS": "never", "PYTHONDONTWRITEBYTECODE": "1"}


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
    passed = base_environment(environ, keyring=sources.keyring is not None)
    if not cache:
        passed.pop("UV_CACHE_DIR", None)  # it would be made all the same
    return (
        _PATIENCE | passed | {name: value for name, value in configured.items() if value} | indexes
    )
