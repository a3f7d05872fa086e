"""The environment of our own children: made here, of a list of what passes, and never inherited.

Core. We read what they print, and they judge what the user's own Python would meet. So what passes
is what that Python sees, too, and nothing that only changes how a program behaves or prints: CI
systems set `FORCE_COLOR` and `CLICOLOR_FORCE`, with which uv colours its lock files. The program
that `run` starts, and the tools of a user's project, are not ours: they get the user's environment
as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

ChildPurpose = Literal["look", "compute", "index", "tool", "git"]
"""`look`: the target's Python says what it is. `compute`: it, or ours, loads the driver or CUDA.
`index`: uv, which compiles or installs, and `keyring`. `tool`: a program of the system whose words
are read. `git`: what reads a commit, and fetches nothing."""

_EVERYWHERE = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "LANG", "LANGUAGE", "LC_*", "TZ"),
    *("XDG_*", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_*", "NIX_LD*"),
    # Without these a program of Windows finds neither its libraries nor its user.
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "USERNAME", "USERPROFILE"),
    *("USERDOMAIN*", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "ALLUSERSPROFILE"),
    *("PROGRAMDATA", "PROGRAMFILES*", "PROGRAMW6432", "COMMONPROGRAM*", "PUBLIC"),
    *("PROCESSOR_*", "NUMBER_OF_PROCESSORS", "COMPUTERNAME", "WINE*"),
)
_ENVIRONMENT = ("PYTHONUSERBASE", "PYTHONNOUSERSITE", "CONDA_*")
"""Where a Python finds what the user installed for it. The others would make it another one
(`PYTHONHOME`), or are named to the user (`PYTHONPATH`, see the finding `shadowed`)."""
_COMPUTING = (
    *("CUDA*", "CUDNN*", "CUBLAS*", "CUFFT*", "NVIDIA*", "NV_*", "NCCL_*", "TENSORRT*", "TRT_*"),
    *("ORT*", "ONNX*", "OMP_*", "KMP_*", "GOMP_*", "MKL_*", "OPENBLAS_*", "NUMEXPR_*", "TBB_*"),
    *("TORCH*", "PYTORCH_*", "TF_*", "XLA_*", "JAX_*", "MALLOC_*", "WSL*"),
)
"""What libraries read that compute. `ORT*` has our own, `ORTGPU_FIX_AUTOLOAD` and the like."""
_NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
_KEYRING = (
    *("DBUS_*", "DISPLAY", "WAYLAND_DISPLAY", "GNOME_*", "KDE_*", "PYTHON_KEYRING_BACKEND"),
    *("KEYRING_*", "GNUPGHOME", "GPG_*", "PASSWORD_STORE_*", "BW_*", "OP_*", "SSH_*"),
    *("GOOGLE_*", "CLOUDSDK_*", "AWS_*", "AZURE_*", "ARTIFACTS_*", "VSS_*"),
)
"""What the user's program `keyring`, which uv starts, too, finds passwords with."""
_GIT = ("GIT_*",)
"""In a hook of git they say which repository it is."""
_UV = (
    *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_LINK_MODE", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    *("UV_CREDENTIALS_DIR", "UV_HTTP_*", "UV_REQUEST_TIMEOUT", "UV_CONCURRENT_*"),
    "UV_LOCK_TIMEOUT",
)
"""What counts for a download whose files are chosen (https://docs.astral.sh/uv/reference/environment/).
Which index it is, is in our own hands."""

_PASSES: Mapping[ChildPurpose, tuple[str, ...]] = {
    "look": (*_EVERYWHERE, *_ENVIRONMENT),
    "compute": (*_EVERYWHERE, *_ENVIRONMENT, *_COMPUTING),
    "index": (*_EVERYWHERE, *_ENVIRONMENT, *_NETWORK, *_KEYRING, *_UV),
    "tool": _EVERYWHERE,
    "git": (*_EVERYWHERE, *_GIT),
}
_NAMES = {
    purpose: frozenset(name for name in passes if name[-1] != "*")
    for purpose, passes in _PASSES.items()
}
_BEGINNINGS = {
    purpose: tuple(name[:-1] for name in passes if name[-1] == "*")
    for purpose, passes in _PASSES.items()
}
_PYTHON = {"PYTHONDONTWRITEBYTECODE": "1"}
"""No child writes bytecode into an environment that must not change."""
# A file that a clone of a part of a repository lacks would be fetched, and its configuration names
# the program that does. The first of git's variables rules over what that allows
# (`protocol.NAME.allow`); the second is of git 2.44 (https://git-scm.com/docs/git).
_SET: Mapping[ChildPurpose, Mapping[str, str]] = {
    "look": _PYTHON,
    "compute": _PYTHON,
    "index": {**_PYTHON, "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"},
    "tool": {"LC_ALL": "C"},
    "git": {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"},
}


def child_environment(environ: Mapping[str, str], purpose: ChildPurpose) -> dict[str, str]:
    """Return what a child for `purpose` gets of `environ`, and what is set for it."""
    names, beginnings = _NAMES[purpose], _BEGINNINGS[purpose]
    passed = {
        name: value
        for name, value in environ.items()
        if (upper := name.upper()) in names or upper.startswith(beginnings)
    }
    return {**passed, **_SET[purpose]}
