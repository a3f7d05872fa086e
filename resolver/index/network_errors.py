"""Network errors: which end a request, and which allow another try."""

from __future__ import annotations

import ssl

from ..errors import Cause, Error, cause
from .page import without_credentials


class TransferInterrupted(Exception):  # noqa: N818 - another try may succeed
    """A response did not come, or ended too early."""

    def __init__(self, error: Error) -> None:
        self.error = error
        """What to raise when no try is left."""


def network_error(error: BaseException, url: str) -> Exception:
    """Return the Error, or TransferInterrupted, for what requests or urllib3 raised."""
    import requests
    import urllib3

    shown = without_credentials(url)
    if isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError):
        return Error("index-certificate", url=shown, reason=_certificate(error))
    if isinstance(error, requests.exceptions.ProxyError | urllib3.exceptions.ProxyError):
        return Error("index-proxy", url=shown)
    if type(error) is OSError:  # requests raises it where the file of certificates is missing
        return Error("index-certificate", url=shown, reason=str(error))
    if isinstance(error, ValueError):  # InvalidURL and its like
        socks = "SOCKS" in str(error)  # of the proxy: requests lacks what speaks to it
        reason = cause("socks-unknown" if socks else "address-unreadable")
        return Error("index-unreachable", url=shown, reason=reason)
    return TransferInterrupted(Error("index-unreachable", url=shown, reason=reason_of(error)))


def _chain(error: BaseException) -> list[BaseException]:
    """Return `error` and every error that caused it."""
    chain = [error]
    for outer in chain:
        inner = (*outer.args, getattr(outer, "reason", None), outer.__cause__, outer.__context__)
        causes = [each for each in inner if isinstance(each, BaseException)]
        chain += [cause for cause in causes if cause not in chain]
    return chain


def _certificate(error: BaseException) -> str | Cause:
    """Return what is wrong with a certificate: `certificate has expired`."""
    for each in reversed(_chain(error)):
        if isinstance(each, ssl.SSLCertVerificationError):
            return each.verify_message
    return reason_of(error)


def reason_of(error: BaseException) -> str | Cause:
    """Return the innermost reason of a network error, which never contains an address."""
    import requests
    import urllib3

    chain = _chain(error)
    for each in reversed(chain):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
    timed_out = requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError
    if any(isinstance(each, timed_out) for each in chain):
        return cause("no-answer-in-time")
    return cause("connection-broken")
