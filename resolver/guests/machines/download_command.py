"""`download` for several facts files: the wheels of all groups."""

from __future__ import annotations

from collections.abc import Mapping

from ...cli.commands.download import download_groups
from ...messages.catalog import Language
from .guest import SeveralDownloadRequest
from .lock_command import groups_of


def run(request: SeveralDownloadRequest, environ: Mapping[str, str], language: Language) -> int:
    """Fetch what all machines need. Raises as `groups_of` and `download_groups`."""
    planned = groups_of(request.download.plan, language, with_cpu=request.with_cpu)
    if isinstance(planned, int):
        return planned
    return download_groups(planned, request.download, environ, language)
