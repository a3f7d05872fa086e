"""What an error of the network means: the end, or that another try may go well.

It knows the errors of the libraries that `index` uses the network with.
"""

from __future__ import annotations

import ssl

import requests
import urllib3

from ..errors import Error
from .page import without_credentials


class TransferInterrupted(Exception):  # noqa: N818 - not the end: another try may go well
    """An answer did not come, or ended too early."""

    def __init__(self, error: Error) -> None:
        super().__init__(str(error))
        self.error = error
        """What to raise when no try is left."""


def network_error(error: BaseException, url: str) -> Exception:
    """Return the Error, or Interrupted, that stands for what requests or urllib3 raised."""
    if isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError):
        return Error("index-certificate", url=without_credentials(url), reason=_certificate(error))
    if isinstance(error, requests.exceptions.ProxyError | urllib3.exceptions.ProxyError):
        return Error("index-proxy", url=without_credentials(url))
    if type(error) is OSError:  # requests' word for a file of certificates that is not there
        return Error("index-certificate", url=without_credentials(url), reason=str(error))
    if isinstance(error, ValueError):  # InvalidURL and its like
        return Error(
            "index-unreachable", url=without_credentials(url), reason="no address of an index"
        )
    return TransferInterrupted(
        Error("index-unreachable", url=without_credentials(url), reason=reason_of(error))
    )


def _chain(error: BaseException) -> list[BaseException]:
    """Return `error` and everything that is behind it."""
    chain, at = [error], 0
    while at < len(chain):
        seen = chain[at]
        inner = (*seen.args, getattr(seen, "reason", None), seen.__cause__, seen.__context__)
        chain += [one for one in inner if isinstance(one, BaseException) and one not in chain]
        at += 1
    return chain


def _certificate(error: BaseException) -> str:
    """Return what is wrong with a certificate: `certificate has expired`."""
    for one in reversed(_chain(error)):
        if isinstance(one, ssl.SSLCertVerificationError):
            return one.verify_message
    return reason_of(error)


def reason_of(error: BaseException) -> str:
    """Return the plain words at the bottom of a network error, never an address."""
    chain = _chain(error)
    for one in reversed(chain):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    timed_out = requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError
    if any(isinstance(one, timed_out) for one in chain):
        return "no answer in time"
    return "the connection broke off"
