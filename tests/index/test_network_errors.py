"""What a network error is called, and which of them another try may mend."""

from __future__ import annotations

import ssl

import pytest
import requests

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.index.network_errors import TransferInterrupted, network_error, reason_of

URL = "https://me:secret@example.org/simple/?token=x"
EXPIRED = "certificate has expired"
REFUSED = OSError(111, "Connection refused")


def expired() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL] verify failed")
    error.verify_message = EXPIRED
    return error


def caused(error: BaseException, cause: BaseException, attribute: str) -> BaseException:
    setattr(error, attribute, cause)
    return error


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (requests.exceptions.SSLError("x", expired()), "index-certificate", EXPIRED),
        (
            requests.exceptions.SSLError(ssl.SSLError(1, "bad record")),
            "index-certificate",
            "bad record",
        ),
        (requests.exceptions.ProxyError(REFUSED), "index-proxy", None),
        (OSError("no such bundle"), "index-certificate", "no such bundle"),
        (requests.exceptions.InvalidURL("x"), "index-unreachable", cause("address-unreadable")),
        (UnicodeError("label too long"), "index-unreachable", cause("address-unreadable")),
        (
            requests.exceptions.InvalidSchema("Missing dependencies for SOCKS support."),
            "index-unreachable",
            cause("socks-unknown"),
        ),
    ],
)
def test_what_no_other_try_mends(error: BaseException, code: str, reason: str | None) -> None:
    found = network_error(error, URL)

    assert isinstance(found, Error)
    assert found.code == code
    expected = {"url": "https://example.org/simple/"} | ({"reason": reason} if reason else {})
    assert found.values == expected


@pytest.mark.parametrize(
    "error", [requests.ConnectionError(REFUSED), ConnectionResetError(104, "reset")]
)
def test_what_another_try_may_mend(error: BaseException) -> None:
    found = network_error(error, URL)

    assert isinstance(found, TransferInterrupted)
    assert found.error.code == "index-unreachable"
    assert found.error.values == {
        "url": "https://example.org/simple/",
        "reason": reason_of(error),
    }


@pytest.mark.parametrize(
    ("error", "reason"),
    [
(REFUSED, "Connection refused"),
(ValueError("outer", REFUSED), "Connection refused"),
(caused(ValueError(), REFUSED, "reason"), "Connection refused"),
(caused(ValueError(), REFUSED, "__cause__"), "Connection refused"),
(caused(ValueError(), REFUSED, "__context__"), "Connection refused"),
(caused(OSError(5, "outer"), OSError("https://x"), "__cause__"), "outer"),
(ValueError(requests.Timeout()), cause("no-answer-in-time")),
(ValueError(TimeoutError()), cause("no-answer-in-time")),
(ValueError("https://me:secret@example.org"), cause("connection-broken"))
]
)  # fmt: skip
def test_the_innermost_reason_counts_and_no_address_is_said(
    error: BaseException, reason: str
) -> None:
    assert reason_of(error) == reason


def test_errors_that_cause_each_other_have_an_end() -> None:
    one, other = ValueError(), ValueError(REFUSED)
    one.__cause__, other.__cause__ = other, one

    assert reason_of(one) == "Connection refused"
