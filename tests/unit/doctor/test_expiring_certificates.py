"""The days on which certificates expire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mirrorless.clusters.pem import expiry
from mirrorless.doctor.connectivity import TLS, _Steps
from mirrorless.doctor.findings import Status

# The same name, valid for 9,000 and for 300 days: years of four and of two digits.
LONG = """
-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUAmNiGfXKeuBeFWQ5ZVA2mFmrNSowCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAgFw0yNjExMjkxNTEzNTNaGA8yMDUxMDcyMTE1MTM1M1ow
DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJ6ZclCQh171
UlFIzt1QhYbwfdYhRGySGTBB1E8y4E8/RQaiJ16th7wZEeyNqDM4UF87bK/ZiYDe
ACt97XPQ35+jUzBRMB0GA1UdDgQWBBT9kKi3H45hzpPmixHmXJg4wpNYjDAfBgNV
HSMEGDAWgBT9kKi3H45hzpPmixHmXJg4wpNYjDAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIQD0iBeLdrGFQ4bBNj0ukOpmT+LJi1jz87bvNbvAk8wD
EAIgVq1hpKWfl2EfnU3YbRy8bY5TClK6eUZu6qrfNBJWjtA=
-----END CERTIFICATE-----
"""
SHORT = """
-----BEGIN CERTIFICATE-----
MIIBbTCCAROgAwIBAgIUIdrpyq28NdYbgdxR2Tr1Pwy3s50wCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAeFw0yNjExMjkxNTEzNTNaFw0yNzA5MjUxNTEzNTNaMAwx
CjAIBgNVBAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARyHOcszeVryUQK
Z8LBMVQ5uPORWIWWH/mUzo3i3PHOzjNBnRe16+8KhvW+qH2kSGlk9fATY0pnARcp
3NARxKqlo1MwUTAdBgNVHQ4EFgQUEgT5OznBNWVnJl7X2HgfCg5wxAowHwYDVR0j
BBgwFoAUEgT5OznBNWVnJl7X2HgfCg5wxAowDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNIADBFAiBZos4sV0Jq6eKxdIwSVcvz2KiWMKbC/Bzo96VZUNk2JQIh
AMw9IuPvDfm6+6soX89iWY9gRwYx/iVzIfcTeuDg7ZIH
-----END CERTIFICATE-----
"""


def test_a_certificate_s_last_day_is_read() -> None:
    assert expiry(LONG) == datetime(2051, 7, 21, 15, 13, 53, tzinfo=UTC)
    assert expiry(SHORT + LONG) == datetime(2027, 9, 25, 15, 13, 53, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"])
def test_a_text_without_a_certificate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has no certificate"):
        expiry(text)


def test_a_certificate_that_expires_within_two_weeks_is_a_warning() -> None:
    now = datetime.now(UTC)
    steps = _Steps("B")
    steps.certificates({"broker's": now + timedelta(days=90), "client's": now + timedelta(days=5)})
    (found,) = steps._found
    assert (found.check, found.status) == (TLS, Status.WARNING)
    assert f"the client's certificate is valid until {now + timedelta(days=5):%Y-%m-%d}" in found.text
    assert "renew it" in (found.fix or "")
    steps = _Steps("B")
    steps.certificates({"broker's": now + timedelta(days=90)})
    assert steps._found[0].status is Status.OK
